/* SPDX-License-Identifier: MIT
 *
 * Guards the buckets: the index against long double log2 for every small number and millions of random ones, bounds
 * that meet without gap, upper bounds included, and quantiles within one bucket of the exact ones on constant, bimodal
 * and lognormal data. Fails if one entry of the table of eighths is off, or if the rank is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "histogram.h"

/* Bucket i (1-based after the one of 0) by definition: ceil(log2(v) * 8). */
static size_t expected_index(uint64_t value) {
    if (value == 0) return 0;
    if (value == 1) return 1;
    if (value > (uint64_t)1 << 42) return CT__BUCKET_OVERFLOW;
    if ((value & (value - 1)) == 0) { /* log2 is exact here, whatever the library's rounding */
        size_t exponent = 0;
        while ((uint64_t)1 << exponent < value) exponent++;
        return exponent * 8;
    }
    return (size_t)ceill(log2l((long double)value) * 8);
}

static void test_small_numbers(void **unused) {
    (void)unused;
    for (uint64_t value = 0; value < 2000000; value++)
        if (ct__histogram_index(value) != expected_index(value)) assert_int_equal(ct__histogram_index(value), value);
}

static uint64_t state = 20261129;

/* xorshift64* (Vigna 2016). */
static uint64_t next_random(void) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 2685821657736338717u;
}

static void test_random_numbers(void **unused) {
    (void)unused;
    print_message("seed %llu\n", (unsigned long long)state);
    for (int i = 0; i < 2000000; i++) {
        uint64_t value = next_random() >> (22 + next_random() % 42);
        if (ct__histogram_index(value) != expected_index(value)) assert_int_equal(ct__histogram_index(value), value);
    }
}

static void test_edges(void **unused) {
    (void)unused;
    assert_int_equal(ct__histogram_index((uint64_t)1 << 42), CT__BUCKETS - 2);
    assert_int_equal(ct__histogram_index(((uint64_t)1 << 42) + 1), CT__BUCKET_OVERFLOW);
    assert_int_equal(ct__histogram_index(UINT64_MAX), CT__BUCKET_OVERFLOW);
    for (size_t i = 2; i < CT__BUCKETS - 1; i++) {
        double lower = ct__histogram_lower_ns(i), upper = ct__histogram_upper_ns(i);
        assert_true(fabs(upper / lower - exp2(0.125)) < 1e-9);
        if (i > 2) assert_true(fabs(lower - ct__histogram_upper_ns(i - 1)) <= 1e-9 * lower);
        uint64_t inside = (uint64_t)upper;
        if ((double)inside > lower) assert_int_equal(ct__histogram_index(inside), i);
    }
    assert_true(isinf(ct__histogram_upper_ns(CT__BUCKET_OVERFLOW)));
}

enum { COUNT = 100000 };

static uint64_t values[COUNT];
static uint64_t buckets[CT__BUCKETS];

static int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void check_quantiles(void) {
    static const double fractions[] = {0.01, 0.25, 0.5, 0.9, 0.99, 0.999};
    memset(buckets, 0, sizeof buckets);
    for (int i = 0; i < COUNT; i++) buckets[ct__histogram_index(values[i])]++;
    qsort(values, COUNT, sizeof values[0], compare);
    for (size_t i = 0; i < sizeof fractions / sizeof fractions[0]; i++) {
        uint64_t exact = values[(size_t)ceil(fractions[i] * COUNT) - 1];
        double found = ct__histogram_quantile_ns(buckets, fractions[i], (double)values[COUNT - 1]);
        size_t bucket = ct__histogram_index(exact);
        assert_true(found >= ct__histogram_lower_ns(bucket) && found <= ct__histogram_upper_ns(bucket));
    }
}

static void test_constant(void **unused) {
    (void)unused;
    for (int i = 0; i < COUNT; i++) values[i] = 12345;
    check_quantiles();
}

static void test_bimodal(void **unused) {
    (void)unused;
    for (int i = 0; i < COUNT; i++)
        values[i] = i % 10 == 0 ? 1000000 + next_random() % 1000 : 500 + next_random() % 100;
    check_quantiles();
}

static void test_lognormal(void **unused) {
    (void)unused;
    for (int i = 0; i < COUNT; i++) {
        double u = ((double)(next_random() >> 11) + 1) / 9007199254740993.0;
        double v = (double)(next_random() >> 11) / 9007199254740992.0;
        values[i] = (uint64_t)exp(8 + 1.2 * sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
    }
    check_quantiles();
}

static void test_odd_contents(void **unused) {
    (void)unused;
    memset(buckets, 0, sizeof buckets);
    assert_true(ct__histogram_quantile_ns(buckets, 0.5, 9) == 0);
    buckets[0] = 10;
    assert_true(ct__histogram_quantile_ns(buckets, 0.5, 9) == 0);
    buckets[1] = 1000;
    assert_true(ct__histogram_quantile_ns(buckets, 0.5, 9) == 1);
    buckets[CT__BUCKET_OVERFLOW] = 1000000;
    assert_true(ct__histogram_quantile_ns(buckets, 0.99, 5e15) == 5e15);
    assert_true(ct__histogram_quantile_ns(buckets, 0, 5e15) == 0);
    assert_true(ct__histogram_quantile_ns(buckets, 1, 5e15) == 5e15);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_numbers), cmocka_unit_test(test_random_numbers), cmocka_unit_test(test_edges),
        cmocka_unit_test(test_constant),      cmocka_unit_test(test_bimodal),        cmocka_unit_test(test_lognormal),
        cmocka_unit_test(test_odd_contents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
