-- SPDX-License-Identifier: MIT
--
-- live.lua: what the tests of live counters share: a folder for segments that is each test's own, so that no other
-- process of this machine is in sight, and a process that measures.
local child = require "child"
local codetimer = require "codetimer"

local live = { folder = nil }

function live.make_folder()
    live.folder = os.tmpname()
    os.remove(live.folder)
    assert(os.execute("mkdir -m 700 " .. live.folder))
end

function live.remove_folder() os.execute("rm -r " .. live.folder) end

-- Starts a child that publishes into the folder. env is as in child.run.
function live.start(env) return child.start(("CODETIMER_DIR=%s %s"):format(live.folder, env or "")) end

-- Starts one with two members, f and g, that do nothing and have been called once.
function live.start_two(env)
    local process = live.start(env)
    process:run [[
        codetimer = require "codetimer"
        f = codetimer.measured("shop.f", function() end)
        g = codetimer.measured("shop.g", function() end)
        f() g()
    ]]
    return process
end

function live.attach(pid) return codetimer.attach(pid, live.folder) end
function live.processes() return codetimer.processes(live.folder) end

return live
