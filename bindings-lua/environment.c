/* SPDX-License-Identifier: MIT
 *
 * environment.c: initialize and codetimer.Environment, what a measuring program starts from. Collecting an environment
 * does not restore the priority: a program that says "codetimer.initialize()" and keeps nothing means it for good.
 */
#include "common.h"

#include <limits.h>
#include <string.h>

#define ENVIRONMENT_TYPE "codetimer.Environment"

static ct_environment *check_environment(lua_State *L) {
    ct_environment **box = luaL_checkudata(L, 1, ENVIRONMENT_TYPE);
    if (*box == NULL) luaL_argerror(L, 1, "the environment has been freed");
    return *box;
}

/* In these three a copy is read: what is pushed may set off a finalizer, and that could free the environment. */
static void push_priority(lua_State *L, const ct_environment *environment) {
    const ct_priority copy = *environment->priority, *priority = &copy;
    lua_createtable(L, 0, 9);
    ct__lua_set_text(L, "requested", priority->requested);
    ct__lua_set_text(L, "status", ct_status_name(priority->status));
    if (priority->cpu >= 0) ct__lua_set_integer(L, "cpu", (uint64_t)priority->cpu);
    ct__lua_set_text(L, "cpu_status", ct_status_name(priority->cpu_status));
    ct__lua_set_boolean(L, "restored", priority->restored);
    ct__lua_set_text(L, "previous", priority->previous);
    ct__lua_set_text(L, "effective", priority->effective);
    ct__lua_set_text(L, "scope", priority->scope);
    ct__lua_set_text(L, "reason", priority->reason);
}

static void push_clock(lua_State *L, const ct_environment *environment) {
    const ct_clock clock = environment->clock;
    ct__lua_push_clock(L, &clock);
}

static void push_cycles(lua_State *L, const ct_environment *environment) {
    const ct_cycles cycles = environment->cycles;
    ct__lua_push_cycles(L, &cycles);
}

static int environment_restore(lua_State *L) {
    int status = ct_environment_restore(check_environment(L));
    if (status != CT_OK) return ct__lua_fail(L, status);
    lua_pushboolean(L, 1);
    return 1;
}

/* Leaving a block must not raise; environment.priority.restored tells what became of it. */
static int environment_close(lua_State *L) {
    ct_environment_restore(check_environment(L));
    return 0;
}

static int environment_index(lua_State *L) {
    const ct_environment *environment = check_environment(L);
    if (ct__lua_is(L, 2, "priority"))
        push_priority(L, environment);
    else if (ct__lua_is(L, 2, "clock"))
        push_clock(L, environment);
    else if (ct__lua_is(L, 2, "cycles"))
        push_cycles(L, environment);
    else if (ct__lua_is(L, 2, "restore"))
        lua_pushcfunction(L, environment_restore);
    else
        lua_pushnil(L);
    return 1;
}

static int environment_tostring(lua_State *L) {
    luaL_Buffer buffer;
    size_t length = ct_environment_format(check_environment(L), NULL, 0);
    char *text = luaL_buffinitsize(L, &buffer, length + 1); /* may set off a finalizer that frees it */
    ct_environment_format(check_environment(L), text, length + 1);
    luaL_pushresultsize(&buffer, length);
    return 1;
}

static int environment_gc(lua_State *L) {
    ct_environment **box = luaL_checkudata(L, 1, ENVIRONMENT_TYPE);
    ct_environment_free(*box);
    *box = NULL;
    return 0;
}

static void refuse_level(lua_State *L, int index) {
    luaL_argerror(L, 1,
                  lua_pushfstring(L, "priority must be \"high\", \"highest\", \"realtime\" or false, got %s",
                                  ct__lua_describe(L, index)));
}

/* nil means "high", false means: leave the priority alone. Pushes what holds the text. */
static const char *check_level(lua_State *L, int options) {
    if (!options || lua_getfield(L, 1, "priority") == LUA_TNIL) return "high";
    if (lua_isboolean(L, -1) && !lua_toboolean(L, -1)) return NULL;
    if (lua_type(L, -1) == LUA_TSTRING) {
        if (strlen(lua_tostring(L, -1)) != lua_rawlen(L, -1)) refuse_level(L, -1);
        return lua_tostring(L, -1);
    }
    luaL_argerror(L, 1, lua_pushfstring(L, "priority must be a string or false, got %s", ct__lua_describe(L, -1)));
    return NULL;
}

static int check_cpu(lua_State *L, int options) {
    if (!options || lua_getfield(L, 1, "cpu") == LUA_TNIL) return -1;
    return (int)ct__lua_check_count(L, 1, -1, "cpu", INT_MAX);
}

int ct__lua_initialize(lua_State *L) {
    static const char *const names[] = {"priority", "cpu", NULL};
    enum { LEVEL = 2 };
    lua_settop(L, 1);
    int options = ct__lua_check_options(L, 1, names);
    const char *level = check_level(L, options);
    int cpu = check_cpu(L, options);
    ct_environment **box = lua_newuserdatauv(L, sizeof *box, 0);
    *box = NULL;
    luaL_setmetatable(L, ENVIRONMENT_TYPE);
    int status = ct_initialize(level, cpu, box);
    if (status == CT_EINVAL) refuse_level(L, LEVEL);
    return status == CT_OK ? 1 : ct__lua_fail(L, status);
}

void ct__lua_environment_open(lua_State *L) {
    static const luaL_Reg functions[] = {{"__index", environment_index},
                                         {"__close", environment_close},
                                         {"__tostring", environment_tostring},
                                         {"__gc", environment_gc},
                                         {NULL, NULL}};
    ct__lua_new_type(L, ENVIRONMENT_TYPE, functions);
}
