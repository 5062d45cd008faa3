/* SPDX-License-Identifier: MIT
 *
 * common.h: what the files of the Lua binding offer each other.
 *
 * The binding converts, loops and calls; every number and every line of text comes from codetimer.h. It keeps no C
 * globals: what belongs to a Lua state lies in the registry of that state, under the address of a static variable, so
 * several states and several threads do not meet. Wrong arguments raise an error; refusals of the system return nil, a
 * message and a code.
 */
#ifndef CT_LUA_COMMON_H
#define CT_LUA_COMMON_H

#include <stdint.h>

#include <lua.h>
#include <lauxlib.h>

#include "core/codetimer.h"

#if LUA_VERSION_NUM < 504
#error "codetimer needs Lua 5.4 or later: a run depends on to-be-closed variables"
#endif

/* ---- common.c ---- */

/* Pushes nil, the sentence of the status and its name ("CT_EPERM"). Returns 3. */
int ct__lua_fail(lua_State *L, int status);

/* Pushes a short description of a refused value: "2.5", "the string \"7\"", "a table". Returns it. */
const char *ct__lua_describe(lua_State *L, int index);

/* 1 if the value at "index" is this string, to its last byte (Lua's may hold NULs). */
int ct__lua_is(lua_State *L, int index, const char *text);

/* Reads a number with an exact integer value >= 0; another value raises an argument error that begins with "what". */
lua_Integer ct__lua_check_count(lua_State *L, int arg, int index, const char *what, lua_Integer most);

/* Argument "arg" must be a table with no other keys than "names" (ends with NULL), or nil. Returns 1 for a table. */
int ct__lua_check_options(lua_State *L, int arg, const char *const *names);

int ct__lua_is_callable(lua_State *L, int index);

/* Argument "arg", found at "index", must be a function or have __call. */
void ct__lua_check_callable(lua_State *L, int arg, int index);

/* table[key] = value, for the table on top of the stack. A NULL text is absent. */
void ct__lua_set_text(lua_State *L, const char *key, const char *text);
void ct__lua_set_integer(lua_State *L, const char *key, uint64_t value);
void ct__lua_set_number(lua_State *L, const char *key, double value);
void ct__lua_set_boolean(lua_State *L, const char *key, int value);

/* The same, if it is known. */
void ct__lua_set_count(lua_State *L, const char *key, int known, uint64_t value);
void ct__lua_set_known(lua_State *L, const char *key, int known, double value);

/* Pushes the method whose name is at "index"; returns 1, or 0 if there is none. For __index. */
int ct__lua_push_method(lua_State *L, int index, const luaL_Reg *methods);

/* Makes a place in the registry, holding false, so that filling it later allocates nothing. */
void ct__lua_reserve(lua_State *L, const void *key);

/* Makes the metatable "name" with these functions, once per state. */
void ct__lua_new_type(lua_State *L, const char *name, const luaL_Reg *functions);

/* ---- gc.c ---- */

/* Collections since an arbitrary moment; only differences mean something. A change of "lost" says that counting broke
 * off in between (no memory for a sentinel). */
typedef struct ct__lua_gc {
    uint64_t minor;
    uint64_t major;
    uint64_t lost;
} ct__lua_gc;

enum { CT__LUA_GENERATIONS = 2 };
extern const char *const ct__lua_gc_labels[CT__LUA_GENERATIONS];

void ct__lua_gc_open(lua_State *L);
void ct__lua_gc_arm(lua_State *L);    /* may raise "not enough memory"; nothing is armed then */
void ct__lua_gc_settle(lua_State *L); /* a full collection: the counts are exact from here on; may raise likewise */
void ct__lua_gc_disarm(lua_State *L);
void ct__lua_gc_read(lua_State *L, ct__lua_gc *counts);

/* ---- allocations.c ---- */

/* From here to release nothing is counted in a memory pass: what is asked for is ours. */
lua_State *ct__lua_allocations_hold(lua_State *L);
void ct__lua_allocations_release(lua_State *L, lua_State *held);

/* ---- file.c: where reports go ---- */

/* The value at "arg" must have a method write; "what" begins the sentence that refuses another one. */
void ct__lua_check_file(lua_State *L, int arg, const char *what);
/* Replaces nil in the slot by io.stdout as it is now. Returns 0 if there is none. */
int ct__lua_resolve_file(lua_State *L, int file);
int ct__lua_file_color(lua_State *L, int file);
int ct__lua_flush_file(lua_State *L, int file);

/* ---- facts.c: parts of results as tables ---- */

void ct__lua_push_counts(lua_State *L, const uint64_t *counts, size_t count);
void ct__lua_push_texts(lua_State *L, const char *const *texts, size_t count);
void ct__lua_push_usage(lua_State *L, const ct_usage *usage);
void ct__lua_push_gc_time(lua_State *L, const ct_gc_time *gc_time);
void ct__lua_push_memory(lua_State *L, const ct_memory *memory);
void ct__lua_push_overheads(lua_State *L, const ct_overhead *overheads, size_t count);
void ct__lua_push_ratio(lua_State *L, const ct_ratio *ratio);

/* Pushes the text that "put" writes; it is called twice, for the length and for the text. */
typedef size_t (*ct__lua_put)(lua_State *L, const void *what, char *buffer, size_t size);
void ct__lua_push_text(lua_State *L, ct__lua_put put, const void *what);

/* ---- result.c ---- */

/* Pushes an empty result. */
void ct__lua_new_result(lua_State *L);

/* Puts a C result, of a Lua function or not (-1: of neither kind, nothing is known of empty ones), into the empty
 * result at "index"; into anything else it is not put, but freed, and 0 returned. */
int ct__lua_set_result(lua_State *L, int index, ct_result *result, int is_lua);

/* Pushes the result of a candidate, which belongs to the comparison at "index". */
void ct__lua_push_result(lua_State *L, int index, size_t candidate, int is_lua);
int ct__lua_is_result(lua_State *L, int index);

/* Raises an error for another value, and where the run has not ended, or after __gc. */
ct_result *ct__lua_check_result(lua_State *L, int index);

/* NULL instead. */
ct_result *ct__lua_find_result(lua_State *L, int index);

/* Pushes the report block of the result at "index". */
void ct__lua_push_report(lua_State *L, int index, int color, int verbose);
/* All fields of the result at "index" as a table. */
void ct__lua_push_result_dict(lua_State *L, int index);
/* The result at "index" becomes the last one. Allocates nothing. */
void ct__lua_set_last_result(lua_State *L, int index);
void ct__lua_result_open(lua_State *L);
int ct__lua_last_result(lua_State *L);

/* ---- comparison.c ---- */

/* As for results. "lua": which candidates are Lua functions, one bit each. */
void ct__lua_new_comparison(lua_State *L);
int ct__lua_set_comparison(lua_State *L, int index, ct_comparison *comparison, uint32_t lua);
ct_comparison *ct__lua_find_comparison(lua_State *L, int index);
void ct__lua_push_table(lua_State *L, int index, int color, int verbose);
void ct__lua_set_last_comparison(lua_State *L, int index);
void ct__lua_comparison_open(lua_State *L);
int ct__lua_last_comparison(lua_State *L);

/* ---- statement.c, export.c: for codetimer-lua time ---- */

void ct__lua_statement_open(lua_State *L);
int ct__lua_statement(lua_State *L);
int ct__lua_export(lua_State *L);
int ct__lua_export_report(lua_State *L);
int ct__lua_progress(lua_State *L);
int ct__lua_terminals(lua_State *L);

/* ---- run.c, compare.c, environment.c, info.c ---- */

void ct__lua_run_open(lua_State *L);
int ct__lua_time(lua_State *L);
int ct__lua_compare(lua_State *L);

void ct__lua_environment_open(lua_State *L);
int ct__lua_initialize(lua_State *L);

void ct__lua_push_clock(lua_State *L, const ct_clock *clock);
void ct__lua_push_cycles(lua_State *L, const ct_cycles *cycles);
int ct__lua_clock_info(lua_State *L);
int ct__lua_thread_cycles(lua_State *L);
int ct__lua_now_ns(lua_State *L);

#endif
