/* SPDX-License-Identifier: MIT
 *
 * gc.c: exact counts of the collector's work.
 *
 * Lua tells nobody how often it collects, but a finalizer knows: two sentinels are garbage on purpose. The young one is
 * a new object each time: it dies in every collection, minor or major. The old one is the same object, made garbage
 * again by its own finalizer: in generational mode it grows old, and then it dies in major collections only; in
 * incremental mode every cycle is a major one. Hence minor = all - major. A full collection after arming makes the old
 * sentinel old at once; settle does that before the run takes its first count. Two things escape: a collection that Lua
 * makes for lack of memory calls no finalizer, and in incremental mode a cycle is counted when it ends.
 *
 * Invariant: while a run counts (users > 0) each sentinel is waiting for the next collection, or "lost" has grown. With
 * no user a sentinel that fires does not return, so a program that is not being timed has no finalizer of ours.
 */
#include "common.h"

typedef struct gc_counter {
    int users;   /* runs that count now */
    int young;   /* the young sentinel waits for a collection */
    int old;     /* the old one does */
    int closing; /* lua_close has begun */
    uint64_t all;
    uint64_t major;
    uint64_t lost;
} gc_counter;

const char *const ct__lua_gc_labels[CT__LUA_GENERATIONS] = {"GC Minor", "GC Major"};

/* Their addresses are keys in the registry. */
static const char counter_key = 0;
static const char young_key = 0;
static const char old_key = 0;

/* The userdata lives in the registry until the state is freed; lua_close runs every finalizer before it frees any. */
static gc_counter *find_counter(lua_State *L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &counter_key);
    gc_counter *counter = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return counter;
}

/* Creates garbage that has the finalizer of the metatable under "key". */
static void create_sentinel(lua_State *L, const void *key) {
    lua_newuserdatauv(L, 0, 0);
    lua_rawgetp(L, LUA_REGISTRYINDEX, key);
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
}

static int create_young(lua_State *L) {
    create_sentinel(L, &young_key);
    return 0;
}

/* An error must not leave a finalizer: the host would see it. */
static int young_died(lua_State *L) {
    gc_counter *counter = find_counter(L);
    counter->young = 0;
    if (counter->users == 0 || counter->closing) return 0;
    counter->all++;
    lua_State *held = ct__lua_allocations_hold(L);
    lua_pushcfunction(L, create_young);
    counter->young = lua_pcall(L, 0, 0, 0) == LUA_OK;
    ct__lua_allocations_release(L, held);
    if (!counter->young) counter->lost++;
    return 0;
}

/* Setting the metatable again makes the object finalizable again, and allocates nothing. */
static int old_died(lua_State *L) {
    gc_counter *counter = find_counter(L);
    counter->old = 0;
    if (counter->users == 0 || counter->closing) return 0;
    counter->major++;
    if (lua_type(L, 1) == LUA_TUSERDATA && lua_getmetatable(L, 1)) lua_setmetatable(L, 1);
    counter->old = 1;
    return 0;
}

static void clear_finalizer(lua_State *L, const void *key) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, key);
    lua_pushnil(L);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
}

/* lua_close has begun: no sentinel may come back, since our code might be unloaded by then. */
static int close_counter(lua_State *L) {
    gc_counter *counter = find_counter(L);
    if (counter == NULL || lua_touserdata(L, 1) != counter) return 0; /* called by hand */
    counter->closing = 1;
    clear_finalizer(L, &young_key);
    clear_finalizer(L, &old_key);
    return 0;
}

static void set_finalizer(lua_State *L, const void *key, lua_CFunction finalizer) {
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, finalizer);
    lua_setfield(L, -2, "__gc");
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

void ct__lua_gc_open(lua_State *L) {
    static const luaL_Reg closer[] = {{"__gc", close_counter}, {NULL, NULL}};
    if (find_counter(L) != NULL) return;
    set_finalizer(L, &young_key, young_died);
    set_finalizer(L, &old_key, old_died);
    gc_counter *counter = lua_newuserdatauv(L, sizeof *counter, 0);
    *counter = (gc_counter){0};
    luaL_newlib(L, closer);
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &counter_key);
}

/* A sentinel of an earlier run that still waits serves again: had a collection come since, it would be gone. */
static void create_sentinels(lua_State *L, gc_counter *counter) {
    if (!counter->young) create_sentinel(L, &young_key);
    counter->young = 1;
    if (!counter->old) create_sentinel(L, &old_key);
    counter->old = 1;
}

void ct__lua_gc_arm(lua_State *L) {
    gc_counter *counter = find_counter(L);
    create_sentinels(L, counter);
    counter->users++;
}

/* A sentinel whose finalizer Lua could not even call, for lack of memory, is gone without a word. It shows here, since
 * a full collection fires both: the missing one is made anew. In a finalizer the collector does not run (-1). */
void ct__lua_gc_settle(lua_State *L) {
    gc_counter *counter = find_counter(L);
    const uint64_t all = counter->all, major = counter->major;
    if (lua_gc(L, LUA_GCCOLLECT, 0) != 0) return;
    if (counter->all != all && counter->major != major) return;
    counter->lost++;
    if (counter->all == all) counter->young = 0;
    if (counter->major == major) counter->old = 0;
    create_sentinels(L, counter);
    lua_gc(L, LUA_GCCOLLECT, 0);
}

void ct__lua_gc_disarm(lua_State *L) { find_counter(L)->users--; }

/* The sentinels fire one after the other; between the two "major" may be ahead of "all". */
void ct__lua_gc_read(lua_State *L, ct__lua_gc *counts) {
    const gc_counter *counter = find_counter(L);
    counts->major = counter->major;
    counts->minor = counter->all > counter->major ? counter->all - counter->major : 0;
    counts->lost = counter->lost;
}
