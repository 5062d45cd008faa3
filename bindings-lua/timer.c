/* SPDX-License-Identifier: MIT
 *
 * timer.c: timer(name), a counter around any stretch of code. A timer runs from its making to its stop, which is its
 * method, the end of its block (as a to-be-closed variable), or the collector's finding it forgotten: that is
 * cancelled. Where there is no memory for one, all get the same timer, which measures nothing.
 */
#include "counters.h"

#include <string.h>

#define TIMER_TYPE "codetimer.Timer"

static const char unmeasured_key = 0; /* the timer that measures nothing */

typedef struct timer {
    ct__lua_counter *counter; /* kept alive by the user value, as long as that is it; NULL: nothing is measured */
    int running;
    int open;          /* begun in a coroutine: how much of its time is active nobody can tell */
    const void *frame; /* in which it was made */
    ct_token call;
} timer;

static void stop_timer(lua_State *L, int outcome) {
    timer *t = luaL_checkudata(L, 1, TIMER_TYPE);
    lua_getiuservalue(L, 1, 1);
    ct__lua_counter *counter = ct__lua_to_counter(L, -1);
    ct_counter *handle = counter != NULL && counter == t->counter ? counter->handle : NULL;
    lua_pop(L, 1);
    if (t->running && handle != NULL) {
        int64_t duration_ns =
            t->open ? ct_leave_active(handle, &t->call, NULL, outcome) : ct_leave(handle, &t->call, outcome);
        if (!t->counter->plain && duration_ns >= 0) ct__lua_trace_increment(L, handle, duration_ns);
    }
    t->running = 0;
}

static int timer_stop(lua_State *L) {
    stop_timer(L, CT_RETURNED);
    return 0;
}

/* Without an error value the frame tells that closes it. There is none where the coroutine or the state was closed. A
 * block ends in its own, which is one of Lua, or of C if that made the timer; where a function of the program has made
 * it, it is another one of Lua. After error(nil) it is that of whoever caught the error, a function of C. */
static int find_outcome(lua_State *L, const timer *t) {
    lua_Debug frame;
    const void *now = ct__lua_calling_frame(L, &frame);
    if (!lua_isnoneornil(L, 2)) return CT_FAILED;
    if (now == NULL) return CT_CANCELLED;
    if (now == t->frame) return CT_RETURNED;
    lua_getinfo(L, "f", &frame);
    const int caught = lua_iscfunction(L, -1);
    lua_pop(L, 1);
    return caught ? CT_FAILED : CT_RETURNED;
}

/* __close(timer, error) */
static int timer_close(lua_State *L) {
    stop_timer(L, find_outcome(L, luaL_checkudata(L, 1, TIMER_TYPE)));
    return 0;
}

static int timer_gc(lua_State *L) {
    stop_timer(L, CT_CANCELLED);
    return 0;
}

/* timer.counter is nil if it was refused. */
static int timer_index(lua_State *L) {
    luaL_checkudata(L, 1, TIMER_TYPE);
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
    if (strcmp(name, "stop") == 0)
        lua_pushcfunction(L, timer_stop);
    else if (strcmp(name, "counter") == 0)
        lua_getiuservalue(L, 1, 1);
    else
        return 0;
    return 1;
}

/* make(name, category, help) returns the timer, not yet running, or the status that stands against it. */
static int make_timer(lua_State *L) {
    ct__lua_names names;
    timer *t = lua_newuserdatauv(L, sizeof *t, 1);
    *t = (timer){0};
    ct__lua_get_names(L, 1, &names);
    int status = ct__lua_open_counter(L, &names);
    if (status < 0) {
        lua_pushinteger(L, status);
        return 1;
    }
    t->counter = ct__lua_to_counter(L, -1);
    lua_setiuservalue(L, -2, 1);
    luaL_setmetatable(L, TIMER_TYPE); /* after the counter: finalizers run in reverse order, its last call counts */
    if (status == CT_OK) ct__lua_trace_opened(L, status, t->counter->handle);
    return 1;
}

static int start_timer(lua_State *L) {
    lua_Debug frame;
    timer *t = lua_touserdata(L, -1);
    t->running = 1;
    t->frame = ct__lua_calling_frame(L, &frame);
    t->open = L != t->counter->owner->main_thread;
    ct_enter(t->counter->handle, &t->call);
    return 1;
}

/* timer(name [, category]), timer{name=, category=, help=} */
int ct__lua_timer(lua_State *L) {
    enum { NAME = 1, HELP = 3 };
    lua_settop(L, 2);
    ct__lua_check_names(L, 1, NAME);
    if (lua_isnil(L, NAME)) luaL_argerror(L, 1, "a timer needs a name");
    lua_pushcfunction(L, make_timer);
    for (int i = NAME; i <= HELP; i++) lua_pushvalue(L, i);
    int status = lua_pcall(L, HELP, 1, 0);
    if (status != LUA_OK && status != LUA_ERRMEM) return lua_error(L);
    if (status == LUA_OK && lua_isuserdata(L, -1)) return start_timer(L);
    status = status == LUA_OK ? (int)lua_tointeger(L, -1) : CT_ENOMEM;
    if (status == CT_EINVAL) return ct__lua_refuse_name(L, 1, lua_tostring(L, NAME));
    ct__lua_trace_refused(L, status, lua_tostring(L, NAME));
    lua_rawgetp(L, LUA_REGISTRYINDEX, &unmeasured_key);
    return 1;
}

void ct__lua_timer_open(lua_State *L) {
    static const luaL_Reg functions[] = {
        {"__index", timer_index}, {"__close", timer_close}, {"__gc", timer_gc}, {NULL, NULL}};
    ct__lua_new_type(L, TIMER_TYPE, functions);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &unmeasured_key) == LUA_TNIL) {
        timer *t = lua_newuserdatauv(L, sizeof *t, 1);
        *t = (timer){0};
        luaL_setmetatable(L, TIMER_TYPE);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &unmeasured_key);
    }
    lua_pop(L, 1);
}
