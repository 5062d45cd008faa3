/* SPDX-License-Identifier: MIT
 *
 * following.c: what is asked and told when a state is awake: the provider of the members list, the callbacks that want
 * to know of changes, and the trace function.
 *
 * Lua has no threads, so all of this runs within codetimer.poll() and, now and then, within a measured call; what
 * blocks there blocks the program. It runs in protected mode: what fails is told to the trace function, a provider once
 * for each message. What runs here is not begun again from within.
 */
#include "live.h"

#include <stdio.h>

static const char following_key = 0;

typedef struct following {
    int news;         /* the provider may have another list */
    int to_subscribe; /* it has not been asked to tell of that yet */
    int subscribed;   /* it does: otherwise it is asked each time */
    int asking, calling;
    uint64_t called; /* how often the list had changed when the callbacks were called last */
    uint64_t told_events, told_lists;
} following;

enum { PROVIDER = 1, PROBLEM, CALLBACKS, VALUES = CALLBACKS };

/* Pushes it. */
static following *push_following(lua_State *L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &following_key);
    return lua_touserdata(L, -1);
}

static following *find_following(lua_State *L) {
    following *f = push_following(L);
    lua_pop(L, 1);
    return f;
}

static void push_value(lua_State *L, int value) {
    push_following(L);
    lua_getiuservalue(L, -1, value);
    lua_remove(L, -2);
}

/* Takes it from the top of the stack. */
static void set_value(lua_State *L, int value) {
    push_following(L);
    lua_insert(L, -2);
    lua_setiuservalue(L, -2, value);
    lua_pop(L, 1);
}

/* Its message as a string, in place of an error value. */
static const char *make_message(lua_State *L) {
    if (lua_type(L, -1) == LUA_TSTRING) return lua_tostring(L, -1);
    lua_pushfstring(L, "(error object is %s)", ct__lua_describe(L, -1));
    lua_replace(L, -2);
    return lua_tostring(L, -1);
}

/* ---- the provider ---- */

static int has_method(lua_State *L, int index, const char *name) {
    int type = lua_getfield(L, index, name);
    int callable = type == LUA_TFUNCTION || luaL_getmetafield(L, -1, "__call") != LUA_TNIL;
    lua_settop(L, -2 - (callable && type != LUA_TFUNCTION));
    return callable;
}

void ct__lua_check_provider(lua_State *L, int index) {
    int object = lua_istable(L, index) || lua_isuserdata(L, index);
    if (!object || !has_method(L, index, "members"))
        luaL_argerror(L, 1,
                      lua_pushfstring(L,
                                      "provider must be an object with a method members(), which returns a members "
                                      "list (a string) or nil, got %s",
                                      ct__lua_describe(L, index)));
    int type = lua_getfield(L, index, "subscribe");
    lua_pop(L, 1);
    if (type != LUA_TNIL && !has_method(L, index, "subscribe"))
        luaL_argerror(L, 1, "subscribe of the provider must be a method, provider:subscribe(changed)");
}

void ct__lua_set_provider(lua_State *L, int index) {
    index = lua_absindex(L, index);
    following *f = find_following(L);
    f->to_subscribe = 0;
    if (!lua_isnil(L, index)) f->to_subscribe = lua_getfield(L, index, "subscribe") != LUA_TNIL;
    f->subscribed = 0;
    lua_settop(L, index);
    lua_pushvalue(L, index);
    set_value(L, PROVIDER);
    lua_pushnil(L);
    set_value(L, PROBLEM);
    ct__lua_renew_provider(L);
}

void ct__lua_push_provider(lua_State *L) { push_value(L, PROVIDER); }

void ct__lua_push_provider_problem(lua_State *L) {
    push_value(L, PROBLEM);
    if (!lua_isnil(L, -1)) {
        lua_pushfstring(L, "provider: %s", lua_tostring(L, -1));
        lua_remove(L, -2);
    }
}

void ct__lua_renew_provider(lua_State *L) {
    find_following(L)->news = 1;
    (void)ct_members_provide(NULL, 0);
}

/* What subscribe is given. */
static int note_change(lua_State *L) {
    find_following(L)->news = 1;
    return 0;
}

static void subscribe(lua_State *L, following *f) {
    f->to_subscribe = 0;
    lua_getfield(L, 1, "subscribe");
    lua_pushvalue(L, 1);
    lua_pushcfunction(L, note_change);
    lua_call(L, 2, 0);
    f->subscribed = 1;
}

/* ask(provider) */
static int ask(lua_State *L) {
    following *f = find_following(L);
    size_t length;
    if (f->to_subscribe) subscribe(L, f);
    lua_getfield(L, 1, "members");
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    if (lua_isnil(L, -1)) return 0;
    if (lua_type(L, -1) != LUA_TSTRING)
        return luaL_error(L, "members() returned %s, not a string or nil", ct__lua_describe(L, -1));
    const char *text = lua_tolstring(L, -1, &length);
    push_value(L, PROVIDER);
    if (!lua_rawequal(L, 1, -1)) return 0; /* it has set another one meanwhile */
    int status = ct_members_provide(text, length);
    if (status == CT_EINVAL)
        return luaL_error(L, "members must have at most %d bytes, got %I", CT__LUA_MEMBERS_MOST, (LUAI_UACINT)length);
    if (status < 0) return luaL_error(L, "%s", ct_status_text(status));
    if (status == CT_OK) ct__lua_trace_problems(L, text, length);
    return 0;
}

/* note_failure(message): told unless it is the one before. */
static int note_failure(lua_State *L) {
    const char *text = make_message(L);
    push_value(L, PROBLEM);
    int known = lua_rawequal(L, 1, -1);
    lua_settop(L, 1);
    lua_pushvalue(L, 1);
    set_value(L, PROBLEM);
    if (!known) ct__lua_trace_text(L, "failed", "provider", text);
    return 0;
}

static void note_success(lua_State *L) {
    push_value(L, PROBLEM);
    int failed = !lua_isnil(L, -1);
    lua_pop(L, 1);
    if (!failed) return;
    lua_pushnil(L);
    set_value(L, PROBLEM);
    ct__lua_trace_text(L, "usable", "provider", NULL);
}

void ct__lua_ask_provider(lua_State *L) {
    following *f = lua_checkstack(L, LUA_MINSTACK) ? find_following(L) : NULL;
    if (f == NULL || f->asking || (f->subscribed && !f->news)) return;
    int top = lua_gettop(L);
    lua_pushcfunction(L, ask);
    push_value(L, PROVIDER);
    if (!lua_isnil(L, -1)) {
        f->asking = 1;
        f->news = 0;
        int status = lua_pcall(L, 1, 0, 0);
        f->asking = 0;
        if (status == LUA_OK) note_success(L);
        if (status != LUA_OK) {
            lua_pushcfunction(L, note_failure);
            lua_insert(L, -2);
            (void)lua_pcall(L, 1, 0, 0); /* without memory it is told the next time */
        }
    }
    lua_settop(L, top);
}

/* ---- callbacks ---- */

void ct__lua_add_callback(lua_State *L, int index) {
    lua_pushvalue(L, index);
    push_value(L, CALLBACKS);
    lua_insert(L, -2);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pop(L, 1);
}

int ct__lua_remove_callback(lua_State *L, int index) {
    push_value(L, CALLBACKS);
    lua_Integer count = (lua_Integer)lua_rawlen(L, -1), at = 1;
    for (; at <= count; at++) {
        lua_rawgeti(L, -1, at);
        int same = lua_rawequal(L, index, -1);
        lua_pop(L, 1);
        if (same) break;
    }
    for (lua_Integer i = at; i <= count; i++) {
        lua_rawgeti(L, -1, i + 1);
        lua_rawseti(L, -2, i);
    }
    lua_pop(L, 1);
    return at <= count;
}

/* Pushes an array with the callbacks that there are now: they may add and remove some. */
static lua_Integer push_copy(lua_State *L) {
    push_value(L, CALLBACKS);
    lua_Integer count = (lua_Integer)lua_rawlen(L, -1);
    lua_createtable(L, (int)count, 0);
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(L, -2, i);
        lua_rawseti(L, -2, i);
    }
    lua_remove(L, -2);
    return count;
}

/* call_all(push_settings) */
static int call_all(lua_State *L) {
    void (*const *push_settings)(lua_State *) = lua_touserdata(L, 1);
    lua_Integer count = push_copy(L);
    (*push_settings)(L);
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(L, 2, i);
        lua_pushvalue(L, 3);
        if (lua_pcall(L, 1, 0, 0) != LUA_OK) ct__lua_trace_text(L, "failed", "on_change", make_message(L));
        lua_settop(L, 3);
    }
    return 0;
}

void ct__lua_call_callbacks(lua_State *L, uint64_t changes, void (*push_settings)(lua_State *L)) {
    following *f = lua_checkstack(L, LUA_MINSTACK) ? find_following(L) : NULL;
    if (f == NULL || f->calling || f->called == changes) return;
    f->called = changes;
    f->calling = 1;
    lua_pushcfunction(L, call_all);
    lua_pushlightuserdata(L, &push_settings);
    if (lua_pcall(L, 1, 0, 0) != LUA_OK) lua_pop(L, 1); /* no memory for it */
    f->calling = 0;
}

/* ---- what is told ---- */

/* Pushes the text of the list in force, or nil. */
static const char *push_text(lua_State *L, size_t *length) {
    char *text = lua_newuserdatauv(L, CT__LUA_MEMBERS_MOST + 1, 0);
    return ct_members_get(text, CT__LUA_MEMBERS_MOST + 1, length) == CT_OK ? text : NULL;
}

/* In protected mode, as it allocates. A function may still be to come; but that is worth a line. */
static int trace_unmatched(lua_State *L) {
    size_t length = 0;
    const char *text = push_text(L, &length);
    const ct_members *members = ct__lua_push_list(L, text, length);
    for (size_t i = 0; members != NULL && i < ct_members_count(members); i++) {
        const ct_members_pattern *pattern = ct_members_at(members, i);
        if (pattern->problem != NULL || ct_members_pattern_hits(pattern) > 0) continue;
        lua_pushlstring(L, pattern->text, pattern->length);
        ct__lua_trace_text(L, "unmatched", lua_tostring(L, -1), NULL);
        lua_pop(L, 1);
    }
    return 0;
}

static int trace_problems(lua_State *L) {
    size_t length = 0;
    const char *text = push_text(L, &length);
    if (text != NULL) ct__lua_trace_problems(L, text, length);
    return 0;
}

/* Where there is no memory for it, it is not told. */
static void run(lua_State *L, lua_CFunction function) {
    lua_pushcfunction(L, function);
    if (lua_pcall(L, 0, 0, 0) != LUA_OK) lua_pop(L, 1);
}

void ct__lua_tell_change(lua_State *L) {
    char source[4200];
    if (ct_members_source(source, sizeof source) == CT_FROM_NOBODY || !lua_checkstack(L, LUA_MINSTACK)) return;
    ct__lua_trace_text(L, "list", source, NULL);
    run(L, trace_unmatched);
}

void ct__lua_tell_file(lua_State *L) {
    ct_config config;
    char name[4200];
    following *f = lua_checkstack(L, LUA_MINSTACK) ? find_following(L) : NULL;
    ct_config_info(&config);
    if (f == NULL || config.events == f->told_events) return;
    int is_new = config.lists != f->told_lists;
    f->told_events = config.events;
    f->told_lists = config.lists;
    snprintf(name, sizeof name, "file %s", config.path);
    if (config.reason[0] != '\0') ct__lua_trace_text(L, "unusable", name, config.reason);
    if (config.state != CT_CONFIG_READ) return;
    if (is_new)
        run(L, trace_problems);
    else
        ct__lua_trace_text(L, "usable", name, NULL);
}

void ct__lua_following_open(lua_State *L) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &following_key) == LUA_TNIL) {
        following *f = lua_newuserdatauv(L, sizeof *f, VALUES);
        *f = (following){.called = 0};
        lua_newtable(L);
        lua_setiuservalue(L, -2, CALLBACKS);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &following_key);
    }
    lua_pop(L, 1);
}
