/* SPDX-License-Identifier: MIT
 *
 * rounds.c: the turns of a comparison: whose calls come next is the core's to say, and the loop of a run makes them.
 *
 * A load waits for a store whose address looks the same in the last 12 bits. So a function can be slower than its twin
 * for as long as both live, only because its code or its data lie in their page where the frame of its calls lies in
 * another. That is no difference of the functions. So each round is called from another height of the stack, the same
 * for all candidates, until the frame has been at every place in a page.
 *
 * The collector is left as it is: a collection falls on the candidate whose allocation makes it due. Its counts are
 * read around each turn, outside the clock. In a turn nothing here makes an object; between two rounds the loop does.
 *
 * Invariant: loop.run is the run of the turn under way, NULL between turns; compare is NULL before begin and after the
 * end; the sentinels are armed exactly while "armed" is 1.
 */
#include "running.h"

#include <stdio.h>
#include <string.h>

/* Slots of the stack in a page of 4 KiB, and from one round to the next: any 16 rounds in a row are spread over it. */
enum { PLACES = 256, STEP = 157 };

ct__lua_rounds *ct__lua_check_rounds(lua_State *L, int index) {
    ct__lua_rounds *rounds = luaL_checkudata(L, index, CT__LUA_ROUNDS_TYPE);
    if (rounds->compare == NULL) luaL_error(L, "the comparison has been ended from outside");
    return rounds;
}

/* ---- what the loop calls ---- */

static void forget_counts(lua_State *L, ct__lua_rounds *rounds) {
    ct__lua_gc now;
    memset(rounds->collections, 0, sizeof rounds->collections);
    ct__lua_gc_read(L, &now);
    rounds->lost = now.lost;
}

/* Before the first turn, and before the first that is not forgotten. */
static ct__lua_rounds *begin_counting(lua_State *L, int index) {
    if (ct__lua_check_rounds(L, index)->counted) ct__lua_gc_settle(L);
    ct__lua_rounds *rounds = ct__lua_check_rounds(L, index);
    forget_counts(L, rounds);
    return rounds;
}

/* watch(rounds, closure) */
static int watch_rounds(lua_State *L) {
    ct__lua_check_rounds(L, 1);
    ct__lua_loop_watch(L);
    if (ct__lua_check_rounds(L, 1)->rounds == 1) begin_counting(L, 1);
    return 0;
}

static void end_turn(lua_State *L, ct__lua_rounds *rounds) {
    ct__lua_gc after;
    rounds->loop.run = NULL;
    if (rounds->turn >= rounds->count) return;
    ct__lua_gc_read(L, &after);
    uint64_t *collections = rounds->collections[rounds->turn];
    if (after.minor > rounds->before.minor) collections[0] += after.minor - rounds->before.minor;
    if (after.major > rounds->before.major) collections[1] += after.major - rounds->before.major;
}

/* All of them have two turns in a round. */
static size_t count_turns(const ct__lua_rounds *rounds) { return 2 * (rounds->count + 1); }

/* Returns 0 when there is none any more. */
static int begin_turn(lua_State *L, ct__lua_rounds *rounds) {
    int what;
    while ((what = ct_compare_next(rounds->compare, &rounds->turn, &rounds->loop.run)) == CT_WARM) {
        rounds->loop.run = NULL;
        rounds = begin_counting(L, 1);
        rounds->turns_left = count_turns(rounds);
    }
    if (what == 0) rounds->loop.run = NULL;
    rounds->complete = what == 0;
    rounds->turns_left--;
    ct__lua_gc_read(L, &rounds->before);
    return what;
}

/* Pushes the function of the turn; the twin's is the baseline's. */
static void push_function(lua_State *L, const ct__lua_rounds *rounds) {
    const size_t at = rounds->turn < rounds->count ? rounds->turn : rounds->baseline;
    lua_getiuservalue(L, 1, LOOP_FN);
    if (lua_istable(L, -1))
        lua_rawgeti(L, -1, (lua_Integer)at + 1);
    else
        lua_pushnil(L);
}

/* for fn, k in next, rounds: to the end of the round */
static int next_chunk(lua_State *L) {
    ct__lua_rounds *rounds = ct__lua_check_rounds(L, 1);
    while (rounds->loop.run != NULL || (rounds->turns_left > 0 && begin_turn(L, rounds))) {
        lua_settop(L, 1);
        push_function(L, rounds);
        if (lua_isnil(L, -1)) return luaL_error(L, "a candidate has been taken away from outside");
        if (ct__lua_loop_next(L, &rounds->loop)) return 2;
        end_turn(L, rounds);
        ct__lua_loop_tell(L, 1, &rounds->loop, ct_compare_progress(rounds->compare), 0);
        rounds = ct__lua_check_rounds(L, 1);
    }
    return 0;
}

int ct__lua_push_round(lua_State *L, int index, int top) {
    ct__lua_rounds *rounds = ct__lua_check_rounds(L, index);
    lua_settop(L, top);
    if (rounds->complete) return 0;
    luaL_checkstack(L, PLACES + LUA_MINSTACK, NULL);
    lua_settop(L, top + (int)(rounds->rounds++ * STEP % PLACES));
    rounds->turns_left = count_turns(rounds);
    ct__lua_push_loop(L, CT__LUA_ROUNDS_TYPE);
    lua_pushvalue(L, index);
    return 1;
}

/* ---- begin and end ---- */

static void disarm(lua_State *L, ct__lua_rounds *rounds) {
    if (rounds->armed) ct__lua_gc_disarm(L);
    rounds->armed = 0;
}

/* Names as the core wants them; the table keeps them alive. */
static int begin(lua_State *L, ct__lua_rounds *rounds, int names) {
    const char *texts[CT_CANDIDATES_MAX];
    size_t lengths[CT_CANDIDATES_MAX];
    for (size_t i = 0; i < rounds->count; i++) {
        lua_rawgeti(L, names, (lua_Integer)i + 1);
        texts[i] = lua_tolstring(L, -1, &lengths[i]);
        lua_pop(L, 1);
    }
    const ct_compare_options options = {.size = sizeof options,
                                        .budget_ns = rounds->options.budget_ns,
                                        .baseline = rounds->baseline,
                                        .name_lengths = lengths};
    return ct_compare_begin(texts, rounds->count, &options, &rounds->compare);
}

static uint32_t find_lua_functions(lua_State *L, int functions, size_t count) {
    uint32_t lua = 0;
    for (size_t i = 0; i < count; i++) {
        lua_rawgeti(L, functions, (lua_Integer)i + 1);
        if (ct__lua_is_lua(L, -1)) lua |= (uint32_t)1 << i;
        lua_pop(L, 1);
    }
    return lua;
}

ct__lua_rounds *ct__lua_new_rounds(lua_State *L, int names, int functions, int counted, const ct__lua_options *options,
                                   size_t baseline, int *status) {
    ct__lua_rounds *rounds = lua_newuserdatauv(L, sizeof *rounds, ROUNDS_VALUES);
    *rounds = (ct__lua_rounds){.options = *options,
                               .counted = counted,
                               .count = lua_rawlen(L, functions),
                               .baseline = baseline,
                               .status = CT_EINVAL};
    rounds->lua = find_lua_functions(L, functions, rounds->count);
    luaL_setmetatable(L, CT__LUA_ROUNDS_TYPE);
    lua_pushvalue(L, functions);
    lua_setiuservalue(L, -2, LOOP_FN);
    lua_pushvalue(L, names);
    lua_setiuservalue(L, -2, ROUNDS_NAMES);
    lua_toclose(L, -1);
    ct__lua_gc_arm(L);
    rounds->armed = 1;
    rounds->collecting = lua_gc(L, LUA_GCISRUNNING, 0);
    ct__lua_gc_read(L, &rounds->before);
    *status = begin(L, rounds, names);
    return *status == CT_OK ? rounds : NULL;
}

/* Who was running is told by name, the twin by the baseline's. */
static void note_candidate(lua_State *L, int index, const ct__lua_rounds *rounds, const char *interrupted) {
    if (rounds->loop.run == NULL) return;
    const size_t at = rounds->turn < rounds->count ? rounds->turn : rounds->baseline;
    char sentence[200];
    lua_getiuservalue(L, index, ROUNDS_NAMES);
    if (lua_istable(L, -1)) {
        lua_rawgeti(L, -1, (lua_Integer)at + 1);
        const char *name = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "a candidate";
        (void)snprintf(sentence, sizeof sentence, "%.90s was running when it ended (%.60s)", name, interrupted);
        ct_compare_note(rounds->compare, sentence);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

static void note_collector(lua_State *L, const ct__lua_rounds *rounds) {
    const int collecting = lua_gc(L, LUA_GCISRUNNING, 0);
    if (rounds->collecting && !collecting)
        ct_compare_note(rounds->compare, "A candidate has stopped the garbage collector.");
    if (!rounds->collecting && collecting)
        ct_compare_note(rounds->compare, "A candidate has restarted the garbage collector.");
}

/* What the host knows of each candidate. */
static int make_comparison(lua_State *L, ct__lua_rounds *rounds, const char *interrupted, ct_comparison **comparison) {
    static const uint64_t none[CT__LUA_GENERATIONS];
    static const ct_memory unfinished = {.reason = "the comparison did not come to its end"};
    ct_time_finish finishes[CT_CANDIDATES_MAX];
    ct_overhead overheads[2][CT__LUA_OVERHEADS];
    size_t known = 0;
    ct__lua_gc now;
    ct__lua_gc_read(L, &now);
    note_collector(L, rounds);
    if (rounds->lost != now.lost)
        ct_compare_note(rounds->compare, "Collections are not shown: there was no memory to count them.");
    if (rounds->options.gc_time) ct_compare_note(rounds->compare, ct__lua_gc_time_note);
    for (int is_lua = 0; is_lua < 2 && rounds->counted; is_lua++)
        ct__lua_known_overheads(L, is_lua, overheads[is_lua], &known);
    for (size_t i = 0; i < rounds->count; i++)
        finishes[i] = (ct_time_finish){.size = sizeof finishes[i],
                                       .gc_generations = rounds->lost == now.lost ? CT__LUA_GENERATIONS : 0,
                                       .gc_labels = ct__lua_gc_labels,
                                       .gc_before = none,
                                       .gc_after = rounds->collections[i],
                                       .memory = rounds->options.memory ? &unfinished : NULL,
                                       .overheads_count = known,
                                       .overheads = overheads[rounds->lua >> i & 1]};
    return ct_compare_end(rounds->compare, finishes, interrupted, comparison);
}

int ct__lua_end_rounds(lua_State *L, int index, const char *interrupted, ct_comparison **comparison) {
    ct__lua_rounds *rounds = lua_touserdata(L, index);
    ct__lua_loop_leave(L, index);
    if (interrupted != NULL) note_candidate(L, index, rounds, interrupted);
    if (rounds->loop.run != NULL) end_turn(L, rounds);
    disarm(L, rounds);
    int status = make_comparison(L, rounds, interrupted, comparison);
    rounds->compare = NULL;
    return status;
}

/* ---- the rounds as a userdata ---- */

/* __close(rounds, error) */
static int close_rounds(lua_State *L) {
    ct__lua_rounds *rounds = luaL_checkudata(L, 1, CT__LUA_ROUNDS_TYPE);
    lua_settop(L, 2);
    ct__lua_close_comparison(L, rounds);
    disarm(L, rounds);
    return 0;
}

/* See free_run. */
static int free_rounds(lua_State *L) {
    ct__lua_rounds *rounds = luaL_checkudata(L, 1, CT__LUA_ROUNDS_TYPE);
    disarm(L, rounds);
    if (rounds->compare == NULL) return 0;
    ct_compare_free(rounds->compare);
    rounds->compare = NULL;
    rounds->loop.run = NULL;
    if (rounds->counted)
        lua_warning(L, "codetimer: a comparison has no outcome, because its coroutine was neither finished nor closed",
                    0);
    return 0;
}

void ct__lua_rounds_open(lua_State *L) {
    static const luaL_Reg functions[] = {{"__close", close_rounds}, {"__gc", free_rounds}, {NULL, NULL}};
    ct__lua_loop_open(L, CT__LUA_ROUNDS_TYPE, functions, watch_rounds, next_chunk);
}
