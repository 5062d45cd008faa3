/* SPDX-License-Identifier: MIT
 *
 * Guards a whole run on the real system: a sleeping thread costs time but (next to) no cycles, a busy one as many as
 * its time on the CPU is worth, a run carried on by a forked child has none, and threads may each time for themselves.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "codetimer.h"

static int sleep_a_little(void *unused) {
    (void)unused;
    struct timespec length = {0, 50000000};
    nanosleep(&length, NULL);
    return 0;
}

static int work(void *unused) {
    (void)unused;
    for (volatile int i = 0; i < 20000; i++) {}
    return 0;
}

static double frequency_hz(void) {
    ct_clock clock;
    ct_clock_info(&clock);
    return clock.frequency_hz;
}

static void test_sleep(void **unused) {
    (void)unused;
    ct_result *result;
    assert_int_equal(ct_time("", 5, sleep_a_little, NULL, NULL, &result), CT_OK);
    assert_true(result->elapsed_ns >= 250000000);
    if (result->cycles_kind == CT_CYCLES_REFERENCE)
        assert_true((double)result->cycles < 0.05 * (double)result->elapsed_ns * frequency_hz() / 1e9);
    ct_result_free(result);
}

static uint64_t get_thread_ns(void) {
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* The CPU time of this thread at the end of the first and of the last of 20000 calls. */
typedef struct busy {
    int calls;
    uint64_t first_ns, last_ns;
} busy;

static int work_and_note(void *state) {
    busy *noted = state;
    noted->calls++;
    work(NULL);
    if (noted->calls == 1) noted->first_ns = get_thread_ns();
    if (noted->calls == 20000) noted->last_ns = get_thread_ns();
    return 0;
}

/* Its cycles lie between those of the CPU time seen from inside and from outside, however busy the machine is. */
static void test_busy(void **unused) {
    (void)unused;
    ct_result *result;
    busy noted = {0, 0, 0};
    uint64_t start_ns = get_thread_ns();
    assert_int_equal(ct_time("", 20000, work_and_note, &noted, NULL, &result), CT_OK);
    uint64_t outside_ns = get_thread_ns() - start_ns, inside_ns = noted.last_ns - noted.first_ns;
    if (result->cycles_kind == CT_CYCLES_REFERENCE) {
        double ns = (double)result->cycles / frequency_hz() * 1e9;
        print_message("CPU time: %.0f ns, %.4f of all\n", ns, ns / (double)outside_ns);
        assert_true(inside_ns > 0 && ns > 0.999 * (double)inside_ns && ns < 1.001 * (double)outside_ns);
    }
    assert_true(result->interval_known && result->batches >= 6);
    ct_result_free(result);
}

static int fork_at_first(void *state) {
    int *child = state;
    if (*child == -1) *child = fork();
    return 0;
}

static void test_fork(void **unused) {
    (void)unused;
    int child = -1, status = -1;
    ct_result *result;
    assert_int_equal(ct_time("", 10, fork_at_first, &child, NULL, &result), CT_OK);
    if (child == 0) {
        int absent = result->cycles_kind == CT_CYCLES_NONE && strstr(result->cycles_reason, "fork") != NULL;
        int right = result->calls == 10 && absent;
        _exit(right ? 0 : 1);
    }
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    assert_int_not_equal(result->cycles_kind, CT_CYCLES_NONE);
    ct_result_free(result);
}

static void *time_in_thread(void *failed) {
    ct_result *result;
    *(int *)failed = ct_time("", 2000, work, NULL, NULL, &result) != CT_OK || result->calls != 2000;
    ct_result_free(result);
    return NULL;
}

static void test_threads(void **unused) {
    (void)unused;
    pthread_t threads[3];
    int failed[3] = {1, 1, 1};
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, time_in_thread, &failed[i]), 0);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(failed[i], 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sleep),
        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
