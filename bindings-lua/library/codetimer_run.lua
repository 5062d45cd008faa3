---@meta codetimer
-- SPDX-License-Identifier: MIT
--
-- The second part of the Lua API for editors: runs and comparisons.

---@class codetimerlib
local codetimer = {}

---The result of a run. Its size does not depend on the number of calls. `tostring(result)` is the report block.
---@class codetimer.Result
---@field name string as given, any bytes
---@field n integer calls asked for; of an automatic run, calls measured
---@field calls integer calls completed; fewer than n when the run ended early
---@field elapsed_ns integer time inside the calls; time in which the coroutine of the run was suspended counts
---@field automatic boolean n was found by codetimer, within the budget
---@field budget_ns integer? of an automatic run: what it could use all in all
---@field warmup_calls integer calls made before the measured ones, to find n
---@field warmup_ns integer time of these
---@field per_call_ns number? median of the batches; nil when no batch was completed
---@field interval_low_ns number? where that median is, with 95 %: at least. nil, as all to outliers_severe, with fewer
---                        than 6 batches
---@field interval_high_ns number? at most
---@field min_ns number? the least of the batches' time per call
---@field q1_ns number? a quarter of the batches are below
---@field q3_ns number? a quarter of the batches are above
---@field max_ns number? the most
---@field mad_ns number? median of the distances from the median, not scaled
---@field outliers_mild integer? batches beyond 1.5 times (q3 - q1) from the quartiles; none is left out
---@field outliers_severe integer? beyond 3 times
---@field net_low_ns number? time per call less that of an empty call, clamped at 0: at least
---@field net_high_ns number? at most
---@field overheads codetimer.Overhead[] what empty calls take in this state; net is made with the first
---@field batches_ns integer[] consecutive calls whose time is recorded together; at most 1,024
---@field batches_calls integer[] how many calls each batch has
---@field cycles integer? CPU cycles of this thread over the whole run; nil when cycles_kind is "none"
---@field cycles_kind "core"|"reference"|"none" real core cycles, constant-rate ticks while on the CPU, or unknown
---@field cycles_source string what counted them
---@field cycles_reason string why they are not core cycles, and what would help; empty for core cycles
---@field usage codetimer.Usage what the system did to the thread meanwhile
---@field gc_collections integer[] collections during the run, one number for each label
---@field gc_labels string[] "GC Minor", "GC Major"; in incremental mode every cycle is a major one
---@field gc_time nil Lua tells nobody when its collector works: where it was asked for, a note says so
---@field memory codetimer.Memory? what a memory pass has counted; nil: not asked for
---@field interrupted nil|"error"|"interrupted"|"stopped" what ended it early: an error, Ctrl-C, or coroutine.close
---@field notes string[] one sentence each
---@field priority string of the thread at the start of the run, e.g. "nice 0"
---@field clock string source of the clock during the run, e.g. "tsc"
---@field resolution_ns number? the least step of that clock; nil: it did not move
local Result = {}

---A plain table with the same fields.
---@return table<string, any>
function Result:to_dict() end

---All that is known as JSON, as a program in any language writes it: a file that `codetimer compare` reads.
---@return string
function Result:to_json() end

---What the system did to the thread during a run. What it does not tell is nil, and the reason says why.
---@class codetimer.Usage
---@field cpu_ns integer? CPU time of the thread, in user and kernel mode
---@field switches integer? how often it gave up the CPU: it waited
---@field preemptions integer? how often it was put off the CPU for another thread
---@field minor_faults integer? pages that had to be mapped
---@field major_faults integer? pages that had to be read in
---@field migrations integer? how often it went on on another CPU
---@field reason string what is not known, and why; empty when all is

---The time of one empty call, to compare with.
---@class codetimer.Overhead
---@field label "empty C function"|"empty Lua function"
---@field low_ns number
---@field high_ns number

---What a separate pass has counted at Lua's allocator: whatever fn asked for, and who it called, in its coroutine. What
---codetimer and other coroutines ask for is not in it. The collector is stopped meanwhile, and so frees are only those
---of which fn itself is the cause (buffers, stacks, tables that grow); but not in coroutines nor with calls that take
---more than 16 MB, where it goes on.
---@class codetimer.Memory
---@field calls integer calls that were counted; 0: see reason, all else is nil
---@field allocations integer? requests for a new block, in all calls together; so is all below
---@field reallocations integer? for another size of a block
---@field frees integer? that gave a block back
---@field allocated_bytes integer? of new blocks, and by which others grew
---@field peak_bytes integer? the most that one call took beyond what was in use when it began
---@field kinds codetimer.MemoryKinds?
---@field reason string? why nothing was counted

---New blocks by what they are for. Other: arrays and hash parts of tables, stacks, buffers.
---@class codetimer.MemoryKinds
---@field strings integer
---@field tables integer
---@field functions integer
---@field userdata integer
---@field threads integer
---@field upvalues integer
---@field prototypes integer
---@field other integer

---@class codetimer.TimeOptions
---@field file? file*|codetimer.Writer|false where the report goes: default io.stdout, false prints nothing
---@field budget? number seconds that an automatic run may use all in all: above 0, up to 1e9; default 0.2
---@field gc_time? boolean what the collector took: Lua does not tell, and a note says so
---@field memory? boolean count allocations, in a pass of its own after the run: some 100 more calls, in 50 ms
---@field verbose? boolean print the spread, outliers, usage, overheads and net cost as well

---Calls fn exactly n times, without arguments, prints a report, and returns the result. There is no hidden warm-up; a
---full collection comes first, and the collector stays on during the run. fn may yield.
---
---Without n it calls fn as often as fits into the budget: some calls to find out how long one takes, which are
---forgotten, then the measured ones. Where the first calls take more than half of the budget they are the result.
---
---An error in fn ends the run: the report of the completed calls is printed and marked, last_result() holds the partial
---result, and the error goes on unchanged, with its traceback. In a coroutine that dies under coroutine.resume this
---happens when the coroutine is closed.
---
---When the report cannot be written, the answer of the write is returned (nil, message, code), and last_result() holds
---the result. An error that a write method raises goes on.
---@param name string title of the report, any bytes; an empty name prints nothing
---@param n integer? how many calls, 0 to math.maxinteger, also as a float; nil: as many as fit into the budget
---@param fn function|table|userdata a function, or a value with __call
---@param options? codetimer.TimeOptions
---@return codetimer.Result? result
---@return string? message
---@return string|integer|nil code
function codetimer.time(name, n, fn, options) end

---The result of the last run that ended in this Lua state, also of one that ended early; nil before the first. Those of
---a comparison are in last_comparison().
---@return codetimer.Result?
function codetimer.last_result() end

---How the times of two candidates compare.
---@class codetimer.Ratio
---@field ratio number? time of the candidate by that of the other: below 1, it is faster; nil: see reason
---@field low number? the least that the ratio can be
---@field high number? the most
---@field confidence number? that the ratio is between them
---@field different boolean the two differ by more than this machine could make up
---@field resolved number? differences below this are not resolved: 0.008 means 0.8 %
---@field reason string? why the ratio is not known

---What a comparison has found; read only. `tostring(comparison)` is the table as it is printed. Where a method leaves
---out b, the baseline is meant.
---@class codetimer.Comparison
---@field names string[] of the candidates, in their order
---@field baseline string the name of the candidate that the others are compared with
---@field results table<string, codetimer.Result> by name, what was measured of each candidate
---@field ratios table<string, codetimer.Ratio> by name, how its time compares with the baseline's
---@field twin codetimer.Ratio the baseline against itself, measured in the same rounds
---@field resolution number? differences below this are not resolved here and now; nil: too few rounds
---@field verdict string a sentence on each candidate but the baseline, one a line
---@field rounds integer rounds in which every candidate had its turns
---@field rounds_tied integer of these, left out since the clock saw nothing of some candidate
---@field rounds_disturbed integer of these, left out of the ratios where enough are left: other threads had the CPU
---@field budget_ns integer what it could use all in all
---@field elapsed_ns integer what it took
---@field interrupted nil|"error"|"interrupted"|"stopped" what ended it early
---@field notes string[] one sentence each
local Comparison = {}

---The time of a by that of b: below 1, a is faster. nil: too few rounds.
---@param a string
---@param b? string
---@return number?
function Comparison:ratio(a, b) end

---Where that ratio is: right with 99 % for all candidates together. nil: too few rounds.
---@param a string
---@param b? string
---@return number? low
---@return number? high
function Comparison:interval(a, b) end

---Whether a and b differ: the interval excludes 1, by more than the baseline differs from itself.
---@param a string
---@param b? string
---@return boolean
function Comparison:different(a, b) end

---One sentence on a, compared with b.
---@param a string
---@param b? string
---@return string
function Comparison:verdict_of(a, b) end

---A plain table with the same fields.
---@return table<string, any>
function Comparison:to_dict() end

---All that is known as JSON, as a program in any language writes it.
---@return string
function Comparison:to_json() end

---@class codetimer.CompareOptions
---@field baseline? string the name of the one that the others are compared with; default: the first
---@field file? file*|codetimer.Writer|false where the table goes: default io.stdout, false prints nothing
---@field budget? number seconds all in all, above 0, up to 1e9; default 0.25 for each candidate
---@field gc_time? boolean as for time
---@field memory? boolean as for time, for each candidate
---@field verbose? boolean print the rounds as well

---Finds out which of several functions is faster, prints a table, and returns the comparison. The candidates are called
---in turns, all in each round, so that what changes on the machine falls on all alike. The baseline takes part once
---more as its own twin: what the twin seems to differ is what this machine cannot resolve now. The functions may yield.
---
---`{ {"a", f}, {"b", g} }` keeps its order; `{ a = f, b = g }` has none in Lua, and is sorted by name.
---
---An error in a candidate, or Ctrl-C, ends the comparison: the partial table is printed and marked, last_comparison()
---holds the partial comparison, and the error goes on unchanged. What cannot be written is told as by time.
---@param candidates table<string, function>|{ [1]: string, [2]: function }[] 2 to 32 of them; functions as for time
---@param options? codetimer.CompareOptions
---@return codetimer.Comparison? comparison
---@return string? message
---@return string|integer|nil code
function codetimer.compare(candidates, options) end

---The comparison that ended last in this Lua state, also one that ended early; nil before the first.
---@return codetimer.Comparison?
function codetimer.last_comparison() end
