/* SPDX-License-Identifier: MIT
 *
 * ratio.c: whether a difference is one.
 *
 * The logarithms of the ratios of the rounds have a median; the order statistics around it enclose the true one with an
 * exact confidence, because the number of rounds below it is binomial whatever the distribution (sign test). With
 * several candidates each comparison gets its share of the 1 % (Bonferroni), so that all together are right with 99 %.
 * But rounds that follow each other are not independent, and two copies of one function need not be equally fast; so
 * the baseline is compared with itself in the same rounds, and a difference has to be twice as large as that one could
 * be by its own interval, and the whole of its own interval has to lie beyond 0.1 %.
 */
#include <math.h>

#include "compare.h"
#include "stats.h"

static const double confidence_of_all = 0.99;
static const double floor_factor = 2;

/* However still the machine: in which order two functions are called, and where they lie, makes such differences. */
static const double floor_least = 0.001;

static double confidence_of_each(size_t count) { return 1 - (1 - confidence_of_all) / (double)(count - 1); }

size_t ct__ratio_rounds_needed(size_t count) {
    size_t rounds = 1, rank;
    while (!ct__stats_median_rank(rounds, confidence_of_each(count), &rank)) rounds++;
    return rounds;
}

/* Rounds in which the clock saw something of both, and if "calm" neither was disturbed. */
static size_t collect(const ct__comparison_block *block, size_t a, size_t b, int calm, double *differences) {
    size_t count = 0;
    for (size_t i = 0; i < block->stored; i++) {
        double difference = (double)block->logs[a][i] - (double)block->logs[b][i];
        if (calm && (block->disturbed[a][i] || block->disturbed[b][i])) continue;
        if (isfinite(difference)) differences[count++] = difference;
    }
    return count;
}

/* On a machine where hardly any round is calm, all of them have to do. */
static size_t collect_best(const ct__comparison_block *block, size_t a, size_t b, double *differences) {
    size_t count = collect(block, a, b, 1, differences);
    if (count >= 2 * ct__ratio_rounds_needed(block->comparison.count)) return count;
    return collect(block, a, b, 0, differences);
}

static void set_resolved(ct_ratio *ratio, double logarithm) {
    if (exp(logarithm) - 1 > ratio->resolved) ratio->resolved = exp(logarithm) - 1;
}

void ct__ratio_of_rows(const ct__comparison_block *block, size_t a, size_t b, ct_ratio *ratio) {
    double differences[CT__ROUNDS_MAX];
    size_t count = collect_best(block, a, b, differences), rank;
    *ratio = (ct_ratio){.confidence = confidence_of_each(block->comparison.count), .in_turns = 1};
    ratio->known = ct__stats_median_rank(count, ratio->confidence, &rank);
    if (!ratio->known) {
        ratio->reason = block->reason;
        return;
    }
    ct__stats_sort(differences, count);
    double low = differences[rank], high = differences[count - 1 - rank];
    ratio->ratio = exp(ct__stats_median(differences, count));
    ratio->low = exp(low);
    ratio->high = exp(high);
    set_resolved(ratio, (high - low) / 2);
}

void ct__ratio_judge(const ct_ratio *twin, ct_ratio *ratio) {
    if (!ratio->known || !twin->known) return;
    double shown = fmax(fabs(log(twin->low)), fabs(log(twin->high)));
    double floor = fmax(floor_factor * shown, log1p(floor_least));
    set_resolved(ratio, floor);
    double least = fmax(log(ratio->low), -log(ratio->high)); /* of the interval; below 0 if that encloses 1 */
    ratio->different = least > log1p(floor_least) && fabs(log(ratio->ratio)) > floor;
}

int ct_comparison_ratio(const ct_comparison *comparison, size_t a, size_t b, ct_ratio *ratio) {
    if (comparison == NULL || ratio == NULL || a >= comparison->count || b >= comparison->count) return CT_EINVAL;
    if (a == b) {
        *ratio = (ct_ratio){.known = 1, .ratio = 1, .low = 1, .high = 1, .confidence = 1, .in_turns = 1};
        return CT_OK;
    }
    ct__ratio_of_rows((const ct__comparison_block *)(const void *)comparison, a, b, ratio);
    ct__ratio_judge(&comparison->twin, ratio);
    return CT_OK;
}

/* ---- results that were not measured in turns ---- */

static const double confidence_of_two = 0.95 * 0.95; /* both medians within their intervals */

static int divide(const double *a, const double *b, ct_ratio *ratio) {
    *ratio = (ct_ratio){.confidence = confidence_of_two};
    if (!(b[0] > 0) || !(a[0] > 0) || !isfinite(a[2] / b[0])) return 0;
    ratio->known = 1;
    ratio->low = a[0] / b[2];
    ratio->ratio = a[1] / b[1];
    ratio->high = a[2] / b[0];
    ratio->different = ratio->low > 1 || ratio->high < 1;
    set_resolved(ratio, log(ratio->high / ratio->low) / 2);
    return 1;
}

int ct_result_ratio(const ct_result *a, const ct_result *b, int net, ct_ratio *ratio) {
    if (a == NULL || b == NULL || ratio == NULL || !a->interval_known || !b->interval_known) return CT_EINVAL;
    if (net && (!a->net_known || !b->net_known)) return CT_EINVAL;
    const double raw_a[] = {a->interval_low_ns, a->per_call_ns, a->interval_high_ns};
    const double raw_b[] = {b->interval_low_ns, b->per_call_ns, b->interval_high_ns};
    const double net_a[] = {a->net_low_ns, (a->net_low_ns + a->net_high_ns) / 2, a->net_high_ns};
    const double net_b[] = {b->net_low_ns, (b->net_low_ns + b->net_high_ns) / 2, b->net_high_ns};
    if (!divide(net ? net_a : raw_a, net ? net_b : raw_b, ratio))
        ratio->reason = net ? "one of the two is indistinguishable from an empty call"
                            : "the clock saw nothing of some batches of one of the two";
    return CT_OK;
}
