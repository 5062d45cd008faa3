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

/* Time that this thread waited for a CPU; 0 where the kernel does not tell. */
static uint64_t run_delay_ns(void) {
    unsigned long long on_cpu = 0, waited = 0;
    FILE *file = fopen("/proc/thread-self/schedstat", "r");
    if (file == NULL) return 0;
    if (fscanf(file, "%llu %llu", &on_cpu, &waited) != 2) waited = 0;
    fclose(file);
    return waited;
}

static void test_busy(void **unused) {
    (void)unused;
    ct_result *result;
    uint64_t waited = run_delay_ns();
    assert_int_equal(ct_time("", 20000, work, NULL, NULL, &result), CT_OK);
    waited = run_delay_ns() - waited;
    if (result->cycles_kind == CT_CYCLES_REFERENCE) {
        double expected = ((double)result->elapsed_ns - (double)waited) * frequency_hz() / 1e9;
        print_message("cycles are %.4f of frequency x time on the CPU\n", (double)result->cycles / expected);
        assert_true((double)result->cycles > 0.9 * expected && (double)result->cycles < 1.1 * expected);
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
