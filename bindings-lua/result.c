/* SPDX-License-Identifier: MIT
 *
 * result.c: codetimer.Result, a C result seen from Lua. A result is read only: each field is made from the C struct
 * when it is asked for, so a result of ten million calls is as small as one of a thousand.
 */
#include "common.h"

#define RESULT_TYPE "codetimer.Result"

static const char last_key = 0; /* the last result, or false */

/* ---- fields: each pushes one value; an absent fact is nil (lua_pushstring makes nil of NULL) ---- */

static void push_array(lua_State *L, const uint64_t *values, size_t count) {
    lua_createtable(L, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        lua_pushinteger(L, (lua_Integer)values[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

static void push_texts(lua_State *L, const char *const *texts, size_t count) {
    lua_createtable(L, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        lua_pushstring(L, texts[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

static void push_name(lua_State *L, const ct_result *r) { lua_pushlstring(L, r->name, r->name_length); }
static void push_n(lua_State *L, const ct_result *r) { lua_pushinteger(L, (lua_Integer)r->n); }
static void push_calls(lua_State *L, const ct_result *r) { lua_pushinteger(L, (lua_Integer)r->calls); }
static void push_elapsed_ns(lua_State *L, const ct_result *r) { lua_pushinteger(L, (lua_Integer)r->elapsed_ns); }
static void push_batches_ns(lua_State *L, const ct_result *r) { push_array(L, r->batches_ns, r->batches); }
static void push_batches_calls(lua_State *L, const ct_result *r) { push_array(L, r->batches_calls, r->batches); }
static void push_kind(lua_State *L, const ct_result *r) { lua_pushstring(L, ct_cycles_kind_name(r->cycles_kind)); }
static void push_source(lua_State *L, const ct_result *r) { lua_pushstring(L, r->cycles_source); }
static void push_reason(lua_State *L, const ct_result *r) { lua_pushstring(L, r->cycles_reason); }
static void push_collections(lua_State *L, const ct_result *r) { push_array(L, r->gc_collections, r->gc_generations); }
static void push_labels(lua_State *L, const ct_result *r) { push_texts(L, r->gc_labels, r->gc_generations); }
static void push_interrupted(lua_State *L, const ct_result *r) { lua_pushstring(L, r->interrupted); }
static void push_notes(lua_State *L, const ct_result *r) { push_texts(L, r->notes, r->notes_count); }
static void push_priority(lua_State *L, const ct_result *r) { lua_pushstring(L, r->priority); }
static void push_clock(lua_State *L, const ct_result *r) { lua_pushstring(L, r->clock); }

static void push_per_call_ns(lua_State *L, const ct_result *r) {
    if (r->per_call_known)
        lua_pushnumber(L, r->per_call_ns);
    else
        lua_pushnil(L);
}

static void push_cycles(lua_State *L, const ct_result *r) {
    if (r->cycles_kind != CT_CYCLES_NONE)
        lua_pushinteger(L, (lua_Integer)r->cycles);
    else
        lua_pushnil(L);
}

/* In the order of the C struct. */
static const struct {
    const char *name;
    void (*push)(lua_State *L, const ct_result *r);
} fields[] = {
    {"name", push_name},
    {"n", push_n},
    {"calls", push_calls},
    {"elapsed_ns", push_elapsed_ns},
    {"per_call_ns", push_per_call_ns},
    {"batches_ns", push_batches_ns},
    {"batches_calls", push_batches_calls},
    {"cycles", push_cycles},
    {"cycles_kind", push_kind},
    {"cycles_source", push_source},
    {"cycles_reason", push_reason},
    {"gc_collections", push_collections},
    {"gc_labels", push_labels},
    {"interrupted", push_interrupted},
    {"notes", push_notes},
    {"priority", push_priority},
    {"clock", push_clock},
};

enum { FIELDS = sizeof fields / sizeof fields[0] };

/* ---- the userdata ---- */

ct_result **ct__lua_new_result(lua_State *L) {
    ct_result **box = lua_newuserdatauv(L, sizeof *box, 0);
    *box = NULL;
    luaL_setmetatable(L, RESULT_TYPE);
    return box;
}

ct_result *ct__lua_check_result(lua_State *L, int index) {
    ct_result **box = luaL_checkudata(L, index, RESULT_TYPE);
    if (*box == NULL) luaL_argerror(L, index, "the result has been freed");
    return *box;
}

ct_result **ct__lua_test_result(lua_State *L, int index) { return luaL_testudata(L, index, RESULT_TYPE); }

static int result_to_dict(lua_State *L) {
    const ct_result *result = ct__lua_check_result(L, 1);
    lua_createtable(L, 0, FIELDS);
    for (int i = 0; i < FIELDS; i++) {
        fields[i].push(L, result);
        lua_setfield(L, -2, fields[i].name);
    }
    return 1;
}

static int result_index(lua_State *L) {
    const ct_result *result = ct__lua_check_result(L, 1);
    for (int i = 0; i < FIELDS; i++) {
        if (!ct__lua_is(L, 2, fields[i].name)) continue;
        fields[i].push(L, result);
        return 1;
    }
    if (!ct__lua_is(L, 2, "to_dict")) return 0;
    lua_pushcfunction(L, result_to_dict);
    return 1;
}

static int result_tostring(lua_State *L) {
    ct__lua_push_report(L, 1, 0);
    return 1;
}

static int result_gc(lua_State *L) {
    ct_result **box = luaL_checkudata(L, 1, RESULT_TYPE);
    ct_result_free(*box);
    *box = NULL;
    return 0;
}

/* The buffer may set off a finalizer, and that could free the result. */
void ct__lua_push_report(lua_State *L, int index, int color) {
    ct_report_options options = {.size = sizeof options, .color = color, .ascii = ct_report_ascii()};
    luaL_Buffer buffer;
    index = lua_absindex(L, index);
    size_t length = ct_report_format(ct__lua_check_result(L, index), &options, NULL, 0);
    char *text = luaL_buffinitsize(L, &buffer, length + 1);
    ct_report_format(ct__lua_check_result(L, index), &options, text, length + 1);
    luaL_pushresultsize(&buffer, length);
}

/* ---- last_result ---- */

void ct__lua_set_last_result(lua_State *L, int index) {
    lua_pushvalue(L, index);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &last_key); /* the key exists: nothing is allocated */
}

int ct__lua_last_result(lua_State *L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &last_key);
    if (!lua_toboolean(L, -1)) lua_pushnil(L);
    return 1;
}

void ct__lua_result_open(lua_State *L) {
    static const luaL_Reg functions[] = {
        {"__index", result_index}, {"__tostring", result_tostring}, {"__gc", result_gc}, {NULL, NULL}};
    ct__lua_new_type(L, RESULT_TYPE, functions);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &last_key) == LUA_TNIL) {
        lua_pushboolean(L, 0);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &last_key);
    }
    lua_pop(L, 1);
}
