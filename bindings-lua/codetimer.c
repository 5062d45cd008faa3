/* SPDX-License-Identifier: MIT
 *
 * codetimer.c: require "codetimer". Opening the module again in the same state gives another table with the same
 * functions; everything behind them is made once.
 */
#include "instrument.h"
#include "running.h"

#if defined(_WIN32)
#define CT_LUA_EXPORT __declspec(dllexport)
#else
#define CT_LUA_EXPORT __attribute__((visibility("default")))
#endif

const luaL_Reg ct__lua_functions[] = {
    {"attach", ct__lua_attach},
    {"clock_info", ct__lua_clock_info},
    {"compare", ct__lua_compare},
    {"configure", ct__lua_configure},
    {"counters", ct__lua_counters_function},
    {"initialize", ct__lua_initialize},
    {"instrument", ct__lua_instrument},
    {"last_comparison", ct__lua_last_comparison},
    {"last_result", ct__lua_last_result},
    {"measure_program", ct__lua_measure_program},
    {"measured", ct__lua_measured},
    {"now_ns", ct__lua_now_ns},
    {"poll", ct__lua_poll},
    {"processes", ct__lua_processes},
    {"reap", ct__lua_reap},
    {"report", ct__lua_report},
    {"segment_info", ct__lua_segment_info},
    {"thread_cycles", ct__lua_thread_cycles},
    {"time", ct__lua_time},
    {"timer", ct__lua_timer},
    {"uninstrument", ct__lua_uninstrument},
    {"unwrap", ct__lua_unwrap},
    {NULL, NULL},
};

CT_LUA_EXPORT int luaopen_codetimer(lua_State *L);

/* For who lists the processes that publish counters. */
static void describe_process(lua_State *L) {
    if (ct__lua_find_counters(L) != NULL) return;
    ct__lua_push_program(L);
    ct_segment_describe(lua_tostring(L, -1), LUA_VERSION);
    lua_pop(L, 1);
}

CT_LUA_EXPORT int luaopen_codetimer(lua_State *L) {
    luaL_checkversion(L);
    describe_process(L);
    ct__lua_allocations_open(L);
    ct__lua_gc_open(L);
    ct__lua_result_open(L);
    ct__lua_comparison_open(L);
    ct__lua_overheads_open(L);
    ct__lua_statement_open(L);
    ct__lua_run_open(L);
    ct__lua_rounds_open(L);
    ct__lua_environment_open(L);
    ct__lua_counters_open(L);
    ct__lua_live_open(L);
    ct__lua_sample_open(L);
    ct__lua_measured_open(L);
    ct__lua_timer_open(L);
    ct__lua_instrument_open(L);
    lua_createtable(L, 0, (int)(sizeof ct__lua_functions / sizeof ct__lua_functions[0]));
    luaL_setfuncs(L, ct__lua_functions, 0);
    lua_pushfstring(L, "codetimer %s", ct_version());
    lua_setfield(L, -2, "_VERSION");
    ct__lua_trace_open(L);
    return 1;
}

CT_LUA_EXPORT int luaopen_codetimer_native(lua_State *L);

/* require "codetimer.native": for codetimer/cli.lua alone. Lua finds it in this library. */
CT_LUA_EXPORT int luaopen_codetimer_native(lua_State *L) {
    static const luaL_Reg functions[] = {{"export", ct__lua_export},        {"progress", ct__lua_progress},
                                         {"report", ct__lua_export_report}, {"statement", ct__lua_statement},
                                         {"terminals", ct__lua_terminals},  {NULL, NULL}};
    luaL_checkversion(L);
    luaL_newlib(L, functions);
    return 1;
}
