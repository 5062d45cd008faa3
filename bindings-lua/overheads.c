/* SPDX-License-Identifier: MIT
 *
 * overheads.c: what empty calls take in this state: a comparison of the two kinds of functions.
 *
 * They are measured once, at the first question, in turns with each other and by the loop that all runs use, so that
 * they are what is in every figure beside the body. The intervals are those of their medians.
 */
#include "running.h"

static const lua_Integer budget_ns = 20000000;

/* Where the machine was busy with something else all the time, it is asked again, with twice the budget each time. */
enum { ATTEMPTS = 4 };

enum { C_FUNCTION, LUA_FUNCTION };

static const char *const labels[CT__LUA_OVERHEADS] = {"empty C function", "empty Lua function"};

static const char overheads_key = 0;

typedef struct empty_calls {
    int known;
    ct_overhead overheads[CT__LUA_OVERHEADS];
} empty_calls;

static empty_calls *find(lua_State *L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &overheads_key);
    empty_calls *empty = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return empty;
}

static int do_nothing(lua_State *L) {
    (void)L;
    return 0;
}

static void push_functions(lua_State *L) {
    static const char source[] = "return function() end";
    lua_createtable(L, CT__LUA_OVERHEADS, 0);
    lua_pushcfunction(L, do_nothing);
    lua_rawseti(L, -2, C_FUNCTION + 1);
    if (luaL_loadbufferx(L, source, sizeof source - 1, "=codetimer", "t") != LUA_OK) lua_error(L);
    lua_call(L, 0, 1);
    lua_rawseti(L, -2, LUA_FUNCTION + 1);
}

/* With fewer than six batches of one nothing is known. */
static void keep(lua_State *L, const ct_comparison *comparison) {
    empty_calls *empty = find(L);
    for (size_t i = 0; i < CT__LUA_OVERHEADS; i++) {
        const ct_result *result = comparison->results[i];
        if (!result->interval_known) return;
        empty->overheads[i] = (ct_overhead){labels[i], result->interval_low_ns, result->interval_high_ns};
    }
    empty->known = 1;
}

/* measure(budget_ns) */
static int measure(lua_State *L) {
    enum { BUDGET = 1, NAMES, FUNCTIONS, ROUNDS };
    const ct__lua_options options = {.budget_ns = (uint64_t)lua_tointeger(L, BUDGET)};
    ct_comparison *comparison;
    int status;
    ct__lua_push_texts(L, labels, CT__LUA_OVERHEADS);
    push_functions(L);
    if (ct__lua_new_rounds(L, NAMES, FUNCTIONS, 0, &options, 0, &status) == NULL) return 0;
    while (ct__lua_push_round(L, ROUNDS, ROUNDS)) lua_call(L, 1, 0);
    if (ct__lua_end_rounds(L, ROUNDS, NULL, &comparison) != CT_OK) return 0;
    keep(L, comparison);
    ct_comparison_free(comparison);
    return 0;
}

void ct__lua_known_overheads(lua_State *L, int is_lua, ct_overhead overheads[CT__LUA_OVERHEADS], size_t *count) {
    const empty_calls *empty = find(L);
    *count = empty->known ? CT__LUA_OVERHEADS : 0;
    overheads[0] = empty->overheads[is_lua ? LUA_FUNCTION : C_FUNCTION];
    overheads[1] = empty->overheads[is_lua ? C_FUNCTION : LUA_FUNCTION];
}

void ct__lua_overheads(lua_State *L, int is_lua, ct_overhead overheads[CT__LUA_OVERHEADS], size_t *count) {
    luaL_checkstack(L, 2, NULL);
    for (int i = 0; i < ATTEMPTS && !find(L)->known; i++) {
        lua_pushcfunction(L, measure);
        lua_pushinteger(L, budget_ns << i);
        lua_call(L, 1, 0);
    }
    ct__lua_known_overheads(L, is_lua, overheads, count);
}

int ct__lua_is_lua(lua_State *L, int index) { return lua_isfunction(L, index) && !lua_iscfunction(L, index); }

void ct__lua_overheads_open(lua_State *L) {
    if (find(L) != NULL) return;
    empty_calls *empty = lua_newuserdatauv(L, sizeof *empty, 0);
    *empty = (empty_calls){0};
    lua_rawsetp(L, LUA_REGISTRYINDEX, &overheads_key);
}
