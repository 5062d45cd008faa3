-- SPDX-License-Identifier: MIT
--
-- cli_statement.lua: setup and statement of codetimer-lua time, and what is said of their errors.
--
-- They become one chunk, in which the statement stands in a loop of its own, so that nothing is called in between.
-- Local variables of the setup are upvalues to the statement, as those of a file are to its functions.
local native = require "codetimer.native"

local head = "local function _codetimer_many(_codetimer_k) _codetimer_made = 0 for _codetimer_i = 1, _codetimer_k do "
local tail = "\n_codetimer_made = _codetimer_i end return _codetimer_many end\n"
    .. "return _codetimer_many, function() return _codetimer_made end"

local function lines_of(text)
    local lines = {}
    for line in (text .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = line end
    return lines
end

-- An error value in words, those of the interpreter.
local function describe(value)
    if type(value) == "string" or type(value) == "number" then return tostring(value) end
    local meta = getmetatable(value)
    if type(meta) == "table" and meta.__tostring then
        local done, text = pcall(tostring, value)
        if done then return text end
    end
    return ("(error object is a %s value)"):format(type(value))
end

-- An error of a chunk, with the line that it is about.
local function explain(message, chunk, lines)
    message = describe(message)
    local first, rest = message:match "^([^\n]*)(.*)$"
    local start = chunk .. ":"
    local line = first:sub(1, #start) == start and lines[tonumber(first:match("^(%d+):", #start + 1))]
    return line and ("%s\n    %s%s"):format(first, line, rest) or message
end

-- What is to be loaded is known to be Lua only when each part is by itself: a statement cannot end its loop. Returns
-- what is wrong with it.
local function check(text, chunk, what)
    local _, message = load(text, "=" .. chunk, "t")
    if message then return explain(message, chunk, lines_of(text)) end
    return not load(text .. "\nlocal _") and what .. " cannot return" or nil
end

-- Returns what makes a statement for a run: make(low_ns, high_ns) runs the setup, and those are of an empty turn. Or
-- nil, and what is wrong.
local function compile(setup, text)
    local chunk = setup == "" and "statement" or "setup and statement"
    local wrong = check(setup, "setup", "the setup") or check(text, "statement", "a statement")
    if wrong then return nil, wrong end
    local whole_text = "local _codetimer_made = 0 " .. setup .. (setup == "" and "" or "\n") .. head .. text .. tail
    local lines = lines_of(setup == "" and text or setup .. "\n" .. text)
    local run, message = load(whole_text, "=" .. chunk, "t")
    if not run then return nil, explain(message, chunk, lines) end
    return {
        make = function(low_ns, high_ns)
            local many, made = run()
            if type(many) ~= "function" or type(made) ~= "function" then error("the setup cannot return", 0) end
            return native.statement(many, made, low_ns, high_ns)
        end,
        explain = function(error_message) return explain(error_message, chunk, lines) end,
        chunk = chunk,
    }
end

-- The message and the user's part of the traceback, for xpcall.
local function trace(source)
    return function(message)
        if type(message) == "string" and message:match "interrupted!$" then return message end -- the run knows it
        local kept, last = {}, 0
        for line in debug.traceback("", 2):gmatch "[^\n]+" do
            kept[#kept + 1] = line
            if line:find("\t" .. source.chunk .. ":", 1, true) == 1 then last = #kept end
        end
        local traceback = last > 0 and "\n" .. table.concat(kept, "\n", 1, last) or ""
        return { message = source.explain(message) .. traceback }
    end
end

return { compile = compile, trace = trace }
