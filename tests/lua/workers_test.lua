-- SPDX-License-Identifier: MIT
--
-- Guards the demo: three workers that sleep random times, of which a file says who is measured. After an edit of the
-- file the third worker appears and the second disappears, seen from outside, within a second; how long it took is
-- printed, since only a quiet machine can promise that. Fails if the file is not followed, in place or replaced.
local child = require "child"
local codetimer = require "codetimer"
local live = require "live"

local list
before_each(function()
    live.make_folder()
    list = os.tmpname()
end)
after_each(function()
    live.remove_folder()
    os.remove(list)
end)

local function write(path, text)
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
end

local function replace(path, text)
    write(path .. ".new", text)
    assert(os.rename(path .. ".new", path))
end

-- Only a program that hangs ever makes it wait that long. Returns the milliseconds that it took.
local function wait_until(what, is_so)
    local start = codetimer.now_ns()
    while not is_so() do
        assert(codetimer.now_ns() - start < 60e9, "60 s without " .. what)
        os.execute "sleep 0.01"
    end
    return (codetimer.now_ns() - start) / 1e6
end

-- Starts the demo; returns its output, its view and a function that tells the enabled workers that have calls.
local function start(env)
    local command = "CODETIMER_DIR=%s %s exec %s examples/workers.lua %s"
    local output, view = assert(io.popen(command:format(live.folder, env or "", child.interpreter(), list))), nil
    local pid = tonumber(output:read("l"):match("^process (%d+): "))
    wait_until("a segment", function()
        view = live.attach(pid)
        return view
    end)
    return output, view, function()
        local names, sample = {}, view:sample(false)
        for _, name in ipairs { "first", "second", "third" } do
            local key = "workers/workers." .. name
            if view.counters[key] and view.counters[key].enabled and sample[key].calls > 0 then
                names[#names + 1] = name
            end
        end
        return table.concat(names, " ")
    end, pid
end

describe("examples/workers.lua", function()
    for way, edit in pairs { ["in place"] = write, ["by another file"] = replace } do
        it("follows its file, changed " .. way, function()
            write(list, "# two\n*.first\n*.second\n")
            local output, view, seen, pid = start()
            wait_until("two workers", function() return seen() == "first second" end)
            edit(list, "*.first; *.third # not the second\n")
            local took = wait_until("the third worker", function() return seen() == "first third" end)
            local second = view:sample(false)["workers/workers.second"].calls
            edit(list, "*.second")
            local back = wait_until("the second worker", function() return seen() == "second" end)
            assert.is_true(view:sample(false)["workers/workers.second"].calls >= second)
            os.execute("kill " .. pid)
            output:close()
            view:close()
            print(("the workers were switched %.0f and %.0f ms after the edit"):format(took, back))
        end)
    end

    it("sleeps without LuaSocket too", function()
        write(list, "*.third")
        local output, view, seen, pid = start("LUA_INIT='package.preload.socket = error'")
        wait_until("the third worker", function() return seen() == "third" end)
        os.execute("kill " .. pid)
        output:close()
        view:close()
    end)

    it("counts what the workers count themselves, and is switched from outside too", function()
        write(list, "*.first; *.second")
        local output, view, seen, pid = start()
        wait_until("two workers", function() return seen() == "first second" end)
        local key = "workers/workers.third"
        assert.same({ 0, false }, { view:sample()[key].calls, view.counters[key].enabled })
        assert.is_true(view:enable("*.third"))
        wait_until("the third worker", function() return seen() == "first second third" end)
        os.execute("kill -INT " .. pid)
        local text = output:read("a")
        output:close()
        local last = view:sample()
        view:close()
        assert.truthy(text:find("interrupted!", 1, true), text)
        for name, truth in text:gmatch("(%a+): (%d+) calls, [%d.]+ ms each") do
            local sample = last["workers/workers." .. name]
            local calls = sample.calls - sample.cancelled -- its end cancels those under way
            assert.truthy(name == "third" and calls > 0 and calls <= tonumber(truth) or calls == tonumber(truth), text)
        end
        for _, name in ipairs { "first", "second", "third" } do
            assert.truthy(text:find("workers." .. name, 1, true), text)
        end
    end)
end)
