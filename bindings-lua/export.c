/* SPDX-License-Identifier: MIT
 *
 * export.c: what codetimer-lua time needs of the core and nobody else: files of results, reports with options, a line
 * of progress. Not public; codetimer/cli.lua knows what it gives.
 */
#include "running.h"

/* ---- several results: an array at index 1 ---- */

typedef struct several {
    const ct_result **results;
    size_t count;
    int format;
    ct_export_options export;
    ct_report_options report;
} several;

/* The array of pointers lies in a userdata, which is pushed. */
static void take_results(lua_State *L, several *all) {
    luaL_checktype(L, 1, LUA_TTABLE);
    all->count = (size_t)luaL_len(L, 1);
    all->results = lua_newuserdatauv(L, (all->count + 1) * sizeof(const ct_result *), 0);
    for (size_t i = 0; i < all->count; i++) {
        lua_geti(L, 1, (lua_Integer)i + 1);
        all->results[i] = ct__lua_check_result(L, -1);
        lua_pop(L, 1);
    }
}

/* ---- export(results, format, machine, date) ---- */

static size_t put_export(lua_State *L, const void *what, char *buffer, size_t size) {
    const several *all = what;
    (void)L;
    return ct_export_results(all->results, all->count, all->format, &all->export, buffer, size);
}

int ct__lua_export(lua_State *L) {
    several all = {.format = ct_export_format(luaL_checkstring(L, 2)),
                   .export = {.size = sizeof all.export,
                              .host = LUA_VERSION,
                              .machine = luaL_optstring(L, 3, NULL),
                              .date = luaL_optstring(L, 4, NULL)}};
    luaL_argcheck(L, all.format >= 0, 2, "there is no such format");
    take_results(L, &all);
    ct__lua_push_text(L, put_export, &all);
    return 1;
}

/* ---- report(results, color, verbose, unit, process) ---- */

static size_t put_report(lua_State *L, const void *what, char *buffer, size_t size) {
    const several *all = what;
    (void)L;
    if (all->count == 1) return ct_report_format(all->results[0], &all->report, buffer, size);
    return ct_runs_format(all->results, all->count, &all->report, buffer, size);
}

static int take_unit(lua_State *L, int arg) {
    const char *name = luaL_optstring(L, arg, NULL);
    int unit = name != NULL ? ct_unit(name) : CT_UNIT_AUTOMATIC;
    luaL_argcheck(L, unit >= 0, arg, "there is no such unit");
    return unit;
}

/* One result: its report; several: the sentence on them. */
int ct__lua_export_report(lua_State *L) {
    several all = {.report = {.size = sizeof all.report,
                              .color = lua_toboolean(L, 2),
                              .ascii = ct_report_ascii(),
                              .verbose = lua_toboolean(L, 3),
                              .unit = take_unit(L, 4),
                              .process = lua_toboolean(L, 5)}};
    take_results(L, &all);
    ct__lua_push_text(L, put_report, &all);
    return 1;
}

/* ---- progress(part, elapsed_ns, per_call_ns, unit) ---- */

typedef struct progress {
    double part, per_call_ns;
    uint64_t elapsed_ns;
    ct_report_options options;
} progress;

static size_t put_progress(lua_State *L, const void *what, char *buffer, size_t size) {
    const progress *shown = what;
    (void)L;
    return ct_progress_format(shown->part, shown->elapsed_ns, shown->per_call_ns, &shown->options, buffer, size);
}

int ct__lua_progress(lua_State *L) {
    const progress shown = {
        .part = luaL_checknumber(L, 1),
        .elapsed_ns = (uint64_t)luaL_checkinteger(L, 2),
        .per_call_ns = luaL_checknumber(L, 3),
        .options = {.size = sizeof shown.options, .ascii = ct_report_ascii(), .unit = take_unit(L, 4)}};
    ct__lua_push_text(L, put_progress, &shown);
    return 1;
}

/* ---- terminals(): whether standard output and standard error are terminals ---- */

int ct__lua_terminals(lua_State *L) {
    enum { STDOUT_DESCRIPTOR = 1, STDERR_DESCRIPTOR = 2 };
    lua_pushboolean(L, ct_is_terminal(STDOUT_DESCRIPTOR));
    lua_pushboolean(L, ct_is_terminal(STDERR_DESCRIPTOR));
    lua_pushboolean(L, ct_report_color(ct_is_terminal(STDOUT_DESCRIPTOR)));
    return 3;
}
