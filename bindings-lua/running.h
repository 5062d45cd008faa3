/* SPDX-License-Identifier: MIT
 *
 * running.h: what time and compare share: their options, the loop that makes the calls, what ends it early, and what is
 * done afterwards: empty calls, the memory pass, the report.
 */
#ifndef CT_LUA_RUNNING_H
#define CT_LUA_RUNNING_H

#include "common.h"

/* ---- options.c ---- */

typedef struct ct__lua_options {
    uint64_t budget_ns; /* 0: not given */
    int gc_time, memory, verbose;
} ct__lua_options;

/* Reads the options at "arg", nil or a table with no other keys than "names". The stack then ends with what in them is
 * a Lua value: "file" at "arg" (nil: io.stdout, false: nothing), "_progress" and "baseline" after it (nil: not given).
 */
void ct__lua_take_options(lua_State *L, int arg, const char *const *names, ct__lua_options *options);

/* ---- loop.c ---- */

/* What the loop works on: the first member of a userdata. */
typedef struct ct__lua_loop {
    ct_run *run;  /* whose calls are made; NULL: there is none */
    int in_chunk; /* the clock runs */
    int tells;    /* somebody wants to know how far it has come */
    uint64_t tell_ns;
} ct__lua_loop;

/* User values of such a userdata; more may follow. */
enum { LOOP_MADE = 1, LOOP_FN, LOOP_PROGRESS, LOOP_VALUES = LOOP_PROGRESS };

/* Makes the metatable "type" and its loop, once per state. loop(userdata) calls watch(userdata, closure) once, and then
 * makes k calls of fn for each (fn, k) that next(userdata) returns; the rest is said in loop.c. */
void ct__lua_loop_open(lua_State *L, const char *type, const luaL_Reg *functions, lua_CFunction watch,
                       lua_CFunction next);

/* Pushes the loop of the type. */
void ct__lua_push_loop(lua_State *L, const char *type);

/* Pushes that for a statement, which is called with (userdata, many, made); see statement.c. */
void ct__lua_push_statement_loop(lua_State *L, const char *type);

/* What watch does with its arguments. */
void ct__lua_loop_watch(lua_State *L);

/* ct_time_next for the loop: pushes k and returns 1, else returns what it says. */
int ct__lua_loop_next(lua_State *L, ct__lua_loop *loop);

/* Calls who wants to know, at most ten times a second, for the userdata at "index". */
void ct__lua_loop_tell(lua_State *L, int index, ct__lua_loop *loop, double part, double per_call_ns);

/* Ends the chunk in which the loop was left. */
void ct__lua_loop_leave(lua_State *L, int index);

/* One word for what ended the loop early: the error value at "error", if any. */
const char *ct__lua_name_cause(lua_State *L, int error);

/* Collections for lack of memory run no finalizer, and so escape: the sentence for that, or NULL for other errors. */
const char *ct__lua_note_memory(lua_State *L, int error);

/* What there is to say of gc_time. */
extern const char ct__lua_gc_time_note[];

/* ---- rounds.c: candidates in turns ---- */

typedef struct ct__lua_rounds {
    ct__lua_loop loop; /* its run: of the turn under way */
    ct_compare *compare;
    ct__lua_options options;
    size_t count, baseline;
    size_t turn;            /* the candidate whose turn it is or was, "count" for the twin */
    size_t turns_left;      /* in the round */
    uint64_t rounds;        /* begun */
    int counted;            /* collections are */
    int armed;              /* the sentinels are */
    int collecting;         /* was the collector running before the first turn? */
    int complete;           /* the budget is used up */
    int printed;            /* or tried: the table is written once */
    int status;             /* CT_OK: there is a comparison */
    uint64_t lost;          /* before the first turn */
    uint32_t lua;           /* which candidates are Lua functions, one bit each */
    size_t counting_memory; /* the candidate of the memory pass under way */
    ct__lua_gc before;      /* the turn */
    uint64_t collections[CT_CANDIDATES_MAX][2];
} ct__lua_rounds;

#define CT__LUA_ROUNDS_TYPE "codetimer.Rounds"

/* Further user values; LOOP_FN is an array of functions, ROUNDS_NAMES one of strings. */
enum { ROUNDS_NAMES = LOOP_VALUES + 1, ROUNDS_COMPARISON, ROUNDS_FILE, ROUNDS_VALUES = ROUNDS_FILE };

void ct__lua_rounds_open(lua_State *L);

/* Pushes rounds of the functions in the array at "functions", with the names in that at "names", as a variable to be
 * closed. "counted": with a collection before, and the collector watched. Returns NULL, with *status, where the core
 * refuses. */
ct__lua_rounds *ct__lua_new_rounds(lua_State *L, int names, int functions, int counted, const ct__lua_options *options,
                                   size_t baseline, int *status);

/* Pushes the loop for the next round and its argument, above "top" and at another height each time; returns 0, with the
 * stack at "top", when there is none any more. Raises an error if the rounds have been ended. */
int ct__lua_push_round(lua_State *L, int index, int top);

/* Raises an error if the rounds have been ended. */
ct__lua_rounds *ct__lua_check_rounds(lua_State *L, int index);

/* Ends them, once, and makes the comparison. */
int ct__lua_end_rounds(lua_State *L, int index, const char *interrupted, ct_comparison **comparison);

/* compare.c: the rounds are closed. They are at 1, the error is at 2. */
void ct__lua_close_comparison(lua_State *L, ct__lua_rounds *rounds);

/* ---- statement.c ---- */

int ct__lua_is_statement(lua_State *L, int index);

/* What an empty turn takes: *count is 0 where nobody has said. */
void ct__lua_statement_overhead(lua_State *L, int index, ct_overhead *overheads, size_t *count);

/* Pushes many and made. */
void ct__lua_push_statement(lua_State *L, int index);

/* ---- overheads.c ---- */

enum { CT__LUA_OVERHEADS = 2 };

/* What empty calls take in this state, measured at the first question, in some 20 ms; "is_lua" says which of the two
 * kinds is first. *count is 0 where the clock is too coarse to tell. */
void ct__lua_overheads(lua_State *L, int is_lua, ct_overhead overheads[CT__LUA_OVERHEADS], size_t *count);

/* The same, without measuring: *count is 0 where nothing is known yet. */
void ct__lua_known_overheads(lua_State *L, int is_lua, ct_overhead overheads[CT__LUA_OVERHEADS], size_t *count);
void ct__lua_overheads_open(lua_State *L);

/* 1 for a function that is not C. */
int ct__lua_is_lua(lua_State *L, int index);

/* ---- print.c ---- */

/* Writes the Result or Comparison at "object" to the file at "file" (as ct__lua_take_options left it), which may yield:
 * the end of a C function, which returns the object, or nil, a message and a code. Above the object there is room. */
int ct__lua_print(lua_State *L, int file, int object, int verbose);

/* The same after an error, which is more important than any in writing. */
void ct__lua_print_partial(lua_State *L, int file, int object, int verbose);

/* ---- allocations.c ---- */

void ct__lua_allocations_open(lua_State *L);

/* A function of C: (fn, result) counts what some calls of fn ask of the allocator, and adds it to the result. The calls
 * may yield. Their error goes on; what was counted up to it is in the result. */
int ct__lua_count_allocations(lua_State *L);

/* Takes out a hook that could not be taken out when its pass ended, since somebody had hooked above it. */
void ct__lua_allocations_tidy(lua_State *L);

#endif
