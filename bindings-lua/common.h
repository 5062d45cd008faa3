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

/* Argument "arg", found at "index", must be a function or have __call. */
void ct__lua_check_callable(lua_State *L, int arg, int index);

/* table[key] = value, for the table on top of the stack. A NULL text is absent. */
void ct__lua_set_text(lua_State *L, const char *key, const char *text);
void ct__lua_set_integer(lua_State *L, const char *key, uint64_t value);
void ct__lua_set_number(lua_State *L, const char *key, double value);
void ct__lua_set_boolean(lua_State *L, const char *key, int value);

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

void ct__lua_gc_open(lua_State *L);
void ct__lua_gc_arm(lua_State *L);    /* may raise "not enough memory"; nothing is armed then */
void ct__lua_gc_settle(lua_State *L); /* a full collection: the counts are exact from here on; may raise likewise */
void ct__lua_gc_disarm(lua_State *L);
void ct__lua_gc_read(lua_State *L, ct__lua_gc *counts);

/* ---- file.c: where reports go ---- */

/* The value at "arg" must have a method write; "what" begins the sentence that refuses another one. */
void ct__lua_check_file(lua_State *L, int arg, const char *what);
/* Replaces nil in the slot by io.stdout as it is now. Returns 0 if there is none. */
int ct__lua_resolve_file(lua_State *L, int file);
int ct__lua_file_color(lua_State *L, int file);
int ct__lua_flush_file(lua_State *L, int file);

/* ---- result.c ---- */

/* Pushes an empty result; the caller puts the C result into it. */
ct_result **ct__lua_new_result(lua_State *L);
ct_result *ct__lua_check_result(lua_State *L, int index);
/* NULL for another value; the place is empty before the run has ended, and after __gc. */
ct_result **ct__lua_test_result(lua_State *L, int index);
/* Pushes the report block of the result at "index". */
void ct__lua_push_report(lua_State *L, int index, int color);
/* The result at "index" becomes the last one. Allocates nothing. */
void ct__lua_set_last_result(lua_State *L, int index);
void ct__lua_result_open(lua_State *L);
int ct__lua_last_result(lua_State *L);

/* ---- run.c, environment.c, info.c ---- */

void ct__lua_run_open(lua_State *L);
int ct__lua_time(lua_State *L);

void ct__lua_environment_open(lua_State *L);
int ct__lua_initialize(lua_State *L);

void ct__lua_push_clock(lua_State *L, const ct_clock *clock);
void ct__lua_push_cycles(lua_State *L, const ct_cycles *cycles);
int ct__lua_clock_info(lua_State *L);
int ct__lua_thread_cycles(lua_State *L);
int ct__lua_now_ns(lua_State *L);

#endif
