/* SPDX-License-Identifier: MIT
 *
 * floor.c: the least that a measuring wrapper with a to-be-closed token can cost, for bench_measured.lua: two readings
 * of the clock, and nothing kept. gate() returns a token, closing it calls gate(token, error). And what others bench
 * beside.
 */
#include <stdint.h>

#include <lua.h>
#include <lauxlib.h>

#include "core/platform/ticks.h"

typedef struct token {
    uint64_t start, last;
} token;

static int begin_call(lua_State *L) {
    token *t = lua_touserdata(L, lua_upvalueindex(1));
    lua_pushvalue(L, lua_upvalueindex(1));
    t->start = ct__ticks();
    return 1;
}

static int end_call(lua_State *L) {
    token *t = lua_touserdata(L, 1);
    t->last = ct__ticks() - t->start;
    return 0;
}

int luaopen_floor(lua_State *L);

int luaopen_floor(lua_State *L) {
    lua_newuserdatauv(L, sizeof(token), 0);
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, end_call);
    lua_setfield(L, -2, "__close");
    lua_setmetatable(L, -2);
    lua_pushcclosure(L, begin_call, 1);
    return 1;
}

/* For bench_disabled.lua: a function that does nothing. */
static int do_nothing(lua_State *L) {
    (void)L;
    return 0;
}

int luaopen_empty(lua_State *L);

int luaopen_empty(lua_State *L) {
    lua_pushcfunction(L, do_nothing);
    return 1;
}

/* For bench_memory.lua: requests(n) asks whatever allocator is in place for n tables, and gives each back. */
static int make_requests(lua_State *L) {
    void *user;
    const lua_Alloc allocate = lua_getallocf(L, &user);
    for (lua_Integer n = lua_tointeger(L, 1); n > 0; n--)
        allocate(user, allocate(user, NULL, LUA_TTABLE, 56), 56, 0);
    return 0;
}

int luaopen_requests(lua_State *L);

int luaopen_requests(lua_State *L) {
    lua_pushcfunction(L, make_requests);
    return 1;
}
