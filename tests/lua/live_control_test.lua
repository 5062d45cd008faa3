-- SPDX-License-Identifier: MIT
--
-- Guards what is measured in a running process: switching from outside acts on the very next call, the process takes
-- notice of its list, configure and CODETIMER_MEASURE tell what they did, and two languages in one process are seen as
-- one.
local child = require "child"
local codetimer = require "codetimer"
local live = require "live"
local attach, start_two = live.attach, live.start_two

before_each(live.make_folder)
after_each(live.remove_folder)

describe("switching from outside", function()
    local process, view
    before_each(function()
        process = start_two()
        view = assert(attach(process.pid))
    end)
    after_each(function()
        view:close()
        process:stop()
    end)
    local function calls() return view:sample(false)["shop/shop.f"].calls end

    it("acts on the very next call", function()
        for _ = 1, 20 do
            local before = calls()
            assert.is_true(view:disable("*.f"))
            process:run "f() f()"
            assert.equal(before, calls())
            assert.is_false(view.counters["shop/shop.f"].enabled)
            assert.is_true(view.counters["shop/shop.g"].enabled)
            assert.is_true(view:enable("*.f"))
            process:run "f() f() f()"
            assert.equal(before + 3, calls())
        end
    end)

    it("does not count a call that was under way, in either direction", function()
        process:run [[
            inner = function() end
            outer = codetimer.measured("shop.f", function() inner() end)
            thread = coroutine.create(function() outer() end)
            inner = coroutine.yield
            coroutine.resume(thread)
        ]]
        assert.is_true(view:disable("*.f"))
        process:run "coroutine.resume(thread)"
        assert.equal(1, calls())
        process:run "thread = coroutine.create(function() outer() end); coroutine.resume(thread)"
        assert.is_true(view:enable("*.f"))
        process:run "coroutine.resume(thread)"
        assert.equal(1, calls())
        assert.equal(0, view:sample()["shop/shop.f"].in_flight)
    end)

    it("traces no increment that was not counted", function()
        process:run [[ n = 0; codetimer.trace = function(event) if event == "increment" then n = n + 1 end end;
            codetimer.trace_increments = true; f() ]]
        assert.equal(1, process:run "return n")
        assert.is_true(view:disable("*.f"))
        assert.equal(1, process:run "f() return n")
        assert.is_true(view:enable("*.f"))
        assert.equal(2, process:run "f() return n")
    end)

    it("keeps the list, also for counters to come", function()
        assert.is_nil(view.members)
        assert.is_true(view:disable("shop.*"))
        assert.equal("*;!shop.*", view.members)
        assert.is_false(view.acknowledged)
        process:run "f()"
        assert.is_true(view.acknowledged)
        process:run [[codetimer.measured("shop.late", function() end)()]]
        assert.equal(0, view:sample()["shop/shop.late"].calls)
        assert.is_true(view:set_members("*.late"))
        process:run [[codetimer.measured("shop.late", function() end)(); f()]]
        assert.equal(1, view:sample()["shop/shop.late"].calls)
        assert.equal(1, calls())
        assert.is_true(view:set_members(nil))
        assert.is_nil(view.members)
        process:run "f()"
        assert.equal(2, calls())
        assert.is_true(view:set_members(""))
        process:run "f()"
        assert.equal(2, calls())
        assert.equal("", view.members)
    end)

    it("is noticed by poll", function()
        local before = process:run "return codetimer.poll()"
        assert.is_true(view:disable("shop.*"))
        assert.is_false(view.acknowledged)
        assert.equal(before + 1, process:run "return codetimer.poll()")
        assert.is_true(view.acknowledged)
        assert.equal(before + 1, process:run "return codetimer.poll()")
    end)

    it("refuses what is no list", function()
        assert.has_error(function() view:enable() end,
            "bad argument #1 to 'enable' (members must be a string, got nothing)")
        assert.has_error(function() view:disable({}) end,
            "bad argument #1 to 'disable' (members must be a string, got a table)")
        assert.has_error(function() view:set_members(7) end,
            "bad argument #1 to 'set_members' (members must be a string or nil, got 7)")
        assert.has_error(function() view:set_members(("x"):rep(65537)) end,
            "bad argument #1 to 'set_members' (members must have at most 65536 bytes, got 65537)")
        assert.is_true(view:set_members(("x"):rep(65536)))
        assert.equal(65536, #view.members)
        local done, message, code = view:enable("y")
        assert.is_nil(done)
        assert.truthy(message:find("its list would be longer than 65,536 bytes"), message)
        assert.equal("CT_EINVAL", code)
    end)

    it("tells a wrong pattern, and switches nothing then", function()
        assert.is_true(view:set_members("*.f"))
        for _, switch in ipairs { view.enable, view.disable } do
            local done, message, code = switch(view, [[*.g;x\q]])
            assert.is_nil(done)
            assert.equal([[the pattern 'x\q' at byte 4 is wrong: a backslash quotes only ; ! # * ? and itself]],
                message)
            assert.equal("CT_EINVAL", code)
            assert.equal("*.f", view.members)
        end
    end)

    it("tells the trace function what is skipped of a list", function()
        local told = {}
        function codetimer.trace(...) told[#told + 1] = ("%s %s: %s"):format(...) end
        local done = view:set_members([[*.g;x\q]])
        codetimer.trace = nil
        assert.is_true(done)
        assert.same({ [[skipped x\q: at byte 4: a backslash quotes only ; ! # * ? and itself]] }, told)
        assert.equal([[*.g;x\q]], view.members)
    end)
end)

describe("configure", function()
    -- What the settings of the process are: members, source, and of each pattern its text, hits and problem.
    local function settings(process)
        return process:run [[
            local s = codetimer.configure(); local t = {};
            for i, m in ipairs(s.matches) do t[i] = ("%s %d %s"):format(m.pattern, m.hits, m.problem or "") end;
            return s.members, s.source, table.concat(t, "|")
        ]]
    end

    it("measures what the list selects", function()
        local process <close> = start_two()
        assert.same({ "nil", "nil", "" }, { settings(process) })
        process:run [[codetimer.configure{ members = "*.g; shop.*; !*.f; none.*" }; f() g()]]
        assert.same({ "*.g; shop.*; !*.f; none.*", "configure", "*.g 1 |shop.* 2 |!*.f 1 |none.* 0 " },
            { settings(process) })
        assert.equal(1, process:run [[return codetimer.counters("shop/shop.f").calls]])
        assert.equal(2, process:run [[return codetimer.counters("shop/shop.g").calls]])
        assert.equal("codetimer.Settings: members \"*.g; shop.*; !*.f; none.*\" from configure",
            process:run "return codetimer.configure()")
    end)

    it("skips a wrong pattern and says why", function()
        local process <close> = start_two()
        process:run [[
            skipped = {};
            function codetimer.trace(...) skipped[#skipped + 1] = ("%s %s: %s"):format(...) end;
            s = codetimer.configure{ members = "*.g;!" }; f() g()
        ]]
        local matches, problem = process:run "return #s.matches, s.matches[2].problem"
        assert.equal(2, matches)
        assert.truthy(#problem > 5)
        assert.equal("skipped !: at byte 4: " .. problem, process:run "return table.concat(skipped, '|')")
        assert.equal(1, process:run [[return codetimer.counters("shop/shop.f").calls]])
        assert.equal(2, process:run [[return codetimer.counters("shop/shop.g").calls]])
    end)

    it("tells who wrote the list last", function()
        local process <close> = start_two("CODETIMER_MEASURE='*.f'")
        local view <close> = assert(attach(process.pid))
        assert.same({ "*.f", "environment", "*.f 1 " }, { settings(process) })
        assert.equal(0, view:sample()["shop/shop.g"].calls)
        assert.is_false(view:sample()["shop/shop.g"].enabled)
        assert.equal("*.f", view.members)
        assert.is_true(view:enable("*.g"))
        assert.same({ "*.f;*.g", "controller", "*.f 1 |*.g 1 " }, { settings(process) })
        process:run [[codetimer.configure{ members = "" }; f() g()]]
        assert.same({ "", "configure", "" }, { settings(process) })
        assert.equal("", view.members)
        assert.is_false(view:sample()["shop/shop.f"].enabled)
    end)

    it("refuses what it does not know", function()
        local function refuses(message, options)
            assert.has_error(function() codetimer.configure(options) end,
                "bad argument #1 to 'configure' (" .. message .. ")")
        end
        refuses("members must be a string or nil, got 7", { members = 7 })
        refuses("members must have at most 65536 bytes, got 65537", { members = ("x"):rep(65537) })
        refuses('unknown option: the string "member"', { member = "*" })
        refuses("table expected, got string", "*")
    end)
end)

describe("two languages in one process", function()
    -- A Python program that has a Lua state, each with the codetimer of its own language.
    local program = [[
import ctypes, ctypes.util, os, sys
import codetimer
f = codetimer.measured(name="both.f")(lambda: None)
g = codetimer.measured(name="both.python")(lambda: None)
f(); g()
lua = ctypes.CDLL(ctypes.util.find_library("lua5.4"), mode=ctypes.RTLD_GLOBAL)
lua.luaL_newstate.restype = ctypes.c_void_p
state = ctypes.c_void_p(lua.luaL_newstate())
lua.luaL_openlibs(state)
code = b"""local c = require "codetimer"
    both_f = c.measured("both.f", function() end) both_f() both_f() c.measured("both.lua", function() end)()"""
assert lua.luaL_loadstring(state, code) == 0 and lua.lua_pcallk(state, 0, 0, 0, 0, None) == 0
print(os.getpid(), flush=True)
sys.stdin.readline()
f()
lua.luaL_loadstring(state, b"both_f()")
lua.lua_pcallk(state, 0, 0, 0, 0, None)
print("done", flush=True)
sys.stdin.readline()
]]

    it("are joined by key", function()
        if not child.can([[python -c "import codetimer, ctypes.util; assert ctypes.util.find_library('lua5.4')"]]) then
            return pending("there is no Python with codetimer here, or no shared Lua")
        end
        local script, fifo = os.tmpname(), live.folder .. "/fifo"
        local file = assert(io.open(script, "w"))
        file:write(program)
        file:close()
        assert(os.execute(("mkdir -m 700 %s/live && mkfifo %s"):format(live.folder, fifo)))
        local output = assert(io.popen(("CODETIMER_DIR=%s/live exec python %s <%s"):format(live.folder, script, fifo)))
        local input <close> = assert(io.open(fifo, "w"))
        local view <close> = assert(codetimer.attach(assert(output:read("n", "l")), live.folder .. "/live"))
        assert.equal(2, #view.segments)
        local samples = view:sample()
        assert.same({ 3, 1, 1 },
            { samples["both/both.f"].calls, samples["both/both.python"].calls, samples["both/both.lua"].calls })
        assert.is_true(samples["both/both.f"].enabled)
        assert.is_true(view:disable("both.f"))
        input:write("\n")
        input:flush()
        output:read("l")
        assert.equal(3, view:sample()["both/both.f"].calls)
        assert.is_false(view:sample()["both/both.f"].enabled)
        input:write("\n")
        input:close()
        output:close()
        os.remove(script)
    end)
end)
