/* SPDX-License-Identifier: MIT
 *
 * comparison.c: codetimer.Comparison, a C comparison seen from Lua. As in a Result each field is made when it is asked
 * for. The results of the candidates belong to the comparison, and the Results that show them keep it alive.
 */
#include "common.h"

#include <string.h>

#define COMPARISON_TYPE "codetimer.Comparison"

static const char last_key = 0; /* the last comparison, or false */

typedef struct lua_comparison {
    ct_comparison *comparison; /* NULL: not there yet */
    uint32_t lua;
} lua_comparison;

void ct__lua_new_comparison(lua_State *L) {
    lua_comparison *self = lua_newuserdatauv(L, sizeof *self, 0);
    *self = (lua_comparison){0};
    luaL_setmetatable(L, COMPARISON_TYPE);
}

int ct__lua_set_comparison(lua_State *L, int index, ct_comparison *comparison, uint32_t lua) {
    lua_comparison *self = luaL_testudata(L, index, COMPARISON_TYPE);
    if (self == NULL || self->comparison != NULL) {
        ct_comparison_free(comparison);
        return 0;
    }
    *self = (lua_comparison){comparison, lua};
    return 1;
}

ct_comparison *ct__lua_find_comparison(lua_State *L, int index) {
    const lua_comparison *self = luaL_testudata(L, index, COMPARISON_TYPE);
    return self != NULL ? self->comparison : NULL;
}

static const ct_comparison *check(lua_State *L, int index) {
    const lua_comparison *self = luaL_checkudata(L, index, COMPARISON_TYPE);
    if (self->comparison == NULL) luaL_argerror(L, index, "the comparison has been freed");
    return self->comparison;
}

static void push_name(lua_State *L, const ct_comparison *c, size_t at) {
    lua_pushlstring(L, c->results[at]->name, c->results[at]->name_length);
}

/* ---- by name ---- */

static int refuse_name(lua_State *L, const ct_comparison *c, int arg) {
    luaL_Buffer names;
    const char *seen = ct__lua_describe(L, arg);
    luaL_buffinit(L, &names);
    for (size_t i = 0; i < c->count; i++) {
        if (i > 0) luaL_addstring(&names, ", ");
        push_name(L, c, i);
        luaL_addvalue(&names);
    }
    luaL_pushresult(&names);
    return luaL_argerror(L, arg, lua_pushfstring(L, "there is no candidate %s, but %s", seen, lua_tostring(L, -1)));
}

/* The index of the candidate named at "arg"; without b, of the baseline. */
static size_t find(lua_State *L, const ct_comparison *c, int arg) {
    size_t length;
    if (arg > 2 && lua_isnoneornil(L, arg)) return c->baseline;
    const char *name = lua_type(L, arg) == LUA_TSTRING ? lua_tolstring(L, arg, &length) : NULL;
    for (size_t i = 0; name != NULL && i < c->count; i++)
        if (c->results[i]->name_length == length && memcmp(c->results[i]->name, name, length) == 0) return i;
    return (size_t)refuse_name(L, c, arg);
}

/* A method's arguments (comparison, a, b). */
static ct_ratio get_pair(lua_State *L, size_t *a, size_t *b) {
    const ct_comparison *c = check(L, 1);
    ct_ratio ratio = {0};
    *a = find(L, c, 2);
    *b = find(L, c, 3);
    (void)ct_comparison_ratio(c, *a, *b, &ratio);
    return ratio;
}

static int get_ratio(lua_State *L) {
    size_t a, b;
    const ct_ratio ratio = get_pair(L, &a, &b);
    if (!ratio.known) return 0;
    lua_pushnumber(L, ratio.ratio);
    return 1;
}

static int get_interval(lua_State *L) {
    size_t a, b;
    const ct_ratio ratio = get_pair(L, &a, &b);
    if (!ratio.known) return 0;
    lua_pushnumber(L, ratio.low);
    lua_pushnumber(L, ratio.high);
    return 2;
}

static int get_different(lua_State *L) {
    size_t a, b;
    const ct_ratio ratio = get_pair(L, &a, &b);
    lua_pushboolean(L, ratio.different);
    return 1;
}

/* ---- sentences ---- */

typedef struct claim {
    const ct_ratio *ratio;
    size_t a, b;
} claim;

static size_t put_claim(lua_State *L, const void *what, char *buffer, size_t size) {
    const ct_comparison *c = check(L, 1);
    const ct_report_options options = {.size = sizeof options, .ascii = ct_report_ascii()};
    const claim *made = what;
    return ct_ratio_verdict(made->ratio, c->results[made->a]->name, c->results[made->b]->name, &options, buffer, size);
}

static int get_verdict_of(lua_State *L) {
    size_t a, b;
    const ct_ratio ratio = get_pair(L, &a, &b);
    const claim made = {&ratio, a, b};
    ct__lua_push_text(L, put_claim, &made);
    return 1;
}

/* A line for each candidate but the baseline. The comparison is at 1. */
static void push_verdict(lua_State *L, const ct_comparison *c) {
    int lines = 0;
    lua_pushliteral(L, "");
    for (size_t i = 0; i < c->count; i++) {
        if (i == c->baseline) continue;
        const claim made = {&c->ratios[i], i, c->baseline};
        if (lines++ > 0) lua_pushliteral(L, "\n");
        ct__lua_push_text(L, put_claim, &made);
        lua_concat(L, lines > 1 ? 3 : 2);
    }
}

/* ---- fields; the comparison is at 1 ---- */

static void push_names(lua_State *L, const ct_comparison *c) {
    lua_createtable(L, (int)c->count, 0);
    for (size_t i = 0; i < c->count; i++) {
        push_name(L, c, i);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

static void push_results(lua_State *L, const ct_comparison *c) {
    const lua_comparison *self = lua_touserdata(L, 1);
    lua_createtable(L, 0, (int)c->count);
    for (size_t i = 0; i < c->count; i++) {
        push_name(L, c, i);
        ct__lua_push_result(L, 1, i, (int)(self->lua >> i & 1));
        lua_rawset(L, -3);
    }
}

static void push_ratios(lua_State *L, const ct_comparison *c) {
    lua_createtable(L, 0, (int)c->count);
    for (size_t i = 0; i < c->count; i++) {
        push_name(L, c, i);
        ct__lua_push_ratio(L, &c->ratios[i]);
        lua_rawset(L, -3);
    }
}

static void push_resolution(lua_State *L, const ct_comparison *c) {
    double most = 0;
    int known = 1;
    for (size_t i = 0; i < c->count; i++) {
        known = known && c->ratios[i].known;
        if (c->ratios[i].resolved > most) most = c->ratios[i].resolved;
    }
    if (known)
        lua_pushnumber(L, most);
    else
        lua_pushnil(L);
}

#define PUSH(field, call)                                                                                              \
    static void push_##field(lua_State *L, const ct_comparison *c) { call; }

PUSH(baseline, push_name(L, c, c->baseline))
PUSH(twin, ct__lua_push_ratio(L, &c->twin))
PUSH(rounds, lua_pushinteger(L, (lua_Integer)c->rounds))
PUSH(rounds_tied, lua_pushinteger(L, (lua_Integer)c->rounds_tied))
PUSH(rounds_disturbed, lua_pushinteger(L, (lua_Integer)c->rounds_disturbed))
PUSH(budget_ns, lua_pushinteger(L, (lua_Integer)c->budget_ns))
PUSH(elapsed_ns, lua_pushinteger(L, (lua_Integer)c->elapsed_ns))
PUSH(interrupted, lua_pushstring(L, c->interrupted))
PUSH(notes, ct__lua_push_texts(L, c->notes, c->notes_count))

static const struct {
    const char *name;
    void (*push)(lua_State *L, const ct_comparison *c);
} fields[] = {
    {"names", push_names},
    {"baseline", push_baseline},
    {"results", push_results},
    {"ratios", push_ratios},
    {"twin", push_twin},
    {"resolution", push_resolution},
    {"verdict", push_verdict},
    {"rounds", push_rounds},
    {"rounds_tied", push_rounds_tied},
    {"rounds_disturbed", push_rounds_disturbed},
    {"budget_ns", push_budget_ns},
    {"elapsed_ns", push_elapsed_ns},
    {"interrupted", push_interrupted},
    {"notes", push_notes},
};

enum { FIELDS = sizeof fields / sizeof fields[0] };

/* ---- as a whole ---- */

/* {name = Result} on top of the stack becomes {name = table}. */
static void plain_results(lua_State *L) {
    for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 2)) {
        ct__lua_push_result_dict(L, -1);
        lua_pushvalue(L, -3);
        lua_insert(L, -2);
        lua_rawset(L, -5);
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
    }
}

static int comparison_to_dict(lua_State *L) {
    check(L, 1);
    lua_createtable(L, 0, FIELDS);
    for (int i = 0; i < FIELDS; i++) {
        fields[i].push(L, check(L, 1));
        if (fields[i].push == push_results) plain_results(L);
        lua_setfield(L, -2, fields[i].name);
    }
    return 1;
}

static size_t put_json(lua_State *L, const void *what, char *buffer, size_t size) {
    const ct_export_options options = {.size = sizeof options, .host = what};
    return ct_export_comparison(check(L, 1), CT_EXPORT_JSON, &options, buffer, size);
}

static int comparison_to_json(lua_State *L) {
    ct__lua_push_text(L, put_json, LUA_VERSION);
    return 1;
}

static int comparison_index(lua_State *L) {
    static const luaL_Reg methods[] = {
        {"ratio", get_ratio},
        {"interval", get_interval},
        {"different", get_different},
        {"verdict_of", get_verdict_of},
        {"to_dict", comparison_to_dict},
        {"to_json", comparison_to_json},
        {NULL, NULL},
    };
    const ct_comparison *comparison = check(L, 1);
    for (int i = 0; i < FIELDS; i++) {
        if (!ct__lua_is(L, 2, fields[i].name)) continue;
        fields[i].push(L, comparison);
        return 1;
    }
    return ct__lua_push_method(L, 2, methods);
}

static int comparison_tostring(lua_State *L) {
    ct__lua_push_table(L, 1, 0, 0);
    return 1;
}

static int comparison_gc(lua_State *L) {
    lua_comparison *self = luaL_checkudata(L, 1, COMPARISON_TYPE);
    ct_comparison_free(self->comparison);
    self->comparison = NULL;
    return 0;
}

typedef struct table {
    int index;
    ct_report_options options;
} table;

static size_t put_table(lua_State *L, const void *what, char *buffer, size_t size) {
    const table *shown = what;
    return ct_comparison_format(check(L, shown->index), &shown->options, buffer, size);
}

void ct__lua_push_table(lua_State *L, int index, int color, int verbose) {
    const table shown = {
        .index = lua_absindex(L, index),
        .options = {.size = sizeof(ct_report_options), .color = color, .ascii = ct_report_ascii(), .verbose = verbose}};
    ct__lua_push_text(L, put_table, &shown);
}

void ct__lua_set_last_comparison(lua_State *L, int index) {
    lua_pushvalue(L, index);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &last_key); /* the key exists: nothing is allocated */
}

int ct__lua_last_comparison(lua_State *L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &last_key);
    if (!lua_toboolean(L, -1)) lua_pushnil(L);
    return 1;
}

void ct__lua_comparison_open(lua_State *L) {
    static const luaL_Reg functions[] = {
        {"__index", comparison_index}, {"__tostring", comparison_tostring}, {"__gc", comparison_gc}, {NULL, NULL}};
    ct__lua_new_type(L, COMPARISON_TYPE, functions);
    ct__lua_reserve(L, &last_key);
}
