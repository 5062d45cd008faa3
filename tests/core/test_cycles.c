/* SPDX-License-Identifier: MIT
 *
 * Guards how what a system knows of a thread becomes ct_cycles: kinds, texts, the turning of CPU time into reference
 * ticks, and which two readings may be subtracted. Fails if the whole CPU time is multiplied by the newest rate (a
 * refinement would then look like work), if the missing is reported as a number, or if a reason is lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "../fake/child.h"
#include "../fake/fake_clock.h"
#include "../fake/fake_cycles.h"
#include "codetimer.h"
#include "cycles.h"
#include "platform/platform.h"

static int start_afresh(void **state) {
    (void)state;
    fake_clock_reset();
    fake_cycles_reset();
    return 0;
}

static void set_reading(int kind, uint64_t value, const char *source, const char *reason) {
    fake_cycles_state reading = {kind, value, 0, source, reason, 0};
    fake_cycles = reading;
}

static void test_core(void **state) {
    (void)state;
    ct_cycles cycles;
    set_reading(CT__CYCLES_CORE, UINT64_MAX, "perf", "left over");
    assert_int_equal(ct_thread_cycles(&cycles), CT_OK);
    assert_int_equal(cycles.kind, CT_CYCLES_CORE);
    assert_true(cycles.value == UINT64_MAX);
    assert_string_equal(cycles.source, "perf");
    assert_string_equal(cycles.reason, "");
}

static void test_reference(void **state) {
    (void)state;
    ct_cycles cycles;
    set_reading(CT__CYCLES_REFERENCE, 77, "QueryThreadCycleTime", "counts reference ticks");
    assert_int_equal(ct_thread_cycles(&cycles), CT_OK);
    assert_int_equal(cycles.kind, CT_CYCLES_REFERENCE);
    assert_true(cycles.value == 77);
    assert_string_equal(cycles.source, "QueryThreadCycleTime");
    assert_string_equal(cycles.reason, "counts reference ticks");
}

static void test_none(void **state) {
    (void)state;
    ct_cycles cycles;
    memset(&cycles, 1, sizeof cycles);
    set_reading(CT__CYCLES_NONE, 77, "nothing", "refused by the script");
    assert_int_equal(ct_thread_cycles(&cycles), CT_ENOTSUP);
    assert_int_equal(cycles.kind, CT_CYCLES_NONE);
    assert_true(cycles.value == 0);
    assert_string_equal(cycles.source, "");
    assert_string_equal(cycles.reason, "refused by the script");
    assert_int_equal(ct_thread_cycles(NULL), CT_EINVAL);
}

static void check_thread_time(void) {
    ct_cycles cycles;
    set_reading(CT__CYCLES_THREAD_NS, 3000000000u, "thread CPU time", "no counter");
    CHECK(ct_thread_cycles(&cycles) == CT_OK);
    CHECK(cycles.kind == CT_CYCLES_REFERENCE);
    CHECK_BETWEEN(cycles.value, 6e9 * (1 - 200e-6), 6e9 * (1 + 200e-6));
    CHECK(strncmp(cycles.source, "thread CPU time x 2,000.", 24) == 0 ||
          strncmp(cycles.source, "thread CPU time x 1,999.", 24) == 0);
    CHECK(strcmp(cycles.source + strlen(cycles.source) - 4, " MHz") == 0);
    CHECK(strcmp(cycles.reason, "no counter") == 0);
}

/* 2^63 ns are 292 years. */
static void check_no_overflow(void) {
    ct_cycles cycles;
    set_reading(CT__CYCLES_THREAD_NS, UINT64_C(1) << 62, "thread CPU time", "no counter");
    CHECK(ct_thread_cycles(&cycles) == CT_OK);
    CHECK_BETWEEN(cycles.value, 9.2e18, 9.3e18);
}

static void let_the_clock_refine(void) {
    for (int i = 0; i < 200; i++) {
        fake_clock.ns += 50000000;
        ct_now_ns();
    }
}

/* After 10,000 s of CPU time 1 ms more is 2,000,000 ticks, whatever became of the rate in between. */
static void check_refinement_is_no_work(void) {
    ct_cycles start, end, between;
    fake_clock.grain_ns = 40; /* so that the first rate is not exact */
    set_reading(CT__CYCLES_THREAD_NS, 10000000000000u, "thread CPU time", "no counter");
    CHECK(ct_thread_cycles(&start) == CT_OK);
    ct_clock first, last;
    ct_clock_info(&first);
    let_the_clock_refine();
    ct_clock_info(&last);
    CHECK(first.frequency_hz != last.frequency_hz); /* else this test shows nothing */
    fake_cycles.value += 1000000;
    CHECK(ct_thread_cycles(&end) == CT_OK);
    ct__cycles_between(&start, &end, &between);
    CHECK(between.kind == CT_CYCLES_REFERENCE);
    CHECK_BETWEEN(between.value, 1999000, 2001000);
}

static void check_no_frequency(void) {
    ct_cycles cycles;
    fake_clock.present = 0;
    set_reading(CT__CYCLES_THREAD_NS, 3000000000u, "thread CPU time", "no counter");
    CHECK(ct_thread_cycles(&cycles) == CT_ENOTSUP);
    CHECK(cycles.kind == CT_CYCLES_NONE && cycles.value == 0);
    CHECK(strncmp(cycles.reason, "no counter; ", 12) == 0);
    CHECK(strstr(cycles.reason, "no hardware counter whose rate is known") != NULL);
}

/* In a forked child the thread's CPU time begins anew. */
static void check_time_begins_anew(void) {
    ct_cycles before, after;
    set_reading(CT__CYCLES_THREAD_NS, 5000000000u, "thread CPU time", "no counter");
    CHECK(ct_thread_cycles(&before) == CT_OK);
    fake_cycles.value = 1000000;
    CHECK(ct_thread_cycles(&after) == CT_OK);
    CHECK_BETWEEN(after.value - before.value, 1999000, 2001000);
}

static void test_thread_time(void **state) {
    (void)state;
    assert_int_equal(run_in_child(check_thread_time), 0);
    assert_int_equal(run_in_child(check_no_overflow), 0);
    assert_int_equal(run_in_child(check_refinement_is_no_work), 0);
    assert_int_equal(run_in_child(check_no_frequency), 0);
    assert_int_equal(run_in_child(check_time_begins_anew), 0);
}

static ct_cycles make_cycles(int kind, uint64_t value, const char *source, const char *reason) {
    ct_cycles cycles;
    memset(&cycles, 0, sizeof cycles);
    cycles.kind = kind;
    cycles.value = value;
    strcpy(cycles.source, source);
    strcpy(cycles.reason, reason);
    return cycles;
}

static void assert_between(ct_cycles start, ct_cycles end, int kind, uint64_t value, const char *reason_part) {
    ct_cycles between;
    ct__cycles_between(&start, &end, &between);
    assert_int_equal(between.kind, kind);
    assert_true(between.value == value);
    assert_non_null(strstr(between.reason, reason_part));
    assert_string_equal(between.source, kind == CT_CYCLES_NONE ? "" : end.source);
}

static void test_between(void **state) {
    (void)state;
    ct_cycles core = make_cycles(CT_CYCLES_CORE, 100, "perf", "");
    ct_cycles later = make_cycles(CT_CYCLES_CORE, 130, "perf", "");
    ct_cycles reopened = make_cycles(CT_CYCLES_CORE, 130, "perf #2", "");
    ct_cycles slow = make_cycles(CT_CYCLES_REFERENCE, 10, "x 2,000.0 MHz", "no PMU");
    ct_cycles refined = make_cycles(CT_CYCLES_REFERENCE, 40, "x 2,000.1 MHz", "no PMU");
    ct_cycles none = make_cycles(CT_CYCLES_NONE, 0, "", "refused");
    assert_between(core, later, CT_CYCLES_CORE, 30, "");
    assert_between(core, core, CT_CYCLES_CORE, 0, "");
    assert_between(slow, refined, CT_CYCLES_REFERENCE, 30, "no PMU");
    assert_between(core, reopened, CT_CYCLES_NONE, 0, "replaced");
    assert_between(core, refined, CT_CYCLES_NONE, 0, "source of the cycles changed");
    assert_between(later, core, CT_CYCLES_NONE, 0, "went back");
    assert_between(none, core, CT_CYCLES_NONE, 0, "refused");
    assert_between(core, none, CT_CYCLES_NONE, 0, "refused");
}

static void test_kind_names(void **state) {
    (void)state;
    assert_string_equal(ct_cycles_kind_name(CT_CYCLES_CORE), "core");
    assert_string_equal(ct_cycles_kind_name(CT_CYCLES_REFERENCE), "reference");
    assert_string_equal(ct_cycles_kind_name(CT_CYCLES_NONE), "none");
    assert_string_equal(ct_cycles_kind_name(99), "none");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_core, start_afresh),    cmocka_unit_test_setup(test_reference, start_afresh),
        cmocka_unit_test_setup(test_none, start_afresh),    cmocka_unit_test_setup(test_thread_time, start_afresh),
        cmocka_unit_test_setup(test_between, start_afresh), cmocka_unit_test_setup(test_kind_names, start_afresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
