/* SPDX-License-Identifier: MIT
 *
 * Guards the statistics: the shared cases of tests/cases/stats.tsv, and the coverage of the interval for every count of
 * batches that can occur, summed exactly from the binomial distribution. Fails if a rank is off by one either way.
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

static void test_cases(void **unused) {
    (void)unused;
    char line[512];
    int seen = 0;
    FILE *file = fopen(CASES "/stats.tsv", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (line[0] == '#') continue;
        check_case(line);
        seen++;
    }
    fclose(file);
    assert_true(seen >= 10);
}

/* Probability that a binomial(count, 1/2) is at most "most". */
static double below(size_t count, size_t most) {
    double sum = 0;
    for (size_t i = 0; i <= most; i++)
        sum += exp(lgamma((double)count + 1) - lgamma((double)i + 1) - lgamma((double)(count - i) + 1) -
                   (double)count * log(2));
    return sum;
}

static void test_coverage(void **unused) {
    (void)unused;
    for (size_t count = 1; count <= CT_BATCHES_MAX; count++) {
        size_t rank = 0;
        int known = ct__stats_median_rank(count, 0.95, &rank);
        assert_int_equal(known, count >= 6);
        if (!known) continue;
        assert_true(2 * below(count, rank) <= 0.05 + 1e-9);     /* enough */
        assert_true(2 * below(count, rank + 1) > 0.05 - 1e-9 || rank + 1 >= count / 2); /* and no wider than needed */
    }
    size_t rank;
    assert_int_equal(ct__stats_median_rank(0, 0.95, &rank), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases), cmocka_unit_test(test_coverage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
