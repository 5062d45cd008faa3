/* SPDX-License-Identifier: MIT
 *
 * clock.h: floor 1, what the rest of the core knows of the clock.
 *
 * Spans (chunks of a run, measured calls) are differences of raw ticks of one source, converted by one multiply at the
 * end; only ct_now_ns has an anchor.
 */
#ifndef CT_CLOCK_H
#define CT_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>

#include "platform/platform.h"
#include "platform/ticks.h"
#include "scale.h"

enum { CT__SOURCE_COUNTER = 1, CT__SOURCE_SYSTEM = 2 };

/* The source in use; chooses it at the first call (at most 1 ms). */
int ct__clock_source(void);
const char *ct__clock_source_name(int source);

/* Ticks of a source: the counter's, or nanoseconds of the system's clock. Fenced, for runs. */
static inline uint64_t ct__clock_read(int source) {
    return source == CT__SOURCE_COUNTER ? ct__ticks_fenced() : ct__os_clock_ns();
}

/* What the path of a measured call reads; written by clock.c alone. */
extern struct ct__clock_shared {
    _Atomic int source;         /* in use; 0 before the first choice */
    _Atomic uint64_t rate;      /* of the counter, best known; 0: none (scale.h) */
    _Atomic uint64_t due_ticks; /* housekeeping is due from here; far away where there is none to do */
} ct__clock_shared;

/* The source in use, where it is known to be chosen. */
static inline int ct__clock_source_now(void) {
    return atomic_load_explicit(&ct__clock_shared.source, memory_order_relaxed);
}

/* Nanoseconds in a difference of ticks, by the best rate known now. */
static inline uint64_t ct__clock_ns(int source, uint64_t ticks) {
    uint64_t rate = atomic_load_explicit(&ct__clock_shared.rate, memory_order_relaxed);
    return source == CT__SOURCE_COUNTER ? ct__scale(ticks, rate) : ticks;
}

/* Ticks in a number of nanoseconds (for thresholds). */
uint64_t ct__clock_ticks_in(int source, uint64_t ns);

/* The least step of the source between two readings, in ticks; 0 if it did not move in 2000 of them (0.1 ms). */
uint64_t ct__clock_step(int source);

/* Nanoseconds with their fraction, for a few ticks. */
double ct__clock_exact_ns(int source, uint64_t ticks);

/* Rate of the hardware counter, 0 if there is none whose rate is known. */
double ct__clock_frequency_hz(void);

/* Housekeeping: refines the rate, checks that the counter still agrees with the system. Cheap when nothing is due. */
void ct__clock_tend(void);

#endif
