/* SPDX-License-Identifier: MIT
 *
 * names.c: what a counter is called. Names are any bytes but NUL; a function that is given none is called after the
 * place where it was defined.
 */
#include "counters.h"

#include <string.h>

enum { NAME_MOST = 65535 };

/* ---- given names ---- */

/* The value on top of the stack, nil or a text of 1 to 65,535 bytes. */
static void check_text(lua_State *L, int arg, const char *what, size_t least) {
    size_t length;
    if (lua_isnil(L, -1)) return;
    if (lua_type(L, -1) != LUA_TSTRING)
        luaL_argerror(L, arg, lua_pushfstring(L, "%s must be a string, got %s", what, ct__lua_describe(L, -1)));
    const char *text = lua_tolstring(L, -1, &length);
    if (length < least) luaL_argerror(L, arg, lua_pushfstring(L, "%s must not be empty", what));
    if (length > NAME_MOST)
        luaL_argerror(
            L, arg, lua_pushfstring(L, "%s must have at most %d bytes, got %I", what, NAME_MOST, (LUAI_UACINT)length));
    if (memchr(text, '\0', length) != NULL)
        luaL_argerror(L, arg,
                      lua_pushfstring(L, "%s must not contain a NUL byte; the first is byte %I", what,
                                      (LUAI_UACINT)strlen(text) + 1));
}

static void check_category(lua_State *L, int arg) {
    check_text(L, arg, "category", 1);
    if (!lua_isnil(L, -1) && strchr(lua_tostring(L, -1), '/') != NULL)
        luaL_argerror(L, arg, lua_pushfstring(L, "category must not contain \"/\", got %s", ct__lua_describe(L, -1)));
}

/* Pushes name, category and help from the table at "index". */
static void push_options(lua_State *L, int arg, int index) {
    static const char *const names[] = {"name", "category", "help", NULL};
    int table = lua_absindex(L, index);
    lua_pushnil(L);
    while (lua_next(L, table) != 0) {
        int known = 0;
        for (const char *const *name = names; *name != NULL; name++)
            known |= lua_type(L, -2) == LUA_TSTRING && strcmp(lua_tostring(L, -2), *name) == 0;
        if (!known)
            luaL_argerror(
                L, arg,
                lua_pushfstring(L, "unknown option: %s; there are name, category and help", ct__lua_describe(L, -2)));
        lua_pop(L, 1);
    }
    for (const char *const *name = names; *name != NULL; name++) lua_getfield(L, table, *name);
}

void ct__lua_check_names(lua_State *L, int arg, int index) {
    lua_settop(L, index + 1);
    if (lua_istable(L, index)) {
        if (!lua_isnil(L, index + 1))
            luaL_argerror(L, arg, "give the category in the table or behind the name, not both");
        push_options(L, arg, index);
        lua_rotate(L, index, 3);
        lua_settop(L, index + 2);
    }
    lua_settop(L, index + 2);
    lua_pushvalue(L, index);
    check_text(L, arg, "name", 1);
    lua_pushvalue(L, index + 1);
    check_category(L, arg);
    lua_pushvalue(L, index + 2);
    check_text(L, arg, "help", 0);
    lua_settop(L, index + 2);
}

void ct__lua_get_names(lua_State *L, int index, ct__lua_names *names) {
    names->member = lua_tostring(L, index);
    names->category = lua_tostring(L, index + 1);
    names->help = lua_tostring(L, index + 2);
}

int ct__lua_refuse_name(lua_State *L, int arg, const char *member) {
    return luaL_argerror(L, arg, lua_pushfstring(L, "no counter can have the name \"%s\"", member));
}

/* ---- names made from places ---- */

static void find_place(lua_State *L, int index, lua_Debug *place) {
    lua_pushvalue(L, index);
    lua_getinfo(L, ">S", place);
}

void ct__lua_check_nameable(lua_State *L, int arg, int index) {
    lua_Debug place;
    if (!lua_isfunction(L, index)) {
        luaL_argerror(L, arg, lua_pushfstring(L, "%s needs a name: give one", ct__lua_describe(L, index)));
        return;
    }
    find_place(L, index, &place);
    if (strcmp(place.what, "C") == 0) luaL_argerror(L, arg, "a C function needs a name: give one");
    if (place.source[0] != '@' && place.source[0] != '=')
        luaL_argerror(L, arg, "a function whose code was a string needs a name: give one");
}

void ct__lua_push_stem(lua_State *L, const char *path) {
    const char *name = path;
    for (const char *at = path; *at != '\0'; at++)
        if (*at == '/' || *at == '\\') name = at + 1;
    const char *dot = strrchr(name, '.');
    lua_pushlstring(L, name, dot != NULL && dot != name ? (size_t)(dot - name) : strlen(name));
}

void ct__lua_push_default_name(lua_State *L, int index) {
    lua_Debug place;
    find_place(L, index, &place);
    ct__lua_push_stem(L, place.source + 1);
    lua_pushfstring(L, "%s:%d", lua_tostring(L, -1), place.linedefined);
    lua_remove(L, -2);
}
