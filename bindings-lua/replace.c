/* SPDX-License-Identifier: MIT
 *
 * replace.c: a wrapper in the place of one function, and the function back in its place.
 *
 * Each original has one wrapper, however many fields it lies in, named after the first of them. When its last field is
 * put back the wrapper is retired: what took it from there meanwhile goes on, unmeasured. A field that somebody else
 * has set meanwhile is theirs.
 */
#include "instrument.h"

static const char wrappers_key = 0; /* original -> wrapper in use */
static const char uses_key = 0;     /* wrapper in use -> in how many fields of handles */
static const char callers_key = 0;  /* functions of Lua that look at who calls them */

enum { NEEDED = 20 }; /* places on the stack */

/* ---- tables that let go of their keys ---- */

static void make_weak(lua_State *L, const char *key) {
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "k");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

/* Pushes the value of the registry's table for the value at "index". */
static void push_entry(lua_State *L, const char *key, int index) {
    index = lua_absindex(L, index);
    lua_rawgetp(L, LUA_REGISTRYINDEX, key);
    lua_pushvalue(L, index);
    lua_rawget(L, -2);
    lua_remove(L, -2);
}

/* Takes the value from the top of the stack. */
static void set_entry(lua_State *L, const char *key, int index) {
    index = lua_absindex(L, index);
    lua_rawgetp(L, LUA_REGISTRYINDEX, key);
    lua_pushvalue(L, index);
    lua_rotate(L, -3, -1);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

static lua_Integer add_use(lua_State *L, int wrapper, lua_Integer more) {
    push_entry(L, &uses_key, wrapper);
    lua_Integer uses = lua_tointeger(L, -1) + more;
    lua_pop(L, 1);
    if (uses > 0)
        lua_pushinteger(L, uses);
    else
        lua_pushnil(L);
    set_entry(L, &uses_key, wrapper);
    return uses;
}

/* ---- replacing ---- */

/* What level 1 of the stack is matters to it. */
static int looks_at_caller(lua_State *L, int fn) {
    push_entry(L, &callers_key, fn);
    int looks = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return looks;
}

/* Pushes the wrapper of the function, with a counter for "member" if it is a new one; returns CT_OK, or a status and
 * pushes nothing. */
static int push_wrapper(lua_State *L, int handle, int fn, int member) {
    push_entry(L, &wrappers_key, fn);
    if (!lua_isnil(L, -1)) return CT_OK;
    lua_pop(L, 1);
    lua_pushcfunction(L, ct__lua_wrap);
    lua_pushvalue(L, fn);
    lua_pushvalue(L, member);
    lua_getiuservalue(L, handle, CT__LUA_CATEGORY);
    lua_pushnil(L);
    lua_call(L, 4, 1);
    if (lua_isfunction(L, -1)) {
        lua_pushvalue(L, -1);
        set_entry(L, &wrappers_key, fn);
        return CT_OK;
    }
    int status = (int)lua_tointeger(L, -1);
    lua_pop(L, 1);
    return status;
}

/* Pushes the keys that the handle has replaced in this table. */
static void push_fields(lua_State *L, int handle, int table) {
    lua_getiuservalue(L, handle, CT__LUA_FIELDS);
    lua_pushvalue(L, table);
    if (lua_rawget(L, -2) == LUA_TNIL) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, table);
        lua_pushvalue(L, -2);
        lua_rawset(L, -4);
    }
    lua_remove(L, -2);
}

/* The name is that of the first field. */
static void note_reached(lua_State *L, int handle, int wrapper, int member) {
    lua_getiuservalue(L, handle, CT__LUA_REACHED);
    lua_pushvalue(L, wrapper);
    if (lua_rawget(L, -2) == LUA_TNIL) {
        lua_pushvalue(L, wrapper);
        lua_pushvalue(L, member);
        lua_rawset(L, -4);
    }
    lua_pop(L, 2);
}

/* The handle knows of the field before it is replaced, so lack of memory leaves nothing behind. */
static void put_wrapper(lua_State *L, int handle, int table, int key, int wrapper) {
    push_fields(L, handle, table);
    lua_pushvalue(L, key);
    lua_rawget(L, -2);
    int known = lua_rawequal(L, -1, wrapper);
    lua_pop(L, 1);
    if (!known) {
        lua_pushvalue(L, key);
        lua_pushvalue(L, wrapper);
        lua_rawset(L, -3);
        add_use(L, wrapper, 1);
    }
    lua_pop(L, 1);
    lua_pushvalue(L, key);
    lua_pushvalue(L, wrapper);
    lua_rawset(L, table);
}

/* Leaves at "fn" the function that is to be measured, its wrapper if it has one in use; returns 0 if there is none. */
static int find_function(lua_State *L, int fn) {
    int gate = ct__lua_push_original(L, fn);
    if (gate == 0) return 1;
    push_entry(L, &uses_key, fn);
    int in_use = !lua_isnil(L, -1);
    lua_pop(L, 1);
    if (gate == CT__LUA_GATE && !in_use) return 0; /* measured by its program */
    lua_replace(L, fn);
    return 1;
}

/* The trace function may have ended the handle when it was told of the new counter. */
static int put_if_live(lua_State *L, int handle, int table, int key, int member, int wrapper) {
    if (ct__lua_to_handle(L, handle)->ended) return 0;
    note_reached(L, handle, wrapper, member);
    put_wrapper(L, handle, table, key, wrapper);
    return 1;
}

int ct__lua_replace_field(lua_State *L, int handle, int table, int key, int member) {
    luaL_checkstack(L, NEEDED, NULL);
    int top = lua_gettop(L), fn = top + 1, put = 0;
    lua_pushvalue(L, key);
    lua_rawget(L, table);
    if (find_function(L, fn)) {
        lua_settop(L, fn);
        int status = looks_at_caller(L, fn) ? CT_ENOTSUP : push_wrapper(L, handle, fn, member);
        if (status == CT_OK)
            put = put_if_live(L, handle, table, key, member, fn + 1);
        else
            ct__lua_note_reason(L, handle, lua_tostring(L, member),
                                status == CT_ENOTSUP ? "it looks at who calls it, and a wrapper would be in between"
                                                     : ct_status_text(status));
    }
    lua_settop(L, top);
    return put;
}

/* ---- what was taken before ---- */

/* Pushes the name under which the handle has reached the function with this wrapper, or nil. */
static void push_member_of(lua_State *L, int handle, int wrapper) {
    wrapper = lua_absindex(L, wrapper);
    lua_getiuservalue(L, handle, CT__LUA_REACHED);
    lua_pushvalue(L, wrapper);
    lua_rawget(L, -2);
    lua_remove(L, -2);
}

/* The value on top of the stack is one that the function "holder" has in a local variable. */
static void note_if_taken(lua_State *L, int handle, int holder) {
    int top = lua_gettop(L);
    if (!lua_isfunction(L, top)) return;
    push_entry(L, &wrappers_key, top);
    if (!lua_isnil(L, -1)) {
        push_member_of(L, handle, top + 1);
        push_member_of(L, handle, holder);
        if (lua_isstring(L, -1) && lua_isstring(L, -2)) {
            lua_pushfstring(L, "%s has it in a local variable: its calls from there are not seen", lua_tostring(L, -1));
            ct__lua_note_reason(L, handle, lua_tostring(L, top + 2), lua_tostring(L, -1));
        }
    }
    lua_settop(L, top);
}

void ct__lua_note_taken(lua_State *L, int handle, int wrapper) {
    luaL_checkstack(L, NEEDED, NULL);
    int top = lua_gettop(L);
    if (ct__lua_push_original(L, wrapper) != 0 && !lua_iscfunction(L, -1))
        for (int i = 1; lua_getupvalue(L, top + 1, i) != NULL; i++) {
            note_if_taken(L, handle, wrapper);
            lua_settop(L, top + 1);
        }
    lua_settop(L, top);
}

/* ---- putting back ---- */

/* Whether another live handle has the field with this wrapper. */
static int is_shared(lua_State *L, int handle, int table, int key, int wrapper) {
    int shared = 0, top = lua_gettop(L);
    ct__lua_push_handles(L);
    for (lua_Integer i = (lua_Integer)lua_rawlen(L, top + 1); i > 0 && !shared; i--) {
        lua_rawgeti(L, top + 1, i);
        if (!lua_rawequal(L, -1, handle)) {
            lua_getiuservalue(L, -1, CT__LUA_FIELDS);
            lua_pushvalue(L, table);
            if (lua_rawget(L, -2) == LUA_TTABLE) {
                lua_pushvalue(L, key);
                lua_rawget(L, -2);
                shared = lua_rawequal(L, -1, wrapper);
            }
        }
        lua_settop(L, top + 1);
    }
    lua_settop(L, top);
    return shared;
}

static void put_back(lua_State *L, int handle, int table, int key, int wrapper) {
    int top = lua_gettop(L);
    lua_pushvalue(L, key);
    lua_rawget(L, table);
    int untouched = lua_rawequal(L, -1, wrapper);
    if (ct__lua_push_original(L, wrapper) != 0) {
        int original = lua_gettop(L);
        if (untouched && !is_shared(L, handle, table, key, wrapper)) {
            lua_pushvalue(L, key);
            lua_pushvalue(L, original);
            lua_rawset(L, table);
        }
        if (add_use(L, wrapper, -1) <= 0) {
            ct__lua_retire(L, wrapper);
            lua_pushnil(L);
            set_entry(L, &wrappers_key, original);
        }
    }
    lua_settop(L, top);
}

void ct__lua_restore_fields(lua_State *L, int handle) {
    luaL_checkstack(L, NEEDED, NULL);
    int top = lua_gettop(L), table = top + 2, fields = top + 3, key = top + 4, wrapper = top + 5;
    lua_getiuservalue(L, handle, CT__LUA_FIELDS);
    for (lua_pushnil(L); lua_next(L, top + 1) != 0; lua_settop(L, table))
        for (lua_pushnil(L); lua_next(L, fields) != 0; lua_settop(L, key)) put_back(L, handle, table, key, wrapper);
    lua_settop(L, top);
}

/* ---- opening ---- */

static void note_callers(lua_State *L, const char *library, const char *const *names) {
    int top = lua_gettop(L);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &callers_key);
    lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_pushstring(L, library);
    if (lua_rawget(L, -2) == LUA_TTABLE)
        for (; *names != NULL; names++) {
            lua_pushstring(L, *names);
            lua_rawget(L, top + 3);
            lua_pushboolean(L, 1);
            if (lua_iscfunction(L, -2)) lua_rawset(L, top + 1);
            lua_settop(L, top + 3);
        }
    lua_settop(L, top);
}

void ct__lua_replace_open(lua_State *L) {
    static const char *const basic[] = {"error", NULL};
    static const char *const debug[] = {"getinfo", "getlocal", "setlocal", "traceback", NULL};
    int there = lua_rawgetp(L, LUA_REGISTRYINDEX, &uses_key) != LUA_TNIL;
    lua_pop(L, 1);
    if (there) return;
    make_weak(L, &wrappers_key);
    make_weak(L, &callers_key);
    make_weak(L, &uses_key);
    note_callers(L, "_G", basic);
    note_callers(L, "debug", debug);
}
