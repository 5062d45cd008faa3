-- SPDX-License-Identifier: MIT
--
-- Guards the memory pass: what it counts is exact and is what fn asks for, in a pass of its own; and nothing of it is
-- left afterwards, however it ends: no hook, no stopped collector.
local child = require "child"
local codetimer = require "codetimer"

-- How many calls are counted depends on how long they took, and so on what else the machine does.
local function memory(fn, n)
    return codetimer.time("memory", n or 1000, fn, { file = false, memory = true }).memory
end

local long = ("x"):rep(100)
local number = 987654321012345 -- nobody has that as a string yet
local meta = {}
local function nothing() end

-- What one call asks for, by Lua's own source: a table is one block, its array and hash part one each, a closure one
-- and one for each new upvalue, a long string one for each copy, a number in a concatenation a string first.
local known = {
    { "nothing", nothing, {} },
    { "a C function", math.random, {} },
    { "arithmetic", function() local s = 0 for i = 1, 100 do s = s + i end return s end, {} },
    { "varargs", function(...) return select("#", ..., 1, 2, 3) end, {} },
    { "an empty table", function() return {} end, { tables = 1 } },
    { "a list", function() return { 1, 2, 3 } end, { tables = 1, other = 1 } },
    { "a record", function() return { x = 1, y = 2 } end, { tables = 1, other = 1 } },
    { "a list in a record", function() return { x = 1, y = { 2 } } end, { tables = 2, other = 2 } },
    { "an object", function() return setmetatable({}, meta) end, { tables = 1 } },
    { "table.pack", function() return table.pack(1, 2, 3) end, { tables = 1, other = 2 } },
    { "a closure", function() return function() end end, { functions = 1 } },
    { "a closure with two new upvalues", function()
        local a, b = 1, 2
        return function() return a + b end
    end, { functions = 1, upvalues = 2 } },
    { "a closure over an old upvalue", function() return function() return long end end, { functions = 1 } },
    { "a long string", function() return long .. "y" end, { strings = 1 } },
    { "a short string that is new", function() number = number + 1 return "n" .. number end, { strings = 2 } },
    { "a short string that is there", function() return "mem" .. "ory" end, {} },
    { "a coroutine", function() return coroutine.create(nothing) end, { threads = 1, other = 1 } },
    { "a wrapped coroutine", function() return coroutine.wrap(nothing) end, { threads = 1, functions = 1, other = 1 } },
    { "a deep recursion", function() local function f(k) return k > 0 and 1 + f(k - 1) or 0 end return f(150) end,
        { functions = 1, upvalues = 1 } },
}

describe("the memory pass counts", function()
    for _, case in ipairs(known) do
        it("exactly for " .. case[1], function()
            local found = memory(case[2])
            assert.is_nil(found.reason)
            assert.is_true(found.calls > 0 and found.calls <= 100)
            local expected, sum = {}, 0
            for kind in pairs(found.kinds) do
                expected[kind] = found.calls * (case[3][kind] or 0)
                sum = sum + expected[kind]
            end
            assert.same(expected, found.kinds)
            assert.equal(sum, found.allocations)
            assert.equal(sum > 0, found.allocated_bytes > 0)
        end)
    end

    it("the bytes of a table and what it grows by", function()
        local function bytes(fn)
            local found = memory(fn)
            assert.equal(0, found.allocated_bytes % found.calls)
            return found.allocated_bytes // found.calls
        end
        local empty = bytes(function() return {} end)
        local value = bytes(function() return { 1 } end) - empty
        assert.equal(3 * value, bytes(function() return { 1, 2, 3 } end) - empty)
        local grown = memory(function() local t = { 1 } t[2] = 2 return t end)
        assert.equal(grown.calls, grown.reallocations)
    end)

    it("the peak of one call, not of all together", function()
        local one = memory(function() return {} end)
        assert.equal(one.calls * one.peak_bytes, one.allocated_bytes)
        local ten = memory(function() for _ = 1, 10 do local _ = {} end end)
        assert.equal(10 * one.peak_bytes, ten.peak_bytes)
    end)

    it("eight kinds", function()
        local kinds = {}
        for kind in pairs(memory(nothing).kinds) do kinds[#kinds + 1] = kind end
        table.sort(kinds)
        assert.same({ "functions", "other", "prototypes", "strings", "tables", "threads", "upvalues", "userdata" },
            kinds)
    end)

    it("prototypes and userdata too", function()
        local chunk = "return function() end"
        local found = memory(function() return load(chunk) end)
        assert.equal(2 * found.calls, found.kinds.prototypes)
        found = memory(function() return io.lines("README.md") end)
        assert.equal(found.calls, found.kinds.userdata)
    end)
end)

describe("the memory pass", function()
    it("is there when it is asked for", function()
        assert.is_nil(codetimer.time("x", 5, nothing, { file = false }).memory)
        local file = child.new_file()
        local result = codetimer.time("x", 1000, function() return {} end, { file = file, memory = true })
        assert.is_true(result.memory.calls > 0)
        assert.truthy(file.text:find("\n    Memory:         1.00 allocator calls and [%d.]+ bytes per call"), file.text)
        assert.truthy(file.text:find("\n    Objects:        1.00 tables per call\n", 1, true), file.text)
    end)

    it("comes after the run and does not count as its calls", function()
        local calls = 0
        local result = codetimer.time("x", 1000, function() calls = calls + 1 end, { file = false, memory = true })
        assert.equal(1000, result.calls)
        assert.equal(1000 + 2 + result.memory.calls, calls)
    end)

    it("is short where the calls are long", function()
        local calls = 0
        local function slow()
            calls = calls + 1
            local stop = codetimer.now_ns() + 60000000
            while codetimer.now_ns() < stop do end -- luacheck: ignore 542
        end
        local result = codetimer.time("x", 1, slow, { file = false, memory = true })
        assert.equal(1, result.memory.calls)
        assert.equal(2, calls)
    end)

    it("of a run without calls, or one that failed, says so", function()
        assert.same({ calls = 0, reason = "there was no call" },
            codetimer.time("x", 0, nothing, { file = false, memory = true }).memory)
        local calls = 0
        pcall(codetimer.time, "x", 9, function() calls = calls + 1 error "now" end, { file = false, memory = true })
        assert.same({ calls = 0, reason = "the run did not come to its end" }, codetimer.last_result().memory)
        assert.equal(1, calls)
    end)

    it("leaves the collector as it was", function()
        for _, mode in ipairs { "incremental", "generational" } do
            local before = collectgarbage(mode)
            memory(function() return {} end)
            assert.is_true(collectgarbage("isrunning"))
            assert.equal(mode, collectgarbage(before))
        end
        collectgarbage("stop")
        memory(function() return {} end)
        local running = collectgarbage("isrunning")
        collectgarbage("restart")
        assert.is_false(running)
        memory(function() collectgarbage("stop") end)
        running = collectgarbage("isrunning")
        collectgarbage("restart")
        assert.is_false(running)
    end)

    it("does not stop the collector for calls that take much", function()
        local running
        local result = memory(function()
            running = collectgarbage("isrunning")
            return ("x"):rep(20000000)
        end, 1)
        assert.is_true(running)
        assert.is_true(result.peak_bytes >= 20000000)
        memory(function() running = collectgarbage("isrunning") end)
        assert.is_false(running)
    end)

    it("that fails gives its error unchanged, keeps what it counted, and the report is printed once", function()
        local unknown = "the first call of the memory pass did not return"
        for k, reason in pairs { [0] = unknown, [1] = unknown, [2] = unknown, [3] = false, [11] = false } do
            local calls, oops, file = 0, {}, child.new_file()
            local ok, seen = pcall(codetimer.time, "fails", 1000, function()
                calls = calls + 1
                local _ = {}
                if calls == 1001 + k then error(oops) end
            end, { file = file, memory = true })
            assert.is_false(ok)
            assert.is_true(rawequal(oops, seen))
            local result = codetimer.last_result()
            assert.equal(1000, result.calls)
            assert.is_nil(result.interrupted)
            assert.equal(math.max(0, k - 2), result.memory.calls)
            assert.equal(reason or nil, result.memory.reason)
            if k > 2 then assert.equal(result.memory.calls, result.memory.allocations) end
            assert.equal(tostring(result), file.text)
            assert.is_true(collectgarbage("isrunning"))
        end
    end)

    it("inside another one says so", function()
        local inner
        local outer = memory(function() inner = codetimer.time("", 1, nothing, { memory = true }).memory end, 3)
        assert.same({ calls = 0, reason = "another memory pass is running" }, inner)
        assert.is_true(outer.calls > 0)
    end)

    it("does not count what its own library asks for", function()
        local inner
        codetimer.time("outer", 1, function() -- whose sentinels are on duty
            inner = memory(function() collectgarbage() end, 3)
        end, { file = false })
        assert.equal(0, inner.allocations)
    end)

    it("lets fn yield, and does not count what others ask for meanwhile", function()
        local run = coroutine.wrap(function()
            return memory(function()
                local a = {}
                coroutine.yield()
                local b = {}
                return a, b
            end)
        end)
        local others, result = {}, run()
        while not result do
            for _ = 1, 5 do others = { others } end
            result = run()
        end
        assert.equal(2 * result.calls, result.kinds.tables)
        assert.is_true(collectgarbage("isrunning"))
    end)

    it("counts in a coroutine, and what coroutines of fn ask for", function()
        local result = coroutine.wrap(function()
            return memory(function() coroutine.wrap(function() return {} end)() end)
        end)()
        assert.equal(result.calls, result.kinds.tables)
        assert.equal(result.calls, result.kinds.threads)
    end)

    it("of a comparison is one for each candidate", function()
        local file = child.new_file()
        local comparison = codetimer.compare({ { "one", function() return {} end },
            { "two", function() return { {} } end }, { "none", nothing } },
            { file = file, memory = true, budget = 0.05 })
        local tables = {}
        for name, result in pairs(comparison.results) do
            tables[name] = result.memory.kinds.tables / result.memory.calls
        end
        assert.same({ one = 1, two = 2, none = 0 }, tables)
        assert.truthy(file.text:find("Allocations"), file.text)
    end)

    it("of a comparison that fails ends it with its table", function()
        local file, calls, passes = child.new_file(), 0, false
        local ok, oops = pcall(codetimer.compare, { a = nothing, b = function()
            calls = calls + 1
            passes = passes or not collectgarbage("isrunning")
            if passes then error("in the pass", 0) end
        end }, { file = file, memory = true, budget = 0.05 })
        assert.is_false(ok)
        assert.equal("in the pass", oops)
        local comparison = codetimer.last_comparison()
        assert.equal(tostring(comparison), file.text)
        assert.is_true(comparison.results.a.memory.calls > 0)
        assert.equal("the first call of the memory pass did not return", comparison.results.b.memory.reason)
        assert.is_true(collectgarbage("isrunning"))
    end)
end)
