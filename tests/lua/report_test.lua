-- SPDX-License-Identifier: MIT
--
-- Guards what is printed, and where: the block of the core, unchanged, on io.stdout or options.file; and that a report
-- which cannot be written loses neither the result nor an error of fn.
local child = require "child"
local codetimer = require "codetimer"

local function nothing() end

describe("the report", function()
    it("is the block, then a blank line, and tostring gives the same bytes", function()
        local file = child.new_file()
        local result = codetimer.time("A Title", 1000, nothing, { file = file })
        assert.equal(tostring(result), file.text)
        local lines = {}
        for line in file.text:gmatch("(.-)\n") do lines[#lines + 1] = line end
        assert.equal("A Title", lines[1])
        assert.equal("    Calls:          1,000", lines[2])
        assert.truthy(lines[3]:find("^    Time Elapsed:   [%d,.]+ m?s?n?s$"), lines[3])
        assert.truthy(lines[4]:find("^    Per Call:       [%d,.]+ "), lines[4])
        assert.truthy(lines[5]:find("^    CPU Cycles:     "), lines[5])
        assert.equal("    GC Minor:       0", lines[6])
        assert.equal("    GC Major:       0", lines[7])
        assert.equal("", lines[8])
        assert.equal(8, #lines)
    end)

    it("goes to io.stdout as it is at that moment", function()
        local file, stdout = child.new_file(), io.stdout
        io.stdout = file
        local ok, result = pcall(codetimer.time, "redirected", 1, nothing)
        io.stdout = stdout
        assert.is_true(ok)
        assert.equal(tostring(result), file.text)
    end)

    it("escapes control bytes and invalid UTF-8 in the name", function()
        local file = child.new_file()
        codetimer.time("a\nb\27[31m\0\xff" .. ("x"):rep(10000), 1, nothing, { file = file })
        local first = file.text:match("^[^\n]*")
        assert.falsy(first:find("%c"))
        assert.is_not_nil(utf8.len(first))
        assert.truthy(first:find("^a.*b.*31m"), first)
    end)

    it("is not printed for an empty name, nor with file = false", function()
        local file = child.new_file()
        assert.equal(3, codetimer.time("", 3, nothing, { file = file }).calls)
        assert.equal("", file.text)
        assert.equal("", child.check [[
            local codetimer = require "codetimer"
            assert(codetimer.time("", 3, function() end).calls == 3)
            assert(codetimer.time("silent", 3, function() end, { file = false }).calls == 3)
            pcall(codetimer.time, "silent", 3, error, { file = false })]])
    end)
end)

describe("standard output", function()
    local program = [[require "codetimer".time("Title", 0, print)]]

    it("has no colour when it is no terminal", function()
        local out = child.check(program, { env = "-u FORCE_COLOR TERM=xterm" })
        assert.falsy(out:find("\27", 1, true))
        assert.equal("Title\n", out:sub(1, 6))
    end)

    it("obeys FORCE_COLOR and NO_COLOR", function()
        local yellow = child.check(program, { env = "-u NO_COLOR FORCE_COLOR=1" })
        assert.truthy(yellow:find("^\27%[[%d;]*33m.*Title.*\27%[0?m"), yellow)
        local plain = child.check(program, { env = "-u FORCE_COLOR NO_COLOR=1" })
        assert.falsy(plain:find("\27", 1, true))
    end)

    it("has colour on a terminal", function()
        if not child.can("command -v script") then return pending("no script command") end
        local env = "-u NO_COLOR -u FORCE_COLOR " .. child.host_leaks .. " TERM="
        local out = child.check(program, { env = env .. "xterm", terminal = true })
        assert.truthy(out:find("^\27%[[%d;]*33m.*Title"), out)
        assert.falsy(child.check(program, { env = env .. "dumb", terminal = true }):find("\27", 1, true))
    end)

    it("is ASCII where the locale is not UTF-8; C counts as UTF-8", function()
        for _, case in ipairs {
            { "LC_ALL=de_DE.ISO-8859-1", "Per Call:       -\n" }, { "LC_ALL=C", "Per Call:       —\n" },
            { "LC_ALL=de_DE.UTF-8", "Per Call:       —\n" },
            { "LC_ALL= LC_CTYPE=en_US.ISO-8859-15", "Per Call:       -\n" },
        } do
            local out = child.check(program, { env = case[1] })
            assert.truthy(out:find(case[2], 1, true), case[1] .. "\n" .. out)
        end
    end)

    it("shows numbers alike in every locale", function()
        local out = child.check([[
            os.setlocale("")
            require "codetimer".time("Title", 1234567, function() end)]], { env = "LC_ALL=de_DE.UTF-8" })
        assert.truthy(out:find("Calls:          1,234,567\n", 1, true), out)
        assert.truthy(out:find("Time Elapsed:   [%d,]*%d%.%d%d%d ms\n"), out)
    end)

    local lost = [[
        local codetimer = require "codetimer"
        local result, message, code = codetimer.time("lost", 5, function() end)
        assert(result == nil and type(message) == "string" and code == %d, tostring(message))
        assert(codetimer.last_result().calls == 5)
        local ok, oops = pcall(codetimer.time, "lost", 5, function() error("mine", 0) end)
        assert(not ok and oops == "mine")
        assert(codetimer.last_result().interrupted == "error")
        os.exit(0, true)]]

    it("that is closed gives nil, a message and a code; an error of fn wins", function()
        child.check(lost:format(9), { output = "&-" })
    end)

    it("that is full does too", function()
        if not child.can("test -c /dev/full") then return pending("no /dev/full") end
        child.check(lost:format(28), { output = "/dev/full" })
    end)

    it("that fn tries to close stays open, as Lua wants it", function()
        local out = child.check [[require "codetimer".time("closes", 2, function() io.stdout:close() end)]]
        assert.truthy(out:find("^closes\n    Calls:          2\n"), out)
    end)

    it("may be used by fn and by programs that fn starts", function()
        local out = child.check [[
            local function fn() io.write("a ") io.stdout:flush() os.execute("echo b") end
            require "codetimer".time("starts", 2, fn)]]
        assert.truthy(out:find("^a b\na b\nstarts\n    Calls:          2\n"), out)
    end)

    it("that is no more, or never was, is a refusal", function()
        child.check [[
            local codetimer = require "codetimer"
            io.stdout = nil
            local result, message, code = codetimer.time("lost", 5, function() end)
            assert(result == nil and message:find("no io.stdout", 1, true) and code == "CT_ENOTSUP")]]
        child.check [[
            local codetimer = require "codetimer"
            package.loaded.io, io = nil, nil
            local result, message, code = codetimer.time("lost", 5, function() end)
            assert(result == nil and message:find("no io.stdout", 1, true) and code == "CT_ENOTSUP")
            assert(codetimer.last_result().calls == 5)]]
    end)
end)

describe("options.file", function()
    it("may be a file, which is flushed", function()
        local path = os.tmpname()
        local file = assert(io.open(path, "w"))
        local result = codetimer.time("to a file", 1, nothing, { file = file })
        local reader = assert(io.open(path))
        assert.equal(tostring(result), reader:read("a"))
        reader:close()
        file:close()
        os.remove(path)
    end)

    it("may return nothing from write", function()
        assert.equal(2, codetimer.time("x", 2, nothing, { file = { write = function() end } }).calls)
    end)

    it("that refuses to write gives its answer", function()
        local file = { write = function() return nil, "full", 28 end }
        local result, message, code = codetimer.time("refused", 2, nothing, { file = file })
        assert.is_nil(result)
        assert.equal("full", message)
        assert.equal(28, code)
        assert.equal("refused", codetimer.last_result().name)
    end)

    it("that raises raises, and the result is there", function()
        local oops = {}
        local file = { write = function() error(oops) end }
        local ok, seen = pcall(codetimer.time, "raised", 2, nothing, { file = file })
        assert.is_false(ok)
        assert.is_true(rawequal(oops, seen))
        assert.equal("raised", codetimer.last_result().name)
        assert.is_nil(codetimer.last_result().interrupted)
    end)

    it("that raises does not hide the error of fn", function()
        local oops = {}
        local file = { write = function() error("write") end }
        local ok, seen = pcall(codetimer.time, "both", 2, function() error(oops) end, { file = file })
        assert.is_false(ok)
        assert.is_true(rawequal(oops, seen))
    end)

    it("may yield while it writes", function()
        local file = { write = function(_, text) coroutine.yield(text) end }
        local run = coroutine.wrap(function() return codetimer.time("yields", 2, nothing, { file = file }) end)
        local text = run()
        assert.equal(text, tostring(run()))
    end)
end)
