-- SPDX-License-Identifier: MIT
--
-- Three workers that sleep a random time. Two are measured; the third is switched on from another terminal.
--
--     lua5.4 examples/workers.lua [SECONDS]
--     codetimer top                              # in another terminal: first and second
--     codetimer enable PID "*.third"             # now the third too
--
-- Each worker adds up for itself how long its calls take, so that what codetimer shows can be compared with the truth.
-- The workers are coroutines: one that sleeps yields until it is due, and the scheduler sleeps until the first one is.
local codetimer = require "codetimer"

-- Lua itself cannot sleep: LuaSocket can, or a command.
local has_socket, socket = pcall(require, "socket")
local function wait(seconds)
    if has_socket then return socket.sleep(seconds) end
    io.popen(("sleep %.6f"):format(seconds)):close()
end

local function now() return codetimer.now_ns() / 1e9 end
local function sleep_between(least, most) coroutine.yield(now() + least + (most - least) * math.random()) end

local jobs = {
    first = codetimer.measured(function() sleep_between(0.002, 0.006) end,
        { name = "workers.first", help = "sleeps 2 to 6 ms" }),
    second = codetimer.measured(function() sleep_between(0.005, 0.015) end,
        { name = "workers.second", help = "sleeps 5 to 15 ms" }),
    third = codetimer.measured(function() sleep_between(0.010, 0.030) end,
        { name = "workers.third", help = "sleeps 10 to 30 ms; measured when it is switched on" }),
}
local workers = {}

local function work(worker, finish)
    while now() < finish do
        local start = codetimer.now_ns()
        jobs[worker.name]()
        worker.total = worker.total + codetimer.now_ns() - start
        worker.calls = worker.calls + 1
    end
end

codetimer.configure { members = "*.first; *.second" }
local pid, finish = io.popen("echo $PPID"):read("n"), now() + (tonumber(arg[1]) or 60)
print(('process %d: try  codetimer top  and  codetimer enable %d "*.third"'):format(pid, pid))
io.stdout:flush()
for i, name in ipairs { "first", "second", "third" } do
    workers[i] = { name = name, run = coroutine.wrap(work), due = 0, calls = 0, total = 0 }
end
while true do
    local first = workers[1]
    for _, worker in ipairs(workers) do if worker.due < first.due then first = worker end end
    if first.due == math.huge then break end
    wait(math.max(0, first.due - now()))
    first.due = first.run(first, finish) or math.huge -- it tells when it is due again; nothing: it has ended
end
for _, worker in ipairs(workers) do
    local each = worker.total / worker.calls / 1e6
    print(("%s: %d calls, %.3f ms each by its own count"):format(worker.name, worker.calls, each))
end
codetimer.report()
