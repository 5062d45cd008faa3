/* SPDX-License-Identifier: MIT
 *
 * sample.c: codetimer.Sample, the values of a counter at one moment. A Sample holds the C struct; its fields are made
 * when they are asked for. Minimum, maximum and average are absent while there is no call.
 *
 * Lua tells nobody when a coroutine waits, so how much of a call's time was spent on this thread is known only of calls
 * that could not yield. As soon as one of the calls could, active_ns is absent, and active_reason says why.
 */
#include "counters.h"

#include <math.h>
#include <string.h>

#define SAMPLE_TYPE "codetimer.Sample"

/* ---- fields ---- */

static void push_count(lua_State *L, uint64_t count) { lua_pushinteger(L, (lua_Integer)count); }

static void push_time_ns(lua_State *L, const ct_sample *s) { push_count(L, s->time_ns); }
static void push_generation(lua_State *L, const ct_sample *s) { push_count(L, s->generation); }
static void push_listed(lua_State *L, const ct_sample *s) { lua_pushboolean(L, s->listed); }
static void push_enabled(lua_State *L, const ct_sample *s) { lua_pushboolean(L, s->enabled); }
static void push_unclean(lua_State *L, const ct_sample *s) { lua_pushboolean(L, s->unclean); }
static void push_calls(lua_State *L, const ct_sample *s) { push_count(L, s->calls); }
static void push_total_ns(lua_State *L, const ct_sample *s) { push_count(L, s->total_ns); }
static void push_errors(lua_State *L, const ct_sample *s) { push_count(L, s->errors); }
static void push_cancelled(lua_State *L, const ct_sample *s) { push_count(L, s->cancelled); }
static void push_in_flight(lua_State *L, const ct_sample *s) { push_count(L, s->in_flight); }
static void push_active_unknown(lua_State *L, const ct_sample *s) { push_count(L, s->active_unknown); }
static void push_anomalies(lua_State *L, const ct_sample *s) { push_count(L, s->anomalies); }

static void push_active_ns(lua_State *L, const ct_sample *s) {
    if (s->active_unknown == 0)
        push_count(L, s->active_ns);
    else
        lua_pushnil(L);
}

static void push_active_reason(lua_State *L, const ct_sample *s) {
    if (s->active_unknown == 0)
        lua_pushnil(L);
    else
        lua_pushfstring(L, "%I of the calls could wait, and their language does not tell for how long they did",
                        (LUAI_UACINT)s->active_unknown);
}

static void push_extreme(lua_State *L, const ct_sample *s, uint64_t value) {
    if (s->calls > 0)
        push_count(L, value);
    else
        lua_pushnil(L);
}

static void push_min_ns(lua_State *L, const ct_sample *s) { push_extreme(L, s, s->min_ns); }
static void push_max_ns(lua_State *L, const ct_sample *s) { push_extreme(L, s, s->max_ns); }

static void push_mean(lua_State *L, const ct_sample *s, int (*mean)(const ct_sample *sample, double *mean_ns)) {
    double mean_ns;
    if (mean(s, &mean_ns) == CT_OK)
        lua_pushnumber(L, mean_ns);
    else
        lua_pushnil(L);
}

static void push_average_ns(lua_State *L, const ct_sample *s) { push_mean(L, s, ct_sample_average_ns); }
static void push_active_average_ns(lua_State *L, const ct_sample *s) { push_mean(L, s, ct_sample_active_average_ns); }

static void push_buckets(lua_State *L, const ct_sample *s) {
    lua_createtable(L, CT_BUCKETS, 0);
    for (int i = 0; i < CT_BUCKETS; i++) {
        push_count(L, s->buckets[i]);
        lua_rawseti(L, -2, i + 1);
    }
}

static const struct {
    const char *name;
    void (*push)(lua_State *L, const ct_sample *s);
} fields[] = {
    {"time_ns", push_time_ns},
    {"generation", push_generation},
    {"listed", push_listed},
    {"enabled", push_enabled},
    {"unclean", push_unclean},
    {"calls", push_calls},
    {"total_ns", push_total_ns},
    {"active_ns", push_active_ns},
    {"active_unknown", push_active_unknown},
    {"active_reason", push_active_reason},
    {"average_ns", push_average_ns},
    {"active_average_ns", push_active_average_ns},
    {"errors", push_errors},
    {"cancelled", push_cancelled},
    {"min_ns", push_min_ns},
    {"max_ns", push_max_ns},
    {"in_flight", push_in_flight},
    {"anomalies", push_anomalies},
    {"buckets", push_buckets},
};

enum { FIELDS = sizeof fields / sizeof fields[0] };

int ct__lua_push_sample_field(lua_State *L, const ct_sample *sample, const char *name) {
    for (int i = 0; i < FIELDS; i++) {
        if (strcmp(name, fields[i].name) != 0) continue;
        fields[i].push(L, sample);
        return 1;
    }
    return 0;
}

int ct__lua_push_percentile(lua_State *L, const ct_sample *sample, int arg) {
    double percentile_ns, percent = lua_type(L, arg) == LUA_TNUMBER ? lua_tonumber(L, arg) : NAN;
    int status = ct_sample_percentile_ns(sample, percent, &percentile_ns);
    if (status == CT_EINVAL)
        luaL_argerror(L, arg,
                      lua_pushfstring(L, "a percentile is a number from 0 to 100, got %s", ct__lua_describe(L, arg)));
    if (status != CT_OK) return 0;
    lua_pushnumber(L, percentile_ns);
    return 1;
}

/* ---- the userdata ---- */

/* The user value of a sample is its key. Takes the key from the top of the stack. */
static ct_sample *new_sample(lua_State *L) {
    ct_sample *sample = lua_newuserdatauv(L, sizeof *sample, 1);
    luaL_setmetatable(L, SAMPLE_TYPE);
    lua_insert(L, -2);
    lua_setiuservalue(L, -2, 1);
    return sample;
}

void ct__lua_push_sample(lua_State *L, const ct_counter *handle) {
    ct__lua_push_key(L, handle);
    ct_counter_sample(handle, new_sample(L));
}

static int sample_percentile(lua_State *L) { return ct__lua_push_percentile(L, luaL_checkudata(L, 1, SAMPLE_TYPE), 2); }

/* now:difference(before), now - before */
static int sample_difference(lua_State *L) {
    const ct_sample *now = luaL_checkudata(L, 1, SAMPLE_TYPE), *before = luaL_checkudata(L, 2, SAMPLE_TYPE);
    lua_settop(L, 2);
    lua_getiuservalue(L, 2, 1);
    lua_getiuservalue(L, 1, 1);
    if (!lua_rawequal(L, -1, -2))
        luaL_argerror(L, 2,
                      lua_pushfstring(L, "a sample of the same counter is needed, got one of %s", lua_tostring(L, -2)));
    if (before->time_ns > now->time_ns) luaL_argerror(L, 2, "an earlier sample is needed, got a later one");
    int status = ct_sample_difference(now, before, new_sample(L));
    return status == CT_OK ? 1 : ct__lua_fail(L, status);
}

static int sample_index(lua_State *L) {
    const ct_sample *sample = luaL_checkudata(L, 1, SAMPLE_TYPE);
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : "";
    lua_getiuservalue(L, 1, 1);
    if (strcmp(name, "percentile") == 0)
        lua_pushcfunction(L, sample_percentile);
    else if (strcmp(name, "difference") == 0)
        lua_pushcfunction(L, sample_difference);
    else if (!ct__lua_push_key_field(L, lua_gettop(L), name))
        return ct__lua_push_sample_field(L, sample, name);
    return 1;
}

ct_sample *ct__lua_new_sample(lua_State *L) {
    int key = lua_gettop(L);
    ct_sample *sample = new_sample(L);
    lua_copy(L, -1, key);
    lua_settop(L, key);
    return sample;
}

void ct__lua_sample_open(lua_State *L) {
    static const luaL_Reg functions[] = {{"__index", sample_index}, {"__sub", sample_difference}, {NULL, NULL}};
    ct__lua_new_type(L, SAMPLE_TYPE, functions);
}
