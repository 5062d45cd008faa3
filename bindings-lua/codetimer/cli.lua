-- SPDX-License-Identifier: MIT
--
-- cli.lua: codetimer-lua time: how long a statement takes, with the options of timeit, and the report that codetimer
-- time prints for Python. What it prints is made in C; here are the options, the runs and the files. The statement and
-- its errors are in cli_statement.lua.
local codetimer = require "codetimer"
local native = require "codetimer.native"
local statements = require "codetimer.cli_statement"

local OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
local SHORTEST_NS, FIRST_NS = 1e9, 0.25e9 -- no progress for what is over by then; nor before anybody waits
local NOT_THERE, FOLDER = 2, 21 -- ENOENT, EISDIR
local EMPTY_ATTEMPTS, EMPTY_BUDGET_S = 4, 0.02

local help = [[
usage: codetimer-lua time [OPTION]... [--] [STATEMENT]...

Measure how long a statement takes, what the CPU did meanwhile, and what the garbage collector did.

Several STATEMENTs are lines of one text; without any it is empty. Options come before the first one; "--" ends them.

  -n, --number N       how often to execute the statement; 0, the default: as often as fits into the time to measure
  -r, --repeat R       how many runs to make (1), each with a report; a last line tells best, median and worst
  -s, --setup SETUP    executed once before each run, outside of what is measured; its local variables are there for
                       the statement. Several -s are lines of one text
  -t, --target-time SECONDS
                       how long to measure, all in all, warm-up included
  -u, --unit UNIT      unit of times per call (nsec, usec, msec, sec); else the one that suits each
  -p, --process        also print the CPU time of the thread, per call
  -v, --verbose        all that is known, in the report
      --gc-time        also time the garbage collector, where Lua tells
      --memory         also count allocations and bytes, in a pass of their own afterwards
      --priority LEVEL raise the priority: high, highest, realtime
      --cpu N          run on this CPU only
      --json FILE      also save all that is known, for `codetimer compare`
      --format FORMAT  what to print: text (the report), json, csv, markdown, pyperf
      --name NAME      what to call the result; else the statement
  -h, --help           this text

"Calls" are executions of the statement. They include a turn of the loop around it; -v shows what an empty turn takes,
and the net cost. The garbage collector stays on, and what it does is reported. -p does not replace the clock.

exit codes: 0 done; 1 the statement failed, or a file could not be saved; 2 wrong usage; 130 ended by Ctrl-C, with a
report of what was measured until then
]]

-- ---- what to tell ----

local function tell(message) io.stderr:write("codetimer-lua: ", message, "\n") end

-- Ends the program by way of the error that main catches.
local function leave(code, message) error({ code = code, message = message }, 0) end

local function refuse(message) leave(USAGE, message .. " (see codetimer-lua time --help)") end

-- ---- options ----

local function whole(least, most, what)
    return function(text)
        local number = text:match "^%s*[+-]?%d+%s*$" and math.tointeger(tonumber(text))
        if number and number >= least and number <= most then return number end
        refuse(("'%s' is no %s: a whole number from %d to %d"):format(text, what, least, most))
    end
end

local function one_of(...)
    local words = { ... }
    return function(text)
        for _, word in ipairs(words) do
            if word == text then return text end
        end
        refuse(("'%s' is none of %s"):format(text, table.concat(words, ", ")))
    end
end

local function seconds(text)
    local number = tonumber(text)
    if number and number > 0 and number <= 1e9 then return number end
    refuse(("'%s' is no time to measure: a number of seconds above 0, up to 1e9"):format(text))
end

local function any(text) return text end

-- By letter and by name: the key it sets, and what reads its value (false: it has none).
local options = {}
for _, each in ipairs {
    { "n", "number", whole(0, math.maxinteger, "number of executions") },
    { "r", "repeat", whole(1, 1000000, "number of runs") },
    { "s", "setup", any },
    { "t", "target-time", seconds },
    { "u", "unit", one_of("nsec", "usec", "msec", "sec") },
    { "p", "process", false },
    { "v", "verbose", false },
    { "h", "help", false },
    { nil, "gc-time", false },
    { nil, "memory", false },
    { nil, "priority", one_of("high", "highest", "realtime") },
    { nil, "cpu", whole(0, 2 ^ 31 - 1 | 0, "number of a CPU") },
    { nil, "json", any },
    { nil, "format", one_of("text", "json", "csv", "markdown", "pyperf") },
    { nil, "name", any },
} do
    local option = { name = each[2], read = each[3] }
    options["--" .. each[2]] = option
    if each[1] then options["-" .. each[1]] = option end
end

local function set(given, word, option, value)
    if option.read == false then
        given[option.name] = true
    elseif value == nil then
        refuse(word .. " needs a value")
    elseif option.name == "setup" then
        table.insert(given.setup, value)
    else
        given[option.name] = option.read(value)
    end
end

-- The letters of a word such as -pn5; the value of the last one may be the next word. Returns how many were taken.
local function take_letters(given, word, following)
    for at = 2, #word do
        local name = "-" .. word:sub(at, at)
        local option = options[name] or refuse("there is no option " .. name)
        if option.read then
            local value = at < #word and word:sub(at + 1) or following
            set(given, name, option, value)
            return at < #word and 1 or 2
        end
        set(given, name, option)
    end
    return 1
end

local function take_name(given, word, following)
    local name, value = word:match "^(%-%-[^=]*)=(.*)$"
    local option = options[name or word] or refuse("there is no option " .. (name or word))
    if option.read == false and value then refuse(name .. " takes no value") end
    set(given, name or word, option, value or following)
    return (option.read == false or value) and 1 or 2
end

-- Returns the options and the lines of the statement.
local function parse(words)
    local given, at = { setup = {}, number = 0, ["repeat"] = 1, format = "text" }, 1
    while words[at] and words[at]:match "^%-." do
        local word = words[at]
        if word == "--" then
            at = at + 1
            break
        end
        at = at + (word:match "^%-%-" and take_name or take_letters)(given, word, words[at + 1])
    end
    for late = at + 1, words[at - 1] ~= "--" and #words or 0 do
        local name = words[late]:match "^%-%-[^=]+"
        if options[name] then refuse("options come before the first statement: " .. words[late]) end
    end
    return given, table.concat(words, "\n", at)
end

-- ---- the statement ----

local function compile(setup, text)
    local source, message = statements.compile(setup, text)
    return source or leave(FAILED, message)
end

-- Nanoseconds of a turn without a statement; nothing where they are not to be had.
local function measure_empty_turn()
    local statement = compile("", "").make()
    for attempt = 1, EMPTY_ATTEMPTS do
        local budget = EMPTY_BUDGET_S * 2 ^ (attempt - 1)
        local result = assert(codetimer.time("", nil, statement, { budget = budget, file = false }))
        if result.interval_low_ns then return result.interval_low_ns, result.interval_high_ns end
    end
end

local function name_of(text)
    local parts = {}
    for line in text:gmatch "[^\n]+" do
        line = line:match "^%s*(.-)%s*$"
        if line ~= "" then parts[#parts + 1] = line end
    end
    local name = #parts > 0 and table.concat(parts, "; ") or "empty"
    return #name <= 60 and name or name:sub(1, 57) .. "..."
end

-- ---- progress ----

local function new_progress(given, name)
    local out, err = native.terminals()
    local start_ns, shown, done, progress = codetimer.now_ns(), false, 0, {}
    if os.getenv "TERM" == "dumb" then out = false end
    function progress.tell(part, per_call_ns)
        part = (done + part) / given["repeat"]
        local elapsed_ns = codetimer.now_ns() - start_ns
        local waits = part > 0 and elapsed_ns >= FIRST_NS and elapsed_ns / part >= SHORTEST_NS
        if not (out and err and waits) then return end
        local line = native.progress(part, elapsed_ns, per_call_ns, given.unit)
        io.stderr:write("\r", name:gsub("%c", "?"):sub(1, math.max(0, 76 - #line)), ": ", line, "\27[K")
        shown = true
    end
    function progress.clear()
        if shown then io.stderr:write "\r\27[K" end
        shown = false
    end
    function progress.next_run() done = done + 1 end
    return progress
end

-- ---- runs ----

local unwritten -- why something could not be written to standard output; nil: all was

-- A full disk shows when the buffer is written out, and only once.
local function write(text)
    local written, why = io.stdout:write(text)
    if written then written, why = io.stdout:flush() end
    if not written then unwritten = unwritten or why end
end

local function print_report(given, results)
    local _, _, color = native.terminals()
    if given.format ~= "text" then return end
    write(native.report(results, color, given.verbose, given.unit, given.process))
end

-- Returns the result, of what was measured until then also after an error, and the error.
local function make_run(given, source, name, progress, low_ns, high_ns)
    local before = codetimer.last_result()
    local _, result = xpcall(function()
        local statement = source.make(low_ns, high_ns)
        return assert(codetimer.time(name, given.number > 0 and given.number or nil, statement, {
            budget = given["target-time"], gc_time = given["gc-time"], memory = given.memory, file = false,
            _progress = progress.tell,
        }))
    end, statements.trace(source))
    progress.clear()
    if type(result) == "userdata" then return result end
    local partial = codetimer.last_result()
    if type(result) == "string" then result = { interrupted = true } end
    return partial ~= before and partial or nil, result
end

-- Returns the results and the exit code.
local function make_runs(given, source, name)
    local results, low_ns, high_ns = {}, measure_empty_turn()
    local progress = new_progress(given, name)
    for _ = 1, given["repeat"] do
        local result, failure = make_run(given, source, name, progress, low_ns, high_ns)
        if result then
            results[#results + 1] = result
            print_report(given, { result })
        end
        if failure and failure.interrupted then return results, INTERRUPTED end
        if failure then
            tell(failure.message)
            return results, FAILED
        end
        progress.next_run()
    end
    if #results > 1 then print_report(given, results) end
    return results, OK
end

-- ---- files ----

local function machine()
    local done, pipe = pcall(io.popen, "uname -m && uname -s && uname -r")
    if not done or not pipe then return nil end
    local text = pipe:read("a"):gsub("%s+$", ""):gsub("\n", " ")
    pipe:close()
    return text ~= "" and text or nil
end

local function export(results, format)
    return native.export(results, format, machine(), os.date "!%Y-%m-%dT%H:%M:%S+00:00")
end

local function save(path, text)
    local file, why = io.open(path, "wb")
    if not file then leave(FAILED, why) end
    local written, reason = file:write(text)
    if written then written, reason = file:flush() end
    file:close()
    if not written then leave(FAILED, ("%s could not be saved: %s; what is there is cut off"):format(path, reason)) end
end

-- What can be known before anything is measured.
local function check_target(path)
    if not path then return end
    if path == "" or path == "-" then
        refuse "--json needs the name of a file; to standard output: --format json"
    end
    local target, why, code = io.open(path, "r+b") -- neither makes it nor empties it
    if target then
        target:close()
    elseif code ~= NOT_THERE then
        leave(FAILED, code == FOLDER and path .. " is a folder; --json needs the name of a file" or why)
    end
    local folder = path:match "^(.+)/[^/]*$"
    if target or not folder then return end
    local there, _, folder_code = io.open(folder, "r")
    if there then there:close() end
    if not there and folder_code == NOT_THERE then
        leave(FAILED, ("%s: there is no folder %s"):format(path, folder))
    end
end

-- ---- all ----

local function raise_priority(given)
    if not given.priority and not given.cpu then return end
    local environment, why = codetimer.initialize { priority = given.priority or false, cpu = given.cpu }
    if not environment then return tell(why) end
    if environment.priority.reason ~= "" then tell(tostring(environment):match "^[^\n]*") end
    return environment
end

local function measure(words)
    local given, text = parse(words)
    if given.help then
        write(help)
        return OK
    end
    if given.number > 0 and given["target-time"] then
        refuse "-t says how long to measure, -n how often: give one of them"
    end
    check_target(given.json)
    local source = compile(table.concat(given.setup, "\n"), text)
    local environment <close> = raise_priority(given)
    local results, code = make_runs(given, source, given.name or name_of(text))
    if given.format ~= "text" then write(export(results, given.format)) end
    if given.json and code == FAILED then
        tell(given.json .. " was not written, since the statement failed")
    elseif given.json then
        save(given.json, export(results, "json"))
    end
    return code, environment
end

-- Returns the exit code.
return function(words)
    local done, code = xpcall(measure, function(message)
        if type(message) == "table" and message.code then return message end
        if tostring(message):match "interrupted!$" then return { code = INTERRUPTED } end
        return { code = FAILED, message = debug.traceback(message) }
    end, words)
    if not done then
        if code.message then tell(code.message) end
        code = code.code
    end
    if not unwritten then return code end
    tell("standard output: " .. unwritten)
    return FAILED
end
