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

-- Lua itself cannot sleep. LuaSocket can; else a command sleeps for us, and we wait for the end of its output.
local has_socket, socket = pcall(require, "socket")
local function wait(seconds)
    if has_socket then
        socket.sleep(seconds)
    else
        io.popen(("sleep %.6f"):format(seconds)):close()
    end
end

local function now() return codetimer.now_ns() / 1e9 end

-- Suspends the worker; resumed when that time has come.
local function sleep_between(least, most) coroutine.yield(now() + least + (most - least) * math.random()) end

local jobs = {
    first = codetimer.measured(function() sleep_between(0.002, 0.006) end,
        { name = "workers.first", help = "sleeps 2 to 6 ms" }),
    second = codetimer.measured(function() sleep_between(0.005, 0.015) end,
        { name = "workers.second", help = "sleeps 5 to 15 ms" }),
    third = codetimer.measured(function() sleep_between(0.010, 0.030) end,
        { name = "workers.third", help = "sleeps 10 to 30 ms; measured when it is switched on" }),
}
local names = { "first", "second", "third" }

local function work(job, finish, truth)
    while now() < finish do
        local start = codetimer.now_ns()
        job()
        truth.total = truth.total + codetimer.now_ns() - start
        truth.calls = truth.calls + 1
    end
end

-- Runs the workers until the last one has ended.
local function schedule(workers)
    while #workers > 0 do
        table.sort(workers, function(a, b) return a.due < b.due end)
        local worker = workers[1]
        if worker.due > now() then wait(worker.due - now()) end
        local _, due = assert(coroutine.resume(worker.thread))
        worker.due = due or math.huge
        if coroutine.status(worker.thread) == "dead" then table.remove(workers, 1) end
    end
end

local seconds = tonumber(arg[1]) or 60
codetimer.configure { members = "*.first; *.second" }
local pid = io.popen("echo $PPID"):read("n")
print(('process %d: try  codetimer top  and  codetimer enable %d "*.third"'):format(pid, pid))
io.stdout:flush()

local finish, workers, truths = now() + seconds, {}, {}
for i, name in ipairs(names) do
    local truth = { calls = 0, total = 0 }
    truths[name] = truth
    workers[i] = { due = 0, thread = coroutine.create(function() work(jobs[name], finish, truth) end) }
end
schedule(workers)

for _, name in ipairs(names) do
    local truth = truths[name]
    print(("%s: %d calls, %.3f ms each by its own count"):format(name, truth.calls, truth.total / truth.calls / 1e6))
end
codetimer.report()
