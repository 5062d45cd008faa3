/* SPDX-License-Identifier: MIT
 *
 * settings.c: configure, poll and codetimer.Settings: the members list of this process.
 *
 * There is one such list, and it lies in the core; a Settings is a way to look at it, and reads each field when it is
 * asked for. Who wrote the list is told from the core's count of changes: it is configure's as long as that count is
 * the one that configure left behind.
 */
#include "instrument.h"

#include <stdlib.h>
#include <string.h>

#define SETTINGS_TYPE "codetimer.Settings"

static const char configured_key = 0; /* the count that configure left behind, or nil */
static const char told_key = 0;       /* true: what is skipped of CODETIMER_MEASURE has been told */

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

static const char *find_source(lua_State *L) {
    uint64_t changes = ct_poll();
    lua_rawgetp(L, LUA_REGISTRYINDEX, &configured_key);
    uint64_t configured = (uint64_t)lua_tointeger(L, -1);
    lua_pop(L, 1);
    if (configured > 0 && configured == changes) return "configure";
    if (changes == 0) return NULL;
    const char *given = getenv("CODETIMER_MEASURE");
    return changes == 1 && configured == 0 && given != NULL && *given != '\0' ? "environment" : "controller";
}

static void push_match(lua_State *L, const ct_members_pattern *pattern) {
    lua_createtable(L, 0, 3);
    lua_pushlstring(L, pattern->text, pattern->length);
    lua_setfield(L, -2, "pattern");
    ct__lua_set_integer(L, "hits", pattern->problem == NULL ? ct_members_pattern_hits(pattern) : 0);
    ct__lua_set_text(L, "problem", pattern->problem);
}

static void free_members(void *members) { ct_members_free(members); }

static void push_matches(lua_State *L) {
    size_t length;
    ct_members *members;
    lua_newtable(L);
    push_members(L);
    ct__lua_box *box = ct__lua_new_box(L, free_members);
    const char *text = lua_tolstring(L, -2, &length);
    if (text != NULL && ct_members_parse(text, length, &members) == CT_OK) {
        box->content = members;
        for (size_t i = 0; i < ct_members_count(members); i++) {
            push_match(L, ct_members_at(members, i));
            lua_rawseti(L, -4, (lua_Integer)i + 1);
        }
    }
    ct__lua_empty_box(box);
    lua_pop(L, 2);
}

static int settings_index(lua_State *L) {
    luaL_checkudata(L, 1, SETTINGS_TYPE);
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
    if (strcmp(name, "members") == 0)
        push_members(L);
    else if (strcmp(name, "source") == 0)
        lua_pushstring(L, find_source(L));
    else if (strcmp(name, "matches") == 0)
        push_matches(L);
    else
        lua_pushnil(L);
    return 1;
}

static int settings_tostring(lua_State *L) {
    luaL_checkudata(L, 1, SETTINGS_TYPE);
    const char *source = find_source(L);
    lua_pushliteral(L, SETTINGS_TYPE ": ");
    push_members(L);
    if (lua_isnil(L, -1))
        lua_pushliteral(L, "no members list, all is measured");
    else
        lua_pushfstring(L, "members \"%s\" from %s", lua_tostring(L, -1), source != NULL ? source : "outside");
    lua_remove(L, -2);
    lua_concat(L, 2);
    return 1;
}

/* ---- configure and poll ---- */

/* A pattern that is wrong is skipped, which nobody would notice without a line in the trace. */
static void trace_problems(lua_State *L, const char *text, size_t length) {
    ct_members *members;
    ct__lua_box *box = ct__lua_new_box(L, free_members);
    if (ct_members_parse(text, length, &members) == CT_OK) box->content = members;
    for (size_t i = 0; box->content != NULL && i < ct_members_count(members); i++) {
        const ct_members_pattern *pattern = ct_members_at(members, i);
        if (pattern->problem == NULL) continue;
        lua_pushlstring(L, pattern->text, pattern->length);
        ct__lua_trace_skipped(L, lua_tostring(L, -1), pattern->problem);
        lua_pop(L, 1);
    }
    ct__lua_empty_box(box);
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
    trace_problems(L, text, length);
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
    lua_pushinteger(L, (lua_Integer)ct_poll());
    lua_rawsetp(L, LUA_REGISTRYINDEX, &configured_key);
    trace_problems(L, text, length);
    return CT_OK;
}

static void refuse_later_options(lua_State *L) {
    static const char *const later[] = {"file", "provider"};
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
        if (lua_getfield(L, 1, later[i]) != LUA_TNIL)
            luaL_argerror(
                L, 1,
                lua_pushfstring(L, "this version of codetimer takes members only; %s is not there yet", later[i]));
        lua_pop(L, 1);
    }
}

/* configure{members=} */
int ct__lua_configure(lua_State *L) {
    static const char *const names[] = {"members", "file", "provider", NULL};
    size_t length;
    lua_settop(L, 1);
    if (ct__lua_check_options(L, 1, names)) {
        refuse_later_options(L);
        lua_getfield(L, 1, "members");
        const char *text = ct__lua_check_members(L, 1, -1, 1, &length);
        int status = text != NULL ? set_members(L, text, length) : CT_OK;
        if (status != CT_OK) return ct__lua_fail(L, status);
    }
    lua_newuserdatauv(L, 0, 0);
    luaL_setmetatable(L, SETTINGS_TYPE);
    return 1;
}

uint64_t ct__lua_poll_now(lua_State *L, ct__lua_counters *counters) {
    uint64_t changes = ct_poll();
    int changed = changes != counters->changes;
    counters->changes = changes;
    if (counters->modules > 0) ct__lua_follow(L, changed);
    return changes;
}

int ct__lua_poll(lua_State *L) {
    lua_pushinteger(L, (lua_Integer)ct__lua_poll_now(L, ct__lua_find_counters(L)));
    return 1;
}

void ct__lua_settings_open(lua_State *L) {
    static const luaL_Reg functions[] = {{"__index", settings_index}, {"__tostring", settings_tostring}, {NULL, NULL}};
    ct__lua_new_type(L, SETTINGS_TYPE, functions);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &told_key) == LUA_TNIL) {
        lua_pushinteger(L, 0);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &told_key);
    }
    lua_pop(L, 1);
}
