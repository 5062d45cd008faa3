/* SPDX-License-Identifier: MIT
 *
 * loop.c: the calls of a run or of a comparison.
 *
 * The loop is Lua code, so fn may yield, and the run with it. It is not protected by pcall: an error goes on as if we
 * were not there, and the message handler of whoever catches it sees the whole stack. What ends the run in every case
 * is a to-be-closed variable in the frame of who calls the loop: Lua closes it after a normal end, after an error, when
 * the coroutine is closed and in lua_close.
 *
 * The loop notes each completed call in the local "made". The closure that shares this local is how the count survives
 * the loop: when an error takes the stack away, Lua saves the local in the closure first. The note costs an instruction
 * per call; making four calls per turn saves about as much, so the loop takes the time of a plain one. (Calling from C
 * counts for nothing, but takes an eighth more than a plain loop over a C function.)
 *
 * Invariant: in_chunk is 1 exactly while the clock runs. What lies on the stack or in user values is not ours alone:
 * through the debug library fn can take the userdata, end it (__close, __gc) or put another value in its place. So
 * everything is checked when it is taken up again.
 */
#include "running.h"

#include <string.h>

static const char source[] = "local watch, next, done = ...\n"
                             "return function(turns)\n"
                             "    local made = 0\n"
                             "    watch(turns, function() return made end)\n"
                             "    for fn, k in next, turns do\n"
                             "        for i = 4, k, 4 do\n"
                             "            fn() made = i - 3\n"
                             "            fn() made = i - 2\n"
                             "            fn() made = i - 1\n"
                             "            fn() made = i\n"
                             "        end\n"
                             "        for i = made + 1, k do fn() made = i end\n"
                             "        done(turns, made)\n"
                             "        made = 0\n"
                             "    end\n"
                             "end\n";

/* Where the calls are a statement: statement(k) makes k turns, and made() tells how many it has completed. */
static const char statement_source[] =
    "local watch, next, done = ...\n"
    "return function(run, statement, made)\n"
    "    watch(run, made)\n"
    "    for _, k in next, run do\n"
    "        if statement(k) ~= statement then error('a statement cannot return', 0) end\n"
    "        done(run, k)\n"
    "        statement(0)\n"
    "    end\n"
    "end\n";

static const uint64_t tell_every_ns = 100000000;

const char ct__lua_gc_time_note[] = "GC time is unknown: Lua tells nobody when its collector works";

/* ---- what the loop calls ---- */

/* watch(userdata, closure) */
void ct__lua_loop_watch(lua_State *L) {
    lua_settop(L, 2);
    lua_setiuservalue(L, 1, LOOP_MADE);
}

int ct__lua_loop_next(lua_State *L, ct__lua_loop *loop) {
    uint64_t k;
    int what = ct_time_next(loop->run, &k);
    loop->in_chunk = what == 1;
    if (loop->in_chunk) lua_pushinteger(L, (lua_Integer)k);
    return what;
}

static void end_chunk(ct__lua_loop *loop, lua_Integer made) {
    if (loop->in_chunk) ct_time_done(loop->run, (uint64_t)made);
    loop->in_chunk = 0;
}

/* done(userdata, made). The clock runs: looking the type up in the registry would cost 20 ns of the call's time, so the
 * metatable is at hand in an upvalue. */
static int finish_chunk(lua_State *L) {
    const int ours =
        lua_type(L, 1) == LUA_TUSERDATA && lua_getmetatable(L, 1) && lua_rawequal(L, -1, lua_upvalueindex(1));
    ct__lua_loop *loop = ours ? lua_touserdata(L, 1) : NULL;
    if (loop == NULL || loop->run == NULL) return luaL_error(L, "the run has been ended from outside");
    end_chunk(loop, lua_tointeger(L, 2));
    return 0;
}

/* The closure tells how many calls of the chunk were completed. */
void ct__lua_loop_leave(lua_State *L, int index) {
    ct__lua_loop *loop = lua_touserdata(L, index);
    if (!loop->in_chunk) return;
    lua_getiuservalue(L, index, LOOP_MADE);
    const int known = lua_isfunction(L, -1) && lua_getupvalue(L, -1, 1) != NULL;
    end_chunk(loop, known ? lua_tointeger(L, -1) : 0);
    lua_pop(L, 1 + known);
}

void ct__lua_loop_tell(lua_State *L, int index, ct__lua_loop *loop, double part, double per_call_ns) {
    if (!loop->tells) return;
    const uint64_t now_ns = ct_now_ns();
    if (now_ns < loop->tell_ns) return;
    loop->tell_ns = now_ns + tell_every_ns;
    lua_getiuservalue(L, index, LOOP_PROGRESS);
    lua_pushnumber(L, part);
    lua_pushnumber(L, per_call_ns);
    lua_call(L, 2, 0);
}

/* ---- the end ---- */

/* The stand-alone interpreter turns Ctrl-C into the error "interrupted!", with a position in front of it unless it came
 * up in C, and its message handler has put a traceback behind it by now. */
static int is_ctrl_c(const char *message) {
    static const char ctrl_c[] = "interrupted!";
    size_t line = strcspn(message, "\n"), tail = sizeof ctrl_c - 1;
    if (line < tail || strncmp(message + line - tail, ctrl_c, tail) != 0) return 0;
    return line == tail || (line > tail + 1 && strncmp(message + line - tail - 2, ": ", 2) == 0);
}

/* Without an error value the coroutine or the state was closed, or somebody said error(nil). */
const char *ct__lua_name_cause(lua_State *L, int error) {
    if (lua_isnoneornil(L, error)) return "stopped";
    if (lua_type(L, error) != LUA_TSTRING) return "error";
    const char *message = lua_tostring(L, error);
    return strlen(message) == lua_rawlen(L, error) && is_ctrl_c(message) ? "interrupted" : "error";
}

const char *ct__lua_note_memory(lua_State *L, int error) {
    static const char no_memory[] = "not enough memory";
    if (lua_type(L, error) != LUA_TSTRING) return NULL;
    if (strncmp(lua_tostring(L, error), no_memory, sizeof no_memory - 1) != 0) return NULL;
    return "Collections that Lua made for lack of memory are not counted.";
}

/* ---- one loop for each type ---- */

static void push(lua_State *L, const char *type, const char *name) {
    luaL_getmetatable(L, type);
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
}

void ct__lua_push_loop(lua_State *L, const char *type) { push(L, type, "loop"); }
void ct__lua_push_statement_loop(lua_State *L, const char *type) { push(L, type, "statement_loop"); }

/* The metatable is on top of the stack. */
static void add_loop(lua_State *L, const char *name, const char *text, lua_CFunction watch, lua_CFunction next) {
    if (luaL_loadbufferx(L, text, strlen(text), "=codetimer", "t") != LUA_OK) lua_error(L);
    lua_pushcfunction(L, watch);
    lua_pushcfunction(L, next);
    lua_pushvalue(L, -4);
    lua_pushcclosure(L, finish_chunk, 1);
    lua_call(L, 3, 1);
    lua_setfield(L, -2, name);
}

void ct__lua_loop_open(lua_State *L, const char *type, const luaL_Reg *functions, lua_CFunction watch,
                       lua_CFunction next) {
    ct__lua_new_type(L, type, functions);
    luaL_getmetatable(L, type);
    const int made = lua_getfield(L, -1, "loop") != LUA_TNIL;
    lua_pop(L, 1);
    if (!made) add_loop(L, "loop", source, watch, next);
    if (!made) add_loop(L, "statement_loop", statement_source, watch, next);
    lua_pop(L, 1);
}
