-- SPDX-License-Identifier: MIT
--
-- Guards the counts of collections: exact for explicit ones in both modes of the collector, for nested runs too, and
-- nothing of ours is left in the collector afterwards, however a run ends.
local child = require "child"
local codetimer = require "codetimer"

local silent = { file = false }

-- Runs body in the given mode and goes back to the one before.
local function in_mode(mode, body)
    local before = collectgarbage(mode)
    local ok, message = pcall(body)
    collectgarbage(before)
    if not ok then error(message, 0) end
end

local function collections(n, fn) return codetimer.time("gc", n, fn, silent).gc_collections end

describe("collections", function()
    for _, mode in ipairs { "incremental", "generational" } do
        it("that fn asks for are counted exactly in " .. mode .. " mode", function()
            in_mode(mode, function()
                for _, k in ipairs { 0, 1, 2, 7, 100 } do
                    assert.same({ 0, k }, collections(k, function() collectgarbage() end))
                    assert.same({ 0, k }, collections(k, collectgarbage))
                end
            end)
        end)

        it("are counted again in each run in " .. mode .. " mode", function()
            in_mode(mode, function()
                collectgarbage()
                for _ = 1, 3 do
                    assert.same({ 0, 3 }, collections(3, collectgarbage))
                    collectgarbage()
                    collectgarbage("step")
                end
            end)
        end)

        it("of a nested run belong to the outer one too in " .. mode .. " mode", function()
            in_mode(mode, function()
                local inner
                local outer = collections(2, function() inner = collections(5, collectgarbage) end)
                assert.same({ 0, 5 }, inner)
                assert.same({ 0, 2 * (1 + 5) }, outer) -- each inner run begins with a full collection
            end)
        end)

        it("leave the collector in " .. mode .. " mode", function()
            in_mode(mode, function()
                collections(3, collectgarbage)
                local found = collectgarbage("incremental")
                collectgarbage(found)
                assert.equal(mode, found)
            end)
        end)
    end

    it("are minor ones when a generational collector has much to do", function()
        in_mode("generational", function()
            local counts = collections(2000000, function() return {} end)
            assert.is_true(counts[1] > 10)
            assert.is_true(counts[2] <= counts[1])
        end)
    end)

    it("are all major ones in incremental mode", function()
        in_mode("incremental", function()
            local counts = collections(2000000, function() return {} end)
            assert.equal(0, counts[1])
            assert.is_true(counts[2] > 2)
        end)
    end)

    it("are as many as a sentinel of the test sees", function()
        in_mode("generational", function()
            local seen, watching = 0, true
            local function watch()
                setmetatable({}, { __gc = function()
                    seen = seen + 1
                    if watching then watch() end
                end })
            end
            watch()
            local first, last
            local counts = collections(100000, function()
                first = first or seen
                last = seen
                return {}
            end)
            watching = false
            local counted = counts[1] + counts[2]
            assert.is_true(math.abs(counted - (last - first)) <= 1, counted .. " against " .. last - first)
        end)
    end)

    it("do not happen without garbage", function()
        assert.same({ 0, 0 }, collections(1000000, function() end))
    end)
end)

describe("a collector that fn", function()
    after_each(function() collectgarbage("restart") end)

    it("stops stays stopped, and a note tells it", function()
        local result = codetimer.time("stops", 5, function() collectgarbage("stop") end, silent)
        assert.is_false(collectgarbage("isrunning"))
        assert.equal("The function has stopped the garbage collector.", result.notes[1])
        assert.is_nil(result.interrupted)
    end)

    it("stops in the warm-up of an automatic run is noted, too", function()
        local result = codetimer.time("stops", nil, function() collectgarbage("stop") end,
            { budget = 0.01, file = false })
        assert.is_truthy(table.concat(result.notes, "\n"):find "The function has stopped the garbage collector.")
    end)

    it("stops in a comparison stays stopped, and a note tells it", function()
        local fns = { off = function() collectgarbage("stop") end, other = function() end }
        local said = "A candidate has stopped the garbage collector."
        local found = codetimer.compare(fns, { budget = 0.01, file = false })
        assert.is_truthy(table.concat(found.notes, "\n"):find(said))
        assert.is_false(collectgarbage("isrunning"))
        found = codetimer.compare(fns, { budget = 0.01, file = false })
        assert.is_falsy(table.concat(found.notes, "\n"):find(said))
    end)

    it("restarts goes on, and a note tells it", function()
        collectgarbage("stop")
        local result = codetimer.time("restarts", 5, function() collectgarbage("restart") end, silent)
        assert.is_true(collectgarbage("isrunning"))
        assert.equal("The function has restarted the garbage collector.", result.notes[1])
    end)

    it("leaves stopped counts nothing", function()
        collectgarbage("stop")
        assert.same({ 0, 0 }, collections(100000, function() return {} end))
        assert.is_false(collectgarbage("isrunning"))
    end)

    it("switches to another mode stays there", function()
        local before = collectgarbage("incremental")
        codetimer.time("switches", 1, function() collectgarbage("generational") end, silent)
        assert.equal("generational", collectgarbage(before))
    end)

    it("runs from a finalizer that fails does not mind", function()
        local counts = collections(10, function()
            setmetatable({}, { __gc = function() error("finalizer") end })
            collectgarbage()
        end)
        assert.same({ 0, 10 }, counts)
    end)
end)

describe("in a host of its own", function()
    local host
    setup(function() host = child.compile_host() end)
    teardown(function() os.remove(host) end)

    -- A sentinel on duty allocates its successor in each collection.
    it("no sentinel is left after a run, however it ended", function()
        child.check([[
            local codetimer = require "codetimer"
            local silent = { file = false }
            local function allocated()
                collectgarbage() collectgarbage()
                local before = allocations()
                collectgarbage()
                return allocations() - before
            end
            local function check(what) assert(allocated() == 0, what) end
            check("a fresh module")
            codetimer.time("x", 3, function() assert(allocated() > 0) end, silent)
            check("a run")
            pcall(codetimer.time, "x", 3, error, silent)
            check("an error")
            pcall(codetimer.time, "x", 3, function() codetimer.time("y", 3, error, silent) end, silent)
            check("a nested error")
            pcall(codetimer.time, "x", 3, function() end, { file = { write = error } })
            check("an error in write")
            pcall(codetimer.time, "x", -1, function() end)
            check("a refused argument")
            local run = coroutine.create(function() codetimer.time("x", 3, coroutine.yield, silent) end)
            coroutine.resume(run)
            assert(allocated() > 0)
            coroutine.close(run)
            check("a closed coroutine")
            run = coroutine.create(function() codetimer.time("x", 3, error, silent) end)
            coroutine.resume(run)
            run = nil
            check("a forgotten coroutine")
            codetimer.time("x", 3, collectgarbage, silent)
            check("the last run")]], { host = host })
    end)

    -- Each block in turn is the first that cannot be had. Whatever happens, the next run must be right.
    it("a lack of memory at any moment leaves everything in order", function()
        local out = child.check([[
            local codetimer = require "codetimer"
            local silent, made = { file = false }, 0
            local function fn() made = made + 1; return { {} } end
            local function run() codetimer.time("short of memory", 20, fn, silent) end
            local failures = 0
            for k = 0, 200 do
                made = 0
                local ok, message = short(k, run)
                if not ok then
                    assert(message == "not enough memory", message)
                    failures = failures + 1
                    local last = codetimer.last_result()
                    if made > 0 then assert(last.calls == made - 1 and last.interrupted == "error") end
                end
                local after = codetimer.time("after", 7, collectgarbage, silent)
                assert(after.calls == 7 and after.gc_collections[1] == 0 and after.gc_collections[2] == 7, k)
            end
            print(failures)]], { host = host, env = child.host_leaks })
        assert.is_true(tonumber(out) > 20, out)
    end)

    it("a collection without any memory may escape, but the next run is right again", function()
        child.check([[
            local codetimer = require "codetimer"
            for k = 0, 8 do
                local result = codetimer.time("short", 3, function()
                    fail_after(k)
                    collectgarbage()
                    fail_after(nil)
                end, { file = false })
                local counts = result.gc_collections
                assert(result.calls == 3)
                assert(#counts == 0 and result.notes[1] or #counts == 2 and counts[2] <= 3)
                assert(codetimer.time("x", 4, collectgarbage, { file = false }).gc_collections[2] == 4)
            end]], { host = host, env = child.host_leaks })
    end)

    it("an error for lack of memory is noted", function()
        child.check([[
            local codetimer = require "codetimer"
            local list = {}
            local function fill() for i = 1, 1000 do list[#list + 1] = { i } end end
            local ok, message = short(500, function() codetimer.time("x", 5, fill, { file = false }) end)
            assert(not ok and message == "not enough memory", message)
            local last = codetimer.last_result()
            assert(last.calls == 0 and last.interrupted == "error")
            assert(last.notes[1]:find("lack of memory"), last.notes[1])]], { host = host, env = child.host_leaks })
    end)
end)
