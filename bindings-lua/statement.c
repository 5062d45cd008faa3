/* SPDX-License-Identifier: MIT
 *
 * statement.c: code that is no function, for codetimer-lua time: it runs in a loop of its own, so that nothing is
 * called in between. Not public.
 *
 * A statement is made of two functions that codetimer/cli_statement.lua compiles: many(k) runs it k times and returns
 * itself, and made() returns from its first upvalue how many of these were completed. It can be called as well, which
 * runs it once.
 */
#include "running.h"

#define STATEMENT_TYPE "codetimer.Statement"

enum { STATEMENT_MANY = 1, STATEMENT_MADE, STATEMENT_VALUES = STATEMENT_MADE };

typedef struct statement {
    int knows_empty;
    ct_overhead empty; /* a turn without anything in it */
} statement;

/* statement(many, made [, low_ns, high_ns]): the last two are what an empty turn takes. */
int ct__lua_statement(lua_State *L) {
    luaL_checktype(L, STATEMENT_MANY, LUA_TFUNCTION);
    luaL_checktype(L, STATEMENT_MADE, LUA_TFUNCTION);
    statement *self = lua_newuserdatauv(L, sizeof *self, STATEMENT_VALUES);
    self->knows_empty = lua_isnumber(L, 3) && lua_isnumber(L, 4);
    self->empty = (ct_overhead){"empty statement", lua_tonumber(L, 3), lua_tonumber(L, 4)};
    for (int value = STATEMENT_MANY; value <= STATEMENT_VALUES; value++) {
        lua_pushvalue(L, value);
        lua_setiuservalue(L, -2, value);
    }
    luaL_setmetatable(L, STATEMENT_TYPE);
    return 1;
}

static int return_nothing(lua_State *L, int status, lua_KContext context) {
    (void)L, (void)status, (void)context;
    return 0;
}

static int call_statement(lua_State *L) {
    luaL_checkudata(L, 1, STATEMENT_TYPE);
    lua_getiuservalue(L, 1, STATEMENT_MANY);
    lua_pushinteger(L, 1);
    lua_callk(L, 1, 0, 0, return_nothing);
    return 0;
}

int ct__lua_is_statement(lua_State *L, int index) { return luaL_testudata(L, index, STATEMENT_TYPE) != NULL; }

void ct__lua_statement_overhead(lua_State *L, int index, ct_overhead *overheads, size_t *count) {
    const statement *self = luaL_checkudata(L, index, STATEMENT_TYPE);
    *count = self->knows_empty ? 1 : 0;
    overheads[0] = self->empty;
}

void ct__lua_push_statement(lua_State *L, int index) {
    index = lua_absindex(L, index);
    luaL_checkudata(L, index, STATEMENT_TYPE);
    for (int value = STATEMENT_MANY; value <= STATEMENT_VALUES; value++) lua_getiuservalue(L, index, value);
}

void ct__lua_statement_open(lua_State *L) {
    static const luaL_Reg functions[] = {{"__call", call_statement}, {NULL, NULL}};
    ct__lua_new_type(L, STATEMENT_TYPE, functions);
}
