/* SPDX-License-Identifier: MIT
 *
 * environment.c: what a measuring program starts from: a raised priority, a chosen clock, a warm measuring path.
 *
 * The priority comes first, so that the calibration of the clock is disturbed as little as what is measured later. Warm
 * means that everything done once (choosing, opening, loading of code) is done before the first run.
 */
#include "codetimer.h"

#include <stdlib.h>
#include <string.h>

#include "format.h"

enum { WARM_UP_READINGS = 8 };

static void warm_up(ct_environment *environment) {
    for (int i = 0; i < WARM_UP_READINGS; i++) {
        (void)ct_now_ns();
        (void)ct_thread_cycles(&environment->cycles);
    }
}

int ct_initialize(const char *level, int cpu, ct_environment **environment) {
    if (environment == NULL) return CT_EINVAL;
    ct_environment *made = calloc(1, sizeof *made);
    if (made == NULL) return CT_ENOMEM;
    int status = ct_priority_raise(level, cpu, &made->priority);
    if (status != CT_OK) {
        free(made);
        return status;
    }
    warm_up(made);
    ct_clock_info(&made->clock);
    (void)ct_thread_cycles(&made->cycles);
    *environment = made;
    return CT_OK;
}

int ct_environment_restore(ct_environment *environment) {
    return environment != NULL ? ct_priority_restore(environment->priority) : CT_EINVAL;
}

void ct_environment_free(ct_environment *environment) {
    if (environment == NULL) return;
    ct_priority_free(environment->priority);
    free(environment);
}

/* ---- text ---- */

static void put_in_brackets(ct__text *text, const char *string) {
    if (string[0] == '\0') return;
    ct__text_put(text, " (");
    ct__text_put(text, string);
    ct__text_put(text, ")");
}

/* "Priority: nice -10, was nice 0 (this thread)"; where less was obtained, the reason follows as one phrase. */
static void put_priority(ct__text *text, const ct_priority *priority) {
    ct__text_put(text, "Priority: ");
    ct__text_put(text, priority->restored ? priority->previous : priority->effective);
    if (priority->restored) ct__text_put(text, ", restored");
    int moved = strcmp(priority->effective, priority->previous) != 0;
    if (priority->requested != NULL && !priority->restored && moved) {
        ct__text_put(text, ", was ");
        ct__text_put(text, priority->previous);
    }
    if (priority->cpu >= 0 && priority->cpu_status == CT_OK && !priority->restored) {
        ct__text_put(text, ", on CPU ");
        ct__text_put_count(text, (uint64_t)priority->cpu);
    }
    put_in_brackets(text, priority->scope);
    if (priority->reason[0] != '\0' && !priority->restored) {
        ct__text_put(text, ": ");
        ct__text_put(text, priority->reason);
    }
    ct__text_put(text, "\n");
}

static void put_clock(ct__text *text, const ct_clock *clock) {
    ct__text_put(text, "Clock: ");
    ct__text_put(text, clock->source);
    if (clock->frequency_hz > 0) {
        ct__text_put(text, ", ");
        ct__text_put_decimal(text, clock->frequency_hz / 1e6, 1);
        ct__text_put(text, " MHz");
    }
    ct__text_put(text, ", resolution ");
    ct__text_put_decimal(text, clock->resolution_ns, 1);
    ct__text_put(text, " ns, a reading takes ");
    ct__text_put_decimal(text, clock->read_cost_ns, 1);
    ct__text_put(text, " ns");
    put_in_brackets(text, clock->reason);
    ct__text_put(text, "\n");
}

static void put_cycles(ct__text *text, const ct_cycles *cycles) {
    ct__text_put(text, "Cycles: ");
    if (cycles->kind == CT_CYCLES_NONE) {
        ct__text_put(text, "unavailable");
    } else {
        ct__text_put(text, ct_cycles_kind_name(cycles->kind));
        ct__text_put(text, ", ");
        ct__text_put(text, cycles->source);
    }
    put_in_brackets(text, cycles->reason);
    ct__text_put(text, "\n");
}

size_t ct_environment_format(const ct_environment *environment, char *buffer, size_t size) {
    ct__text text;
    ct__text_start(&text, buffer, size);
    if (environment == NULL) return 0;
    put_priority(&text, environment->priority);
    put_clock(&text, &environment->clock);
    put_cycles(&text, &environment->cycles);
    return text.length;
}
