/* SPDX-License-Identifier: MIT
 *
 * facts.c: the parts of results as tables. Their fields have the names of the C structs; a fact that is not known is
 * nil, never 0.
 */
#include "common.h"

void ct__lua_push_counts(lua_State *L, const uint64_t *counts, size_t count) {
    lua_createtable(L, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        lua_pushinteger(L, (lua_Integer)counts[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

void ct__lua_push_texts(lua_State *L, const char *const *texts, size_t count) {
    lua_createtable(L, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        lua_pushstring(L, texts[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

void ct__lua_push_usage(lua_State *L, const ct_usage *usage) {
    lua_createtable(L, 0, 7);
    ct__lua_set_count(L, "cpu_ns", usage->known, usage->cpu_ns);
    ct__lua_set_count(L, "switches", usage->known, usage->switches);
    ct__lua_set_count(L, "preemptions", usage->known, usage->preemptions);
    ct__lua_set_count(L, "minor_faults", usage->known, usage->minor_faults);
    ct__lua_set_count(L, "major_faults", usage->known, usage->major_faults);
    ct__lua_set_count(L, "migrations", usage->migrations_known, usage->migrations);
    ct__lua_set_text(L, "reason", usage->reason);
}

void ct__lua_push_gc_time(lua_State *L, const ct_gc_time *gc_time) {
    lua_createtable(L, 0, 3);
    ct__lua_set_integer(L, "pauses", gc_time->pauses);
    ct__lua_set_integer(L, "total_ns", gc_time->total_ns);
    ct__lua_set_integer(L, "longest_ns", gc_time->longest_ns);
}

void ct__lua_push_memory(lua_State *L, const ct_memory *memory) {
    const int known = memory->calls > 0;
    lua_createtable(L, 0, 8);
    ct__lua_set_integer(L, "calls", memory->calls);
    ct__lua_set_count(L, "allocations", known, memory->allocations);
    ct__lua_set_count(L, "reallocations", known, memory->reallocations);
    ct__lua_set_count(L, "frees", known, memory->frees);
    ct__lua_set_count(L, "allocated_bytes", known, memory->allocated_bytes);
    ct__lua_set_count(L, "peak_bytes", known, memory->peak_bytes);
    ct__lua_set_text(L, "reason", memory->reason);
    if (!known || memory->kinds_count == 0) return;
    lua_createtable(L, 0, (int)memory->kinds_count);
    for (size_t i = 0; i < memory->kinds_count; i++)
        ct__lua_set_integer(L, memory->kinds[i].label, memory->kinds[i].count);
    lua_setfield(L, -2, "kinds");
}

void ct__lua_push_overheads(lua_State *L, const ct_overhead *overheads, size_t count) {
    lua_createtable(L, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        lua_createtable(L, 0, 3);
        ct__lua_set_text(L, "label", overheads[i].label);
        ct__lua_set_number(L, "low_ns", overheads[i].low_ns);
        ct__lua_set_number(L, "high_ns", overheads[i].high_ns);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

void ct__lua_push_ratio(lua_State *L, const ct_ratio *ratio) {
    lua_createtable(L, 0, 7);
    ct__lua_set_known(L, "ratio", ratio->known, ratio->ratio);
    ct__lua_set_known(L, "low", ratio->known, ratio->low);
    ct__lua_set_known(L, "high", ratio->known, ratio->high);
    ct__lua_set_known(L, "confidence", ratio->known, ratio->confidence);
    ct__lua_set_boolean(L, "different", ratio->different);
    ct__lua_set_known(L, "resolved", ratio->known, ratio->resolved);
    ct__lua_set_text(L, "reason", ratio->reason);
}

/* The buffer may set off a finalizer, which is why "put" looks at what there is each time. */
void ct__lua_push_text(lua_State *L, ct__lua_put put, const void *what) {
    luaL_Buffer buffer;
    size_t length = put(L, what, NULL, 0);
    char *text = luaL_buffinitsize(L, &buffer, length + 1);
    put(L, what, text, length + 1);
    luaL_pushresultsize(&buffer, length);
}
