/* SPDX-License-Identifier: MIT
 *
 * histogram.h: floor 2, fixed logarithmic buckets for durations.
 *
 * Base-2 scale 3: eight buckets an octave, each 2^(1/8) = 9.05 % wide, so a value is known within 4.4 %. Bucket i holds
 * (2^(i/8), 2^((i+1)/8)] ns, upper bound included, i = 0 .. 335, up to 2^42 ns (73 minutes); the same bounds as
 * OpenTelemetry's exponential histogram at scale 3 and Prometheus' native histogram at schema 3, which are lossless.
 * There is no whole number in (1, 2^(7/8)], so bucket 0 holds exactly 1 ns. Before them stands a bucket for 0, after
 * them one for everything longer.
 */
#ifndef CT_HISTOGRAM_H
#define CT_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum { CT__BUCKETS = 338, CT__BUCKET_ZERO = 0, CT__BUCKET_OVERFLOW = 337 };

/* 2^(s/8) for s = 0 .. 7 as 64 bits with the highest set, rounded down to 53; then one above all. */
extern const uint64_t ct__eighths[9];

/* Which of the 338 a duration belongs to. Exact: no logarithm is taken. A duration is compared as its highest 64 bits;
 * no power 2^(s/8) but s = 0 is a whole number of those, so that rounding decides nothing (checked against long double
 * log2 in tests/core/test_histogram.c). Without branches that depend on the duration: they would be a coin's toss. */
static inline size_t ct__histogram_index(uint64_t duration_ns) {
    if (duration_ns <= 1) return (size_t)duration_ns; /* 0 and 1 ns have their own */
    if (duration_ns > (uint64_t)1 << 42) return CT__BUCKET_OVERFLOW;
    int zeros = __builtin_clzll(duration_ns);
    uint64_t mantissa = duration_ns << zeros;
    size_t guess = (size_t)(mantissa >> 60) & 7; /* at most one too low; upper bounds are included */
    size_t step = guess + (mantissa > ct__eighths[guess]) + (mantissa > ct__eighths[guess + 1]);
    return (size_t)(63 - zeros) * 8 + step;
}

/* Bounds of a bucket in ns: values in (lower, upper]. The bucket of 0 is [0, 0]; of the last, upper is infinite. */
double ct__histogram_lower_ns(size_t index);
double ct__histogram_upper_ns(size_t index);

/* The duration below which a fraction q (0 to 1) of the counted values lies: within the bucket that holds that rank, by
 * exponential interpolation, as Prometheus does. In the last bucket it is "longest_ns". 0 values: returns 0. */
double ct__histogram_quantile_ns(const uint64_t *buckets, double q, double longest_ns);

#endif
