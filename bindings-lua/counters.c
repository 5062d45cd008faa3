/* SPDX-License-Identifier: MIT
 *
 * counters.c: the writer of this state, the Counter as a userdata, and counters().
 *
 * A Counter is a handle. Its fields are read from the core when they are asked for, so it is always up to date; several
 * of them at one moment are what sample() is for.
 */
#include "counters.h"

#include <string.h>

#define COUNTER_TYPE  "codetimer.Counter"
#define COUNTERS_TYPE "codetimer.Counters"

static const char counters_key = 0;

ct__lua_counters *ct__lua_find_counters(lua_State *L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &counters_key);
    ct__lua_counters *counters = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return counters;
}

/* ---- handles ---- */

static void attach_handle(ct__lua_counter *counter, ct_counter *handle) {
    ct__lua_counters *owner = counter->owner;
    counter->handle = handle;
    counter->plain = !owner->increments;
    counter->next = owner->first;
    counter->link = &owner->first;
    if (owner->first != NULL) owner->first->link = &counter->next;
    owner->first = counter;
}

static void close_handle(ct__lua_counter *counter) {
    if (counter->handle == NULL) return;
    *counter->link = counter->next;
    if (counter->next != NULL) counter->next->link = counter->link;
    ct_counter_close(counter->handle);
    counter->handle = NULL;
    counter->plain = counter->until_look = 0;
}

ct__lua_counter *ct__lua_to_counter(lua_State *L, int index) {
    if (lua_rawlen(L, index) != sizeof(ct__lua_counter)) return NULL;
    ct__lua_counter *counter = lua_touserdata(L, index);
    return counter != NULL && counter->mark == &counters_key ? counter : NULL;
}

static int counter_gc(lua_State *L) {
    close_handle(luaL_checkudata(L, 1, COUNTER_TYPE));
    return 0;
}

/* Pushes a Counter that has no handle yet. */
static ct__lua_counter *new_counter(lua_State *L, ct__lua_counters *owner) {
    ct__lua_counter *counter = lua_newuserdatauv(L, sizeof *counter, 0);
    *counter = (ct__lua_counter){.mark = &counters_key, .owner = owner};
    luaL_setmetatable(L, COUNTER_TYPE);
    return counter;
}

/* ---- the writer ---- */

/* Pushes arg[i], or nil. Globals may have metamethods that refuse unknown names, hence raw access. */
static void push_argument(lua_State *L, lua_Integer i) {
    int top = lua_gettop(L);
    lua_pushglobaltable(L);
    lua_pushliteral(L, "arg");
    if (lua_rawget(L, -2) != LUA_TTABLE || lua_rawgeti(L, -1, i) != LUA_TSTRING) lua_pushnil(L);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
}

void ct__lua_push_program(lua_State *L) { push_argument(L, 0); }

/* Where arg[-1] is nil no script was started: arg[0] is the interpreter then. */
static int is_interpreter(lua_State *L, const char *stem) {
    push_argument(L, -1);
    int without_script = lua_isnil(L, -1);
    lua_pop(L, 1);
    return without_script && strncmp(stem, "lua", 3) == 0 && stem[3 + strspn(stem + 3, "0123456789.-")] == '\0';
}

/* Its script is the stem of arg[0]; "lua" where that is lua5.4 or another version of it, started without a script. */
static int open_writer(lua_State *L, ct__lua_counters *counters) {
    const char *script = NULL;
    if (counters->closed) return CT_ENOMEM;
    if (counters->writer != NULL) return CT_OK;
    int top = lua_gettop(L);
    ct__lua_push_program(L);
    if (!lua_isnil(L, -1)) {
        ct__lua_push_stem(L, lua_tostring(L, -1));
        script = lua_tostring(L, -1);
        if (is_interpreter(L, script)) script = "lua";
    }
    int status = ct_writer_open(script, &counters->writer);
    if (status == CT_EINVAL) status = ct_writer_open(NULL, &counters->writer);
    lua_settop(L, top);
    return status;
}

/* lua_close */
static int close_counters(lua_State *L) {
    ct__lua_counters *counters = ct__lua_find_counters(L);
    if (counters == NULL || lua_touserdata(L, 1) != counters) return 0; /* called by hand */
    counters->closed = 1;
    while (counters->first != NULL) close_handle(counters->first);
    ct_writer_close(counters->writer);
    counters->writer = NULL;
    return 0;
}

int ct__lua_open_counter(lua_State *L, const ct__lua_names *names) {
    ct__lua_counters *counters = ct__lua_find_counters(L);
    ct_counter *handle;
    int status = open_writer(L, counters);
    if (status != CT_OK) return status;
    ct__lua_counter *counter = new_counter(L, counters);
    status = ct_counter_open(counters->writer, names->category, names->member, names->help, &handle);
    if (status >= 0)
        attach_handle(counter, handle);
    else
        lua_pop(L, 1);
    return status;
}

/* Pushes the counter of a key; returns 0 if there is none. */
static int find_counter(lua_State *L, ct__lua_counters *counters, const char *key) {
    ct_counter *handle;
    ct__lua_counter *counter = new_counter(L, counters);
    int status = ct_counter_find(counters->writer, key, &handle);
    if (status == CT_OK)
        attach_handle(counter, handle);
    else
        lua_pop(L, 1);
    return status == CT_OK;
}

/* ---- the userdata ---- */

ct__lua_counter *ct__lua_check_counter(lua_State *L, int index) {
    ct__lua_counter *counter = luaL_checkudata(L, index, COUNTER_TYPE);
    if (counter->handle == NULL) luaL_argerror(L, index, "the counter is closed, as the Lua state is about to be");
    return counter;
}

void ct__lua_push_key(lua_State *L, const ct_counter *handle) {
    luaL_Buffer buffer;
    size_t length = ct_counter_key(handle, NULL, 0);
    char *text = luaL_buffinitsize(L, &buffer, length + 1);
    ct_counter_key(handle, text, length + 1);
    luaL_pushresultsize(&buffer, length);
}

static int counter_percentile(lua_State *L) {
    ct_sample sample;
    ct_counter_sample(ct__lua_check_counter(L, 1)->handle, &sample);
    return ct__lua_push_percentile(L, &sample, 2);
}

static int counter_sample(lua_State *L) {
    ct__lua_push_sample(L, ct__lua_check_counter(L, 1)->handle);
    return 1;
}

/* counter:record(duration_ns [, failed]) */
static int counter_record(lua_State *L) {
    ct__lua_counter *counter = ct__lua_check_counter(L, 1);
    lua_Integer duration_ns = ct__lua_check_count(L, 2, 2, "duration_ns", LUA_MAXINTEGER);
    int counts =
        ct_counter_record(counter->handle, (uint64_t)duration_ns, lua_toboolean(L, 3) ? CT_FAILED : CT_RETURNED);
    if (counts && !counter->plain) ct__lua_trace_increment(L, counter->handle, duration_ns);
    return 0;
}

static int return_status(lua_State *L, int status) {
    if (status != CT_OK) return ct__lua_fail(L, status);
    lua_pushboolean(L, 1);
    return 1;
}

static int counter_reset(lua_State *L) {
    return return_status(L, ct_counter_reset(ct__lua_check_counter(L, 1)->handle));
}

static int counter_remove(lua_State *L) {
    ct__lua_counter *counter = ct__lua_check_counter(L, 1);
    int status = ct_counter_remove(counter->handle);
    if (status == CT_OK) ct__lua_trace(L, "removed", counter->handle);
    return return_status(L, status);
}

static const luaL_Reg methods[] = {
    {"percentile", counter_percentile}, {"record", counter_record}, {"remove", counter_remove},
    {"reset", counter_reset},           {"sample", counter_sample}, {NULL, NULL},
};

int ct__lua_push_key_field(lua_State *L, int index, const char *name) {
    const char *key = lua_tostring(L, index), *slash = key != NULL ? strchr(key, '/') : NULL;
    if (slash == NULL) return 0; /* debug.setuservalue took the key of a Sample */
    if (strcmp(name, "key") == 0)
        lua_pushvalue(L, index);
    else if (strcmp(name, "category") == 0)
        lua_pushlstring(L, key, (size_t)(slash - key));
    else if (strcmp(name, "member") == 0)
        lua_pushstring(L, slash + 1);
    else
        return 0;
    return 1;
}

static int counter_index(lua_State *L) {
    ct__lua_counter *counter = ct__lua_check_counter(L, 1);
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
    for (const luaL_Reg *method = methods; method->name != NULL; method++) {
        if (strcmp(name, method->name) != 0) continue;
        lua_pushcfunction(L, method->func);
        return 1;
    }
    ct__lua_push_key(L, counter->handle);
    if (ct__lua_push_key_field(L, lua_gettop(L), name)) return 1;
    ct_sample sample;
    ct_counter_sample(counter->handle, &sample);
    return ct__lua_push_sample_field(L, &sample, name);
}

/* Two Counters of one key are the same counter. */
static int counter_eq(lua_State *L) {
    ct__lua_push_key(L, ct__lua_check_counter(L, 1)->handle);
    ct__lua_push_key(L, ct__lua_check_counter(L, 2)->handle);
    lua_pushboolean(L, lua_rawequal(L, -1, -2));
    return 1;
}

static int counter_tostring(lua_State *L) {
    ct__lua_counter *counter = luaL_checkudata(L, 1, COUNTER_TYPE);
    if (counter->handle == NULL) {
        lua_pushliteral(L, COUNTER_TYPE " (closed)");
        return 1;
    }
    ct_sample sample;
    ct_counter_sample(counter->handle, &sample);
    ct__lua_push_key(L, counter->handle);
    lua_pushfstring(L, COUNTER_TYPE " %s: %I calls, %I ns%s", lua_tostring(L, -1), (LUAI_UACINT)sample.calls,
                    (LUAI_UACINT)sample.total_ns,
                    !sample.listed    ? ", removed"
                    : !sample.enabled ? ", disabled"
                                      : "");
    return 1;
}

/* ---- counters([key]) ---- */

/* Pushes the key of the record; returns 0 if none is listed there. The key may grow or go away in between. */
static int push_listed_key(lua_State *L, uint32_t index) {
    char small[256];
    size_t length = ct_counters_key(index, small, sizeof small), size = sizeof small;
    if (length == 0) return 0;
    if (length < size) {
        lua_pushlstring(L, small, length);
        return 1;
    }
    while (length >= size) {
        size = length + 1;
        length = ct_counters_key(index, lua_newuserdatauv(L, size, 0), size);
        if (length >= size) lua_pop(L, 1);
    }
    if (length > 0) lua_pushlstring(L, lua_touserdata(L, -1), length);
    lua_remove(L, length > 0 ? -2 : -1);
    return length > 0;
}

static int is_member(const char *key, const char *member) { return strcmp(strchr(key, '/') + 1, member) == 0; }

/* Pushes all keys whose member this is, at most "most"; returns how many. */
static int push_keys_of(lua_State *L, const char *member, int most) {
    int found = 0;
    uint32_t end = ct_counters_end();
    for (uint32_t i = 0; i < end && found < most; i++) {
        if (!push_listed_key(L, i)) continue;
        if (is_member(lua_tostring(L, -1), member))
            found++;
        else
            lua_pop(L, 1);
    }
    return found;
}

static int refuse_ambiguous(lua_State *L, const char *member) {
    enum { SHOWN = 5 };
    luaL_Buffer list;
    int base = lua_gettop(L), found = push_keys_of(L, member, SHOWN);
    luaL_checkstack(L, 8, NULL);
    luaL_buffinit(L, &list);
    for (int i = 1; i <= found; i++) {
        luaL_addstring(&list, i == 1 ? "" : i == found ? " and " : ", ");
        luaL_addstring(&list, lua_tostring(L, base + i));
    }
    luaL_pushresult(&list);
    return luaL_error(L, "the member \"%s\" is in several categories: use one of the keys %s", member,
                      lua_tostring(L, -1));
}

/* Pushes the counter of a key, or of a member that only one category has; else nil. */
static int push_named(lua_State *L, ct__lua_counters *counters, int index) {
    size_t length;
    const char *name = lua_tolstring(L, index, &length);
    if (strlen(name) != length) return 0; /* no key has a NUL byte */
    if (find_counter(L, counters, name)) return 1;
    int found = push_keys_of(L, name, 2);
    if (found > 1) return refuse_ambiguous(L, name);
    if (found == 1 && find_counter(L, counters, lua_tostring(L, -1))) return 1;
    lua_pushnil(L);
    return 1;
}

/* __index(counters, name): what is no key in the table. */
static int index_counters(lua_State *L) {
    ct__lua_counters *counters = ct__lua_find_counters(L);
    if (lua_type(L, 2) != LUA_TSTRING || counters->writer == NULL) return 0;
    return push_named(L, counters, 2);
}

int ct__lua_counters_function(lua_State *L) {
    ct__lua_counters *counters = ct__lua_find_counters(L);
    int named = !lua_isnoneornil(L, 1);
    if (named && lua_type(L, 1) != LUA_TSTRING)
        luaL_argerror(L, 1, lua_pushfstring(L, "key must be a string, got %s", ct__lua_describe(L, 1)));
    int status = open_writer(L, counters);
    if (named) return status == CT_OK ? push_named(L, counters, 1) : 0;
    lua_newtable(L);
    luaL_setmetatable(L, COUNTERS_TYPE);
    uint32_t end = status == CT_OK ? ct_counters_end() : 0;
    for (uint32_t i = 0; i < end; i++) {
        if (!push_listed_key(L, i)) continue;
        if (find_counter(L, counters, lua_tostring(L, -1)))
            lua_rawset(L, -3);
        else
            lua_pop(L, 1);
    }
    return 1;
}

void ct__lua_counters_open(lua_State *L) {
    static const luaL_Reg closer[] = {{"__gc", close_counters}, {NULL, NULL}};
    static const luaL_Reg functions[] = {{"__index", counter_index},
                                         {"__eq", counter_eq},
                                         {"__tostring", counter_tostring},
                                         {"__gc", counter_gc},
                                         {NULL, NULL}};
    static const luaL_Reg table_functions[] = {{"__index", index_counters}, {NULL, NULL}};
    if (ct__lua_find_counters(L) != NULL) return;
    ct__lua_new_type(L, COUNTER_TYPE, functions);
    ct__lua_new_type(L, COUNTERS_TYPE, table_functions);
    ct__lua_counters *counters = lua_newuserdatauv(L, sizeof *counters, 0);
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    *counters = (ct__lua_counters){.main_thread = lua_tothread(L, -1)};
    lua_pop(L, 1);
    luaL_newlib(L, closer);
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &counters_key);
}
