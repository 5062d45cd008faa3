-- SPDX-License-Identifier: MIT
--
-- Guards compare: what it takes and refuses, who is called when, what is found, and how it ends.
local child = require "child"
local codetimer = require "codetimer"

local function nothing() end
local function work(k) return function() local s = 0 for i = 1, k do s = s + i end return s end end
local quick = { file = false, budget = 0.03 }

describe("compare takes", function()
    it("functions by name, sorted", function()
        local candidates = {}
        for name in ("delta alpha charlie Bravo echo"):gmatch("%a+") do candidates[name] = nothing end
        local comparison = codetimer.compare(candidates, quick)
        assert.same({ "Bravo", "alpha", "charlie", "delta", "echo" }, comparison.names)
        assert.equal("Bravo", comparison.baseline)
    end)

    it("pairs in their order", function()
        local comparison = codetimer.compare({ { "z", nothing }, { "a\0b", math.random }, { "m", nothing } }, quick)
        assert.same({ "z", "a\0b", "m" }, comparison.names)
        assert.equal("z", comparison.baseline)
    end)

    it("a baseline", function()
        local comparison = codetimer.compare({ a = nothing, b = nothing },
            { file = false, budget = 0.03, baseline = "b" })
        assert.equal("b", comparison.baseline)
        assert.equal(1, comparison:ratio("b") or 1)
        assert.truthy(comparison.verdict:find("^a "), comparison.verdict)
    end)

    it("callable values, and the same function twice", function()
        local calls = 0
        local object = setmetatable({}, { __call = function() calls = calls + 1 end })
        local comparison = codetimer.compare({ a = object, b = object }, quick)
        local results = comparison.results
        assert.is_true(calls >= results.a.calls + results.b.calls)
    end)

    it("32 candidates", function()
        local candidates = {}
        for i = 1, 32 do candidates["c" .. i] = nothing end
        assert.equal(32, #codetimer.compare(candidates, quick).names)
    end)
end)

describe("compare refuses", function()
    local many = {}
    for i = 1, 33 do many["c" .. i] = nothing end
    local two = { a = nothing, b = nothing }
    local cases = {
        { "nothing", { nil }, "#1.*candidates must be a table of at least 2, got nothing%)" },
        { "a function", { nothing }, "#1.*got a function%)" },
        { "no candidate", { {} }, "#1.*candidates must be 2 to 32, got 0%)" },
        { "one", { { a = nothing } }, "#1.*candidates must be 2 to 32, got 1%)" },
        { "33", { many }, "#1.*candidates must be 2 to 32, got 33%)" },
        { "a number as name", { { a = nothing, [7] = nothing } }, "#1.*name of a candidate must be a string, got 7%)" },
        { "names beside pairs", { { { "a", nothing }, { "b", nothing }, c = nothing } }, "#1.*be pairs, .*got both%)" },
        { "a hole", { { { "a", nothing }, { "b", nothing }, nil, { "d", nothing } } }, "#1.*of the 3 none is at 3%)" },
        { "a gap", { { { "a", nothing }, { "b", nothing }, [9] = { "c", nothing } } }, "#1.*of the 3 none is at 3%)" },
        { "another key", { { { "a", nothing }, { "b", nothing }, [print] = {} } }, "#1.*of the 3 none is at 3%)" },
        { "no first one", { { [2] = { "a", nothing }, [3] = { "b", nothing } } }, "#1.*of the 2 none is at 1%)" },
        { "an empty name", { { a = nothing, [""] = nothing } }, "#1.*must not be empty%)" },
        { "what cannot be called", { { a = nothing, b = 7 } }, "#1.*candidate 'b' must be a function.*got 7%)" },
        { "a list of functions", { { nothing, nothing } }, "#1.*a candidate must be {name, function}, got a function" },
        { "a pair without a function", { { { "a", nothing }, { "b" } } }, "#1.*candidate 'b' must be a function" },
        { "a pair without a name", { { { "a", nothing }, { nothing } } }, "#1.*must be a string, got a function%)" },
        { "the same name twice", { { { "a", nothing }, { "a", nothing } } }, "#1.*names of candidates must differ" },
        { "another baseline", { two, { baseline = "c" } }, '#2.*name of a candidate, got the string "c"%)' },
        { "a number as baseline", { two, { baseline = 1 } }, "#2.*name of a candidate, got 1%)" },
        { "a budget of 0", { two, { budget = 0 } }, "#2.*budget must be a number.*got 0%)" },
        { "a budget of NaN", { two, { budget = 0 / 0 } }, "#2.*budget must be a number.*nan%)" },
        { "a string as budget", { two, { budget = "1" } }, "#2.*budget must be a number" },
        { "unknown options", { two, { n = 7 } }, '#2.*unknown option: the string "n"' },
        { "a file that cannot be written to", { two, { file = 7 } }, "#2.*write method, got 7%)" },
        { "a file whose write is a number", { two, { file = { write = 3 } } },
            "#2.*file must be false or have a write method, got a table whose write is 3%)" },
        { "a word for memory", { two, { memory = "yes" } }, "#2.*memory must be true or false" },
    }
    for _, case in ipairs(cases) do
        it(case[1], function()
            local ok, message = pcall(codetimer.compare, table.unpack(case[2], 1, 2))
            assert.is_false(ok)
            assert.truthy(message:find("bad argument " .. case[3]), message)
        end)
    end
end)

describe("a comparison", function()
    local file = child.new_file()
    local comparison = codetimer.compare({ { "small", work(20) }, { "large", work(2000) }, { "same", work(20) } },
        { file = file, budget = 0.5 })

    it("is printed, and tostring gives the same bytes", function()
        assert.equal(tostring(comparison), file.text)
        assert.truthy(file.text:find("^Candidate"), file.text)
        assert.truthy(file.text:find("\nsmall .*baseline"), file.text)
        assert.is_true(rawequal(comparison, codetimer.last_comparison()))
    end)

    it("knows what is faster", function()
        if not comparison:ratio("large") then return pending("too few rounds: the machine was busy") end
        assert.is_true(comparison:ratio("large") > 5)
        assert.is_true(comparison:ratio("small", "large") < 0.2)
        assert.is_false(comparison:different("small"))
        local low, high = comparison:interval("large")
        assert.is_true(low <= comparison:ratio("large") and comparison:ratio("large") <= high)
        assert.truthy(comparison.verdict:find("^large [^\n]*\nsame [^\n]*$"), comparison.verdict)
        assert.equal(comparison:ratio("large"), comparison.ratios.large.ratio)
        assert.is_true(comparison.resolution >= 0)
        assert.is_true(comparison.twin.ratio > 0)
    end)

    it("says so in a sentence", function()
        if not comparison:different("large") then return pending("too few rounds: the machine was busy") end
        assert.truthy(comparison:verdict_of("large"):find("^large is [%d.]+× slower than small, "))
        assert.truthy(comparison:verdict_of("small", "large"):find("^small is [%d.]+× faster than large, "))
    end)

    it("has a result for each candidate, which outlives it", function()
        local results = codetimer.compare({ a = nothing, b = work(10) }, quick).results
        collectgarbage()
        collectgarbage()
        assert.equal("a", results.a.name)
        assert.is_true(results.b.calls >= 1)
        assert.same({ "GC Minor", "GC Major" }, results.a.gc_labels)
        assert.truthy(tostring(results.a):find("^a\n    Calls: "))
        assert.equal("codetimer.Result", getmetatable(results.a).__name)
    end)

    it("refuses names that it does not have", function()
        for _, wrong in ipairs { "none", "", 7, {} } do
            local ok, message = pcall(comparison.ratio, comparison, wrong)
            assert.is_false(ok)
            assert.truthy(message:find("there is no candidate .*, but small, large, same"), message)
        end
        assert.is_false(pcall(comparison.ratio, comparison))
        assert.is_false(pcall(comparison.ratio, io.stdout, "small"))
        assert.is_nil(comparison.unknown)
        assert.is_false(pcall(function() comparison.rounds = 1 end))
    end)

    it("becomes a plain table, and JSON", function()
        local dict = comparison:to_dict()
        assert.equal("table", type(dict.results.large))
        assert.is_nil(getmetatable(dict.results.large))
        assert.equal(comparison.results.large.calls, dict.results.large.calls)
        assert.same(comparison.ratios, dict.ratios)
        assert.same({ "small", "large", "same" }, dict.names)
        local text = comparison:to_json()
        assert.truthy(text:find('^{"codetimer": ?1'), text:sub(1, 40))
        assert.truthy(text:find('"comparison": ?{'))
        assert.truthy(text:find('"host": ?"Lua 5%.%d"'))
    end)

    it("counts collections for who makes them", function()
        local calls = 0
        local counted = codetimer.compare({ a = nothing, b = function() calls = calls + 1 collectgarbage() end }, quick)
        assert.same({ 0, 0 }, counted.results.a.gc_collections)
        assert.equal(counted.results.b.calls, counted.results.b.gc_collections[2])
        assert.is_true(calls >= counted.results.b.calls)
    end)

    it("is nothing to last_result, and last_comparison nothing to time", function()
        local result = codetimer.time("before", 1, nothing, { file = false })
        codetimer.compare({ a = nothing, b = nothing }, quick)
        assert.is_true(rawequal(result, codetimer.last_result()))
    end)

    it("says once what is not known of the collector", function()
        local asked = codetimer.compare({ a = nothing, b = nothing }, { file = false, budget = 0.02, gc_time = true })
        local _, times = table.concat(asked.notes, "\n"):gsub("GC time is unknown", "")
        assert.equal(1, times)
        assert.is_nil(asked.results.a.gc_time)
    end)

    it("may be one of functions that yield", function()
        local yields = 0
        local run = coroutine.wrap(function()
            return codetimer.compare({ a = coroutine.yield, b = function() coroutine.yield() end }, quick)
        end)
        local answer = run()
        while not answer do
            yields, answer = yields + 1, run()
        end
        local results = answer.results
        assert.is_true(yields >= results.a.calls + results.b.calls)
        assert.is_nil(answer.interrupted)
    end)

    it("inside a candidate is one of its own", function()
        local outer = codetimer.compare({ a = nothing, b = function()
            codetimer.compare({ c = nothing, d = nothing }, { file = false, budget = 1e-4 })
        end }, quick)
        assert.same({ "a", "b" }, outer.names)
        assert.is_true(rawequal(outer, codetimer.last_comparison()))
    end)

    it("calls each round from another height of the stack", function()
        -- Slots in use: more than the greatest stack has left cannot be unpacked.
        local greatest, heights, count = 1000000, {}, 0
        local function height()
            local n = greatest
            while not pcall(table.unpack, {}, 1, n) do n = n - 1 end
            return greatest - n
        end
        local function body()
            local now = height()
            if not heights[now] then heights[now], count = true, count + 1 end
        end
        codetimer.compare({ a = body, b = body }, { file = false, budget = 0.5 })
        assert.is_true(count >= 3, count)
    end)

    it("tells how far it has come", function()
        local parts = {}
        codetimer.compare({ a = nothing, b = nothing },
            { file = false, budget = 0.3, _progress = function(part) parts[#parts + 1] = part end })
        assert.is_true(#parts >= 1)
        for i, part in ipairs(parts) do assert.is_true(part >= (parts[i - 1] or 0) and part <= 1) end
    end)
end)

describe("a candidate that fails", function()
    local function fail_at(k, oops)
        local calls = 0
        return function()
            calls = calls + 1
            if calls == k then error(oops, 0) end
        end
    end

    for _, k in ipairs { 1, 2, 3, 1000 } do
        it("at call " .. k .. " ends it, with the partial table, and the error goes on", function()
            local file, oops = child.new_file(), {}
            local ok, seen = pcall(codetimer.compare, { { "fine", nothing }, { "fails", fail_at(k, oops) } },
                { file = file })
            assert.is_false(ok)
            assert.is_true(rawequal(oops, seen))
            local partial = codetimer.last_comparison()
            assert.equal("error", partial.interrupted)
            assert.equal("error", partial.results.fails.interrupted)
            assert.equal(tostring(partial), file.text)
            assert.truthy(file.text:find("Ended early after %d+ rounds? %(error%)"), file.text)
            assert.truthy(table.concat(partial.notes, "\n"):find("fails was running when it ended (error)", 1, true))
            assert.equal(3, codetimer.time("", 3, collectgarbage).gc_collections[2])
        end)
    end

    it("keeps its traceback for the handler of the caller", function()
        local function culprit() local x = nil; return x.field end
        local candidates = { a = nothing, b = function() culprit() end }
        local _, trace = xpcall(codetimer.compare, debug.traceback, candidates, quick)
        assert.truthy(trace:find("compare_test.lua:%d+: in .*culprit"), trace)
        assert.truthy(trace:find("in function 'codetimer.compare'", 1, true), trace)
    end)

    it("by Ctrl-C is marked so", function()
        pcall(codetimer.compare, { a = nothing, b = function() error "interrupted!" end }, quick)
        assert.equal("interrupted", codetimer.last_comparison().interrupted)
    end)

    it("in a coroutine that is closed stopped", function()
        local file = child.new_file()
        local run = coroutine.create(codetimer.compare)
        coroutine.resume(run, { a = coroutine.yield, b = nothing }, { file = file })
        coroutine.close(run)
        assert.equal("stopped", codetimer.last_comparison().interrupted)
        assert.truthy(file.text:find("(stopped)", 1, true), file.text)
    end)

    it("in a coroutine that is forgotten warns", function()
        local _, err, status = child.run [[
            warn "@on"
            local codetimer = require "codetimer"
            local run = coroutine.create(codetimer.compare)
            coroutine.resume(run, { a = coroutine.yield, b = print })
            run = nil
            collectgarbage()
            assert(codetimer.time("", 4, collectgarbage).gc_collections[2] == 4)]]
        assert.equal(0, status)
        assert.truthy(err:find("a comparison has no outcome"), err)
    end)

    it("and a table that cannot be written lose neither the comparison nor the error", function()
        local broken = { write = function() return nil, "full", 28 end }
        local found, message, code = codetimer.compare({ a = nothing, b = nothing }, { file = broken, budget = 0.02 })
        assert.is_nil(found)
        assert.equal("full", message)
        assert.equal(28, code)
        assert.same({ "a", "b" }, codetimer.last_comparison().names)
        broken.write = error
        local ok, oops = pcall(codetimer.compare, { a = nothing, b = fail_at(5, "mine") }, { file = broken })
        assert.is_false(ok)
        assert.equal("mine", oops)
    end)

    it("is one when the stack has no room for more, and nothing else then", function()
        local out = child.check [[
            local codetimer = require "codetimer"
            local function nothing() end
            local function dive(levels, fn) -- each takes some ten places of the stack
                local _, _, _, _, _, _, _
                if levels == 0 then return fn() end
                return (dive(levels - 1, fn))
            end
            local least, most = 0, 1000000 -- levels that there are, and that there are not
            while most - least > 1 do
                local middle = (least + most) // 2
                if pcall(dive, middle, nothing) then least = middle else most = middle end
            end
            local full, ended = 0, 0
            for above = 0, 60, 3 do
                local ok, outcome = pcall(dive, least - above, function()
                    return codetimer.compare({ a = nothing, b = nothing }, { file = false, budget = 2e-4 })
                end)
                assert(ok and #outcome.names == 2 or not ok and outcome:find "stack overflow", outcome)
                if ok then ended = ended + 1 else full = full + 1 end
                assert(codetimer.time("", 3, collectgarbage, { file = false }).gc_collections[2] == 3)
            end
            print(full, ended)]]
        local full, ended = out:match "(%d+)\t(%d+)"
        assert.is_true(tonumber(full) > 5 and tonumber(ended) > 5, out)
    end)

    it("with the debug library gets an error, no crash", function()
        child.check [[
            local codetimer = require "codetimer"
            local function find(name)
                for level = 2, 9 do
                    for slot = 1, 20 do
                        local _, value = debug.getlocal(level, slot)
                        local meta = type(value) == "userdata" and debug.getmetatable(value)
                        if meta and meta.__name == name then return value, meta end
                    end
                end
            end
            local function nothing() end
            for _, event in ipairs { "__gc", "__close" } do
                local ok, message = pcall(codetimer.compare, { a = nothing, b = function()
                    local rounds, meta = find "codetimer.Rounds"
                    meta[event](rounds)
                end }, { file = false })
                assert(not ok and message:find "ended from outside", message)
            end
            for index = 1, 6 do
                for _, value in ipairs { false, 7, print, io.stdout } do
                    for _, stop in ipairs { false, true } do
                        pcall(codetimer.compare, { a = nothing, b = function()
                            debug.setuservalue(find "codetimer.Rounds", value or nil, index)
                            if stop then error "now" end
                        end }, { file = false, budget = 0.005, memory = index == 1 })
                    end
                end
            end
            local comparison = codetimer.compare({ a = nothing, b = nothing }, { file = false, budget = 0.01 })
            local result = comparison.results.a
            getmetatable(comparison).__gc(comparison)
            assert(not pcall(function() return result.calls end))
            assert(not pcall(function() return comparison.rounds end))
            assert(codetimer.time("", 3, collectgarbage).gc_collections[2] == 3)]]
    end)

    it("puts any value into any place of the stack, in the rounds and in the memory pass", function()
        child.check [[
            local codetimer = require "codetimer"
            local compare, options = codetimer.compare, { file = false, budget = 1e-4, memory = true }
            local function find_level()
                for level = 2, 20 do
                    local found = debug.getinfo(level, "f")
                    if found and found.func == compare then return level - 1 end
                end
            end
            local function attack(slot, value, in_pass)
                local before, hits = codetimer.last_comparison(), 0
                local function candidate()
                    if hits > 0 or in_pass == rawequal(before, codetimer.last_comparison()) then return end
                    hits = 1
                    debug.setlocal(find_level(), slot, value)
                    collectgarbage()
                    collectgarbage()
                    for i = 1, 50 do _ = ("x"):rep(300) .. i end
                end
                pcall(compare, { a = candidate, b = function() end }, options)
                assert(hits == 1)
            end
            for slot = 1, 9 do
                for _, value in ipairs { false, 7, {}, print, io.stdout } do
                    attack(slot, value or nil, false)
                    attack(slot, value or nil, true)
                end
            end
            assert(codetimer.time("", 3, collectgarbage, { file = false }).gc_collections[2] == 3)]]
    end)
end)
