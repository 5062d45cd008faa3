/* SPDX-License-Identifier: MIT
 *
 * stats.c: see stats.h. Small inputs (at most CT_BATCHES_MAX batches), so the plain algorithm is the right one.
 */
#include "stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

double ct__stats_quantile(const double *sorted, size_t count, double part) {
    double at = part * (double)(count - 1);
    size_t below = (size_t)at;
    if (below + 1 >= count) return sorted[count - 1];
    return sorted[below] + (sorted[below + 1] - sorted[below]) * (at - (double)below);
}

double ct__stats_mad(const double *values, size_t count, double center, double *work) {
    for (size_t i = 0; i < count; i++) work[i] = fabs(values[i] - center);
    ct__stats_sort(work, count);
    return ct__stats_median(work, count);
}

void ct__stats_outliers(const double *sorted, size_t count, size_t *mild, size_t *severe) {
    double q1 = ct__stats_quantile(sorted, count, 0.25), q3 = ct__stats_quantile(sorted, count, 0.75), range = q3 - q1;
    *mild = *severe = 0;
    for (size_t i = 0; i < count; i++) {
        double beyond = sorted[i] < q1 ? q1 - sorted[i] : sorted[i] - q3;
        if (beyond > 3 * range) {
            ++*severe;
        } else if (beyond > 1.5 * range) {
            ++*mild;
        }
    }
}

/* What equal values take from the variance of the test: the sum of t (t - 1) (2 t + 5) over groups of t. */
static double variance_of_ties(const double *sorted, size_t count) {
    double sum = 0, equal = 1;
    for (size_t i = 1; i <= count; i++, equal++) {
        if (i < count && sorted[i] == sorted[i - 1]) continue;
        sum += equal * (equal - 1) * (2 * equal + 5);
        equal = 0;
    }
    return sum;
}

double ct__stats_trend(const double *values, size_t count, double *work) {
    double score = 0, n = (double)count;
    if (count < 4) return 0;
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count; j++) score += (values[j] > values[i]) - (values[j] < values[i]);
    memcpy(work, values, count * sizeof *values);
    ct__stats_sort(work, count);
    double variance = (n * (n - 1) * (2 * n + 5) - variance_of_ties(work, count)) / 18;
    if (variance <= 0 || score == 0) return 0;
    return (score > 0 ? score - 1 : score + 1) / sqrt(variance);
}
