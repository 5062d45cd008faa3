-- SPDX-License-Identifier: MIT
--
-- Guards codetimer.trace, and what happens to a program at the limits of the counters. Fails if an event is missing or
-- told twice, if the trace function can harm who is measured, if a refusal reaches the program, or if memory grows.
local child = require "child"
local codetimer = require "codetimer"

local counters, measured = codetimer.counters, codetimer.measured

local function fn(...) return ... end

describe("the trace function", function()
    local events
    before_each(function()
        collectgarbage() -- what other tests left running is counted when the collector finds it
        events = {}
        codetimer.trace = function(...) events[#events + 1] = table.concat({ ... }, " ") end
    end)
    after_each(function()
        codetimer.trace = nil
        codetimer.trace_increments = false
    end)

    it("is told of counters made, found and removed", function()
        measured(fn, "c.told")()
        measured(fn, "c.told")()
        measured(measured(fn, "c.told"))
        counters("c.told"):remove()
        counters("c.told2")
        codetimer.timer("c.timer"):stop()
        codetimer.timer("c.timer"):stop()
        assert.same({ "created c/c.told", "already there c/c.told", "already there c/c.told", "removed c/c.told",
                      "created c/c.timer" }, events)
    end)

    it("is told of a name that is not taken, as what is measured keeps its own", function()
        local wrapped = measured(fn, "a.one")
        events = {}
        for _, names in ipairs { {}, { "a.one" }, { "a.one", "a" }, { { category = "a" } }, { { help = "one" } } } do
            assert.equal(wrapped, measured(wrapped, table.unpack(names)))
        end
        assert.same({}, events)
        measured(wrapped, "b.two")
        measured("b.two", wrapped)
        measured(wrapped, { category = "b" })
        measured(wrapped, "two", "b")
        local why = " it is measured already, as a/a.one, and stays so"
        assert.same({
            "refused b.two" .. why, "refused b.two" .. why, "refused b/a.one" .. why, "refused b/two" .. why,
        }, events)
        events = {}
        assert.is_false(pcall(measured, wrapped, 7))
        counters("a.one"):remove()
        codetimer.trace = nil
        assert.equal(wrapped, measured(wrapped, "b.two"))
        assert.equal(0, wrapped(0))
    end)

    it("is told what is skipped of CODETIMER_MEASURE, once, before the first counter", function()
        for text, told in pairs {
            [ [[a\b;*]] ] = [[skipped a\b;created a/a.x;created a/a.y]],
            ["*;" .. ("x"):rep(65530) .. ";y*;z*"] = "skipped CODETIMER_MEASURE;created a/a.x;created a/a.y",
            ["*"] = "created a/a.x;created a/a.y",
        } do
            local process <close> = child.start("CODETIMER_PUBLISH=0 CODETIMER_MEASURE='" .. text .. "'")
            assert.equal(told, process:run [[
                local codetimer, events = require "codetimer", {}
                codetimer.trace = function(event, name) events[#events + 1] = event .. " " .. name end
                codetimer.measured("a.x", function() end)
                codetimer.measured("a.y", function() end)
                return table.concat(events, ";")
            ]])
        end
    end)

    it("is told of increments where that is asked for", function()
        local wrapped, fails = measured(fn, "c.increments"), measured(error, "c.fails")
        local deep
        deep = measured(function(n) return n == 0 and 0 or 1 + deep(n - 1) end, "c.deep")
        codetimer.trace_increments = true
        assert.is_true(codetimer.trace_increments)
        events = {}
        assert.same({ 1, nil, n = 2 }, table.pack(wrapped(1, nil)))
        assert.equal(1, coroutine.wrap(wrapped)(1))
        assert.same({ false, "e" }, { pcall(fails, "e", 0) })
        assert.equal(3, deep(3))
        counters("c.increments"):record(5)
        codetimer.timer("c.timer2"):stop()
        codetimer.trace_increments = false
        wrapped()
        local told = table.concat(events, ","):gsub("%d+", function(d) return tonumber(d) > 5 and "N" or d end)
        local expected = ("increment c/c.increments N,"):rep(2) .. "increment c/c.fails N,"
            .. ("increment c/c.deep N,"):rep(4) .. "increment c/c.increments 5,"
            .. "created c/c.timer2,increment c/c.timer2 N"
        assert.equal(expected, told:gsub("c.timer2 %d+", "c.timer2 N"), nil)
        assert.equal(4, counters("c.increments").calls)
        assert.equal(1, counters("c.fails").errors)
    end)

    it("is told of no increment that does not count", function()
        codetimer.timer("c.not"):stop()
        local counter = counters("c.not")
        for _ = 1, 2 do counter:record(math.maxinteger) end
        codetimer.trace_increments = true
        events = {}
        counter:record(math.maxinteger) -- the total cannot hold it
        counter:record(0)
        counter:remove()
        counter:record(7)
        assert.same({ "increment c/c.not 0", "removed c/c.not" }, events)
    end)

    it("is told of increments of calls that began or ended otherwise", function()
        local wrapped = measured(coroutine.yield, "c.between")
        local before, during = coroutine.create(wrapped), coroutine.create(wrapped)
        coroutine.resume(before)
        codetimer.trace_increments = true
        coroutine.resume(during)
        events = {}
        coroutine.resume(before)
        assert.same({}, events)
        codetimer.trace_increments = false
        coroutine.close(during)
        assert.equal(1, #events)
        assert.same({ 2, 1 }, { counters("c.between").calls, counters("c.between").cancelled })
    end)

    it("may measure, and is not told of that", function()
        local wrapped = measured(fn, "c.inner")
        codetimer.trace = function(event)
            events[#events + 1] = event
            wrapped()
            measured(fn, "c.from_trace")
        end
        codetimer.trace_increments = true
        events = {}
        wrapped()
        assert.same({ "increment" }, events)
        assert.equal(2, counters("c.inner").calls)
    end)

    it("that raises or yields harms nobody", function()
        local warned = child.check([[
            local codetimer = require "codetimer"
            warn "@on"
            codetimer.trace = function(event) if event == "created" then error "mine" else coroutine.yield() end end
            codetimer.trace_increments = true
            local wrapped = codetimer.measured(function(...) return ... end, "x")
            assert(wrapped(1) == 1)
            assert(coroutine.wrap(wrapped)(2) == 2)
            assert(codetimer.counters("x").calls == 2)
            assert(codetimer.counters("x"):remove())]], { through = "sh -c '\"$0\" \"$@\" 2>&1'" })
        assert.truthy(warned:find("Lua warning: codetimer: error in the trace function: .-: mine\n"), warned)
        assert.truthy(warned:find("attempt to yield across a C-call boundary", 1, true), warned)
    end)

    it("must be callable", function()
        for _, wrong in ipairs { 7, "x", {}, true } do
            assert.is_false(pcall(function() codetimer.trace = wrong end))
        end
        assert.equal("function", type(codetimer.trace))
        codetimer.trace = setmetatable({}, { __call = function(_, ...) events[#events + 1] = select("#", ...) end })
        measured(fn, "c.callable")
        assert.same({ 2 }, events)
        codetimer.trace = nil
        assert.is_nil(codetimer.trace)
        codetimer.other = 5
        assert.equal(5, codetimer.other)
        codetimer.other = nil
    end)
end)

describe("counters", function()
    it("beyond the limit are refused, told, reported, and run unmeasured", function()
        local out = child.check [[
            local codetimer = require "codetimer"
            local told, unmeasured, ran = {}, 0, 0
            codetimer.trace = function(event) told[event] = (told[event] or 0) + 1 end
            for i = 1, 100000 do
                local function fn() ran = ran + 1 end
                local wrapped = codetimer.measured(fn, "shop.m" .. i)
                if wrapped == fn then unmeasured = unmeasured + 1 end
                wrapped()
            end
            print(ran, unmeasured, told.created, told.refused)
            local t <close> = codetimer.timer("shop.timer")
            print(t.counter, t:stop())
            local last
            codetimer.report { write = function(_, text) last = text:match("([^\n]+)\n$") return true end }
            print(last)
            codetimer.trace = function(...) print(...) end
            codetimer.measured(print, "one.more")]]
        assert.equal("100000\t83616\t16384\t83616\nnil\n"
            .. "83,617 refused (limit 16,384, CODETIMER_MAX_COUNTERS), the last: shop/shop.timer\n"
            .. "refused\tone.more\tthe limit is reached (CODETIMER_MAX_COUNTERS)\n", out)
    end)

    it("made and removed a million times leave memory flat", function()
        if os.getenv("ASAN_OPTIONS") then return pending("the sanitizer keeps freed memory") end
        child.check [[
            local codetimer = require "codetimer"
            local function data_kib()
                collectgarbage() collectgarbage()
                return tonumber(io.open("/proc/self/status"):read("a"):match("VmData:%s*(%d+)"))
            end
            local function round(first, count)
                for i = first, first + count - 1 do
                    local name = "shop.m" .. i
                    codetimer.measured(function() end, name)()
                    assert(codetimer.counters("shop/" .. name):remove())
                end
            end
            round(1, 100000)
            local before = data_kib()
            round(100001, 900000)
            assert(data_kib() - before <= 264, data_kib() - before)]]
    end)
end)
