-- SPDX-License-Identifier: MIT
--
-- Three workers that sleep random times, for ever. A file says which of them are measured, and is edited meanwhile.
-- Each adds up for itself how long its calls take, so that what codetimer shows can be compared with the truth.
--
--     lua5.4 examples/workers.lua [FILE]                    # FILE: examples/workers.members; Ctrl-C ends it
--     codetimer top                                         # in another terminal: first and second
--     sed -i s/second/third/ examples/workers.members       # within a second: first and third
--     codetimer enable PID "*.second"                       # ... or without the file: now all of them
--
-- The workers are coroutines: one that sleeps yields until it is due, and the scheduler sleeps until the first one is.
local codetimer = require "codetimer"

-- Lua itself cannot sleep: LuaSocket can, or a command.
local has_socket, socket = pcall(require, "socket")
local function sleep(seconds) io.popen(("sleep %.6f"):format(seconds)):close() end
local wait = has_socket and socket.sleep or sleep

local function now() return codetimer.now_ns() / 1e9 end
local function sleep_between(least, most) coroutine.yield(now() + least + (most - least) * math.random()) end

local jobs = {}
function jobs.first() sleep_between(0.002, 0.006) end
function jobs.second() sleep_between(0.005, 0.015) end
function jobs.third() sleep_between(0.010, 0.030) end

local function work(worker)
    while true do
        local start = codetimer.now_ns()
        jobs[worker.name]()
        worker.total = worker.total + codetimer.now_ns() - start
        worker.calls = worker.calls + 1
    end
end

local workers = {}
for i, name in ipairs { "first", "second", "third" } do
    workers[i] = { name = name, run = coroutine.wrap(work), due = 0, calls = 0, total = 0 }
end

local function schedule()
    while true do
        table.sort(workers, function(a, b) return a.due < b.due end)
        wait(math.max(0, workers[1].due - now()))
        workers[1].due = workers[1].run(workers[1]) -- it tells when it is due again
    end
end

local file, pid = arg[1] or arg[0]:gsub("%.lua$", ".members"), io.popen("echo $PPID"):read("n")
codetimer.configure { file = file }
codetimer.instrument(jobs, "workers")
print(("process %d: see it by  codetimer top  and edit %s"):format(pid, file))
io.stdout:flush()
print(select(2, pcall(schedule)))
for _, worker in ipairs(workers) do
    local name, calls, each = worker.name, worker.calls, worker.total / worker.calls / 1e6
    print(("%s: %d calls, %.3f ms each by its own count"):format(name, calls, each))
end
codetimer.report()
