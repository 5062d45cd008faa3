-- SPDX-License-Identifier: MIT
--
-- Guards the early end of a run: the completed calls are counted exactly, the partial report is printed and marked, and
-- the error goes on as if nobody had looked at it.
local child = require "child"
local codetimer = require "codetimer"

local silent = { file = false }

local function fail_at(k, oops)
    local count = 0
    return function()
        count = count + 1
        if count == k then error(oops, 0) end
    end
end

describe("an error", function()
    for _, k in ipairs { 1, 2, 3, 4, 7, 38, 1000, 4097, 100003, 150000 } do
        it("at call " .. k .. " leaves " .. (k - 1) .. " completed calls", function()
            local ok, message = pcall(codetimer.time, "fails", 150000, fail_at(k, "boom"), silent)
            assert.is_false(ok)
            assert.equal("boom", message)
            local result = codetimer.last_result()
            assert.equal(k - 1, result.calls)
            assert.equal(150000, result.n)
            assert.equal("error", result.interrupted)
        end)
    end

    it("is reported and marked", function()
        local file = child.new_file()
        pcall(codetimer.time, "fails", 100000, fail_at(38, "boom"), { file = file })
        assert.truthy(file.text:find("^fails\n    Calls:          37 of 100,000 %(error%)\n"), file.text)
        assert.equal(tostring(codetimer.last_result()), file.text)
    end)

    it("of any value goes on unchanged", function()
        local object = setmetatable({}, { __tostring = function() error "not asked for" end })
        for _, oops in ipairs { { 1 }, object, print, 7, false } do
            local ok, seen = pcall(codetimer.time, "fails", 5, function() error(oops) end, silent)
            assert.is_false(ok)
            assert.is_true(rawequal(oops, seen))
            assert.equal("error", codetimer.last_result().interrupted)
        end
        assert.same({ false, nil }, { pcall(codetimer.time, "fails", 5, function() error(nil) end, silent) })
        assert.equal(0, codetimer.last_result().calls)
        assert.equal("stopped", codetimer.last_result().interrupted)
    end)

    it("keeps its traceback for the handler of the caller", function()
        local function culprit() local x = nil; return x.field end
        local _, trace = xpcall(codetimer.time, debug.traceback, "fails", 5, function() return (culprit()) end, silent)
        assert.truthy(trace:find("error_test.lua:%d+: in .*culprit"), trace)
        assert.truthy(trace:find("in function 'codetimer.time'", 1, true), trace)
    end)

    it("in a nested run ends both", function()
        local file = child.new_file()
        local ok, message = pcall(codetimer.time, "outer", 3, function()
            codetimer.time("inner", 5, fail_at(2, "boom"), { file = file })
        end, { file = file })
        assert.is_false(ok)
        assert.equal("boom", message)
        assert.truthy(file.text:find("^inner\n    Calls:          1 of 5 %(error%)\n.*\n\nouter\n"
            .. "    Calls:          0 of 3 %(error%)\n"), file.text)
        assert.equal("outer", codetimer.last_result().name)
    end)

    it("that is a stack overflow is one like others", function()
        local function deep() return 1 + deep() end
        local ok, message = pcall(codetimer.time, "deep", 5, deep, silent)
        assert.is_false(ok)
        assert.truthy(message:find("stack overflow"), message)
        assert.equal("error", codetimer.last_result().interrupted)
        assert.equal(5, codetimer.time("after", 5, function() end, silent).calls)
    end)

    it("that is called interrupted! is taken for Ctrl-C, one that only ends so is not", function()
        pcall(codetimer.time, "x", 5, function() error("interrupted!") end, silent)
        assert.equal("interrupted", codetimer.last_result().interrupted)
        pcall(codetimer.time, "x", 5, function() error("it was interrupted!") end, silent)
        assert.equal("error", codetimer.last_result().interrupted)
    end)
end)

describe("a function with the debug library", function()
    -- Finds a value of the type in the frames above fn; the slots of C functions are among them.
    local prelude = [[
        local codetimer = require "codetimer"
        local function find(name)
            for level = 2, 9 do
                for slot = 1, 20 do
                    local _, value = debug.getlocal(level, slot)
                    local meta = type(value) == "userdata" and debug.getmetatable(value)
                    if meta and meta.__name == name then return value, meta, level - 1, slot end
                end
            end
        end
        local function refused(fn, n)
            local ok, message = pcall(codetimer.time, "taken", n or 5, fn)
            assert(not ok, "no error")
            return message
        end
    ]]

    for _, event in ipairs { "__gc", "__close" } do
        it("that calls " .. event .. " of the run gets an error", function()
            child.check(prelude .. ([[
                local message = refused(function() local run, meta = find "codetimer.Run" meta.%s(run) end)
                assert(message:find "the run has been ended from outside", message)
                assert(codetimer.time("after", 3, function() end, { file = false }).calls == 3)]]):format(event))
        end)

        it("that calls " .. event .. " in the last call gets an error", function()
            child.check(prelude .. ([[
                refused(function() local run, meta = find "codetimer.Run" meta.%s(run) end, 1)]]):format(event))
        end)
    end

    it("may put other values in the place of ours", function()
        child.check(prelude .. [[
            for index = 1, 5 do
                for _, value in ipairs { false, 7, print, io.stdout, codetimer.initialize { priority = false } } do
                    pcall(codetimer.time, "taken", 5, function()
                        debug.setuservalue(find "codetimer.Run", value or nil, index)
                        if index == 1 then error "now" end
                    end, { file = false })
                end
            end
            refused(function()
                local level, slot = select(3, find "codetimer.Run")
                while debug.getlocal(level + 1, 1) do level = level + 1 end
                debug.setlocal(2, 1, io.stdout)
            end)]])
    end)

    it("gets at the loop, which takes nothing but a run", function()
        child.check(prelude .. [[
            codetimer.time("taken", 1, function()
                local loop = debug.getinfo(2, "f").func
                for i = 1, 4 do
                    local _, value = debug.getupvalue(loop, i)
                    if type(value) == "function" then
                        for _, wrong in ipairs { 7, io.stdout, "run" } do assert(not pcall(value, wrong, 1)) end
                        assert(not pcall(value))
                    end
                end
            end, { file = false })]])
    end)
end)

describe("what has been freed", function()
    it("is refused wherever it is used", function()
        child.check [[
            local codetimer = require "codetimer"
            local result = codetimer.time("", 1, function() end)
            local environment = codetimer.initialize { priority = false }
            for _, object in ipairs { result, environment } do
                debug.getmetatable(object).__gc(object)
                debug.getmetatable(object).__gc(object)
                assert(not pcall(tostring, object))
                assert(not pcall(function() return object.clock end))
            end
            assert(not pcall(function() local closed <close> = environment end))
            assert(not pcall(function() return codetimer.last_result().n end))]]
    end)

    it("is refused by the report too, when getting at write has freed it", function()
        child.check [[
            local codetimer = require "codetimer"
            local armed
            local file = setmetatable({}, { __index = function(_, key)
                local result = codetimer.last_result()
                if armed then debug.getmetatable(result).__gc(result) end
                return key == "write" and function() end
            end })
            assert(not pcall(codetimer.time, "x", 5, function() armed = true end, { file = file }))]]
    end)
end)

describe("a function that yields", function()
    it("is timed, with the time it was suspended", function()
        local count = 0
        local run = coroutine.wrap(function()
            return codetimer.time("yields", 5, function() count = count + 1; coroutine.yield(count) end, silent)
        end)
        local suspended = 0
        for i = 1, 5 do
            assert.equal(i, run())
            local start = codetimer.now_ns()
            while codetimer.now_ns() - start < 1000000 do end -- luacheck: ignore 542
            suspended = suspended + codetimer.now_ns() - start
        end
        local result = run()
        assert.equal(5, result.calls)
        assert.is_true(result.elapsed_ns >= suspended)
    end)

    it("may belong to one of several runs at once", function()
        local function start(n)
            return coroutine.wrap(function() return codetimer.time("run " .. n, n, coroutine.yield, silent) end)
        end
        local a, b = start(3), start(2)
        a() b() a() b()
        assert.equal(2, b().calls)
        a()
        assert.equal(3, a().calls)
        assert.equal("run 3", codetimer.last_result().name)
    end)

    it("outside of a coroutine fails like anywhere else", function()
        local out = child.check [[
            local codetimer = require "codetimer"
            local ok, message = pcall(codetimer.time, "yields", 5, coroutine.yield)
            assert(not ok and message:find("outside a coroutine"), message)]]
        assert.truthy(out:find("0 of 5 (error)", 1, true), out)
    end)

    it("is marked when its coroutine is closed", function()
        local file = child.new_file()
        local run = coroutine.create(function() codetimer.time("closed", 5, coroutine.yield, { file = file }) end)
        for _ = 1, 3 do coroutine.resume(run) end
        assert.is_true(coroutine.close(run))
        assert.truthy(file.text:find("Calls:          2 of 5 (stopped)", 1, true), file.text)
        assert.equal(2, codetimer.last_result().calls)
    end)

    it("and fails is reported by coroutine.wrap at once", function()
        local file = child.new_file()
        local run = coroutine.wrap(function()
            codetimer.time("wrapped", 5, function() coroutine.yield() error("late", 0) end, { file = file })
        end)
        run()
        local ok, message = pcall(run)
        assert.is_false(ok)
        assert.truthy(message:find("late"), message)
        assert.truthy(file.text:find("0 of 5 (error)", 1, true), file.text)
    end)

    it("and dies under coroutine.resume is reported when it is closed", function()
        local file = child.new_file()
        local run = coroutine.create(function() codetimer.time("dead", 5, fail_at(1, "boom"), { file = file }) end)
        assert.is_false(coroutine.resume(run))
        assert.equal("", file.text)
        assert.is_false(coroutine.close(run))
        assert.truthy(file.text:find("0 of 5 (error)", 1, true), file.text)
    end)

    it("and is forgotten leaves a warning", function()
        local _, err, status = child.run [[
            warn("@on")
            local codetimer = require "codetimer"
            coroutine.wrap(function() codetimer.time("forgotten", 5, coroutine.yield) end)()
            collectgarbage()
            assert(codetimer.last_result() == nil)]]
        assert.equal(0, status)
        assert.truthy(err:find("codetimer: a run has no result"), err)
    end)
end)

describe("Ctrl-C", function()
    -- Milliseconds from kill to the caught error. Both sides read the same clock, which ticks every 10 ms, without
    -- starting a program.
    local function interrupt(fn)
        local started = os.tmpname()
        local out, err, status = child.run(([[
            local codetimer = require "codetimer"
            count = 0
            io.open("%s", "w"):write("started"):close()
            local ok, message = xpcall(codetimer.time, debug.traceback, "long", 1000000000000, %s)
            local caught = io.open("/proc/uptime"):read("n")
            assert(not ok and message:find("interrupted!"), message)
            local result = codetimer.last_result()
            assert(result.interrupted == "interrupted")
            assert(count == 0 or count - result.calls <= 1, count - result.calls)
            print("caught " .. caught)]]):format(started, fn), { background = ("until test -s %s; do sleep 0.02; done; "
            .. "sleep 0.1; read up idle </proc/uptime; kill -INT $pid; echo $up >%s"):format(started, started) })
        local file = assert(io.open(started))
        local sent = file:read("n")
        file:close()
        os.remove(started)
        assert.equal("", err)
        assert.equal(0, status)
        assert.truthy(out:find("^long\n    Calls:          [%d,]+ of 1,000,000,000,000 %(interrupted%)\n"), out)
        return math.floor((tonumber(out:match("caught ([%d.]+)")) - sent) * 1000 + 0.5)
    end

    -- One time in ten is enough: the machine may be busy.
    for what, fn in pairs { ["a Lua function"] = "function() count = count + 1 end",
                            ["a C function"] = "codetimer.now_ns" } do
        it("over " .. what .. " arrives within 50 ms", function()
            local least, tries = math.huge, 0
            while least > 50 and tries < 10 do least, tries = math.min(least, interrupt(fn)), tries + 1 end
            assert.is_true(least <= 50, least .. " ms")
        end)
    end
end)
