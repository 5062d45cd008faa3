-- SPDX-License-Identifier: MIT
--
-- bench_memory.lua: what the hook of the memory pass costs per allocator call. Requests for one and the same block are
-- made in C (floor.c, compiled here): in the run, without the hook, and in the pass that follows it. The least of each
-- counts. Prints a table; asserts nothing.
--
--     lua5.4 tests/lua/bench_memory.lua [rounds]
local codetimer = require "codetimer"

local rounds, pairs_of_requests = tonumber(arg[1]) or 30, 10000
local now_ns = codetimer.now_ns

local function compile()
    local path, lua = os.tmpname(), "lua" .. _VERSION:match("%d+%.%d+")
    local command = ("${CC:-cc} -std=c11 -O2 -shared -fPIC -I. -o %s tests/lua/floor.c $(pkg-config --cflags %s)")
    assert(os.execute(command:format(path, lua)), "tests/lua/floor.c could not be compiled")
    local requests = assert(package.loadlib(path, "luaopen_requests"))
    os.remove(path)
    return requests()
end

local requests = compile()
local least, timed = { [true] = math.huge, [false] = math.huge }, true

local function body()
    local start = now_ns()
    requests(pairs_of_requests)
    least[timed] = math.min(least[timed], (now_ns() - start) / (2 * pairs_of_requests))
end

for _ = 1, rounds do
    timed = true
    codetimer.time("", 100, body)
    local calls = 0
    codetimer.time("", 1, function()
        timed = calls == 0
        calls = calls + 1
        body()
    end, { memory = true })
end

print(("%-34s %12s %12s %12s"):format(_VERSION .. ", ns per allocator call", "without", "with", "hook"))
print(("%-34s %12.2f %12.2f %12.2f"):format("memory pass", least[true], least[false], least[false] - least[true]))
