-- SPDX-License-Identifier: MIT
--
-- Guards codetimer-lua run: a program does and says what it does under lua alone, to the byte, and what was measured is
-- reported at its end. Fails if arguments, exit status, messages, tracebacks or signals differ, or if the report is
-- missing, unsorted, or passes over a pattern that matched nothing.
local child = require "child"

local folder, module_path
before_each(function()
    folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir " .. folder))
    module_path = package.searchpath("codetimer", package.cpath):gsub("codetimer%.so$", "?.so")
end)
after_each(function() os.execute("rm -r " .. folder) end)

local function write(name, text)
    local file = assert(io.open(folder .. "/" .. name, "w"))
    file:write(text)
    file:close()
end

local function read(name)
    local file = assert(io.open(folder .. "/" .. name))
    local text = file:read("a")
    file:close()
    return text
end

-- Runs a shell command in the folder; os.exit may leave a state open there. Returns standard output, error,
-- and exit status or -signal.
local function shell(command, env)
    env = ("%s CODETIMER_PUBLISH=0 %s"):format(child.host_leaks, env or "")
    local line = ("cd %s && env LUA=%s LUA_CPATH='%s;;' %s sh -c '%s' >out 2>err"):format(
        folder, child.interpreter(), module_path, env, command:gsub("'", "'\\''"))
    local _, kind, status = os.execute(line)
    return read "out", read "err", kind == "exit" and status or -status
end

local root = io.popen("pwd"):read("l")
local program = root .. "/bindings-lua/codetimer-lua"
local function run(words, env) return shell(program .. " run " .. words, env) end

-- "words" begin with the script; both ways must be the same. Returns what they gave.
local function compare(words, options)
    local alone = table.pack(shell("exec $LUA " .. words))
    assert.same(alone, table.pack(run((options or "") .. " " .. words)))
    return alone[1], alone[2], alone[3]
end

describe("codetimer-lua run", function()
    it("gives the program its arguments, and leaves no trace in them", function()
        write("p.lua", [[
            for i = -5, 5 do io.write(tostring(arg[i]), " ") end
            print(#arg, ...)
            local names = {}
            for name in pairs(_G) do names[#names + 1] = name end
            table.sort(names)
            print(table.concat(names, " "), ...)
        ]])
        assert.is_truthy(compare("p.lua"):find("p.lua nil nil", 1, true))
        compare([[p.lua a "b c" "" -- --report -x]])
        compare([[p.lua a]], [[--measure 'a"b\\c
            d;*']])
        write("-p.lua", "print(arg[0], ...)")
        compare("-- -p.lua a")
    end)

    it("ends as the program ends", function()
        local ways = {
            "return 7", "os.exit()", "os.exit(3)", "os.exit(false)", "os.exit(4, true)", "error 'no'", "error({})",
            "error(nil)", "error(setmetatable({}, { __tostring = function() return 'told' end }))", "local x = = 1",
            "local function f(n) if n == 0 then error 'deep' end f(n - 1) return 1 end f(40)",
            "coroutine.wrap(function() error 'inside' end)()", "print(debug.traceback('here'))",
            "io.stderr:write('err') io.stdout:write('out') warn('@on') warn('warned')", "string.rep()",
            "print(select('#', ...), pcall(error), xpcall(error, debug.traceback, 'x'))",
        }
        for i, way in ipairs(ways) do
            write("p.lua", way)
            local _, _, status = compare("p.lua 1 2", "--measure 'other.*'")
            if i == 3 then assert.equal(3, status) end
            if i == 6 then assert.equal(1, status) end
        end
        compare("missing.lua")
        write("p.lua", "#!/usr/bin/lua\nprint 'from a shell'")
        compare("p.lua")
    end)

    it("takes a program from standard input", function()
        write("p.lua", "print(arg[0], ...) error 'x'")
        local alone = table.pack(shell "exec $LUA - a b <p.lua")
        assert.same(alone, table.pack(run "- a b <p.lua"))
    end)

    it("leaves signals to the program", function()
        write("p.lua", "io.popen 'kill -TERM $PPID' while true do end")
        local _, _, status = compare "p.lua"
        assert.is_true(status == -15 or status == 128 + 15)
        write("p.lua", "io.popen 'kill -INT $PPID' while true do end")
        local _, err, code = run "p.lua" -- where it is interrupted is chance
        assert.equal(1, code)
        assert.is_truthy(err:find("interrupted!\nstack traceback:", 1, true))
    end)

    it("refuses what it does not know, and tells what is wrong", function()
        write("p.lua", "print 'ran'")
        for words, message in pairs {
            ["--measure"] = "--measure needs a value", ["--wrong p.lua"] = "there is no option --wrong",
            [""] = "the program is missing",
            ["--measure '!' p.lua"] = "the pattern '!' at byte 0 is wrong: nothing follows",
        } do
            local out, err, status = run(words)
            assert.same({ "", 2 }, { out, status })
            assert.is_truthy(err:find("codetimer-lua: " .. message, 1, true), err)
        end
        assert.is_truthy(run "--help":find("codetimer-lua run [--measure MEMBERS]", 1, true))
        assert.equal(2, select(3, shell(program)))
    end)
end)

describe("a file that is edited while the program runs", function()
    it("brings functions that were not measured before, and takes others away", function()
        write("m.lua", "return { f = function() end, g = function() end }")
        write("list", "m.f")
        write("p.lua", [[
            local m, bare = require "m", require "m".g
            for _ = 1, 10 do m.f() m.g() end
            local file = io.open("list", "w")
            file:write "m.g"
            file:close()
            local deadline = os.time() + 60
            repeat m.f() until m.g ~= bare or os.time() > deadline
            m.f() m.g() m.g()
            local codetimer = require "codetimer"
            local f, g = codetimer.counters "m.f", codetimer.counters "m.g"
            print(f.enabled, g.enabled, f.calls >= 10, g.calls)
        ]])
        local out, err, status = run "--config list p.lua"
        assert.same({ "false\ttrue\ttrue\t2\n", "", 0 }, { out, err, status })
    end)
end)

describe("the report of codetimer-lua run", function()
    local function names(err)
        local list = {}
        for line in err:gmatch "[^\n]+" do list[#list + 1] = line:match "^([%w_%.]+)  " end
        return list
    end

    local code = [[
        local m = require "m"
        function short() end
        function long() for _ = 1, 1e5 do end end
        short() short() long() m.f() m.sub.g()
        local function hidden() end
        hidden()
    ]]

    it("has the script's global functions, longest first, in columns", function()
        write("m.lua", "return { f = function() end, sub = { g = function() end } }")
        write("p.lua", code)
        local out, err, status = run "--report p.lua"
        assert.same({ "", 0 }, { out, status })
        assert.same({ "Member", "p.long", "p.short" }, names(err))
        local width
        for line in err:gmatch "[^\n]+" do
            width = width or utf8.len(line)
            assert.equal(width, utf8.len(line))
        end
    end)

    it("names patterns that matched nothing, by measure, file or environment", function()
        write("m.lua", "return { f = function() end, sub = { g = function() end } }")
        write("p.lua", code)
        write("list", "m.*;nothing.*;p.hidden;!m.f")
        for _, way in ipairs { "--measure 'm.*;nothing.*;p.hidden;!m.f'", "--config list", "",
            "--measure 'never.*' --config list" } do
            local _, err = run("--report " .. way .. " p.lua", way == "" and "CODETIMER_CONFIG=list" or "")
            assert.same({ "Member", "m.sub.g" }, names(err), way)
            local patterns = {}
            for pattern in err:gmatch "codetimer: pattern '(.-)' matched no function that was called" do
                patterns[#patterns + 1] = pattern
            end
            assert.same({ "nothing.*", "p.hidden" }, patterns, way)
            assert.is_truthy(err:find("local functions and functions of no table are out of reach", 1, true))
        end
    end)

    it("tells of a file that is missing, as the start does, and of no pattern that nobody gave", function()
        write("p.lua", "function f() end f()")
        local _, err, status = run "--config missing --report p.lua"
        local started, ended = err:match "^codetimer%-lua: ([^\n]+)\n.*\ncodetimer: (file [^\n]+)\n$"
        assert.equal("the members list stays, its file cannot be used: " .. tostring(ended), started)
        assert.is_truthy(ended:find("missing: there is no such file$"))
        assert.equal(0, status)
    end)

    it("comes whatever ends the program, and after what the program says", function()
        for _, ending in ipairs { "", "os.exit(5)", "os.exit(5, true)", "error 'no'" } do
            write("p.lua", "function f() end f() io.stderr:write('last words\\n') " .. ending)
            local _, err, status = run "--report p.lua"
            assert.equal(ending == "" and 0 or ending == "error 'no'" and 1 or 5, status)
            assert.is_truthy(err:find("last words.*Member.*p%.f +1 "), err)
        end
    end)
end)
