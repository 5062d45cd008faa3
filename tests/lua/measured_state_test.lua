-- SPDX-License-Identifier: MIT
--
-- Guards measured functions where a state ends, where there are several, and where memory is short. Fails if a call is
-- lost or counted as something else at the end, if states of a process do not share counters, if a call allocates, or
-- if lack of memory reaches the program.
local child = require "child"

describe("a process", function()
    it("ends well with calls under way, and counts them as cancelled", function()
        local out = child.check [[
            local codetimer = require "codetimer"
            late = setmetatable({}, { __gc = function()
                local c = codetimer.counters("p.exit")
                print(c.calls, c.cancelled, c.errors)
            end })
            suspended = coroutine.wrap(codetimer.measured(coroutine.yield, "p.suspended"))
            suspended()
            local inner = codetimer.measured(function() os.exit(0, true) end, "p.exit")
            codetimer.measured(function() inner() end, "p.outer")()]]
        assert.equal("1\t1\t0\n", out)
    end)

    it("may call measured functions while the state closes", function()
        local out = child.check([[
            -- Finalizers run in reverse order: one before and one after the module's own.
            local first = setmetatable({}, { __gc = function()
                print("after", wrapped(3) + made(4), next(require("codetimer").counters()))
                print(resume("on"))
            end })
            local codetimer = require "codetimer"
            wrapped = codetimer.measured(function(n) return n end, "p.closing")
            made = function(n)
                local t <close> = codetimer.timer("p.timer")
                codetimer.report({ write = function() end })
                return codetimer.measured(function() return n end, "p.new")()
            end
            resume = coroutine.wrap(codetimer.measured(function() return coroutine.yield() end, "p.resumed"))
            resume()
            local last = setmetatable({}, { __gc = function()
                print("before", wrapped(1) + made(2))
                print(codetimer.counters("p.closing").calls)
            end })]], { env = child.host_leaks })
        assert.equal("before\t3\n1\nafter\t7\tnil\non\n", out)
    end)

    it("without the debug and coroutine libraries measures too", function()
        child.check [[
            local measured = require("codetimer").measured
            debug, coroutine, string, table, arg = nil, nil, nil, nil, nil
            setmetatable(_G, { __index = function(_, name) error("undeclared " .. name) end })
            assert(measured(function() return 3 end)() == 3)]]
    end)
end)

describe("several states", function()
    local host
    setup(function() host = child.compile_host() end)
    teardown(function() os.remove(host) end)

    it("of one process share counters, and a closed one leaves its counts", function()
        child.check([[
            local codetimer = require "codetimer"
            local code = [=[
                local codetimer = require "codetimer"
                local wrapped = codetimer.measured(function() end, "two.states")
                for i = 1, 10 do wrapped() end
                suspended = coroutine.wrap(codetimer.measured(coroutine.yield, "two.suspended"))
                suspended()
                return tostring(codetimer.counters("two.states").calls)]=]
            assert(other(code) == "10")
            assert(load(code)() == "20")
            assert(other(code) == "30")
            local counter = codetimer.counters("two.suspended")
            assert(counter.calls == 2 and counter.cancelled == 2 and counter.in_flight == 1)]], { host = host })
    end)

    it("on two threads count exactly", function()
        child.check([[
            local code = [=[
                local codetimer = require "codetimer"
                local wrapped = codetimer.measured(function() end, "two.threads")
                for i = 1, 300000 do wrapped() end
                return "done"]=]
            start(code)
            load(code)()
            assert(join() == "done")
            local counter = require("codetimer").counters("two.threads")
            assert(counter.calls == 600000 and counter.in_flight == 0, counter.calls)]], { host = host })
    end)

    it("allocate nothing per call", function()
        child.check([[
            local measured = require("codetimer").measured
            local deep
            local plain = measured(function() end, "plain")
            local variadic = measured(function(...) return ... end, "variadic")
            deep = measured(function(n) if n > 0 then deep(n - 1) end end, "deep")
            local switch = coroutine.wrap(function()
                while true do plain() coroutine.yield() end
            end)
            local function round()
                plain() variadic(1, 2) deep(100) switch()
            end
            for _ = 1, 10 do round() end
            local before = allocations()
            for _ = 1, 1000 do round() end
            assert(allocations() == before, allocations() - before)]], { host = host })
    end)

    it("short of memory run unmeasured, and are never harmed", function()
        child.check([[
            local codetimer = require "codetimer"
            local function fn(...) return select("#", ...) end
            local refused = 0
            codetimer.measured(fn, "warm")(1)
            collectgarbage("stop")
            for k = 1, 40 do
                fail_after(k)
                local wrapped = codetimer.measured(fn, "short")
                local unmeasured = wrapped == fn
                local answer = wrapped(1, nil)
                fail_after(nil)
                assert(answer == 2)
                if unmeasured then refused = refused + 1 end
            end
            assert(refused > 3 and refused < 40, refused)
            -- Calls within calls need tokens: without memory for one the call is not measured.
            local deep
            deep = codetimer.measured(function(n) return n == 0 and 0 or 1 + deep(n - 1) end, "deep")
            deep(0)
            local function bare(n) return n == 0 and 0 or 1 + bare(n - 1) end
            bare(50) -- so that Lua itself needs no memory
            fail_after(0)
            local ok, depth = pcall(deep, 3)
            fail_after(nil)
            assert(ok and depth == 3, depth)
            local counter = codetimer.counters("deep")
            assert(counter.calls == 2 and counter.in_flight == 0, counter.calls)]], { host = host })
    end)

    it("short of memory time unmeasured", function()
        child.check([[
            local codetimer = require "codetimer"
            local options = { name = "short.table", category = "short", help = "help" }
            codetimer.timer("warm"):stop()
            codetimer.timer({ name = "warm", category = "warm", help = "help" }):stop()
            collectgarbage("stop")
            local timers, measured, unmeasured = {}, 0, 0
            local function use(what, k)
                fail_after(k)
                local ok, timer = pcall(codetimer.timer, what)
                if ok then timer:stop() end
                fail_after(nil)
                assert(ok, timer)
                timer:stop()
                if timer.counter then measured = measured + 1 else unmeasured = unmeasured + 1 end
            end
            use("short.text", 1000) -- so that Lua itself needs no memory
            for k = 0, 30 do
                use("short.text", k)
                use(options, k)
            end
            assert(measured > 20 and unmeasured > 3, unmeasured)
            local counter = codetimer.counters("short.text")
            assert(counter.in_flight == 0 and counter.calls + codetimer.counters("short/short.table").calls == measured)
            do local block <close> = codetimer.timer("short.text") end]], { host = host })
    end)
end)

describe("the debug library", function()
    -- In a child, since what is guarded against is a crash.
    it("puts no wrong value in the place of a token, a gate or a counter", function()
        child.check [[
            local codetimer = require "codetimer"
            local values = { 5, "text", ("x"):rep(96), {}, io.stdout, print, true, coroutine.create(print),
                setmetatable({}, { __gc = function() end }), codetimer.timer("other"), n = 10 }
            local wrapped, gate
            local function make()
                wrapped = codetimer.measured(function(n) return n == 0 and 0 or 1 + wrapped(n - 1) end, "hostile")
                gate = select(2, debug.getupvalue(wrapped, 1))
            end
            local function use()
                assert(wrapped(3) == 3)
                assert(coroutine.wrap(wrapped)(3) == 3)
                collectgarbage()
                assert(wrapped(0) == 0)
            end
            make()
            local mt = debug.getmetatable(gate())
            for _, name in ipairs { "__close", "__gc" } do
                assert(not pcall(mt[name]))
                for i = 1, values.n do
                    local ok, message = pcall(mt[name], values[i])
                    assert(not ok and message:find("token of a measured function"), message)
                end
            end
            for upvalue = 1, 3 do
                for i = 0, values.n do
                    make()
                    use()
                    debug.setupvalue(gate, upvalue, values[i])
                    use()
                end
            end
            for place = 1, 3 do
                for i = 0, values.n do
                    make()
                    wrapped(3)
                    local token <close> = gate()
                    debug.setuservalue(token, values[i], place)
                    use()
                end
            end
            for _, value in ipairs { gate(), values[10] } do -- of another gate, and not a token
                make()
                debug.setupvalue(gate, 1, value)
                debug.setupvalue(gate, 2, value)
                use()
            end
            assert(codetimer.counters("hostile").in_flight >= 0)]]
    end)

    it("takes nothing away from a timer or a sample", function()
        child.check [[
            local codetimer = require "codetimer"
            for _, value in ipairs { false, 5, io.stdout, codetimer.timer("other"), codetimer.timer("x").counter } do
                local timer, sample = codetimer.timer("t"), codetimer.timer("t").counter:sample()
                debug.setuservalue(timer, value, 1)
                debug.setuservalue(sample, value, 1)
                collectgarbage()
                timer:stop()
                assert(sample.key == nil or sample.key == value)
                assert(sample.calls >= 0 and sample.category == nil and sample.member == nil)
            end]]
    end)

    it("finds no function in the registry that believes what it is given", function()
        child.check [[
            local codetimer = require "codetimer"
            codetimer.time("", 10, function() collectgarbage() end)
            codetimer.measured(print, "registry")
            codetimer.trace = function() end
            local values = { 5, "text", {}, io.stdout, codetimer.timer("t"), codetimer.timer("t").counter }
            local functions = {}
            local function take(mt)
                for name, value in pairs(type(mt) == "table" and mt or {}) do
                    if type(value) == "function" and tostring(name):find("^__") then functions[value] = name end
                end
            end
            for key, value in pairs(debug.getregistry()) do
                if key ~= 2 and (type(key) == "userdata" or tostring(key):find("^codetimer")) then
                    take(value)
                    take(debug.getmetatable(value))
                end
            end
            local called = 0
            for f in pairs(functions) do
                called = called + 1
                for i = 0, #values do pcall(f, values[i]) pcall(f, values[i], values[i]) end
                pcall(f)
            end
            assert(called > 10, called)
            codetimer.time("", 10, function() collectgarbage() end)]]
    end)
end)
