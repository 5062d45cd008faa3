-- SPDX-License-Identifier: MIT
--
-- Guards instrument where memory is short, where its program answers back, where several states meet, and where a state
-- ends. Fails if lack of memory leaves a field replaced or reaches a require, or if a handle outlives what it holds.
local child = require "child"
local codetimer = require "codetimer"

describe("instrument", function()
    local host
    setup(function() host = child.compile_host() end)
    teardown(function() os.remove(host) end)

    it("short of memory leaves nothing behind, and works the next time", function()
        child.check([[
            local codetimer = require "codetimer"
            local f, g, meta = function() end, function() end, { __call = function() end }
            local call, searchers = meta.__call, table.pack(table.unpack(package.searchers))
            local shop = { f = f, sub = setmetatable({ g = g, again = f }, meta) }
            package.loaded.shop = shop
            local function is_as_before()
                assert(shop.f == f and shop.sub.g == g and shop.sub.again == f and meta.__call == call)
                assert(#package.searchers == #searchers and getmetatable(_G) == nil)
                for i, searcher in ipairs(searchers) do assert(package.searchers[i] == searcher) end
                assert(codetimer.uninstrument() == 0)
            end
            collectgarbage "stop"
            for _, way in ipairs { function() codetimer.instrument(shop, "shop") end,
                    function() codetimer.instrument "shop" end, function() codetimer.instrument "*" end } do
                local failures = 0
                for k = 0, 100000 do
                    local ok, message = short(k, way)
                    if ok then break end
                    assert(message == "not enough memory", message)
                    failures = failures + 1
                    is_as_before()
                end
                assert(failures > 5, failures)
                assert(shop.f ~= f and meta.__call ~= call)
                shop.f() shop.sub.again() shop.sub.g() shop.sub()
                assert(codetimer.uninstrument() == 1)
                is_as_before()
            end
            assert(codetimer.counters("shop.f").calls == 6)]], { host = host })
    end)

    it("short of memory loads modules all the same", function()
        child.check([[
            local codetimer = require "codetimer"
            local loads = 0
            package.preload.shop = function() return shop end
            codetimer.instrument "*"
            collectgarbage "stop"
            for k = 0, 100000 do
                shop = { f = function() return 7 end }
                package.loaded.shop = nil
                local found
                local ok, message = short(k, function() found = require "shop" end)
                assert(ok or message == "not enough memory", message)
                assert(shop.f() == 7)
                if ok then
                    assert(found == shop and package.loaded.shop == shop)
                    loads = loads + 1
                    if codetimer.unwrap(shop.f) ~= shop.f then break end -- there was enough for all
                end
            end
            assert(loads > 1, loads)
            codetimer.uninstrument()]], { host = host })
    end)

    it("is each state's own, and is put up with at the end of one", function()
        child.check([[
            local code = 'local codetimer = require "codetimer" local t = { f = function() return "fine" end } '
                .. 'codetimer.instrument(t, "both") codetimer.instrument "*" codetimer.instrument() '
                .. 'package.loaded.t = t t.f() '
                .. 'setmetatable({}, { __gc = function() t.f() codetimer.uninstrument() t.f() end }) return t.f()'
            assert(other(code) == "fine")
            assert(load(code)() == "fine")
            for _ = 1, 50 do
                start(code)
                assert(load(code)() == "fine")
                assert(join() == "fine")
            end]], { host = host })
    end)

    it("stands a trace function that ends it, or asks for more", function()
        local t, bare = {}, {}
        for i = 1, 20 do
            bare[i] = function() return i end
            t["f" .. i] = bare[i]
        end
        codetimer.trace = function(event, key)
            if event == "created" and key == "st1/st1.f11" then codetimer.uninstrument() end
            if event == "created" and key == "st1/st1.f3" then codetimer.instrument(t, "st1b") end
        end
        finally(function()
            codetimer.trace = nil
            codetimer.uninstrument()
        end)
        local handle = codetimer.instrument(t, "st1")
        assert.is_false(handle.active)
        for i = 1, 20 do assert.equal(bare[i], t["f" .. i]) end
        codetimer.trace = function(event) if event == "created" then error "no" end end
        codetimer.instrument(t, "st2")
        for i = 1, 20 do assert.equal(i, t["f" .. i]()) end
    end)

    it("tells of functions that others have taken before", function()
        local function helper() return 1 end
        local t = { helper = helper, user = function() return helper() end }
        local handle = codetimer.instrument(t, "st3")
        finally(function() codetimer.uninstrument() end)
        assert.equal(1, t.user())
        assert.equal(0, codetimer.counters("st3.helper").calls)
        assert.same({ { member = "st3.helper",
            reason = "st3.user has it in a local variable: its calls from there are not seen" } }, handle.unreachable)
    end)
end)
