/* SPDX-License-Identifier: MIT
 *
 * Guards the truth of percentiles and averages: a million durations of each distribution of tests/cases/durations.tsv,
 * fed to a counter, against the exact values there, which Python and Lua are held to as well. Fails if a bucket's
 * bound, the rank or the interpolation is off by more than a bucket, or if a call is lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codetimer.h"

#ifndef CASES
#define CASES "tests/cases"
#endif

enum { COUNT = 1000000 };

static const uint64_t seed = 0x9E3779B97F4A7C15;
static const double bucket = 1.0905077326652577; /* 2^(1/8) */

typedef uint64_t (*distribution)(uint64_t number);

static uint64_t step(uint64_t *x) {
    *x ^= *x >> 12;
    *x ^= *x << 25;
    *x ^= *x >> 27;
    return *x * 0x2545F4914F6CDD1D;
}

static uint64_t lognormal(uint64_t number) {
    uint64_t sum = (number & 65535) + (number >> 16 & 65535) + (number >> 32 & 65535) + (number >> 48);
    uint64_t exponent = 655360 + 2 * sum;
    return ((65536 + (exponent & 65535)) << (exponent >> 16)) >> 16;
}

static uint64_t bimodal(uint64_t number) {
    return number >> 56 < 77 ? 1000000 + (number & 1048575) : 800 + (number & 255);
}

static uint64_t constant(uint64_t number) {
    (void)number;
    return 1234;
}

static void feed(const char *name, distribution make, ct_sample *sample) {
    ct_writer *writer;
    ct_counter *counter;
    uint64_t x = seed;
    assert_int_equal(ct_writer_open(NULL, &writer), CT_OK);
    assert_int_equal(ct_counter_open(writer, NULL, name, NULL, &counter), CT_OK);
    for (int i = 0; i < COUNT; i++) ct_counter_record(counter, make(step(&x)), CT_RETURNED);
    ct_counter_sample(counter, sample);
    ct_counter_close(counter);
    ct_writer_close(writer);
}

static void check_total(const ct_sample *sample, uint64_t total) {
    double average;
    assert_true(sample->calls == COUNT && sample->total_ns == total);
    assert_int_equal(ct_sample_average_ns(sample, &average), CT_OK);
    assert_true(average == (double)total / COUNT);
}

static void check_percentile(const ct_sample *sample, double percent, double exact) {
    double value;
    assert_int_equal(ct_sample_percentile_ns(sample, percent, &value), CT_OK);
    if (value > exact * bucket || value < exact / bucket) fail_msg("P%g is %f, exact %f", percent, value, exact);
    if (percent == 0) assert_true((double)sample->min_ns == exact);
    if (percent == 100) assert_true((double)sample->max_ns == exact);
}

/* Checks the lines of one distribution; returns how many there were. */
static int check_lines(FILE *file, const char *name, const ct_sample *sample) {
    char line[512];
    int seen = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        char *rest = line, *which = strsep(&rest, "\t"), *what = strsep(&rest, "\t");
        if (line[0] == '#' || strcmp(which, name) != 0) continue;
        seen++;
        if (strcmp(what, "total") == 0)
            check_total(sample, strtoull(rest, NULL, 10));
        else
            check_percentile(sample, strtod(what, NULL), strtod(rest, NULL));
    }
    return seen;
}

static void check(const char *name, distribution make) {
    ct_sample sample;
    feed(name, make, &sample);
    FILE *file = fopen(CASES "/durations.tsv", "r");
    assert_non_null(file);
    assert_true(check_lines(file, name, &sample) >= 10);
    fclose(file);
}

static void test_lognormal(void **unused) {
    (void)unused;
    check("lognormal", lognormal);
}

static void test_bimodal(void **unused) {
    (void)unused;
    check("bimodal", bimodal);
}

static void test_constant(void **unused) {
    (void)unused;
    check("constant", constant);
}

int main(void) {
    printf("seed 0x%llx\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lognormal), cmocka_unit_test(test_bimodal),
                                       cmocka_unit_test(test_constant)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
