-- SPDX-License-Identifier: MIT
--
-- hot_functions.lua: running averages of hot functions, always on: wrap them once and ask at any time. Prints the table
-- of all counters, then what happened in one stretch of time.
--
--     lua5.4 examples/hot_functions.lua
local codetimer = require "codetimer"

local fibonacci
fibonacci = codetimer.measured("fibonacci", function(n)
    return n < 2 and n or fibonacci(n - 1) + fibonacci(n - 2)
end)

local parse = codetimer.measured(function(line)
    local article, amount = line:match("^([^,]+),(%d+)$")
    if not article then error("not a line of an order: " .. line) end
    return article, tonumber(amount)
end, { name = "orders.parse", help = "one line of an order" })

-- A coroutine may be measured: time in which it waits counts.
local lines_of = codetimer.measured("orders.lines", function(count)
    for i = 1, count do
        coroutine.yield(i % 1000 ~= 0 and ("article %d,%d"):format(i % 100, i) or "broken")
    end
end)

local basket = {}
local function fill(count)
    for line in coroutine.wrap(lines_of), count do
        local ok, article, amount = pcall(parse, line) -- an error counts as one, and goes on
        if ok then basket[article] = (basket[article] or 0) + amount end
    end
end

fibonacci(16)
do
    local _ <close> = codetimer.timer("orders.fill")
    fill(20000)
end
codetimer.report()

local parsing = codetimer.counters("orders.parse")
local before = parsing:sample()
fill(5000)
local window = parsing:sample() - before
print(("\nparse since then: %d calls, %d errors, average %.0f ns, 99 %% below %.0f ns"):format(window.calls,
    window.errors, window.average_ns, window:percentile(99)))
