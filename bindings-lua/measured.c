/* SPDX-License-Identifier: MIT
 *
 * measured.c: measured(fn), the wrapper that counts.
 *
 * The wrapper is a Lua function, so fn may yield, recurse deeply, and be seen in tracebacks. What ends a call in every
 * case is a to-be-closed variable: its value, a token, is a userdata whose __close counts the call. Each wrapper has one C
 * closure, the gate, which is both: called without arguments it begins a call and returns a token, called as __close it
 * ends one. Its first upvalue is the spare token; a call in a call finds none and takes another, and tokens that come back
 * while there is a spare are chained to it. So calls allocate nothing once as many tokens exist as calls were under way.
 *
 * A call has returned if its token is closed from the very frame in which it was begun. Otherwise it failed (there is an
 * error), or it was cancelled: the coroutine or the state was closed, or the collector found the token, since nobody ever
 * will resume or close that coroutine.
 *
 * Invariant: a token is "active" from its begin to its one end; it is reachable from the gate exactly while it is not, so
 * that the collector can find the active ones that are lost.
 */
#include "counters.h"

static const char wrapper_code[] = "local gate, fn = ...\n"
                                   "return function(...)\n"
                                   "    local token <close> = gate()\n"
                                   "    return fn(...)\n"
                                   "end\n";

static const char factory_key = 0; /* the compiled chunk in the registry */

enum { SPARES_MOST = 1000 }; /* tokens that a wrapper keeps after deep recursion */
enum { GATE_UPVALUE = 1, FN_UPVALUE }; /* of the wrapper, in the order of their first use */

/* Upvalues of the gate. The last does not exist: reading it gives nil. */
enum { SPARE = 1, COUNTER, TOKEN_TYPE, GATE_VALUES = TOKEN_TYPE, NOTHING };

typedef struct token {
    ct__lua_counter *counter; /* alive while the token's metatable is */
    const void *frame;        /* of the wrapper that began the call, or &unusual */
    const void *traced_frame; /* the frame of a call that is traced; else NULL */
    int active;
    int chained; /* its user value is another spare token */
    ct_token call;
} token;

static const char unusual = 0; /* its address is no frame: what has it ends by the slow path */

/* ---- the usual way: a spare token at the begin, none at the end, a return in between ---- */

/* What identifies a frame: the record that Lua keeps of a call. It is compared, never looked into. */
static inline const void *calling_frame(lua_State *L) {
    lua_Debug frame;
    return lua_getstack(L, 1, &frame) ? (const void *)frame.i_ci : NULL;
}

static int begin_unusually(lua_State *L);
static int end_unusually(lua_State *L, token *t);
static void chain_token(lua_State *L, token *t);

static inline int begin_call(lua_State *L) {
    token *t = lua_touserdata(L, lua_upvalueindex(SPARE));
    if (t == NULL || t->chained || !t->counter->plain) return begin_unusually(L);
    lua_pushvalue(L, lua_upvalueindex(SPARE));
    lua_copy(L, lua_upvalueindex(NOTHING), lua_upvalueindex(SPARE));
    t->frame = calling_frame(L);
    t->active = 1;
    ct_enter(t->counter->handle, &t->call);
    return 1;
}

/* __close(token, error) */
static inline int end_call(lua_State *L, token *t) {
    if (t->frame == calling_frame(L) && t->counter->handle != NULL) {
        ct_leave(t->counter->handle, &t->call, CT_RETURNED);
        t->active = 0;
    } else if (!end_unusually(L, t))
        return 0;
    if (lua_isnil(L, lua_upvalueindex(SPARE)))
        lua_copy(L, 1, lua_upvalueindex(SPARE));
    else
        chain_token(L, t);
    return 0;
}

static int gate(lua_State *L) {
    token *t = lua_touserdata(L, 1);
    return t == NULL ? begin_call(L) : end_call(L, t);
}

/* ---- beginning without a spare token, with more than one, with a trace ---- */

/* new_token(metatable, counter) */
static int new_token(lua_State *L) {
    token *t = lua_newuserdatauv(L, sizeof *t, 1);
    *t = (token){.counter = lua_touserdata(L, 2)};
    lua_pushvalue(L, 1);
    lua_setmetatable(L, -2);
    return 1;
}

/* Pushes a token; returns NULL if there is no memory for one: then this call is not measured. */
static token *make_token(lua_State *L) {
    lua_pushcfunction(L, new_token);
    lua_pushvalue(L, lua_upvalueindex(TOKEN_TYPE));
    lua_pushvalue(L, lua_upvalueindex(COUNTER));
    return lua_pcall(L, 2, 1, 0) == LUA_OK ? lua_touserdata(L, -1) : NULL;
}

/* Pushes the spare token; what was chained to it is the spare one now. */
static token *take_spare(lua_State *L) {
    token *t = lua_touserdata(L, lua_upvalueindex(SPARE));
    lua_pushvalue(L, lua_upvalueindex(SPARE));
    if (!t->chained) {
        lua_copy(L, lua_upvalueindex(NOTHING), lua_upvalueindex(SPARE));
        return t;
    }
    lua_getiuservalue(L, -1, 1);
    lua_replace(L, lua_upvalueindex(SPARE));
    lua_pushnil(L);
    lua_setiuservalue(L, -2, 1);
    t->chained = 0;
    t->counter->spares--;
    return t;
}

/* Returns nothing, a value that need not be closed, if the call is not measured. */
static int begin_unusually(lua_State *L) {
    ct__lua_counter *counter = lua_touserdata(L, lua_upvalueindex(COUNTER));
    if (counter->handle == NULL) return 0;
    token *t = lua_isnil(L, lua_upvalueindex(SPARE)) ? make_token(L) : take_spare(L);
    if (t == NULL) return 0;
    t->traced_frame = counter->plain ? NULL : calling_frame(L);
    t->frame = counter->plain ? calling_frame(L) : &unusual;
    t->active = 1;
    ct_enter(counter->handle, &t->call);
    return 1;
}

/* ---- ending otherwise than by a return ---- */

static int is_under_way(lua_State *L, const void *frame) {
    enum { LEVELS = 200 }; /* enough for who closes the state; each step costs as many as there are before it */
    lua_Debug at;
    for (int level = 1; level < LEVELS && lua_getstack(L, level, &at); level++)
        if ((const void *)at.i_ci == frame) return 1;
    return 0;
}

/* Without an error value it takes a look at the stack: nothing is left of it when a coroutine is closed, all of it when
 * the state is closed from within the call (or nothing, depending on the version of Lua); else it was error(nil). */
static int find_outcome(lua_State *L, const token *t) {
    const void *frame = t->traced_frame != NULL ? t->traced_frame : t->frame, *now = calling_frame(L);
    if (frame == now) return CT_RETURNED;
    if (!lua_isnoneornil(L, 2)) return CT_FAILED;
    return now == NULL || is_under_way(L, frame) ? CT_CANCELLED : CT_FAILED;
}

static void end_active(token *t, int outcome) {
    if (t->active && t->counter->handle != NULL) ct_leave(t->counter->handle, &t->call, outcome);
    t->active = 0;
}

/* Returns 0 if the token must not be used again: it has been finalized, and Lua does that once. */
static int end_unusually(lua_State *L, token *t) {
    if (!t->active) return 0;
    int traced = t->traced_frame != NULL && t->counter->handle != NULL;
    end_active(t, find_outcome(L, t));
    if (traced) ct__lua_trace(L, "increment", t->counter->handle);
    return 1;
}

/* The token becomes the spare one, with the former chained to it; beyond the limit it is left to the collector. */
static void chain_token(lua_State *L, token *t) {
    if (t->counter->spares >= SPARES_MOST) return;
    lua_pushvalue(L, lua_upvalueindex(SPARE));
    lua_setiuservalue(L, 1, 1);
    lua_copy(L, 1, lua_upvalueindex(SPARE));
    t->chained = 1;
    t->counter->spares++;
}

/* A token that the collector found active belongs to a coroutine that is lost. Should a finalizer run that coroutine
 * once more, "frame" sends the token's end to where "active" is asked for. */
static int token_gc(lua_State *L) {
    token *t = lua_touserdata(L, 1);
    end_active(t, CT_CANCELLED);
    t->frame = &unusual;
    return 0;
}

/* ---- wrapping ---- */

/* Is it a wrapper of ours? If so, pushes the original. */
static int push_original(lua_State *L, int index) {
    if (!lua_isfunction(L, index) || lua_iscfunction(L, index)) return 0;
    if (lua_getupvalue(L, index, GATE_UPVALUE) == NULL) return 0;
    int ours = lua_tocfunction(L, -1) == gate;
    lua_pop(L, 1);
    return ours && lua_getupvalue(L, index, FN_UPVALUE) != NULL;
}

/* Pushes the metatable of the tokens of a gate, and the gate. */
static void push_gate(lua_State *L, int counter) {
    lua_createtable(L, 0, 2);
    lua_pushcfunction(L, token_gc);
    lua_setfield(L, -2, "__gc");
    lua_pushnil(L);
    lua_pushvalue(L, counter);
    lua_pushvalue(L, -3);
    lua_pushcclosure(L, gate, GATE_VALUES);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "__close");
}

enum { FN = 1, NAME, CATEGORY, HELP };

/* wrap(fn, name, category, help) returns the wrapper, or the status that stands against it. */
static int wrap(lua_State *L) {
    ct__lua_names names;
    if (lua_isnil(L, NAME)) {
        ct__lua_push_default_name(L, FN);
        lua_replace(L, NAME);
    }
    ct__lua_get_names(L, NAME, &names);
    int status = ct__lua_open_counter(L, &names);
    if (status < 0) {
        if (status != CT_EINVAL) ct__lua_trace_refused(L, status, names.member);
        lua_pushinteger(L, status);
        return 1;
    }
    int counter = lua_gettop(L);
    ct__lua_trace_opened(L, status, ct__lua_check_counter(L, counter)->handle);
    push_gate(L, counter);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &factory_key);
    lua_insert(L, -2);
    lua_pushvalue(L, FN);
    lua_call(L, 2, 1);
    return 1;
}

/* Brings (name, fn) into the order (fn, name); returns the number of the argument that is the name. */
static int order_arguments(lua_State *L) {
    int name_first = lua_type(L, FN) == LUA_TSTRING;
    lua_settop(L, CATEGORY);
    if (!name_first) return 2;
    lua_pushvalue(L, FN);
    lua_copy(L, NAME, FN);
    lua_replace(L, NAME);
    return 1;
}

int ct__lua_measured(lua_State *L) {
    int name_arg = order_arguments(L);
    ct__lua_check_callable(L, name_arg == 1 ? 2 : 1, FN);
    if (push_original(L, FN)) {
        lua_pushvalue(L, FN);
        return 1;
    }
    ct__lua_check_names(L, name_arg, NAME);
    if (lua_isnil(L, NAME)) ct__lua_check_nameable(L, 1, FN);
    lua_pushcfunction(L, wrap);
    for (int i = FN; i <= HELP; i++) lua_pushvalue(L, i);
    int status = lua_pcall(L, HELP, 1, 0);
    if (status != LUA_OK && status != LUA_ERRMEM) return lua_error(L);
    if (status == LUA_OK && lua_isfunction(L, -1)) return 1;
    if (status == LUA_OK && lua_tointeger(L, -1) == CT_EINVAL)
        return ct__lua_refuse_name(L, name_arg, lua_tostring(L, NAME));
    if (status == LUA_ERRMEM) ct__lua_trace_refused(L, CT_ENOMEM, lua_tostring(L, NAME));
    lua_pushvalue(L, FN);
    return 1;
}

int ct__lua_unwrap(lua_State *L) {
    luaL_checkany(L, 1);
    if (!push_original(L, 1)) lua_pushvalue(L, 1);
    return 1;
}

void ct__lua_measured_open(lua_State *L) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &factory_key) == LUA_TNIL) {
        if (luaL_loadbufferx(L, wrapper_code, sizeof wrapper_code - 1, "=codetimer", "t") != LUA_OK) lua_error(L);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &factory_key);
    }
    lua_settop(L, 0);
}
