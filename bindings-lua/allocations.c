/* SPDX-License-Identifier: MIT
 *
 * allocations.c: the memory pass: a hook that passes on every request to the allocator that was there before, and
 * counts those of one coroutine.
 *
 * It adds no header to the blocks, so it may come and go at any time. When the coroutine has yielded, others run, and
 * what they ask for is not counted: the hook looks at its status. So is what our own sentinels ask for.
 *
 * The first call is not counted where there are several: it shows how much a call allocates. While the others are
 * counted the collector is stopped, so that nothing of what it does is counted as theirs; but not where that might take
 * too much memory, nor in a coroutine, which may never come back. One more call is then not counted: it makes anew what
 * the collector has taken (parts of Lua's own stack, short strings). The peak is that of a single call.
 *
 * Invariant: the hook is in place exactly while a pass runs, unless somebody has put another one above it that stays.
 * Ours is then only passed through, and taken out at the next run that finds it on top. It is no Lua object, since it
 * is needed until Lua has given its last block back; where it cannot be taken out before that, it stays.
 */
#include "running.h"

#include <stdlib.h>

#define PASS_TYPE "codetimer.MemoryPass"

/* What Lua says it wants a new block for is LUA_TSTRING to LUA_TTHREAD, then two kinds of its own. */
enum { KINDS = 8, OTHER = KINDS - 1, FIRST_TYPE = LUA_TSTRING };

static const char *const labels[KINDS] = {"strings", "tables",   "functions",  "userdata",
                                          "threads", "upvalues", "prototypes", "other"};

/* With the collector stopped the calls together take no more than about this. */
static const uint64_t uncollected_bytes = 16000000;

typedef struct requests {
    uint64_t allocations, reallocations, frees, allocated_bytes;
    uint64_t kinds[KINDS];
    int64_t peak;
} requests;

typedef struct hook {
    lua_Alloc before;
    void *before_user;
    lua_State *runner; /* whose requests are counted; NULL: nobody's */
    int may_yield;     /* the runner */
    int hooked;
    int runs; /* a pass is under way */
    requests seen;
    int64_t in_use; /* more than at the start of the call */
} hook;

/* Lies in the registry until the state is freed. */
typedef struct hook_owner {
    hook *hook;
    int closing; /* lua_close has begun */
} hook_owner;

typedef struct memory_pass {
    hook *hook;    /* NULL: it has ended */
    int uncounted; /* calls that are not counted come first */
    int stopped;   /* the collector, by us */
    uint64_t calls, made;
    requests before; /* the call under way: if it fails it does not count */
} memory_pass;

enum { UNCOUNTED = 2 };
enum { PASS_RESULT = 1, PASS_RUNNER, PASS_VALUES = PASS_RUNNER }; /* user values */
enum { FN = 1, RESULT, PASS };                                    /* the stack of the pass */

static const char owner_key = 0;

static hook_owner *find_owner(lua_State *L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &owner_key);
    hook_owner *owner = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return owner;
}

/* ---- the hook ---- */

static void count_new(hook *h, size_t type, size_t size) {
    h->seen.allocations++;
    h->seen.allocated_bytes += size;
    h->seen.kinds[type - FIRST_TYPE < OTHER ? type - FIRST_TYPE : OTHER]++;
    h->in_use += (int64_t)size;
}

static void count_change(hook *h, size_t old_size, size_t size) {
    h->seen.reallocations++;
    if (size > old_size) h->seen.allocated_bytes += size - old_size;
    h->in_use += (int64_t)size - (int64_t)old_size;
}

static void count_free(hook *h, size_t old_size) {
    h->seen.frees++;
    h->in_use -= (int64_t)old_size;
}

static void *pass_on(void *user, void *block, size_t old_size, size_t size) {
    hook *h = user;
    void *answer = h->before(h->before_user, block, old_size, size);
    if (h->runner == NULL || (h->may_yield && lua_status(h->runner) == LUA_YIELD)) return answer;
    if (size == 0) {
        if (block != NULL) count_free(h, old_size);
        return answer;
    }
    if (answer == NULL) return NULL;
    if (block == NULL)
        count_new(h, old_size, size);
    else
        count_change(h, old_size, size);
    if (h->in_use > h->seen.peak) h->seen.peak = h->in_use;
    return answer;
}

/* ---- in and out ---- */

static int is_on_top(lua_State *L, const hook *h) {
    void *user;
    return lua_getallocf(L, &user) == pass_on && user == h;
}

static void unhook(lua_State *L, hook *h) {
    if (!h->hooked || !is_on_top(L, h)) return;
    lua_setallocf(L, h->before, h->before_user);
    h->hooked = 0;
}

static int make_block(lua_State *L) {
    lua_newuserdatauv(L, 0, 0);
    return 0;
}

/* A hook that stayed in is used again, if requests still come through it. */
static int is_passed_through(lua_State *L, hook *h) {
    h->seen = (requests){0};
    h->may_yield = 0;
    h->runner = L;
    lua_pushcfunction(L, make_block);
    if (lua_pcall(L, 0, 0, 0) != LUA_OK) lua_pop(L, 1);
    h->runner = NULL;
    return h->seen.allocations > 0;
}

static void put_in(lua_State *L, hook *h) {
    if (h->hooked && (is_on_top(L, h) || is_passed_through(L, h))) return;
    h->before = lua_getallocf(L, &h->before_user);
    lua_setallocf(L, pass_on, h);
    h->hooked = 1;
}

void ct__lua_allocations_tidy(lua_State *L) {
    hook *h = find_owner(L)->hook;
    if (h != NULL && !h->runs) unhook(L, h);
}

lua_State *ct__lua_allocations_hold(lua_State *L) {
    hook *h = find_owner(L)->hook;
    lua_State *runner = h != NULL ? h->runner : NULL;
    if (runner != NULL) h->runner = NULL;
    return runner;
}

void ct__lua_allocations_release(lua_State *L, lua_State *runner) {
    if (runner != NULL) find_owner(L)->hook->runner = runner;
}

/* ---- the pass ---- */

static memory_pass *check_pass(lua_State *L) {
    memory_pass *pass = luaL_checkudata(L, PASS, PASS_TYPE);
    if (pass->hook == NULL) luaL_error(L, "the memory pass has been ended from outside");
    return pass;
}

static void begin_call(lua_State *L, memory_pass *pass) {
    hook *h = pass->hook;
    pass->before = h->seen;
    h->in_use = 0;
    h->may_yield = lua_isyieldable(L);
    h->runner = L;
}

/* Stops the collector, if all calls together can do without. */
static void stop_collector(lua_State *L, memory_pass *pass) {
    const uint64_t bytes = pass->hook->seen.allocated_bytes;
    if (lua_isyieldable(L) || bytes > uncollected_bytes) return;
    if (bytes > 0 && pass->calls > uncollected_bytes / bytes) pass->calls = uncollected_bytes / bytes;
    pass->stopped = lua_gc(L, LUA_GCISRUNNING, 0) == 1;
    if (pass->stopped) lua_gc(L, LUA_GCSTOP, 0);
}

static void end_call(lua_State *L, memory_pass *pass) {
    pass->hook->runner = NULL;
    if (pass->uncounted == 0) {
        pass->made++;
        return;
    }
    if (pass->uncounted-- == UNCOUNTED) stop_collector(L, pass);
    if (!pass->stopped) pass->uncounted = 0;
    pass->hook->seen = (requests){0};
}

static void tell_result(lua_State *L, int index, const memory_pass *pass) {
    const requests *seen = pass->made == pass->calls ? &pass->hook->seen : &pass->before;
    ct_memory_kind kinds[KINDS];
    for (size_t i = 0; i < KINDS; i++) kinds[i] = (ct_memory_kind){labels[i], seen->kinds[i]};
    const ct_memory memory = {.calls = pass->made,
                              .allocations = seen->allocations,
                              .reallocations = seen->reallocations,
                              .frees = seen->frees,
                              .allocated_bytes = seen->allocated_bytes,
                              .peak_bytes = (uint64_t)seen->peak,
                              .kinds_count = KINDS,
                              .kinds = kinds,
                              .reason = pass->made > 0 ? NULL : "the first call of the memory pass did not return"};
    lua_getiuservalue(L, index, PASS_RESULT);
    (void)ct_result_set_memory(ct__lua_find_result(L, -1), &memory);
    lua_pop(L, 1);
}

/* __close and __gc: once, however the pass ends. */
static int end_pass(lua_State *L) {
    memory_pass *pass = luaL_checkudata(L, 1, PASS_TYPE);
    hook *h = pass->hook;
    if (h == NULL || find_owner(L)->hook != h) return 0;
    h->runner = NULL;
    unhook(L, h);
    h->runs = 0;
    if (pass->stopped) lua_gc(L, LUA_GCRESTART, 0);
    tell_result(L, 1, pass);
    pass->hook = NULL;
    return 0;
}

static int call_counted(lua_State *L, int status, lua_KContext context) {
    memory_pass *pass = check_pass(L);
    if (status != LUA_OK) end_call(L, pass);
    while (pass->made < pass->calls) {
        lua_pushvalue(L, FN);
        begin_call(L, pass);
        lua_callk(L, 0, 0, context, call_counted);
        pass = check_pass(L);
        end_call(L, pass);
    }
    return 0;
}

/* Why there can be no pass, or NULL and a hook. */
static const char *prepare(hook_owner *owner) {
    if (owner->closing) return "the state is being closed";
    if (owner->hook == NULL) owner->hook = calloc(1, sizeof *owner->hook);
    if (owner->hook == NULL) return "there is no memory for it";
    return owner->hook->runs ? "another memory pass is running" : NULL;
}

static memory_pass *new_pass(lua_State *L, uint64_t calls) {
    memory_pass *pass = lua_newuserdatauv(L, sizeof *pass, PASS_VALUES);
    *pass = (memory_pass){.calls = calls, .uncounted = calls > 1 ? UNCOUNTED : 0};
    luaL_setmetatable(L, PASS_TYPE);
    lua_pushvalue(L, RESULT);
    lua_setiuservalue(L, PASS, PASS_RESULT);
    lua_pushthread(L);
    lua_setiuservalue(L, PASS, PASS_RUNNER);
    lua_toclose(L, PASS);
    return pass;
}

int ct__lua_count_allocations(lua_State *L) {
    ct_result *result = ct__lua_check_result(L, RESULT);
    hook_owner *owner = find_owner(L);
    ct_memory nothing = {.reason = prepare(owner)};
    const uint64_t calls = ct_result_memory_calls(result);
    if (nothing.reason == NULL && calls == 0) nothing.reason = "there was no call";
    if (nothing.reason != NULL) {
        (void)ct_result_set_memory(result, &nothing);
        return 0;
    }
    memory_pass *pass = new_pass(L, calls);
    lua_gc(L, LUA_GCCOLLECT, 0);
    put_in(L, owner->hook);
    pass->hook = owner->hook;
    pass->hook->runs = 1;
    pass->hook->seen = (requests){0};
    return call_counted(L, LUA_OK, 0);
}

/* lua_close has begun. A hook that is still in, below another one, is needed for as long as that is there. */
static int close_owner(lua_State *L) {
    hook_owner *owner = find_owner(L);
    if (owner == NULL || lua_touserdata(L, 1) != owner) return 0; /* called by hand */
    owner->closing = 1;
    if (owner->hook == NULL) return 0;
    owner->hook->runner = NULL;
    unhook(L, owner->hook);
    if (!owner->hook->hooked) free(owner->hook);
    owner->hook = NULL;
    return 0;
}

void ct__lua_allocations_open(lua_State *L) {
    static const luaL_Reg functions[] = {{"__close", end_pass}, {"__gc", end_pass}, {NULL, NULL}};
    static const luaL_Reg closer[] = {{"__gc", close_owner}, {NULL, NULL}};
    ct__lua_new_type(L, PASS_TYPE, functions);
    if (find_owner(L) != NULL) return;
    hook_owner *owner = lua_newuserdatauv(L, sizeof *owner, 0);
    *owner = (hook_owner){0};
    luaL_newlib(L, closer);
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &owner_key);
}
