/* SPDX-License-Identifier: MIT
 *
 * instrument.c: instrument, uninstrument, and codetimer.Instrumented, the handle that tells what was reached and puts
 * everything back. A handle lives, whoever holds it, until it is ended; dropping it ends nothing.
 */
#include "instrument.h"

#include <string.h>

#define HANDLE_TYPE "codetimer.Instrumented"

static const char handles_key = 0; /* the array of live handles */

enum { NEEDED = 20 }; /* places on the stack */

/* ---- handles ---- */

void ct__lua_push_handles(lua_State *L) { lua_rawgetp(L, LUA_REGISTRYINDEX, &handles_key); }

ct__lua_handle *ct__lua_to_handle(lua_State *L, int index) { return luaL_testudata(L, index, HANDLE_TYPE); }

static void set_weak_table(lua_State *L, int handle, int value) {
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "k");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_setiuservalue(L, handle, value);
}

/* Pushes a handle that is not live yet. */
static ct__lua_handle *new_handle(lua_State *L) {
    ct__lua_handle *handle = lua_newuserdatauv(L, sizeof *handle, CT__LUA_HANDLE_VALUES);
    *handle = (ct__lua_handle){.ended = 1};
    luaL_setmetatable(L, HANDLE_TYPE);
    int at = lua_gettop(L);
    set_weak_table(L, at, CT__LUA_FIELDS);
    set_weak_table(L, at, CT__LUA_REACHED);
    lua_newtable(L);
    lua_setiuservalue(L, at, CT__LUA_REASONS);
    return handle;
}

/* From now on it can be ended, also when an error is raised next. */
static void begin_handle(lua_State *L, int handle) {
    ct__lua_handle *h = ct__lua_to_handle(L, handle);
    ct__lua_push_handles(L);
    lua_pushvalue(L, handle);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pop(L, 1);
    h->ended = 0;
    ct__lua_find_counters(L)->modules += h->modules;
}

static void leave_list(lua_State *L, int handle) {
    ct__lua_push_handles(L);
    lua_Integer count = (lua_Integer)lua_rawlen(L, -1), kept = 0;
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(L, -1, i);
        int other = !lua_rawequal(L, -1, handle);
        if (other)
            lua_rawseti(L, -2, ++kept);
        else
            lua_pop(L, 1);
    }
    lua_pushnil(L);
    lua_rawseti(L, -2, count);
    lua_pop(L, 1);
}

static int end_handle(lua_State *L, int handle) {
    ct__lua_handle *h = ct__lua_to_handle(L, handle);
    if (h->ended) return 0;
    luaL_checkstack(L, NEEDED, NULL);
    h->ended = 1;
    ct__lua_restore_fields(L, handle);
    leave_list(L, handle);
    ct__lua_find_counters(L)->modules -= h->modules;
    ct__lua_listen(L);
    return 1;
}

void ct__lua_note_reason(lua_State *L, int handle, const char *member, const char *reason) {
    lua_getiuservalue(L, handle, CT__LUA_REASONS);
    lua_pushstring(L, member);
    lua_pushstring(L, reason);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

/* ---- the members of a handle ---- */

static int set_members(lua_State *L, ct__lua_handle *handle, const char *text, size_t length) {
    ct_members *fresh = NULL;
    (void)L;
    int status = text != NULL ? ct_members_parse(text, length, &fresh) : CT_OK;
    if (status != CT_OK) return status;
    ct_members_free(handle->members);
    handle->members = fresh;
    return CT_OK;
}

static int read_own(void *from, char *buffer, size_t size, size_t *length) {
    (void)from;
    return ct_members_get(buffer, size, length);
}

void ct__lua_read_list(lua_State *L, int handle) {
    size_t length = 0;
    if (ct__lua_push_members(L, read_own, NULL) != CT_OK) lua_pushnil(L);
    const char *text = lua_tolstring(L, -1, &length);
    set_members(L, ct__lua_to_handle(L, handle), text, length);
    lua_pop(L, 1);
}

/* A plain name stands for itself and for all that is below it. Pushes the text of the list. */
static const char *push_patterns(lua_State *L, int name, size_t *length) {
    const char *text = lua_tolstring(L, name, length);
    if (strpbrk(text, ";\n*?!#\\") != NULL)
        lua_pushvalue(L, name);
    else
        lua_pushfstring(L, "%s;%s.*", text, text);
    return lua_tolstring(L, -1, length);
}

/* ---- instrument(what, prefix, options) ---- */

enum { WHAT = 1, PREFIX, OPTIONS, CATEGORY, HANDLE };

static void check_prefix(lua_State *L) {
    size_t length;
    if (lua_isnil(L, PREFIX) && !lua_istable(L, WHAT)) return;
    if (lua_type(L, PREFIX) != LUA_TSTRING)
        luaL_argerror(L, PREFIX,
                      lua_pushfstring(L, "prefix must be a string, what the names of its functions begin with, got %s",
                                      ct__lua_describe(L, PREFIX)));
    const char *text = lua_tolstring(L, PREFIX, &length);
    if (length == 0 || strlen(text) != length) luaL_argerror(L, PREFIX, "prefix must not be empty or hold a NUL byte");
}

static void check_what(lua_State *L) {
    size_t length;
    if (lua_istable(L, WHAT) || lua_isnil(L, WHAT)) return;
    if (lua_type(L, WHAT) != LUA_TSTRING)
        luaL_argerror(
            L, WHAT,
            lua_pushfstring(L, "a table, the name of a module, patterns, or nil for the members list is needed, got %s",
                            ct__lua_describe(L, WHAT)));
    const char *text = ct__lua_check_members(L, WHAT, WHAT, 0, &length);
    if (length == 0 || strlen(text) != length)
        luaL_argerror(L, WHAT, "the name of a module must not be empty or hold a NUL byte");
    if (!lua_isnil(L, PREFIX) && strpbrk(text, ";\n*?!#\\") != NULL)
        luaL_argerror(L, PREFIX, "patterns select by the names of the modules; a prefix is for one module or table");
}

static void check_arguments(lua_State *L) {
    static const char *const names[] = {"category", NULL};
    lua_settop(L, OPTIONS);
    if (ct__lua_check_options(L, OPTIONS, names))
        lua_getfield(L, OPTIONS, "category");
    else
        lua_pushnil(L);
    check_what(L);
    check_prefix(L);
    if (!lua_isnil(L, PREFIX) && lua_isnil(L, WHAT)) luaL_argerror(L, PREFIX, "the members list has names of its own");
    if (lua_isnil(L, CATEGORY)) return;
    if (lua_type(L, CATEGORY) != LUA_TSTRING || strchr(lua_tostring(L, CATEGORY), '/') != NULL ||
        *lua_tostring(L, CATEGORY) == '\0')
        luaL_argerror(
            L, OPTIONS,
            lua_pushfstring(L, "category must be a string without \"/\", got %s", ct__lua_describe(L, CATEGORY)));
}

static int describe_handle(lua_State *L, ct__lua_handle *handle) {
    size_t length;
    handle->modules = !lua_istable(L, WHAT);
    handle->follows = lua_isnil(L, WHAT);
    lua_pushvalue(L, handle->modules ? WHAT : PREFIX);
    lua_setiuservalue(L, HANDLE, CT__LUA_NAME);
    lua_pushvalue(L, PREFIX);
    lua_setiuservalue(L, HANDLE, CT__LUA_PREFIX);
    lua_pushvalue(L, CATEGORY);
    lua_setiuservalue(L, HANDLE, CT__LUA_CATEGORY);
    if (handle->follows) ct__lua_read_list(L, HANDLE);
    if (!handle->modules || handle->follows) return CT_OK;
    const char *text = push_patterns(L, lua_isnil(L, PREFIX) ? WHAT : PREFIX, &length);
    int status = set_members(L, handle, text, length);
    if (status == CT_OK) ct__lua_trace_problems(L, text, length);
    lua_pop(L, 1);
    return status;
}

static void measure_table(lua_State *L, int handle, int table, int prefix) {
    ct__lua_walk walk;
    ct__lua_walk_begin(&walk, L, handle);
    ct__lua_walk_add(&walk, table, prefix);
    ct__lua_walk_all(&walk);
}

/* begin(what, prefix, handle) */
static int begin(lua_State *L) {
    enum { AT = 3 };
    begin_handle(L, AT);
    if (ct__lua_to_handle(L, AT)->modules)
        ct__lua_sweep(L, AT);
    else
        measure_table(L, AT, WHAT, PREFIX);
    ct__lua_listen(L);
    return 0;
}

/* Lack of memory on the way leaves nothing behind. */
int ct__lua_instrument(lua_State *L) {
    check_arguments(L);
    ct__lua_handle *handle = new_handle(L);
    int status = describe_handle(L, handle);
    if (status != CT_OK) return ct__lua_fail(L, status);
    lua_pushcfunction(L, begin);
    lua_pushvalue(L, WHAT);
    lua_pushvalue(L, PREFIX);
    lua_pushvalue(L, HANDLE);
    if (lua_pcall(L, 3, 0, 0) == LUA_OK) return 1;
    end_handle(L, HANDLE);
    return lua_error(L);
}

/* ---- uninstrument([handle or name]) ---- */

static int is_meant(lua_State *L, int handle) {
    if (lua_isnil(L, 1) || lua_rawequal(L, 1, handle)) return 1;
    lua_getiuservalue(L, handle, CT__LUA_NAME);
    int meant = lua_rawequal(L, 1, -1);
    lua_pop(L, 1);
    return meant;
}

int ct__lua_uninstrument(lua_State *L) {
    lua_Integer ended = 0;
    lua_settop(L, 1);
    if (!lua_isnil(L, 1) && lua_type(L, 1) != LUA_TSTRING && ct__lua_to_handle(L, 1) == NULL)
        luaL_argerror(L, 1,
                      lua_pushfstring(L, "what instrument returned, or was given, is needed, or nil for all; got %s",
                                      ct__lua_describe(L, 1)));
    ct__lua_push_handles(L);
    for (lua_Integer i = (lua_Integer)lua_rawlen(L, 2); i > 0; i--) {
        lua_rawgeti(L, 2, i);
        if (ct__lua_to_handle(L, 3) != NULL && is_meant(L, 3)) ended += end_handle(L, 3);
        lua_settop(L, 2);
    }
    lua_pushinteger(L, ended);
    return 1;
}

/* ---- the userdata ---- */

static int handle_uninstrument(lua_State *L) {
    luaL_checkudata(L, 1, HANDLE_TYPE);
    lua_settop(L, 1);
    lua_pushboolean(L, end_handle(L, 1));
    return 1;
}

static int handle_gc(lua_State *L) {
    ct__lua_handle *handle = luaL_checkudata(L, 1, HANDLE_TYPE);
    ct_members_free(handle->members);
    handle->members = NULL;
    return 0;
}

/* Pushes member -> true. */
static void push_reached_set(lua_State *L) {
    lua_newtable(L);
    lua_getiuservalue(L, 1, CT__LUA_REACHED);
    int set = lua_gettop(L) - 1;
    for (lua_pushnil(L); lua_next(L, set + 1) != 0;) { /* the value is the key of the set */
        lua_newtable(L);
        lua_rawset(L, set);
    }
    lua_settop(L, set);
}

static int push_reached(lua_State *L) {
    push_reached_set(L);
    ct__lua_push_sorted_keys(L, lua_gettop(L));
    return 1;
}

/* The values of "reasons" are texts, which sorting keys passes over; so a table stands for each. */
static int push_unreachable(lua_State *L) {
    lua_settop(L, 1);
    lua_newtable(L);
    lua_getiuservalue(L, 1, CT__LUA_REASONS);
    for (lua_pushnil(L); lua_next(L, 3) != 0; lua_settop(L, 4)) {
        lua_createtable(L, 0, 2);
        lua_pushvalue(L, 4);
        lua_setfield(L, -2, "member");
        lua_pushvalue(L, 5);
        lua_setfield(L, -2, "reason");
        lua_pushvalue(L, 4);
        lua_insert(L, -2);
        lua_rawset(L, 2);
    }
    ct__lua_push_sorted_keys(L, 2);
    for (lua_Integer i = (lua_Integer)lua_rawlen(L, -1); i > 0; i--) {
        lua_rawgeti(L, -1, i);
        lua_rawget(L, 2);
        lua_rawseti(L, -2, i);
    }
    return 1;
}

static int handle_index(lua_State *L) {
    const ct__lua_handle *handle = luaL_checkudata(L, 1, HANDLE_TYPE);
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
    if (strcmp(name, "uninstrument") == 0)
        lua_pushcfunction(L, handle_uninstrument);
    else if (strcmp(name, "reached") == 0)
        push_reached(L);
    else if (strcmp(name, "unreachable") == 0)
        push_unreachable(L);
    else if (strcmp(name, "active") == 0)
        lua_pushboolean(L, !handle->ended);
    else
        return 0;
    return 1;
}

static int handle_tostring(lua_State *L) {
    const ct__lua_handle *handle = luaL_checkudata(L, 1, HANDLE_TYPE);
    lua_getiuservalue(L, 1, CT__LUA_NAME);
    const char *name = lua_isnil(L, -1) ? "the members list" : lua_tostring(L, -1);
    push_reached(L);
    lua_pushfstring(L, HANDLE_TYPE " %s: %I functions%s", name, (LUAI_UACINT)lua_rawlen(L, -1),
                    handle->ended ? ", ended" : "");
    return 1;
}

void ct__lua_instrument_open(lua_State *L) {
    static const luaL_Reg functions[] = {{"__index", handle_index},
                                         {"__tostring", handle_tostring},
                                         {"__close", handle_uninstrument},
                                         {"__gc", handle_gc},
                                         {NULL, NULL}};
    ct__lua_new_type(L, HANDLE_TYPE, functions);
    ct__lua_replace_open(L);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &handles_key) == LUA_TNIL) {
        lua_newtable(L);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &handles_key);
    }
    lua_pop(L, 1);
}
