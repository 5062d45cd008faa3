/* SPDX-License-Identifier: MIT
 *
 * Guards the table of batches: nothing is lost when neighbours merge, a short last batch joins the one before, memory
 * is fixed. Random chunk lengths from a fixed, printed seed. Fails if a merge drops or doubles a batch.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "run.h"

static ct__batches batches;

static void check_sums(uint64_t ticks, uint64_t calls) {
    uint64_t all_ticks = 0, all_calls = 0;
    for (size_t i = 0; i < batches.count; i++) {
        all_ticks += batches.ticks[i];
        all_calls += batches.calls[i];
    }
    assert_true(all_ticks == ticks);
    assert_true(all_calls == calls);
}

static void test_nothing(void **unused) {
    (void)unused;
    ct__batches_start(&batches, 1000);
    ct__batches_finish(&batches);
    assert_int_equal(batches.count, 0);
}

static void test_one_short(void **unused) {
    (void)unused;
    ct__batches_start(&batches, 1000);
    ct__batches_add(&batches, 3, 1);
    ct__batches_finish(&batches);
    assert_int_equal(batches.count, 1);
    check_sums(3, 1);
}

static void test_short_last_joins(void **unused) {
    (void)unused;
    ct__batches_start(&batches, 1000);
    ct__batches_add(&batches, 1000, 10);
    ct__batches_add(&batches, 499, 5);
    ct__batches_finish(&batches);
    assert_int_equal(batches.count, 1);
    check_sums(1499, 15);
}

static void test_half_last_stands(void **unused) {
    (void)unused;
    ct__batches_start(&batches, 1000);
    ct__batches_add(&batches, 1000, 10);
    ct__batches_add(&batches, 500, 5);
    ct__batches_finish(&batches);
    assert_int_equal(batches.count, 2);
    check_sums(1500, 15);
}

static void test_calls_of_zero_length(void **unused) {
    (void)unused;
    ct__batches_start(&batches, 1000);
    for (int i = 0; i < 1000; i++) ct__batches_add(&batches, 0, 1);
    ct__batches_finish(&batches);
    assert_int_equal(batches.count, 1);
    check_sums(0, 1000);
}

static void test_doubling(void **unused) {
    (void)unused;
    ct__batches_start(&batches, 10);
    for (int i = 0; i < 100000; i++) ct__batches_add(&batches, 10, 1);
    ct__batches_finish(&batches);
    assert_true(batches.count >= CT_BATCHES_MAX / 2 && batches.count <= CT_BATCHES_MAX);
    uint64_t doubled = batches.target / 10; /* 100,000 calls in at most CT_BATCHES_MAX batches */
    assert_true(batches.target % 10 == 0 && (doubled & (doubled - 1)) == 0);
    assert_true(doubled >= 100000 / CT_BATCHES_MAX && doubled <= 200000 / CT_BATCHES_MAX * 2);
    check_sums(1000000, 100000);
}

static void test_random(void **unused) {
    (void)unused;
    unsigned seed = 20261129;
    print_message("seed %u\n", seed);
    srand(seed);
    for (int round = 0; round < 200; round++) {
        uint64_t ticks = 0, calls = 0;
        ct__batches_start(&batches, 1 + (uint64_t)rand() % 1000);
        int chunks = rand() % 5000;
        for (int i = 0; i < chunks; i++) {
            uint64_t length = (uint64_t)rand() % 3000, made = 1 + (uint64_t)rand() % 100;
            ct__batches_add(&batches, length, made);
            ticks += length;
            calls += made;
        }
        ct__batches_finish(&batches);
        assert_true(batches.count <= CT_BATCHES_MAX);
        check_sums(ticks, calls);
        for (size_t i = 0; i + 1 < batches.count; i++) assert_true(batches.ticks[i] >= batches.target / 2);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing),          cmocka_unit_test(test_one_short),
        cmocka_unit_test(test_short_last_joins), cmocka_unit_test(test_half_last_stands),
        cmocka_unit_test(test_calls_of_zero_length), cmocka_unit_test(test_doubling),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
