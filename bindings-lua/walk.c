/* SPDX-License-Identifier: MIT
 *
 * walk.c: which functions there are in a table, and what they are called.
 *
 * A table leads to the tables in its fields, and, after all of these, to its metatable, the metamethods of that, and
 * what "__index" names: so classes are seen with their methods, and what they inherit keeps its own name where it has
 * one. Each table is visited once. A table that is a loaded module is left to that module's name. Fields are visited in
 * the order of their names, so names do not depend on the order in which Lua keeps them.
 *
 * Some metamethods stay as they are: __index and __newindex run with every access to a field, __gc when the collector
 * pleases. (Python's __getattribute__, __setattr__ and __del__ likewise.)
 */
#include "instrument.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_MOST = 16 };
enum { BY_FIELD, BY_METATABLE }; /* the two queues */
enum { NEEDED = 30 };            /* places on the stack */

/* ---- sorted keys ---- */

typedef struct sort_key {
    const char *text; /* NULL: an integer */
    size_t length;
    lua_Integer number, at;
} sort_key;

static int compare_keys(const void *left, const void *right) {
    const sort_key *a = left, *b = right;
    if (a->text == NULL || b->text == NULL) {
        if (a->text != b->text) return a->text == NULL ? 1 : -1;
        return a->number < b->number ? -1 : a->number > b->number;
    }
    int order = memcmp(a->text, b->text, a->length < b->length ? a->length : b->length);
    if (order != 0) return order;
    return a->length < b->length ? -1 : a->length > b->length;
}

static int is_walkable(lua_State *L, int index) { return lua_isfunction(L, index) || lua_istable(L, index); }

/* Pushes an array of the keys, in any order; returns how many. */
static lua_Integer push_keys(lua_State *L, int table) {
    lua_Integer count = 0;
    lua_newtable(L);
    int keys = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, table) != 0; lua_pop(L, 1)) {
        if (!is_walkable(L, -1) || (lua_type(L, -2) != LUA_TSTRING && !lua_isinteger(L, -2))) continue;
        lua_pushvalue(L, -2);
        lua_rawseti(L, keys, ++count);
    }
    return count;
}

static void sort_keys(lua_State *L, int keys, sort_key *sorted, lua_Integer count) {
    for (lua_Integer i = 0; i < count; i++) {
        sorted[i] = (sort_key){.at = i + 1};
        if (lua_rawgeti(L, keys, i + 1) == LUA_TSTRING)
            sorted[i].text = lua_tolstring(L, -1, &sorted[i].length);
        else
            sorted[i].number = lua_tointeger(L, -1);
        lua_pop(L, 1);
    }
    qsort(sorted, (size_t)count, sizeof *sorted, compare_keys);
}

void ct__lua_push_sorted_keys(lua_State *L, int table) {
    table = lua_absindex(L, table);
    lua_Integer count = push_keys(L, table);
    int keys = lua_gettop(L);
    sort_key *sorted = lua_newuserdatauv(L, (size_t)(count + 1) * sizeof *sorted, 0);
    sort_keys(L, keys, sorted, count);
    lua_createtable(L, count < 1024 ? (int)count : 1024, 0);
    for (lua_Integer i = 0; i < count; i++) {
        lua_rawgeti(L, keys, sorted[i].at);
        lua_rawseti(L, -2, i + 1);
    }
    lua_replace(L, keys);
    lua_settop(L, keys);
}

/* ---- the queues: table, name, depth ---- */

/* What "visited" has of a table: nil, false (it is in the queue of metatables), true. Changes it, and returns 1, if
 * that is something new. */
static int mark(ct__lua_walk *walk, int table, int visited) {
    lua_State *L = walk->L;
    lua_pushvalue(L, table);
    int fresh = lua_rawget(L, walk->visited) == LUA_TNIL || (visited && !lua_toboolean(L, -1));
    lua_pop(L, 1);
    if (!fresh) return 0;
    lua_pushvalue(L, table);
    lua_pushboolean(L, visited);
    lua_rawset(L, walk->visited);
    return 1;
}

static void enqueue(ct__lua_walk *walk, int which, int table, int name, lua_Integer depth) {
    lua_State *L = walk->L;
    lua_Integer at = walk->queued[which]++ * 3;
    lua_pushvalue(L, table);
    lua_rawseti(L, walk->queues[which], at + 1);
    lua_pushvalue(L, name);
    lua_rawseti(L, walk->queues[which], at + 2);
    lua_pushinteger(L, depth);
    lua_rawseti(L, walk->queues[which], at + 3);
}

/* Whether anybody wants to hear of what is below this name. */
static void note(ct__lua_walk *walk, const char *name, const char *reason) {
    const ct__lua_handle *handle = walk->handle;
    if (!handle->modules || ct__lua_may_select(handle->members, name, 0))
        ct__lua_note_reason(walk->L, walk->handle_at, name, reason);
}

static void add_table(ct__lua_walk *walk, int which, int table, int name, lua_Integer depth) {
    if (depth > DEPTH_MOST)
        note(walk, lua_tostring(walk->L, name), "it is nested too deeply");
    else if (mark(walk, table, which == BY_FIELD))
        enqueue(walk, which, table, name, depth);
}

/* Pushes the next table, its name and depth, and returns 1; or 0 if there is none. */
static int dequeue(ct__lua_walk *walk, int which) {
    if (walk->taken[which] == walk->queued[which]) return 0;
    lua_Integer at = walk->taken[which]++ * 3;
    for (int i = 1; i <= 3; i++) {
        lua_rawgeti(walk->L, walk->queues[which], at + i);
        lua_pushnil(walk->L);
        lua_rawseti(walk->L, walk->queues[which], at + i);
    }
    return 1;
}

/* ---- what belongs to others ---- */

static int is_own_table(lua_State *L, int index) {
    if (!lua_istable(L, index) || !lua_getmetatable(L, index)) return 0;
    luaL_getmetatable(L, "codetimer.Module");
    int own = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return own;
}

static int is_own(lua_State *L, int index) {
    lua_CFunction function = lua_tocfunction(L, index);
    for (const luaL_Reg *at = ct__lua_functions; function != NULL && at->name != NULL; at++)
        if (at->func == function) return 1;
    return is_own_table(L, index);
}

/* owners: table -> the name of the module that it is. One with two names has the one that sorts first. */
static void push_owners(lua_State *L) {
    lua_newtable(L);
    int owners = lua_gettop(L), loaded = owners + 1;
    lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_pushvalue(L, loaded);
    lua_pushliteral(L, "");
    lua_rawset(L, owners);
    ct__lua_push_sorted_keys(L, loaded);
    for (lua_Integer i = (lua_Integer)lua_rawlen(L, -1); i > 0; i--) {
        lua_rawgeti(L, loaded + 1, i);
        lua_pushvalue(L, -1);
        if (lua_rawget(L, loaded) == LUA_TTABLE && lua_type(L, -2) == LUA_TSTRING) {
            lua_rotate(L, -2, 1);
            lua_rawset(L, owners);
        }
        lua_settop(L, loaded + 1);
    }
    lua_settop(L, owners);
}

/* A loaded module is entered under its own name only. */
static int is_foreign(ct__lua_walk *walk, int table, int name) {
    lua_State *L = walk->L;
    if (is_own(L, table)) return 1;
    lua_pushvalue(L, table);
    int foreign = lua_rawget(L, walk->owners) == LUA_TSTRING && !lua_rawequal(L, -1, name);
    lua_pop(L, 1);
    return foreign;
}

/* ---- one field ---- */

static int is_left_alone(const char *key) {
    return strcmp(key, "__index") == 0 || strcmp(key, "__newindex") == 0 || strcmp(key, "__gc") == 0;
}

/* Pushes "name.key", or returns 0 if that is no name of a member. */
static int push_member(ct__lua_walk *walk, int name, int key) {
    lua_State *L = walk->L;
    size_t length;
    lua_pushvalue(L, key);
    const char *text = lua_tolstring(L, -1, &length);
    if (strlen(text) != length) {
        lua_pushfstring(L, "%s.%s", lua_tostring(L, name), text);
        note(walk, lua_tostring(L, -1), "its name holds a NUL byte");
        lua_pop(L, 2);
        return 0;
    }
    lua_pushfstring(L, "%s.%s", lua_tostring(L, name), text);
    lua_remove(L, -2);
    return 1;
}

static void walk_function(ct__lua_walk *walk, int table, int key, int member) {
    lua_State *L = walk->L;
    const char *text = lua_tostring(L, member);
    if (walk->handle->ended || !ct__lua_selects(walk->handle, text)) return;
    if (lua_type(L, key) == LUA_TSTRING && is_left_alone(lua_tostring(L, key)))
        ct__lua_note_reason(L, walk->handle_at, text, "Lua calls it behind the program's back");
    else if (ct__lua_replace_field(L, walk->handle_at, table, key, member)) {
        lua_pushvalue(L, key);
        lua_rawget(L, table);
        lua_rawseti(L, walk->fresh, ++walk->fresh_count);
    }
}

void ct__lua_walk_field(ct__lua_walk *walk, int table, int name, int key, lua_Integer depth) {
    lua_State *L = walk->L;
    int top = lua_gettop(L), value = top + 1, member = top + 2;
    lua_pushvalue(L, key);
    lua_rawget(L, table);
    int is_index = ct__lua_is(L, key, "__index") && lua_istable(L, value);
    if (is_index) {
        add_table(walk, BY_METATABLE, value, name, depth + 1);
    } else if (is_walkable(L, value) && push_member(walk, name, key)) {
        if (lua_istable(L, value) && !is_foreign(walk, value, member))
            add_table(walk, BY_FIELD, value, member, depth + 1);
        else if (lua_isfunction(L, value) && !is_own(L, value))
            walk_function(walk, table, key, member);
    }
    lua_settop(L, top);
}

/* ---- one table ---- */

/* Lua's own global functions among the globals, unless "_G" itself was asked for. */
static int is_basic(const ct__lua_walk *walk, int table, int name, int key) {
    lua_State *L = walk->L;
    if (lua_topointer(L, table) != walk->globals || lua_type(L, key) != LUA_TSTRING) return 0;
    if (ct__lua_is(L, name, "_G") || !ct__lua_is_basic(lua_tostring(L, key))) return 0;
    lua_pushvalue(L, key);
    lua_rawget(L, table);
    int basic = lua_iscfunction(L, -1);
    lua_pop(L, 1);
    return basic;
}

static void visit_fields(ct__lua_walk *walk, int table, int name, lua_Integer depth) {
    lua_State *L = walk->L;
    ct__lua_push_sorted_keys(L, table);
    int keys = lua_gettop(L), key = keys + 1;
    lua_Integer count = (lua_Integer)lua_rawlen(L, keys);
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(L, keys, i);
        if (!is_basic(walk, table, name, key)) ct__lua_walk_field(walk, table, name, key, depth);
        lua_settop(L, keys);
    }
    lua_settop(L, keys - 1);
}

static int has_field(lua_State *L, int table, const char *key, int type) {
    lua_pushstring(L, key);
    int found = lua_rawget(L, table);
    lua_pop(L, 1);
    return type == LUA_TNONE ? found != LUA_TNIL : found == type;
}

static int is_empty(lua_State *L, int table) {
    lua_pushnil(L);
    if (lua_next(L, table) == 0) return 1;
    lua_pop(L, 2);
    return 0;
}

/* What stands between the program and a table that may not be changed is no way to change it for us either. */
static int is_proxy(lua_State *L, int table, int metatable) {
    return is_empty(L, table) && has_field(L, metatable, "__index", LUA_TNONE) &&
           has_field(L, metatable, "__newindex", LUA_TNONE);
}

static void visit_metatable(ct__lua_walk *walk, int table, int name, lua_Integer depth) {
    lua_State *L = walk->L;
    int metatable = lua_gettop(L), proxy = is_proxy(L, table, metatable);
    lua_pushfstring(L, "%s.*", lua_tostring(L, name));
    if (proxy)
        note(walk, lua_tostring(L, -1), "it is a proxy: its fields lie behind __index, and __newindex guards them");
    else if (has_field(L, metatable, "__index", LUA_TFUNCTION))
        note(walk, lua_tostring(L, -1), "fields that a function, __index, makes up cannot be looked through");
    if (!proxy) add_table(walk, BY_METATABLE, metatable, name, depth + 1);
    lua_settop(L, metatable);
}

static void visit(ct__lua_walk *walk, int table, int name, lua_Integer depth) {
    lua_State *L = walk->L;
    luaL_checkstack(L, NEEDED, NULL);
    visit_fields(walk, table, name, depth);
    if (!lua_getmetatable(L, table)) return;
    visit_metatable(walk, table, name, depth);
    lua_pop(L, 1);
}

/* ---- all of them ---- */

void ct__lua_walk_begin(ct__lua_walk *walk, lua_State *L, int handle) {
    luaL_checkstack(L, NEEDED, NULL);
    *walk = (ct__lua_walk){.L = L, .handle = ct__lua_to_handle(L, handle), .handle_at = handle};
    lua_newtable(L);
    walk->visited = lua_gettop(L);
    lua_newtable(L);
    walk->fresh = lua_gettop(L);
    for (int i = 0; i < 2; i++) {
        lua_newtable(L);
        walk->queues[i] = lua_gettop(L);
    }
    lua_pushglobaltable(L);
    walk->globals = lua_topointer(L, -1);
    lua_pop(L, 1);
    push_owners(L);
    walk->owners = lua_gettop(L);
}

void ct__lua_walk_add(ct__lua_walk *walk, int table, int name) {
    if (!is_own(walk->L, table)) add_table(walk, BY_FIELD, table, name, 0);
}

/* What a metatable leads to may have been visited, or be a module, by the time that its turn comes. */
static int is_due(ct__lua_walk *walk, int which, int table, int name) {
    return which == BY_FIELD || (!is_foreign(walk, table, name) && mark(walk, table, 1));
}

void ct__lua_walk_all(ct__lua_walk *walk) {
    lua_State *L = walk->L;
    int top = lua_gettop(L), table = top + 1, name = top + 2, depth = top + 3;
    for (int which; (which = BY_FIELD, dequeue(walk, which)) || (which = BY_METATABLE, dequeue(walk, which));) {
        if (is_due(walk, which, table, name)) visit(walk, table, name, lua_tointeger(L, depth));
        lua_settop(L, top);
    }
    for (lua_Integer i = 1; i <= walk->fresh_count; i++) {
        lua_rawgeti(L, walk->fresh, i);
        ct__lua_note_taken(L, walk->handle_at, top + 1);
        lua_settop(L, top);
    }
}
