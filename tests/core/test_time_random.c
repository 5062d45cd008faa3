/* SPDX-License-Identifier: MIT
 *
 * Guards that a run never reports a negative, infinite or invented value, whatever the clock does: random scripts
 * (fixed, printed seed) let it jump, stand still and step back, and end runs at random calls.
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
#include "fake_clock.h"

static void check_sums(const ct_result *result) {
    uint64_t ns = 0, calls = 0;
    for (size_t i = 0; i < result->batches; i++) {
        assert_true(result->batches_calls[i] > 0);
        ns += result->batches_ns[i];
        calls += result->batches_calls[i];
    }
    assert_true(ns <= result->elapsed_ns);
    assert_true(calls <= result->calls && result->calls <= result->n);
    if (result->interrupted != NULL) return;
    assert_true(ns == result->elapsed_ns && calls == result->calls && calls == result->n);
}

static void shake_clock(void) {
    switch (rand() % 6) {
    case 0: fake_clock.counter_jump += rand() % 1000000 - 500000; break;
    case 1: fake_clock.counter_frozen = rand() % 2; break;
    case 2: fake_clock.ns += (uint64_t)rand() % 100000000; break;
    case 3: fake_clock.step_ns = (uint64_t)rand() % 100; break;
    default: break;
    }
}

static void check_sane(const ct_result *result) {
    check_sums(result);
    if (!result->per_call_known) return;
    assert_true(isfinite(result->per_call_ns) && result->per_call_ns >= 0);
    if (!result->interval_known) return;
    assert_true(result->interval_low_ns >= 0 && result->interval_low_ns <= result->per_call_ns);
    assert_true(isfinite(result->interval_high_ns) && result->interval_high_ns >= result->per_call_ns);
}

static void test_random_scripts(void **unused) {
    (void)unused;
    char text[2048];
    unsigned seed = 20261129;
    print_message("seed %u\n", seed);
    srand(seed);
    for (int round = 0; round < 3000; round++) {
        uint64_t n = (uint64_t)rand() % 400;
        ct_run *run;
        ct_result *result;
        uint64_t k;
        int end_early = rand() % 4 == 0;
        ct_time_finish finish = {.size = sizeof finish, .interrupted = end_early ? "error" : NULL};
        assert_int_equal(ct_time_begin("random", (int64_t)n, NULL, &run), CT_OK);
        while (ct_time_next(run, &k)) {
            fake_clock.ns += (uint64_t)rand() % 2000000 * k;
            shake_clock();
            int fail = end_early && rand() % 10 == 0;
            ct_time_done(run, fail ? k / 2 : k);
        }
        assert_int_equal(ct_time_end(run, &finish, &result), CT_OK);
        check_sane(result);
        ct_report_format(result, NULL, text, sizeof text);
        assert_null(strstr(text, "nan"));
        assert_null(strstr(text, "inf "));
        assert_null(strchr(text, '?'));
        ct_result_free(result);
    }
    fake_clock_reset();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_scripts)};
    unsetenv("CODETIMER_CLOCK");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
