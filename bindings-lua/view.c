/* SPDX-License-Identifier: MIT
 *
 * view.c: codetimer.View: the counters of another process, read and switched from outside.
 *
 * What is read from two segments of a process is joined by key: one counter for each key, whose values are the sum.
 *
 * Invariant: wherever Lua may allocate, a finalizer may run and close this very view. So a ct_view, or a text that it
 * lends, is not used behind the first allocation that follows, and every loop asks anew whether the view still has that
 * segment.
 */
#include "live.h"

#include <string.h>

#define VIEW_TYPE "codetimer.View"

/* ---- the userdata ---- */

void ct__lua_close_views(ct__lua_views *views) {
    while (views->count > 0) ct_view_close(views->views[--views->count]);
}

ct__lua_views *ct__lua_new_view(lua_State *L) {
    ct__lua_views *views = lua_newuserdatauv(L, sizeof *views, 1);
    views->count = 0;
    luaL_setmetatable(L, VIEW_TYPE);
    return views;
}

static ct__lua_views *check_view(lua_State *L) {
    ct__lua_views *views = luaL_checkudata(L, 1, VIEW_TYPE);
    if (views->count == 0) luaL_argerror(L, 1, "the view is closed");
    return views;
}

static int view_close(lua_State *L) {
    ct__lua_close_views(luaL_checkudata(L, 1, VIEW_TYPE));
    return 0;
}

/* ---- counters ---- */

/* Where a counter is found. */
typedef struct place {
    ct__lua_views *views;
    int segment;
    uint32_t index;
} place;

static ct_view *view_of(const place *at) {
    return at->segment < at->views->count ? at->views->views[at->segment] : NULL;
}

static int read_counter(const place *at, ct_view_counter *counter) {
    ct_view *view = view_of(at);
    return view != NULL && ct_view_counter_at(view, at->index, counter) == CT_OK && counter->listed;
}

/* What is done with each counter. Adds to the table at the top of the stack, and leaves it there. */
typedef void (*visitor)(lua_State *L, const place *at, const void *with);

static void visit_all(lua_State *L, ct__lua_views *views, visitor visit, const void *with) {
    place at = {.views = views};
    for (; view_of(&at) != NULL; at.segment++) {
        ct_view_refresh(view_of(&at), NULL); /* where its file is gone, its last values stay readable */
        for (at.index = 0; view_of(&at) != NULL && at.index < ct_view_end(view_of(&at)); at.index++)
            visit(L, &at, with);
    }
}

/* Pushes the table of the counter whose key is on top of the stack, and makes it if it is not there yet. */
static void push_info(lua_State *L) {
    lua_pushvalue(L, -1);
    if (lua_rawget(L, -3) == LUA_TTABLE) return;
    lua_pop(L, 1);
    lua_createtable(L, 0, 3);
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "key");
    ct__lua_set_boolean(L, "enabled", 0);
    lua_pushvalue(L, -2);
    lua_pushvalue(L, -2);
    lua_rawset(L, -5);
}

/* Enabled is what is so in one of two segments, as in their sum; the help is that of the first that has one. */
static void add_info(lua_State *L, const place *at, const void *with) {
    (void)with;
    ct_view_counter counter;
    if (!read_counter(at, &counter)) return;
    int enabled = counter.enabled;
    lua_pushlstring(L, counter.key, counter.key_length);
    push_info(L);
    if (enabled) ct__lua_set_boolean(L, "enabled", 1);
    if (lua_getfield(L, -1, "help") == LUA_TNIL && read_counter(at, &counter) && counter.help_length > 0) {
        lua_pushlstring(L, counter.help, counter.help_length);
        lua_setfield(L, -3, "help");
    }
    lua_pop(L, 3);
}

static void push_counters(lua_State *L, ct__lua_views *views) {
    lua_newtable(L);
    visit_all(L, views, add_info, NULL);
}

/* ---- samples ---- */

typedef struct sampling {
    int buckets;
    int busy; /* where the table of the busy keys is */
} sampling;

/* The key is on top of the stack, the table of samples below it; the key is popped. */
static void add_to_samples(lua_State *L, const ct_sample *sample) {
    lua_pushvalue(L, -1);
    if (lua_rawget(L, -3) == LUA_TUSERDATA) {
        ct_sample_add(lua_touserdata(L, -1), sample);
        lua_pop(L, 2);
        return;
    }
    lua_pop(L, 1);
    lua_pushvalue(L, -1);
    *ct__lua_new_sample(L) = *sample;
    lua_rawset(L, -3);
}

static void add_sample(lua_State *L, const place *at, const void *with) {
    const sampling *how = with;
    ct_view_counter counter;
    ct_sample sample = {0};
    int status = ct_view_sample(view_of(at), at->index, how->buckets, &sample);
    if (status < 0 || !read_counter(at, &counter)) return;
    lua_pushlstring(L, counter.key, counter.key_length);
    if (status == CT_EXISTS) {
        lua_pushvalue(L, -1);
        lua_pushboolean(L, 1);
        lua_rawset(L, how->busy);
    }
    add_to_samples(L, &sample);
}

/* view:sample([buckets]) */
static int view_sample(lua_State *L) {
    enum { BUCKETS = 2, BUSY };
    ct__lua_views *views = check_view(L);
    lua_settop(L, BUCKETS);
    sampling how = {.buckets = lua_isnil(L, BUCKETS) || lua_toboolean(L, BUCKETS), .busy = BUSY};
    lua_newtable(L);
    lua_newtable(L);
    visit_all(L, views, add_sample, &how);
    lua_pushvalue(L, BUSY);
    lua_setiuservalue(L, 1, 1);
    return 1;
}

/* ---- processes ---- */

static void push_process(lua_State *L, ct_view *view) {
    ct_process process;
    ct_view_refresh(view, &process); /* what is wrong is in the struct too */
    ct__lua_push_process(L, &process);
}

static void push_segments(lua_State *L, ct__lua_views *views) {
    lua_newtable(L);
    for (int i = 0; i < views->count; i++) {
        push_process(L, views->views[i]);
        lua_rawseti(L, -2, i + 1);
    }
}

/* ---- members ---- */

static int read_first(void *from, char *buffer, size_t size, size_t *length) {
    ct__lua_views *views = from;
    return views->count > 0 ? ct_view_members(views->views[0], buffer, size, length) : CT_ENOENT;
}

static void push_members(lua_State *L, ct__lua_views *views) {
    ct_view_refresh(views->views[0], NULL);
    int status = ct__lua_push_members(L, read_first, views);
    if (status == CT_ENOENT) lua_pushnil(L);
    if (status != CT_OK && status != CT_ENOENT)
        luaL_error(L, "the members list cannot be read: %s", ct_status_text(status));
}

static int is_acknowledged(ct__lua_views *views) {
    int acknowledged = 1;
    for (int i = 0; i < views->count; i++) acknowledged &= ct_view_acknowledged(views->views[i]);
    return acknowledged;
}

enum { SET, ENABLE, DISABLE };

static int control(ct_view *view, int how, const char *text, size_t length) {
    return how == SET ? ct_view_set_members(view, text, length) : ct_view_switch(view, text, length, how == ENABLE);
}

static int refuse_control(lua_State *L, int status, ct_view *view) {
    ct_process process;
    ct_view_refresh(view, &process);
    const char *message = status == CT_ENOENT  ? "the process has ended: its counters cannot be switched"
                          : status == CT_EPERM ? "only the same user, or root, can switch its counters"
                          : status == CT_EINVAL
                              ? "its list would be longer than 65,536 bytes, or the segment is damaged"
                              : ct_status_text(status);
    return ct__lua_refuse(L, status, process.path, message);
}

/* All segments are switched, also when one of them refuses; the first refusal is told. */
static int control_all(lua_State *L, int how) {
    size_t length;
    check_view(L);
    const char *text = ct__lua_check_members(L, 2, 2, how == SET, &length);
    if (how != SET && ct__lua_push_wrong(L, text, length))
        return ct__lua_refuse(L, CT_EINVAL, NULL, lua_tostring(L, -1));
    ct__lua_views *views = check_view(L); /* once more: see the invariant */
    ct_view *refusing = NULL;
    int refusal = CT_OK;
    for (int i = 0; i < views->count; i++) {
        int status = control(views->views[i], how, text, length);
        if (status == CT_OK || refusal != CT_OK) continue;
        refusal = status;
        refusing = views->views[i];
    }
    if (refusal != CT_OK) return refuse_control(L, refusal, refusing);
    if (how == SET && text != NULL) ct__lua_trace_problems(L, text, length);
    lua_pushboolean(L, 1);
    return 1;
}

static int view_enable(lua_State *L) { return control_all(L, ENABLE); }
static int view_disable(lua_State *L) { return control_all(L, DISABLE); }
static int view_set_members(lua_State *L) { return control_all(L, SET); }

/* ---- fields ---- */

static const luaL_Reg methods[] = {
    {"close", view_close},   {"disable", view_disable},         {"enable", view_enable},
    {"sample", view_sample}, {"set_members", view_set_members}, {NULL, NULL},
};

static int push_method(lua_State *L, const char *name) {
    for (const luaL_Reg *method = methods; method->name != NULL; method++) {
        if (strcmp(name, method->name) != 0) continue;
        lua_pushcfunction(L, method->func);
        return 1;
    }
    return 0;
}

static void push_busy(lua_State *L) {
    if (lua_getiuservalue(L, 1, 1) == LUA_TTABLE) return;
    lua_pop(L, 1);
    lua_newtable(L);
}

static int view_index(lua_State *L) {
    ct__lua_views *views = luaL_checkudata(L, 1, VIEW_TYPE);
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
    if (push_method(L, name)) return 1;
    if (strcmp(name, "closed") == 0) {
        lua_pushboolean(L, views->count == 0);
        return 1;
    }
    check_view(L);
    if (strcmp(name, "acknowledged") == 0)
        lua_pushboolean(L, is_acknowledged(views));
    else if (strcmp(name, "busy") == 0)
        push_busy(L);
    else if (strcmp(name, "counters") == 0)
        push_counters(L, views);
    else if (strcmp(name, "members") == 0)
        push_members(L, views);
    else if (strcmp(name, "process") == 0)
        push_process(L, views->views[0]);
    else if (strcmp(name, "segments") == 0)
        push_segments(L, views);
    else
        lua_pushnil(L);
    return 1;
}

static int view_tostring(lua_State *L) {
    ct__lua_views *views = luaL_checkudata(L, 1, VIEW_TYPE);
    ct_process process;
    if (views->count == 0) {
        lua_pushliteral(L, VIEW_TYPE " (closed)");
        return 1;
    }
    ct_view_refresh(views->views[0], &process);
    lua_pushfstring(L, VIEW_TYPE " of process %I: %I counters", (LUAI_UACINT)process.pid,
                    (LUAI_UACINT)process.counters);
    return 1;
}

void ct__lua_view_open(lua_State *L) {
    static const luaL_Reg functions[] = {{"__index", view_index},
                                         {"__tostring", view_tostring},
                                         {"__close", view_close},
                                         {"__gc", view_close},
                                         {NULL, NULL}};
    ct__lua_new_type(L, VIEW_TYPE, functions);
}
