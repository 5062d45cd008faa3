/* SPDX-License-Identifier: MIT
 *
 * scale.h: ticks to nanoseconds without overflow.
 *
 * A rate is nanoseconds per tick times 2^32, so that a difference of ticks becomes nanoseconds by one 128-bit multiply
 * and a shift. At 2 GHz its step is 0.5 ppb; 64 bits of ticks overflow nowhere (ticks * 1e9 would, after 9 seconds).
 */
#ifndef CT_SCALE_H
#define CT_SCALE_H

#include <stdint.h>

__extension__ typedef unsigned __int128 ct__wide;

/* ticks * rate / 2^32, UINT64_MAX where that does not fit. */
static inline uint64_t ct__scale(uint64_t ticks, uint64_t rate) {
    ct__wide product = (ct__wide)ticks * rate >> 32;
    return product >> 64 ? UINT64_MAX : (uint64_t)product;
}

/* The rate of "ns" nanoseconds in "ticks" ticks; 0 if ticks is 0 or the rate does not fit. */
static inline uint64_t ct__scale_rate(uint64_t ns, uint64_t ticks) {
    if (ticks == 0) return 0;
    ct__wide rate = ((ct__wide)ns << 32) / ticks;
    return rate >> 64 ? 0 : (uint64_t)rate;
}

/* a * b / c, UINT64_MAX where that does not fit. */
static inline uint64_t ct__scale_ratio(uint64_t a, uint64_t b, uint64_t c) {
    if (c == 0) return UINT64_MAX;
    ct__wide value = (ct__wide)a * b / c;
    return value >> 64 ? UINT64_MAX : (uint64_t)value;
}

#endif
