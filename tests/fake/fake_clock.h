/* SPDX-License-Identifier: MIT
 *
 * fake_clock.h: a scripted clock in place of core/platform/clock_<os>.c and of the hardware counter.
 *
 * Time is one number, fake_clock.ns. Every reading moves it on by step_ns; a test moves it further, stops it, sets the
 * system's clock back, or lets the counter run at another rate. The core chooses its clock once per process, so a test
 * that needs a choice of its own runs in a forked child (child.h).
 */
#ifndef FAKE_CLOCK_H
#define FAKE_CLOCK_H

#include <stdint.h>

typedef struct fake_clock_state {
    uint64_t ns;            /* true time */
    uint64_t step_ns;       /* each reading takes this long */
    uint64_t grain_ns;      /* the system's clock moves in steps of this; 1: exact */
    int64_t system_jump_ns; /* added to the system's clock */
    int frozen;             /* the system's clock stands still (at frozen_ns) */
    uint64_t frozen_ns;
    int present, trusted;
    double counter_hz;
    int64_t counter_jump; /* ticks added to the counter */
    int counter_frozen;
    uint64_t reads; /* of any clock */
} fake_clock_state;

extern fake_clock_state fake_clock;

/* Exact clocks, a 2 GHz counter, 10 ns per reading. */
void fake_clock_reset(void);

#endif
