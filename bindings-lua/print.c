/* SPDX-License-Identifier: MIT
 *
 * print.c: a result or a comparison is written where its file says, by the file's method write, which may be Lua code.
 */
#include "running.h"

enum { SHIFT = 8 }; /* of the object's index beside the file's */

static void push_text(lua_State *L, int object, int color, int verbose) {
    if (ct__lua_is_result(L, object))
        ct__lua_push_report(L, object, color, verbose);
    else
        ct__lua_push_table(L, object, color, verbose);
}

/* Pushes file.write, file and the text. */
static void push_write(lua_State *L, int file, int object, int verbose) {
    lua_getfield(L, file, "write");
    lua_pushvalue(L, file);
    push_text(L, object, ct__lua_file_color(L, file), verbose);
}

/* Nothing is printed for "file = false", nor of a run without a name. */
static int is_silent(lua_State *L, int file, int object) {
    return lua_isboolean(L, file) ||
           (ct__lua_is_result(L, object) && ct__lua_check_result(L, object)->name_length == 0);
}

/* After it was written (or not): the object, or what write said. */
static int return_object(lua_State *L, int status, lua_KContext context) {
    (void)status;
    const int file = (int)(context & ((1 << SHIFT) - 1)), object = (int)(context >> SHIFT), answer = object + 1;
    if (!lua_toboolean(L, answer) && !lua_isnil(L, answer + 1)) return 3;
    if (!ct__lua_flush_file(L, file)) return luaL_fileresult(L, 0, NULL);
    lua_pushvalue(L, object);
    return 1;
}

int ct__lua_print(lua_State *L, int file, int object, int verbose) {
    const lua_KContext context = file | object << SHIFT;
    lua_settop(L, object);
    if (is_silent(L, file, object)) return 1;
    if (!ct__lua_resolve_file(L, file)) {
        luaL_pushfail(L);
        lua_pushliteral(L, "no report: there is no io.stdout; give options.file");
        lua_pushstring(L, ct_status_name(CT_ENOTSUP));
        return 3;
    }
    push_write(L, file, object, verbose);
    lua_callk(L, 2, 3, context, return_object);
    return return_object(L, LUA_OK, context);
}

/* (file, object, verbose), called in protected mode. */
static int print_partial(lua_State *L) {
    if (is_silent(L, 1, 2) || !ct__lua_resolve_file(L, 1)) return 0;
    push_write(L, 1, 2, lua_toboolean(L, 3));
    lua_call(L, 2, 0);
    ct__lua_flush_file(L, 1);
    return 0;
}

void ct__lua_print_partial(lua_State *L, int file, int object, int verbose) {
    file = lua_absindex(L, file);
    object = lua_absindex(L, object);
    lua_pushcfunction(L, print_partial);
    lua_pushvalue(L, file);
    lua_pushvalue(L, object);
    lua_pushboolean(L, verbose);
    if (lua_pcall(L, 3, 0, 0) != LUA_OK) lua_pop(L, 1);
}
