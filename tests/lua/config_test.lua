-- SPDX-License-Identifier: MIT
--
-- Guards the members list that comes from a file or a provider: edits act in a program that polls and in one that only
-- makes measured calls, callbacks are told of every change, and what cannot be used or fails is told once and harms
-- nothing. Fails if a callback or a provider that raises ends the following, or if an unchanged source undoes what
-- others wrote.
local child = require "child"
local codetimer = require "codetimer"
local live = require "live"

local path

before_each(function()
    live.make_folder()
    path = live.folder .. "/members"
end)
after_each(live.remove_folder)

-- Writes into the file in one go.
local function put(text)
    local file = assert(io.open(path, "wb"))
    file:setvbuf("full", 1 << 20)
    file:write(text)
    file:close()
end

-- Waits until the code returns this, in the process.
local function wait_for(process, expected, code)
    local deadline = os.time() + 60
    local seen
    repeat
        seen = process:run(code)
        if seen == expected then return end
        os.execute("sleep 0.02")
    until os.time() > deadline
    error(("%s is %s, not %s"):format(code, seen, expected), 2)
end

-- A process with the two functions, what its trace function was told in "told", and settings in "s".
local function start(env)
    local process = live.start_two(env)
    process:run [[
        told = {};
        function codetimer.trace(event, ...)
            if event ~= "created" then told[#told + 1] = table.concat({ event, ... }, ", ") end
        end;
        s = codetimer.configure();
        function tell() local text = table.concat(told, "|"); told = {}; return text end
    ]]
    return process
end

local function configure(process, file) process:run(("codetimer.configure{ file = %q }"):format(file or path)) end

describe("a file", function()
    it("is followed by poll", function()
        local process <close> = start()
        put("*.f")
        configure(process)
        assert.same({ "*.f", "file " .. path, path, "nil" },
            { process:run "return s.members, s.source, s.file, s.problem" })
        put("*.g\n*.h # not there\n\\x")
        wait_for(process, "*.g\n*.h # not there\n\\x", "codetimer.poll() return s.members")
        local told = process:run "return tell()"
        assert.equal(1, told:find("list, file " .. path .. "|", 1, true), told)
        assert.truthy(told:find("skipped, \\x, ", 1, true), told)
        assert.truthy(told:find("unmatched, *.h", 1, true), told)
        assert.truthy(process:run("return s"):find("from file " .. path, 1, true))
    end)

    it("is followed by measured calls, also when all are switched off", function()
        local process <close> = start()
        put("*.f")
        configure(process)
        put("*.none")
        wait_for(process, "*.none", "f() f() g() return s.members")
        put("*.g")
        wait_for(process, "*.g", "f() f() g() return s.members")
        local before = process:run [[return codetimer.counters("shop/shop.g").calls]]
        process:run "f() g()"
        assert.equal(before + 1, process:run [[return codetimer.counters("shop/shop.g").calls]])
    end)

    it("need not be there", function()
        local process <close> = start()
        configure(process)
        assert.equal("file " .. path .. ": there is no such file", process:run "return s.problem")
        assert.equal("unusable, file " .. path .. ", there is no such file", process:run "return tell()")
        put("*.f")
        wait_for(process, "*.f", "codetimer.poll() return s.members")
        os.remove(path)
        wait_for(process, "file " .. path .. ": there is no such file", "codetimer.poll() return s.problem")
        assert.equal("*.f", process:run "tell() return s.members")
        put("*.f")
        wait_for(process, "nil", "codetimer.poll() return s.problem")
        assert.equal("usable, file " .. path, process:run "return tell()")
    end)

    it("that cannot be used is told once", function()
        local process <close> = start()
        put("*.f")
        configure(process)
        process:run "tell()"
        put("\xff\xfe*\0")
        local problem = "it is in UTF-16 or UTF-32, as its first 2 bytes say: save it as UTF-8"
        wait_for(process, ("file %s: %s"):format(path, problem), "codetimer.poll() return s.problem")
        put("\xff\xfe*\0x\0")
        for _ = 1, 4 do
            os.execute("sleep 0.25")
            process:run "codetimer.poll()"
        end
        assert.equal(("unusable, file %s, %s"):format(path, problem), process:run "return tell()")
        assert.equal("*.f", process:run "return s.members")
    end)

    it("is named by CODETIMER_CONFIG", function()
        put("*.g")
        local process <close> = live.start_two("CODETIMER_MEASURE='*.f' CODETIMER_CONFIG=" .. path)
        assert.equal(0, process:run [[return codetimer.counters("shop/shop.f").calls]])
        assert.equal(1, process:run [[return codetimer.counters("shop/shop.g").calls]])
        put("*.f")
        wait_for(process, "file " .. path .. " *.f",
            "codetimer.poll() local s = codetimer.configure() return s.source .. ' ' .. s.members")
    end)

    it("does not undo what others wrote, until it changes or is read anew", function()
        local process <close> = start()
        put("*.f")
        configure(process)
        local view <close> = assert(live.attach(process.pid))
        assert.is_true(view:enable("*.g"))
        os.execute("sleep 0.6")
        assert.same({ "*.f;*.g", "controller" }, { process:run "codetimer.poll() return s.members, s.source" })
        assert.same({ "true", "*.f" }, { process:run "return s:reload(), s.members" })
        process:run [[codetimer.configure{ members = "*" }]]
        process:run [[codetimer.configure{ file = "" }]]
        put("*.g")
        os.execute("sleep 0.6")
        assert.same({ "*", "nil" }, { process:run "codetimer.poll() return s.members, s.file" })
        process:run(("s.file = %q"):format(path))
        assert.same({ "*.g", path, "nil" },
            { process:run "local file = s.file; s.file = nil return s.members, file, s.file" })
    end)
end)

describe("on_change", function()
    it("is called after each change, with the settings", function()
        local process <close> = start()
        process:run [[
            seen = {};
            one = s:on_change(function(settings) seen[#seen + 1] = "1 " .. settings.members end);
            s:on_change(function(settings) seen[#seen + 1] = "2 " .. settings.source end)
        ]]
        process:run [[codetimer.configure{ members = "a" }]]
        assert.equal("1 a, 2 configure", process:run "return table.concat(seen, ', ')")
        local view <close> = assert(live.attach(process.pid))
        assert.is_true(view:set_members("b"))
        wait_for(process, "1 a, 2 configure, 1 b, 2 controller", "f() return table.concat(seen, ', ')")
        assert.same({ "true", "false" }, { process:run "return s:remove_on_change(one), s:remove_on_change(one)" })
        process:run [[codetimer.poll() codetimer.configure{ members = "c" }]]
        assert.equal("1 a, 2 configure, 1 b, 2 controller, 2 configure", process:run "return table.concat(seen, ', ')")
    end)

    it("that raises stays, and the others are called", function()
        local process <close> = start()
        process:run [[
            calls = 0;
            s:on_change(function() error("no", 0) end);
            s:on_change(function() calls = calls + 1 end);
            s:on_change(function() error({}) end);
            codetimer.configure{ members = "*.f" };
        ]]
        assert.equal("list, configure|failed, on_change, no|failed, on_change, (error object is a table)",
            process:run "return tell()")
        process:run [[codetimer.configure{ members = "*.g" }]]
        assert.equal(2, process:run "return calls")
    end)

    it("may change the list, measure, poll, and take callbacks away", function()
        local process <close> = start()
        process:run [[
            n = 0;
            function change(settings)
                n = n + 1;
                f() codetimer.poll();
                if n < 5 then codetimer.configure{ members = "m" .. n } else settings:remove_on_change(change) end
            end;
            s:on_change(change) codetimer.configure{ members = "*.f" };
        ]]
        wait_for(process, 5, "codetimer.poll() return n")
        assert.equal("m4", process:run "codetimer.poll() return s.members")
        assert.equal(5, process:run [[codetimer.configure{ members = "x" } return n]])
    end)
end)

describe("a provider", function()
    it("is asked for its list", function()
        local process <close> = start()
        process:run [[
            p = { text = "*.f", asked = 0 };
            function p:members() self.asked = self.asked + 1; return self.text end;
            codetimer.configure{ provider = p }
        ]]
        assert.same({ "*.f", "provider", "true" }, { process:run "return s.members, s.source, s.provider == p" })
        assert.equal("*.g", process:run "p.text = '*.g'; codetimer.poll() return s.members")
        process:run [[codetimer.configure{ members = "x" }; codetimer.poll()]]
        assert.equal("x", process:run "p.text = nil; codetimer.poll() return s.members")
        process:run "p.text = '*.f'"
        wait_for(process, "*.f", "f() g() return s.members")
        process:run "s.provider = nil; asked = p.asked; codetimer.poll()"
        assert.same({ "0", "nil" }, { process:run "return tostring(p.asked - asked), s.provider" })
    end)

    it("that tells of changes is asked only then", function()
        local process <close> = start()
        process:run [[
            p = setmetatable({ asked = 0 }, { __index = {
                members = function(self) self.asked = self.asked + 1; return "m" .. self.asked end,
                subscribe = function(self, changed) self.changed = changed end } });
            codetimer.configure{ provider = p };
            for i = 1, 10 do codetimer.poll() end
        ]]
        assert.same({ 1, "m1" }, { process:run "return p.asked, s.members" })
        assert.same({ 2, "m2" }, { process:run "p.changed() codetimer.poll() return p.asked, s.members" })
        assert.same({ 3, "m3" }, { process:run "s:reload() return p.asked, s.members" })
    end)

    it("that fails is told once for each message, and the list stays", function()
        local process <close> = start()
        process:run [[
            codetimer.configure{ members = "*.f" } tell();
            p = { members = function(self) error(self.why, 0) end, why = "down" };
            codetimer.configure{ provider = p };
            codetimer.poll() codetimer.poll()
        ]]
        assert.equal("failed, provider, down", process:run "return tell()")
        assert.same({ "provider: down", "*.f" }, { process:run "return s.problem, s.members" })
        assert.equal("failed, provider, (error object is a table)",
            process:run "p.why = {}; codetimer.poll() codetimer.poll() return tell()")
        for code, message in pairs {
            ["return 7"] = "members() returned 7, not a string or nil",
            ["return ('x'):rep(65537)"] = "members must have at most 65536 bytes, got 65537",
            ["coroutine.yield()"] = "attempt to yield",
        } do
            local told = process:run(("function p.members() %s end; codetimer.poll() return tell()"):format(code))
            assert.truthy(told:find(message, 1, true), told)
        end
        process:run "function p:members() f() codetimer.poll() return '*.g' end"
        assert.equal("usable, provider|list, provider", process:run "codetimer.poll() return tell()")
        assert.same({ "nil", "*.g" }, { process:run "return s.problem, s.members" })
    end)

    it("is needed for reload, or a file", function()
        assert.has_error(function() codetimer.configure():reload() end,
            "there is nothing to reload: neither a file nor a provider is set; give one to configure, "
            .. "as in configure{ provider = ... }")
    end)
end)

it("configure refuses what is no file and no provider", function()
    local function refuses(message, options)
        assert.has_error(function() codetimer.configure(options) end,
            "bad argument #1 to 'configure' (" .. message .. ")")
    end
    refuses("file must be a path (a string), got 7", { file = 7 })
    refuses("file must not contain a NUL byte", { file = "a\0b" })
    local needs = "provider must be an object with a method members(), which returns a members list (a string) or nil"
    refuses(needs .. ", got a function", { provider = print })
    refuses(needs .. ", got a table", { provider = { members = "x" } })
    refuses("subscribe of the provider must be a method, provider:subscribe(changed)",
        { provider = { members = print, subscribe = 1 } })
    local done, message, code = codetimer.configure { file = ("x"):rep(5000) }
    assert.is_nil(done)
    assert.truthy(message:find("the path is too long", 1, true))
    assert.equal("CT_EINVAL", code)
    local settings = codetimer.configure()
    assert.has_error(function() settings.members = "x" end,
        'of codetimer.Settings only file and provider can be set, not the string "members"')
    assert.has_error(function() settings:on_change(7) end,
        "bad argument #1 to 'on_change' (fn must be a function or have __call, got 7)")
    assert.is_nil(settings.nothing)
    assert.is_nil(settings.file)
    assert.is_nil(settings.provider)
end)

it("leaves nothing open", function()
    put("*.f")
    child.check(([[
        local codetimer = require "codetimer"
        for _ = 1, 100 do codetimer.configure{ file = %q } end
        assert(io.open(%q)):close()
    ]]):format(path, path), { through = [[sh -c 'ulimit -n 20; exec "$@"' sh]] })
end)
