/* SPDX-License-Identifier: MIT
 *
 * gate.c: the gate of a measured function, and its tokens: one measured call.
 *
 * A call is ended in every case by a to-be-closed variable: its value, a token, is a userdata whose __close counts the
 * call. The token comes from the gate, a C closure of the wrapper's own that keeps one token for the usual case and a
 * chain of others, for calls within calls and in coroutines. So calls allocate nothing once as many tokens exist as
 * calls were under way.
 *
 * A call has returned if its token is closed from the very frame in which it was begun. Otherwise it failed (there is
 * an error), or it was cancelled: the coroutine or the state was closed, or the collector found the token, since nobody
 * will ever resume or close that coroutine. In the main thread no call is lost, so there the gate keeps its token
 * meanwhile.
 *
 * Lua tells nobody when a coroutine waits. So a call that can yield counts without its active time; one that cannot,
 * because it is in the main thread or within a C function that does not let it, was active all the time.
 *
 * The gate is also where this state comes awake: every so many calls, switched off or on, it looks at the clock, and
 * polls when that is due.
 *
 * Invariant: a token is "active" from its begin to its one end. While it is active, nothing but the stack refers to it,
 * unless it is "kept"; otherwise the gate does.
 *
 * With the debug library anybody can get at the gate, its upvalues and the metatable, and put any value there. So what
 * should be a token is looked at before it is believed; what is none raises an error, or is passed over.
 */
#include "counters.h"

static const char token_key = 0; /* the metatable of tokens */

enum { POOL_MOST = 1000 }; /* tokens that a gate keeps after deep recursion */
enum { TOKEN_NEXT = 1, TOKEN_GATE, TOKEN_COUNTER, TOKEN_VALUES = TOKEN_COUNTER }; /* user values of a token */

/* Upvalues of the gate. The last does not exist: reading it gives nil. */
enum { GATE_TOKEN = 1, GATE_POOL, GATE_COUNTER, GATE_VALUES = GATE_COUNTER, NOTHING };

/* A spent token has been finalized. It is not used again, since Lua finalizes only once. */
enum { IDLE, ACTIVE, SPENT };

typedef struct token {
    const void *mark;         /* tells a token from the userdata of others */
    ct__lua_counter *counter; /* alive by the user value */
    const void *frame;        /* of the wrapper that began the call, or &unusual */
    const void *traced_frame; /* the frame of a call that is traced; else NULL */
    int use;                  /* IDLE, ACTIVE, SPENT */
    int kept;                 /* the gate refers to it while it is active */
    int own;                  /* its place is the gate's own, not the pool */
    int open;                 /* the call can yield: how much of it is active nobody can tell */
    ct_token call;
} token;

/* The clock is looked at after so many calls at the most, and sooner where so much time has gone by since. */
enum { CALLS_MOST = 64, LOOK_NS = 20000000, POLL_NS = 250000000 };

static const char unusual = 0; /* its address is no frame: what has it ends by the slow path */

/* ---- the usual way: the gate's own token, in the main thread, and a return ---- */

/* The token at "index", or NULL: where the size is right there is room for a mark, and nothing in Lua writes one. */
static inline token *to_token(lua_State *L, int index) {
    if (lua_rawlen(L, index) != sizeof(token)) return NULL;
    token *t = lua_touserdata(L, index);
    return t != NULL && t->mark == &token_key ? t : NULL;
}

static inline const void *calling_frame(lua_State *L) {
    lua_Debug frame;
    return ct__lua_calling_frame(L, &frame);
}

/* For the compiler only: the usual way is laid out straight and keeps no register for the others. */
#define RARELY(condition) __builtin_expect(!!(condition), 0)
#define APART             __attribute__((noinline, cold))

APART static int begin_unusually(lua_State *L);
APART static int end_unusually(lua_State *L, token *t);
static int give_back(lua_State *L, token *t);

/* Pushes the gate's own token for a call in this frame. */
static inline void push_own_token(lua_State *L, token *t) {
    lua_pushvalue(L, lua_upvalueindex(GATE_TOKEN));
    t->kept = L == t->counter->owner->main_thread;
    if (!t->kept) lua_copy(L, lua_upvalueindex(NOTHING), lua_upvalueindex(GATE_TOKEN));
    t->open = !t->kept && lua_isyieldable(L);
    t->frame = calling_frame(L);
    t->use = ACTIVE;
}

/* Whether the latest call with this token was begun while the counter was switched on. */
static inline int counts(const token *t) { return (int)(t->call.state & 1); }

/* The gate: begins a call and returns its token; or nothing, which need not be closed, while the counter is switched
 * off. What to expect is told by the call before. One that counts is entered last: its time is without our work. */
static int begin_call(lua_State *L) {
    token *t = to_token(L, lua_upvalueindex(GATE_TOKEN));
    if (RARELY(t == NULL || t->use != IDLE || --t->counter->until_look < 0)) return begin_unusually(L);
    if (!counts(t)) {
        ct_enter(t->counter->handle, &t->call);
        if (!counts(t)) return 0;
        push_own_token(L, t);
        return 1;
    }
    push_own_token(L, t);
    ct_enter(t->counter->handle, &t->call);
    return 1;
}

/* A call that can yield counts in another way than one that cannot. */
static inline int64_t leave(token *t, int outcome) {
    if (RARELY(t->open)) return ct_leave_active(t->counter->handle, &t->call, NULL, outcome);
    return ct_leave(t->counter->handle, &t->call, outcome);
}

/* __close(token, error) */
static int end_call(lua_State *L) {
    token *t = to_token(L, 1);
    if (RARELY(t == NULL || t->use != ACTIVE || t->frame != calling_frame(L) || t->counter->handle == NULL))
        return end_unusually(L, t);
    leave(t, CT_RETURNED);
    t->use = IDLE;
    return t->kept ? 0 : give_back(L, t);
}

/* ---- looking at the clock ---- */

/* Where calls come quickly few of them look; one that comes after a long time looks at once. While increments are
 * traced every call does. */
static void look(lua_State *L, ct__lua_counter *counter) {
    ct__lua_counters *owner = counter->owner;
    uint64_t now = ct_now_ns();
    counter->look_every = now - counter->looked_ns > LOOK_NS ? 1 : counter->look_every * 2;
    if (counter->look_every > CALLS_MOST) counter->look_every = CALLS_MOST;
    counter->looked_ns = now;
    counter->until_look = counter->plain ? counter->look_every : 0;
    if (now - owner->polled_ns < POLL_NS) return;
    owner->polled_ns = now;
    ct__lua_poll_now(L, owner);
}

/* ---- beginning in a call or in a coroutine, or with a trace ---- */

/* new_token(gate, counter) */
static int new_token(lua_State *L) {
    ct__lua_counter *counter = ct__lua_to_counter(L, 2);
    if (counter == NULL) return 0;
    token *t = lua_newuserdatauv(L, sizeof *t, TOKEN_VALUES);
    *t = (token){.mark = &token_key, .counter = counter, .own = !counter->owned};
    counter->owned = 1;
    lua_pushvalue(L, 2);
    lua_setiuservalue(L, -2, TOKEN_COUNTER);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, TOKEN_GATE);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &token_key);
    lua_setmetatable(L, -2);
    return 1;
}

/* Pushes a token; returns NULL if there is no memory for one: then this call is not measured. */
static token *make_token(lua_State *L) {
    lua_Debug gate;
    lua_pushcfunction(L, new_token);
    lua_getstack(L, 0, &gate);
    lua_getinfo(L, "f", &gate);
    lua_pushvalue(L, lua_upvalueindex(GATE_COUNTER));
    return lua_pcall(L, 2, 1, 0) == LUA_OK ? to_token(L, -1) : NULL;
}

/* Pushes the first token of the pool. What is none empties the pool: the rest of it is not known. */
static token *take_pooled(lua_State *L) {
    token *t = to_token(L, lua_upvalueindex(GATE_POOL));
    lua_pushvalue(L, lua_upvalueindex(GATE_POOL));
    if (t == NULL) {
        lua_copy(L, lua_upvalueindex(NOTHING), lua_upvalueindex(GATE_POOL));
        return NULL;
    }
    lua_getiuservalue(L, -1, TOKEN_NEXT);
    lua_replace(L, lua_upvalueindex(GATE_POOL));
    lua_pushnil(L);
    lua_setiuservalue(L, -2, TOKEN_NEXT);
    t->counter->pooled--;
    return t;
}

/* Pushes an idle token that the gate does not refer to any more. */
static token *take_token(lua_State *L) {
    token *t = to_token(L, lua_upvalueindex(GATE_TOKEN));
    if (t != NULL && t->use == IDLE) {
        lua_pushvalue(L, lua_upvalueindex(GATE_TOKEN));
        lua_copy(L, lua_upvalueindex(NOTHING), lua_upvalueindex(GATE_TOKEN));
        return t;
    }
    while (!lua_isnil(L, lua_upvalueindex(GATE_POOL))) {
        t = take_pooled(L);
        if (t != NULL && t->use == IDLE) return t;
        lua_pop(L, 1);
    }
    return make_token(L);
}

/* Returns nothing, a value that need not be closed, if the call is not measured. */
static int begin_unusually(lua_State *L) {
    ct__lua_counter *counter = ct__lua_to_counter(L, lua_upvalueindex(GATE_COUNTER));
    if (counter != NULL && --counter->until_look < 0) {
        look(L, counter); /* may run anything, by a finalizer or a trace, also this gate */
        if (counter->until_look > 0) return begin_call(L);
    }
    token *t = counter != NULL && counter->handle != NULL ? take_token(L) : NULL;
    if (t == NULL || t->counter != counter) return 0;
    t->traced_frame = counter->plain ? NULL : calling_frame(L);
    t->frame = counter->plain ? calling_frame(L) : &unusual;
    t->kept = 0;
    t->open = lua_isyieldable(L);
    t->use = ACTIVE;
    ct_enter(counter->handle, &t->call);
    return 1;
}

/* ---- ending otherwise than by a return ---- */

/* Without an error value the stack tells: nothing is left of it when the coroutine or the state is closed (or when
 * error(nil) has ended the coroutine, which looks the same); otherwise it was error(nil). */
static int find_outcome(lua_State *L, const token *t) {
    const void *frame = t->traced_frame != NULL ? t->traced_frame : t->frame, *now = calling_frame(L);
    if (frame == now) return CT_RETURNED;
    if (!lua_isnoneornil(L, 2)) return CT_FAILED;
    return now == NULL ? CT_CANCELLED : CT_FAILED;
}

/* Returns the duration that was counted, or -1. */
static int64_t end_active(token *t, int outcome) {
    int counts = t->use == ACTIVE && t->counter->handle != NULL;
    t->use = IDLE;
    return counts ? leave(t, outcome) : -1;
}

static int end_unusually(lua_State *L, token *t) {
    if (t == NULL) return luaL_typeerror(L, 1, "token of a measured function");
    if (t->use != ACTIVE) return 0;
    int64_t duration_ns = end_active(t, find_outcome(L, t));
    if (t->traced_frame != NULL && duration_ns >= 0) ct__lua_trace_increment(L, t->counter->handle, duration_ns);
    return t->kept ? 0 : give_back(L, t);
}

/* Pushes the gate of a token; returns 0 if it has lost it. */
static int push_gate_of(lua_State *L) {
    lua_getiuservalue(L, 1, TOKEN_GATE);
    return lua_tocfunction(L, -1) == begin_call;
}

/* Beyond the limit a token is left to the collector. Allocates nothing. */
static int give_to_pool(lua_State *L, token *t) {
    if (t->counter->pooled >= POOL_MOST || !push_gate_of(L)) return 0;
    t->counter->pooled++;
    lua_getupvalue(L, -1, GATE_POOL);
    lua_setiuservalue(L, 1, TOKEN_NEXT);
    lua_pushvalue(L, 1);
    lua_setupvalue(L, -2, GATE_POOL);
    return 0;
}

static int give_back(lua_State *L, token *t) {
    if (!t->own) return give_to_pool(L, t);
    if (!push_gate_of(L)) return 0;
    lua_pushvalue(L, 1);
    lua_setupvalue(L, -2, GATE_TOKEN);
    return 0;
}

/* A token that the collector found active belongs to a coroutine that is lost. Should a finalizer run that coroutine
 * once more, "frame" sends the token's end to where "use" is asked for. */
static int token_gc(lua_State *L) {
    token *t = to_token(L, 1);
    if (t == NULL) return luaL_typeerror(L, 1, "token of a measured function");
    end_active(t, CT_CANCELLED);
    t->use = SPENT;
    t->frame = &unusual;
    if (t->own) t->counter->owned = 0;
    return 0;
}

/* ---- making ---- */

static int begin_nothing(lua_State *L) {
    (void)L;
    return 0;
}

int ct__lua_is_gate(lua_State *L, int index) {
    lua_CFunction function = lua_tocfunction(L, index);
    return function == begin_call ? CT__LUA_GATE : function == begin_nothing ? CT__LUA_GATE_RETIRED : 0;
}

int ct__lua_push_gate_key(lua_State *L, int index) {
    if (ct__lua_is_gate(L, index) != CT__LUA_GATE || lua_getupvalue(L, index, GATE_COUNTER) == NULL) return 0;
    const ct__lua_counter *counter = ct__lua_to_counter(L, -1);
    if (counter == NULL || counter->handle == NULL) return 0;
    ct__lua_push_key(L, counter->handle);
    return 1;
}

void ct__lua_push_retired_gate(lua_State *L) { lua_pushcfunction(L, begin_nothing); }

void ct__lua_push_gate(lua_State *L, int counter) {
    lua_pushnil(L);
    lua_pushnil(L);
    lua_pushvalue(L, counter);
    lua_pushcclosure(L, begin_call, GATE_VALUES);
    lua_pushcfunction(L, new_token);
    lua_pushvalue(L, -2);
    lua_pushvalue(L, counter);
    lua_call(L, 2, 1);
    lua_setupvalue(L, -2, GATE_TOKEN);
}

void ct__lua_gate_open(lua_State *L) {
    static const luaL_Reg functions[] = {{"__close", end_call}, {"__gc", token_gc}, {NULL, NULL}};
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &token_key) == LUA_TNIL) {
        luaL_newlib(L, functions);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &token_key);
    }
    lua_pop(L, 1);
}
