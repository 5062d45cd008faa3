/* SPDX-License-Identifier: MIT
 *
 * Guards ct_thread_cycles as this machine has it: no time asleep, one thread at a time, the stated rate, nothing left
 * behind by threads that end, nothing inherited by a forked child. Fails if a wall clock is read, if another thread's
 * work is counted, or if a thread's descriptor outlives it (on machines with a counter).
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "../fake/child.h"
#include "codetimer.h"
#include "cycles.h"

static ct_cycles read_really(void) {
    ct_cycles cycles;
    int status = ct_thread_cycles(&cycles);
    assert_int_equal(status, cycles.kind == CT_CYCLES_NONE ? CT_ENOTSUP : CT_OK);
    assert_true((cycles.reason[0] == '\0') == (cycles.kind == CT_CYCLES_CORE));
    assert_true((cycles.source[0] == '\0') == (cycles.kind == CT_CYCLES_NONE));
    return cycles;
}

static void require_cycles(const ct_cycles *cycles) {
    if (cycles->kind != CT_CYCLES_NONE) return;
    print_message("skipped: no thread cycles here: %s\n", cycles->reason);
    skip();
}

static uint64_t get_thread_ns(void) {
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

static void spin(uint64_t thread_ns) {
    uint64_t end = get_thread_ns() + thread_ns;
    while (get_thread_ns() < end) {
    }
}

static uint64_t count_between(const ct_cycles *start, const ct_cycles *end) {
    ct_cycles between;
    ct__cycles_between(start, end, &between);
    if (between.kind == CT_CYCLES_NONE) fail_msg("%s", between.reason);
    return between.value;
}

/* 20 ms of work against 100 ms of sleep: a wall clock would show the sleep as the longer. */
static void test_sleep_is_free(void **state) {
    (void)state;
    const struct timespec rest = {0, 100000000};
    ct_cycles start = read_really();
    require_cycles(&start);
    spin(20000000);
    ct_cycles worked = read_really();
    nanosleep(&rest, NULL);
    ct_cycles slept = read_really();
    uint64_t work = count_between(&start, &worked), sleep = count_between(&worked, &slept);
    assert_true(work > 1000000);
    assert_true(sleep < work / 4);
}

/* Reference cycles of a stretch are its CPU time times the frequency in the text of the source. */
static void test_rate(void **state) {
    (void)state;
    ct_clock clock;
    ct_clock_info(&clock);
    ct_cycles start = read_really();
    if (start.kind != CT_CYCLES_REFERENCE) skip();
    uint64_t start_ns = get_thread_ns();
    spin(20000000);
    ct_cycles end = read_really();
    double ratio =
        (double)count_between(&start, &end) / ((double)(get_thread_ns() - start_ns) * clock.frequency_hz / 1e9);
    assert_true(ratio > 0.97 && ratio < 1.03);
}

static void *work_and_count(void *result) {
    ct_cycles start = read_really();
    spin(10000000);
    ct_cycles end = read_really();
    *(uint64_t *)result = count_between(&start, &end);
    return NULL;
}

static unsigned count_descriptors(void) {
    unsigned count = 0;
    DIR *all = opendir("/proc/self/fd");
    assert_non_null(all);
    while (readdir(all) != NULL) count++;
    closedir(all);
    return count;
}

static uint64_t count_in_another_thread(void) {
    pthread_t worker;
    uint64_t result = 0;
    assert_int_equal(pthread_create(&worker, NULL, work_and_count, &result), 0);
    assert_int_equal(pthread_join(worker, NULL), 0);
    return result;
}

static void test_threads(void **state) {
    (void)state;
    ct_cycles first = read_really();
    require_cycles(&first);
    (void)count_in_another_thread(); /* what happens once has happened */
    unsigned descriptors = count_descriptors();
    uint64_t theirs = 0;
    ct_cycles start = read_really();
    for (int i = 0; i < 4; i++) {
        uint64_t result = count_in_another_thread();
        assert_true(result > 1000000);
        theirs += result;
    }
    ct_cycles end = read_really();
    assert_true(count_between(&start, &end) < theirs / 2); /* this one waited */
    assert_int_equal(count_descriptors(), descriptors);
}

static void test_errno_is_kept(void **state) {
    (void)state;
    errno = 77;
    (void)read_really();
    assert_int_equal(errno, 77);
}

static void read_in_child(void) {
    ct_cycles start, end, between;
    int expected = ct_thread_cycles(&start);
    spin(5000000);
    CHECK(ct_thread_cycles(&end) == expected);
    ct__cycles_between(&start, &end, &between);
    CHECK(between.kind == end.kind);
    CHECK(between.kind == CT_CYCLES_NONE || between.value > 500000);
}

static void test_forked_child(void **state) {
    (void)state;
    (void)read_really();
    assert_int_equal(run_in_child(read_in_child), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sleep_is_free), cmocka_unit_test(test_rate),         cmocka_unit_test(test_threads),
        cmocka_unit_test(test_errno_is_kept), cmocka_unit_test(test_forked_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
