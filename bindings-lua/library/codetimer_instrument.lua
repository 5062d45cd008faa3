---@meta codetimer
-- SPDX-License-Identifier: MIT
--
-- The third part of the Lua API for editors: measuring whole tables, modules and programs.

---@class codetimerlib
local codetimer = {}

---What instrument has reached. Dropping it ends nothing.
---@class codetimer.Instrumented
---@field reached string[] the members that are measured, sorted; grows with modules and globals to come
---@field unreachable {member: string, reason: string}[] what was seen and cannot be measured, and why, sorted
---@field active boolean it has not been ended
local Instrumented = {}

---Puts back what it has replaced; so does the end of its block as a to-be-closed variable. A field that somebody else
---has set meanwhile stays theirs. What still holds a measured function runs it unmeasured from now on. The counters and
---their values stay.
---@return boolean ended false if it was ended before
function Instrumented:uninstrument() end

---@class codetimer.InstrumentOptions
---@field category? string of all its counters

---Measures functions where they lie, by putting measured ones in their place; the code that is measured is not touched.
---Whether they count is decided by the members list of the process, as for every counter: a function is measured if it
---is chosen here and in the list.
---
---A table: all functions in it, as "prefix.name"; in nested tables, as "prefix.table.name"; the metamethods of its
---metatable, and what "__index" leads to. A module's name: all in that module, at once if it is loaded, else as soon as
---it is required; a prefix replaces the name. Patterns, as in a members list: all functions that they select, of all
---modules, those to come included; the globals of the script count as a module with the stem of its name. A plain name
---is the same as "name;name.*". nil: what the members list in force selects, whatever it becomes; without a list,
---nothing.
---
---A function with two names is measured once, under the shorter, or first. A measured function stays as it is. Tables
---are read and written raw. A table that is a loaded module is entered under its own name only. The modules of Lua
---itself are measured only if a pattern begins with their name, and codetimer never.
---
---Not reached are local functions, which no table holds; calls through a local variable or a table of somebody else
---that took the function earlier; the functions error, debug.getinfo, debug.getlocal, debug.setlocal and
---debug.traceback, which look at who calls them; __index, __newindex and __gc, if they are functions; tables behind
---proxies; of the script's globals, functions in a global table until the next global is defined, the next module is
---required, or a quarter of a second has passed in which a measured function was called.
---@param what table|string|nil a table, the name of a module, patterns, or nil for the members list
---@param prefix? string what the names begin with; needed for a table
---@param options? codetimer.InstrumentOptions
---@return codetimer.Instrumented? instrumented
---@return string? message
---@return string? code "CT_ENOMEM"
function codetimer.instrument(what, prefix, options) end

---Ends instrumenting; nothing is left behind.
---@param which? codetimer.Instrumented|string what instrument returned, or the name, patterns or prefix that it was
---given; nil: all
---@return integer ended how many
function codetimer.uninstrument(which) end

---@class codetimer.ProgramOptions
---@field measure? string a members list
---@field config? string a file that holds one, and is followed
---@field report? boolean print all counters to standard error when the process ends, whatever way it ends but by a
---                       signal, and the patterns that matched no function that was called

---What "codetimer-lua run" does before the script: measures the program from here on, by instrument(). Without measure
---and config, and without CODETIMER_MEASURE and CODETIMER_CONFIG, the global functions of the script. For programs
---whose interpreter is not the stand-alone one.
---@param options? codetimer.ProgramOptions
---@return codetimer.Instrumented? instrumented
---@return string? message
---@return string? code "CT_EINVAL": a pattern is wrong, or the name of the file too long; "CT_ENOMEM"
function codetimer.measure_program(options) end

return codetimer
