-- SPDX-License-Identifier: MIT
--
-- Guards instrument over tables: every function in reach is measured once, under its first name, by raw access, and
-- uninstrument leaves nothing behind. Fails if a metamethod of the program runs, a cycle is walked twice, a field that
-- somebody else has set is restored over, or a captured function goes on counting.
local codetimer = require "codetimer"

local counters, instrument, unwrap = codetimer.counters, codetimer.instrument, codetimer.unwrap

local function calls(key)
    local counter = counters(key)
    return counter and counter.calls
end

local function reasons(handle)
    local list = {}
    for _, each in ipairs(handle.unreachable) do list[each.member] = each.reason end
    return list
end

after_each(function() codetimer.uninstrument() end)

describe("instrument, of a table,", function()
    it("measures its functions, nested tables and C functions", function()
        local t = { f = function(...) return ... end, sub = { g = function() return 2 end }, length = string.len }
        t.sub[1] = function() return 3 end
        local handle = instrument(t, "it1")
        assert.same({ "it1.f", "it1.length", "it1.sub.1", "it1.sub.g" }, handle.reached)
        assert.same({}, handle.unreachable)
        assert.same({ 1, nil, 3, n = 3 }, table.pack(t.f(1, nil, 3)))
        assert.equal(5, t.sub.g() + t.sub[1]())
        assert.equal(4, t.length "four")
        for _, member in ipairs(handle.reached) do assert.equal(1, calls(member), member) end
        assert.equal("it1/it1.f", counters("it1.f").key)
    end)

    it("tells the trace function which patterns are wrong", function()
        local told = {}
        function codetimer.trace(event, ...)
            if event == "skipped" then told[#told + 1] = table.concat({ ... }, ", ") end
        end
        instrument [[it1b;x\q]]
        codetimer.trace = nil
        assert.same({ [[x\q, at byte 5: a backslash quotes only ; ! # * ? and itself]] }, told)
    end)

    it("measures classes: methods, metamethods, a callable class, and what is inherited where it is", function()
        local Base = {}
        Base.__index = Base
        function Base:size() return self.n end
        local Point = setmetatable({}, { __index = Base, __call = function(class, n)
            return setmetatable({ n = n }, class)
        end })
        Point.__index = Point
        function Point.__add(a, b) return Point(a.n + b.n) end
        function Point.__tostring() return "point" end
        function Point:get() return self.n end
        local handle = instrument({ Base = Base, Point = Point }, "it2")
        assert.same({ "it2.Base.size", "it2.Point.__add", "it2.Point.__call", "it2.Point.__tostring", "it2.Point.get" },
            handle.reached)
        local sum = Point(1) + Point(2)
        assert.equal(3, sum:get())
        assert.equal(3, sum:size())
        assert.equal("point", tostring(sum))
        assert.equal(3, calls "it2.Point.__call")
        for _, name in ipairs { "Base.size", "Point.__add", "Point.__tostring", "Point.get" } do
            assert.equal(1, calls("it2." .. name), name)
        end
    end)

    it("gives a base class that has no name of its own that of what inherits it", function()
        local Base = { ping = function() return 1 end }
        local handle = instrument({ Derived = setmetatable({}, { __index = Base }) }, "it3")
        assert.same({ "it3.Derived.ping" }, handle.reached)
    end)

    it("measures a function of two names once, under the shorter, then the first", function()
        local function f() end
        local t = { sub = { deep = f, a = f }, zz = f, z = f }
        t.sub.up, t.me = t, t
        local handle = instrument(t, "it4")
        assert.same({ "it4.z" }, handle.reached)
        assert.equal(t.z, t.zz)
        assert.equal(t.z, t.sub.deep)
        t.z() t.zz() t.sub.a() t.sub.deep()
        assert.equal(4, calls "it4.z")
        assert.is_nil(counters "it4.zz")
    end)

    it("leaves alone what is measured, what is codetimer's, and what looks at its caller", function()
        local own = codetimer.measured(function() end, "it5.own")
        local t = { own = own, now = codetimer.now_ns, codetimer = codetimer, error = error, where = debug.getinfo }
        local handle = instrument(t, "it5x")
        assert.same({}, handle.reached)
        assert.equal(own, t.own)
        assert.equal(error, t.error)
        assert.is_truthy(reasons(handle)["it5x.error"]:find("who calls it", 1, true))
        assert.is_truthy(reasons(handle)["it5x.where"])
        assert.equal(codetimer.now_ns, t.now)
        assert.same({}, instrument(codetimer, "it5y").reached)
    end)

    it("runs no metamethod, and tells of proxies and of fields that are made up", function()
        local function never() error "a metamethod ran" end
        local function never_either() error "a metamethod ran" end
        local guards = { __index = never, __newindex = never, __pairs = never_either, __len = never,
            __metatable = false }
        local guarded = setmetatable({ f = function() return 1 end }, guards)
        local hidden = { g = function() end }
        local proxy = setmetatable({}, { __index = hidden, __newindex = never })
        local bare = hidden.g
        local handle = instrument({ guarded = guarded, proxy = proxy }, "it6")
        assert.same({ "it6.guarded.__len", "it6.guarded.__pairs", "it6.guarded.f" }, handle.reached)
        assert.equal(1, guarded.f())
        assert.equal(bare, hidden.g)
        local why = reasons(handle)
        assert.is_truthy(why["it6.proxy.*"]:find("proxy", 1, true))
        assert.is_truthy(why["it6.guarded.*"]:find("__index", 1, true))
        assert.is_truthy(why["it6.guarded.__newindex"])
        codetimer.uninstrument(handle)
        assert.equal(never, guards.__len)
        assert.equal(never, guards.__newindex)
    end)

    it("stops at cycles, depth, other modules, and names that are none", function()
        local t = { ["a\0b"] = function() end, [true] = function() end, [1.5] = function() end }
        local at = t
        for _ = 1, 30 do
            at.next = { f = function() end }
            at = at.next
        end
        t.string, t.globals, t.loaded = string, _G, package.loaded
        local handle = instrument(t, "it7")
        assert.equal(16, #handle.reached)
        local why = reasons(handle)
        assert.is_truthy(why["it7" .. (".next"):rep(17)]:find("deep", 1, true))
        assert.is_truthy(why["it7.a"]:find("NUL", 1, true))
        assert.equal(string.len, unwrap(string.len))
    end)

    it("takes a million fields of data in its stride", function()
        local data = {}
        for i = 1, 1e6 do data[i] = i end
        assert.same({ "it8.f" }, instrument({ data = data, f = function() end }, "it8").reached)
    end)

    it("gives errors, yields and recursion as before", function()
        local t = {}
        function t.fails() error({ 7 }) end
        function t.yields(a) return coroutine.yield(a) end
        function t.deep(n) return n == 0 and 0 or 1 + t.deep(n - 1) end
        instrument(t, "it9")
        local _, value = pcall(t.fails)
        assert.same({ 7 }, value)
        assert.equal(1, counters("it9.fails").errors)
        local run = coroutine.wrap(t.yields)
        assert.equal(5, run(5))
        assert.equal(6, run(6))
        assert.equal(10000, t.deep(10000))
        assert.equal(10001, calls "it9.deep")
    end)

    it("puts counters in a category, and counts what the members list selects", function()
        local t = { f = function() end, g = function() end }
        codetimer.configure { members = "*;!it10.g" }
        instrument(t, "it10", { category = "group" })
        t.f() t.g()
        codetimer.configure { members = "*" }
        assert.equal(1, calls "group/it10.f")
        assert.equal(0, calls "group/it10.g")
    end)
end)

describe("uninstrument", function()
    it("puts back what it has replaced, also as a to-be-closed variable, and by name", function()
        local f, g = function() end, function() end
        local meta = { __call = g }
        local t = setmetatable({ f = f, sub = { f = f } }, meta)
        for _, way in ipairs { "handle", "close", "method", "name", "all" } do
            local handle = instrument(t, "un1")
            assert.is_true(handle.active)
            assert.is_true(t.f ~= f and t.sub.f ~= f and meta.__call ~= g)
            if way == "handle" then assert.equal(1, codetimer.uninstrument(handle)) end
            if way == "close" then do local closing <close> = handle end end -- luacheck: ignore
            if way == "method" then assert.is_true(handle:uninstrument()) end
            if way == "name" then assert.equal(1, codetimer.uninstrument("un1")) end
            if way == "all" then assert.equal(1, codetimer.uninstrument()) end
            assert.is_true(t.f == f and t.sub.f == f and meta.__call == g, way)
            assert.is_false(handle.active)
            assert.is_false(handle:uninstrument())
            assert.equal(0, codetimer.uninstrument(handle))
        end
        assert.equal(0, codetimer.uninstrument("un1"))
    end)

    it("leaves a field that somebody else has set", function()
        local t = { f = function() return 1 end, g = function() end, gone = function() end }
        instrument(t, "un2")
        local inner, own = t.f, function() return "own" end
        t.f = function() return inner() + 1 end
        t.g, t.gone = own, nil
        local patched = t.f
        codetimer.uninstrument()
        assert.equal(patched, t.f)
        assert.equal(2, t.f())
        assert.equal(own, t.g)
        assert.is_nil(t.gone)
        assert.equal(0, calls "un2.f")
    end)

    it("lets what was taken meanwhile run unmeasured, and be measured again", function()
        local f = function(...) return ... end
        local t = { f = f }
        instrument(t, "un3")
        local taken = t.f
        taken()
        local underway = coroutine.wrap(function() t.f(coroutine.yield) end)
        underway()
        codetimer.uninstrument()
        assert.same({ 1, nil, n = 2 }, table.pack(taken(1, nil)))
        assert.equal(2, calls "un3.f")
        assert.equal(f, unwrap(taken))
        t.f = taken
        instrument(t, "un3")
        assert.is_true(t.f ~= taken and unwrap(t.f) == f)
        t.f()
        assert.equal(3, calls "un3.f")
        taken()
        assert.equal(3, calls "un3.f")
    end)

    it("counts a call that was under way", function()
        local t = { f = function() coroutine.yield() end }
        instrument(t, "un4")
        local run = coroutine.wrap(t.f)
        run()
        local taken = t.f
        codetimer.uninstrument()
        run()
        assert.equal(1, calls "un4.f")
        coroutine.wrap(taken)()
        taken = coroutine.wrap(taken)
        taken() taken()
        assert.equal(1, calls "un4.f")
        assert.equal(0, counters("un4.f").in_flight)
    end)

    it("keeps what another handle holds", function()
        local f = function() end
        local t = { f = f }
        local first, second = instrument(t, "un5"), instrument(t, "un5b")
        assert.same({ "un5.f" }, first.reached)
        local wrapped = t.f
        first:uninstrument()
        assert.equal(wrapped, t.f)
        t.f()
        assert.equal(1, calls "un5.f")
        second:uninstrument()
        assert.equal(f, t.f)
        wrapped()
        assert.equal(1, calls "un5.f")
    end)

    it("holds no table or function that its program has dropped", function()
        local weak = setmetatable({}, { __mode = "k" })
        do
            local t = { f = function() end }
            t.self = t
            weak[t], weak[t.f] = true, true
            instrument(t, "un6")
        end
        collectgarbage()
        collectgarbage()
        assert.is_nil(next(weak))
    end)
end)

describe("instrument refuses", function()
    it("what is no table, name or list, a missing prefix, wrong options", function()
        local function message(...) return select(2, pcall(instrument, ...)) end
        assert.is_truthy(message(3):find("a table, the name of a module, patterns, or nil", 1, true))
        assert.is_truthy(message({}):find("prefix must be a string", 1, true))
        assert.is_truthy(message({}, ""):find("must not be empty", 1, true))
        assert.is_truthy(message({}, "a\0"):find("NUL", 1, true))
        assert.is_truthy(message(""):find("must not be empty", 1, true))
        assert.is_truthy(message("a*", "b"):find("patterns", 1, true))
        assert.is_truthy(message(nil, "b"):find("members list", 1, true))
        assert.is_truthy(message({}, "a", { deep = 1 }):find('unknown option: the string "deep"', 1, true))
        assert.is_truthy(message({}, "a", { category = "a/b" }):find("category", 1, true))
        assert.is_truthy(select(2, pcall(codetimer.uninstrument, 3)):find("what instrument returned", 1, true))
        assert.equal(0, codetimer.uninstrument())
    end)
end)
