/* SPDX-License-Identifier: MIT
 *
 * run.c: time(name, n, fn [, options]): one run from its arguments to its printed report.
 *
 * Invariant: loop.run is NULL before begin and after the end; the sentinels are armed exactly while "armed" is 1.
 */
#include "running.h"

#define RUN_TYPE "codetimer.Run"

typedef struct lua_run {
    ct__lua_loop loop;
    ct__lua_options options;
    int armed;
    int complete;   /* n calls were made */
    int printed;    /* or tried: the report is written once */
    int status;     /* CT_OK: there is a result */
    int collecting; /* was the collector running before the first call? */
    int is_lua;     /* fn is no C function */
    size_t overheads_count;
    ct_overhead overheads[CT__LUA_OVERHEADS];
    ct__lua_gc before;
} lua_run;

enum { RUN_RESULT = LOOP_VALUES + 1, RUN_FILE, RUN_VALUES = RUN_FILE }; /* further user values of a run */
enum { NAME = 1, N, FN, FILE_, PROGRESS, BASELINE, RUN, RESULT };       /* the stack of time */

static lua_run *check_run(lua_State *L, int index) {
    lua_run *run = luaL_checkudata(L, index, RUN_TYPE);
    if (run->loop.run == NULL) luaL_error(L, "the run has been ended from outside");
    return run;
}

/* ---- what the loop calls ---- */

/* The last thing before the first chunk, and before the first that is not forgotten. */
static void begin_counting(lua_State *L, int index) {
    ct__lua_gc_settle(L);
    ct__lua_gc_read(L, &check_run(L, index)->before);
}

/* watch(run, closure): nothing of ours is collected during the run. */
static int watch_run(lua_State *L) {
    check_run(L, 1)->collecting = lua_gc(L, LUA_GCISRUNNING, 0);
    ct__lua_loop_watch(L);
    begin_counting(L, 1);
    return 0;
}

/* for fn, k in next, run */
static int next_chunk(lua_State *L) {
    lua_run *run = check_run(L, 1);
    int what;
    ct__lua_loop_tell(L, 1, &run->loop, ct_time_progress(run->loop.run), ct_time_per_call_ns(run->loop.run));
    lua_getiuservalue(L, 1, LOOP_FN);
    while ((what = ct__lua_loop_next(L, &check_run(L, 1)->loop)) == CT_WARM) begin_counting(L, 1);
    run->complete = what == 0;
    return what == 0 ? 0 : 2;
}

/* ---- the end of a run ---- */

static void disarm_run(lua_State *L, lua_run *run) {
    if (run->armed) ct__lua_gc_disarm(L);
    run->armed = 0;
}

static void note_collector(lua_State *L, lua_run *run, const ct__lua_gc *after) {
    int collecting = lua_gc(L, LUA_GCISRUNNING, 0);
    if (run->collecting && !collecting) ct_time_note(run->loop.run, "The function has stopped the garbage collector.");
    if (!run->collecting && collecting)
        ct_time_note(run->loop.run, "The function has restarted the garbage collector.");
    if (after->lost != run->before.lost)
        ct_time_note(run->loop.run, "Collections are not shown: there was no memory to count them.");
    if (run->options.gc_time) ct_time_note(run->loop.run, ct__lua_gc_time_note);
}

static int make_result(lua_run *run, const ct__lua_gc *after, const char *interrupted, ct_result **result) {
    static const ct_memory unfinished = {.reason = "the run did not come to its end"};
    const uint64_t counts_before[] = {run->before.minor, run->before.major};
    const uint64_t counts_after[] = {after->minor, after->major};
    const ct_time_finish finish = {.size = sizeof finish,
                                   .interrupted = interrupted,
                                   .gc_generations = after->lost == run->before.lost ? CT__LUA_GENERATIONS : 0,
                                   .gc_labels = ct__lua_gc_labels,
                                   .gc_before = counts_before,
                                   .gc_after = counts_after,
                                   .memory = run->options.memory ? &unfinished : NULL,
                                   .overheads_count = run->overheads_count,
                                   .overheads = run->overheads};
    return ct_time_end(run->loop.run, &finish, result);
}

/* Ends the run at "index", once: the result is made and becomes the last one. */
static void end_run(lua_State *L, int index, const char *interrupted) {
    lua_run *run = lua_touserdata(L, index);
    ct__lua_gc after;
    ct_result *result;
    if (run->loop.run == NULL) return;
    ct__lua_loop_leave(L, index);
    ct__lua_gc_read(L, &after);
    disarm_run(L, run);
    note_collector(L, run, &after);
    run->status = make_result(run, &after, interrupted, &result);
    run->loop.run = NULL;
    if (run->status != CT_OK) return;
    lua_getiuservalue(L, index, RUN_RESULT);
    if (ct__lua_set_result(L, -1, result, run->is_lua)) ct__lua_set_last_result(L, -1);
    lua_pop(L, 1);
}

/* ---- the run as a userdata ---- */

/* The report of a run that did not come to print it. */
static void print_interrupted(lua_State *L, int index) {
    lua_run *run = lua_touserdata(L, index);
    if (run->printed || run->status != CT_OK) return;
    run->printed = 1;
    lua_getiuservalue(L, index, RUN_FILE);
    lua_getiuservalue(L, index, RUN_RESULT);
    ct__lua_print_partial(L, -2, -1, run->options.verbose);
    lua_pop(L, 2);
}

/* __close(run, error) */
static int close_run(lua_State *L) {
    lua_run *run = luaL_checkudata(L, 1, RUN_TYPE);
    lua_settop(L, 2);
    if (run->loop.run != NULL) {
        const char *note = ct__lua_note_memory(L, 2);
        ct__lua_loop_leave(L, 1);
        if (note != NULL) ct_time_note(run->loop.run, note);
    }
    end_run(L, 1, run->complete ? NULL : ct__lua_name_cause(L, 2));
    print_interrupted(L, 1);
    return 0;
}

/* A coroutine that died or was forgotten is never closed; its run ends without a result when it is collected: how
 * long it ran is not known by then. */
static int free_run(lua_State *L) {
    lua_run *run = luaL_checkudata(L, 1, RUN_TYPE);
    disarm_run(L, run);
    if (run->loop.run == NULL) return 0;
    ct_run_free(run->loop.run);
    run->loop.run = NULL;
    lua_warning(L, "codetimer: a run has no result, because its coroutine was neither finished nor closed", 0);
    return 0;
}

static void set_value(lua_State *L, int slot, int value) {
    lua_pushvalue(L, slot);
    lua_setiuservalue(L, RUN, value);
}

/* Pushes the run and its result. Whatever needs memory is made here. */
static lua_run *new_run(lua_State *L, const ct__lua_options *options) {
    lua_run *run = lua_newuserdatauv(L, sizeof *run, RUN_VALUES);
    *run = (lua_run){.loop.tells = !lua_isnil(L, PROGRESS), .options = *options, .status = CT_EINVAL};
    luaL_setmetatable(L, RUN_TYPE);
    ct__lua_new_result(L);
    set_value(L, FN, LOOP_FN);
    set_value(L, PROGRESS, LOOP_PROGRESS);
    set_value(L, RESULT, RUN_RESULT);
    set_value(L, FILE_, RUN_FILE);
    lua_toclose(L, RUN);
    ct__lua_gc_arm(L);
    run->armed = 1;
    ct__lua_gc_read(L, &run->before);
    return run;
}

/* ---- time ---- */

static int64_t check_arguments(lua_State *L, ct__lua_options *options) {
    static const char *const names[] = {"file", "budget", "gc_time", "memory", "verbose", "_progress", NULL};
    int64_t n = CT_N_AUTOMATIC;
    if (lua_type(L, NAME) != LUA_TSTRING)
        luaL_argerror(L, NAME, lua_pushfstring(L, "name must be a string, got %s", ct__lua_describe(L, NAME)));
    if (!lua_isnoneornil(L, N)) n = ct__lua_check_count(L, N, N, "n, if not nil,", LUA_MAXINTEGER);
    ct__lua_check_callable(L, FN, FN);
    ct__lua_take_options(L, FILE_, names, options);
    if (options->budget_ns > 0 && n != CT_N_AUTOMATIC)
        luaL_argerror(L, FILE_, "options.budget is for automatic n (n = nil): with n given it must be left out");
    return n;
}

static int begin_run(lua_State *L, lua_run *run, int64_t n) {
    ct_time_options options = {.size = sizeof options, .budget_ns = run->options.budget_ns};
    const char *name = lua_tolstring(L, NAME, &options.name_length);
    run->is_lua = ct__lua_is_statement(L, FN) ? -1 : ct__lua_is_lua(L, FN);
    return ct_time_begin(name, n, &options, &run->loop.run);
}

/* The last step. */
static int print_run(lua_State *L, int status, lua_KContext context) {
    (void)status;
    (void)context;
    lua_run *run = luaL_checkudata(L, RUN, RUN_TYPE);
    (void)ct__lua_check_result(L, RESULT);
    run->printed = 1;
    return ct__lua_print(L, FILE_, RESULT, run->options.verbose);
}

/* After the loop: the end of a complete run. */
static int conclude_run(lua_State *L, int status, lua_KContext context) {
    (void)status;
    lua_run *run = check_run(L, RUN);
    end_run(L, RUN, NULL);
    if (run->status != CT_OK) return ct__lua_fail(L, run->status);
    if (!run->options.memory) return print_run(L, LUA_OK, context);
    lua_pushcfunction(L, ct__lua_count_allocations);
    lua_pushvalue(L, FN);
    lua_pushvalue(L, RESULT);
    lua_callk(L, 2, 0, context, print_run);
    return print_run(L, LUA_OK, context);
}

/* Pushes the loop and its arguments; returns how many these are. */
static int push_loop(lua_State *L) {
    const int is_statement = ct__lua_is_statement(L, FN);
    if (is_statement)
        ct__lua_push_statement_loop(L, RUN_TYPE);
    else
        ct__lua_push_loop(L, RUN_TYPE);
    lua_pushvalue(L, RUN);
    if (is_statement) ct__lua_push_statement(L, FN);
    return is_statement ? 3 : 1;
}

int ct__lua_time(lua_State *L) {
    ct__lua_options options;
    ct_overhead overheads[CT__LUA_OVERHEADS];
    size_t known = 0;
    int64_t n = check_arguments(L, &options);
    ct__lua_allocations_tidy(L);
    if (ct__lua_is_statement(L, FN))
        ct__lua_statement_overhead(L, FN, overheads, &known);
    else if (n == CT_N_AUTOMATIC || options.verbose)
        ct__lua_overheads(L, ct__lua_is_lua(L, FN), overheads, &known);
    lua_run *run = new_run(L, &options);
    for (size_t i = 0; i < known; i++) run->overheads[run->overheads_count++] = overheads[i];
    int status = begin_run(L, run, n);
    if (status != CT_OK) return ct__lua_fail(L, status);
    const int arguments = push_loop(L);
    lua_callk(L, arguments, 0, 0, conclude_run);
    return conclude_run(L, LUA_OK, 0);
}

void ct__lua_run_open(lua_State *L) {
    static const luaL_Reg functions[] = {{"__close", close_run}, {"__gc", free_run}, {NULL, NULL}};
    ct__lua_loop_open(L, RUN_TYPE, functions, watch_run, next_chunk);
}
