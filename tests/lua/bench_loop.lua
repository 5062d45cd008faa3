-- SPDX-License-Identifier: MIT
--
-- bench_loop.lua: what the loop of time costs against a plain one over the same function. Slices take turns, and the
-- least of each counts, so that a busy machine disturbs both alike. Prints a table; asserts nothing.
--
--     lua5.4 tests/lua/bench_loop.lua [rounds]
local codetimer = require "codetimer"

local rounds, calls = tonumber(arg[1]) or 200, 100000

local function plain(fn)
    local start = codetimer.now_ns()
    for _ = 1, calls do fn() end
    return (codetimer.now_ns() - start) / calls
end

local function timed(fn) return codetimer.time("", calls, fn).elapsed_ns / calls end

local function compare(fn)
    local least_plain, least_timed = math.huge, math.huge
    for _ = 1, rounds do
        least_plain = math.min(least_plain, plain(fn))
        least_timed = math.min(least_timed, timed(fn))
    end
    return least_plain, least_timed
end

print(("%-28s %12s %12s %8s"):format(_VERSION .. ", ns per call", "plain loop", "time", "ratio"))
for _, case in ipairs { { "empty Lua function", function() end }, { "C function (math.random)", math.random },
                        { "100 additions", function() local s = 0; for i = 1, 100 do s = s + i end end } } do
    local least_plain, least_timed = compare(case[2])
    print(("%-28s %12.2f %12.2f %8.3f"):format(case[1], least_plain, least_timed, least_timed / least_plain))
end
