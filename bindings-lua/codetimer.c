/* SPDX-License-Identifier: MIT
 *
 * codetimer.c: require "codetimer". Opening the module again in the same state gives another table with the same
 * functions; everything behind them is made once.
 */
#include "common.h"

#if defined(_WIN32)
#define CT_LUA_EXPORT __declspec(dllexport)
#else
#define CT_LUA_EXPORT __attribute__((visibility("default")))
#endif

static const luaL_Reg functions[] = {
    {"clock_info", ct__lua_clock_info},
    {"initialize", ct__lua_initialize},
    {"last_result", ct__lua_last_result},
    {"now_ns", ct__lua_now_ns},
    {"thread_cycles", ct__lua_thread_cycles},
    {"time", ct__lua_time},
    {NULL, NULL},
};

CT_LUA_EXPORT int luaopen_codetimer(lua_State *L);

CT_LUA_EXPORT int luaopen_codetimer(lua_State *L) {
    luaL_checkversion(L);
    ct__lua_gc_open(L);
    ct__lua_result_open(L);
    ct__lua_run_open(L);
    ct__lua_environment_open(L);
    luaL_newlib(L, functions);
    lua_pushfstring(L, "codetimer %s", ct_version());
    lua_setfield(L, -2, "_VERSION");
    return 1;
}
