/* SPDX-License-Identifier: MIT
 *
 * cycles.c: CPU cycles of the calling thread, whatever the system can tell of them.
 *
 * A system that knows only the thread's CPU time in nanoseconds gets it turned into ticks of the reference counter: the
 * time spent on a CPU times the counter's rate. The rate is refined while the program runs, and a later rate applied to
 * hours of earlier CPU time would move the value by more than a short run takes. So each thread adds up its ticks, each
 * stretch at the rate known at its end.
 */
#include "cycles.h"

#include <string.h>

#include "clock.h"
#include "format.h"
#include "platform/platform.h"
#include "scale.h"

typedef struct tick_total {
    uint64_t ns; /* the thread's CPU time at the last reading */
    uint64_t ticks;
} tick_total;

static _Thread_local tick_total thread_total;

static uint64_t add_ticks(uint64_t ns, double frequency_hz) {
    tick_total *total = &thread_total;
    if (ns < total->ns) total->ns = 0; /* in a forked child the thread's CPU time begins anew */
    total->ticks += ct__scale_ratio(ns - total->ns, (uint64_t)(frequency_hz + 0.5), 1000000000u);
    total->ns = ns;
    return total->ticks;
}

static void put_none(ct_cycles *cycles, const char *reason, const char *more) {
    ct__text text;
    cycles->kind = CT_CYCLES_NONE;
    cycles->value = 0;
    cycles->source[0] = '\0';
    ct__text_start(&text, cycles->reason, sizeof cycles->reason);
    ct__text_put(&text, reason);
    ct__text_put(&text, more);
}

static void put_text(char *buffer, size_t size, const char *string) {
    ct__text text;
    ct__text_start(&text, buffer, size);
    ct__text_put(&text, string);
}

/* CPU time in ns becomes reference ticks, or nothing where there is no reference. */
static void put_thread_time(ct_cycles *cycles, const ct__os_cycles *read) {
    double frequency_hz = ct__clock_frequency_hz();
    if (!(frequency_hz >= 1)) {
        put_none(cycles, read->reason, "; and no hardware counter whose rate is known (see the clock)");
        return;
    }
    ct__text text;
    cycles->kind = CT_CYCLES_REFERENCE;
    cycles->value = add_ticks(read->value, frequency_hz);
    put_text(cycles->reason, sizeof cycles->reason, read->reason);
    ct__text_start(&text, cycles->source, sizeof cycles->source);
    ct__text_put(&text, read->source);
    ct__text_put(&text, " x ");
    ct__text_put_decimal(&text, frequency_hz / 1e6, 1);
    ct__text_put(&text, " MHz");
}

static void put_counted(ct_cycles *cycles, const ct__os_cycles *read, int kind) {
    cycles->kind = kind;
    cycles->value = read->value;
    put_text(cycles->source, sizeof cycles->source, read->source);
    put_text(cycles->reason, sizeof cycles->reason, kind == CT_CYCLES_CORE ? "" : read->reason);
}

int ct_thread_cycles(ct_cycles *cycles) {
    if (cycles == NULL) return CT_EINVAL;
    ct__os_cycles read;
    memset(&read, 0, sizeof read);
    ct__os_cycles_read(&read);
    switch (read.kind) {
    case CT__CYCLES_CORE:
        put_counted(cycles, &read, CT_CYCLES_CORE);
        break;
    case CT__CYCLES_REFERENCE:
        put_counted(cycles, &read, CT_CYCLES_REFERENCE);
        break;
    case CT__CYCLES_THREAD_NS:
        put_thread_time(cycles, &read);
        break;
    default:
        put_none(cycles, read.reason, "");
    }
    return cycles->kind == CT_CYCLES_NONE ? CT_ENOTSUP : CT_OK;
}

const char *ct_cycles_kind_name(int kind) {
    if (kind == CT_CYCLES_CORE) return "core";
    return kind == CT_CYCLES_REFERENCE ? "reference" : "none";
}

/* The source of reference ticks names the rate, which is refined meanwhile: only the names of core counters count. */
static const char *why_not_comparable(const ct_cycles *start, const ct_cycles *end) {
    if (start->kind != end->kind) return "the source of the cycles changed in the meantime";
    if (start->kind == CT_CYCLES_CORE && strcmp(start->source, end->source) != 0) {
        return "the cycle counter was replaced in the meantime (after a fork, or closed by the program)";
    }
    if (end->value < start->value) return "the cycles went back";
    return NULL;
}

void ct__cycles_between(const ct_cycles *start, const ct_cycles *end, ct_cycles *between) {
    if (start->kind == CT_CYCLES_NONE || end->kind == CT_CYCLES_NONE) {
        put_none(between, end->kind == CT_CYCLES_NONE ? end->reason : start->reason, "");
        return;
    }
    const char *obstacle = why_not_comparable(start, end);
    if (obstacle != NULL) {
        put_none(between, obstacle, "");
        return;
    }
    *between = *end;
    between->value = end->value - start->value;
}
