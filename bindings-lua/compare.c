/* SPDX-License-Identifier: MIT
 *
 * compare.c: compare(candidates [, options]): from its arguments to its printed table.
 */
#include "running.h"

#include <string.h>

enum { CANDIDATES = 1, FILE_, PROGRESS, BASELINE, NAMES, FUNCTIONS, ROUNDS, COMPARISON }; /* the stack of compare */

/* ---- arguments ---- */

static int refuse(lua_State *L, const char *message, int seen) {
    return luaL_argerror(L, CANDIDATES, lua_pushfstring(L, "%s, got %s", message, ct__lua_describe(L, seen)));
}

static int refuse_count(lua_State *L, lua_Integer count) {
    return luaL_argerror(
        L, CANDIDATES, lua_pushfstring(L, "candidates must be 2 to %d, got %I", CT_CANDIDATES_MAX, (LUAI_UACINT)count));
}

/* By their bytes: the order of Lua depends on the locale. */
static int precedes(lua_State *L, int a, int b) {
    const size_t length_a = lua_rawlen(L, a), length_b = lua_rawlen(L, b);
    const int order = memcmp(lua_tostring(L, a), lua_tostring(L, b), length_a < length_b ? length_a : length_b);
    return order != 0 ? order < 0 : length_a < length_b;
}

/* Puts the name on top of the stack into its place among the first "count" of NAMES. */
static void insert_name(lua_State *L, lua_Integer count) {
    lua_Integer at = count;
    for (; at > 0; at--) {
        lua_rawgeti(L, NAMES, at);
        const int in_place = precedes(L, -1, -2);
        if (!in_place) lua_rawseti(L, NAMES, at + 1);
        if (!in_place) continue;
        lua_pop(L, 1);
        break;
    }
    lua_rawseti(L, NAMES, at + 1);
}

/* { name = function }: sorted by name, since Lua keeps no order. */
static lua_Integer take_named(lua_State *L) {
    lua_Integer count = 0;
    for (lua_pushnil(L); lua_next(L, CANDIDATES) != 0; lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING) refuse(L, "the name of a candidate must be a string", -2);
        if (count == CT_CANDIDATES_MAX) refuse_count(L, CT_CANDIDATES_MAX + 1);
        lua_pushvalue(L, -2);
        insert_name(L, count++);
    }
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(L, NAMES, i);
        lua_rawget(L, CANDIDATES);
        lua_rawseti(L, FUNCTIONS, i);
    }
    return count;
}

/* { {name, function}, ... }: as they come. */
static lua_Integer take_pairs(lua_State *L) {
    const lua_Integer count = (lua_Integer)lua_rawlen(L, CANDIDATES);
    if (count > CT_CANDIDATES_MAX) refuse_count(L, count);
    for (lua_Integer i = 1; i <= count; i++) {
        if (lua_rawgeti(L, CANDIDATES, i) != LUA_TTABLE) refuse(L, "a candidate must be {name, function}", -1);
        lua_rawgeti(L, -1, 1);
        lua_rawseti(L, NAMES, i);
        lua_rawgeti(L, -1, 2);
        lua_rawseti(L, FUNCTIONS, i);
        lua_pop(L, 1);
    }
    return count;
}

/* The index from 1 of the name at "name" among the first "count"; 0 if it is not there. */
static lua_Integer find_name(lua_State *L, int name, lua_Integer count) {
    for (lua_Integer i = 1; i <= count; i++) {
        lua_rawgeti(L, NAMES, i);
        const int equal = lua_rawequal(L, name, -1);
        lua_pop(L, 1);
        if (equal) return i;
    }
    return 0;
}

static void check_candidate(lua_State *L, lua_Integer i) {
    const int top = lua_gettop(L), name = top + 1, fn = top + 2;
    lua_rawgeti(L, NAMES, i);
    lua_rawgeti(L, FUNCTIONS, i);
    if (lua_type(L, name) != LUA_TSTRING) refuse(L, "the name of a candidate must be a string", name);
    if (lua_rawlen(L, name) == 0) luaL_argerror(L, CANDIDATES, "the name of a candidate must not be empty");
    if (find_name(L, name, i) != i) refuse(L, "the names of candidates must differ", name);
    if (!ct__lua_is_callable(L, fn)) {
        const char *message =
            lua_pushfstring(L, "the candidate '%s' must be a function or have __call", lua_tostring(L, name));
        refuse(L, message, fn);
    }
    lua_settop(L, top);
}

/* Whether the candidates are named; anything in a list that would be passed over is refused. */
static int are_named(lua_State *L) {
    lua_Integer keys = 0, names = 0, at = 1;
    const int listed = lua_rawgeti(L, CANDIDATES, 1) != LUA_TNIL;
    lua_pop(L, 1);
    for (lua_pushnil(L); lua_next(L, CANDIDATES) != 0; lua_pop(L, 1), keys++) names += lua_type(L, -2) == LUA_TSTRING;
    if (keys == 0 || (names > 0 && !listed)) return 1;
    if (names > 0)
        luaL_argerror(L, CANDIDATES,
                      "candidates must all be named, { name = function, ... }, or all be pairs, "
                      "{ {name, function}, ... }, got both");
    for (; at <= keys && lua_rawgeti(L, CANDIDATES, at) != LUA_TNIL; at++) lua_pop(L, 1);
    if (at <= keys)
        luaL_argerror(L, CANDIDATES,
                      lua_pushfstring(L, "candidates must be at 1, 2, 3 and so on, but of the %I none is at %I",
                                      (LUAI_UACINT)keys, (LUAI_UACINT)at));
    return 0;
}

static void take_candidates(lua_State *L) {
    lua_createtable(L, 0, 0);
    lua_createtable(L, 0, 0);
    const lua_Integer count = are_named(L) ? take_named(L) : take_pairs(L);
    if (count < 2) refuse_count(L, count);
    for (lua_Integer i = 1; i <= count; i++) check_candidate(L, i);
}

static size_t take_baseline(lua_State *L) {
    const lua_Integer count = (lua_Integer)lua_rawlen(L, NAMES);
    if (lua_isnil(L, BASELINE)) return 0;
    const lua_Integer at = find_name(L, BASELINE, count);
    if (at > 0) return (size_t)at - 1;
    luaL_argerror(
        L, FILE_,
        lua_pushfstring(L, "options.baseline must be the name of a candidate, got %s", ct__lua_describe(L, BASELINE)));
    return 0;
}

/* ---- the end ---- */

/* Makes the comparison of the rounds at "index", and it becomes the last one. */
static void end_comparison(lua_State *L, int index, const char *interrupted) {
    ct__lua_rounds *rounds = lua_touserdata(L, index);
    ct_comparison *comparison;
    rounds->status = ct__lua_end_rounds(L, index, interrupted, &comparison);
    if (rounds->status != CT_OK) return;
    lua_getiuservalue(L, index, ROUNDS_COMPARISON);
    if (ct__lua_set_comparison(L, -1, comparison, rounds->lua)) ct__lua_set_last_comparison(L, -1);
    lua_pop(L, 1);
}

void ct__lua_close_comparison(lua_State *L, ct__lua_rounds *rounds) {
    if (rounds->compare != NULL && !rounds->counted) { /* of empty calls: nobody's */
        ct_compare_free(rounds->compare);
        rounds->compare = NULL;
    }
    if (rounds->compare != NULL) {
        const char *note = ct__lua_note_memory(L, 2);
        if (note != NULL) ct_compare_note(rounds->compare, note);
        end_comparison(L, 1, rounds->complete ? NULL : ct__lua_name_cause(L, 2));
    }
    if (rounds->printed || rounds->status != CT_OK) return;
    rounds->printed = 1;
    lua_getiuservalue(L, 1, ROUNDS_FILE);
    lua_getiuservalue(L, 1, ROUNDS_COMPARISON);
    ct__lua_print_partial(L, -2, -1, rounds->options.verbose);
    lua_pop(L, 2);
}

/* A candidate can put any value into our place on the stack, through the debug library: what lies there is looked at
 * after every call. */
static ct__lua_rounds *check_ended(lua_State *L) {
    ct__lua_rounds *rounds = luaL_checkudata(L, ROUNDS, CT__LUA_ROUNDS_TYPE);
    if (ct__lua_find_comparison(L, COMPARISON) == NULL) luaL_error(L, "the comparison has been ended from outside");
    luaL_checktype(L, FUNCTIONS, LUA_TTABLE);
    return rounds;
}

/* A memory pass for each candidate, then the table. */
static int finish_comparison(lua_State *L, int status, lua_KContext context) {
    (void)status;
    ct__lua_rounds *rounds = check_ended(L);
    while (rounds->options.memory && rounds->counting_memory < rounds->count) {
        const size_t at = rounds->counting_memory++;
        lua_pushcfunction(L, ct__lua_count_allocations);
        lua_rawgeti(L, FUNCTIONS, (lua_Integer)at + 1);
        ct__lua_push_result(L, COMPARISON, at, 0);
        lua_callk(L, 2, 0, context, finish_comparison);
        rounds = check_ended(L);
    }
    rounds->printed = 1;
    return ct__lua_print(L, FILE_, COMPARISON, rounds->options.verbose);
}

/* The rounds, and what comes after them. */
static int make_comparison(lua_State *L, int status, lua_KContext context) {
    while (ct__lua_push_round(L, ROUNDS, COMPARISON)) lua_callk(L, 1, 0, context, make_comparison);
    const ct__lua_rounds *rounds = ct__lua_check_rounds(L, ROUNDS);
    end_comparison(L, ROUNDS, NULL);
    if (rounds->status != CT_OK) return ct__lua_fail(L, rounds->status);
    return finish_comparison(L, status, context);
}

/* ---- compare ---- */

static void set_value(lua_State *L, int slot, int value) {
    lua_pushvalue(L, slot);
    lua_setiuservalue(L, ROUNDS, value);
}

int ct__lua_compare(lua_State *L) {
    static const char *const names[] = {"baseline", "file",    "budget",    "gc_time",
                                        "memory",   "verbose", "_progress", NULL};
    ct__lua_options options;
    ct_overhead overheads[CT__LUA_OVERHEADS];
    size_t known;
    int status;
    luaL_checkstack(L, LUA_MINSTACK, NULL);
    if (!lua_istable(L, CANDIDATES)) refuse(L, "candidates must be a table of at least 2", CANDIDATES);
    ct__lua_take_options(L, FILE_, names, &options);
    take_candidates(L);
    const size_t baseline = take_baseline(L);
    ct__lua_allocations_tidy(L);
    ct__lua_overheads(L, 1, overheads, &known);
    ct__lua_rounds *rounds = ct__lua_new_rounds(L, NAMES, FUNCTIONS, 1, &options, baseline, &status);
    if (rounds == NULL) return ct__lua_fail(L, status);
    ct__lua_new_comparison(L);
    set_value(L, COMPARISON, ROUNDS_COMPARISON);
    set_value(L, FILE_, ROUNDS_FILE);
    set_value(L, PROGRESS, LOOP_PROGRESS);
    rounds->loop.tells = !lua_isnil(L, PROGRESS);
    return make_comparison(L, LUA_OK, 0);
}
