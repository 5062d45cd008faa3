-- SPDX-License-Identifier: MIT
--
-- child.lua: what the tests share. Programs that end, lose their output or are interrupted run in a child process, with
-- the interpreter that runs the tests; what needs another host runs in host.c, compiled when first asked for.
local child = {}

function child.interpreter()
    local first = 0
    while arg and arg[first - 1] do first = first - 1 end
    return first < 0 and arg[first] or "lua5.4"
end

local function write_file(path, text)
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
end

local function take_file(path)
    local file = assert(io.open(path, "rb"))
    local text = file:read("a")
    file:close()
    os.remove(path)
    return text
end

local function quote(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

-- Runs Lua code in a child. options: env = "A=b C=d", through = a command that runs another one, host = path of a host,
-- terminal = true for one, output = where standard output goes, background = shell code that runs beside the child and
-- knows its $pid.
-- Returns standard output, standard error, exit status (or -signal).
function child.run(code, options)
    options = options or {}
    local script, out, err = os.tmpname(), os.tmpname(), os.tmpname()
    write_file(script, code)
    local command = quote(options.host or child.interpreter()) .. " " .. script
    if options.terminal then command = ("script -qefc %s /dev/null"):format(quote(command)) end
    command = ("env %s %s %s >%s 2>%s"):format(options.env or "", options.through or "", command,
        options.output or out, err)
    if options.background then
        command = ("%s & pid=$!; %s; wait $pid"):format(command, options.background)
    end
    local _, kind, status = os.execute(command)
    os.remove(script)
    return take_file(out), take_file(err), kind == "exit" and status or -status
end

-- The code must end well; returns standard output.
function child.check(code, options)
    local out, err, status = child.run(code, options)
    if status ~= 0 or err ~= "" then
        error(("exit status %d\n---- stdout\n%s---- stderr\n%s"):format(status, out, err), 2)
    end
    return out
end

-- An environment for children whose host leaks, where the tests run under a leak checker: Lua cannot call a finalizer
-- without memory, and takes none any more in lua_close.
child.host_leaks = "ASAN_OPTIONS=detect_leaks=0"
child.sanitized = os.getenv("ASAN_OPTIONS") ~= nil

-- Can this shell command be run here?
function child.can(command) return (os.execute(command .. " >/dev/null 2>&1")) == true end

-- Compiles host.c; returns the path of the program. The caller removes it.
function child.compile_host()
    local path, lua = os.tmpname(), "lua" .. _VERSION:match("%d+%.%d+")
    local command = ("env -u LD_PRELOAD ${CC:-cc} -std=c11 -Wall -Wextra -Werror -g tests/lua/host.c -o %s "
        .. "$(env -u LD_PRELOAD pkg-config --cflags --libs %s) -pthread"):format(path, lua)
    assert(os.execute(command), "tests/lua/host.c could not be compiled")
    return path
end

-- A file that keeps what is written to it.
function child.new_file()
    local file = { text = "" }
    function file:write(text)
        self.text = self.text .. text
        return self
    end
    return file
end

-- What a started child does: it runs each line that it reads and answers with what it returns, as Lua values.
local loop = [[
io.stdout:setvbuf("line")
for line in io.lines() do
    if line == "" then break end
    local answer = table.pack(pcall(assert(load(line))))
    for i = 1, answer.n do
        answer[i] = type(answer[i]) == "number" and answer[i] or ("%q"):format(tostring(answer[i]))
    end
    print("return " .. table.concat(answer, ", "):gsub("\\\n", "\\n"))
end
]]

local started = {}
started.__index = started

-- Runs code of one or several lines in the child; returns what it returns, with all but numbers as strings.
function started:run(code)
    self.input:write((code:gsub("\n", " ")), "\n")
    self.input:flush()
    local line = self.output:read("l") or error("the child has ended", 2)
    local answer = table.pack(assert(load(line))())
    if answer[1] ~= "true" then error(answer[2], 2) end
    return table.unpack(answer, 2, answer.n)
end

-- Has it end by itself, and waits for that.
function started:stop()
    if not self.output then return end
    self.input:write("\n")
    self.input:close()
    self.output:close()
    self.output = nil
    os.remove(self.script)
end
started.__close = started.stop

-- Ends it with SIGKILL.
function started:kill()
    os.execute("kill -9 " .. self.pid)
    self:stop()
end

-- Starts a child that is told what to do by run; its pid is in the field pid. env is as above.
function child.start(env)
    local script, fifo = os.tmpname(), os.tmpname()
    write_file(script, loop)
    os.remove(fifo)
    assert(os.execute("mkfifo " .. fifo))
    local command = ("exec env %s %s %s <%s"):format(env or "", quote(child.interpreter()), script, fifo)
    local output = assert(io.popen(command))
    local input = assert(io.open(fifo, "r+")) -- so that writing to a child that has ended is no SIGPIPE
    local self = setmetatable({ input = input, output = output, script = script }, started)
    self.pid = self:run [[local pipe = io.popen "echo $PPID"; local pid = pipe:read "n"; pipe:close(); return pid]]
    os.remove(fifo)
    return self
end

return child
