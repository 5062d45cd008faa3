-- SPDX-License-Identifier: MIT
--
-- quickstart.lua: the four classic cases. Sleeping takes time but no cycles; an empty function shows what a call costs;
-- concatenation makes a new string each time, so the collector has work; a buffer has none.
--
--     lua5.4 examples/quickstart.lua
local codetimer = require "codetimer"

local environment <close> = codetimer.initialize()
print(environment)

local function empty() end

-- Lua itself cannot sleep. LuaSocket can; else a command sleeps for us, and we wait for the end of its output.
local has_socket, socket = pcall(require, "socket")
local function sleep()
    if has_socket then
        socket.sleep(0.3)
    else
        io.popen("sleep 0.3"):close()
    end
end

codetimer.time("Thread Sleep", 1, sleep)
codetimer.time("Empty Function", 1000000, empty)

local text = ""
codetimer.time("String Concat", 20000, function() text = text .. "a" end)

local buffer = {}
codetimer.time("Buffer Append", 20000, function() buffer[#buffer + 1] = "a" end)
assert(table.concat(buffer) == text)
