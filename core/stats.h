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

/* Quantile of sorted values by linear interpolation (Hyndman & Fan, type 7). 0 <= part <= 1, count >= 1. */
double ct__stats_quantile(const double *sorted, size_t count, double part);

/* Median of the distances from "center", not scaled. "work": room for count values. */
double ct__stats_mad(const double *values, size_t count, double center, double *work);

/* How many sorted values lie further than 1.5 (mild) or 3 times (severe) q3 - q1 beyond the quartiles (Tukey,
 * Exploratory Data Analysis). A severe one is not counted as mild too. */
void ct__stats_outliers(const double *sorted, size_t count, size_t *mild, size_t *severe);

/* Mann-Kendall test of values in their order for a trend (Kendall, Rank Correlation Methods): the normal deviate,
 * negative where they fall. 0 for fewer than 4 values or for values that are all alike. "work": room for count values.
 */
double ct__stats_trend(const double *values, size_t count, double *work);

#endif
