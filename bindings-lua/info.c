/* SPDX-License-Identifier: MIT
 *
 * info.c: clock_info, thread_cycles, now_ns. Tables carry the field names of the C structs; what is not known is nil.
 */
#include "common.h"

void ct__lua_push_clock(lua_State *L, const ct_clock *clock) {
    lua_createtable(L, 0, 5);
    ct__lua_set_text(L, "source", clock->source);
    ct__lua_set_number(L, "resolution_ns", clock->resolution_ns);
    ct__lua_set_number(L, "read_cost_ns", clock->read_cost_ns);
    if (clock->frequency_hz > 0) ct__lua_set_number(L, "frequency_hz", clock->frequency_hz);
    ct__lua_set_text(L, "reason", clock->reason);
}

void ct__lua_push_cycles(lua_State *L, const ct_cycles *cycles) {
    lua_createtable(L, 0, 4);
    if (cycles->kind != CT_CYCLES_NONE) ct__lua_set_integer(L, "value", cycles->value);
    ct__lua_set_text(L, "kind", ct_cycles_kind_name(cycles->kind));
    ct__lua_set_text(L, "source", cycles->source);
    ct__lua_set_text(L, "reason", cycles->reason);
}

int ct__lua_clock_info(lua_State *L) {
    ct_clock clock;
    ct_clock_info(&clock);
    ct__lua_push_clock(L, &clock);
    return 1;
}

/* Unknown cycles are a table too: it carries the reason. */
int ct__lua_thread_cycles(lua_State *L) {
    ct_cycles cycles;
    ct_thread_cycles(&cycles);
    ct__lua_push_cycles(L, &cycles);
    return 1;
}

int ct__lua_now_ns(lua_State *L) {
    lua_pushinteger(L, (lua_Integer)ct_now_ns());
    return 1;
}
