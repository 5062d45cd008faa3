/* SPDX-License-Identifier: MIT
 *
 * histogram.c: see histogram.h.
 */
#include "histogram.h"

#include <math.h>

enum { OCTAVE = 8 };

const uint64_t ct__eighths[OCTAVE + 1] = {
    0x8000000000000000, 0x8b95c1e3ea8bd000, 0x9837f0518db8a800, 0xa5fed6a9b1513800, 0xb504f333f9de6000,
    0xc5672a115506d800, 0xd744fccad69d6800, 0xeac0c6e7dd243800, UINT64_MAX,
};

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
