/* SPDX-License-Identifier: MIT
 *
 * file.c: where a report goes: io.stdout as it is when the report is written, or any object with a method write.
 */
#define _POSIX_C_SOURCE 200809L /* fileno */
#include "common.h"

#include <stdio.h>

#include <lualib.h>

#ifdef _WIN32
#define fileno _fileno
#endif

/* NULL if the value is no file of the io library, or a closed one. */
static luaL_Stream *find_stream(lua_State *L, int file) {
    luaL_Stream *stream = luaL_testudata(L, file, LUA_FILEHANDLE);
    return stream != NULL && stream->closef != NULL ? stream : NULL;
}

void ct__lua_check_file(lua_State *L, int arg, const char *what) {
    if (luaL_testudata(L, arg, LUA_FILEHANDLE) != NULL && find_stream(L, arg) == NULL)
        luaL_argerror(L, arg, lua_pushfstring(L, "%s have a write method, got a closed file", what));
    int indexable = lua_istable(L, arg) || luaL_getmetafield(L, arg, "__index") != LUA_TNIL;
    const int there = indexable && lua_getfield(L, arg, "write") != LUA_TNIL, write = lua_gettop(L);
    if (there && ct__lua_is_callable(L, write)) return;
    const char *seen = ct__lua_describe(L, arg);
    if (there) seen = lua_pushfstring(L, "%s whose write is %s", seen, ct__lua_describe(L, write));
    luaL_argerror(L, arg, lua_pushfstring(L, "%s have a write method, got %s", what, seen));
}

int ct__lua_resolve_file(lua_State *L, int file) {
    if (!lua_isnil(L, file)) return 1;
    lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_getfield(L, -1, LUA_IOLIBNAME);
    if (lua_istable(L, -1))
        lua_getfield(L, -1, "stdout");
    else
        lua_pushnil(L);
    lua_replace(L, file);
    lua_pop(L, 2);
    return !lua_isnil(L, file);
}

int ct__lua_file_color(lua_State *L, int file) {
    const luaL_Stream *stream = find_stream(L, file);
    return ct_report_color(stream != NULL && ct_is_terminal(fileno(stream->f)));
}

/* A full disk shows only when the buffer is written out, and by then nobody may be looking. */
int ct__lua_flush_file(lua_State *L, int file) {
    luaL_Stream *stream = find_stream(L, file);
    return stream == NULL || fflush(stream->f) == 0;
}
