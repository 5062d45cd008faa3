/* SPDX-License-Identifier: MIT
 *
 * report.c: report([file]), the table of all counters of this process.
 */
#include "counters.h"

enum { FILE_ = 1, ANSWER };

/* Pushes the table. Counters go on while it is made, so it may need more room than it was found to need. */
static void push_table(lua_State *L, int color) {
    ct_report_options options = {.size = sizeof options, .color = color, .ascii = ct_report_ascii()};
    size_t length = ct_report_counters(&options, NULL, 0), size = 0;
    char *text = NULL;
    while (length >= size) {
        if (text != NULL) lua_pop(L, 1);
        size = length + length / 8 + 1;
        text = lua_newuserdatauv(L, size, 0);
        length = ct_report_counters(&options, text, size);
    }
    lua_pushlstring(L, text, length);
    lua_remove(L, -2);
}

/* After write: true, or what write said. */
static int return_answer(lua_State *L, int status, lua_KContext context) {
    (void)status;
    (void)context;
    if (!lua_toboolean(L, ANSWER) && !lua_isnil(L, ANSWER + 1)) return 3;
    if (!ct__lua_flush_file(L, FILE_)) return luaL_fileresult(L, 0, NULL);
    lua_pushboolean(L, 1);
    return 1;
}

int ct__lua_report(lua_State *L) {
    lua_settop(L, FILE_);
    if (!lua_isnil(L, FILE_)) ct__lua_check_file(L, FILE_, "file must");
    lua_settop(L, FILE_);
    if (!ct__lua_resolve_file(L, FILE_)) {
        luaL_pushfail(L);
        lua_pushliteral(L, "no report: there is no io.stdout; give a file");
        lua_pushstring(L, ct_status_name(CT_ENOTSUP));
        return 3;
    }
    lua_getfield(L, FILE_, "write");
    lua_pushvalue(L, FILE_);
    push_table(L, ct__lua_file_color(L, FILE_));
    lua_callk(L, 2, 3, 0, return_answer);
    return return_answer(L, LUA_OK, 0);
}
