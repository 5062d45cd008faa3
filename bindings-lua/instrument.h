/* SPDX-License-Identifier: MIT
 *
 * instrument.h: what the files about measuring whole tables and modules offer each other.
 *
 * A function that lies in a table is measured by putting its wrapper in its place. Whoever asked for that holds a
 * handle, which knows each field that it has replaced, so that all can be put back. All access is raw: no metamethod of
 * the program is ever run.
 *
 * Invariant: a wrapper is in use as long as a live handle has a field with it; then the original has no second one.
 */
#ifndef CT_LUA_INSTRUMENT_H
#define CT_LUA_INSTRUMENT_H

#include "live.h"

typedef struct ct__lua_handle {
    ct_members *members; /* what it selects; NULL: all of its table; of modules nothing, there is no list */
    int modules;         /* 1: it is about modules, also those to come; 0: about one table */
    int follows;         /* its members are the list of the process, read again whenever that changes */
    int ended;
} ct__lua_handle;

/* The user values of a handle. */
enum {
    CT__LUA_FIELDS = 1, /* table -> key -> wrapper */
    CT__LUA_REACHED,    /* wrapper -> member */
    CT__LUA_REASONS,    /* member -> why it is not reached */
    CT__LUA_NAME,       /* what it was asked for by: a text, or the prefix of a table; else nil */
    CT__LUA_PREFIX,     /* or nil: the names of the modules */
    CT__LUA_CATEGORY,   /* or nil */
    CT__LUA_HANDLE_VALUES = CT__LUA_CATEGORY
};

/* ---- codetimer.c: what the module has ---- */

extern const luaL_Reg ct__lua_functions[];

/* ---- instrument.c ---- */

void ct__lua_instrument_open(lua_State *L);
int ct__lua_instrument(lua_State *L);
int ct__lua_uninstrument(lua_State *L);
/* Pushes the array of live handles. */
void ct__lua_push_handles(lua_State *L);
ct__lua_handle *ct__lua_to_handle(lua_State *L, int index);
/* Makes the members of a handle that follows the list of the process those of the list as it is now. */
void ct__lua_read_list(lua_State *L, int handle);
/* Notes, once, why a member is not reached. */
void ct__lua_note_reason(lua_State *L, int handle, const char *member, const char *reason);

/* ---- replace.c ---- */

void ct__lua_replace_open(lua_State *L);
/* Puts a wrapper in the place of the function table[key]; all are indices of the stack. Returns 0 if it does not: a
 * function that is measured in another way stays as it is. */
int ct__lua_replace_field(lua_State *L, int handle, int table, int key, int member);
/* Notes which functions that the handle has reached the one behind this wrapper has taken into upvalues before. */
void ct__lua_note_taken(lua_State *L, int handle, int wrapper);
/* Puts back what the handle has replaced, and nobody has replaced since. */
void ct__lua_restore_fields(lua_State *L, int handle);

/* ---- walk.c ---- */

/* A walk through tables, breadth first: so the first name of a function is its shortest. What only metatables lead to
 * comes last. */
typedef struct ct__lua_walk {
    lua_State *L;
    const ct__lua_handle *handle;
    int handle_at, visited, owners, fresh, queues[2]; /* indices of the stack */
    lua_Integer taken[2], queued[2], fresh_count;
    const void *globals;
} ct__lua_walk;

/* Pushes what the walk needs. */
void ct__lua_walk_begin(ct__lua_walk *walk, lua_State *L, int handle);
/* Adds a table that was asked for by name. */
void ct__lua_walk_add(ct__lua_walk *walk, int table, int name);
/* Looks at one field of a table. */
void ct__lua_walk_field(ct__lua_walk *walk, int table, int name, int key, lua_Integer depth);
void ct__lua_walk_all(ct__lua_walk *walk);
/* Pushes an array of the strings and integers that are keys of functions and tables, sorted. */
void ct__lua_push_sorted_keys(lua_State *L, int table);

/* ---- select.c ---- */

/* Whether the patterns can select "name" or a member below it. "by_name" 1: such that begin with the whole name. */
int ct__lua_may_select(const ct_members *members, const char *name, int by_name);
int ct__lua_selects(const ct__lua_handle *handle, const char *member);
int ct__lua_is_standard(const char *name); /* a module of Lua itself, or "_G" */
int ct__lua_is_basic(const char *name);    /* a global function of Lua itself */

/* ---- program.c ---- */

int ct__lua_measure_program(lua_State *L);

/* ---- modules.c ---- */

/* Pushes the name that stands for the globals: the stem of the script. */
const char *ct__lua_push_script(lua_State *L);
/* Has the handle measure what is loaded, and what is to come. Raises errors of memory. */
void ct__lua_sweep(lua_State *L, int handle);
/* After a handle has come or gone: what listens for modules and globals to come is there exactly while it is needed. */
void ct__lua_listen(lua_State *L);
/* At a poll: "changed" 1 if the members list has changed. Raises nothing. */
void ct__lua_follow(lua_State *L, int changed);

#endif
