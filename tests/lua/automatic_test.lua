-- SPDX-License-Identifier: MIT
--
-- Guards runs without n, and what is known of a run beyond its time: the spread, what the system did, empty calls and
-- the net cost, and that nothing of it is invented.
local child = require "child"
local codetimer = require "codetimer"

local function nothing() end
local function add() local s = 0 for i = 1, 100 do s = s + i end return s end

describe("an automatic run", function()
    it("makes as many calls as fit, after a warm-up that does not count", function()
        local calls = 0
        local result = codetimer.time("auto", nil, function() calls = calls + 1 end, { file = false, budget = 0.05 })
        assert.is_true(result.automatic)
        assert.equal(50000000, result.budget_ns)
        assert.equal(result.n, result.calls)
        assert.equal(calls, result.calls + result.warmup_calls)
        assert.is_true(result.calls > 0)
        local unwarmed = table.concat(result.notes, "\n"):find("no warm%-up") -- a busy machine
        assert.is_true(result.warmup_calls > 0 and result.warmup_ns > 0 or unwarmed ~= nil)
        assert.is_nil(result.interrupted)
    end)

    it("has 0.2 s where nothing is said", function()
        assert.equal(200000000, codetimer.time("", nil, nothing).budget_ns)
        assert.is_nil(codetimer.time("", 5, nothing).budget_ns)
        assert.is_false(codetimer.time("", 5, nothing).automatic)
    end)

    it("of a call that is longer than the budget is that call, and says so", function()
        local calls = 0
        local result = codetimer.time("long", nil, function()
            calls = calls + 1
            local stop = codetimer.now_ns() + 3000000
            while codetimer.now_ns() < stop do end -- luacheck: ignore 542
        end, { file = false, budget = 0.001 })
        assert.equal(1, calls)
        assert.equal(1, result.calls)
        assert.equal(0, result.warmup_calls)
        assert.truthy(table.concat(result.notes, "\n"):find("no warm%-up"))
    end)

    it("with the least budget makes a call", function()
        for _, budget in ipairs { 5e-324, 1e-12, 1e-9 } do
            local calls = 0
            codetimer.time("", nil, function() calls = calls + 1 end, { budget = budget })
            assert.is_true(calls >= 1)
        end
    end)

    it("forgets the collections of its warm-up", function()
        local calls = 0
        local result = codetimer.time("collects", nil, function() calls = calls + 1 collectgarbage() end,
            { file = false, budget = 0.02 })
        assert.same({ 0, result.calls }, result.gc_collections)
        assert.equal(calls, result.calls + result.warmup_calls)
    end)

    it("may yield, be closed, and fail, at any call", function()
        local calls = 0
        local run = coroutine.wrap(function()
            return codetimer.time("yields", nil, coroutine.yield, { file = false, budget = 0.01 })
        end)
        local result = run()
        while not result do
            calls, result = calls + 1, run()
        end
        assert.equal(calls, result.calls + result.warmup_calls)
        for _, k in ipairs { 1, 2, 5, 1000 } do
            calls = 0
            local ok, oops = pcall(codetimer.time, "fails", nil, function()
                calls = calls + 1
                if calls == k then error("now", 0) end
            end, { file = false, budget = 1000 })
            assert.is_false(ok)
            assert.equal("now", oops)
            assert.equal("error", codetimer.last_result().interrupted)
            assert.is_true(codetimer.last_result().calls < k)
        end
        local suspended = coroutine.create(codetimer.time)
        coroutine.resume(suspended, "closed", nil, coroutine.yield, { file = false })
        coroutine.close(suspended)
        assert.equal("stopped", codetimer.last_result().interrupted)
    end)

    it("tells how far it has come", function()
        local parts = {}
        local options = { file = false, budget = 0.3, _progress = function(part) parts[#parts + 1] = part end }
        codetimer.time("progress", nil, nothing, options)
        assert.is_true(#parts >= 1)
        for i, part in ipairs(parts) do assert.is_true(part >= (parts[i - 1] or 0) and part <= 1) end
        options.budget, options._progress = nil, function() error("enough", 0) end
        local ok, oops = pcall(codetimer.time, "progress", 10, nothing, options)
        assert.is_false(ok)
        assert.equal("enough", oops)
        assert.equal(0, codetimer.last_result().calls)
        assert.is_false(pcall(codetimer.time, "progress", 10, nothing, { _progress = 7 }))
    end)
end)

describe("a result", function()
    local result = codetimer.time("spread", nil, add, { file = false, budget = 0.1 })

    it("has a spread in order", function()
        if not result.interval_low_ns then return pending("fewer than six batches: the machine was busy") end
        local fields = { "min_ns", "q1_ns", "per_call_ns", "q3_ns", "max_ns" }
        for i = 2, #fields do assert.is_true(result[fields[i - 1]] <= result[fields[i]], fields[i]) end
        assert.is_true(result.interval_low_ns <= result.per_call_ns)
        assert.is_true(result.per_call_ns <= result.interval_high_ns)
        assert.is_true(result.min_ns > 0 and result.mad_ns >= 0)
        assert.is_true(result.outliers_severe + result.outliers_mild <= #result.batches_ns)
    end)

    it("with few batches has none of it", function()
        local few = codetimer.time("few", 3, nothing, { file = false })
        for _, field in ipairs { "interval_low_ns", "interval_high_ns", "min_ns", "q1_ns", "q3_ns", "max_ns", "mad_ns",
            "outliers_mild", "outliers_severe", "net_low_ns", "net_high_ns", "budget_ns", "memory", "gc_time" } do
            assert.is_nil(few[field], field)
        end
    end)

    it("has what an empty call takes, of its own kind first", function()
        local kinds = { "empty Lua function", "empty C function" }
        for i, fn in ipairs { nothing, math.random, setmetatable({}, { __call = nothing }) } do
            local overheads = codetimer.time("", 5, fn).overheads
            if #overheads == 0 then return pending("the clock does not tell") end
            assert.equal(2, #overheads)
            assert.equal(i == 1 and kinds[1] or kinds[2], overheads[1].label)
            for _, overhead in ipairs(overheads) do
                assert.is_true(overhead.low_ns > 0 and overhead.low_ns <= overhead.high_ns)
            end
        end
        assert.same(result.overheads, codetimer.time("", 5, nothing).overheads) -- measured once
    end)

    it("has a net cost, never below 0", function()
        if not result.net_low_ns then return pending("it is not known: the machine was busy") end
        assert.is_true(result.net_low_ns >= 0 and result.net_low_ns <= result.net_high_ns)
        assert.is_true(result.net_high_ns <= result.interval_high_ns)
    end)

    it("has what the system did, or says why not", function()
        local usage = result.usage
        for _, name in ipairs { "cpu_ns", "switches", "preemptions", "minor_faults", "major_faults", "migrations" } do
            if usage[name] == nil then
                assert.is_true(#usage.reason > 0)
            else
                assert.equal("integer", math.type(usage[name]))
            end
        end
    end)

    it("says that the time of the collector is not known", function()
        local asked = codetimer.time("x", 5, nothing, { file = false, gc_time = true })
        assert.is_nil(asked.gc_time)
        assert.truthy(table.concat(asked.notes, "\n"):find("GC time is unknown: Lua tells nobody"))
    end)

    it("is printed with all that when asked", function()
        local file = child.new_file()
        local verbose = codetimer.time("verbose", nil, add, { file = file, budget = 0.1, verbose = true })
        assert.truthy(file.text:find("\n    System:  "), file.text)
        if verbose.warmup_calls > 0 then assert.truthy(file.text:find("\n    Warm%-up: "), file.text) end
        assert.truthy(file.text:find("\n    Clock:   "), file.text)
        assert.falsy(tostring(verbose):find("Clock:"))
        file.text = ""
        pcall(codetimer.time, "partial", nil, error, { file = file, verbose = true })
        assert.truthy(file.text:find("\n    Clock:   "), file.text)
    end)

    it("is JSON that others read", function()
        local text = result:to_json()
        assert.truthy(text:find('^{"codetimer": ?1'), text:sub(1, 40))
        assert.truthy(text:find('"host": ?"Lua 5%.%d"'))
        assert.truthy(text:find('"name": ?"spread"'))
        assert.truthy(text:find('"label": ?"empty Lua function"') or #result.overheads == 0)
        assert.is_nil(text:find("nan", 1, true))
    end)
end)

describe("several states", function()
    local host
    setup(function() host = child.compile_host() end)
    teardown(function() os.remove(host) end)

    it("each measure their own empty calls, at the same time", function()
        child.check([[
            local code = [=[
                local codetimer = require "codetimer"
                local result = codetimer.time("", nil, function() end, { budget = 0.05 })
                local comparison = codetimer.compare({ a = function() end, b = function() end },
                    { file = false, budget = 0.05 })
                return tostring(result.automatic and comparison.names[2])]=]
            start(code)
            assert(other(code) == "b")
            assert(load(code)() == "b")
            assert(join() == "b")]], { host = host })
    end)
end)
