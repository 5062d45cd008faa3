/* SPDX-License-Identifier: MIT
 *
 * result.c: codetimer.Result, a C result seen from Lua. A result is read only: each field is made from the C struct
 * when it is asked for, so a result of ten million calls is as small as one of a thousand.
 *
 * The result of a candidate belongs to its comparison, which it keeps alive in its user value.
 */
#include "running.h"

#define RESULT_TYPE "codetimer.Result"

static const char last_key = 0; /* the last result, or false */

typedef struct lua_result {
    ct_result *result; /* NULL: not there yet, or the comparison's */
    int is_lua;        /* of a Lua function */
    int owned;         /* by a comparison */
    size_t candidate;  /* in it */
} lua_result;

/* ---- fields: each pushes one value; an absent fact is nil (lua_pushstring makes nil of NULL) ---- */

static void push_known_integer(lua_State *L, int known, uint64_t value) {
    if (known)
        lua_pushinteger(L, (lua_Integer)value);
    else
        lua_pushnil(L);
}

static void push_known_number(lua_State *L, int known, double value) {
    if (known)
        lua_pushnumber(L, value);
    else
        lua_pushnil(L);
}

#define PUSH(field, call)                                                                                              \
    static void push_##field(lua_State *L, const ct_result *r) { call; }

PUSH(name, lua_pushlstring(L, r->name, r->name_length))
PUSH(n, lua_pushinteger(L, (lua_Integer)r->n))
PUSH(calls, lua_pushinteger(L, (lua_Integer)r->calls))
PUSH(elapsed_ns, lua_pushinteger(L, (lua_Integer)r->elapsed_ns))
PUSH(automatic, lua_pushboolean(L, r->automatic))
PUSH(budget_ns, push_known_integer(L, r->automatic, r->budget_ns))
PUSH(warmup_calls, lua_pushinteger(L, (lua_Integer)r->warmup_calls))
PUSH(warmup_ns, lua_pushinteger(L, (lua_Integer)r->warmup_ns))
PUSH(per_call_ns, push_known_number(L, r->per_call_known, r->per_call_ns))
PUSH(interval_low_ns, push_known_number(L, r->interval_known, r->interval_low_ns))
PUSH(interval_high_ns, push_known_number(L, r->interval_known, r->interval_high_ns))
PUSH(min_ns, push_known_number(L, r->interval_known, r->min_ns))
PUSH(q1_ns, push_known_number(L, r->interval_known, r->q1_ns))
PUSH(q3_ns, push_known_number(L, r->interval_known, r->q3_ns))
PUSH(max_ns, push_known_number(L, r->interval_known, r->max_ns))
PUSH(mad_ns, push_known_number(L, r->interval_known, r->mad_ns))
PUSH(outliers_mild, push_known_integer(L, r->interval_known, r->outliers_mild))
PUSH(outliers_severe, push_known_integer(L, r->interval_known, r->outliers_severe))
PUSH(net_low_ns, push_known_number(L, r->net_known, r->net_low_ns))
PUSH(net_high_ns, push_known_number(L, r->net_known, r->net_high_ns))
PUSH(overheads, ct__lua_push_overheads(L, r->overheads, r->overheads_count))
PUSH(batches_ns, ct__lua_push_counts(L, r->batches_ns, r->batches))
PUSH(batches_calls, ct__lua_push_counts(L, r->batches_calls, r->batches))
PUSH(cycles, push_known_integer(L, r->cycles_kind != CT_CYCLES_NONE, r->cycles))
PUSH(cycles_kind, lua_pushstring(L, ct_cycles_kind_name(r->cycles_kind)))
PUSH(cycles_source, lua_pushstring(L, r->cycles_source))
PUSH(cycles_reason, lua_pushstring(L, r->cycles_reason))
PUSH(usage, ct__lua_push_usage(L, &r->usage))
PUSH(gc_collections, ct__lua_push_counts(L, r->gc_collections, r->gc_generations))
PUSH(gc_labels, ct__lua_push_texts(L, r->gc_labels, r->gc_generations))
PUSH(interrupted, lua_pushstring(L, r->interrupted))
PUSH(notes, ct__lua_push_texts(L, r->notes, r->notes_count))
PUSH(priority, lua_pushstring(L, r->priority))
PUSH(clock, lua_pushstring(L, r->clock))
PUSH(resolution_ns, push_known_number(L, r->resolution_ns > 0, r->resolution_ns))

static void push_gc_time(lua_State *L, const ct_result *r) {
    if (r->gc_time_known)
        ct__lua_push_gc_time(L, &r->gc_time);
    else
        lua_pushnil(L);
}

static void push_memory(lua_State *L, const ct_result *r) {
    if (r->memory.calls > 0 || r->memory.reason != NULL)
        ct__lua_push_memory(L, &r->memory);
    else
        lua_pushnil(L);
}

#define FIELD(name)                                                                                                    \
    { #name, push_##name, 0 }
#define FIELD_OF_OVERHEADS(name)                                                                                       \
    { #name, push_##name, 1 }

/* In the order of Python's. */
static const struct field {
    const char *name;
    void (*push)(lua_State *L, const ct_result *r);
    int compares; /* with an empty call */
} fields[] = {
    FIELD(name),
    FIELD(n),
    FIELD(calls),
    FIELD(elapsed_ns),
    FIELD(automatic),
    FIELD(budget_ns),
    FIELD(warmup_calls),
    FIELD(warmup_ns),
    FIELD(per_call_ns),
    FIELD(interval_low_ns),
    FIELD(interval_high_ns),
    FIELD(min_ns),
    FIELD(q1_ns),
    FIELD(q3_ns),
    FIELD(max_ns),
    FIELD(mad_ns),
    FIELD(outliers_mild),
    FIELD(outliers_severe),
    FIELD_OF_OVERHEADS(net_low_ns),
    FIELD_OF_OVERHEADS(net_high_ns),
    FIELD_OF_OVERHEADS(overheads),
    FIELD(batches_ns),
    FIELD(batches_calls),
    FIELD(cycles),
    FIELD(cycles_kind),
    FIELD(cycles_source),
    FIELD(cycles_reason),
    FIELD(usage),
    FIELD(gc_collections),
    FIELD(gc_labels),
    FIELD(gc_time),
    FIELD(memory),
    FIELD(interrupted),
    FIELD(notes),
    FIELD(priority),
    FIELD(clock),
    FIELD(resolution_ns),
};

enum { FIELDS = sizeof fields / sizeof fields[0] };

/* ---- the userdata ---- */

static lua_result *new_result(lua_State *L) {
    lua_result *self = lua_newuserdatauv(L, sizeof *self, 1);
    *self = (lua_result){0};
    luaL_setmetatable(L, RESULT_TYPE);
    return self;
}

void ct__lua_new_result(lua_State *L) { new_result(L); }

int ct__lua_set_result(lua_State *L, int index, ct_result *result, int is_lua) {
    lua_result *self = luaL_testudata(L, index, RESULT_TYPE);
    if (self == NULL || self->result != NULL || self->owned) {
        ct_result_free(result);
        return 0;
    }
    self->result = result;
    self->is_lua = is_lua;
    return 1;
}

void ct__lua_push_result(lua_State *L, int index, size_t candidate, int is_lua) {
    index = lua_absindex(L, index);
    lua_result *self = new_result(L);
    self->owned = 1;
    self->candidate = candidate;
    self->is_lua = is_lua;
    lua_pushvalue(L, index);
    lua_setiuservalue(L, -2, 1);
}

int ct__lua_is_result(lua_State *L, int index) { return luaL_testudata(L, index, RESULT_TYPE) != NULL; }

ct_result *ct__lua_find_result(lua_State *L, int index) {
    const lua_result *self = luaL_testudata(L, index, RESULT_TYPE);
    if (self == NULL || !self->owned) return self != NULL ? self->result : NULL;
    lua_getiuservalue(L, index, 1);
    const ct_comparison *owner = ct__lua_find_comparison(L, -1);
    lua_pop(L, 1);
    if (owner == NULL || self->candidate >= owner->count) return NULL;
    return (ct_result *)(uintptr_t)owner->results[self->candidate];
}

ct_result *ct__lua_check_result(lua_State *L, int index) {
    luaL_checkudata(L, index, RESULT_TYPE);
    ct_result *result = ct__lua_find_result(L, index);
    if (result == NULL) luaL_argerror(L, index, "the result has been freed");
    return result;
}

/* A run of given n goes without them until somebody asks. Much can happen while they are measured. */
static const ct_result *know_overheads(lua_State *L, int index) {
    const lua_result *self = luaL_checkudata(L, index, RESULT_TYPE);
    ct_overhead overheads[CT__LUA_OVERHEADS];
    size_t count;
    if (ct__lua_check_result(L, index)->overheads_count == 0 && self->is_lua >= 0) {
        ct__lua_overheads(L, self->is_lua, overheads, &count);
        (void)ct_result_set_overheads(ct__lua_check_result(L, index), count, overheads);
    }
    return ct__lua_check_result(L, index);
}

static void push_field(lua_State *L, int index, const struct field *field) {
    field->push(L, field->compares ? know_overheads(L, index) : ct__lua_check_result(L, index));
}

void ct__lua_push_result_dict(lua_State *L, int index) {
    index = lua_absindex(L, index);
    lua_createtable(L, 0, FIELDS);
    for (int i = 0; i < FIELDS; i++) {
        push_field(L, index, &fields[i]);
        lua_setfield(L, -2, fields[i].name);
    }
}

static int result_to_dict(lua_State *L) {
    ct__lua_check_result(L, 1);
    ct__lua_push_result_dict(L, 1);
    return 1;
}

static size_t put_json(lua_State *L, const void *what, char *buffer, size_t size) {
    const ct_export_options options = {.size = sizeof options, .host = what};
    const ct_result *result = ct__lua_check_result(L, 1);
    return ct_export_results(&result, 1, CT_EXPORT_JSON, &options, buffer, size);
}

static int result_to_json(lua_State *L) {
    know_overheads(L, 1);
    ct__lua_push_text(L, put_json, LUA_VERSION);
    return 1;
}

static int result_index(lua_State *L) {
    static const luaL_Reg methods[] = {{"to_dict", result_to_dict}, {"to_json", result_to_json}, {NULL, NULL}};
    ct__lua_check_result(L, 1);
    for (int i = 0; i < FIELDS; i++) {
        if (!ct__lua_is(L, 2, fields[i].name)) continue;
        push_field(L, 1, &fields[i]);
        return 1;
    }
    return ct__lua_push_method(L, 2, methods);
}

static int result_tostring(lua_State *L) {
    ct__lua_push_report(L, 1, 0, 0);
    return 1;
}

static int result_gc(lua_State *L) {
    lua_result *self = luaL_checkudata(L, 1, RESULT_TYPE);
    ct_result_free(self->result);
    *self = (lua_result){0};
    return 0;
}

typedef struct report {
    int index;
    ct_report_options options;
} report;

static size_t put_report(lua_State *L, const void *what, char *buffer, size_t size) {
    const report *shown = what;
    return ct_report_format(ct__lua_check_result(L, shown->index), &shown->options, buffer, size);
}

void ct__lua_push_report(lua_State *L, int index, int color, int verbose) {
    const report shown = {
        .index = lua_absindex(L, index),
        .options = {.size = sizeof(ct_report_options), .color = color, .ascii = ct_report_ascii(), .verbose = verbose}};
    ct__lua_push_text(L, put_report, &shown);
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
    ct__lua_reserve(L, &last_key);
}
