-- SPDX-License-Identifier: MIT
--
-- bench_compare.lua: how often compare errs. Pairs of functions that do the same, each of a chunk and with data of its
-- own, and pairs of which the second does 5 % more; told to differ, or not. Prints two lines; asserts nothing.
--
--     lua5.4 tests/lua/bench_compare.lua [pairs [budget]]
local codetimer = require "codetimer"

local pairs_made, budget = tonumber(arg[1]) or 40, tonumber(arg[2]) or 0.5
local source = [[
local words, n = {}, ...
for i = 1, 210 do words[i] = i end
return function()
    local sum = 0
    for i = 1, n do sum = sum + words[i] * i end
    return sum
end]]

-- The rests of all sizes between them put each pair elsewhere.
local rests = {}

local function make(n)
    rests[#rests + 1] = ("x"):rep(#rests * 53)
    return load(source, "=body")(n)
end

local function count_different(n)
    local different, widest = 0, 0
    for _ = 1, pairs_made do
        local found = codetimer.compare({ { "a", make(200) }, { "b", make(n) } }, { file = false, budget = budget })
        local low, high = found:interval("b")
        widest = math.max(widest, high - low)
        if found:different("b") then different = different + 1 end
    end
    return different, widest
end

local function put(which, count, what, widest)
    print(("%s, %d pairs %s: %d %s; widest interval %.4f"):format(_VERSION, pairs_made, which, count, what, widest))
end

local different, widest = count_different(200)
put("alike", different, "told to differ", widest)
different, widest = count_different(210)
put("with 5 % between them", pairs_made - different, "not told", widest)
