/* SPDX-License-Identifier: MIT
 *
 * fake_cycles.c: see fake_cycles.h.
 */
#include "fake_cycles.h"

#include <stdio.h>

#include "platform/platform.h"

#define FRESH                                                                                                          \
    { CT__CYCLES_THREAD_NS, 1000000, 1000, "thread CPU time", "no counter in the script", 0 }

fake_cycles_state fake_cycles = FRESH;

void fake_cycles_reset(void) {
    fake_cycles_state fresh = FRESH;
    fake_cycles = fresh;
}

void ct__os_cycles_read(ct__os_cycles *cycles) {
    fake_cycles.reads++;
    cycles->kind = fake_cycles.kind;
    cycles->value = fake_cycles.value;
    snprintf(cycles->source, sizeof cycles->source, "%s", fake_cycles.source);
    snprintf(cycles->reason, sizeof cycles->reason, "%s", fake_cycles.reason);
    fake_cycles.value += fake_cycles.step;
}
