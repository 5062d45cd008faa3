/* SPDX-License-Identifier: MIT
 *
 * common.c: turning C facts into Lua values and refusing wrong arguments. A refusal always tells what was wrong, what
 * was seen, and what would be right. */
#include "common.h"

#include <string.h>

int ct__lua_fail(lua_State *L, int status) {
    luaL_pushfail(L);
    lua_pushstring(L, ct_status_text(status));
    lua_pushstring(L, ct_status_name(status));
    return 3;
}

/* The first bytes of a string are enough to recognise it. A NUL is shown as \0: it would end the message. */
static void push_quoted(lua_State *L, int index) {
    enum { SHOWN = 32 };
    size_t length;
    const char *text = lua_tolstring(L, index, &length);
    luaL_Buffer buffer;
    luaL_buffinit(L, &buffer);
    luaL_addstring(&buffer, "the string \"");
    for (size_t i = 0; i < length && i < SHOWN; i++) {
        if (text[i] != '\0')
            luaL_addchar(&buffer, text[i]);
        else
            luaL_addstring(&buffer, "\\0");
    }
    luaL_addstring(&buffer, length > SHOWN ? "...\"" : "\"");
    luaL_pushresult(&buffer);
}

const char *ct__lua_describe(lua_State *L, int index) {
    index = lua_absindex(L, index);
    switch (lua_type(L, index)) {
    case LUA_TNUMBER: /* a copy: lua_tolstring would turn the argument itself into a string */
        lua_pushvalue(L, index);
        lua_tostring(L, -1);
        break;
    case LUA_TSTRING:
        push_quoted(L, index);
        break;
    case LUA_TBOOLEAN:
        lua_pushstring(L, lua_toboolean(L, index) ? "true" : "false");
        break;
    case LUA_TNONE:
    case LUA_TNIL:
        lua_pushliteral(L, "nothing");
        break;
    default:
        lua_pushfstring(L, "a %s", luaL_typename(L, index));
    }
    return lua_tostring(L, -1);
}

int ct__lua_is(lua_State *L, int index, const char *text) {
    if (lua_type(L, index) != LUA_TSTRING) return 0;
    size_t length;
    const char *seen = lua_tolstring(L, index, &length);
    return length == strlen(text) && memcmp(seen, text, length) == 0;
}

lua_Integer ct__lua_check_count(lua_State *L, int arg, int index, const char *what, lua_Integer most) {
    int whole = 0;
    lua_Integer value = 0;
    if (lua_type(L, index) == LUA_TNUMBER) value = lua_tointegerx(L, index, &whole);
    if (!whole || value < 0 || value > most)
        luaL_argerror(L, arg,
                      lua_pushfstring(L, "%s must be a whole number from 0 to %I, got %s", what, (LUAI_UACINT)most,
                                      ct__lua_describe(L, index)));
    return value;
}

int ct__lua_is_callable(lua_State *L, int index) {
    if (lua_isfunction(L, index)) return 1;
    if (luaL_getmetafield(L, index, "__call") == LUA_TNIL) return 0;
    lua_pop(L, 1);
    return 1;
}

void ct__lua_check_callable(lua_State *L, int arg, int index) {
    if (!ct__lua_is_callable(L, index))
        luaL_argerror(L, arg,
                      lua_pushfstring(L, "fn must be a function or have __call, got %s", ct__lua_describe(L, index)));
}

static int is_listed(lua_State *L, int index, const char *const *names) {
    for (; *names != NULL; names++)
        if (ct__lua_is(L, index, *names)) return 1;
    return 0;
}

int ct__lua_check_options(lua_State *L, int arg, const char *const *names) {
    if (lua_isnoneornil(L, arg)) return 0;
    luaL_checktype(L, arg, LUA_TTABLE);
    for (lua_pushnil(L); lua_next(L, arg) != 0; lua_pop(L, 1)) {
        if (is_listed(L, -2, names)) continue;
        luaL_argerror(L, arg, lua_pushfstring(L, "unknown option: %s", ct__lua_describe(L, -2)));
    }
    return 1;
}

void ct__lua_set_text(lua_State *L, const char *key, const char *text) {
    if (text == NULL) return;
    lua_pushstring(L, text);
    lua_setfield(L, -2, key);
}

void ct__lua_set_integer(lua_State *L, const char *key, uint64_t value) {
    lua_pushinteger(L, (lua_Integer)value);
    lua_setfield(L, -2, key);
}

void ct__lua_set_number(lua_State *L, const char *key, double value) {
    lua_pushnumber(L, value);
    lua_setfield(L, -2, key);
}

void ct__lua_set_boolean(lua_State *L, const char *key, int value) {
    lua_pushboolean(L, value);
    lua_setfield(L, -2, key);
}

void ct__lua_set_count(lua_State *L, const char *key, int known, uint64_t value) {
    if (known) ct__lua_set_integer(L, key, value);
}

void ct__lua_set_known(lua_State *L, const char *key, int known, double value) {
    if (known) ct__lua_set_number(L, key, value);
}

int ct__lua_push_method(lua_State *L, int index, const luaL_Reg *methods) {
    for (; methods->name != NULL; methods++) {
        if (!ct__lua_is(L, index, methods->name)) continue;
        lua_pushcfunction(L, methods->func);
        return 1;
    }
    return 0;
}

void ct__lua_reserve(lua_State *L, const void *key) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, key) == LUA_TNIL) {
        lua_pushboolean(L, 0);
        lua_rawsetp(L, LUA_REGISTRYINDEX, key);
    }
    lua_pop(L, 1);
}

void ct__lua_new_type(lua_State *L, const char *name, const luaL_Reg *functions) {
    if (luaL_newmetatable(L, name)) luaL_setfuncs(L, functions, 0);
    lua_pop(L, 1);
}
