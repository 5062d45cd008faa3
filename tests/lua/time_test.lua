-- SPDX-License-Identifier: MIT
--
-- Guards the run itself: fn is called exactly n times, wrong arguments are refused before anything runs, and the result
-- holds what it should.
local codetimer = require "codetimer"

local silent = { file = false }

describe("time calls fn", function()
    for _, n in ipairs { 0, 1, 2, 3, 7, 1000, 1000003 } do
        it("exactly " .. n .. " times", function()
            local count = 0
            local result = codetimer.time("count", n, function() count = count + 1 end, silent)
            assert.equal(n, count)
            assert.equal(n, result.n)
            assert.equal(n, result.calls)
            assert.is_nil(result.interrupted)
        end)
    end

    it("as often as a float with an exact integer value says", function()
        local count = 0
        local result = codetimer.time("count", 7.0, function() count = count + 1 end, silent)
        assert.equal(7, count)
        assert.equal("integer", math.type(result.n))
    end)

    it("without arguments", function()
        local seen
        codetimer.time("arguments", 1, function(...) seen = select("#", ...) end, silent)
        assert.equal(0, seen)
    end)

    it("when it is a C function, or an object with __call", function()
        assert.equal(100, codetimer.time("C", 100, codetimer.now_ns, silent).calls)
        local count = 0
        local object = setmetatable({}, { __call = function() count = count + 1 end })
        assert.equal(10, codetimer.time("object", 10, object, silent).calls)
        assert.equal(10, count)
    end)

    it("that calls time itself", function()
        local inner = 0
        local result = codetimer.time("outer", 3, function()
            assert.equal(5, codetimer.time("inner", 5, function() inner = inner + 1 end, silent).calls)
        end, silent)
        assert.equal(15, inner)
        assert.equal(3, result.calls)
        assert.equal("outer", codetimer.last_result().name)
    end)
end)

describe("time refuses", function()
    local called = 0
    local function fn() called = called + 1 end
    local huge = math.maxinteger + 1.0
    local cases = {
        { "a negative n", { "x", -1, fn }, "#2.*0 to 9223372036854775807, got %-1%)" },
        { "a fractional n", { "x", 2.5, fn }, "#2.*whole number.*got 2%.5%)" },
        { "an n over 2^63-1", { "x", huge, fn }, "#2.*whole number.*got 9%.2233720368548e%+18%)" },
        { "a NaN", { "x", 0 / 0, fn }, "#2.*got %-?nan%)" },
        { "an infinite n", { "x", math.huge, fn }, "#2.*got inf%)" },
        { "a string as n", { "x", "7", fn }, '#2.*got the string "7"%)' },
        { "a boolean as n", { "x", true, fn }, "#2.*got true%)" },
        { "a table as n", { "x", {}, fn }, "#2.*got a table%)" },
        { "no n and no fn", { "x" }, "#3.*fn must be a function" },
        { "a number as name", { 7, 1, fn }, "#1.*name must be a string, got 7%)" },
        { "no name", { nil, 1, fn }, "#1.*name must be a string, got nothing%)" },
        { "a table that cannot be called", { "x", 1, {} }, "#3.*fn must be a function.*got a table%)" },
        { "a string as fn", { "x", 1, "print" }, '#3.*got the string "print"%)' },
        { "no fn", { "x", 1 }, "#3.*got nothing%)" },
        { "options that are no table", { "x", 1, fn, 7 }, "#4.*table expected" },
        { "unknown options", { "x", 1, fn, { fil = false } }, '#4.*unknown option: the string "fil"' },
        { "a file that cannot be written to", { "x", 1, fn, { file = 7 } }, "#4.*write method, got 7%)" },
        { "a string as file", { "x", 1, fn, { file = "out.txt" } }, "#4.*write method, got the string" },
        { "true as file", { "x", 1, fn, { file = true } }, "#4.*write method, got true%)" },
        { "a budget beside n", { "x", 1, fn, { budget = 1 } }, "#4.*options%.budget is for automatic n" },
        { "a budget of 0", { "x", nil, fn, { budget = 0 } }, "#4.*options%.budget must be a number.*above 0.*got 0%)" },
        { "a negative budget", { "x", nil, fn, { budget = -1 } }, "#4.*above 0.*got %-1%)" },
        { "a budget of NaN", { "x", nil, fn, { budget = 0 / 0 } }, "#4.*above 0.*got %-?nan%)" },
        { "an infinite budget", { "x", nil, fn, { budget = math.huge } }, "#4.*up to 1e9, got inf%)" },
        { "a huge budget", { "x", nil, fn, { budget = 1.1e9 } }, "#4.*up to 1e9" },
        { "a string as budget", { "x", nil, fn, { budget = "1" } }, '#4.*above 0.*got the string "1"%)' },
        { "a word for gc_time", { "x", 1, fn, { gc_time = "yes" } }, '#4.*gc_time must be true or false, got the' },
        { "a number for memory", { "x", 1, fn, { memory = 1 } }, "#4.*memory must be true or false, got 1%)" },
        { "a table for verbose", { "x", 1, fn, { verbose = {} } }, "#4.*verbose must be true or false, got a table%)" },
    }
    for _, case in ipairs(cases) do
        it(case[1], function()
            local ok, message = pcall(codetimer.time, table.unpack(case[2], 1, 4))
            assert.is_false(ok)
            assert.truthy(message:find("bad argument " .. case[3]), message)
            assert.equal(0, called)
        end)
    end

    it("a closed file", function()
        local file = io.tmpfile()
        file:close()
        local ok, message = pcall(codetimer.time, "x", 1, fn, { file = file })
        assert.is_false(ok)
        assert.truthy(message:find("closed file"), message)
        assert.equal(0, called)
    end)

    it("a string longer than a line without repeating all of it", function()
        local _, message = pcall(codetimer.time, "x", ("9"):rep(10000), fn)
        assert.is_true(#message < 200, message)
    end)
end)

describe("a result", function()
    local result = codetimer.time("fields", 200000, function() end, silent)

    it("has the fields of the C struct, and integers stay integers", function()
        assert.equal("fields", result.name)
        for _, field in ipairs { "n", "calls", "elapsed_ns", "cycles" } do
            if result[field] then assert.equal("integer", math.type(result[field]), field) end
        end
        assert.is_true(result.per_call_ns > 0)
        assert.same({ "GC Minor", "GC Major" }, result.gc_labels)
        assert.equal(2, #result.gc_collections)
        assert.equal("table", type(result.notes)) -- a busy machine has its notes
        assert.equal(codetimer.clock_info().source, result.clock)
        assert.is_string(result.priority)
        assert.is_nil(result.unknown)
        assert.is_nil(result[1])
    end)

    it("has cycles, or says why not", function()
        if result.cycles then
            assert.is_true(result.cycles_kind == "core" or result.cycles_kind == "reference")
            assert.is_string(result.cycles_source)
        else
            assert.equal("none", result.cycles_kind)
            assert.is_true(#result.cycles_reason > 0)
        end
    end)

    it("has batches that add up", function()
        local ns, calls = 0, 0
        for i, batch in ipairs(result.batches_ns) do
            ns, calls = ns + batch, calls + result.batches_calls[i]
        end
        assert.equal(result.elapsed_ns, ns)
        assert.equal(result.calls, calls)
        assert.is_true(#result.batches_ns >= 1 and #result.batches_ns <= 1024)
    end)

    it("becomes a plain table", function()
        local dict = result:to_dict()
        assert.equal("table", type(dict))
        assert.is_nil(getmetatable(dict))
        for name, value in pairs(dict) do assert.same(result[name], value) end
        for _, name in ipairs { "name", "n", "calls", "elapsed_ns", "batches_ns", "gc_collections", "notes" } do
            assert.is_not_nil(dict[name], name)
        end
        dict.n = 0
        assert.equal(200000, result.n)
    end)

    it("is read only and is no other userdata", function()
        assert.is_false(pcall(function() result.n = 1 end))
        assert.is_false(pcall(result.to_dict, io.stdout))
        assert.equal("codetimer.Result", getmetatable(result).__name)
    end)

    it("of no call knows no time per call", function()
        local none = codetimer.time("none", 0, function() end, silent)
        assert.equal(0, none.elapsed_ns)
        assert.is_nil(none.per_call_ns)
        assert.same({}, none.batches_ns)
        assert.truthy(tostring(none):find("Per Call:       —", 1, true))
    end)

    it("is the last result", function()
        local other = codetimer.time("other", 1, function() end, silent)
        assert.is_true(rawequal(other, codetimer.last_result()))
    end)

    it("keeps any bytes of its name", function()
        for _, name in ipairs { "a\0b", "\0", "tab\tnewline\n", "\xff\xfe", ("x"):rep(10000) } do
            assert.equal(name, codetimer.time(name, 1, function() end, silent).name)
        end
    end)
end)
