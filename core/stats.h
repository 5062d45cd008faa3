/* SPDX-License-Identifier: MIT
 *
 * stats.h: floor 2, statistics of a few numbers. Pure: no clock, no memory, no state.
 */
#ifndef CT_STATS_H
#define CT_STATS_H

#include <stddef.h>

/* Sorts in place, ascending. Values are finite. */
void ct__stats_sort(double *values, size_t count);

/* Median of sorted values: the middle one, or the mean of the two middle ones. count >= 1. */
double ct__stats_median(const double *sorted, size_t count);

/* Distribution-free interval of the median: the order statistics sorted[rank] and sorted[count - 1 - rank] enclose it
 * with at least the given confidence, because the number of values below the median is binomial(count, 1/2) whatever
 * the distribution (David & Nagaraja, Order Statistics, 3rd ed., section 7.1). Gives the largest such rank (0-based).
 * Returns 1, or 0 where even the extremes do not suffice: fewer than 6 values at 0.95. */
int ct__stats_median_rank(size_t count, double confidence, size_t *rank);

#endif
