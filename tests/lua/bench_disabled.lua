-- SPDX-License-Identifier: MIT
--
-- bench_disabled.lua: what a measured function costs while its counter is switched off, against the floor: a wrapper
-- with a to-be-closed variable over a C function that does nothing (floor.c, compiled here). Slices take turns, and the
-- least of each counts, so that a busy machine disturbs all alike. Prints a table with what is wanted beside what is
-- found; asserts nothing.
--
--     lua5.4 tests/lua/bench_disabled.lua [rounds]
local codetimer = require "codetimer"

local rounds, calls = tonumber(arg[1]) or 300, 10000
local WANTED = 1.1 -- of the floor, at most

local function compile_empty()
    local path, lua = os.tmpname(), "lua" .. _VERSION:match("%d+%.%d+")
    local command = ("${CC:-cc} -std=c11 -O2 -shared -fPIC -I. -o %s tests/lua/floor.c $(pkg-config --cflags %s)")
    assert(os.execute(command:format(path, lua)), "tests/lua/floor.c could not be compiled")
    local empty = assert(package.loadlib(path, "luaopen_empty"))
    os.remove(path)
    return empty()
end

local empty = compile_empty()

local function wrap_empty(fn)
    return function(...)
        local nothing <close> = empty() -- luacheck: ignore
        return fn(...)
    end
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

local function two(a, b) return a, b end
local function any(...) return ... end
codetimer.configure { members = "!bench.off*" }
-- What, how, the row of its floor, and whether it is ours.
local ways = {
    { "fn(a, b)", two, 2 },
    { "floor: over an empty C function", wrap_empty(two), 2 },
    { "switched off", codetimer.measured(two, "bench.off (a, b)"), 2, ours = true },
    { "fn(...)", any, 5 },
    { "floor: over an empty C function", wrap_empty(any), 5 },
    { "switched off", codetimer.measured(any, "bench.off (...)"), 5, ours = true },
}
local least, ground = {}, math.huge
for i = 1, #ways do least[i] = math.huge end
for _ = 1, rounds do
    ground = math.min(ground, slice_empty())
    for i, way in ipairs(ways) do least[i] = math.min(least[i], slice(way[2])) end
end

print(("%-36s %12s %10s %8s"):format(_VERSION .. ", ns per call", "whole call", "of floor", "wanted"))
for i, way in ipairs(ways) do
    local whole, part = least[i] - ground, (least[i] - ground) / (least[way[3]] - ground)
    local wanted = not way.ours and "" or (" %8.2f%s"):format(WANTED, part > WANTED and "  missed" or "")
    print(("%-36s %12.1f %10.3f%s"):format(way[1], whole, part, wanted))
end
