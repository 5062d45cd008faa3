/* SPDX-License-Identifier: MIT
 *
 * Guards what a result says of the thread: differences between both ends, sums over turns, and what is not known with
 * its reason and never as a number. Fails if a count that went down comes out as a huge one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_clock.h"
#include "fake_host.h"
#include "fake_usage.h"
#include "usage.h"

static int setup(void **unused) {
    (void)unused;
    fake_usage_reset();
    return 0;
}

static void count_up(fake_body *body) {
    (void)body;
    fake_usage.switches += 1;
    fake_usage.preemptions += 2;
    fake_usage.minor_faults += 3;
    fake_usage.major_faults += 4;
    fake_usage.migrations += 5;
}

static void test_differences(void **unused) {
    (void)unused;
    fake_body body = {.call_ns = 1000000, .after = count_up};
    fake_usage.switches = 1000;
    ct_result *result = fake_time(7, 0, &body, NULL);
    const ct_usage *usage = &result->usage;
    assert_true(usage->known && usage->migrations_known);
    assert_string_equal(usage->reason, "");
    assert_true(usage->switches == body.chunks && usage->preemptions == 2 * body.chunks);
    assert_true(usage->minor_faults == 3 * body.chunks && usage->major_faults == 4 * body.chunks);
    assert_true(usage->migrations == 5 * body.chunks);
    assert_true(usage->cpu_ns >= 7000000 && usage->cpu_ns < 7100000);
    ct_result_free(result);
}

/* What happened while an automatic run warmed up is forgotten with it. */
static void test_warm_up_is_left_out(void **unused) {
    (void)unused;
    fake_body body = {.call_ns = 1000, .after = count_up};
    ct_result *result = fake_time(CT_N_AUTOMATIC, 0, &body, NULL);
    assert_true(result->usage.switches > 0 && result->usage.switches < body.chunks);
    assert_true(result->usage.cpu_ns <= result->elapsed_ns * 11 / 10);
    ct_result_free(result);
}

static void test_no_call(void **unused) {
    (void)unused;
    fake_body body = {0};
    ct_result *result = fake_time(0, 0, &body, NULL);
    assert_true(!result->usage.known && !result->usage.migrations_known && result->usage.switches == 0);
    assert_string_equal(result->usage.reason, "no call was made");
    ct_result_free(result);
}

static void test_not_told(void **unused) {
    (void)unused;
    fake_body body = {.call_ns = 1000, .after = count_up};
    fake_usage.known = fake_usage.migrations_known = 0;
    strcpy(fake_usage.reason, "this system keeps it to itself");
    ct_result *result = fake_time(10, 0, &body, NULL);
    assert_true(!result->usage.known && result->usage.cpu_ns == 0 && result->usage.switches == 0);
    assert_string_equal(result->usage.reason, "this system keeps it to itself");
    ct_result_free(result);

    fake_usage.known = 1; /* all but the migrations */
    result = fake_time(10, 0, &body, NULL);
    assert_true(result->usage.known && !result->usage.migrations_known && result->usage.migrations == 0);
    assert_string_equal(result->usage.reason, "this system keeps it to itself");
    ct_result_free(result);
}

static void count_down(fake_body *body) {
    (void)body;
    fake_usage.minor_faults = 0;
}

static void test_went_down(void **unused) {
    (void)unused;
    fake_body body = {.call_ns = 1000, .after = count_down};
    fake_usage.minor_faults = 100;
    ct_result *result = fake_time(10, 0, &body, NULL);
    assert_true(!result->usage.known && result->usage.minor_faults == 0);
    assert_non_null(strstr(result->usage.reason, "went down"));
    ct_result_free(result);
}

/* A run that is carried on in a child counts another thread. */
static void test_fork(void **unused) {
    (void)unused;
    ct_run *run;
    ct_result *result;
    uint64_t k;
    int status = 0;
    assert_int_equal(ct_time_begin("x", 10, NULL, &run), CT_OK);
    assert_int_equal(ct_time_next(run, &k), 1);
    pid_t child = fork();
    ct_time_done(run, k);
    assert_int_equal(ct_time_end(run, NULL, &result), CT_OK);
    int known = result->usage.known;
    ct_result_free(result);
    if (child == 0) _exit(known);
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    assert_true(known);
}

/* Sums of parts: what one part does not know, the sum does not. */
static void test_sums(void **unused) {
    (void)unused;
    ct__usage sum = {0}, start, end;
    ct_usage told;
    for (int i = 0; i < 3; i++) {
        ct__usage_read(&start, 1);
        fake_usage.switches += 10;
        ct__usage_read(&end, 1);
        fake_usage.switches += 1000; /* between the parts */
        ct__usage_add(&sum, &start, &end);
    }
    ct__usage_tell(&sum, &told);
    assert_true(told.known && told.switches == 30);
    ct__usage_read(&start, 1);
    ct__usage_read(&end, 0);
    ct__usage_add(&sum, &start, &end);
    ct__usage_tell(&sum, &told);
    assert_true(told.known && told.switches == 30 && !told.migrations_known);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_differences, setup), cmocka_unit_test_setup(test_warm_up_is_left_out, setup),
        cmocka_unit_test_setup(test_no_call, setup),     cmocka_unit_test_setup(test_not_told, setup),
        cmocka_unit_test_setup(test_went_down, setup),   cmocka_unit_test_setup(test_fork, setup),
        cmocka_unit_test_setup(test_sums, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
