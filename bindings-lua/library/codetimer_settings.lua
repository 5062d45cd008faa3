---@meta codetimer
-- SPDX-License-Identifier: MIT
--
-- The fourth part of the Lua API for editors: which members are measured, and where that is said.

---@class codetimerlib
local codetimer = {}

---@class codetimer.Match
---@field pattern string as written
---@field hits integer how many counters of this process it matches
---@field problem string? why it is skipped; nil: it is not

---What decides which members of this process are measured. Each field is read when it is asked for.
---@class codetimer.Settings
---@field members string? the members list in force; nil: there is none, all is measured
---@field source string? who wrote it: "environment" (CODETIMER_MEASURE), "configure", "file PATH", "provider",
---"controller" (from outside); nil while nobody has
---@field matches codetimer.Match[] in the order of the list
---@field file string? the file in which the list is followed, absolute. Setting it to nil ends that
---@field provider codetimer.Provider? the provider whose list is followed. Setting it to nil ends that
---@field problem string? why the file, or else the provider, cannot be used; nil: it can
local Settings = {}

---Has fn(settings) called after each change of the list, by whomever: from codetimer.poll() or a measured call, within
---a second where there are any. An error in it is told to codetimer.trace as "failed", and it stays. It can prevent
---nothing: the list is in force when it is called.
---@generic F: fun(settings: codetimer.Settings)
---@param fn F
---@return F fn
function Settings:on_change(fn) end

---Has it called no more.
---@param fn fun(settings: codetimer.Settings)
---@return boolean removed whether it was there
function Settings:remove_on_change(fn) end

---Reads the file and asks the provider now, and puts into force what they say even if it is not new: that undoes what
---others have switched meanwhile. Raises an error where neither is set; a failure of theirs is in problem.
---@return boolean? true
---@return string? message
---@return string? code
function Settings:reload() end

---An application's own source of members lists.
---@class codetimer.Provider
---@field members fun(self): string? returns the list, or nil for no news. It is asked within codetimer.poll() and a few
---times a second within measured calls; while it blocks, the program does
---@field subscribe? fun(self, changed: fun()) given a function that it calls when its list may be another one; it is
---then asked only after that

---@class codetimer.ConfigureOptions
---@field members? string patterns separated by ";" or newlines, at most 65,536 bytes: "*" stands for any characters,
---"?" for one, "!" in front excludes, "#" begins a comment, the last pattern that matches decides; a list that begins
---with "!" starts from all. A pattern that is wrong is skipped and told to codetimer.trace as "skipped"
---@field file? string from now on the list is followed in this file: an edit takes effect within a second in a program
---that makes measured calls or polls. It need not be there yet; what cannot be used changes nothing, is told to
---codetimer.trace once, and is in problem. "" ends it
---@field provider? codetimer.Provider from now on the list is asked of this object

---Sets the members list of this process, if one is given, or says where it comes from: only the members that it selects
---are measured. Whoever writes the list last wins; a file or a provider writes it only when what it says changes.
---@param options? codetimer.ConfigureOptions
---@return codetimer.Settings? settings
---@return string? message
---@return string? code
function codetimer.configure(options) end

return codetimer
