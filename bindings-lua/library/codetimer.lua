---@meta codetimer
-- SPDX-License-Identifier: MIT
--
-- The Lua API of codetimer for editors (LuaCATS). This file describes the C module and is never loaded by a program.
-- Times are integers in nanoseconds unless a field says otherwise; a fact that is not known is nil
-- Wrong arguments raise an error. What the system refuses returns nil, a message and a code.

---Measures how long code takes, how many CPU cycles it spends, and what the garbage collector does meanwhile.
---@class codetimerlib
---@field _VERSION string "codetimer X.Y.Z"
---@field trace codetimer.Trace|nil is told what happens to counters; its own errors become warnings
---@field trace_increments boolean whether trace is told of each counted call too; costs nothing while false
local codetimer = {}

---What was asked of the priority and what was obtained. A status is "CT_OK" or names the refusal: "CT_EPERM", ...
---@class codetimer.Priority
---@field requested string? nil: priority left alone
---@field status string
---@field cpu integer? the CPU asked for
---@field cpu_status string
---@field restored boolean everything has been put back
---@field previous string before, e.g. "nice 0"
---@field effective string read back afterwards
---@field scope string what it applies to, and where it may have no effect
---@field reason string why less than the request was obtained; empty otherwise

---@class codetimer.Clock
---@field source string "tsc", "cntvct", "monotonic", "monotonic (system call)", "qpc" or "mach"
---@field resolution_ns number the least step seen between two readings
---@field read_cost_ns number the least time that one reading takes
---@field frequency_hz number? of the reference counter, if there is one
---@field reason string why this source and not a faster one, or what has changed since

---@class codetimer.Cycles
---@field value integer? since an arbitrary moment of this thread: only differences mean something
---@field kind "core"|"reference"|"none"
---@field source string
---@field reason string why not core cycles, and what would help; empty for core cycles

---What a measuring program starts from. `tostring(environment)` is a few lines of text. As a to-be-closed variable
---(`local environment <close> = codetimer.initialize()`) it restores the priority at the end of its block. Collecting
---it restores nothing.
---@class codetimer.Environment
---@field priority codetimer.Priority
---@field clock codetimer.Clock
---@field cycles codetimer.Cycles
local Environment = {}

---Puts back exactly the priority and CPU affinity that initialize found, if they are still what initialize set. May be
---called again. Environments nest: the last one is restored first.
---@return true? restored nil if it was refused
---@return string? message
---@return string? code "CT_ETHREAD", "CT_ECHANGED", "CT_EPERM" or "CT_EOS"
function Environment:restore() end

---@class codetimer.InitializeOptions
---@field priority? "high"|"highest"|"realtime"|false default "high"; false leaves the priority alone
---@field cpu? integer pin the thread to this CPU

---Raises the priority of this thread, chooses and calibrates the clock, and warms the measuring path. A refusal by the
---system is no failure: `environment.priority` tells it.
---@param options? codetimer.InitializeOptions
---@return codetimer.Environment? environment nil only when memory is short
---@return string? message
---@return string? code
function codetimer.initialize(options) end

---@class codetimer.Writer
---@field write fun(self, text: string): any

---What trace is called with: "created", "already there", "removed" and the key; "increment", the key and the duration
---in ns; "refused", the name and the reason. Of the members list: "list" and who wrote it; "skipped", a pattern and
---where and what is wrong with it; "unmatched" and a pattern that matches no counter so far; "unusable", the file and
---the reason, then "usable" and the file or "provider"; "failed", "provider" or "on_change", and the message.
---@alias codetimer.Trace fun(event: string, key: string, detail?: string|integer)

---The values of a counter at one moment; they never change.
---@class codetimer.Sample
---@field key string "category/member"
---@field category string the part of the key before its first "/"
---@field member string the part after it
---@field time_ns integer now_ns() when it was taken
---@field generation integer grows with each reset
---@field listed boolean it has not been removed
---@field enabled boolean it counts
---@field unclean boolean a writer went away, or hangs, in the middle of an update: one call may be half in
---@field calls integer finished calls
---@field total_ns integer elapsed in all calls; time in which a coroutine was suspended counts
---@field active_ns integer? of which the calls ran; nil where that is not known: see active_reason
---@field active_unknown integer calls of which it is not known, since they could yield: Lua tells nobody when a
---                        coroutine waits. Those in the main thread, or in a C function that forbids it, cannot
---@field active_reason string? why there is no active_ns
---@field average_ns number? nil without calls, as min_ns and max_ns
---@field active_average_ns number? nil without calls, and where active_ns is
---@field errors integer calls that an error ended
---@field cancelled integer calls that will never end: their coroutine or state was closed, or lost; that is also how
---                        an error shows that kills a coroutine under coroutine.resume, see measured
---@field min_ns integer?
---@field max_ns integer?
---@field in_flight integer calls under way
---@field anomalies integer calls whose clock stepped back (counted as 0 ns) or was replaced (not counted)
---@field buckets integer[] how many calls took how long: 0 ns, 1 ns, then eight to the octave up to 2^42 ns, and longer
---@operator sub(codetimer.Sample): codetimer.Sample
local Sample = {}

---Nanoseconds below which q percent of the calls lie, within one bucket (9 %); nil without calls.
---@param q number 0 to 100
---@return number?
function Sample:percentile(q) end

---What happened since an earlier sample of the same counter: self - earlier. min_ns and max_ns are then known within
---a bucket.
---@param earlier codetimer.Sample
---@return codetimer.Sample? difference nil if the counter was reset or removed in between
---@return string? message
---@return string? code "CT_ECHANGED"
function Sample:difference(earlier) end

---The running statistics of one member. Each field of a Sample is a field here too and is read when it is asked for;
---sample() reads all at one moment. Counters of one key are equal.
---@class codetimer.Counter: codetimer.Sample
local Counter = {}

---Nanoseconds below which q percent of all calls lie, within one bucket (9 %); nil without calls.
---@param q number 0 to 100
---@return number?
function Counter:percentile(q) end

---@return codetimer.Sample
function Counter:sample() end

---Counts one call that was timed elsewhere.
---@param duration_ns integer
---@param failed? boolean an error ended it
function Counter:record(duration_ns, failed) end

---Begins again with all values at 0. A call under way does not count.
---@return true? done nil if it has been removed
---@return string? message
---@return string? code "CT_ENOENT"
function Counter:reset() end

---Takes the counter out of counters(). What it measures runs unmeasured until it is measured anew.
---@return true? done nil if it had been removed before
---@return string? message
---@return string? code "CT_ENOENT"
function Counter:remove() end

---@class codetimer.Names
---@field name? string the member
---@field category? string default: what is before the first dot of the name, else the stem of the script ("lua" where
---                           the interpreter was started without one, as by -e); no "/"
---@field help? string a sentence for readers

---A function that does what fn does and counts its calls: how often, how long, how they ended. It may yield and
---recurse. Its time includes calls of other measured functions, and each level of a recursion counts.
---
---What differs from fn: level 2 of error("x", 2) in fn is the wrapper, so the position that it gives is codetimer's;
---that of the caller is level 3. A call of fn in tail position keeps a level of the stack, so `return fn()` without end
---overflows it. An error in a coroutine that dies under coroutine.resume is counted when the coroutine is closed, as an
---error, or when the collector takes it, as cancelled: Lua gives no other sign of it. coroutine.wrap closes it at once.
---One without a value, error(nil), that ends a coroutine is counted as cancelled: it looks like the closing of that.
---
---Without a name it is called after the place of its definition, "<file>:<line>"; functions of C, callable values and
---functions whose code was a string need a name. The same key is the same counter. A measured function is returned as
---it is; another name or category is then not taken, and trace is told. Where the limit (CODETIMER_MAX_COUNTERS) or
---memory does not allow a counter, fn itself is returned.
---@generic F: function
---@param fn F a function, or a value with __call
---@param name? string|codetimer.Names 1 to 65,535 bytes, no NUL
---@param category? string
---@return F
---@overload fun(name: string, fn: function, category?: string): function
function codetimer.measured(fn, name, category) end

---The function behind a measured one; any other value as it is.
---@param f any
---@return any
function codetimer.unwrap(f) end

---A counter around any stretch of code: from here to stop(), or to the end of the block with
---`local timer <close> = codetimer.timer(name)`. One that is forgotten counts as cancelled when it is collected. How
---its block was left counts as for measured functions.
---@class codetimer.Timer
---@field counter codetimer.Counter? nil where the limit or memory did not allow one
local Timer = {}

---Counts the time since the timer was made; once.
function Timer:stop() end

---@param name string|codetimer.Names
---@param category? string
---@return codetimer.Timer
function codetimer.timer(name, category) end

---All counters of this process by key, as they are listed now; also found by the member alone where only one category
---has it. With a key or member: that counter, or nil. A member of several categories is an error that names the keys.
---@param key? string
---@return table<string, codetimer.Counter>
---@overload fun(key: string): codetimer.Counter?
function codetimer.counters(key) end

---Writes the table of all counters, longest total first.
---@param file? file*|codetimer.Writer default io.stdout
---@return true? written
---@return string? message
---@return string|integer|nil code
function codetimer.report(file) end

---Describes the clock. Measures resolution and cost anew (about 0.1 ms).
---@return codetimer.Clock
function codetimer.clock_info() end

---CPU cycles charged to this thread so far. Costs a system call.
---@return codetimer.Cycles
function codetimer.thread_cycles() end

---Monotonic nanoseconds since an arbitrary moment; never steps back.
---@return integer
function codetimer.now_ns() end

---A process that publishes counters, or what is left of one. Of a segment that is unusable only path, state and reason
---are there.
---@class codetimer.Process
---@field path string of its segment
---@field state "live"|"dead"|"unusable" dead: it ended, the values are its last; unusable: see reason
---@field pid integer?
---@field start_time integer? as the system counts it; with the pid it names one process
---@field uid integer? whose it is
---@field program string? nil if it did not tell
---@field host string? its language, as "Lua 5.4"
---@field clock string? "tsc", "monotonic", ...
---@field counters integer? how many it has
---@field refused integer? how often a counter could not be made
---@field last_refused string? the key of the last one that could not be made, cut to fit
---@field heartbeat_age_ns integer? since its last sign of life; a process that measures nothing gives none
---@field reason string? why it is unusable, or what is missing in it

---The processes that publish counters, in no order.
---@param directory? string default: where the processes of this user publish
---@return codetimer.Process[]? processes
---@return string? message
---@return string? code
function codetimer.processes(directory) end

---Deletes what a dead process has left.
---@param path string of its segment
---@return true? reaped
---@return string? message
---@return string? code "CT_EPERM": its process lives, or it is not yours; "CT_ENOENT", "CT_EINVAL", "CT_EOS"
function codetimer.reap(path) end

---@class codetimer.SegmentInfo
---@field published boolean others can see the counters of this process
---@field path string? of its segment; nil: it is not published
---@field reason string? why it is not, or what is missing in it

---Whether this process publishes its counters, where, and if not why.
---@return codetimer.SegmentInfo
function codetimer.segment_info() end

---@class codetimer.CounterInfo
---@field key string "category/member"
---@field enabled boolean whether it counts
---@field help string? a sentence for readers

---The counters of another process, or of this one, seen from outside. Where several languages in a process measure,
---their counters are joined by key. When the process has ended, its last values stay readable. To be closed: by close,
---at the end of the block of a to-be-closed variable, or by the collector. Whatever is then asked of it, but closed and
---close, raises an error.
---@class codetimer.View
---@field process codetimer.Process as it is now
---@field segments codetimer.Process[] all its segments: one for each language in it that measures
---@field counters table<string, codetimer.CounterInfo> by key, also disabled ones
---@field members string? its members list; nil: it has none
---@field acknowledged boolean it has taken notice of the latest list: counters that it makes from now on follow it
---@field busy table<string, true> keys whose writer was in the way at the last sample: their values are older
---@field closed boolean
local View = {}

---The values of all its counters now, by key.
---@param buckets? boolean default true; reading is quicker without, but there are no percentiles then
---@return table<string, codetimer.Sample>
function View:sample(buckets) end

---Switches on what these patterns match, at once, and for counters to come.
---@param members string patterns, as in a members list
---@return true? done
---@return string? message
---@return string? code "CT_ENOENT": it has ended; "CT_EPERM": another user's; "CT_EINVAL": a pattern is wrong, or its
---list would be too long
function View:enable(members) end

---Switches off what these patterns match.
---@param members string
---@return true? done
---@return string? message
---@return string? code as of enable
function View:disable(members) end

---Sets its members list. A pattern that is wrong is skipped, and told to trace; the rest applies.
---@param members string? nil: no list, all is measured
---@return true? done
---@return string? message
---@return string? code as of enable
function View:set_members(members) end

---Lets go of the process. Can be called twice.
function View:close() end

---Opens the counters of a process.
---@param pid integer|codetimer.Process
---@param directory? string as in processes
---@return codetimer.View? view
---@return string? message
---@return string? code "CT_ENOENT": there is no such process, or it has measured nothing yet; "CT_EPERM", "CT_EINVAL"
function codetimer.attach(pid, directory) end

---Does what is due of the housekeeping: takes notice of a list set from outside, shows others that this process lives.
---Calls of measured functions do so by themselves, four times a second at most, also of those that are switched off; a
---program that makes none for long may call it from time to time.
---@return integer changes how often the members list has changed
function codetimer.poll() end

return codetimer
