-- SPDX-License-Identifier: MIT
--
-- Guards the hook of the memory pass, in a host that knows its own allocator: it counts what that one hands out, it is
-- gone when the pass is, however that ended, and beside other hooks nothing breaks. And with the same allocator: around
-- a body that allocates nothing the harness asks for nothing either.
local child = require "child"

local prelude = [[
    local codetimer = require "codetimer"
    local silent, counted = { file = false }, { file = false, memory = true }
    local bare = allocator()
    local function check(what) assert(allocator() == bare, what) assert(collectgarbage "isrunning", what) end
    local function nothing() end
]]

describe("in a host of its own", function()
    local host
    setup(function() host = child.compile_host() end)
    teardown(function() os.remove(host) end)

    local function check(code, options)
        options = options or {}
        options.host = host
        return child.check(prelude .. code, options)
    end

    it("the pass counts what the host hands out", function()
        check [[
            local text, grown, list = ("y"):rep(3000), {}, {}
            local bodies = {
                nothing, function() return { 1, 2, 3 } end, function() return text .. "z" end,
                function() return ("x"):rep(5000) end, function() return table.concat({ text, text }, ",") end,
                function() return load "local a = 1 return function() return a end" end,
                function() list[#list + 1] = {} end, function() return text:gsub("y", "ab", 9) end,
                function() grown = {} for i = 1, 40 do grown[i] = i end end,
                function() return coroutine.wrap(function() return { {} } end)() end,
                function() return string.format("%s %5.2f %q", text, 1.5, text) end,
            }
            for i, body in ipairs(bodies) do
                list, grown = {}, {}
                local first = codetimer.time("", 1000, body, counted).memory
                list, grown = {}, {}
                for _ = 1, 1000 do body() end
                collectgarbage()
                body()
                collectgarbage "stop"
                local a, b, c, d = counts()
                for _ = 1, first.calls do body() end
                local e, f, g, h = counts()
                collectgarbage "restart"
                local truth = { e - a, f - b, g - c, h - d }
                local seen = { first.allocations, first.reallocations, first.frees, first.allocated_bytes }
                for j = 1, 4 do
                    assert(truth[j] == seen[j], ("body %d, count %d: %d, seen %d"):format(i, j, truth[j], seen[j]))
                end
            end]]
    end)

    it("the hook is there in the pass and gone after it", function()
        check [[
            local timed, hooked = 0, 0
            codetimer.time("", 5, function()
                if allocator() == bare then timed = timed + 1 else hooked = hooked + 1 end
            end, counted)
            assert(timed == 5 and hooked > 0, timed .. " " .. hooked)
            check "a pass"
            pcall(codetimer.time, "", 5, function() if allocator() ~= bare then error "now" end end, counted)
            check "an error"
            pcall(codetimer.time, "", 5, error, counted)
            check "an error in the run"
            codetimer.time("", 0, nothing, counted)
            check "no call"
            codetimer.compare({ a = nothing, b = nothing }, { file = false, memory = true, budget = 0.02 })
            check "a comparison"
            codetimer.time("", 2, function() codetimer.time("", 2, nothing, counted) end, counted)
            check "nested passes"]]
    end)

    it("it goes with a coroutine that is closed or forgotten", function()
        check [[
            local function suspended()
                local run = coroutine.create(function()
                    codetimer.time("", 2, function() if allocator() ~= bare then coroutine.yield() end end, counted)
                end)
                coroutine.resume(run)
                assert(coroutine.status(run) == "suspended" and allocator() ~= bare)
                return run
            end
            local run = suspended()
            coroutine.close(run)
            check "a closed coroutine"
            assert(codetimer.last_result().memory.reason:find "did not return")
            run = suspended()
            run = nil
            collectgarbage()
            check "a forgotten coroutine"
            local memory = codetimer.time("", 1000, function() return {} end, counted).memory
            assert(memory.allocations == memory.calls and memory.calls > 0)]]
    end)

    it("it goes with the state, and with the process", function()
        check [[
            run = coroutine.wrap(function()
                codetimer.time("", 2, function() if allocator() ~= bare then coroutine.yield() end end, counted)
            end)
            run()]]
        for _, close in ipairs { "true", "false" } do
            check(([[
                codetimer.time("", 2, function() if allocator() ~= bare then os.exit(0, %s) end end, counted)
                error "still here"]]):format(close), { env = child.host_leaks })
        end
        check [[
            local answer = other [=[
                local run = coroutine.wrap(function()
                    require "codetimer".time("", 1, coroutine.yield, { file = false, memory = true })
                end)
                run() run()
                return "suspended in the pass"]=]
            assert(answer == "suspended in the pass", answer)]]
    end)

    it("another hook that comes above it in the pass stays, and ours goes when it can", function()
        check [[
            local covered = false
            local function body()
                if allocator() ~= bare and not covered then cover() covered = true end
                return {}
            end
            local memory = codetimer.time("", 1000, body, counted).memory
            assert(memory.calls > 0 and memory.kinds.tables == memory.calls)
            assert(allocator() ~= bare)
            local above = allocator()
            memory = codetimer.time("", 1000, function() return {} end, counted).memory
            assert(memory.calls > 0 and memory.allocations == memory.calls, memory.allocations)
            assert(allocator() == above)
            uncover()
            assert(allocator() ~= bare, "ours was below")
            codetimer.time("", 1, nothing, silent)
            check "the next run takes it out"
            memory = codetimer.time("", 1000, function() return {} end, counted).memory
            assert(memory.calls > 0 and memory.allocations == memory.calls)
            check "a later pass"]]
    end)

    it("another hook that drops ours is no reason to count nothing", function()
        check [[
            cover()
            local covered = allocator()
            local function body()
                if allocator() ~= covered and not dropped then uncover() dropped = true end
                return {}
            end
            codetimer.time("", 2, body, counted)
            assert(allocator() == bare)
            local memory = codetimer.time("", 1000, function() return {} end, counted).memory
            assert(memory.calls > 0 and memory.allocations == memory.calls, memory.allocations)
            check "a pass after it"]]
    end)

    it("a state that is closed with another hook above ours ends well", function()
        check([[
            codetimer.time("", 2, function()
                if allocator() ~= bare and not covered then cover() covered = true end
            end, counted)
            for _ = 1, 100 do kept = { kept } end]], { env = child.host_leaks })
    end)

    -- Each block in turn is the first that cannot be had.
    it("a lack of memory at any moment leaves nothing behind", function()
        local out = check([[
            local failures = 0
            local function run() codetimer.time("", 5, function() return { {} } end, counted) end
            for k = 0, 420, 3 do
                local ok, message = short(k, run)
                if not ok then
                    assert(message == "not enough memory", message)
                    failures = failures + 1
                end
                check(k)
            end
            local memory = codetimer.time("", 1000, function() return {} end, counted).memory
            assert(memory.calls > 0 and memory.allocations == memory.calls)
            print(failures)]], { env = child.host_leaks })
        assert.is_true(tonumber(out) > 20, out)
    end)

    it("a lack of memory at any moment of a comparison leaves nothing behind", function()
        local out = check([[
            local failures, ended, options = 0, 0, { file = false, memory = true, budget = 3e-4 }
            local function in_pass() if allocator() ~= bare then return { {} } end end -- the rounds need none
            for _, body in ipairs { nothing, function() return { {} } end, in_pass } do
                for k = 0, 260, 3 do
                    local ok, message = short(k, function() codetimer.compare({ a = body, b = nothing }, options) end)
                    if ok then ended = ended + 1 else failures = failures + 1 end
                    assert(ok or message == "not enough memory", message)
                    check(k)
                    local after = codetimer.time("", 3, collectgarbage, silent)
                    assert(after.gc_collections[2] == 3, k)
                end
            end
            local memory = codetimer.compare({ a = function() return {} end, b = nothing }, options).results.a.memory
            assert(memory.calls > 0 and memory.allocations == memory.calls)
            print(failures, ended)]], { env = child.host_leaks })
        local failures, ended = out:match "(%d+)\t(%d+)"
        assert.is_true(tonumber(failures) > 40 and tonumber(ended) > 5, out)
    end)

    it("a body that allocates nothing is measured without an allocation and a collection", function()
        check [[
            local last, changes = nil, 0
            local function body()
                local now = allocations()
                if now ~= last then changes, last = changes + 1, now end
            end
            local function measure(most, run, ...)
                last, changes = nil, 0
                local outcome = run(...)
                most = most or 2 * outcome.rounds
                assert(changes <= most, changes .. " in " .. most)
                return outcome
            end
            local function collected(result)
                assert(result.gc_collections[1] == 0 and result.gc_collections[2] == 0)
            end
            for _, mode in ipairs { "incremental", "generational" } do
                collectgarbage(mode)
                collected(measure(1, codetimer.time, "", 300000, body))
                -- once more after the warm-up, when the collector was run
                collected(measure(2, codetimer.time, "", nil, body, { budget = 0.05 }))
                collected(measure(2, codetimer.time, "", nil, body, { budget = 0.05, verbose = true }))
                -- once a round, of six turns; more rounds than half were forgotten in no comparison
                local both = measure(nil, codetimer.compare, { a = body, b = body }, { budget = 0.05, file = false })
                collected(both.results.a)
                collected(both.results.b)
            end]]
    end)
end)
