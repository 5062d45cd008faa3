/* SPDX-License-Identifier: MIT
 *
 * options.c: the last argument of time and compare.
 */
#include "running.h"

#define BUDGET "options.budget must be a number of seconds above 0, up to 1e9"

static uint64_t take_budget(lua_State *L, int arg, int options) {
    double seconds = 0;
    uint64_t budget_ns = 0;
    if (lua_getfield(L, options, "budget") != LUA_TNIL) {
        if (lua_type(L, -1) == LUA_TNUMBER) seconds = lua_tonumber(L, -1);
        if (!(seconds > 0 && seconds <= 1e9))
            luaL_argerror(L, arg, lua_pushfstring(L, BUDGET ", got %s", ct__lua_describe(L, -1)));
        budget_ns = seconds < 1e-9 ? 1 : (uint64_t)(seconds * 1e9);
    }
    lua_pop(L, 1);
    return budget_ns;
}

static int take_flag(lua_State *L, int arg, int options, const char *name) {
    int type = lua_getfield(L, options, name);
    if (type != LUA_TNIL && type != LUA_TBOOLEAN)
        luaL_argerror(L, arg,
                      lua_pushfstring(L, "options.%s must be true or false, got %s", name, ct__lua_describe(L, -1)));
    int set = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return set;
}

/* nil (io.stdout), false (nothing), or an object with a write method. */
static void check_file(lua_State *L, int arg) {
    if (lua_isnil(L, arg) || (lua_isboolean(L, arg) && !lua_toboolean(L, arg))) return;
    int top = lua_gettop(L);
    ct__lua_check_file(L, arg, "options.file must be false or");
    lua_settop(L, top);
}

void ct__lua_take_options(lua_State *L, int arg, const char *const *names, ct__lua_options *options) {
    *options = (ct__lua_options){0};
    lua_settop(L, arg);
    if (!ct__lua_check_options(L, arg, names)) {
        lua_settop(L, arg + 2);
        return;
    }
    lua_pushvalue(L, arg);
    const int given = lua_gettop(L);
    options->budget_ns = take_budget(L, arg, given);
    options->gc_time = take_flag(L, arg, given, "gc_time");
    options->memory = take_flag(L, arg, given, "memory");
    options->verbose = take_flag(L, arg, given, "verbose");
    lua_getfield(L, given, "file");
    lua_replace(L, arg);
    check_file(L, arg);
    lua_getfield(L, given, "_progress");
    lua_getfield(L, given, "baseline");
    lua_remove(L, given);
    if (!lua_isnil(L, arg + 1) && !lua_isfunction(L, arg + 1)) luaL_argerror(L, arg, "_progress must be a function");
}
