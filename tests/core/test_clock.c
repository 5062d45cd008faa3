/* SPDX-License-Identifier: MIT
 *
 * Guards the choice of the clock, its calibration, and that time never steps back, over scripted clocks: a counter that
 * is not trusted, that runs unevenly, that drifts, jumps or stops later; a system clock that stands still or ticks at
 * 15.6 ms. Fails if a refined line does not go on where the old one led, if drift is not noticed, or if one wide
 * bracket is taken for drift.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "child.h"
#include "clock.h"
#include "codetimer.h"
#include "fake_clock.h"

static ct_clock info(void) {
    ct_clock clock;
    ct_clock_info(&clock);
    return clock;
}

static void check_counter_chosen(void) {
    ct_clock clock = info();
    CHECK(strcmp(clock.source, "counter") == 0);
    CHECK_BETWEEN(clock.frequency_hz, 2e9 * (1 - 100e-6), 2e9 * (1 + 100e-6));
    CHECK_BETWEEN(clock.read_cost_ns, 9, 11);
    CHECK_BETWEEN(clock.resolution_ns, 9, 11);
    CHECK(strstr(clock.reason, "trusted by the script") != NULL);
}

static void check_calibration_is_short(void) {
    uint64_t before = fake_clock.ns;
    ct_now_ns();
    CHECK_BETWEEN(fake_clock.ns - before, 0, 1000000);
}

static void check_untrusted(void) {
    fake_clock.trusted = 0;
    ct_clock clock = info();
    CHECK(strcmp(clock.source, "fake") == 0);
    CHECK(strcmp(clock.reason, "not trusted by the script") == 0);
    CHECK(clock.frequency_hz == 0);
}

static void check_absent(void) {
    fake_clock.present = 0;
    CHECK(strcmp(info().source, "fake") == 0);
    CHECK(info().frequency_hz == 0);
}

static void check_forced_counter(void) {
    setenv("CODETIMER_CLOCK", "tsc", 1);
    fake_clock.trusted = 0;
    CHECK(strcmp(info().source, "counter") == 0);
    CHECK(strstr(info().reason, "CODETIMER_CLOCK=tsc") != NULL);
}

static void check_forced_system(void) {
    setenv("CODETIMER_CLOCK", "monotonic", 1);
    CHECK(strcmp(info().source, "fake") == 0);
    CHECK(info().frequency_hz > 1e9); /* still known: thread cycles need it */
}

static void check_odd_wish(void) {
    setenv("CODETIMER_CLOCK", "sundial", 1);
    CHECK(strcmp(info().source, "counter") == 0);
    CHECK(strstr(info().reason, "ignored") != NULL);
}

static void check_counter_stopped_from_the_start(void) {
    fake_clock.counter_frozen = 1;
    CHECK(strcmp(info().source, "fake") == 0);
}

static void check_system_clock_stopped(void) {
    fake_clock.frozen = 1;
    fake_clock.frozen_ns = 5;
    uint64_t now = ct_now_ns(); /* comes back at all */
    CHECK(ct_now_ns() == now);
    CHECK(info().resolution_ns == 0 && info().read_cost_ns == 0);
}

/* 200 s in odd steps through all refinements: monotone, and right within 5 ppm after the first second. */
static void check_refinement(void) {
    uint64_t before = ct_now_ns(), start = 0, true_start = 0;
    for (int i = 0; i < 200000; i++) {
        fake_clock.ns += 1 + (uint64_t)(i * 7919 % 2000000);
        uint64_t now = ct_now_ns();
        CHECK(now >= before);
        before = now;
        if (start == 0 && fake_clock.ns > 2200000000u) {
            start = now;
            true_start = fake_clock.ns;
        }
    }
    double rate = (double)(before - start) / (double)(fake_clock.ns - true_start);
    CHECK_BETWEEN(rate, 1 - 5e-6, 1 + 5e-6);
    CHECK(strcmp(info().source, "counter") == 0);
}

/* A first calibration that is 80 ppm off: the better rates that follow bend the line, and never break it. */
static void check_refined_line_is_unbroken(void) {
    double hz = fake_clock.counter_hz;
    fake_clock.counter_hz = hz * (1 + 80e-6);
    uint64_t before = ct_now_ns(), true_before = fake_clock.ns;
    fake_clock.counter_jump = (int64_t)((double)fake_clock.ns * (hz * 80e-6 / 1e9));
    fake_clock.counter_hz = hz;
    for (int i = 0; i < 300000; i++) {
        fake_clock.ns += 400;
        uint64_t now = ct_now_ns();
        double passed = (double)(fake_clock.ns - true_before);
        CHECK_BETWEEN(now - before, passed - 350, passed + 350); /* 35 readings of housekeeping; a break is 800 ns */
        before = now;
        true_before = fake_clock.ns;
    }
    CHECK_BETWEEN(info().frequency_hz, hz * (1 - 5e-6), hz * (1 + 5e-6));
}

static void run_for(uint64_t ns) {
    for (uint64_t end = fake_clock.ns + ns; fake_clock.ns < end; fake_clock.ns += 50000000) ct_now_ns();
}

static void check_given_up(uint64_t before) {
    uint64_t now = ct_now_ns();
    CHECK(now >= before);
    CHECK(strcmp(info().source, "fake") == 0);
    CHECK(strstr(info().reason, "given up") != NULL);
    CHECK(info().frequency_hz > 0); /* the last good rate still describes thread cycles */
    uint64_t start = ct_now_ns(), true_start = fake_clock.ns;
    run_for(10000000000u);
    double passed = (double)(fake_clock.ns - true_start);
    CHECK_BETWEEN(ct_now_ns() - start, passed * 0.999, passed * 1.001);
}

static void check_jump_forward(void) {
    run_for(3000000000u);
    fake_clock.counter_jump = 2000000000; /* one second ahead */
    run_for(3000000000u);
    check_given_up(ct_now_ns());
}

static void check_jump_back(void) {
    run_for(3000000000u);
    uint64_t before = ct_now_ns();
    fake_clock.counter_jump = -2000000000;
    CHECK(ct_now_ns() >= before); /* at once, without waiting for the next second */
    CHECK(strcmp(info().source, "fake") == 0);
    check_given_up(before);
}

static void check_other_rate(void) {
    run_for(3000000000u);
    double hz = fake_clock.counter_hz;
    fake_clock.counter_hz = hz * 1.001; /* a virtual machine that was moved */
    run_for(3000000000u);
    check_given_up(ct_now_ns());
}

static void check_counter_stops_later(void) {
    run_for(3000000000u);
    fake_clock.counter_frozen = 1;
    for (int i = 0; i < 10; i++) ct_now_ns();
    fake_clock.counter_frozen = 0; /* wakes up a second behind */
    fake_clock.counter_jump = -2000000000;
    run_for(2000000000u);
    check_given_up(ct_now_ns());
}

/* Preemption inside every bracket: too wide to tell, and not taken for drift. */
static void check_preemption_is_no_drift(void) {
    run_for(3000000000u);
    fake_clock.step_ns = 3000000;
    run_for(5000000000u);
    fake_clock.step_ns = 10;
    run_for(3000000000u);
    CHECK(strcmp(info().source, "counter") == 0);
}

static void check_uneven_counter(void) {
    /* a coarse system clock makes the halves differ by more than their error */
    fake_clock.grain_ns = 150000;
    CHECK(strcmp(info().source, "fake") == 0 || info().frequency_hz > 0);
    uint64_t before = ct_now_ns();
    run_for(2000000000u);
    CHECK(ct_now_ns() > before);
}

static void check_coarse_system_clock(void) {
    fake_clock.trusted = 0;
    fake_clock.grain_ns = 15600000;
    uint64_t before = ct_now_ns();
    for (int i = 0; i < 1000; i++) {
        fake_clock.ns += 1000000;
        uint64_t now = ct_now_ns();
        CHECK(now >= before);
        before = now;
    }
    CHECK_BETWEEN(info().resolution_ns, 0, 15600000);
}

/* A fork while the parent is at its housekeeping must not leave the child without one. */
static void check_after_fork(void) {
    run_for(1500000000u);
    uint64_t before = ct_now_ns();
    pid_t child = fork();
    if (child == 0) {
        run_for(3000000000u);
        CHECK(ct_now_ns() > before);
        exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0);
}

static void check_conversions(void) {
    int source = ct__clock_source();
    CHECK(ct__clock_ns(CT__SOURCE_SYSTEM, UINT64_MAX) == UINT64_MAX);
    CHECK_BETWEEN(ct__clock_ns(source, 2000000000), 999900000, 1000100000);
    CHECK_BETWEEN(ct__clock_ns(source, (uint64_t)1 << 63), 4.6110e18, 4.6122e18); /* 146 years */
    CHECK_BETWEEN(ct__clock_ticks_in(source, 1000), 1999, 2001);
    CHECK(ct__clock_ticks_in(CT__SOURCE_SYSTEM, 1000) == 1000);
}

#define SCENARIO(name)                                                                                                 \
    static void test_##name(void **unused) {                                                                           \
        (void)unused;                                                                                                  \
        fake_clock_reset();                                                                                            \
        assert_int_equal(run_in_child(check_##name), 0);                                                               \
    }

SCENARIO(counter_chosen)
SCENARIO(calibration_is_short)
SCENARIO(untrusted)
SCENARIO(absent)
SCENARIO(forced_counter)
SCENARIO(forced_system)
SCENARIO(odd_wish)
SCENARIO(counter_stopped_from_the_start)
SCENARIO(system_clock_stopped)
SCENARIO(refinement)
SCENARIO(refined_line_is_unbroken)
SCENARIO(jump_forward)
SCENARIO(jump_back)
SCENARIO(other_rate)
SCENARIO(counter_stops_later)
SCENARIO(preemption_is_no_drift)
SCENARIO(uneven_counter)
SCENARIO(coarse_system_clock)
SCENARIO(after_fork)
SCENARIO(conversions)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counter_chosen),
        cmocka_unit_test(test_calibration_is_short),
        cmocka_unit_test(test_untrusted),
        cmocka_unit_test(test_absent),
        cmocka_unit_test(test_forced_counter),
        cmocka_unit_test(test_forced_system),
        cmocka_unit_test(test_odd_wish),
        cmocka_unit_test(test_counter_stopped_from_the_start),
        cmocka_unit_test(test_system_clock_stopped),
        cmocka_unit_test(test_refinement),
        cmocka_unit_test(test_refined_line_is_unbroken),
        cmocka_unit_test(test_jump_forward),
        cmocka_unit_test(test_jump_back),
        cmocka_unit_test(test_other_rate),
        cmocka_unit_test(test_counter_stops_later),
        cmocka_unit_test(test_preemption_is_no_drift),
        cmocka_unit_test(test_uneven_counter),
        cmocka_unit_test(test_coarse_system_clock),
        cmocka_unit_test(test_after_fork),
        cmocka_unit_test(test_conversions),
    };
    unsetenv("CODETIMER_CLOCK");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
