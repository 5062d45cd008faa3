-- SPDX-License-Identifier: MIT
--
-- bench_measured.lua: what a measured call costs against the floor, a wrapper whose to-be-closed token reads the clock
-- twice and does nothing else (floor.c, compiled here). Slices take turns, and the least of each counts, so that a busy
-- machine disturbs all alike. Prints a table; asserts nothing.
--
--     lua5.4 tests/lua/bench_measured.lua [rounds]
local codetimer = require "codetimer"

local rounds, calls = tonumber(arg[1]) or 300, 10000

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
        local token <close> = gate()
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
local ways = { { "bare call", fn }, { "floor: token, two clock reads", wrap_floor(fn) },
               { "codetimer.measured", codetimer.measured(fn, "bench") }, { "os.clock", wrap_clock(fn) } }
local least, empty = { math.huge, math.huge, math.huge, math.huge }, math.huge
for _ = 1, rounds do
    empty = math.min(empty, slice_empty())
    for i = 1, #ways - 1 do least[i] = math.min(least[i], slice(ways[i][2])) end
end
for _ = 1, 10 do least[#ways] = math.min(least[#ways], slice(ways[#ways][2])) end

print(("%-32s %12s %12s %10s"):format(_VERSION .. ", ns per call", "whole call", "added", "of floor"))
for i, way in ipairs(ways) do
    local whole, ground = least[i] - empty, least[2] - empty
    print(("%-32s %12.1f %12.1f %10.3f"):format(way[1], whole, least[i] - least[1], whole / ground))
end
