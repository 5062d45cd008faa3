-- SPDX-License-Identifier: MIT
--
-- Guards what is said of active time, and that a program comes awake by its calls. Lua tells nobody when a coroutine
-- waits: so of a call that can yield no active time is told, but why; of any other it is the elapsed time. Fails if a
-- call's kind is mistaken, or a call that is switched off never looks at a list that was changed.
local child = require "child"
local codetimer = require "codetimer"

-- Runs in a child, whose main thread is no coroutine. check(key, calls, unknown) tells whether the values fit.
local function run(code)
    assert.equal("", child.check([[
        local codetimer = require "codetimer"
        local measured = codetimer.measured
        local function check(key, calls, unknown)
            local c = codetimer.counters(key)
            assert(c.calls == calls, key .. ": " .. c.calls .. " calls")
            assert(c.active_unknown == unknown, key .. ": " .. c.active_unknown .. " unknown")
            if unknown == 0 then
                assert(c.active_ns == c.total_ns and c.active_reason == nil)
                assert(c.active_average_ns == c.average_ns)
            else
                assert(c.active_ns == nil and c.active_average_ns == nil)
                assert(c.active_reason == unknown .. " of the calls could wait, and their language does not tell for "
                    .. "how long they did")
            end
        end
    ]] .. code))
end

describe("the active time of a call", function()
    it("is the elapsed time in the main thread, whatever its outcome", function()
        run [[
            local f = measured(function(fail) if fail then error "x" end end, "a.f")
            local deep
            deep = measured(function(n) return n > 0 and deep(n - 1) or 0 end, "a.deep")
            f() pcall(f, true) deep(10)
            check("a.f", 2, 0)
            check("a.deep", 11, 0)
        ]]
    end)

    it("is unknown in a coroutine, where the call can yield", function()
        run [[
            local f = measured(function(yield, fail)
                if yield then coroutine.yield() end
                if fail then error "x" end
            end, "a.f")
            local co = coroutine.wrap(f)
            co(true) co()
            check("a.f", 1, 1)
            coroutine.wrap(f)()
            pcall(coroutine.wrap(f), false, true)
            check("a.f", 3, 3)
            local closed = coroutine.create(f)
            coroutine.resume(closed, true)
            coroutine.close(closed)
            check("a.f", 4, 4)
            f()
            check("a.f", 5, 4)
            codetimer.trace_increments = true
            coroutine.wrap(f)()
            check("a.f", 6, 5)
        ]]
    end)

    it("is known in a coroutine, where a C function does not let the call yield", function()
        run [[
            local compare = measured(function(a, b) assert(not coroutine.isyieldable()) return a < b end, "a.compare")
            local inner = measured(function() end, "a.inner")
            local count = 0
            coroutine.wrap(function()
                table.sort({ 2, 1 }, function(a, b)
                    count = count + 1
                    inner()
                    return compare(a, b)
                end)
            end)()
            check("a.compare", count, 0)
            check("a.inner", count, 0)
        ]]
    end)

    it("is that of a timer where it was begun in the main thread", function()
        run [[
            codetimer.timer("a.timer"):stop()
            check("a.timer", 1, 0)
            local held = coroutine.wrap(function()
                local t <close> = codetimer.timer("a.timer")
                coroutine.yield()
            end)
            held() held()
            coroutine.wrap(function() codetimer.timer("a.timer"):stop() end)()
            check("a.timer", 3, 2)
            codetimer.counters("a.timer"):record(5)
            check("a.timer", 4, 2)
        ]]
    end)

    it("is in samples, in their differences, and seen from outside", function()
        run [[
            local f = measured(function() end, "a.f")
            local first = codetimer.counters("a.f"):sample()
            f()
            local second = codetimer.counters("a.f"):sample()
            coroutine.wrap(f)()
            local third = codetimer.counters("a.f"):sample()
            assert((second - first).active_ns == second.total_ns)
            assert((third - second).active_ns == nil and (third - second).active_unknown == 1)
            local pipe = io.popen "echo $PPID"
            local view = assert(codetimer.attach(pipe:read "n"))
            pipe:close()
            assert(view:sample()["a/a.f"].active_reason == third.active_reason)
            view:close()
        ]]
    end)
end)

describe("a program whose functions are all switched off", function()
    local function write(path, text)
        local file = assert(io.open(path, "w"))
        file:write(text)
        file:close()
    end

    -- Calls until "done" says so; only a program that hangs ever waits that long.
    local program = [[
        local codetimer = require "codetimer"
        local path = %q
        local function write(text)
            local file = assert(io.open(path, "w"))
            file:write(text)
            file:close()
        end
        local function call_until(f, wanted)
            local deadline = codetimer.now_ns() + 60e9
            repeat %s until codetimer.counters("p.f").calls > 0 == wanted or codetimer.now_ns() > deadline
            print(codetimer.counters("p.f").calls > 0)
        end
        local f = codetimer.measured(function() end, "p.f")
        f()
        print(codetimer.counters("p.f").calls)
        write "p.*"
        call_until(f, true)
    ]]

    for what, call in pairs {
        ["in the main thread"] = "f()",
        ["in coroutines"] = "coroutine.wrap(f)()",
        ["in a call under way"] = "coroutine.wrap(function() f() end)()",
        ["while increments are traced"] = "codetimer.trace_increments = true f()",
    } do
        it("takes notice of its file by its calls, " .. what, function()
            local path = os.tmpname()
            write(path, "q.*")
            local out = child.check(program:format(path, call), { env = "CODETIMER_CONFIG=" .. path })
            os.remove(path)
            assert.equal("0\ntrue\n", out)
        end)
    end
end)

it("has the fields in a sample of this process too", function()
    local counter = codetimer.timer("a.here").counter
    assert.equal(0, counter:sample().active_ns)
    assert.is_nil(counter.active_reason)
end)
