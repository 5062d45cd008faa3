/* SPDX-License-Identifier: MIT
 *
 * histogram.c: see histogram.h.
 */
#include "histogram.h"

#include <math.h>
#include <string.h>

enum { SCALE = 3, OCTAVE = 1 << SCALE, MANTISSA_BITS = 52, EXPONENT_BIAS = 1023 };

static const uint64_t longest_bucketed = (uint64_t)1 << 42;

/* The mantissas of 2^(s/8), s = 0 .. 7, rounded down: floor((2^(s/8) - 1) * 2^52). A duration up to 2^42 is exact as a
 * double, and no power 2^(s/8) but s = 0 is, so comparing mantissas decides the bucket without error (checked against
 * long double log2 in tests/core/test_histogram.c). */
static const uint64_t eighths[OCTAVE] = {
    0x0000000000000, 0x172b83c7d517a, 0x306fe0a31b715, 0x4bfdad5362a27,
    0x6a09e667f3bcc, 0x8ace5422aa0db, 0xae89f995ad3ad, 0xd5818dcfba487,
};

size_t ct__histogram_index(uint64_t duration_ns) {
    if (duration_ns <= 1) return duration_ns; /* 0 and 1 ns have their own */
    if (duration_ns > longest_bucketed) return CT__BUCKET_OVERFLOW;
    double value = (double)duration_ns;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t mantissa = bits & (((uint64_t)1 << MANTISSA_BITS) - 1);
    int exponent = (int)(bits >> MANTISSA_BITS) - EXPONENT_BIAS;
    int step = (int)(mantissa >> (MANTISSA_BITS - SCALE)); /* a first guess, at most one too low */
    if (step < OCTAVE - 1 && mantissa > eighths[step + 1]) step++;
    if (mantissa <= eighths[step]) step--; /* upper bounds are included */
    return (size_t)(exponent * OCTAVE + step + 1);
}

double ct__histogram_lower_ns(size_t index) {
    if (index <= 1) return 0;
    return exp2((double)(index - 1) / OCTAVE);
}

double ct__histogram_upper_ns(size_t index) {
    if (index == CT__BUCKET_ZERO) return 0;
    if (index == 1) return 1;
    if (index >= CT__BUCKET_OVERFLOW) return INFINITY;
    return exp2((double)index / OCTAVE);
}

static double interpolate(size_t index, double fraction) {
    double lower = ct__histogram_lower_ns(index), upper = ct__histogram_upper_ns(index);
    return lower <= 0 ? upper : lower * pow(upper / lower, fraction);
}

double ct__histogram_quantile_ns(const uint64_t *buckets, double q, double longest_ns) {
    uint64_t count = 0;
    for (size_t i = 0; i < CT__BUCKETS; i++) count += buckets[i];
    if (count == 0) return 0;
    double rank = q * (double)count, below = 0;
    size_t last = 0;
    for (size_t i = 0; i < CT__BUCKETS; i++) {
        if (buckets[i] == 0) continue;
        last = i;
        if (below + (double)buckets[i] >= rank) break;
        below += (double)buckets[i];
    }
    if (last == CT__BUCKET_OVERFLOW) return longest_ns;
    double fraction = (rank - below) / (double)buckets[last];
    return interpolate(last, fraction < 0 ? 0 : fraction > 1 ? 1 : fraction);
}
