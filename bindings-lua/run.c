/* SPDX-License-Identifier: MIT
 *
 * run.c: time(name, n, fn [, options]).
 *
 * The loop is Lua code, so fn may yield, and the run with it. It is not protected by pcall: an error goes on as if we
 * were not there, and the message handler of whoever catches it sees the whole stack. What ends the run in every case
 * is a to-be-closed variable, the run itself, in the frame of "time": Lua closes it after a normal end, after an error,
 * when the coroutine is closed and in lua_close.
 *
 * The loop notes each completed call in the local "made". The closure that shares this local is how the count survives
 * the loop: when an error takes the stack away, Lua saves the local in the closure first. The note costs an instruction
 * per call; making four calls per turn saves about as much, so the loop takes the time of a plain one. (Calling from C
 * counts for nothing, but takes an eighth more than a plain loop over a C function.)
 *
 * Invariant: run->run is NULL before begin and after the end; in_chunk is 1 exactly while the clock runs; the sentinels
 * are armed exactly while "armed" is 1. What lies on the stack or in user values is not ours alone: through the debug
 * library fn can take the run, end it (__close, __gc) or put another value in its place. So everything is checked when
 * it is taken up again.
 */
#include "common.h"

#include <string.h>

#define RUN_TYPE "codetimer.Run"

static const char loop[] = "local watch, next, done = ...\n"
                           "return function(run, fn)\n"
                           "    local made = 0\n"
                           "    watch(run, function() return made end)\n"
                           "    for k in next, run do\n"
                           "        for i = 4, k, 4 do\n"
                           "            fn() made = i - 3\n"
                           "            fn() made = i - 2\n"
                           "            fn() made = i - 1\n"
                           "            fn() made = i\n"
                           "        end\n"
                           "        for i = made + 1, k do fn() made = i end\n"
                           "        done(run, made)\n"
                           "        made = 0\n"
                           "    end\n"
                           "end\n";

static const char loop_key = 0; /* the compiled loop in the registry */

typedef struct lua_run {
    ct_run *run;
    int armed;
    int in_chunk;
    int complete;   /* n calls were made */
    int printed;    /* or tried: the report is written once */
    int status;     /* CT_OK: there is a result */
    int collecting; /* was the collector running at the start? */
    ct__lua_gc before;
} lua_run;

enum { RUN_MADE = 1, RUN_RESULT, RUN_FILE, RUN_VALUES = RUN_FILE }; /* user values of a run */
enum { NAME = 1, N, FN, FILE_, RUN, RESULT };                       /* the stack of time */

static lua_run *check_run(lua_State *L, int index) {
    lua_run *run = luaL_checkudata(L, index, RUN_TYPE);
    if (run->run == NULL) luaL_error(L, "the run has been ended from outside");
    return run;
}

/* ---- what the loop calls ---- */

/* watch(run, closure): the last thing before the first chunk, so that nothing of ours is collected during the run. */
static int watch_run(lua_State *L) {
    lua_run *run = check_run(L, 1);
    lua_setiuservalue(L, 1, RUN_MADE);
    ct__lua_gc_settle(L);
    run->collecting = lua_gc(L, LUA_GCISRUNNING, 0);
    ct__lua_gc_read(L, &run->before);
    return 0;
}

/* for k in next, run */
static int next_chunk(lua_State *L) {
    lua_run *run = check_run(L, 1);
    uint64_t k;
    run->in_chunk = ct_time_next(run->run, &k);
    run->complete = !run->in_chunk;
    if (run->complete) return 0;
    lua_pushinteger(L, (lua_Integer)k);
    return 1;
}

static void end_chunk(lua_run *run, lua_Integer made) {
    if (run->in_chunk) ct_time_done(run->run, (uint64_t)made);
    run->in_chunk = 0;
}

/* done(run, made). The clock runs: looking the type up in the registry, as check_run does, would cost 20 ns of the
 * call's time, so the metatable is at hand in an upvalue. */
static int finish_chunk(lua_State *L) {
    const int ours = lua_rawlen(L, 1) == sizeof(lua_run) && lua_getmetatable(L, 1) &&
                     lua_rawequal(L, -1, lua_upvalueindex(1));
    lua_run *run = ours ? lua_touserdata(L, 1) : NULL;
    if (run == NULL || run->run == NULL) run = check_run(L, 1);
    end_chunk(run, lua_tointeger(L, 2));
    return 0;
}

/* ---- the end of a run ---- */

static void disarm_run(lua_State *L, lua_run *run) {
    if (run->armed) ct__lua_gc_disarm(L);
    run->armed = 0;
}

/* Ends the chunk in which the loop was left: the closure tells how many of its calls were completed. */
static void leave_chunk(lua_State *L, int index) {
    lua_run *run = lua_touserdata(L, index);
    if (!run->in_chunk) return;
    lua_getiuservalue(L, index, RUN_MADE);
    const int known = lua_isfunction(L, -1) && lua_getupvalue(L, -1, 1) != NULL;
    end_chunk(run, known ? lua_tointeger(L, -1) : 0);
    lua_pop(L, 1 + known);
}

static void note_collector(lua_State *L, lua_run *run, const ct__lua_gc *after) {
    int collecting = lua_gc(L, LUA_GCISRUNNING, 0);
    if (run->collecting && !collecting) ct_time_note(run->run, "The function has stopped the garbage collector.");
    if (!run->collecting && collecting) ct_time_note(run->run, "The function has restarted the garbage collector.");
    if (after->lost != run->before.lost)
        ct_time_note(run->run, "Collections are not shown: there was no memory to count them.");
}

/* Ends the run at "index", once: the result is made and becomes the last one. */
static void end_run(lua_State *L, int index, const char *interrupted) {
    static const char *const labels[] = {"GC Minor", "GC Major"};
    lua_run *run = lua_touserdata(L, index);
    ct__lua_gc after;
    if (run->run == NULL) return;
    leave_chunk(L, index);
    ct__lua_gc_read(L, &after);
    disarm_run(L, run);
    note_collector(L, run, &after);
    const uint64_t counts_before[] = {run->before.minor, run->before.major};
    const uint64_t counts_after[] = {after.minor, after.major};
    ct_time_finish finish = {.size = sizeof finish, .interrupted = interrupted, .gc_generations = 2, .gc_labels = labels,
                              .gc_before = counts_before, .gc_after = counts_after};
    if (after.lost != run->before.lost) finish.gc_generations = 0;
    lua_getiuservalue(L, index, RUN_RESULT);
    run->status = ct_time_end(run->run, &finish, ct__lua_test_result(L, -1));
    run->run = NULL;
    if (run->status == CT_OK) ct__lua_set_last_result(L, -1);
    lua_pop(L, 1);
}

/* ---- the report ---- */

/* Pushes file.write, file and the report of the result at "index". */
static void push_write(lua_State *L, int file, int index) {
    lua_getfield(L, file, "write");
    lua_pushvalue(L, file);
    ct__lua_push_report(L, index, ct__lua_file_color(L, file));
}

/* print(file, result), called in protected mode: the error that ended the run is more important than this one. */
static int print_partial(lua_State *L) {
    if (!ct__lua_resolve_file(L, 1)) return 0;
    push_write(L, 1, 2);
    lua_call(L, 2, 0);
    ct__lua_flush_file(L, 1);
    return 0;
}

static void print_interrupted(lua_State *L, int index) {
    lua_run *run = lua_touserdata(L, index);
    if (run->printed || run->status != CT_OK) return;
    run->printed = 1;
    lua_pushcfunction(L, print_partial);
    if (lua_getiuservalue(L, index, RUN_FILE) == LUA_TBOOLEAN) { /* false: print nothing */
        lua_pop(L, 2);
        return;
    }
    lua_getiuservalue(L, index, RUN_RESULT);
    ct_result **box = ct__lua_test_result(L, -1);
    if (box == NULL || *box == NULL || (*box)->name_length == 0)
        lua_pop(L, 3);
    else if (lua_pcall(L, 2, 0, 0) != LUA_OK)
        lua_pop(L, 1);
}

/* ---- the run as a userdata ---- */

/* The stand-alone interpreter turns Ctrl-C into the error "interrupted!", with a position in front of it unless it came
 * up in C, and its message handler has put a traceback behind it by now. */
static int is_ctrl_c(const char *message) {
    static const char ctrl_c[] = "interrupted!";
    size_t line = strcspn(message, "\n"), tail = sizeof ctrl_c - 1;
    if (line < tail || strncmp(message + line - tail, ctrl_c, tail) != 0) return 0;
    return line == tail || (line > tail + 1 && strncmp(message + line - tail - 2, ": ", 2) == 0);
}

/* One word for what ended the run early. Without an error value the coroutine or the state was closed, or somebody said
 * error(nil). */
static const char *name_cause(lua_State *L, int error) {
    if (lua_isnoneornil(L, error)) return "stopped";
    if (lua_type(L, error) != LUA_TSTRING) return "error";
    const char *message = lua_tostring(L, error);
    return strlen(message) == lua_rawlen(L, error) && is_ctrl_c(message) ? "interrupted" : "error";
}

/* A collection for lack of memory runs no finalizer, so it escapes the sentinels. */
static void note_memory(lua_State *L, lua_run *run, int error) {
    static const char no_memory[] = "not enough memory";
    if (lua_type(L, error) != LUA_TSTRING) return;
    if (strncmp(lua_tostring(L, error), no_memory, sizeof no_memory - 1) != 0) return;
    ct_time_note(run->run, "Collections that Lua made for lack of memory are not counted.");
}

/* __close(run, error) */
static int close_run(lua_State *L) {
    lua_run *run = luaL_checkudata(L, 1, RUN_TYPE);
    lua_settop(L, 2);
    if (run->run != NULL) {
        leave_chunk(L, 1);
        note_memory(L, run, 2);
    }
    end_run(L, 1, run->complete ? NULL : name_cause(L, 2));
    if (!run->complete || !lua_isnil(L, 2)) print_interrupted(L, 1);
    return 0;
}

/* A coroutine that died or was forgotten is never closed; its run ends without a result when it is collected: how
 * long it ran is not known by then. */
static int free_run(lua_State *L) {
    lua_run *run = luaL_checkudata(L, 1, RUN_TYPE);
    disarm_run(L, run);
    if (run->run == NULL) return 0;
    ct_run_free(run->run);
    run->run = NULL;
    lua_warning(L, "codetimer: a run has no result, because its coroutine was neither finished nor closed", 0);
    return 0;
}

/* Pushes the run and its result. Whatever needs memory is made here. */
static lua_run *new_run(lua_State *L) {
    lua_run *run = lua_newuserdatauv(L, sizeof *run, RUN_VALUES);
    *run = (lua_run){.status = CT_EINVAL};
    luaL_setmetatable(L, RUN_TYPE);
    ct__lua_new_result(L);
    lua_pushvalue(L, RESULT);
    lua_setiuservalue(L, RUN, RUN_RESULT);
    lua_pushvalue(L, FILE_);
    lua_setiuservalue(L, RUN, RUN_FILE);
    lua_toclose(L, RUN);
    ct__lua_gc_arm(L);
    run->armed = 1;
    ct__lua_gc_read(L, &run->before);
    return run;
}

/* ---- time ---- */

/* Replaces the options by what options.file says: nil (io.stdout), false (nothing), or an object with a write method.
 */
static void check_file(lua_State *L, int arg) {
    static const char *const names[] = {"file", NULL};
    if (!ct__lua_check_options(L, arg, names)) return;
    lua_getfield(L, arg, "file");
    lua_replace(L, arg);
    if (lua_isnil(L, arg) || (lua_isboolean(L, arg) && !lua_toboolean(L, arg))) return;
    ct__lua_check_file(L, arg, "options.file must be false or");
}

static int64_t check_arguments(lua_State *L) {
    if (lua_type(L, NAME) != LUA_TSTRING)
        luaL_argerror(L, NAME, lua_pushfstring(L, "name must be a string, got %s", ct__lua_describe(L, NAME)));
    if (lua_isnoneornil(L, N)) luaL_argerror(L, N, "automatic n is not available yet: give the number of calls");
    int64_t n = ct__lua_check_count(L, N, N, "n", LUA_MAXINTEGER);
    ct__lua_check_callable(L, FN, FN);
    lua_settop(L, FILE_);
    check_file(L, FILE_);
    lua_settop(L, FILE_);
    return n;
}

/* After the report was written (or not): the result, or what write said. */
static int return_result(lua_State *L, int status, lua_KContext context) {
    (void)status;
    (void)context;
    int answer = RESULT + 1;
    if (!lua_toboolean(L, answer) && !lua_isnil(L, answer + 1)) return 3;
    if (!ct__lua_flush_file(L, FILE_)) return luaL_fileresult(L, 0, NULL);
    lua_pushvalue(L, RESULT);
    return 1;
}

/* After the loop: the end of a complete run. */
static int report_run(lua_State *L, int status, lua_KContext context) {
    (void)status;
    lua_run *run = check_run(L, RUN);
    end_run(L, RUN, NULL);
    if (run->status != CT_OK) return ct__lua_fail(L, run->status);
    const ct_result *result = ct__lua_check_result(L, RESULT);
    run->printed = 1;
    lua_settop(L, RESULT);
    if (lua_isboolean(L, FILE_) || result->name_length == 0) return 1;
    if (!ct__lua_resolve_file(L, FILE_)) {
        luaL_pushfail(L);
        lua_pushliteral(L, "no report: there is no io.stdout; give options.file");
        lua_pushstring(L, ct_status_name(CT_ENOTSUP));
        return 3;
    }
    push_write(L, FILE_, RESULT);
    lua_callk(L, 2, 3, context, return_result);
    return return_result(L, LUA_OK, context);
}

int ct__lua_time(lua_State *L) {
    int64_t n = check_arguments(L);
    lua_run *run = new_run(L);
    ct_time_options options = {.size = sizeof options};
    const char *name = lua_tolstring(L, NAME, &options.name_length);
    int status = ct_time_begin(name, n, &options, &run->run);
    if (status != CT_OK) return ct__lua_fail(L, status);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &loop_key);
    lua_pushvalue(L, RUN);
    lua_pushvalue(L, FN);
    lua_callk(L, 2, 0, 0, report_run);
    return report_run(L, LUA_OK, 0);
}

void ct__lua_run_open(lua_State *L) {
    static const luaL_Reg functions[] = {{"__close", close_run}, {"__gc", free_run}, {NULL, NULL}};
    ct__lua_new_type(L, RUN_TYPE, functions);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &loop_key) == LUA_TNIL) {
        if (luaL_loadbufferx(L, loop, sizeof loop - 1, "=codetimer", "t") != LUA_OK) lua_error(L);
        lua_pushcfunction(L, watch_run);
        lua_pushcfunction(L, next_chunk);
        luaL_getmetatable(L, RUN_TYPE);
        lua_pushcclosure(L, finish_chunk, 1);
        lua_call(L, 3, 1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &loop_key);
    }
    lua_pop(L, 1);
}
