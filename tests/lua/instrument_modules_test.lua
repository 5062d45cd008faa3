-- SPDX-License-Identifier: MIT
--
-- Guards instrument by name: modules that are loaded and those to come, the globals of the script, and the members list
-- that is followed. Fails if require behaves otherwise than without it (messages, results, package.loaded), if a module
-- is missed, or if something is left in package.searchers or in the globals.
local child = require "child"

local folder

-- Runs a program that finds these modules (name -> code) and has the table codetimer; returns what it prints.
local function check(modules, code, options)
    for name, text in pairs(modules) do
        local file = assert(io.open(("%s/%s.lua"):format(folder, name), "w"))
        file:write(text)
        file:close()
    end
    return child.check(("package.path = %q .. package.path\n"):format(folder .. "/?.lua;")
        .. "codetimer = require 'codetimer'\n"
        .. "function names(list) print(table.concat(list, ' ')) end\n"
        .. "function calls(key) local c = codetimer.counters(key); print(key, c and c.calls) end\n"
        .. "script = arg[0]:match('[^/]*$'):gsub('%.[^.]*$', '')\n" .. code, options)
end

before_each(function()
    folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir " .. folder))
end)
after_each(function() os.execute("rm -r " .. folder) end)

local shop = "local M = { sub = {} } function M.f(...) return ... end function M.sub.g() return 1 end return M"

describe("instrument, of a module by its name,", function()
    it("measures it when it is loaded already, and when it comes", function()
        local program = [[
            %s
            local shop = require "shop"
            shop.f() shop.sub.g()
            names(handle.reached) calls "shop.f" calls "shop.sub.g"
        ]]
        local expected = "shop.f shop.sub.g\nshop.f\t1\nshop.sub.g\t1\n"
        assert.equal(expected, check({ shop = shop }, program:format "handle = codetimer.instrument 'shop'"))
        assert.equal(expected,
            check({ shop = shop }, program:format "require 'shop' handle = codetimer.instrument 'shop'"))
    end)

    it("takes another prefix for it, patterns, and modules that require each other", function()
        assert.equal("store.f store.sub.g\n", check({ shop = shop }, [[
            local handle = codetimer.instrument("shop", "store")
            require "shop"
            names(handle.reached)
        ]]))
        local modules = { shop = shop,
            a = "local M = {} package.loaded.a = M M.b = require 'b' function M.f() return 1 end return M",
            b = "local a = require 'a' return { a = a, g = function() end }" }
        assert.equal("a.f b.g shop.sub.g\n", check(modules, [[
            local handle = codetimer.instrument "a*;b*;*.g"
            require "a" require "shop"
            names(handle.reached)
        ]]))
    end)

    it("measures a module that is a function, and passes on any other", function()
        local modules = { only = "return function(x) return x + 1 end", none = "", no = "return false",
            five = "return 5", own = "package.loaded[...] = 'mine'" }
        local program = [[
            %s
            package.preload.pre = function(name, extra) return name .. extra end
            for _, name in ipairs { "none", "no", "five", "own", "pre", "no" } do
                print(require(name), package.loaded[name])
            end
            print(select("#", require "only"), package.loaded.only == require "only", require "only" (1))
        ]]
        local bare = check(modules, program:format "")
        local measured = check(modules, program:format "codetimer.instrument '*'")
        assert.equal(bare:gsub(folder, ""), (measured:gsub(folder, "")))
        assert.equal("only\t1\nonly\t1\ntrue\n", (check(modules, [[
            codetimer.instrument "only"
            local only = require "only"
            only(1)
            local key = script .. "/only"
            print("only", codetimer.counters(key).calls)
            codetimer.uninstrument()
            package.loaded.only(1) only(1)
            print("only", codetimer.counters(key).calls)
            print(codetimer.unwrap(only) == package.loaded.only)
        ]])))
    end)

    it("fails as without it, with the same messages, and searches as before", function()
        local modules = { bad = "return +", fails = "error('no luck')", deep = "return require 'missing'" }
        local program = [[
            %s
            local asked = {}
            table.insert(package.searchers, function(name) asked[#asked + 1] = name return "\n\tno luck" end)
            for _, name in ipairs { "missing", "bad", "fails", "deep" } do print(pcall(require, name)) end
            print(pcall(require))
            print(asked[1])
            package.searchers = nil
            print(pcall(require, "missing"))
        ]]
        local bare = check(modules, program:format "")
        assert.is_truthy(bare:find("no luck", 1, true))
        assert.equal(bare, check(modules, program:format "codetimer.instrument '*'"))
    end)

    it("sees modules that a searcher finds which was put in front later", function()
        assert.equal("first.f odd.f\n", check({ first = "table.insert(package.searchers, 1, function(name) "
            .. "if name:find '^odd' then return function() return { f = function() end } end end end) "
            .. "return { f = function() end }" }, [[
            local handle = codetimer.instrument "first*;odd*"
            require "first" require "odd"
            names(handle.reached)
        ]]))
    end)

    it("measures modules of Lua itself only by their names", function()
        assert.equal("0\n17\ntrue\n2 XX\n2\n", check({}, [[
            codetimer.instrument "*"
            local some = 0
            for _, library in ipairs { string, table, math, os, io, coroutine, debug, utf8, package } do
                for _, f in pairs(library) do if codetimer.unwrap(f) ~= f then some = some + 1 end end
            end
            print(some)
            local handle = codetimer.instrument "string.*"
            print(#handle.reached)
            print(codetimer.unwrap(print) == print)
            print(codetimer.counters("string.upper").calls + 2, ("x"):rep(2):upper())
            print(codetimer.counters("string.upper").calls + codetimer.counters("string.rep").calls)
        ]]):gsub("\tXX", " XX"), nil)
    end)
end)

describe("instrument, of the script's globals,", function()
    it("measures what is there and what comes, nested too, under the script's name", function()
        assert.equal("before late Late.g main\n1 1\n", (check({}, [[
            function before() end
            local handle = codetimer.instrument(script .. ".*;!*.names;!*.calls")
            function late() end
            Late = {}
            function Late.g() end
            function main() Late.g() late() end
            main()
            local short = {}
            for i, name in ipairs(handle.reached) do short[i] = name:sub(#script + 2) end
            table.sort(short, function(a, b) return a:lower() < b:lower() end)
            print(table.concat(short, " "))
            print(codetimer.counters(script .. ".late").calls, codetimer.counters(script .. ".Late.g").calls)
        ]]):gsub("\t", " ")))
    end)

    it("leaves nothing in the globals, and what the program has there alone", function()
        assert.equal("nil\nnil\ntrue\ntrue\tnil\nf\n", check({}, [[
            codetimer.instrument "*"
            codetimer.uninstrument()
            print(getmetatable(_G))
            codetimer.instrument "other.*"
            print(getmetatable(_G))
            local own = { __newindex = function(t, k, v) rawset(t, k, v) print(k) end }
            setmetatable(_G, own)
            codetimer.uninstrument()
            local set = own.__newindex
            codetimer.instrument "*"
            print(own.__newindex == set)
            codetimer.uninstrument()
            print(getmetatable(_G) == own and own.__newindex == set, rawget(own, "__index"))
            function f() end
        ]]))
    end)

    it("shares its metatable with a program that adds to it", function()
        assert.equal("false\ttrue\nnil\n", check({}, [[
            codetimer.instrument "*"
            local mt = getmetatable(_G)
            mt.__index = function(_, k) error("undeclared " .. k) end
            print(pcall(function() return undeclared end) , getmetatable(_G) == mt)
            codetimer.uninstrument()
            print(mt.__newindex)
        ]]))
    end)
end)

describe("instrument, by the members list,", function()
    it("measures nothing without one, and follows it from then on", function()
        assert.equal("0\nshop.f\nshop.f shop.sub.g\n2\t1\n0\n", check({ shop = shop }, [[
            local handle = codetimer.instrument()
            local shop = require "shop"
            print(#handle.reached)
            codetimer.configure { members = "shop.f" }
            codetimer.poll()
            names(handle.reached)
            shop.f() shop.sub.g()
            codetimer.configure { members = "shop.*" }
            codetimer.poll()
            names(handle.reached)
            shop.f() shop.sub.g()
            print(codetimer.counters("shop.f").calls, codetimer.counters("shop.sub.g").calls)
            codetimer.uninstrument()
            codetimer.configure { members = "*" }
            codetimer.poll()
            print(codetimer.unwrap(shop.f) == shop.f and 0)
        ]]))
    end)
end)
