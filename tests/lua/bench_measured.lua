-- SPDX-License-Identifier: MIT
--
-- bench_measured.lua: what a measured call costs against the floor, a wrapper whose to-be-closed token reads the clock
-- twice and does nothing else (floor.c, compiled here). Slices take turns, and the least of each counts, so that a busy
-- machine disturbs all alike. Prints a table with what is wanted beside what is found; asserts nothing.
--
--     lua5.4 tests/lua/bench_measured.lua [rounds]
local codetimer = require "codetimer"

local rounds, calls = tonumber(arg[1]) or 300, 10000
local WANTED = 1.25 -- of the floor, at most, also in a coroutine and with fn(...)

local function compile_floor()
    local path, lua = os.tmpname(), "lua" .. _VERSION:match("%d+%.%d+")
    local command = ("${CC:-cc} -std=c11 -O2 -shared -fPIC -I. -o %s tests/lua/floor.c $(pkg-config --cflags %s)")
    assert(os.execute(command:format(path, lua)), "tests/lua/floor.c could not be compiled")
    local floor = assert(package.loadlib(path, "luaopen_floor"))
    os.remove(path)
    return floor()
end

local gate = compile_floor()
local clock = os.clock

local function wrap_floor(fn)
    return function(...)
        local token <close> = gate() -- luacheck: ignore
        return fn(...)
    end
end

local function wrap_clock(fn)
    local count, total = 0, 0
    local function finish(start, ...)
        count, total = count + 1, total + clock() - start
        return ...
    end
    return function(...) return finish(clock(), fn(...)) end
end

local function slice(fn)
    local start = codetimer.now_ns()
    for _ = 1, calls do fn(1, 2, 3) end
    return (codetimer.now_ns() - start) / calls
end

local function slice_empty()
    local start = codetimer.now_ns()
    for _ = 1, calls do end -- luacheck: ignore 542
    return (codetimer.now_ns() - start) / calls
end

local function fn(a, b) return a, b end
local function variadic(...) return ... end
local measured, measured_variadic = codetimer.measured("bench", fn), codetimer.measured("bench ...", variadic)

local floor, floor_variadic = wrap_floor(fn), wrap_floor(variadic)

local function in_coroutine(wrapper)
    return coroutine.wrap(function() while true do coroutine.yield(slice(wrapper)) end end)
end

-- What is run, with which argument, the row of its floor, how many rounds if fewer, and whether it is ours.
local ways = {
    { "bare call", slice, fn, 2 },
    { "floor: token, two clock reads", slice, floor, 2 },
    { "codetimer.measured", slice, measured, 2, ours = true },
    { "floor, in a coroutine", in_coroutine(floor), nil, 4 },
    { "codetimer.measured", in_coroutine(measured), nil, 4, ours = true },
    { "floor, fn(...)", slice, floor_variadic, 6 },
    { "codetimer.measured", slice, measured_variadic, 6, ours = true },
    { "os.clock, no error handling", slice, wrap_clock(fn), 2, 10 },
}
local empty = math.huge
for _, way in ipairs(ways) do way.least = math.huge end
for round = 1, rounds do
    empty = math.min(empty, slice_empty())
    for _, way in ipairs(ways) do
        if round <= (way[5] or rounds) then way.least = math.min(way.least, way[2](way[3])) end
    end
end

print(("%-32s %12s %12s %8s"):format(_VERSION .. ", ns per call", "whole call", "of floor", "wanted"))
for _, way in ipairs(ways) do
    local whole, ground = way.least - empty, ways[way[4]].least - empty
    local wanted = not way.ours and "" or (" %8.2f%s"):format(WANTED, whole / ground > WANTED and "  missed" or "")
    print(("%-32s %12.1f %12.3f%s"):format(way[1], whole, whole / ground, wanted))
end
