/* SPDX-License-Identifier: MIT
 *
 * stats.c: see stats.h. Small inputs (at most CT_BATCHES_MAX batches), so the plain algorithm is the right one.
 */
#include "stats.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

void ct__stats_sort(double *values, size_t count) { qsort(values, count, sizeof *values, compare); }

double ct__stats_median(const double *sorted, size_t count) {
    double upper = sorted[count / 2];
    return count % 2 == 1 ? upper : sorted[count / 2 - 1] + (upper - sorted[count / 2 - 1]) / 2;
}

int ct__stats_median_rank(size_t count, double confidence, size_t *rank) {
    double tail = (1 - confidence) / 2;
    double probability = ldexp(1, -(int)count); /* of exactly 0 values below the median; count is small */
    double below = probability;                 /* of at most i values below it */
    if (count == 0 || below > tail) return 0;
    size_t i = 0;
    while (i + 1 < count / 2) {
        probability *= (double)(count - i) / (double)(i + 1);
        if (below + probability > tail) break;
        below += probability;
        i++;
    }
    *rank = i;
    return 1;
}
