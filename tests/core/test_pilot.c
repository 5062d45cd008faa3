/* SPDX-License-Identifier: MIT
 *
 * Guards automatic n over a scripted clock: growth at most tenfold, the budget kept whatever the body takes, a first
 * call longer than the budget as the result, warm-up forgotten and told once, batches long against the steps of the
 * clock, an end whatever the clock does, and errors and cuts anywhere. Fails if a chunk outgrows, if the host's break
 * is on the budget, or if a run ends with nothing measured.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "codetimer.h"
#include "fake_clock.h"
#include "fake_host.h"

static const uint64_t ms = 1000000, second = 1000000000;

static void check_sums(const ct_result *result) {
    uint64_t ns = 0, calls = 0;
    for (size_t i = 0; i < result->batches; i++) {
        ns += result->batches_ns[i];
        calls += result->batches_calls[i];
    }
    CHECK(ns == result->elapsed_ns && calls == result->calls && calls == result->n);
}

/* Bodies of 1 ns to 20 ms in a budget of 10 ms to 10 s: kept within a tenth, or half a call; and the time found. */
static void budget(void) {
    static const uint64_t bodies[] = {1, 7, 100, 3000, 100000, 1234567, 20000000};
    static const uint64_t budgets[] = {10000000, 200000000, 10000000000};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        for (size_t j = 0; j < sizeof budgets / sizeof budgets[0]; j++) {
            fake_body body = {.call_ns = bodies[i]};
            uint64_t start = fake_clock.ns;
            ct_result *result = fake_time(CT_N_AUTOMATIC, budgets[j], &body, NULL);
            double used = (double)(fake_clock.ns - start), slack = 0.1 * (double)budgets[j] + (double)bodies[i];
            CHECK(fabs(used - (double)budgets[j]) <= slack);
            CHECK(body.growth_max <= 10);
            CHECK(result->automatic && result->budget_ns == budgets[j]);
            CHECK(result->calls + result->warmup_calls == body.made && result->warmup_calls == body.warm_at);
            CHECK(fabs(result->per_call_ns / (double)bodies[i] - 1) < 0.05 + 100.0 / (double)budgets[j]);
            check_sums(result);
            ct_result_free(result);
        }
    }
}

/* 0 is 200 ms. */
static void default_budget(void) {
    fake_body body = {.call_ns = 50};
    ct_result *result = fake_time(CT_N_AUTOMATIC, 0, &body, NULL);
    CHECK(result->budget_ns == 200 * ms);
    CHECK(result->elapsed_ns > 180 * ms && result->elapsed_ns <= 200 * ms);
    CHECK(body.warms == 1);
    CHECK(result->batches >= 50 && result->interval_known);
    CHECK(result->notes_count == 0);
    ct_result_free(result);
}

/* A body of minutes is called once, and that is the result. */
static void first_call_is_the_result(void) {
    fake_body body = {.call_ns = 180 * second};
    ct_result *result = fake_time(CT_N_AUTOMATIC, 200 * ms, &body, NULL);
    CHECK(body.made == 1 && result->calls == 1 && result->n == 1 && result->warmup_calls == 0);
    CHECK(result->per_call_known && fabs(result->per_call_ns - 180e9) < 1e6);
    CHECK(fake_has_note(result, "no warm-up: the first call took most of the budget of 200.000 ms"));
    CHECK(body.warms == 0);
    check_sums(result);
    ct_result_free(result);

    fake_body slow = {.call_ns = 60 * ms, .first_ns = 60 * ms}; /* 120 ms, then one more call fits */
    result = fake_time(CT_N_AUTOMATIC, 200 * ms, &slow, NULL);
    CHECK(result->calls == 2 && fake_has_note(result, "no warm-up: the first calls took"));
    ct_result_free(result);

    fake_body fast = {.call_ns = 30 * ms}; /* the first 30 ms are forgotten */
    result = fake_time(CT_N_AUTOMATIC, 200 * ms, &fast, NULL);
    CHECK(result->warmup_calls == 1 && result->calls == 6 && result->warmup_ns / ms == 30);
    CHECK(result->notes_count == 0);
    ct_result_free(result);
}

/* The first call loads something for 20 ms: forgotten, and growth goes on from one call. */
static void slow_first_call(void) {
    fake_body body = {.call_ns = 100, .first_ns = 20 * ms};
    ct_result *result = fake_time(CT_N_AUTOMATIC, 200 * ms, &body, NULL);
    CHECK(result->warmup_calls == 1 && fabs(result->per_call_ns - 100) < 1);
    CHECK(result->elapsed_ns < 185 * ms && result->elapsed_ns > 170 * ms);
    CHECK(body.growth_max <= 10);
    ct_result_free(result);
}

/* The host collects for two seconds between warm-up and batches: not on the budget. */
static void break_is_not_counted(void) {
    fake_body body = {.call_ns = 100, .warm_ns = 2 * second};
    ct_result *result = fake_time(CT_N_AUTOMATIC, 200 * ms, &body, NULL);
    CHECK(result->elapsed_ns > 180 * ms && result->elapsed_ns <= 200 * ms);
    ct_result_free(result);
}

/* Budgets so small that nothing fits, and so large that nothing overflows. */
static void odd_budgets(void) {
    fake_body body = {.call_ns = 100};
    ct_result *result = fake_time(CT_N_AUTOMATIC, 1, &body, NULL);
    CHECK(body.made == 1 && result->calls == 1 && result->per_call_known);
    ct_result_free(result);

    fake_body failing = {.call_ns = second, .fails = 1, .fail_at = 1000};
    result = fake_time(CT_N_AUTOMATIC, UINT64_MAX, &failing, NULL);
    CHECK(failing.made == 1000 && result->calls < 1000 && result->batches == 1);
    ct_result_free(result);
}

static void stop_clock(fake_body *body) {
    if (body->made > 1000) fake_clock.counter_frozen = 1;
}

/* A clock that stands still ends the run after some chunks, and nothing is invented. */
static void frozen(void) {
    ct_now_ns(); /* chooses the counter while it runs */
    fake_clock.counter_frozen = 1;
    fake_body body = {.call_ns = 100};
    ct_result *result = fake_time(CT_N_AUTOMATIC, 200 * ms, &body, NULL);
    CHECK(body.chunks < 100 && body.growth_max <= 10);
    CHECK(!result->per_call_known && !result->interval_known && result->elapsed_ns == 0);
    CHECK(result->calls == body.made && fake_has_note(result, "did not move"));
    CHECK(!fake_has_note(result, "no warm-up"));
    ct_result_free(result);

    fake_clock.counter_frozen = 0;
    fake_body stops = {.call_ns = 100, .after = stop_clock};
    result = fake_time(CT_N_AUTOMATIC, 200 * ms, &stops, NULL);
    CHECK(stops.chunks < 200);
    ct_result_free(result);
}

/* A body of 0 ns, on a clock that moves by its own readings only. */
static void no_time_at_all(void) {
    fake_body body = {0};
    ct_result *result = fake_time(CT_N_AUTOMATIC, 200 * ms, &body, NULL);
    CHECK(body.chunks < 100 && result->calls > 1000000);
    CHECK(result->per_call_ns >= 0 && result->per_call_ns < 0.001);
    ct_result_free(result);
}

static uint64_t ticks_back;

static void step_back(fake_body *body) {
    if (body->chunks % 3 == 0) fake_clock.counter_jump -= (int64_t)ticks_back;
}

/* A clock that steps back now and then, and one that only does. */
static void steps_back(void) {
    ticks_back = 1000000;
    fake_body body = {.call_ns = 1000, .after = step_back};
    ct_result *result = fake_time(CT_N_AUTOMATIC, 20 * ms, &body, NULL);
    CHECK(body.growth_max <= 10 && result->elapsed_ns <= 21 * ms);
    CHECK(fake_has_note(result, "stepped back"));
    ct_result_free(result);

    ticks_back = 100 * second;
    fake_body worse = {.call_ns = 1000, .after = step_back};
    result = fake_time(CT_N_AUTOMATIC, 20 * ms, &worse, NULL);
    CHECK(result->elapsed_ns <= 21 * ms && worse.growth_max <= 10);
    ct_result_free(result);
}

/* Nearly all of a chunk seems never to have been: the rate looks a thousandfold, but growth bounds the next chunk. */
static void growth_bounds_a_wrong_rate(void) {
    ticks_back = 9900000; /* ticks of a chunk of 5 ms */
    fake_body body = {.call_ns = ms, .after = step_back};
    ct_result *result = fake_time(CT_N_AUTOMATIC, 500 * ms, &body, NULL);
    CHECK(body.growth_max <= 10 && body.made < 3000);
    ct_result_free(result);
}

static void jump_ahead(fake_body *body) {
    if (body->chunks == 12) fake_clock.counter_jump += INT64_C(1) << 45;
}

static void jumps_ahead(void) {
    fake_body body = {.call_ns = 1000, .after = jump_ahead};
    ct_result *result = fake_time(CT_N_AUTOMATIC, 200 * ms, &body, NULL);
    CHECK(body.chunks < 20 && result->calls > 0 && isfinite(result->per_call_ns));
    ct_result_free(result);
}

/* The system's clock, ticking every 15.6 ms, is coarse: few batches, and said so. */
static void coarse(void) {
    setenv("CODETIMER_CLOCK", "monotonic", 1);
    fake_clock.grain_ns = 15625000;
    static const uint64_t bodies[] = {50, 20000, 3000000, 40000000};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        fake_body body = {.call_ns = bodies[i]};
        uint64_t start = fake_clock.ns;
        ct_result *result = fake_time(CT_N_AUTOMATIC, 10 * second, &body, NULL);
        CHECK_BETWEEN(fake_clock.ns - start, 9 * second, 11 * second);
        CHECK(body.growth_max <= 10);
        CHECK_BETWEEN(result->per_call_ns / (double)bodies[i], 0.95, 1.05);
        CHECK_BETWEEN(result->resolution_ns, 15e6, 16e6);
        for (size_t b = 0; b + 1 < result->batches; b++) CHECK(result->batches_ns[b] >= 100 * UINT64_C(15625000));
        CHECK(result->batches <= 7);
        CHECK(!fake_has_note(result, "does not grow"));
        ct_result_free(result);

        result = fake_time(CT_N_AUTOMATIC, 200 * ms, &body, NULL);
        CHECK(fake_has_note(result, "the clock ticks only every 15.625 ms: measure longer"));
        CHECK(!result->interval_known);
        ct_result_free(result);
    }
}

/* An error at any call of the warm-up, of the measured ones, or at the first. */
static void errors(void) {
    for (uint64_t at = 0; at < 3000000; at = at * 3 / 2 + 1) {
        fake_body body = {.call_ns = 100, .fails = 1, .fail_at = at};
        ct_result *result = fake_time(CT_N_AUTOMATIC, 200 * ms, &body, NULL);
        if (result->interrupted == NULL) {
            ct_result_free(result);
            break;
        }
        CHECK(body.made == at && result->calls + result->warmup_calls == at && result->n == result->calls);
        CHECK(strcmp(result->interrupted, "error") == 0);
        CHECK(result->per_call_known == (result->batches > 0));
        CHECK(!fake_has_note(result, "no warm-up"));
        ct_result_free(result);
    }
}

/* A host that ends every chunk early: everything goes on in smaller ones. */
static void cut_chunks(void) {
    fake_body body = {.call_ns = 1000, .cut_at = 64};
    ct_result *result = fake_time(CT_N_AUTOMATIC, 200 * ms, &body, NULL);
    CHECK(fabs(result->per_call_ns - 1000) < 1 && result->elapsed_ns > 170 * ms && result->elapsed_ns < 200 * ms);
    CHECK(result->interrupted == NULL);
    CHECK(!fake_has_note(result, "does not grow"));
    ct_result_free(result);
}

/* Between the last call to warm up and the first to be measured the clock jumps beyond the budget: one batch is made
 * all the same. */
static void something_is_measured(void) {
    ct_run *run;
    ct_result *result;
    uint64_t k;
    fake_body body = {.call_ns = 20 * ms};
    CHECK(ct_time_begin("x", CT_N_AUTOMATIC, NULL, &run) == CT_OK);
    CHECK(ct_time_per_call_ns(run) == 0);
    CHECK(ct_time_next(run, &k) == 1);
    ct_time_done(run, fake_calls(run, &body, k));
    CHECK(fabs(ct_time_per_call_ns(run) - 2e7) < 1e4);
    fake_clock.ns += second;
    CHECK(ct_time_next(run, &k) == CT_WARM);
    fake_drive(run, &body);
    CHECK(ct_time_end(run, NULL, &result) == CT_OK);
    CHECK(result->calls == 1 && result->warmup_calls == 1 && result->per_call_known);
    ct_result_free(result);
}

/* Once it has said 0, it stays at that, even if the clock steps back. */
static void the_end_is_the_end(void) {
    ct_run *run;
    uint64_t k;
    fake_body body = {.call_ns = 1000};
    CHECK(ct_time_begin("x", CT_N_AUTOMATIC, NULL, &run) == CT_OK);
    for (int what; (what = ct_time_next(run, &k)) != 0; fake_clock.ns += ms) /* other threads get their turn */
        if (what == 1) ct_time_done(run, fake_calls(run, &body, k));
    fake_clock.counter_jump -= INT64_C(1) << 40;
    CHECK(ct_time_next(run, &k) == 0);
    CHECK(ct_time_progress(run) == 1);
    ct_run_free(run);
}

/* From 0 to 1, never back, for both kinds of runs. */
static void progress(void) {
    static const int64_t kinds[] = {CT_N_AUTOMATIC, 100000, 0};
    for (size_t i = 0; i < 3; i++) {
        ct_run *run;
        uint64_t k;
        double before = 0;
        fake_body body = {.call_ns = 1000, .warm_ns = 50 * ms};
        CHECK(ct_time_begin("x", kinds[i], NULL, &run) == CT_OK);
        for (int what; (what = ct_time_next(run, &k)) != 0;) {
            if (what == 1) ct_time_done(run, fake_calls(run, &body, k));
            double now = ct_time_progress(run);
            CHECK(now >= before && now <= 1);
            before = now;
        }
        CHECK(ct_time_progress(run) == 1);
        ct_run_free(run);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_CHILD(budget),
        IN_CHILD(default_budget),
        IN_CHILD(first_call_is_the_result),
        IN_CHILD(slow_first_call),
        IN_CHILD(break_is_not_counted),
        IN_CHILD(odd_budgets),
        IN_CHILD(frozen),
        IN_CHILD(no_time_at_all),
        IN_CHILD(steps_back),
        IN_CHILD(growth_bounds_a_wrong_rate),
        IN_CHILD(jumps_ahead),
        IN_CHILD(coarse),
        IN_CHILD(errors),
        IN_CHILD(cut_chunks),
        IN_CHILD(something_is_measured),
        IN_CHILD(the_end_is_the_end),
        IN_CHILD(progress),
    };
    unsetenv("CODETIMER_CLOCK");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
