-- SPDX-License-Identifier: MIT
--
-- Guards codetimer-lua time: the options of timeit mean what they mean there, counts are those of the statement, what
-- fails is told with its line, and nothing that was measured is lost. Fails if a statement runs more or less often than
-- is said, can end its loop, or takes the report with it.
local child = require "child"

local folder, module_path
before_each(function()
    folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir " .. folder))
    module_path = package.searchpath("codetimer", package.cpath):gsub("codetimer%.so$", "?.so")
end)
after_each(function() os.execute("rm -r " .. folder) end)

local function read(name)
    local file = assert(io.open(folder .. "/" .. name))
    local text = file:read "a"
    file:close()
    return text
end

local function quote(text) return "'" .. tostring(text):gsub("'", "'\\''") .. "'" end

local root = io.popen("pwd"):read "l"
local program = root .. "/bindings-lua/codetimer-lua"

-- Runs shell code in the folder in which "$@" is codetimer-lua time with these words. Returns standard output, error,
-- and exit status or -signal.
local function shell(code, ...)
    local words = {}
    for i, word in ipairs { ... } do words[i] = quote(word) end
    local line = ("cd %s && env %s LUA=%s LUA_CPATH='%s;;' NO_COLOR=1 LC_ALL=C.UTF-8 sh -c %s sh %s time %s >out 2>err")
        :format(folder, child.host_leaks, child.interpreter(), module_path, quote(code), program,
            table.concat(words, " "))
    local _, kind, status = os.execute(line)
    return read "out", read "err", kind == "exit" and status or -status
end

local function run(...) return shell('exec "$@"', ...) end

local function check(...)
    local out, err, status = run(...)
    assert.same({ "", 0 }, { err, status })
    return out
end

describe("codetimer-lua time", function()
    it("executes the statement as often as it says, and the setup once for each run", function()
        local setup = "n = n or 0; runs = (runs or 0) + 1; "
            .. "done = done or setmetatable({}, {__gc = function() print(n, runs) end})"
        local out = check("-n", 777, "-r", 2, "-s", setup, "n = n + 1")
        assert.equal(2, select(2, out:gsub("\n    Calls:          777\n", "")))
        assert.is_truthy(out:find "\n2 runs: best %S+ %S+, median %S+ %S+, worst %S+ %S+ per call\n\n")
        assert.is_truthy(out:find "1554\t2\n")
    end)

    it("finds n where none is given", function()
        local out = check("-t", 0.01, "local x = 1")
        local calls = out:match "^local x = 1\n    Calls: +([%d,]+)\n"
        assert.is_true(tonumber((calls:gsub(",", ""))) > 0)
        assert.is_truthy(check("-n", "0", "-t", "0.01"):find "^empty\n    Calls: ")
    end)

    it("takes several statements, and several setups, as lines of one text", function()
        local out = check("-n1", "-s", "local t = {}", "-s", "local print = print", "--", "for i = 1, 2 do", "print(i)",
            "end")
        assert.is_truthy(out:find "^1\n2\nfor i = 1, 2 do; print%(i%); end\n    Calls: +1\n")
    end)

    it("says all that is known", function()
        local out = check("-vp", "--unit=msec", "-t", "0.02", "--memory", "--gc-time", "--name", "tables",
            "local t = {}")
        assert.is_truthy(out:find "^tables\n")
        assert.is_truthy(out:find "Per Call: +[%d.]+ ms")
        assert.is_truthy(out:find "CPU Time: +[%d.]+ ms per call\n")
        assert.is_truthy(out:find "Memory: +1%.00 allocator calls and %d+%.0 bytes per call")
        assert.is_truthy(out:find "Empty Call: +[%d.]+ ms to [%d.]+ ms %(empty statement%)\n")
        assert.is_truthy(out:find("GC time is unknown", 1, true))
    end)

    it("takes priority and CPU, and tells once what it does not get", function()
        local out, err, status = run("-n", 5, "--priority", "high", "--cpu", 1048576, "local x")
        assert.same({ 0, true }, { status, out:find "Calls: +5\n" ~= nil })
        assert.is_truthy(err:find "^codetimer%-lua: Priority: [^\n]+\n$")
    end)

    it("refuses what it does not know, with one line", function()
        for words, message in pairs {
            [{ "-n", "abc", "" }] = "'abc' is no number of executions: a whole number from 0",
            [{ "-n", "-1", "" }] = "'-1' is no number of executions",
            [{ "-n", "9223372036854775808", "" }] = "is no number of executions",
            [{ "-r", "0", "" }] = "'0' is no number of runs",
            [{ "-t", "nan", "" }] = "'nan' is no time to measure",
            [{ "-t", "0", "" }] = "'0' is no time to measure",
            [{ "-n", "5", "-t", "1", "" }] = "give one of them",
            [{ "-u", "hours", "" }] = "'hours' is none of nsec, usec, msec, sec",
            [{ "-q", "" }] = "there is no option -q",
            [{ "--nosuch=1", "" }] = "there is no option --nosuch",
            [{ "--memory=1", "" }] = "--memory takes no value",
            [{ "-s" }] = "-s needs a value",
            [{ "--json", "-", "" }] = "to standard output: --format json",
            [{ "local x", "--memory" }] = "options come before the first statement: --memory",
        } do
            local out, err, status = run(table.unpack(words))
            assert.same({ "", 2 }, { out, status })
            assert.is_truthy(err:find(message, 1, true), err)
            assert.equal(1, select(2, err:gsub("\n", "")))
        end
    end)

    it("helps", function()
        local out = check "--help"
        for _, option in ipairs { "number", "repeat", "setup", "target-time", "unit", "process", "verbose", "gc-time",
            "memory", "priority", "cpu", "json", "format", "name" } do
            assert.is_truthy(out:find("--" .. option, 1, true), option)
        end
    end)
end)

describe("a statement that fails", function()
    it("is told with its line", function()
        for words, message in pairs {
            [{ "x +" }] = "codetimer-lua: statement:1: syntax error near '+'\n    x +\n",
            [{ "-s", "local 1", "" }] = "codetimer-lua: setup:1: <name> expected near '1'\n    local 1\n",
            [{ "if x then", "break", "end" }] = "break outside",
            [{ "end for i = 1, 2 do" }] = "codetimer-lua: statement:1: <eof> expected near 'end'\n",
            [{ "return 5" }] = "codetimer-lua: a statement cannot return\n",
            [{ "-s", "return 5", "local x" }] = "codetimer-lua: the setup cannot return\n",
            [{ "-s", "do return end", "local x" }] = "codetimer-lua: the setup cannot return\n",
            [{ "-s", "local x <const> = 1", "x = 2" }] = "attempt to assign to const variable 'x'\n    x = 2\n",
        } do
            local out, err, status = run(table.unpack(words))
            assert.same({ "", 1 }, { out, status })
            assert.is_truthy(err:find(message, 1, true), err)
        end
    end)

    it("leaves a report of what was measured, and the user's part of the traceback", function()
        local out, err, status = run("-n", 10, "-s", "local n = 0", "-s", "local function f() error 'four' end",
            "n = n + 1", "if n == 5 then f() end")
        assert.equal(1, status)
        assert.is_truthy(out:find("    Calls:          4 of 10 (error)\n", 1, true))
        assert.equal("codetimer-lua: setup and statement:2: four\n    local function f() error 'four' end\n"
            .. "stack traceback:\n\t[C]: in function 'error'\n\tsetup and statement:2: in upvalue 'f'\n"
            .. "\tsetup and statement:4: in local 'statement'\n", err)
    end)

    it("cannot end its loop", function()
        local out, err, status = run("-n", 10, "-s", "local n = 0", "n = n + 1", "if n == 5 then return n end")
        assert.equal(1, status)
        assert.is_truthy(out:find("    Calls:          4 of 10 (error)\n", 1, true))
        assert.equal("codetimer-lua: a statement cannot return\n", err)
    end)

    it("is told also when it raises what is no string, or fails in the setup", function()
        local told = "error(setmetatable({}, { __tostring = function() return 'told' end }))"
        for code, message in pairs {
            ["error { code = 2, message = 'hi' }"] = "(error object is a table value)",
            ["error()"] = "(error object is a nil value)", ["error(7, 0)"] = "7", [told] = "told",
            ["error(setmetatable({}, { __tostring = error }))"] = "(error object is a table value)",
        } do
            for _, words in ipairs { { code }, { "-s", code, "local x" } } do
                local _, err, status = run(table.unpack(words))
                assert.same({ "codetimer-lua: " .. message, 1 }, { err:match "^[^\n]*", status })
            end
        end
        local out, err, status = run("-s", "local x = nil .. 1", "")
        assert.same({ "", 1 }, { out, status })
        assert.is_truthy(err:find("    local x = nil .. 1\n", 1, true), err)
    end)
end)

describe("Ctrl-C", function()
    it("prints and saves what is known", function()
        local setup = "local n, pid = 0, io.open('/proc/self/stat'):read 'n'"
        local statement = "n = n + 1 if n == 1000 then io.popen('kill -INT ' .. pid):close() end"
        local out, err, status = run("-n", 1000000000000, "--json", "r.json", "-s", setup, statement)
        assert.same({ "", 130 }, { err, status })
        assert.is_truthy(out:find("    Calls:          1,000 of 1,000,000,000,000 (interrupted)\n", 1, true)
            or out:find("    Calls:          999 of 1,000,000,000,000 (interrupted)\n", 1, true), out)
        assert.is_truthy(read "r.json":find('"interrupted": "interrupted"', 1, true))
    end)
end)

describe("files", function()
    it("are of the format that is asked for", function()
        assert.is_truthy(check("-n", 5, "--format", "json", ""):find '^{"codetimer": 1, .*"host": "Lua 5.%d"')
        assert.is_truthy(check("-n", 5, "--format", "csv", ""):find "^name,n,calls,.*\n\"empty\",5,5,")
        assert.is_truthy(check("-n", 5, "--format", "markdown", ""):find "^| Name | Calls |")
        assert.is_truthy(check("-n", 500, "--format", "pyperf", ""):find '"version": "1.0"')
    end)

    it("are saved beside the report, or it is said why not", function()
        assert.is_truthy(check("-n", 5, "--json", "r.json", ""):find "Calls: +5\n")
        assert.is_truthy(read "r.json":find '^{"codetimer": 1,.*}\n$')
        local out, err, status = run("-n", 5, "--json", "no/r.json", "")
        assert.same({ "", "codetimer-lua: no/r.json: there is no folder no\n", 1 }, { out, err, status })
        out, err, status = run("-n", 5, "--json", ".", "")
        assert.same({ "", "codetimer-lua: . is a folder; --json needs the name of a file\n", 1 }, { out, err, status })
        out, err, status = run("-n", 5, "--json", "r.json/x", "")
        assert.same({ "", "codetimer-lua: r.json/x: Not a directory\n", 1 }, { out, err, status })
        out, err, status = run("-n", 5, "--json", "failed.json", "error 'x'")
        assert.equal(1, status)
        assert.is_truthy(out:find("0 of 5 (error)", 1, true))
        assert.is_truthy(err:find("failed.json was not written, since the statement failed\n", 1, true))
        assert.is_nil(io.open(folder .. "/failed.json"))
    end)

    it("that find the disk full are told of, and the report is there all the same", function()
        if not child.can "test -c /dev/full" then return pending "there is no /dev/full" end
        local out, err, status = run("-n", 5, "--json", "/dev/full", "")
        assert.equal(1, status)
        assert.is_truthy(out:find "Calls: +5\n")
        assert.equal("codetimer-lua: /dev/full could not be saved: No space left on device; what is there is cut off\n",
            err)
        out, err, status = shell('exec "$@" >/dev/full', "-n", 5, "")
        assert.same({ "", "codetimer-lua: standard output: No space left on device\n", 1 }, { out, err, status })
    end)
end)

describe("progress", function()
    it("is shown on a terminal, and gone at the end", function()
        if not child.can "command -v script" then return pending "there is no script" end
        local code = [[script -qec "$0 time -t 1.3 --name loop ''" /dev/null]]
        local out = shell(code:gsub("%$0", program))
        assert.is_truthy(out:find "\rloop: %d+ %%, [%d.]+ %S+ per call, %d s left\27%[K.*\r\27%[Kloop\r\n", out)
        assert.is_nil(check("-t", 1.3, ""):find("left", 1, true))
    end)
end)
