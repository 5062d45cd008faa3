-- SPDX-License-Identifier: MIT
--
-- Guards what outlives a call: the module in its state, several states in a process, the end of the process, memory.
local child = require "child"
local codetimer = require "codetimer"

local silent = { file = false }

describe("the module", function()
    it("can be opened again in the same state", function()
        local result = codetimer.time("first", 3, collectgarbage, silent)
        package.loaded.codetimer = nil
        local again = require "codetimer"
        package.loaded.codetimer = codetimer
        assert.is_false(rawequal(again, codetimer))
        assert.is_true(rawequal(result, again.last_result()))
        assert.same({ 0, 4 }, again.time("second", 4, collectgarbage, silent).gc_collections)
        assert.equal("second", codetimer.last_result().name)
        assert.equal(getmetatable(result), getmetatable(again.last_result()))
    end)

    it("can be opened again during a run", function()
        local inner
        local outer = codetimer.time("outer", 2, function()
            package.loaded.codetimer = nil
            inner = require("codetimer").time("inner", 3, collectgarbage, silent)
        end, silent)
        package.loaded.codetimer = codetimer
        assert.same({ 0, 3 }, inner.gc_collections)
        assert.same({ 0, 8 }, outer.gc_collections)
    end)

    it("knows its version", function()
        local header = assert(io.open("core/codetimer.h")):read("a")
        assert.equal("codetimer " .. header:match('#define CT_VERSION "(.-)"'), codetimer._VERSION)
    end)

    it("offers what is declared for editors, and no more", function()
        local declared, offered = {}, {}
        for _, part in ipairs { "codetimer", "codetimer_run", "codetimer_instrument", "codetimer_settings" } do
            local text = io.open(("bindings-lua/library/%s.lua"):format(part)):read("a")
            for name in text:gmatch("function codetimer%.([%w_]+)") do declared[#declared + 1] = name end
        end
        for name, value in pairs(codetimer) do
            if type(value) == "function" then offered[#offered + 1] = name end
        end
        table.sort(declared)
        table.sort(offered)
        assert.same(declared, offered)
    end)

    it("declares the fields that a result has, and no more", function()
        local text = io.open("bindings-lua/library/codetimer_run.lua"):read("a")
        local class = text:match("%-%-%-@class codetimer%.Result\n(.-)\nlocal Result")
        local all, absent = {}, "interrupted cycles gc_time memory per_call_ns interval_low_ns interval_high_ns min_ns "
            .. "q1_ns q3_ns max_ns mad_ns outliers_mild outliers_severe net_low_ns net_high_ns budget_ns resolution_ns"
        for name in absent:gmatch("[%w_]+") do all[name] = true end -- they may be nil, which is in no table
        for name in pairs(codetimer.time("fields", 1, function() end, silent):to_dict()) do all[name] = true end
        local declared = {}
        for name in class:gmatch("@field ([%w_]+)") do declared[name] = true end
        assert.same(all, declared)
    end)

    it("declares the fields that a comparison has, and no more", function()
        local text = io.open("bindings-lua/library/codetimer_run.lua"):read("a")
        local class = text:match("%-%-%-@class codetimer%.Comparison\n(.-)\nlocal Comparison")
        local all, declared = { interrupted = true, resolution = true }, {}
        local function fn() end
        for name in pairs(codetimer.compare({ a = fn, b = fn }, { file = false }):to_dict()) do all[name] = true end
        for name in class:gmatch("@field ([%w_]+)") do declared[name] = true end
        assert.same(all, declared)
    end)

    it("exports its entry point only, and is pinned in memory", function()
        local path = assert(package.searchpath("codetimer", package.cpath))
        if not child.can("command -v readelf") then return pending("no readelf") end
        local exported = {}
        for line in io.popen("nm -D --defined-only " .. path):lines() do
            local name = line:match(" T ([%w_]+)$")
            if name and not name:find("^_") then exported[#exported + 1] = name end
        end
        table.sort(exported)
        assert.same({ "luaopen_codetimer", "luaopen_codetimer_native" }, exported)
        local dynamic = io.popen("readelf -d " .. path):read("a")
        assert.truthy(dynamic:find("NODELETE"), dynamic)
        assert.falsy(dynamic:find("liblua"), dynamic)
    end)
end)

describe("a process", function()
    local function survives(what, code, marks, env)
        it("ends well after " .. what, function()
            local out = child.check('local codetimer = require "codetimer"\n' .. code, { env = env })
            assert.truthy(out:find(marks or "^$"), out)
        end)
    end
    survives("opening the module", "")
    survives("a run", [[codetimer.time("x", 10, collectgarbage)]], "Calls:          10\n")
    survives("an error", [[pcall(codetimer.time, "x", 10, error)]], "0 of 10")
    survives("a run in generational mode", [[
        collectgarbage("generational") codetimer.time("x", 10, function() end)]], "Calls:          10\n")
    survives("a closed state", [[codetimer.time("x", 10, function() end) os.exit(0, true)]], "10\n")
    survives("an abandoned coroutine", [[
        run = coroutine.wrap(function() codetimer.time("x", 10, coroutine.yield) end) run()]])
    survives("initialize", [[codetimer.initialize() codetimer.initialize{ priority = "highest" }]])
    survives("dropping the module", [[
        codetimer.time("", 10, collectgarbage) codetimer = nil package.loaded.codetimer = nil
        collectgarbage() collectgarbage()]])
    survives("exit during a run", [[codetimer.time("x", 10, function() os.exit(0) end)]])
    survives("closing the state during a run", [[
        codetimer.time("x", 10, function() os.exit(0, true) end)]], "Calls:          0 of 10 %(stopped%)\n")
    survives("results that the state frees", [[
        keep = {} for i = 1, 100 do keep[i] = codetimer.time("", i, function() end) end]])
    survives("time in finalizers, also of lua_close", [[
        setmetatable({}, { __gc = function() assert(codetimer.time("gc", 3, function() end).calls == 3) end })
        collectgarbage()
        x = setmetatable({}, { __gc = function() codetimer.time("close", 4, function() end) end })]],
        "^gc\n.*Calls:          3\n.*close\n.*Calls:          4\n", child.host_leaks)

    it("that Ctrl-C ends prints the partial report", function()
        local started = os.tmpname()
        local out, err, status = child.run(([[
            local codetimer = require "codetimer"
            io.open("%s", "w"):write("started"):close()
            codetimer.time("endless", math.maxinteger, function() end)]]):format(started), {
            background = ("until test -s %s; do sleep 0.02; done; sleep 0.1; kill -INT $pid"):format(started) })
        os.remove(started)
        assert.equal(1, status)
        assert.truthy(out:find(" of 9,223,372,036,854,775,807 (interrupted)\n", 1, true), out)
        assert.truthy(err:find("interrupted!", 1, true), err)
        assert.truthy(err:find("codetimer.time", 1, true), err)
    end)
end)

describe("several states", function()
    local host
    setup(function() host = child.compile_host() end)
    teardown(function() os.remove(host) end)

    it("in one process do not meet", function()
        child.check([[
            local codetimer = require "codetimer"
            local inner = [=[
                local codetimer = require "codetimer"
                assert(codetimer.last_result() == nil)
                local r = codetimer.time("inner", 5, collectgarbage, { file = false })
                return r.calls .. " " .. table.concat(r.gc_collections, " ")]=]
            local answers = {}
            local result = codetimer.time("outer", 3, function()
                answers[#answers + 1] = other(inner)
                collectgarbage()
            end, { file = false })
            assert(table.concat(answers, ",") == "5 0 5,5 0 5,5 0 5", table.concat(answers, ","))
            assert(result.calls == 3 and result.gc_collections[2] == 3)
            assert(codetimer.last_result().name == "outer")]], { host = host })
    end)

    it("on two threads run at the same time", function()
        child.check([[
            local codetimer = require "codetimer"
            local code = [=[
                local codetimer = require "codetimer"
                local r
                for i = 1, 50 do r = codetimer.time("x", 1000 + i, function() return {} end, { file = false }) end
                return tostring(r.calls)]=]
            start(code)
            assert(load(code)() == "1050")
            assert(join() == "1050")]], { host = host })
    end)

    it("may close while a run is under way", function()
        child.check([[
            local codetimer = require "codetimer"
            assert(other([=[
                local codetimer = require "codetimer"
                run = coroutine.wrap(function() codetimer.time("x", 5, coroutine.yield) end)
                run()
                return "suspended"]=]) == "suspended")
            assert(codetimer.time("x", 5, collectgarbage, { file = false }).gc_collections[2] == 5)]], { host = host })
    end)
end)

describe("memory", function()
    it("of a result does not grow with the number of calls", function()
        child.check [[
            local codetimer = require "codetimer"
            local function data_kib()
                collectgarbage() collectgarbage()
                return tonumber(io.open("/proc/self/status"):read("a"):match("VmData:%s*(%d+)"))
            end
            local keep = {}
            local function run(n)
                local before = data_kib()
                for _ = 1, 4 do keep[#keep + 1] = codetimer.time("", n, function() end) end
                return data_kib() - before
            end
            run(1000)
            local few, many = run(1000), run(10000000)
            assert(many <= few + 264, many .. " KiB against " .. few) -- the heap grows by 132 to 136 at once
            assert(#keep[#keep].batches_ns <= 1024)]]
    end)

    it("of old results is given back", function()
        if child.sanitized then return pending("the sanitizer keeps freed memory; its leak check does this") end
        child.check [[
            local codetimer = require "codetimer"
            local function data_kib()
                collectgarbage() collectgarbage()
                return tonumber(io.open("/proc/self/status"):read("a"):match("VmData:%s*(%d+)"))
            end
            local function run(n) for _ = 1, n do codetimer.time("", 1, function() end) end end
            run(200)
            local before = data_kib()
            run(2000)
            assert(data_kib() - before <= 264, data_kib() - before)]]
    end)
end)
