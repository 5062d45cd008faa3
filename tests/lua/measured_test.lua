-- SPDX-License-Identifier: MIT
--
-- Guards that a measured function behaves as before and that every way out of it is counted as what it was: return,
-- error, cancelled. Fails if a value is lost, an outcome is mistaken, or a call is counted twice or never.
local codetimer = require "codetimer"

local counters, measured = codetimer.counters, codetimer.measured

-- A counter of its own for each test: the name of what is tested.
local function outcome(key)
    local counter = assert(counters(key), key)
    return { counter.calls, counter.errors, counter.cancelled, counter.in_flight }
end

describe("a measured function", function()
    it("passes arguments and results as they are", function()
        local function count(...) return select("#", ...), ... end
        local wrapped = measured(count, "m.count")
        assert.same({ 0, n = 1 }, table.pack(wrapped()))
        assert.same({ 1, nil, n = 2 }, table.pack(wrapped(nil)))
        assert.same({ 4, nil, 1, nil, nil, n = 5 }, table.pack(wrapped(nil, 1, nil, nil)))
        local many = {}
        for i = 1, 200 do many[i] = i % 3 ~= 0 and i or nil end
        local results = table.pack(wrapped(table.unpack(many, 1, 200)))
        assert.equal(201, results.n)
        for i = 1, 200 do assert.equal(many[i], results[i + 1]) end
        assert.same({ 4, 0, 0, 0 }, outcome("m/m.count"))
    end)

    it("has as many parameters as the function, whatever their number", function()
        for parameters = 0, 40 do
            local names, values = {}, {}
            for i = 1, parameters do names[i], values[i] = "p" .. i, i * i end
            local list = table.concat(names, ", ")
            local fn = assert(load(("return function(%s) return { %s } end"):format(list, list)))()
            local wrapped = measured(fn, "m.parameters")
            assert.same(values, wrapped(table.unpack(values)))
            assert.same(values, wrapped(table.unpack(values, 1, parameters + 3)))
            assert.same({}, wrapped())
            if parameters <= 16 then assert.equal(parameters, debug.getinfo(wrapped, "u").nparams) end
        end
    end)

    it("may be a C function, a callable table or userdata", function()
        assert.equal("x", measured(tostring, "m.tostring")("x"))
        local callable = setmetatable({}, { __call = function(self, ...) return self, ... end })
        assert.same({ callable, 1, nil, n = 3 }, table.pack(measured(callable, "m.callable")(1, nil)))
        assert.equal(1, counters("m.tostring").calls)
        assert.equal(1, counters("m.callable").calls)
    end)

    it("is wrapped once, and can be unwrapped", function()
        local function fn() end
        local wrapped = measured(fn, "m.once")
        assert.equal(wrapped, measured(wrapped))
        assert.equal(wrapped, measured(wrapped, "m.other"))
        assert.equal(fn, codetimer.unwrap(wrapped))
        assert.equal(fn, codetimer.unwrap(fn))
        assert.equal(print, codetimer.unwrap(print))
        assert.equal(7, codetimer.unwrap(7))
        assert.is_nil(counters("m.other"))
        assert.is_false(pcall(codetimer.unwrap))
    end)

    it("shares the counter of its key", function()
        local first = measured(function() end, "m.shared")
        local second = measured("m.shared", function() end)
        first() second() second()
        assert.equal(3, counters("m.shared").calls)
    end)

    it("yields", function()
        local wrapped = measured(function(a)
            local b = coroutine.yield(a + 1)
            return b + coroutine.yield(b + 1)
        end, "m.yields")
        local co = coroutine.wrap(wrapped)
        assert.equal(2, co(1))
        assert.equal(11, co(10))
        assert.same({ 0, 0, 0, 1 }, outcome("m.yields"))
        assert.equal(110, co(100))
        assert.same({ 1, 0, 0, 0 }, outcome("m.yields"))
    end)

    it("may run in many coroutines at once", function()
        local wrapped = measured(function(n) for _ = 1, n do coroutine.yield() end end, "m.many")
        local running = {}
        for i = 1, 100 do running[i] = coroutine.create(wrapped) end
        for round = 1, 102 do
            for i, co in ipairs(running) do
                if coroutine.status(co) ~= "dead" then assert(coroutine.resume(co, i)) end
            end
            if round == 50 then assert.equal(51, counters("m.many").in_flight) end
        end
        assert.same({ 100, 0, 0, 0 }, outcome("m.many"))
    end)

    it("recurses 50,000 deep, by itself and by another", function()
        local deep, even, odd
        deep = measured(function(n) return n == 0 and 0 or 1 + deep(n - 1) end, "m.deep")
        even = measured(function(n) return n == 0 or not odd(n - 1) and false or n == 0 or odd(n - 1) end, "m.even")
        odd = measured(function() return true end, "m.odd")
        assert.equal(50000, deep(50000))
        assert.same({ 50001, 0, 0, 0 }, outcome("m.deep"))
        assert.equal(50000, coroutine.wrap(deep)(50000))
        assert.same({ 100002, 0, 0, 0 }, outcome("m.deep"))
        assert.is_true(even(1))
        assert.same({ 1, 0, 0, 0 }, outcome("m.even"))
        assert.equal(2, counters("m.odd").calls)
    end)

    it("is measured as long as it runs", function()
        local wrapped = measured(function() for _ = 1, 1e5 do end end, "m.long") -- luacheck: ignore 542
        local before = codetimer.now_ns()
        wrapped()
        local elapsed, counter = codetimer.now_ns() - before, counters("m.long")
        assert.is_true(counter.total_ns > 0 and counter.total_ns <= elapsed)
        assert.equal(counter.total_ns, counter.min_ns)
        assert.equal(counter.total_ns, counter.max_ns)
    end)

    it("is collected with its scope, and its function", function()
        local weak = setmetatable({}, { __mode = "k" })
        do
            local function fn() return weak end
            local wrapped = measured(fn, "m.scope")
            wrapped()
            coroutine.wrap(wrapped)()
            weak[fn], weak[wrapped] = true, true
        end
        collectgarbage()
        collectgarbage()
        assert.is_nil(next(weak))
        assert.equal(2, counters("m.scope").calls)
    end)
end)

describe("an error", function()
    it("is counted, and goes on unchanged", function()
        local wrapped = measured(function(value) error(value, 0) end, "m.error")
        local object = {}
        for i, value in ipairs { "text", 7, object, true } do
            assert.same({ false, value }, { pcall(wrapped, value) })
            assert.same({ i, i, 0, 0 }, outcome("m.error"))
        end
        assert.same({ false, nil, n = 2 }, table.pack(pcall(wrapped, nil)))
        assert.same({ 5, 5, 0, 0 }, outcome("m.error"))
    end)

    it("of nil is one from every depth", function()
        local fail = measured(function() error(nil) end, "m.nil")
        local function nested(depth) if depth == 0 then fail() else nested(depth - 1) end end
        for depth = 0, 5 do assert.is_false(pcall(nested, depth)) end
        for depth = 5, 0, -1 do assert.is_false(pcall(nested, depth)) end
        assert.same({ 12, 12, 0, 0 }, outcome("m.nil"))
    end)

    it("of nil that ends a coroutine looks like its being closed", function()
        for _, start in ipairs { coroutine.wrap, function(f)
            local thread = coroutine.create(f)
            return function() coroutine.resume(thread) coroutine.close(thread) end
        end } do
            local before = codetimer.counters("m.end") and outcome("m.end") or { 0, 0, 0, 0 }
            pcall(start(measured(function() error(nil) end, "m.end")))
            assert.same({ before[1] + 1, 0, before[3] + 1, 0 }, outcome("m.end"))
        end
    end)

    it("keeps its traceback", function()
        local function culprit() error("boom") end
        local ok, trace = xpcall(measured(function() culprit() return 1 end, "m.trace"), debug.traceback)
        assert.is_false(ok)
        assert.truthy(trace:find("boom\nstack traceback:\n", 1, true), trace)
        assert.truthy(trace:find("upvalue 'culprit'", 1, true), trace)
    end)

    it("after a yield is counted when the coroutine is closed", function()
        local wrapped = measured(function() coroutine.yield(1) error("late") end, "m.late")
        local co = coroutine.wrap(wrapped)
        co()
        assert.is_false(pcall(co))
        assert.same({ 1, 1, 0, 0 }, outcome("m.late"))
        local thread = coroutine.create(wrapped)
        coroutine.resume(thread)
        assert.is_false(coroutine.resume(thread))
        assert.same({ 1, 1, 0, 1 }, outcome("m.late"))
        coroutine.close(thread)
        assert.same({ 2, 2, 0, 0 }, outcome("m.late"))
    end)

    it("in a stack overflow leaves nothing in flight", function()
        local endless, depth = nil, 0
        endless = measured(function() depth = depth + 1 return 1 + endless() end, "m.overflow")
        local ok, message = pcall(endless)
        assert.is_false(ok)
        assert.truthy(tostring(message):find("stack overflow", 1, true), message)
        local counter = counters("m.overflow")
        assert.is_true(depth > 10000)
        assert.equal(0, counter.in_flight)
        assert.equal(counter.calls, counter.errors)
        assert.is_true(math.abs(counter.calls - depth) <= 1, counter.calls .. " of " .. depth)
    end)
end)

describe("a cancelled call", function()
    it("is one whose coroutine is closed", function()
        local thread = coroutine.create(measured(coroutine.yield, "m.closed"))
        coroutine.resume(thread)
        assert.is_true(coroutine.close(thread))
        assert.same({ 1, 0, 1, 0 }, outcome("m.closed"))
    end)

    it("is one whose coroutine is lost, suspended or dead, once", function()
        local wrapped = measured(function() coroutine.yield() error("dead") end, "m.lost")
        do
            local suspended, dead = coroutine.create(wrapped), coroutine.create(wrapped)
            coroutine.resume(suspended)
            coroutine.resume(dead)
            coroutine.resume(dead)
            assert.same({ 0, 0, 0, 2 }, outcome("m.lost"))
        end
        collectgarbage()
        collectgarbage()
        assert.same({ 2, 0, 2, 0 }, outcome("m.lost"))
        coroutine.wrap(wrapped)()
        collectgarbage()
        assert.same({ 3, 0, 3, 0 }, outcome("m.lost"))
    end)

    it("is not counted again when a finalizer resumes its coroutine", function()
        local wrapped = measured(function() return coroutine.yield() end, "m.resumed")
        -- Finalizers run in reverse order: once before, once after that of the call's token.
        for i = 1, 2 do
            local answer
            do
                local thread = coroutine.create(wrapped)
                local function resume() answer = select(2, coroutine.resume(thread, "late")) end
                if i == 1 then coroutine.resume(thread) end
                setmetatable({}, { __gc = resume })
                if i == 2 then coroutine.resume(thread) end
            end
            collectgarbage()
            collectgarbage()
            assert.equal("late", answer)
            assert.same({ i, 0, i - 1, 0 }, outcome("m.resumed"))
        end
    end)
end)

describe("a call under way", function()
    it("does not count when its counter is reset or removed", function()
        for _, change in ipairs { "reset", "remove" } do
            local name = "m.under_" .. change
            local wrapped = measured(function() local c = counters(name) c[change](c) return 5 end, name)
            local counter = counters(name)
            assert.equal(5, wrapped())
            assert.equal(0, counter.calls)
            assert.equal(0, counter.in_flight)
        end
    end)

    it("counts again after a reset; a removed counter is gone until it is measured anew", function()
        local function fn() return 1 end
        local wrapped = measured(fn, "m.again")
        local counter = counters("m.again")
        wrapped()
        assert.is_true(counter:reset())
        wrapped() wrapped()
        assert.equal(2, counter.calls)
        assert.is_true(counter:remove())
        assert.same({ nil, "there is no such thing", "CT_ENOENT" }, { counter:remove() })
        assert.same({ nil, "there is no such thing", "CT_ENOENT" }, { counter:reset() })
        assert.equal(1, wrapped())
        assert.is_nil(counters("m.again"))
        assert.is_false(counter.listed)
        measured(fn, "m.again")()
        assert.equal(1, counters("m.again").calls)
        wrapped()
        assert.equal(2, counters("m.again").calls)
    end)
end)
