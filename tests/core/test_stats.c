/* SPDX-License-Identifier: MIT
 *
 * Guards the statistics: the cases of tests/cases/stats.tsv and spread.tsv, and the coverage of the interval for every
 * count of batches or rounds that can occur, summed exactly from the binomial distribution. Fails if a rank is off by
 * one either way.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codetimer.h"
#include "stats.h"

#ifndef CASES
#define CASES "tests/cases"
#endif

static size_t parse(char *list, double *values) {
    size_t count = 0;
    for (char *word = strtok(list, " "); word != NULL; word = strtok(NULL, " ")) values[count++] = strtod(word, NULL);
    return count;
}

static void check_case(char *line) {
    double values[64];
    char *list = strsep(&line, "\t"), *median = strsep(&line, "\t"), *low = strsep(&line, "\t");
    char *high = strsep(&line, "\t\n");
    size_t rank, count = parse(list, values);
    ct__stats_sort(values, count);
    assert_true(ct__stats_median(values, count) == strtod(median, NULL));
    int known = ct__stats_median_rank(count, 0.95, &rank);
    assert_int_equal(known, low[0] != '-');
    if (!known) return;
    assert_true(values[rank] == strtod(low, NULL));
    assert_true(values[count - 1 - rank] == strtod(high, NULL));
}

static void for_each_line(const char *path, void (*check)(char *line)) {
    char line[512];
    int seen = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (line[0] == '#') continue;
        check(line);
        seen++;
    }
    fclose(file);
    assert_true(seen >= 10);
}

static void test_cases(void **unused) {
    (void)unused;
    for_each_line(CASES "/stats.tsv", check_case);
}

static void assert_near(double value, const char *expected) {
    double wanted = strtod(expected, NULL);
    if (!(fabs(value - wanted) <= 1e-8 * (1 + fabs(wanted)))) fail_msg("%.12g is not %s", value, expected);
}

static void check_spread(char *line) {
    double values[64], sorted[64], work[64];
    char *fields[7];
    for (int i = 0; i < 7; i++) fields[i] = strsep(&line, "\t\n");
    size_t mild, severe, count = parse(fields[0], values);
    memcpy(sorted, values, sizeof sorted);
    ct__stats_sort(sorted, count);
    assert_near(ct__stats_quantile(sorted, count, 0.25), fields[1]);
    assert_near(ct__stats_quantile(sorted, count, 0.75), fields[2]);
    assert_true(ct__stats_quantile(sorted, count, 0) == sorted[0]);
    assert_true(ct__stats_quantile(sorted, count, 1) == sorted[count - 1]);
    assert_near(ct__stats_quantile(sorted, count, 0.5) - ct__stats_median(sorted, count), "0");
    assert_near(ct__stats_mad(values, count, ct__stats_median(sorted, count), work), fields[3]);
    ct__stats_outliers(sorted, count, &mild, &severe);
    assert_int_equal(mild, strtoul(fields[4], NULL, 10));
    assert_int_equal(severe, strtoul(fields[5], NULL, 10));
    assert_near(ct__stats_trend(values, count, work), fields[6]);
}

static void test_spread(void **unused) {
    (void)unused;
    for_each_line(CASES "/spread.tsv", check_spread);
}

/* Probability that a binomial(count, 1/2) is at most "most". */
static double below(size_t count, size_t most) {
    double sum = 0;
    for (size_t i = 0; i <= most; i++)
        sum += exp(lgamma((double)count + 1) - lgamma((double)i + 1) - lgamma((double)(count - i) + 1) -
                   (double)count * log(2));
    return sum;
}

static void check_coverage(double confidence, size_t least) {
    double tail = 1 - confidence;
    for (size_t count = 1; count <= 1024; count += count < 300 ? 1 : 97) {
        size_t rank = 0;
        int known = ct__stats_median_rank(count, confidence, &rank);
        assert_int_equal(known, count >= least);
        if (!known) continue;
        assert_true(2 * below(count, rank) <= tail * (1 + 1e-6));                             /* enough */
        assert_true(2 * below(count, rank + 1) > tail * (1 - 1e-6) || rank + 1 >= count / 2); /* and no wider */
    }
}

static void test_coverage(void **unused) {
    (void)unused;
    size_t rank;
    check_coverage(0.95, 6);
    check_coverage(0.99, 8);
    check_coverage(1 - 0.01 / 31, 13);
    assert_int_equal(ct__stats_median_rank(0, 0.95, &rank), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases), cmocka_unit_test(test_spread),
                                       cmocka_unit_test(test_coverage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
