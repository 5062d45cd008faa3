-- SPDX-License-Identifier: MIT
--
-- Guards what is seen of live counters from outside: another process shows what it counted; what it leaves when it
-- ends; and that refusals are told, not raised. The measured processes are real ones.
local child = require "child"
local codetimer = require "codetimer"
local live = require "live"
local attach, start_two = live.attach, live.start_two

before_each(live.make_folder)
after_each(live.remove_folder)

local function count_lines(command)
    local pipe = assert(io.popen(command))
    local _, lines = pipe:read("a"):gsub("\n", "")
    pipe:close()
    return lines
end

describe("processes", function()
    it("lists what the processes tell of themselves", function()
        assert.same({}, live.processes())
        local one <close> = start_two()
        local process = assert(live.processes())[1]
        assert.equal(live.folder, process.path:match("^(.*)/"))
        assert.equal("live", process.state)
        assert.equal(one.pid, process.pid)
        assert.equal(2, process.counters)
        assert.equal(0, process.refused)
        assert.equal(_VERSION, process.host)
        assert.equal(codetimer.clock_info().source:match("^%a+"), process.clock)
        assert.truthy(process.program)
        assert.truthy(process.start_time > 0 and process.uid >= 0 and process.heartbeat_age_ns >= 0)
        assert.is_nil(process.reason)
        assert.is_nil(process.last_refused)
    end)

    it("has a counterpart that tells of this process itself", function()
        local say = [[
            local info = require "codetimer".segment_info()
            return ("%s %s %s"):format(info.published, info.path, info.reason)
        ]]
        local one <close> = live.start_two()
        assert.equal(("true %s nil"):format(live.processes()[1].path), one:run(say))
        local other <close> = live.start_two("CODETIMER_PUBLISH=0")
        assert.truthy(other:run(say):match("^false nil .*CODETIMER_PUBLISH"))
    end)

    it("lists several", function()
        local one <close> = start_two()
        local other <close> = start_two()
        local pids = {}
        for _, process in ipairs(live.processes()) do pids[process.pid] = process.state end
        assert.same({ [one.pid] = "live", [other.pid] = "live" }, pids)
    end)

    it("lists what cannot be read, with the reason", function()
        local file = assert(io.open(live.folder .. "/77-1-0", "w"))
        file:write(("no segment "):rep(1000))
        file:close()
        local process = live.processes()[1]
        assert.equal("unusable", process.state)
        assert.is_nil(process.pid)
        assert.truthy(process.reason:find("not a segment"), process.reason)
        local view, message, code = attach(77)
        assert.is_nil(view)
        assert.truthy(message:find("77%-1%-0: it is not a segment"), message)
        assert.equal("CT_EINVAL", code)
        assert.has_error(function() attach(process) end,
            "bad argument #1 to 'attach' (this one cannot be attached to: " .. process.reason .. ")")
        local _, refusal, status = codetimer.reap(process.path)
        assert.truthy(refusal:find("it is not a segment"), refusal)
        assert.equal("CT_EINVAL", status)
    end)

    it("refuses a folder that is not there", function()
        local list, message, code = codetimer.processes(live.folder .. "/none")
        assert.is_nil(list)
        assert.equal(live.folder .. "/none: there is no such folder", message)
        assert.equal("CT_ENOENT", code)
        assert.is_nil((codetimer.attach(1, live.folder .. "/none")))
    end)
end)

describe("a view", function()
    it("shows the true totals", function()
        local process <close> = live.start()
        process:run [[
            codetimer = require "codetimer"
            inside, outside = 0, 0
            function spin()
                local start = codetimer.now_ns()
                while codetimer.now_ns() - start < 200000 do end
                inside = inside + codetimer.now_ns() - start
            end
            spin = codetimer.measured("spin", spin)
            function call()
                local start = codetimer.now_ns()
                spin()
                outside = outside + codetimer.now_ns() - start
            end
            call()
        ]]
        local view <close> = assert(attach(process.pid))
        local key = next(view:sample())
        local before = view:sample()[key]
        process:run "inside, outside = 0, 0; for _ = 1, 100 do call() end"
        local inside, outside = process:run "return inside, outside"
        local now = view:sample()[key]
        local window = now:difference(before)
        assert.equal(100, window.calls)
        assert.equal(101, now.calls)
        assert.truthy(inside * 0.999 <= window.total_ns and window.total_ns <= outside * 1.001,
            ("%d, %d, %d"):format(inside, window.total_ns, outside))
        assert.near(window.total_ns / 100, window.average_ns, 1e-3)
        assert.truthy(window:percentile(50) >= 200000 * 0.9)
        assert.equal(0, now.errors)
        assert.is_nil(view:sample(false)[key]:percentile(50))
        assert.equal(101, view:sample(false)[key].calls)
        assert.same({}, view.busy)
    end)

    it("tells the same as the process itself", function()
        local process <close> = start_two()
        process:run [[ for _ = 1, 9 do f() end; pcall(codetimer.measured("shop.h", error)) ]]
        local view <close> = assert(attach(process.pid))
        for key, sample in pairs(view:sample()) do
            local calls, total, least, most, errors = process:run(([[
                local c = codetimer.counters(%q)
                return c.calls, c.total_ns, c.min_ns, c.max_ns, c.errors]]):format(key))
            assert.same({ calls, total, least, most, errors },
                { sample.calls, sample.total_ns, sample.min_ns, sample.max_ns, sample.errors })
        end
    end)

    it("describes the counters and the process", function()
        local process <close> = start_two()
        process:run [[codetimer.timer{ name = "t", category = "c", help = "what it is" }:stop()]]
        local view <close> = assert(attach(process.pid))
        assert.same({ key = "shop/shop.f", enabled = true }, view.counters["shop/shop.f"])
        assert.same({ key = "c/t", enabled = true, help = "what it is" }, view.counters["c/t"])
        assert.equal(process.pid, view.process.pid)
        assert.equal(1, #view.segments)
        assert.equal(view.process.path, view.segments[1].path)
        assert.equal(("codetimer.View of process %d: 3 counters"):format(process.pid), tostring(view))
        assert.is_nil(view.nothing)
        local same <close> = assert(attach(view.process))
        assert.equal(process.pid, same.process.pid)
    end)

    it("sees counters that are made later", function()
        local process <close> = start_two()
        local view <close> = assert(attach(process.pid))
        process:run [[for i = 1, 1000 do codetimer.measured("late." .. i, function() end)() end]]
        local count = 0
        for key, sample in pairs(view:sample()) do
            count = count + 1
            assert.equal(1, sample.calls, key)
        end
        assert.equal(1002, count)
    end)

    it("costs the process neither a thread nor a descriptor", function()
        if not child.can("test -d /proc/self/fd") then return pending("there is no /proc here") end
        local process <close> = live.start()
        local fds = ("ls /proc/%d/fd"):format(process.pid)
        local tasks = ("ls /proc/%d/task"):format(process.pid)
        local before = { count_lines(fds), count_lines(tasks) }
        process:run [[codetimer = require "codetimer"; f = codetimer.measured("shop.f", function() end); f()]]
        local view <close> = assert(attach(process.pid))
        assert(view:disable("*.f"))
        process:run "f()"
        assert.same(before, { count_lines(fds), count_lines(tasks) })
    end)
end)

describe("a process that ends", function()
    it("takes its segment with it; a view keeps the last values", function()
        local process <close> = start_two()
        local view <close> = assert(attach(process.pid))
        local pid = process.pid
        process:run "f()"
        process:stop()
        assert.same({}, live.processes())
        assert.equal(2, view:sample()["shop/shop.f"].calls)
        assert.equal("its file is gone", view.process.reason)
        local done, message, code = view:disable("*")
        assert.is_nil(done)
        assert.truthy(message:find("the process has ended"), message)
        assert.equal("CT_ENOENT", code)
        local none, refusal, status = attach(pid)
        assert.is_nil(none)
        assert.equal("process " .. pid .. " publishes no counters: it has ended, has measured nothing yet, or could "
            .. "not publish them, and then knows why: codetimer.segment_info()", refusal)
        assert.equal("CT_ENOENT", status)
    end)

    it("by SIGKILL is listed as dead, can be read and is reaped", function()
        local process <close> = start_two()
        local path = live.processes()[1].path
        local reaped, message, code = codetimer.reap(path)
        assert.is_nil(reaped)
        assert.equal(path .. ": its process lives, or it is not yours", message)
        assert.equal("CT_EPERM", code)
        process:kill()
        assert.equal("dead", live.processes()[1].state)
        local view <close> = assert(attach(process.pid))
        assert.equal(1, view:sample()["shop/shop.f"].calls)
        assert.equal("CT_ENOENT", select(3, view:enable("*")))
        assert.is_true(codetimer.reap(path))
        assert.same({}, live.processes())
        assert.equal("CT_ENOENT", select(3, codetimer.reap(path)))
        assert.equal(1, view:sample()["shop/shop.g"].calls)
    end)

    -- Makes the segment look like one that another process left under this pid.
    local function copy_segment(path, from, to)
        local file = assert(io.open(path, "rb"))
        local bytes = file:read("a")
        file:close()
        local at = assert(bytes:find(string.pack("I8", from), 1, true))
        local copy <close> = assert(io.open(("%s/%d-9-0"):format(live.folder, to), "wb"))
        copy:write(bytes:sub(1, at - 1), string.pack("I8", to), bytes:sub(at + 8))
    end

    it("is not taken for a living one that has its pid", function()
        local living, dead = start_two(), start_two()
        dead:run "for _ = 1, 9 do f() end"
        dead:kill()
        for _, process in ipairs(live.processes()) do
            if process.state == "dead" then copy_segment(process.path, dead.pid, living.pid) end
        end
        local view <close> = assert(attach(living.pid))
        assert.equal("live", view.process.state)
        assert.equal(1, #view.segments)
        assert.equal(1, view:sample()["shop/shop.f"].calls)
        living:stop()
        local last <close> = assert(attach(living.pid))
        assert.equal("dead", last.process.state)
        assert.equal(10, last:sample()["shop/shop.f"].calls)
    end)
end)

describe("a closed view", function()
    it("says so", function()
        local process <close> = start_two()
        local view = assert(attach(process.pid))
        assert.is_false(view.closed)
        view:close()
        view:close()
        assert.is_true(view.closed)
        assert.equal("codetimer.View (closed)", tostring(view))
        for _, use in ipairs { function() view:sample() end, function() view:enable("*") end,
                               function() return view.members end, function() return view.counters end,
                               function() return view.process end, function() return view.acknowledged end } do
            local ok, message = pcall(use)
            assert.is_false(ok)
            assert.truthy(message:find("the view is closed"), message)
        end
        assert.has_error(function() view.close({}) end)
    end)

    it("is one at the end of its block, or when it is collected", function()
        if not child.can("test -f /proc/self/maps") then return pending("there is no /proc here") end
        local process <close> = start_two()
        local mapped = ("cat /proc/$PPID/maps | grep -c '%s' | grep -v '^0$'"):format(live.folder)
        local kept
        do
            local view <close> = assert(attach(process.pid))
            kept = view
        end
        assert.is_true(kept.closed)
        for _ = 1, 20 do assert(attach(process.pid)) end
        collectgarbage()
        collectgarbage()
        assert.equal(0, count_lines(mapped))
    end)

    it("may be closed by a finalizer in the middle of its reading", function()
        local process <close> = start_two()
        process:run [[for i = 1, 500 do codetimer.timer{ name = "many." .. i, help = "x" } end]]
        for _ = 1, 20 do
            local view = assert(attach(process.pid))
            setmetatable({}, { __gc = function() view:close() end })
            while not view.closed do
                local ok, message = pcall(function() return view:sample(), view.counters, view.segments end)
                assert.truthy(ok or message:find("the view is closed"), message)
            end
        end
    end)
end)

describe("arguments", function()
    it("that are wrong raise errors", function()
        local wrong = "bad argument #1 to 'attach' (pid must be a process id or an entry of processes(), got %s)"
        assert.has_error(function() codetimer.attach() end, wrong:format("nothing"))
        assert.has_error(function() codetimer.attach("7") end, wrong:format('the string "7"'))
        assert.has_error(function() codetimer.attach(7.5) end, wrong:format("7.5"))
        assert.has_error(function() codetimer.attach({}) end, wrong:format("a table"))
        assert.has_error(function() codetimer.attach(0) end,
            "bad argument #1 to 'attach' (pid must be greater than 0, got 0)")
        assert.has_error(function() codetimer.attach(7, 8) end,
            "bad argument #2 to 'attach' (directory must be a string, got 8)")
        assert.has_error(function() codetimer.processes(true) end,
            "bad argument #1 to 'processes' (directory must be a string, got true)")
        assert.has_error(function() codetimer.processes("a\0b") end,
            "bad argument #1 to 'processes' (directory must not contain a NUL byte)")
        assert.has_error(function() codetimer.reap() end,
            "bad argument #1 to 'reap' (path must be a string, got nothing)")
    end)
end)
