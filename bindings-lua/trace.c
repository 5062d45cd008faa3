/* SPDX-License-Identifier: MIT
 *
 * trace.c: codetimer.trace and codetimer.trace_increments.
 *
 * Both are fields of the module table that lie behind its metatable: every module table of a state shares them, and
 * setting one takes effect at once. While increments are traced no counter is "plain", so measured calls take the slow
 * path; otherwise tracing costs them nothing.
 *
 * The trace function is called in protected mode, and what it makes us do is not traced: an error in it becomes a
 * warning, and it may itself call measured functions.
 */
#include "live.h"

#include <string.h>

static const char trace_key = 0; /* the function, or nil */

/* What is told; "handle" or "name", and "reason" or a duration, unless that is -1. */
typedef struct message {
    const char *event, *name, *reason;
    const ct_counter *handle;
    int64_t duration_ns;
} message;

/* ---- calling ---- */

/* call_trace(message), in protected mode */
static int call_trace(lua_State *L) {
    if (!lua_islightuserdata(L, 1)) return 0; /* a hook has got hold of this function */
    const message *told = lua_touserdata(L, 1);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &trace_key);
    int function = lua_gettop(L);
    lua_pushstring(L, told->event);
    if (told->handle != NULL)
        ct__lua_push_key(L, told->handle);
    else
        lua_pushstring(L, told->name);
    if (told->reason != NULL) lua_pushstring(L, told->reason);
    if (told->duration_ns >= 0) lua_pushinteger(L, told->duration_ns);
    lua_call(L, lua_gettop(L) - function, 0);
    return 0;
}

static void warn_error(lua_State *L) {
    const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : luaL_typename(L, -1);
    lua_warning(L, "codetimer: error in the trace function: ", 1);
    lua_warning(L, text, 0);
}

static void tell(lua_State *L, message *told) {
    ct__lua_counters *counters = ct__lua_find_counters(L);
    if (counters->tracing || !lua_checkstack(L, LUA_MINSTACK)) return;
    int there = lua_rawgetp(L, LUA_REGISTRYINDEX, &trace_key) != LUA_TNIL;
    lua_pop(L, 1);
    if (!there) return;
    lua_pushcfunction(L, call_trace);
    lua_pushlightuserdata(L, told);
    counters->tracing = 1;
    int status = lua_pcall(L, 1, 0, 0);
    counters->tracing = 0;
    if (status == LUA_OK) return;
    warn_error(L);
    lua_pop(L, 1);
}

void ct__lua_trace(lua_State *L, const char *event, const ct_counter *handle) {
    message told = {.event = event, .handle = handle, .duration_ns = -1};
    tell(L, &told);
}

void ct__lua_trace_opened(lua_State *L, int status, const ct_counter *handle) {
    ct__lua_trace_environment(L);
    ct__lua_trace(L, status == CT_OK ? "created" : "already there", handle);
}

void ct__lua_trace_increment(lua_State *L, const ct_counter *handle, int64_t duration_ns) {
    message told = {.event = "increment", .handle = handle, .duration_ns = duration_ns};
    tell(L, &told);
}

void ct__lua_trace_text(lua_State *L, const char *event, const char *name, const char *reason) {
    message told = {.event = event, .name = name, .reason = reason, .duration_ns = -1};
    tell(L, &told);
}

void ct__lua_trace_refused(lua_State *L, int status, const char *member) {
    ct__lua_trace_text(L, "refused", member, ct_status_text(status));
}

void ct__lua_trace_skipped(lua_State *L, const char *pattern, const char *reason) {
    ct__lua_trace_text(L, "skipped", pattern, reason);
}

/* ---- setting ---- */

static void set_function(lua_State *L, int value) {
    if (!lua_isnil(L, value) && !lua_isfunction(L, value) && luaL_getmetafield(L, value, "__call") == LUA_TNIL)
        luaL_error(L, "codetimer.trace must be a function or nil, got %s", ct__lua_describe(L, value));
    lua_pushvalue(L, value);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &trace_key);
}

static void set_increments(lua_State *L, int value) {
    ct__lua_counters *counters = ct__lua_find_counters(L);
    counters->increments = lua_toboolean(L, value);
    for (ct__lua_counter *at = counters->first; at != NULL; at = at->next) {
        at->plain = !counters->increments;
        at->until_look = 0;
    }
}

static const char *field_name(lua_State *L) { return lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : ""; }

/* __newindex(module, name, value): any other field is an ordinary one. */
static int set_field(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 3);
    const char *name = field_name(L);
    if (strcmp(name, "trace") == 0)
        set_function(L, 3);
    else if (strcmp(name, "trace_increments") == 0)
        set_increments(L, 3);
    else
        lua_rawset(L, 1);
    return 0;
}

static int get_field(lua_State *L) {
    const char *name = field_name(L);
    if (strcmp(name, "trace") == 0)
        lua_rawgetp(L, LUA_REGISTRYINDEX, &trace_key);
    else if (strcmp(name, "trace_increments") == 0)
        lua_pushboolean(L, ct__lua_find_counters(L)->increments);
    else
        return 0;
    return 1;
}

void ct__lua_trace_open(lua_State *L) {
    static const luaL_Reg functions[] = {{"__index", get_field}, {"__newindex", set_field}, {NULL, NULL}};
    ct__lua_new_type(L, "codetimer.Module", functions);
    luaL_setmetatable(L, "codetimer.Module");
}
