/* SPDX-License-Identifier: MIT
 *
 * Guards verdicts: medians and order-statistic intervals of log-ratios, the correction for several candidates, no
 * difference below what the twin shows, results that were not measured in turns, and the sentences. Fails if a
 * difference is claimed of noise, or if a ratio is infinite or not a number.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codetimer.h"
#include "compare.h"

static ct__comparison_block block;

/* Rows of times in ns: of "a", "b" and the twin. */
static void fill(size_t count, size_t rounds) {
    memset(&block, 0, sizeof block);
    block.comparison.count = count;
    block.stored = rounds;
    strcpy(block.reason, "too few");
}

static double random_part(void) { return (double)rand() / RAND_MAX; }

static ct_ratio judge(void) {
    ct_ratio ratio;
    ct__ratio_of_rows(&block, block.comparison.count, 0, &block.comparison.twin);
    assert_int_equal(ct_comparison_ratio(&block.comparison, 1, 0, &ratio), CT_OK);
    return ratio;
}

static void test_known_ratios(void **unused) {
    (void)unused;
    fill(2, 21);
    for (size_t i = 0; i < 21; i++) { /* ratios of 1.10 to 1.30 in any order; the machine slows down meanwhile */
        double pace = log(100 + 10 * (double)i);
        block.logs[0][i] = block.logs[2][i] = (float)pace;
        block.logs[1][i] = (float)(pace + log(1.10 + 0.01 * (double)(i * 8 % 21)));
    }
    ct_ratio ratio = judge();
    assert_true(ratio.known && ratio.different && ratio.in_turns && ratio.reason == NULL);
    assert_true(fabs(ratio.ratio - 1.20) < 1e-5);
    assert_true(fabs(ratio.low - 1.14) < 1e-5 && fabs(ratio.high - 1.26) < 1e-5); /* the 5th of 21: 0.993 */
    assert_true(fabs(ratio.confidence - 0.99) < 1e-12);
    assert_true(block.comparison.twin.ratio == 1 && block.comparison.twin.low == 1);
}

/* 8 rounds are the least for two; each further candidate asks for more. */
static void test_rounds_needed(void **unused) {
    (void)unused;
    static const size_t needed[] = {0, 0, 8, 9, 10, 10, 10};
    for (size_t count = 2; count < 7; count++) assert_int_equal(ct__ratio_rounds_needed(count), needed[count]);
    assert_int_equal(ct__ratio_rounds_needed(32), 13);
    for (size_t rounds = 0; rounds < 20; rounds++) {
        fill(2, rounds);
        ct_ratio ratio = judge();
        assert_int_equal(ratio.known, rounds >= 8);
        if (!ratio.known) assert_string_equal(ratio.reason, "too few");
    }
    fill(2, 10);
    block.logs[1][3] = block.logs[1][4] = block.logs[1][5] = NAN; /* the clock saw nothing */
    ct_ratio ratio = judge();
    assert_true(!ratio.known && block.comparison.twin.known);
}

/* A difference of 3 %, clear by its own interval: claimed only if the twin shows less than half of it. */
static void test_floor(void **unused) {
    (void)unused;
    for (int percent = 0; percent <= 4; percent++) {
        fill(2, 30);
        for (size_t i = 0; i < 30; i++) {
            block.logs[1][i] = (float)log(1.03);
            block.logs[2][i] = (float)(log(1 + percent / 100.0) * (i % 2 == 0 ? 1 : -1));
        }
        ct_ratio ratio = judge();
        assert_int_equal(ratio.different, percent <= 1);
        if (percent > 0) assert_true(ratio.resolved >= 2 * percent / 100.0 - 1e-6);
    }
}

/* Resolved perfectly, but too small to be believed of one process: the interval as a whole has to be large enough. */
static void test_least(void **unused) {
    static const struct {
        double low, high;
        int different;
    } cases[] = {
        {1.0009, 1.0009, 0}, {1.0012, 1.0012, 1}, {1.0005, 1.0035, 0}, {0.9965, 0.9995, 0}, {0.9965, 0.998, 1}};
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fill(2, 30);
        for (size_t round = 0; round < 30; round++)
            block.logs[1][round] = (float)log(round % 2 == 0 ? cases[i].low : cases[i].high);
        ct_ratio ratio = judge();
        assert_true(ratio.known && ratio.different == cases[i].different);
        assert_true(ratio.resolved >= 0.001 - 1e-9 && ratio.resolved < 0.0016);
    }
}

/* Identical candidates: rounds of independent noise with outliers, 5000 comparisons of 6 candidates each. */
static void test_false_claims(void **unused) {
    (void)unused;
    int claims = 0;
    srand(20261130);
    for (int trial = 0; trial < 1000; trial++) {
        fill(6, 40);
        for (size_t row = 0; row <= 6; row++)
            for (size_t i = 0; i < 40; i++)
                block.logs[row][i] = (float)(random_part() * 0.1 + (rand() % 5 == 0 ? random_part() : 0));
        ct__ratio_of_rows(&block, 6, 0, &block.comparison.twin);
        int claimed = 0;
        for (size_t row = 1; row < 6; row++) {
            ct_ratio ratio;
            assert_int_equal(ct_comparison_ratio(&block.comparison, row, 0, &ratio), CT_OK);
            claimed |= ratio.different;
        }
        claims += claimed;
    }
    assert_true(claims <= 10); /* 1 %, of all together; with the twin far fewer */
}

static void test_any_two(void **unused) {
    (void)unused;
    ct_ratio ratio, inverse;
    fill(3, 20);
    for (size_t i = 0; i < 20; i++) {
        block.logs[1][i] = (float)log(2);
        block.logs[2][i] = (float)log(3);
    }
    ct__ratio_of_rows(&block, 3, 0, &block.comparison.twin);
    assert_int_equal(ct_comparison_ratio(&block.comparison, 2, 1, &ratio), CT_OK);
    assert_int_equal(ct_comparison_ratio(&block.comparison, 1, 2, &inverse), CT_OK);
    assert_true(fabs(ratio.ratio - 1.5) < 1e-5 && fabs(ratio.ratio * inverse.ratio - 1) < 1e-9);
    assert_int_equal(ct_comparison_ratio(&block.comparison, 1, 1, &ratio), CT_OK);
    assert_true(ratio.known && ratio.ratio == 1 && !ratio.different);
    assert_int_equal(ct_comparison_ratio(&block.comparison, 3, 0, &ratio), CT_EINVAL);
    assert_int_equal(ct_comparison_ratio(NULL, 0, 0, &ratio), CT_EINVAL);
    assert_int_equal(ct_comparison_ratio(&block.comparison, 0, 0, NULL), CT_EINVAL);
}

/* ---- not in turns ---- */

static ct_result result_of(double low, double median, double high) {
    return (ct_result){.per_call_known = 1,
                       .per_call_ns = median,
                       .interval_known = 1,
                       .interval_low_ns = low,
                       .interval_high_ns = high};
}

static void test_results(void **unused) {
    (void)unused;
    ct_result a = result_of(190, 200, 210), b = result_of(95, 100, 105), c = result_of(104, 110, 120);
    ct_ratio ratio;
    assert_int_equal(ct_result_ratio(&a, &b, 0, &ratio), CT_OK);
    assert_true(ratio.known && ratio.different && !ratio.in_turns && ratio.ratio == 2);
    assert_true(fabs(ratio.low - 190.0 / 105) < 1e-12 && fabs(ratio.high - 210.0 / 95) < 1e-12);
    assert_int_equal(ct_result_ratio(&c, &b, 0, &ratio), CT_OK);
    assert_true(ratio.known && !ratio.different && ratio.resolved > 0.1);
    assert_int_equal(ct_result_ratio(&a, &b, 1, &ratio), CT_EINVAL); /* no net */
    a.net_known = b.net_known = 1;
    a.net_low_ns = 150, a.net_high_ns = 170, b.net_low_ns = 70, b.net_high_ns = 90;
    assert_int_equal(ct_result_ratio(&a, &b, 1, &ratio), CT_OK);
    assert_true(ratio.ratio == 2 && ratio.different);
    b.interval_known = 0;
    assert_int_equal(ct_result_ratio(&a, &b, 0, &ratio), CT_EINVAL);
    assert_int_equal(ct_result_ratio(NULL, &b, 0, &ratio), CT_EINVAL);
    assert_int_equal(ct_result_ratio(&a, NULL, 0, &ratio), CT_EINVAL);
    assert_int_equal(ct_result_ratio(&a, &a, 0, NULL), CT_EINVAL);
}

/* Whatever touches 0 has no ratio, and is no infinite one. */
static void test_results_of_nothing(void **unused) {
    (void)unused;
    ct_result a = result_of(190, 200, 210), b = result_of(95, 100, 105), zero = result_of(0, 0, 0);
    ct_ratio ratio;
    a.net_known = b.net_known = 1;
    a.net_low_ns = 150, a.net_high_ns = 170, b.net_high_ns = 9;
    assert_int_equal(ct_result_ratio(&a, &b, 1, &ratio), CT_OK);
    assert_true(!ratio.known && strstr(ratio.reason, "empty call") != NULL);
    assert_int_equal(ct_result_ratio(&b, &a, 1, &ratio), CT_OK);
    assert_true(!ratio.known && !ratio.different);
    assert_int_equal(ct_result_ratio(&a, &zero, 0, &ratio), CT_OK);
    assert_true(!ratio.known && strstr(ratio.reason, "the clock saw nothing") != NULL);
    ct_result tiny = result_of(5e-324, 1e-300, 1), huge = result_of(1e300, 1e305, 1e308);
    assert_int_equal(ct_result_ratio(&huge, &tiny, 0, &ratio), CT_OK);
    assert_false(ratio.known);
}

/* ---- sentences ---- */

static void check_verdict(ct_ratio ratio, int ascii, const char *expected) {
    char text[512];
    ct_report_options options = {.size = sizeof options, .ascii = ascii};
    size_t length = ct_ratio_verdict(&ratio, "b\n", "a", &options, text, sizeof text);
    assert_string_equal(text, expected);
    assert_int_equal(length, strlen(expected));
}

static ct_ratio of(double low, double ratio, double high, int different) {
    return (ct_ratio){.known = 1, .ratio = ratio, .low = low, .high = high, .different = different, .in_turns = 1};
}

static void test_sentences(void **unused) {
    (void)unused;
    ct_ratio same = of(0.99, 1, 1.01, 0), apart = of(1.2, 1.5, 1.8, 1), unknown = {.reason = "no rounds"};
    check_verdict(of(0.73, 0.746, 0.763, 1), 0,
                  "b\\n is 1.34\xc3\x97 faster than a, 1.31\xe2\x80\x93"
                  "1.37");
    check_verdict(of(1.31, 1.34, 1.37, 1), 1, "b\\n is 1.34x slower than a, 1.31-1.37");
    check_verdict(of(1.04, 1.05, 1.06, 1), 1, "b\\n is 1.050x slower than a, 1.040-1.060");
    check_verdict(of(1.0493, 1.0495, 1.0497, 1), 1, "b\\n is 1.0495x slower than a, 1.0493-1.0497");
    check_verdict(of(1.0004, 1.0006, 1.0009, 1), 1, "b\\n is 1.0006x slower than a, 1.0004-1.0009");
    check_verdict(of(900, 1234, 2000, 1), 1, "b\\n is 1,234x slower than a, 900-2,000");
    check_verdict(of(1e-30, 1e-20, 1e-10, 1), 1,
                  "b\\n is > 1,000,000,000x faster than a, > 1,000,000,000-> 1,000,000,000");
    same.resolved = 0.008;
    check_verdict(same, 0, "b\\n and a: no difference resolved; this machine resolves \xe2\x89\xa5 0.8 %");
    same.resolved = 0.0004;
    check_verdict(same, 1, "b\\n and a: no difference resolved; this machine resolves >= 0.04 %");
    same.resolved = 0;
    check_verdict(same, 1, "b\\n and a: no difference resolved; this machine resolves < 0.01 %");
    same.resolved = 2e6;
    check_verdict(same, 1, "b\\n and a: no difference resolved; this machine resolves > 100,000,000 %");
    same.in_turns = apart.in_turns = 0;
    same.resolved = 0.2;
    check_verdict(same, 1,
                  "b\\n and a: no difference resolved; these results resolve >= 20.0 % (not measured in turns)");
    check_verdict(apart, 1, "b\\n is 1.50x slower than a, 1.20-1.80 (not measured in turns)");
    check_verdict(unknown, 0, "b\\n and a: not compared (no rounds)");
    assert_true(ct_ratio_verdict(&unknown, "b", "a", NULL, NULL, 0) == strlen("b and a: not compared (no rounds)"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_ratios), cmocka_unit_test(test_rounds_needed),
        cmocka_unit_test(test_floor),        cmocka_unit_test(test_least),
        cmocka_unit_test(test_false_claims), cmocka_unit_test(test_any_two),
        cmocka_unit_test(test_results),      cmocka_unit_test(test_results_of_nothing),
        cmocka_unit_test(test_sentences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
