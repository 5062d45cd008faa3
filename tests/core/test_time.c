/* SPDX-License-Identifier: MIT
 *
 * Guards the run over a scripted clock: exactly n calls for every n, growth at most double, chunks no longer than 5 ms,
 * sums of batches, ends by error at every call, clocks that stop, step back or tick at 15.6 ms, and arguments out of
 * range. Fails if a chunk cut short enters a batch, or if n is missed by one.
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
#include "fake_clock.h"

typedef struct script {
    uint64_t body_ns;
    uint64_t fail_at; /* this call (0-based) fails; UINT64_MAX: none */
    uint64_t made;
    uint64_t chunk_max, growth_max;
    int ask_due;
} script;

static const uint64_t no_failure = UINT64_MAX;

/* The host's side of a run, one call after the other. Returns the calls completed in this chunk. */
static uint64_t make_chunk(ct_run *run, script *host, uint64_t k) {
    uint64_t done = 0;
    while (done < k) {
        fake_clock.ns += host->body_ns;
        if (host->made == host->fail_at) return done;
        host->made++;
        done++;
        if (host->ask_due && done % 64 == 0 && ct_time_due(run)) return done;
    }
    return done;
}

static ct_result *run_script(int64_t n, script *host) {
    ct_run *run;
    ct_result *result;
    uint64_t k;
    ct_time_finish finish = {.size = sizeof finish};
    assert_int_equal(ct_time_begin("script", n, NULL, &run), CT_OK);
    while (ct_time_next(run, &k)) {
        if (host->chunk_max > 0 && k / host->chunk_max > host->growth_max) host->growth_max = k / host->chunk_max;
        if (k > host->chunk_max) host->chunk_max = k;
        uint64_t before = host->made;
        uint64_t done = make_chunk(run, host, k);
        ct_time_done(run, done);
        if (before + done == host->fail_at) finish.interrupted = "error";
    }
    assert_int_equal(ct_time_end(run, &finish, &result), CT_OK);
    return result;
}

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

static void test_exactly_n(void **unused) {
    (void)unused;
    static const int64_t counts[] = {0, 1, 2, 3, 7, 63, 64, 65, 1000, 1000003};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        script host = {100, no_failure, 0, 0, 0, 0};
        ct_result *result = run_script(counts[i], &host);
        assert_true(host.made == (uint64_t)counts[i] && result->calls == host.made && result->n == host.made);
        assert_true(host.growth_max <= 2);
        check_sums(result);
        ct_result_free(result);
    }
}

static void test_every_end_by_error(void **unused) {
    (void)unused;
    for (uint64_t at = 0; at < 300; at++) {
        script host = {1000, at, 0, 0, 0, 0};
        ct_result *result = run_script(300, &host);
        assert_true(result->calls == at && result->n == 300);
        assert_string_equal(result->interrupted, "error");
        assert_true(result->elapsed_ns >= (at + 1) * 1000 * 9 / 10); /* the failing call's time is there */
        check_sums(result);
        ct_result_free(result);
    }
}

/* Three calls of a second, then 5 s until the error: the average must not be spoilt by it. */
static void test_error_spoils_no_average(void **unused) {
    (void)unused;
    ct_run *run;
    ct_result *result;
    uint64_t k;
    ct_time_finish finish = {.size = sizeof finish, .interrupted = "interrupted"};
    assert_int_equal(ct_time_begin("x", 10, NULL, &run), CT_OK);
    for (int i = 0; ct_time_next(run, &k); i++) {
        fake_clock.ns += i < 3 ? 1000000000 * k : 5000000000;
        ct_time_done(run, i < 3 ? k : 0);
    }
    assert_int_equal(ct_time_end(run, &finish, &result), CT_OK);
    assert_true(result->calls == 3);
    assert_true(fabs(result->per_call_ns - 1e9) < 1e6);
    assert_true(result->elapsed_ns > 7999000000u && result->elapsed_ns < 8001000000u);
    ct_result_free(result);
}

static void test_chunks_stay_short(void **unused) {
    (void)unused;
    static const uint64_t bodies[] = {1, 20, 500, 40000, 900000, 3000000, 70000000};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        script host = {bodies[i], no_failure, 0, 0, 0, 0};
        uint64_t n = 20000000000u / bodies[i];
        ct_result *result = run_script((int64_t)(n > 3000000 ? 3000000 : n), &host);
        assert_true(host.chunk_max == 1 || host.chunk_max * bodies[i] <= 5100000);
        assert_true(result->batches <= CT_BATCHES_MAX);
        check_sums(result);
        ct_result_free(result);
    }
}

/* A body that turns slow in the middle of a large chunk: a host that asks is told to stop, and nothing is lost. */
static void test_due_ends_a_chunk(void **unused) {
    (void)unused;
    ct_run *run;
    ct_result *result;
    uint64_t k, made = 0;
    assert_int_equal(ct_time_begin("x", 1000000, NULL, &run), CT_OK);
    while (ct_time_next(run, &k)) {
        uint64_t start = fake_clock.ns, done = 0;
        while (done < k) {
            fake_clock.ns += made < 100000 ? 10 : 100000;
            made++;
            done++;
            if (done % 64 == 0 && ct_time_due(run)) break;
        }
        assert_true(fake_clock.ns - start < 12000000);
        ct_time_done(run, done);
        if (made > 200000) break;
    }
    assert_int_equal(ct_time_end(run, NULL, &result), CT_OK);
    assert_true(result->calls == made);
    assert_null(result->interrupted);
    ct_result_free(result);
}

/* A host with a reason of its own may end any chunk, and the run goes on. */
static void test_cut_ends_a_chunk(void **unused) {
    (void)unused;
    ct_run *run;
    ct_result *result;
    uint64_t k, made = 0;
    assert_int_equal(ct_time_begin("x", 10000, NULL, &run), CT_OK);
    while (ct_time_next(run, &k)) {
        uint64_t done = (k + 1) / 2;
        fake_clock.ns += 1000 * done;
        if (done < k) ct_time_cut(run);
        ct_time_done(run, done);
        made += done;
    }
    assert_int_equal(ct_time_end(run, NULL, &result), CT_OK);
    assert_true(made == 10000 && result->calls == 10000);
    check_sums(result);
    ct_result_free(result);
}

static void test_pauses(void **unused) {
    (void)unused;
    ct_run *run;
    ct_result *result;
    uint64_t k;
    int pauses = 0;
    uint64_t start = fake_clock.ns;
    assert_int_equal(ct_time_begin("x", 1000, NULL, &run), CT_OK);
    while (ct_time_next(run, &k)) {
        fake_clock.ns += 100000 * k;
        pauses += ct_time_done(run, k);
    }
    uint64_t passed = fake_clock.ns - start;
    assert_int_equal(ct_time_end(run, NULL, &result), CT_OK);
    assert_true(pauses <= (int)(passed / 5000000) && pauses >= (int)(passed / 5000000) / 2);
    ct_result_free(result);
}

static int has_note(const ct_result *result, const char *part) {
    for (size_t i = 0; i < result->notes_count; i++)
        if (strstr(result->notes[i], part) != NULL) return 1;
    return 0;
}

static void test_clock_steps_back(void **unused) {
    (void)unused;
    ct_run *run;
    ct_result *result;
    uint64_t k;
    assert_int_equal(ct_time_begin("x", 100, NULL, &run), CT_OK);
    for (int i = 0; ct_time_next(run, &k); i++) {
        fake_clock.ns += 1000 * k;
        if (i == 3) fake_clock.counter_jump -= 1000000000;
        ct_time_done(run, k);
    }
    fake_clock.counter_jump = 0;
    assert_int_equal(ct_time_end(run, NULL, &result), CT_OK);
    assert_true(result->calls == 100 && result->elapsed_ns < 110000);
    assert_true(has_note(result, "stepped back"));
    ct_result_free(result);
}

static void test_clock_stands_still(void **unused) {
    (void)unused;
    fake_clock.counter_frozen = 1;
    script host = {1000, no_failure, 0, 0, 0, 0};
    ct_result *result = run_script(100000, &host);
    fake_clock.counter_frozen = 0;
    assert_true(result->calls == 100000 && result->elapsed_ns == 0);
    assert_int_equal(result->per_call_known, 0);
    assert_true(has_note(result, "did not move"));
    ct_result_free(result);
}

static void test_cycles_and_gc(void **unused) {
    (void)unused;
    static const char *const labels[] = {"Gen 0", "Gen 1"};
    uint64_t before[] = {10, 2}, after[] = {17, 2}, k;
    ct_run *run;
    ct_result *result;
    ct_time_finish finish = {
        .size = sizeof finish, .gc_generations = 2, .gc_labels = labels, .gc_before = before, .gc_after = after};
    assert_int_equal(ct_time_begin("x", 1, NULL, &run), CT_OK);
    while (ct_time_next(run, &k)) ct_time_done(run, k);
    assert_int_equal(ct_time_end(run, &finish, &result), CT_OK);
    assert_int_equal(result->gc_generations, 2);
    assert_string_equal(result->gc_labels[1], "Gen 1");
    assert_true(result->gc_collections[0] == 7 && result->gc_collections[1] == 0);
    ct_result_free(result);

    after[1] = 1; /* counts went down: absent, not 0 */
    assert_int_equal(ct_time_begin("x", 1, NULL, &run), CT_OK);
    assert_int_equal(ct_time_end(run, &finish, &result), CT_OK);
    assert_int_equal(result->gc_generations, 0);
    assert_true(has_note(result, "collections are not shown"));
    ct_result_free(result);
}

static void test_names(void **unused) {
    (void)unused;
    ct_run *run;
    ct_result *result;
    ct_time_options options = {.size = sizeof options, .name_length = 3};
    assert_int_equal(ct_time_begin("a\0b", 0, &options, &run), CT_OK);
    assert_int_equal(ct_time_end(run, NULL, &result), CT_OK);
    assert_int_equal(result->name_length, 3);
    assert_memory_equal(result->name, "a\0b", 4);
    ct_result_free(result);
    assert_int_equal(ct_time_begin(NULL, 0, &options, &run), CT_OK);
    assert_int_equal(ct_time_end(run, NULL, &result), CT_OK);
    assert_int_equal(result->name_length, 0);
    ct_result_free(result);
}

static void test_notes(void **unused) {
    (void)unused;
    ct_run *run;
    ct_result *result;
    char large[1000];
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    assert_int_equal(ct_time_begin("x", 0, NULL, &run), CT_OK);
    for (int i = 0; i < 20; i++) ct_time_note(run, large);
    assert_int_equal(ct_time_end(run, NULL, &result), CT_OK);
    assert_int_equal(result->notes_count, 12);
    assert_int_equal(strlen(result->notes[11]), 199);
    ct_result_free(result);
}

static void test_bad_arguments(void **unused) {
    (void)unused;
    ct_run *run = NULL;
    ct_result *result = NULL;
    ct_time_finish finish = {.size = sizeof finish, .gc_generations = CT_GC_GENERATIONS_MAX + 1};
    assert_int_equal(ct_time_begin("x", -2, NULL, &run), CT_EINVAL);
    assert_int_equal(ct_time_begin("x", INT64_MIN, NULL, &run), CT_EINVAL);
    assert_int_equal(ct_time_begin("x", 1, NULL, NULL), CT_EINVAL);
    ct_time_options no_size = {.size = 0};
    assert_int_equal(ct_time_begin("x", 1, &no_size, &run), CT_EINVAL);
    assert_null(run);
    assert_int_equal(ct_time_begin("x", INT64_MAX, NULL, &run), CT_OK);
    assert_int_equal(ct_time_end(run, &finish, &result), CT_EINVAL);
    assert_null(result);
    assert_int_equal(ct_time_begin("x", INT64_MAX, NULL, &run), CT_OK);
    assert_int_equal(ct_time_end(run, NULL, NULL), CT_EINVAL);
    ct_run_free(NULL);
    ct_result_free(NULL);
}

/* A host that ends a chunk which it has not begun changes nothing. */
static void test_done_without_next(void **unused) {
    (void)unused;
    ct_run *run;
    ct_result *result;
    uint64_t k;
    assert_int_equal(ct_time_begin("x", 3, NULL, &run), CT_OK);
    assert_int_equal(ct_time_done(run, 5), 0);
    assert_int_equal(ct_time_next(run, &k), 1);
    fake_clock.ns += 1000;
    ct_time_done(run, 1);
    ct_time_done(run, 1);
    assert_int_equal(ct_time_end(run, NULL, &result), CT_OK);
    assert_true(result->calls == 1 && result->elapsed_ns < 2000);
    ct_result_free(result);
}

/* Two batches, one of them held up: the mean agrees with the elapsed time, their median would not. */
static void test_few_batches(void **unused) {
    (void)unused;
    ct_run *run;
    ct_result *result;
    uint64_t k;
    assert_int_equal(ct_time_begin("x", 20000, NULL, &run), CT_OK);
    for (int i = 0; ct_time_next(run, &k); i++) {
        fake_clock.ns += 100 * k + (i == 8 ? 30000000 : 0);
        ct_time_done(run, k);
    }
    assert_int_equal(ct_time_end(run, NULL, &result), CT_OK);
    assert_true(result->batches >= 2 && result->batches < 6 && !result->interval_known);
    assert_true(fabs(result->per_call_ns * 20000 - (double)result->elapsed_ns) < 1);
    ct_result_free(result);
}

/* Memory does not grow with n: what a run of 10^7 calls hands out is what a run of 10^3 does. */
static void test_size(void **unused) {
    (void)unused;
    script few = {10, no_failure, 0, 0, 0, 0}, many = {10, no_failure, 0, 0, 0, 0};
    ct_result *small = run_script(1000, &few);
    ct_result *large = run_script(10000000, &many);
    assert_true(large->batches_ns - (const uint64_t *)(const void *)large ==
                small->batches_ns - (const uint64_t *)(const void *)small);
    assert_true(large->batches <= CT_BATCHES_MAX);
    ct_result_free(small);
    ct_result_free(large);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exactly_n),
        cmocka_unit_test(test_every_end_by_error),
        cmocka_unit_test(test_error_spoils_no_average),
        cmocka_unit_test(test_chunks_stay_short),
        cmocka_unit_test(test_due_ends_a_chunk),
        cmocka_unit_test(test_cut_ends_a_chunk),
        cmocka_unit_test(test_pauses),
        cmocka_unit_test(test_clock_steps_back),
        cmocka_unit_test(test_clock_stands_still),
        cmocka_unit_test(test_cycles_and_gc),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_notes),
        cmocka_unit_test(test_bad_arguments),
        cmocka_unit_test(test_done_without_next),
        cmocka_unit_test(test_few_batches),
        cmocka_unit_test(test_size),
    };
    unsetenv("CODETIMER_CLOCK");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
