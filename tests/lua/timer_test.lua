-- SPDX-License-Identifier: MIT
--
-- Guards timers: each counts once, whichever way it ends. Fails if one counts twice, never, or as something else.
local codetimer = require "codetimer"

local counters, timer = codetimer.counters, codetimer.timer

local function outcome(name)
    local counter = counters(name)
    return { counter.calls, counter.errors, counter.cancelled, counter.in_flight }
end

describe("a timer", function()
    it("counts from its making to its stop, once", function()
        local before = codetimer.now_ns()
        local t = timer("t.stop")
        assert.same({ 0, 0, 0, 1 }, outcome("t.stop"))
        assert.equal(0, select("#", t:stop()))
        local elapsed = codetimer.now_ns() - before
        assert.same({ 1, 0, 0, 0 }, outcome("t.stop"))
        assert.is_true(counters("t.stop").total_ns <= elapsed)
        t:stop()
        t = nil -- luacheck: ignore 311
        collectgarbage()
        assert.same({ 1, 0, 0, 0 }, outcome("t.stop"))
    end)

    it("counts to the end of its block", function()
        for i = 1, 3 do
            local t <close> = timer("t.block")
            assert.same({ i - 1, 0, 0, 1 }, outcome("t.block"))
            assert.equal("t/t.block", t.counter.key)
        end
        assert.same({ 3, 0, 0, 0 }, outcome("t.block"))
        do
            local t <close> = timer("t.block")
            t:stop()
        end
        assert.same({ 4, 0, 0, 0 }, outcome("t.block"))
    end)

    it("counts an error that leaves its block", function()
        assert.same({ false, "mine" }, { pcall(function()
            local _ <close> = timer("t.error")
            error("mine", 0)
        end) })
        assert.same({ 1, 1, 0, 0 }, outcome("t.error"))
    end)

    it("counts error(nil), which leaves no value, from every depth and after a yield", function()
        local function fail(depth, yields)
            local _ <close> = timer("t.nil")
            if depth > 0 then fail(depth - 1, yields) end
            if yields then coroutine.yield() end
            error(nil)
        end
        for depth = 0, 4 do assert.same({ false, nil }, { pcall(fail, depth) }) end
        assert.same({ 15, 15, 0, 0 }, outcome("t.nil"))
        assert.is_false(xpcall(fail, function() end, 0))
        local run = coroutine.wrap(function() return pcall(fail, 1, true) end)
        run()
        assert.is_false(run())
        assert.same({ 18, 18, 0, 0 }, outcome("t.nil"))
    end)

    it("has returned where its block ends well, whoever made it", function()
        local function make() local t = timer("t.made") return t end
        local function tail() return timer("t.made") end
        local function use(maker, ...) local _ <close> = maker(...) end
        use(make)
        use(tail)
        use(timer, "t.made")
        use(function() return select(2, pcall(timer, "t.made")) end)
        use(coroutine.wrap(make))
        assert.is_true(pcall(use, make))
        for _ in next, {}, nil, make() do end -- luacheck: ignore 542
        assert.same({ 7, 0, 0, 0 }, outcome("t.made"))
    end)

    it("is cancelled with its coroutine, or when it is forgotten", function()
        local thread = coroutine.create(function()
            local _ <close> = timer("t.cancelled")
            coroutine.yield()
        end)
        coroutine.resume(thread)
        coroutine.close(thread)
        assert.same({ 1, 0, 1, 0 }, outcome("t.cancelled"))
        timer("t.cancelled")
        collectgarbage()
        assert.same({ 2, 0, 2, 0 }, outcome("t.cancelled"))
    end)

    it("may overlap with others of its name", function()
        local first, second = timer("t.overlap"), timer("t.overlap")
        assert.equal(2, counters("t.overlap").in_flight)
        first:stop()
        second:stop()
        assert.same({ 2, 0, 0, 0 }, outcome("t.overlap"))
    end)

    it("is named like a measured function", function()
        timer("part", "t"):stop()
        timer({ name = "other", category = "t", help = "the other part" }):stop()
        assert.equal("t/part", counters("part").key)
        assert.equal("t/other", counters("t/other").key)
        assert.is_false(pcall(timer))
        assert.is_false(pcall(timer, ""))
        assert.is_false(pcall(timer, {}))
        assert.is_nil(timer("t.fields").nonsense)
    end)

    it("makes a removed counter anew", function()
        timer("t.anew"):stop()
        counters("t.anew"):remove()
        timer("t.anew"):stop()
        assert.equal(1, counters("t.anew").calls)
    end)
end)
