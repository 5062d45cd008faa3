-- SPDX-License-Identifier: MIT
--
-- Guards initialize and its environment, clock_info, thread_cycles and now_ns: what they say is there or has a reason,
-- and the priority of the thread is afterwards what it was. What changes the priority runs in children.
local child = require "child"
local codetimer = require "codetimer"

-- A child that may not raise its priority: an ordinary user, or root without the capability.
local deny
if child.can("test $(id -u) != 0") then
    deny = ""
elseif child.can("setpriv --bounding-set=-sys_nice true") then
    deny = "setpriv --bounding-set=-sys_nice"
end

local prelude = [[
    local codetimer = require "codetimer"
    local function nice()
        local stat = io.open("/proc/thread-self/stat"):read("a"):gsub("^.*%) ", "")
        local fields = {}
        for field in stat:gmatch("%S+") do fields[#fields + 1] = field end
        return tonumber(fields[17])
    end
    local function cpus() return io.open("/proc/thread-self/status"):read("a"):match("Cpus_allowed:%s*(%S+)") end
    local nice_before, cpus_before = nice(), cpus()
]]

describe("initialize", function()
    it("raises the priority, or says why not, and restores it", function()
        child.check(prelude .. [[
            local environment = codetimer.initialize()
            local priority = environment.priority
            assert(priority.requested == "high")
            assert(type(priority.previous) == "string" and type(priority.scope) == "string")
            assert(priority.restored == false and priority.cpu == nil and priority.cpu_status == "CT_OK")
            if priority.status == "CT_OK" then
                assert(nice() <= -10 and priority.effective:find("nice") and priority.reason == "")
            else
                assert(nice() == nice_before and #priority.reason > 0)
            end
            assert(environment:restore() == true)
            assert(nice() == nice_before)
            assert(environment.priority.restored == true)
            assert(environment:restore() == true)]])
    end)

    it("restores at the end of a block, also when that ends in an error", function()
        child.check(prelude .. [[
            do local environment <close> = codetimer.initialize { priority = "highest" } end
            assert(nice() == nice_before)
            assert(not pcall(function() local e <close> = codetimer.initialize { cpu = 0 } error("x") end))
            assert(nice() == nice_before and cpus() == cpus_before)]])
    end)

    it("pins to a CPU", function()
        child.check(prelude .. [[
            local environment = codetimer.initialize { priority = false, cpu = 0 }
            local priority = environment.priority
            assert(priority.requested == nil and priority.cpu == 0)
            if priority.cpu_status == "CT_OK" then assert(tonumber(cpus():gsub(",", ""), 16) == 1) end
            assert(nice() == nice_before)
            environment:restore()
            assert(cpus() == cpus_before)]])
    end)

    it("nests, and the last one is restored first", function()
        child.check(prelude .. [[
            local a = codetimer.initialize()
            local middle = nice()
            local b = codetimer.initialize { priority = "highest" }
            b:restore()
            assert(nice() == middle)
            a:restore()
            assert(nice() == nice_before)]])
    end)

    it("is kept when the environment is collected", function()
        child.check(prelude .. [[
            codetimer.initialize()
            local raised = nice()
            collectgarbage()
            assert(nice() == raised)]])
    end)

    it("that is denied is a fact in the report, and a run goes on", function()
        if not deny then return pending("this user may raise the priority, and setpriv is missing") end
        child.check(prelude .. [[
            local environment = codetimer.initialize()
            assert(environment.priority.status == "CT_EPERM", environment.priority.status)
            assert(#environment.priority.reason > 0)
            assert(nice() == nice_before)
            assert(tostring(environment):find("nice"))
            assert(codetimer.time("denied", 5, function() end, { file = false }).calls == 5)
            assert(environment:restore() == true)]], { through = deny })
    end)

    it("leaves alone what somebody else has changed", function()
        if not child.can("test $(id -u) = 0") then return pending("needs to change the priority") end
        local out = child.check(prelude .. [[
            local environment = codetimer.initialize()
            if environment.priority.status ~= "CT_OK" then return print("denied") end
            os.execute("renice -n -3 -p $PPID >/dev/null")
            local ok, message, code = environment:restore()
            assert(ok == nil and type(message) == "string" and code == "CT_ECHANGED", code)
            assert(nice() == -3)]])
        assert.is_string(out)
    end)

    it("refuses wrong options", function()
        for _, case in ipairs {
            { { priority = "medium" }, 'must be "high", "highest", "realtime" or false, got the string "medium"' },
            { { priority = "high\0junk" }, [[or false, got the string "high\0junk"]] },
            { { ["priority\0junk"] = "high" }, [[unknown option: the string "priority\0junk"]] },
            { { priority = 7 }, "priority must be a string or false, got 7" },
            { { priority = true }, "priority must be a string or false, got true" },
            { { cpu = -1 }, "cpu must be a whole number from 0 to 2147483647, got -1" },
            { { cpu = 1.5 }, "got 1.5" }, { { cpu = "0" }, 'got the string "0"' },
            { { prority = "high" }, 'unknown option: the string "prority"' }, { { "high" }, "unknown option: 1" },
            { "high", "table expected" },
        } do
            local ok, message = pcall(codetimer.initialize, case[1])
            assert.is_false(ok)
            assert.truthy(message:find(case[2], 1, true), message)
            assert.truthy(message:find("bad argument #1", 1, true), message)
        end
    end)
end)

describe("an environment", function()
    local environment = codetimer.initialize { priority = false }

    it("is some lines of text", function()
        local text = tostring(environment)
        for _, word in ipairs { "Priority", "Clock", "Cycles" } do assert.truthy(text:find(word, 1, true), text) end
    end)

    it("holds the clock and the cycles", function()
        assert.equal(codetimer.clock_info().source, environment.clock.source)
        assert.equal(codetimer.thread_cycles().kind, environment.cycles.kind)
        assert.is_nil(environment.unknown)
        assert.is_nil(environment["clock\0"])
        assert.is_nil(environment[1])
    end)

    it("has methods that refuse other objects", function()
        assert.is_false(pcall(environment.restore, io.stdout))
        assert.is_false(pcall(environment.restore))
    end)
end)

describe("the clock", function()
    it("describes itself", function()
        local clock = codetimer.clock_info()
        assert.is_true(#clock.source > 0)
        assert.is_true(clock.resolution_ns > 0)
        assert.is_true(clock.read_cost_ns > 0)
        if clock.frequency_hz then assert.is_true(clock.frequency_hz > 1e6) end
    end)

    it("can be chosen by the environment", function()
        child.check([[
            local clock = require "codetimer".clock_info()
            assert(clock.source:find("^monotonic"), clock.source)]],
            { env = "CODETIMER_CLOCK=monotonic" })
    end)

    it("never steps back, and counts in integers", function()
        local last = codetimer.now_ns()
        assert.equal("integer", math.type(last))
        for _ = 1, 100000 do
            local now = codetimer.now_ns()
            if now < last then error("stepped back by " .. last - now) end
            last = now
        end
    end)
end)

describe("thread cycles", function()
    it("grow with work, or have a reason to be missing", function()
        local before = codetimer.thread_cycles()
        local start = codetimer.now_ns()
        while codetimer.now_ns() - start < 20000000 do end -- luacheck: ignore 542
        local after = codetimer.thread_cycles()
        if before.kind == "none" then
            assert.is_nil(before.value)
            return assert.is_true(#before.reason > 0)
        end
        assert.equal("integer", math.type(after.value))
        assert.is_true(after.value > before.value)
        assert.is_string(after.source)
        if after.kind == "reference" then assert.is_true(#after.reason > 0) end
    end)
end)
