/* SPDX-License-Identifier: MIT
 *
 * modules.c: measuring modules by their names, those that are loaded and those to come, and the globals of the script.
 *
 * A module that comes is seen by a searcher of our own, the first of package.searchers: it asks the others, and gives
 * require their answer, but for a loader one that looks at the module after it has been loaded. Where the others find
 * nothing it says nothing, so require's messages stay what they are.
 *
 * The globals count as a module that has the name of the script. One that comes is seen by a __newindex in the
 * metatable of the globals, unless the program has such a one of its own. Of a global table it sees the beginning only;
 * so the last one that came is looked at again with the next global, module or poll.
 *
 * Both are there exactly as long as some handle needs them.
 */
#include "instrument.h"

#include <string.h>

static const char newest_key = 0;    /* the name of the global table that came last, or nil */
static const char metatable_key = 0; /* the metatable that we have given to the globals, or nil */

enum { NEEDED = 30 }; /* places on the stack */

static int search(lua_State *L);
static int set_global(lua_State *L);

/* ---- what a handle is about ---- */

const char *ct__lua_push_script(lua_State *L) {
    ct__lua_push_program(L);
    if (lua_isnil(L, -1))
        lua_pushliteral(L, "main");
    else
        ct__lua_push_stem(L, lua_tostring(L, -1));
    lua_remove(L, -2);
    return lua_tostring(L, -1);
}

/* A handle that gives a module another name is about that one only. */
static int has_prefix(lua_State *L, int handle) {
    int has = lua_getiuservalue(L, handle, CT__LUA_PREFIX) != LUA_TNIL;
    lua_pop(L, 1);
    return has;
}

static int wants_globals(lua_State *L, int handle) {
    const ct__lua_handle *h = ct__lua_to_handle(L, handle);
    if (!h->modules || has_prefix(L, handle)) return 0;
    int wants = ct__lua_may_select(h->members, ct__lua_push_script(L), 0);
    lua_pop(L, 1);
    return wants;
}

/* Pushes what members of this module begin with, or returns 0 if the handle is not about it. */
static int push_prefix(lua_State *L, int handle, int name) {
    const ct__lua_handle *h = ct__lua_to_handle(L, handle);
    const char *text = lua_tostring(L, name);
    int asked = !has_prefix(L, handle);
    if (asked) {
        lua_pushvalue(L, name);
        asked = ct__lua_may_select(h->members, text, ct__lua_is_standard(text));
    } else {
        lua_getiuservalue(L, handle, CT__LUA_PREFIX);
        lua_getiuservalue(L, handle, CT__LUA_NAME);
        asked = lua_rawequal(L, -1, name);
        lua_pop(L, 1);
    }
    if (!asked) lua_pop(L, 1);
    return asked;
}

/* ---- sweeping ---- */

/* A module that is a function is replaced where require finds it. */
static void add_module(ct__lua_walk *walk, int loaded, int name) {
    lua_State *L = walk->L;
    int top = lua_gettop(L), prefix = top + 1, value = top + 2;
    if (lua_type(L, name) != LUA_TSTRING || !push_prefix(L, walk->handle_at, name)) return;
    lua_pushvalue(L, name);
    lua_rawget(L, loaded);
    if (lua_istable(L, value))
        ct__lua_walk_add(walk, value, prefix);
    else if (lua_isfunction(L, value) && ct__lua_selects(walk->handle, lua_tostring(L, prefix)))
        ct__lua_replace_field(L, walk->handle_at, loaded, name, prefix);
    lua_settop(L, top);
}

static void add_globals(ct__lua_walk *walk) {
    lua_State *L = walk->L;
    if (!wants_globals(L, walk->handle_at)) return;
    lua_pushglobaltable(L);
    ct__lua_push_script(L);
    ct__lua_walk_add(walk, lua_gettop(L) - 1, lua_gettop(L));
    lua_pop(L, 2);
}

static void push_loaded(lua_State *L) { lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE); }

void ct__lua_sweep(lua_State *L, int handle) {
    ct__lua_walk walk;
    int top = lua_gettop(L);
    ct__lua_walk_begin(&walk, L, handle);
    push_loaded(L);
    int loaded = lua_gettop(L), names = loaded + 1;
    ct__lua_push_sorted_keys(L, loaded);
    lua_Integer count = (lua_Integer)lua_rawlen(L, names);
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(L, names, i);
        add_module(&walk, loaded, names + 1);
        lua_settop(L, names);
    }
    add_globals(&walk);
    ct__lua_walk_all(&walk);
    lua_settop(L, top);
}

/* Calls "visit" with each live handle that is about modules; a sweep may run anything, also what ends handles. */
static void for_each_handle(lua_State *L, void (*visit)(lua_State *L, int handle, int arg), int arg) {
    luaL_checkstack(L, NEEDED, NULL);
    int top = lua_gettop(L);
    ct__lua_push_handles(L);
    for (lua_Integer i = (lua_Integer)lua_rawlen(L, top + 1); i > 0; i--) {
        lua_rawgeti(L, top + 1, i);
        const ct__lua_handle *handle = ct__lua_to_handle(L, top + 2);
        if (handle != NULL && handle->modules) visit(L, top + 2, arg);
        lua_settop(L, top + 1);
    }
    lua_settop(L, top);
}

/* In protected mode: what goes wrong here is no business of the program. Takes "count" values from the stack. */
static void run_protected(lua_State *L, lua_CFunction function, int count) {
    lua_pushcfunction(L, function);
    lua_insert(L, -count - 1);
    if (lua_pcall(L, count, 0, 0) == LUA_OK) return;
    const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : luaL_typename(L, -1);
    ct__lua_trace_skipped(L, "instrument", text);
    lua_pop(L, 1);
}

/* ---- globals to come ---- */

static void visit_newest(lua_State *L, int handle, int name) {
    ct__lua_walk walk;
    if (!wants_globals(L, handle)) return;
    ct__lua_walk_begin(&walk, L, handle);
    lua_pushglobaltable(L);
    ct__lua_push_script(L);
    ct__lua_walk_field(&walk, lua_gettop(L) - 1, lua_gettop(L), name, 0);
    ct__lua_walk_all(&walk);
}

/* note_global(name or nil): looks again at the table that came last, and at this one. */
static int note_global(lua_State *L) {
    lua_settop(L, 1);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &newest_key) == LUA_TSTRING) for_each_handle(L, visit_newest, 2);
    if (lua_isnil(L, 1)) return 0;
    for_each_handle(L, visit_newest, 1);
    lua_pushglobaltable(L);
    lua_pushvalue(L, 1);
    if (lua_rawget(L, -2) != LUA_TTABLE) return 0;
    lua_pushvalue(L, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &newest_key);
    return 0;
}

/* __newindex(globals, name, value) */
static int set_global(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 3);
    lua_pushvalue(L, 2);
    lua_pushvalue(L, 3);
    lua_rawset(L, 1);
    if (lua_type(L, 2) != LUA_TSTRING || (!lua_isfunction(L, 3) && !lua_istable(L, 3))) return 0;
    lua_settop(L, 2);
    run_protected(L, note_global, 1);
    return 0;
}

static int owns_newindex(lua_State *L, int metatable) {
    lua_pushliteral(L, "__newindex");
    lua_rawget(L, metatable);
    int ours = lua_tocfunction(L, -1) == set_global;
    lua_pop(L, 1);
    return ours;
}

static void listen_to_globals(lua_State *L) {
    int top = lua_gettop(L), metatable = top + 2;
    lua_pushglobaltable(L);
    if (!lua_getmetatable(L, top + 1)) {
        lua_createtable(L, 0, 1);
        lua_pushvalue(L, metatable);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &metatable_key);
        lua_pushvalue(L, metatable);
        lua_setmetatable(L, top + 1);
    }
    lua_pushliteral(L, "__newindex");
    if (lua_rawget(L, metatable) == LUA_TNIL) {
        lua_pushliteral(L, "__newindex");
        lua_pushcfunction(L, set_global);
        lua_rawset(L, metatable);
    }
    lua_settop(L, top);
}

/* The program may have come to use the metatable that we made, or have given the globals another one. */
static void ignore_globals(lua_State *L) {
    int top = lua_gettop(L), metatable = top + 2;
    lua_pushglobaltable(L);
    if (lua_getmetatable(L, top + 1) && owns_newindex(L, metatable)) {
        lua_pushliteral(L, "__newindex");
        lua_pushnil(L);
        lua_rawset(L, metatable);
        lua_rawgetp(L, LUA_REGISTRYINDEX, &metatable_key);
        int ours = lua_rawequal(L, -1, metatable);
        lua_pushnil(L);
        if (ours && lua_next(L, metatable) == 0) {
            lua_pushnil(L);
            lua_setmetatable(L, top + 1);
        }
    }
    lua_settop(L, top);
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &metatable_key);
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &newest_key);
}

/* ---- modules to come ---- */

static void visit_module(lua_State *L, int handle, int name) {
    ct__lua_walk walk;
    ct__lua_walk_begin(&walk, L, handle);
    push_loaded(L);
    add_module(&walk, lua_gettop(L), name);
    ct__lua_walk_all(&walk);
}

/* note_module(name): it is in package.loaded. Perhaps no measured function is ever called, so this is a time to poll.
 */
static int note_module(lua_State *L) {
    ct__lua_poll_now(L, ct__lua_find_counters(L));
    for_each_handle(L, visit_module, 1);
    ct__lua_listen(L); /* a loader may have put another searcher in front */
    lua_pushnil(L);
    lua_replace(L, 1);
    return note_global(L);
}

/* A loader (name, data), which does what require does with the result of the one behind it, a little earlier. */
static int load_module(lua_State *L) {
    lua_settop(L, 2);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_pushvalue(L, 2);
    lua_rotate(L, 1, 1); /* name, loader, name, data */
    lua_call(L, 2, 1);
    push_loaded(L);
    if (!lua_isnil(L, 2)) {
        lua_pushvalue(L, 1);
        lua_pushvalue(L, 2);
        lua_settable(L, 3); /* as require does, so what listens there goes on doing so */
    }
    lua_pushvalue(L, 1);
    run_protected(L, note_module, 1);
    if (lua_isnil(L, 2)) return 0;
    lua_pushvalue(L, 1);
    lua_rawget(L, 3);
    return 1;
}

/* Pushes package.searchers, or returns 0 if there is no such table. */
static int push_searchers(lua_State *L) {
    push_loaded(L);
    lua_pushliteral(L, "package");
    lua_rawget(L, -2);
    lua_remove(L, -2);
    if (lua_istable(L, -1)) {
        lua_pushliteral(L, "searchers");
        lua_rawget(L, -2);
        lua_remove(L, -2);
        if (lua_istable(L, -1)) return 1;
    }
    lua_pop(L, 1);
    return 0;
}

/* Where our searcher is, 0 if it is not there. */
static lua_Integer find_searcher(lua_State *L, int searchers) {
    lua_Integer at = 0, found = 0;
    while (found == 0 && lua_rawgeti(L, searchers, ++at) != LUA_TNIL) {
        if (lua_tocfunction(L, -1) == search) found = at;
        lua_pop(L, 1);
    }
    if (found == 0) lua_pop(L, 1);
    return found;
}

/* The searcher (name): the first loader of those behind it. */
static int search(lua_State *L) {
    luaL_checkany(L, 1);
    lua_settop(L, 1);
    if (ct__lua_find_counters(L)->modules == 0 || !push_searchers(L)) return 0;
    lua_Integer at = find_searcher(L, 2);
    while (at > 0 && lua_rawgeti(L, 2, ++at) != LUA_TNIL) {
        lua_pushvalue(L, 1);
        lua_call(L, 1, 2);
        if (lua_isfunction(L, -2)) {
            lua_pushvalue(L, -2);
            lua_pushcclosure(L, load_module, 1);
            lua_replace(L, -3);
            return 2;
        }
        lua_settop(L, 2);
    }
    return 0;
}

/* Moves the searchers from "at" on by one: up to make room there, down to close the gap. */
static void shift_searchers(lua_State *L, int searchers, lua_Integer at, int up) {
    lua_Integer end = at;
    while (lua_rawgeti(L, searchers, end) != LUA_TNIL) {
        end++;
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    if (up) {
        for (lua_Integer i = end; i > at; i--) {
            lua_rawgeti(L, searchers, i - 1);
            lua_rawseti(L, searchers, i);
        }
        return;
    }
    for (lua_Integer i = at; i < end; i++) {
        lua_rawgeti(L, searchers, i + 1);
        lua_rawseti(L, searchers, i);
    }
}

static void place_searcher(lua_State *L, int wanted) {
    if (!push_searchers(L)) return;
    int searchers = lua_gettop(L);
    lua_Integer at = find_searcher(L, searchers);
    if (at > 0 && (!wanted || at > 1)) shift_searchers(L, searchers, at, 0);
    if (wanted && at != 1) {
        shift_searchers(L, searchers, 1, 1);
        lua_pushcfunction(L, search);
        lua_rawseti(L, searchers, 1);
    }
    lua_settop(L, searchers - 1);
}

/* ---- listening ---- */

static void find_listener(lua_State *L, int handle, int found) {
    const ct__lua_handle *h = ct__lua_to_handle(L, handle);
    lua_pushboolean(L, lua_toboolean(L, found) || wants_globals(L, handle) || (h->follows && !has_prefix(L, handle)));
    lua_replace(L, found);
}

void ct__lua_listen(lua_State *L) {
    place_searcher(L, ct__lua_find_counters(L)->modules > 0);
    lua_pushboolean(L, 0);
    if (ct__lua_find_counters(L)->modules > 0) for_each_handle(L, find_listener, lua_gettop(L));
    if (lua_toboolean(L, -1))
        listen_to_globals(L);
    else
        ignore_globals(L);
    lua_pop(L, 1);
}

static void read_list_again(lua_State *L, int handle, int arg) {
    (void)arg;
    if (!ct__lua_to_handle(L, handle)->follows) return;
    ct__lua_read_list(L, handle);
    ct__lua_sweep(L, handle);
}

/* follow(changed) */
static int follow(lua_State *L) {
    if (lua_toboolean(L, 1)) for_each_handle(L, read_list_again, 0);
    lua_pushnil(L);
    lua_replace(L, 1);
    return note_global(L);
}

void ct__lua_follow(lua_State *L, int changed) {
    if (!lua_checkstack(L, LUA_MINSTACK)) return;
    lua_pushboolean(L, changed);
    run_protected(L, follow, 1);
}
