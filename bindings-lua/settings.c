/* SPDX-License-Identifier: MIT
 *
 * settings.c: configure, poll and codetimer.Settings: the members list of this process.
 *
 * There is one such list, and it lies in the core; a Settings is a way to look at it, and reads each field when it is
 * asked for.
 */
#include "instrument.h"

#include <stdlib.h>
#include <string.h>

#define SETTINGS_TYPE "codetimer.Settings"

static const char told_key = 0; /* true: what is skipped of CODETIMER_MEASURE has been told */

/* ---- texts ---- */

const char *ct__lua_check_members(lua_State *L, int arg, int index, int none, size_t *length) {
    *length = 0;
    if (none && lua_isnoneornil(L, index)) return NULL;
    if (lua_type(L, index) != LUA_TSTRING)
        luaL_argerror(L, arg,
                      lua_pushfstring(L, "members must be a string%s, got %s", none ? " or nil" : "",
                                      ct__lua_describe(L, index)));
    const char *text = lua_tolstring(L, index, length);
    if (*length > CT__LUA_MEMBERS_MOST)
        luaL_argerror(L, arg,
                      lua_pushfstring(L, "members must have at most %d bytes, got %I", CT__LUA_MEMBERS_MOST,
                                      (LUAI_UACINT)*length));
    return text;
}

/* The list can grow in between. */
int ct__lua_push_members(lua_State *L, ct__lua_members_reader read, void *from) {
    for (size_t size = 1024, length;; size = length + 1) {
        char *buffer = lua_newuserdatauv(L, size, 0);
        int status = read(from, buffer, size, &length);
        if (status == CT_OK && length < size) lua_pushlstring(L, buffer, length);
        lua_remove(L, status == CT_OK && length < size ? -2 : -1);
        if (status != CT_OK || length < size) return status;
    }
}

/* ---- the fields ---- */

static int read_own(void *from, char *buffer, size_t size, size_t *length) {
    (void)from;
    return ct_members_get(buffer, size, length);
}

static void push_members(lua_State *L) {
    if (ct__lua_push_members(L, read_own, NULL) != CT_OK) lua_pushnil(L);
}

static void push_source(lua_State *L) {
    char source[4200];
    if (ct_members_source(source, sizeof source) == CT_FROM_NOBODY)
        lua_pushnil(L);
    else
        lua_pushstring(L, source);
}

static void push_file(lua_State *L) {
    ct_config config;
    ct_config_info(&config);
    if (config.path[0] != '\0')
        lua_pushstring(L, config.path);
    else
        lua_pushnil(L);
}

static void push_problem(lua_State *L) {
    ct_config config;
    ct_config_info(&config);
    if (config.reason[0] != '\0')
        lua_pushfstring(L, "file %s: %s", config.path, config.reason);
    else
        ct__lua_push_provider_problem(L);
}

static void push_match(lua_State *L, const ct_members_pattern *pattern) {
    lua_createtable(L, 0, 3);
    lua_pushlstring(L, pattern->text, pattern->length);
    lua_setfield(L, -2, "pattern");
    ct__lua_set_integer(L, "hits", pattern->problem == NULL ? ct_members_pattern_hits(pattern) : 0);
    ct__lua_set_text(L, "problem", pattern->problem);
}

static void free_members(void *members) { ct_members_free(members); }

ct_members *ct__lua_push_list(lua_State *L, const char *text, size_t length) {
    ct_members *members = NULL;
    ct__lua_box *box = ct__lua_new_box(L, free_members);
    if (text != NULL && ct_members_parse(text, length, &members) == CT_OK) box->content = members;
    return box->content;
}

/* The first pattern from *at on that is wrong, with *at behind it; NULL where there is none any more, or no list. */
static const ct_members_pattern *next_wrong(const ct_members *members, size_t *at) {
    while (members != NULL && *at < ct_members_count(members)) {
        const ct_members_pattern *pattern = ct_members_at(members, (*at)++);
        if (pattern->problem != NULL) return pattern;
    }
    return NULL;
}

int ct__lua_push_wrong(lua_State *L, const char *text, size_t length) {
    size_t at = 0;
    const ct_members_pattern *pattern = next_wrong(ct__lua_push_list(L, text, length), &at);
    if (pattern == NULL) {
        lua_pop(L, 1);
        return 0;
    }
    lua_pushlstring(L, pattern->text, pattern->length);
    lua_pushfstring(L, "the pattern '%s' at byte %I is wrong: %s", lua_tostring(L, -1), (LUAI_UACINT)pattern->position,
                    pattern->problem);
    return 1;
}

static void push_matches(lua_State *L) {
    size_t length = 0;
    lua_newtable(L);
    push_members(L);
    const char *text = lua_tolstring(L, -1, &length);
    const ct_members *members = ct__lua_push_list(L, text, length);
    for (size_t i = 0; members != NULL && i < ct_members_count(members); i++) {
        push_match(L, ct_members_at(members, i));
        lua_rawseti(L, -4, (lua_Integer)i + 1);
    }
    lua_pop(L, 2);
}

/* Returns 0 if there is no such field. */
static int push_field(lua_State *L, const char *name) {
    static const struct {
        const char *name;
        void (*push)(lua_State *L);
    } fields[] = {{"members", push_members},           {"source", push_source},
                  {"matches", push_matches},           {"file", push_file},
                  {"provider", ct__lua_push_provider}, {"problem", push_problem}};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (strcmp(name, fields[i].name) != 0) continue;
        fields[i].push(L);
        return 1;
    }
    return 0;
}

static int settings_index(lua_State *L) {
    luaL_checkudata(L, 1, SETTINGS_TYPE);
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
    if (push_field(L, name)) return 1;
    lua_getmetatable(L, 1);
    lua_pushvalue(L, 2);
    lua_rawget(L, -2); /* a method */
    return 1;
}

static int settings_tostring(lua_State *L) {
    luaL_checkudata(L, 1, SETTINGS_TYPE);
    lua_pushliteral(L, SETTINGS_TYPE ": ");
    push_members(L);
    push_source(L);
    if (lua_isnil(L, -2))
        lua_pushliteral(L, "no members list, all is measured");
    else
        lua_pushfstring(L, "members \"%s\" from %s", lua_tostring(L, -2), lua_tostring(L, -1));
    lua_replace(L, -3);
    lua_pop(L, 1);
    lua_concat(L, 2);
    return 1;
}

/* ---- configure and poll ---- */

/* A pattern that is wrong is skipped, which nobody would notice without a line in the trace. */
void ct__lua_trace_problems(lua_State *L, const char *text, size_t length) {
    const ct_members *members = ct__lua_push_list(L, text, length);
    const ct_members_pattern *pattern;
    for (size_t at = 0; (pattern = next_wrong(members, &at)) != NULL;) {
        lua_pushlstring(L, pattern->text, pattern->length);
        lua_pushfstring(L, "at byte %I: %s", (LUAI_UACINT)pattern->position, pattern->problem);
        ct__lua_trace_skipped(L, lua_tostring(L, -2), lua_tostring(L, -1));
        lua_pop(L, 2);
    }
    lua_pop(L, 1);
}

/* In protected mode; the core takes of a text that is too long the whole patterns at its beginning. */
static int trace_environment(lua_State *L) {
    const char *text = lua_touserdata(L, 1);
    size_t length = strlen(text);
    if (length > CT__LUA_MEMBERS_MOST) {
        for (length = CT__LUA_MEMBERS_MOST; length > 0 && text[length] != ';' && text[length] != '\n';) length--;
        lua_pushfstring(L, "at most %d bytes are taken: all from byte %I on", CT__LUA_MEMBERS_MOST,
                        (LUAI_UACINT)length);
        ct__lua_trace_skipped(L, "CODETIMER_MEASURE", lua_tostring(L, -1));
    }
    ct__lua_trace_problems(L, text, length);
    return 0;
}

void ct__lua_trace_environment(lua_State *L) {
    char *text = getenv("CODETIMER_MEASURE");
    if (text == NULL || *text == '\0' || !lua_checkstack(L, LUA_MINSTACK)) return;
    int told = lua_rawgetp(L, LUA_REGISTRYINDEX, &told_key) == LUA_TBOOLEAN;
    lua_pop(L, 1);
    if (told) return;
    lua_pushboolean(L, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &told_key); /* its place was made by ct__lua_settings_open */
    lua_pushcfunction(L, trace_environment);
    lua_pushlightuserdata(L, text);
    if (lua_pcall(L, 1, 0, 0) != LUA_OK) lua_pop(L, 1); /* no memory to tell it */
}

static int set_members(lua_State *L, const char *text, size_t length) {
    int status = ct_members_set(text, length);
    if (status != CT_OK) return status;
    ct__lua_trace_problems(L, text, length);
    return CT_OK;
}

/* nil, or a path; "" is none. */
static const char *check_file(lua_State *L, int arg, int index) {
    size_t length;
    if (lua_isnil(L, index)) return NULL;
    if (lua_type(L, index) != LUA_TSTRING)
        luaL_argerror(L, arg, lua_pushfstring(L, "file must be a path (a string), got %s", ct__lua_describe(L, index)));
    const char *path = lua_tolstring(L, index, &length);
    if (strlen(path) != length) luaL_argerror(L, arg, "file must not contain a NUL byte");
    return path;
}

static int set_file(lua_State *L, const char *path) {
    int status = ct_config_file(path);
    if (status == CT_OK) return 0;
    return ct__lua_refuse(L, status, path, status == CT_EINVAL ? "the path is too long" : ct_status_text(status));
}

static void push_settings(lua_State *L) {
    lua_newuserdatauv(L, 0, 0);
    luaL_setmetatable(L, SETTINGS_TYPE);
}

enum { OPTIONS = 1, MEMBERS, FILE_PATH, PROVIDER };

/* All options are looked at before anything is done. Returns how many values of a refusal it has pushed. */
static int set_all(lua_State *L) {
    size_t length;
    lua_getfield(L, OPTIONS, "members");
    lua_getfield(L, OPTIONS, "file");
    lua_getfield(L, OPTIONS, "provider");
    const char *text = ct__lua_check_members(L, 1, MEMBERS, 1, &length), *path = check_file(L, 1, FILE_PATH);
    if (!lua_isnil(L, PROVIDER)) ct__lua_check_provider(L, PROVIDER);
    int status = text != NULL ? set_members(L, text, length) : CT_OK;
    if (status != CT_OK) return ct__lua_fail(L, status);
    int refused = path != NULL ? set_file(L, path) : 0;
    if (refused > 0) return refused;
    if (!lua_isnil(L, PROVIDER)) ct__lua_set_provider(L, PROVIDER);
    ct__lua_poll_now(L, ct__lua_find_counters(L));
    return 0;
}

/* configure{members=, file=, provider=} */
int ct__lua_configure(lua_State *L) {
    static const char *const names[] = {"members", "file", "provider", NULL};
    lua_settop(L, 1);
    int refused = ct__lua_check_options(L, 1, names) ? set_all(L) : 0;
    if (refused > 0) return refused;
    push_settings(L);
    return 1;
}

/* ---- methods ---- */

/* settings.file = path or nil, settings.provider = provider or nil */
static int settings_newindex(lua_State *L) {
    luaL_checkudata(L, 1, SETTINGS_TYPE);
    if (ct__lua_is(L, 2, "file")) {
        const char *path = check_file(L, 3, 3);
        if (set_file(L, path != NULL ? path : "") > 0) return luaL_error(L, "%s", lua_tostring(L, -2));
    } else if (ct__lua_is(L, 2, "provider")) {
        if (!lua_isnil(L, 3)) ct__lua_check_provider(L, 3);
        ct__lua_set_provider(L, 3);
    } else {
        return luaL_error(L, "of codetimer.Settings only file and provider can be set, not %s", ct__lua_describe(L, 2));
    }
    ct__lua_poll_now(L, ct__lua_find_counters(L));
    return 0;
}

/* settings:on_change(fn) returns fn. What has changed before is none of its business. */
static int settings_on_change(lua_State *L) {
    luaL_checkudata(L, 1, SETTINGS_TYPE);
    lua_settop(L, 2);
    ct__lua_check_callable(L, 2, 2);
    ct__lua_poll_now(L, ct__lua_find_counters(L));
    ct__lua_add_callback(L, 2);
    return 1;
}

static int settings_remove_on_change(lua_State *L) {
    luaL_checkudata(L, 1, SETTINGS_TYPE);
    luaL_checkany(L, 2);
    lua_pushboolean(L, ct__lua_remove_callback(L, 2));
    return 1;
}

/* Both are asked again, and what they say is written even if they said it before. */
static int settings_reload(lua_State *L) {
    luaL_checkudata(L, 1, SETTINGS_TYPE);
    lua_settop(L, 1);
    push_file(L);
    ct__lua_push_provider(L);
    if (lua_isnil(L, 2) && lua_isnil(L, 3))
        return luaL_error(L, "there is nothing to reload: neither a file nor a provider is set; give one to configure, "
                             "as in configure{ provider = ... }");
    int refused = lua_isnil(L, 2) ? 0 : set_file(L, lua_tostring(L, 2));
    if (refused > 0) return refused;
    if (!lua_isnil(L, 3)) ct__lua_renew_provider(L);
    ct__lua_poll_now(L, ct__lua_find_counters(L));
    lua_pushboolean(L, 1);
    return 1;
}

/* ---- polling ---- */

uint64_t ct__lua_poll_now(lua_State *L, ct__lua_counters *counters) {
    ct__lua_ask_provider(L);
    uint64_t changes = ct_poll();
    int changed = changes != counters->changes;
    counters->changes = changes;
    ct__lua_tell_file(L);
    if (counters->modules > 0) ct__lua_follow(L, changed);
    if (changed) ct__lua_tell_change(L);
    ct__lua_call_callbacks(L, changes, push_settings);
    return changes;
}

int ct__lua_poll(lua_State *L) {
    lua_pushinteger(L, (lua_Integer)ct__lua_poll_now(L, ct__lua_find_counters(L)));
    return 1;
}

void ct__lua_settings_open(lua_State *L) {
    static const luaL_Reg functions[] = {{"__index", settings_index},
                                         {"__newindex", settings_newindex},
                                         {"__tostring", settings_tostring},
                                         {"on_change", settings_on_change},
                                         {"remove_on_change", settings_remove_on_change},
                                         {"reload", settings_reload},
                                         {NULL, NULL}};
    ct__lua_following_open(L);
    ct__lua_new_type(L, SETTINGS_TYPE, functions);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &told_key) == LUA_TNIL) {
        lua_pushinteger(L, 0);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &told_key);
    }
    lua_pop(L, 1);
}
