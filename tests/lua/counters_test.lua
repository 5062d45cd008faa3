-- SPDX-License-Identifier: MIT
--
-- Guards what a counter is called and what it says. Fails if a value is not the one that was recorded, or a wrong name
-- is taken.
local child = require "child"
local codetimer = require "codetimer"

local counters, measured = codetimer.counters, codetimer.measured

local function fn() end

local function record(name, durations)
    measured(fn, name)
    local counter = counters(name)
    for _, duration in ipairs(durations) do counter:record(duration) end
    return counter
end

-- The sentence without the position in front of it.
local function refusal(...)
    local ok, message = pcall(...)
    assert.is_false(ok)
    return message
end

describe("a name", function()
    it("is what is given, in any of these ways", function()
        measured(fn, "n.first")
        measured("n.second", fn)
        measured(fn, "third", "n")
        measured("fourth", fn, "n")
        measured(fn, { name = "fifth", category = "n", help = "the fifth" })
        measured(fn, { name = "n.sixth" })
        for _, key in ipairs { "n/n.first", "n/n.second", "n/third", "n/fourth", "n/fifth", "n/n.sixth" } do
            assert.equal(key, counters(key).key)
            assert.equal("n", counters(key).category)
            assert.equal(key:sub(3), counters(key).member)
        end
    end)

    it("is the place of the function where none is given", function()
        local line = debug.getinfo(1, "l").currentline + 1
        measured(function() end)
        assert.truthy(counters("counters_test:" .. line))
        measured(load("return function() end", "@some/where.d/other.lua")())
        assert.truthy(counters("other:1"))
        measured(load("return function() end", "=stdin")(), { category = "n" })
        assert.truthy(counters("n/stdin:1"))
        for what, nameless in pairs { ["a C function"] = print, ["a table"] = setmetatable({}, { __call = fn }),
                                      ["a function whose code was a string"] = load("return 1") } do
            assert.equal("bad argument #1 to 'measured' (" .. what .. " needs a name: give one)",
                refusal(measured, nameless):gsub("codetimer%.", ""), nil)
        end
    end)

    it("without a dot belongs to \"lua\" where there is no script, whatever the version of Lua", function()
        local code = [[local codetimer = require "codetimer"; codetimer.measured(print, "bare")
            print((next(codetimer.counters())))]]
        local pipe = assert(io.popen(("%s -e '%s'"):format(child.interpreter(), code)))
        local key = pipe:read("a")
        pipe:close()
        assert.equal("lua/bare\n", key)
    end)

    it("without a dot belongs to the script", function()
        assert.equal("main/plain\n", child.check([[
            local codetimer = require "codetimer"
            arg = nil
            codetimer.measured(function() end, "plain")
            print(next(codetimer.counters()))]]):gsub("\tcodetimer.Counter.-\n", "\n"), nil)
        local out = child.check [[
            local codetimer = require "codetimer"
            codetimer.measured(function() end, "plain")
            print(codetimer.counters("plain").key == arg[0]:match("([^/]+)$"):gsub("(.)%.[^.]*$", "%1") .. "/plain")]]
        assert.equal("true\n", out)
    end)

    it("may be any bytes but NUL, up to 65,535 of them", function()
        for _, name in ipairs { "\255\254 not UTF-8", "a;b\n\27[31m", " ", ("x"):rep(65535), "a/b/c", "/" } do
            measured(fn, { name = name, category = "odd" })()
            assert.equal("odd/" .. name, counters("odd/" .. name).key)
            assert.equal(name, counters("odd/" .. name).member)
        end
        local file = child.new_file()
        codetimer.report(file)
        assert.truthy(file.text:find("a;b\\n\\x1b[31m", 1, true))
        assert.falsy(file.text:find("[\255\27]"))
        for _, name in ipairs { "\255\254 not UTF-8", "a;b\n\27[31m", " ", ("x"):rep(65535), "a/b/c", "/" } do
            counters("odd/" .. name):remove()
        end
    end)

    it("is refused otherwise, with what was wrong", function()
        local cases = {
            { "name must not be empty", fn, "" },
            { "name must have at most 65535 bytes, got 65536", fn, ("x"):rep(65536) },
            { "name must not contain a NUL byte; the first is byte 3", fn, "ab\0c" },
            { "name must be a string, got 7", fn, 7 },
            { "name must be a string, got true", fn, true },
            { "name must not be empty", "", fn },
            { "category must not contain \"/\", got the string \"a/b\"", fn, "x", "a/b" },
            { "category must not be empty", fn, "x", "" },
            { "category must be a string, got a table", fn, "x", {} },
            { "help must be a string, got 1", fn, { help = 1 } },
            { "unknown option: the string \"nam\"; there are name, category and help", fn, { nam = "x" } },
            { "give the category in the table or behind the name, not both", fn, { name = "x" }, "y" },
            { "fn must be a function or have __call, got 7", 7 },
            { "fn must be a function or have __call, got nothing", },
            { "fn must be a function or have __call, got nothing", "name" },
            { "fn must be a function or have __call, got the string \"other\"", "name", "other" },
            { "fn must be a function or have __call, got a table", {} },
        }
        for _, case in ipairs(cases) do
            local message = refusal(measured, table.unpack(case, 2, 4))
            assert.truthy(message:find("(" .. case[1] .. ")", 1, true), message)
            assert.truthy(message:find("^bad argument #%d to '[%w.]*measured'"), message)
        end
        assert.truthy(refusal(codetimer.timer):find("a timer needs a name", 1, true))
    end)
end)

describe("counters", function()
    it("is a table by key, with members that one category has", function()
        measured(fn, "l.single")
        measured(fn, "twice", "l")
        measured(fn, "twice", "k")
        local all = counters()
        assert.equal("l/l.single", all["l/l.single"].key)
        assert.equal("l/l.single", all["l.single"].key)
        assert.equal("l/l.single", counters("l.single").key)
        assert.is_nil(rawget(all, "l.single"))
        assert.is_nil(all["l.none"])
        assert.is_nil(all[1])
        assert.is_nil(counters("l.single\0"))
        for _, ask in ipairs { counters, function(name) return all[name] end } do
            local message = refusal(ask, "twice")
            assert.truthy(message:find('the member "twice" is in several categories: use one of the keys', 1, true))
            assert.truthy(message:find("k/twice", 1, true) and message:find("l/twice", 1, true), message)
        end
        local found = {}
        for key, counter in pairs(all) do
            assert.equal(key, counter.key)
            found[key] = true
        end
        assert.is_true(found["l/twice"] and found["k/twice"])
        assert.truthy(refusal(counters, 7):find("key must be a string, got 7", 1, true))
    end)

    it("are equal where their keys are", function()
        measured(fn, "l.equal")
        assert.equal(counters("l.equal"), counters("l/l.equal"))
        assert.is_true(counters("l.equal") == counters()["l.equal"])
        assert.is_true(counters("l.equal") ~= counters("l.single"))
    end)
end)

describe("a counter", function()
    it("says nothing of times before the first call", function()
        local counter = record("v.new", {})
        assert.same({ 0, 0, 0, 0, 0 },
            { counter.calls, counter.errors, counter.cancelled, counter.total_ns, counter.in_flight })
        assert.same({ n = 4 },
            table.pack(counter.average_ns, counter.min_ns, counter.max_ns, (counter:percentile(50))))
        assert.is_true(counter.enabled)
        assert.is_nil(counter.nonsense)
        assert.is_nil(counter[1])
        assert.equal("codetimer.Counter v/v.new: 0 calls, 0 ns", tostring(counter))
    end)

    it("has what was recorded", function()
        local counter = record("v.recorded", { 10, 30, 20 })
        counter:record(40, true)
        assert.same({ 4, 1, 0, 100, 25.0, 10, 40, 0 },
            { counter.calls, counter.errors, counter.cancelled, counter.total_ns, counter.average_ns, counter.min_ns,
              counter.max_ns, counter.in_flight })
        assert.equal(10.0, counter:percentile(0))
        assert.equal(40.0, counter:percentile(100))
        assert.equal("codetimer.Counter v/v.recorded: 4 calls, 100 ns", tostring(counter))
        counter:remove()
        assert.equal("codetimer.Counter v/v.recorded: 0 calls, 0 ns, removed", tostring(counter))
        counter:record(5)
        assert.equal(0, counter.calls)
    end)

    it("refuses wrong durations and percentiles", function()
        local counter = record("v.refuses", { 1 })
        for _, duration in ipairs { -1, 1.5, "7", 2 ^ 63, 0 / 0, {} } do
            assert.truthy(refusal(counter.record, counter, duration):find("duration_ns must be a whole number from 0"))
        end
        for _, q in ipairs { -1, 100.1, 0 / 0, "50", {} } do
            assert.truthy(refusal(counter.percentile, counter, q):find("a percentile is a number from 0 to 100, got"))
        end
        assert.is_false(pcall(counter.percentile, counter))
        assert.is_false(pcall(counter.percentile, {}, 50))
        assert.equal(1, counter.calls)
    end)

    it("gives samples, and what happened between two", function()
        local counter = record("v.window", { 1000, 2000 })
        local before = counter:sample()
        counter:record(10)
        counter:record(30, true)
        local now = counter:sample()
        local window = now - before
        assert.same({ 2, 4, 2 }, { before.calls, now.calls, window.calls })
        assert.same({ 40, 20.0, 1 }, { window.total_ns, window.average_ns, window.errors })
        assert.equal(2, now:difference(before).calls)
        assert.is_true(window.min_ns <= 10 and window.max_ns >= 30 and window.max_ns < 34)
        assert.is_true(window:percentile(99) < 34 and now:percentile(99) > 1000)
        assert.equal("v/v.window", window.key)
        assert.equal("v.window", now.member)
        local sum = 0
        for _, calls in ipairs(now.buckets) do sum = sum + calls end
        assert.same({ 338, 4 }, { #now.buckets, sum })
        assert.is_nil((now - now).average_ns)
        assert.truthy(refusal(before.difference, before, now):find("an earlier sample is needed", 1, true))
        local other = record("v.other", {}):sample()
        assert.truthy(refusal(now.difference, now, other):find("got one of v/v.other", 1, true))
        counter:reset()
        local code = select(3, counter:sample():difference(now))
        assert.equal("CT_ECHANGED", code)
    end)
end)

-- One number r of the generator in the cases gives one duration.
local distributions = {
    lognormal = function(r)
        local s = (r & 65535) + (r >> 16 & 65535) + (r >> 32 & 65535) + (r >> 48)
        local e = 655360 + 2 * s
        return ((65536 + (e & 65535)) << (e >> 16)) >> 16
    end,
    bimodal = function(r) return r >> 56 < 77 and 1000000 + (r & 1048575) or 800 + (r & 255) end,
    constant = function() return 1234 end,
}

local function feed(name, count)
    local counter, distribution, x = record("d." .. name, {}), distributions[name], 0x9E3779B97F4A7C15
    for _ = 1, count do
        x = x ~ x >> 12
        x = x ~ x << 25
        x = x ~ x >> 27
        counter:record(distribution(x * 0x2545F4914F6CDD1D))
    end
    return counter
end

describe("a million durations", function()
    local expected = {}
    for line in io.lines("tests/cases/durations.tsv") do
        local name, what, value = line:match("^(%w+)\t([%w.]+)\t(%d+)$")
        if name then
            expected[name] = expected[name] or {}
            expected[name][what] = tonumber(value)
        end
    end
    for name in pairs(distributions) do
        it("have exact averages and percentiles within a bucket: " .. name, function()
            local counter, checked = feed(name, 1000000), 0
            for what, value in pairs(expected[name]) do
                if what == "total" then
                    assert.equal(value, counter.total_ns)
                    assert.is_true(math.abs(counter.average_ns - value / 1000000) < 1)
                else
                    local ratio = counter:percentile(tonumber(what)) / value
                    assert.is_true(ratio <= 2 ^ 0.125 and ratio >= 2 ^ -0.125, what .. ": " .. ratio)
                end
                checked = checked + 1
            end
            assert.equal(11, checked)
        end)
    end
end)

describe("the report", function()
    it("lists counters by their total, and can go anywhere", function()
        local out = child.check [[
            local codetimer = require "codetimer"
            local function add(name, duration)
                codetimer.measured(function() end, name)
                if duration then codetimer.counters(name):record(duration) end
            end
            add("a.short", 10) add("b.long", 1000) add("c.never")
            assert(codetimer.report() == true)
            assert(codetimer.report(nil) == true)]]
        local once = "Member[^\n]+\nb%.long[^\n]+\na%.short[^\n]+\n1 counter without calls\n"
        local first, second = out:match("^(" .. once .. ")(.*)$")
        assert.equal(first, second, out)
        local file = child.new_file()
        assert.is_true(codetimer.report(file))
        assert.truthy(file.text:find("^Member +Calls +Average"), file.text)
        for _, wrong in ipairs { 7, "file", true, {} } do
            assert.truthy(refusal(codetimer.report, wrong):find("file must have a write method, got", 1, true))
        end
        local closed = io.tmpfile()
        closed:close()
        assert.truthy(refusal(codetimer.report, closed):find("got a closed file", 1, true))
    end)

    it("that cannot be written is a refusal; an error of the file goes on", function()
        assert.same({ nil, "no", 5 }, { codetimer.report { write = function() return nil, "no", 5 end } })
        assert.is_false(pcall(codetimer.report, { write = function() error "x" end }))
        child.check([[assert(select(3, require("codetimer").report()) == 28)]], { output = "/dev/full" })
        child.check [[
            local codetimer = require "codetimer"
            io.stdout, package.loaded.io.stdout = nil, nil
            assert(select(3, codetimer.report()) == "CT_ENOTSUP")]]
    end)

    it("may be written by a coroutine", function()
        local co = coroutine.wrap(codetimer.report)
        assert.equal("written", co { write = function() coroutine.yield("written") return true end })
        assert.is_true(co())
    end)
end)
