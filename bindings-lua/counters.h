/* SPDX-License-Identifier: MIT
 *
 * counters.h: what the files that deal with counters offer each other.
 *
 * There is one ct_writer per global state, opened with the first counter and closed by lua_close. Every handle of the
 * core that this state holds is a Counter userdata in the writer's list. When lua_close comes to the writer it closes
 * them all, in whatever order the finalizers run; from then on measured functions run unmeasured.
 *
 * Invariant: a Counter has a handle exactly while it is in the list; "plain" is 1 exactly while it has a handle and
 * increments are not traced. Otherwise "until_look" is not above 0, so the path of a measured call asks one question.
 */
#ifndef CT_LUA_COUNTERS_H
#define CT_LUA_COUNTERS_H

#include "common.h"

typedef struct ct__lua_counter ct__lua_counter;

typedef struct ct__lua_counters {
    ct_writer *writer;
    const lua_State *main_thread;
    ct__lua_counter *first;
    int closed;     /* lua_close has closed the writer */
    int increments; /* trace them */
    int tracing;    /* the trace function runs: what it does is not traced */

    int modules;        /* handles of instrument that are about modules (instrument.h) */
    uint64_t polled_ns; /* when it was polled */
    uint64_t changes;   /* of the members list, at that time */
} ct__lua_counters;

struct ct__lua_counter {
    const void *mark;   /* tells a Counter from the userdata of others, see ct__lua_to_counter */
    ct_counter *handle; /* NULL: not opened, or the state is closing */
    int plain;
    int until_look; /* calls until one of them looks at the clock (gate.c); not above 0 unless "plain" is 1 */
    int look_every;
    uint64_t looked_ns;
    int owned, pooled; /* tokens of its gate */
    ct__lua_counters *owner;
    ct__lua_counter *next, **link;
};

/* ---- counters.c ---- */

void ct__lua_counters_open(lua_State *L);
ct__lua_counters *ct__lua_find_counters(lua_State *L);
ct__lua_counter *ct__lua_check_counter(lua_State *L, int index);
/* The Counter at "index", also one without a handle; NULL for anything else. Quicker than by the metatable, and as
 * good: the debug library puts any value in any place, but writes no userdata. */
ct__lua_counter *ct__lua_to_counter(lua_State *L, int index);

/* Creates or gets a counter and pushes it; whoever takes it traces the event. Pushes nothing unless the status is CT_OK
 * (created) or CT_EXISTS. May raise "not enough memory". */
typedef struct ct__lua_names {
    const char *member, *category, *help;
} ct__lua_names;
int ct__lua_open_counter(lua_State *L, const ct__lua_names *names);

void ct__lua_push_key(lua_State *L, const ct_counter *handle);
/* Pushes what "name" asks for: key, category, member, of the key at "index"; returns 0 if it asks for something else.
 */
int ct__lua_push_key_field(lua_State *L, int index, const char *name);
int ct__lua_counters_function(lua_State *L);
/* Pushes arg[0], or nil if there is none. */
void ct__lua_push_program(lua_State *L);

/* ---- names.c ---- */

/* Reads a name at "index" that is a string, or a table with name, category and help, or nil, and the category behind
 * it; replaces them by name, category and help at index, index + 1, index + 2, each a string or nil. Raises argument
 * errors for "arg". */
void ct__lua_check_names(lua_State *L, int arg, int index);
void ct__lua_get_names(lua_State *L, int index, ct__lua_names *names);
/* A function that has no name of its own needs one: an argument error. */
void ct__lua_check_nameable(lua_State *L, int arg, int index);
/* Pushes "<chunk stem>:<line>". */
void ct__lua_push_default_name(lua_State *L, int index);
/* The one thing that the core can find wrong after all checks. */
int ct__lua_refuse_name(lua_State *L, int arg, const char *member);
/* Pushes the stem of a path: what is after the last separator and before the last dot. */
void ct__lua_push_stem(lua_State *L, const char *path);

/* ---- sample.c ---- */

void ct__lua_sample_open(lua_State *L);
void ct__lua_push_sample(lua_State *L, const ct_counter *handle);
/* Puts a Sample in place of its key, which is on top of the stack; the caller fills it. */
ct_sample *ct__lua_new_sample(lua_State *L);
/* Pushes the field, if there is one of this name; returns 0 if not. */
int ct__lua_push_sample_field(lua_State *L, const ct_sample *sample, const char *name);
int ct__lua_push_percentile(lua_State *L, const ct_sample *sample, int arg);

/* ---- trace.c ---- */

/* Gives the module table on top of the stack its fields trace and trace_increments. */
void ct__lua_trace_open(lua_State *L);
/* Calls codetimer.trace(event, key), if there is one. Raises nothing, whatever happens in there. */
void ct__lua_trace(lua_State *L, const char *event, const ct_counter *handle);
void ct__lua_trace_increment(lua_State *L, const ct_counter *handle, int64_t duration_ns);
void ct__lua_trace_opened(lua_State *L, int status, const ct_counter *handle);
/* Calls codetimer.trace("refused", member, reason). */
void ct__lua_trace_refused(lua_State *L, int status, const char *member);
/* Calls codetimer.trace(event, name, reason); "reason" may be NULL. */
void ct__lua_trace_text(lua_State *L, const char *event, const char *name, const char *reason);
/* Calls codetimer.trace("skipped", pattern, reason): a pattern of the members list is wrong. */
void ct__lua_trace_skipped(lua_State *L, const char *pattern, const char *reason);

/* ---- gate.c ---- */

/* What identifies the frame of the caller: the record that Lua keeps of a call. It is compared, never looked into. */
static inline const void *ct__lua_calling_frame(lua_State *L, lua_Debug *frame) {
    return lua_getstack(L, 1, frame) ? (const void *)frame->i_ci : NULL;
}

void ct__lua_gate_open(lua_State *L);
/* Pushes a gate with its first token, for the Counter at "counter". */
void ct__lua_push_gate(lua_State *L, int counter);
/* Pushes a gate that measures nothing. */
void ct__lua_push_retired_gate(lua_State *L);
enum { CT__LUA_GATE = 1, CT__LUA_GATE_RETIRED };
/* One of these, or 0 for another value. */
int ct__lua_is_gate(lua_State *L, int index);
/* Pushes the key of what the gate at "index" counts; returns 0 if it has none any more. */
int ct__lua_push_gate_key(lua_State *L, int index);

/* ---- settings.c ---- */

/* What poll() does; raises nothing. Returns the number of changes of the members list. */
uint64_t ct__lua_poll_now(lua_State *L, ct__lua_counters *counters);

/* ---- measured.c, timer.c, report.c ---- */

/* wrap(fn, name, category, help) returns the wrapper, or the status that stands against it. */
int ct__lua_wrap(lua_State *L);
/* What the value at "index" is to us: 0, or a wrapper, CT__LUA_GATE or CT__LUA_GATE_RETIRED; then pushes the original.
 */
int ct__lua_push_original(lua_State *L, int index);
/* The wrapper at "index" runs its function unmeasured from now on, for whoever still holds it. */
void ct__lua_retire(lua_State *L, int index);

void ct__lua_measured_open(lua_State *L);
int ct__lua_measured(lua_State *L);
int ct__lua_unwrap(lua_State *L);

void ct__lua_timer_open(lua_State *L);
int ct__lua_timer(lua_State *L);

int ct__lua_report(lua_State *L);

#endif
