/* SPDX-License-Identifier: MIT
 *
 * Guards the real clock of this system: it is explained, it never steps back on any thread or between threads, and it
 * goes at the rate of the system's own within the promised error (a ratio, compared in brackets; no absolute time).
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "codetimer.h"

static void test_explained(void **unused) {
    (void)unused;
    ct_clock clock;
    ct_clock_info(&clock);
    print_message("%s: %s\n", clock.source, clock.reason);
    assert_true(strlen(clock.source) > 0 && strlen(clock.reason) > 0);
    assert_true(clock.resolution_ns > 0 && clock.read_cost_ns > 0);
}

enum { THREADS = 4, READS = 500000 };

static _Atomic uint64_t shared;
static _Atomic int steps_back;

/* Whoever reads a time that another thread has published before must read a later one. */
static void *race(void *unused) {
    (void)unused;
    for (int i = 0; i < READS; i++) {
        uint64_t published = atomic_load(&shared);
        uint64_t now = ct_now_ns();
        if (now < published) atomic_fetch_add(&steps_back, 1);
        while (published < now && !atomic_compare_exchange_weak(&shared, &published, now)) {}
    }
    return NULL;
}

static void test_never_steps_back(void **unused) {
    (void)unused;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, race, NULL), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(steps_back, 0);
}

/* The narrowest of many brackets at each end. */
static void read_pair(uint64_t *ours, uint64_t *raw) {
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 200; i++) {
        uint64_t before = ct__os_clock_raw_ns(), now = ct_now_ns(), after = ct__os_clock_raw_ns();
        if (after - before >= best) continue;
        best = after - before;
        *ours = now;
        *raw = before + (after - before) / 2;
    }
}

static void test_rate(void **unused) {
    (void)unused;
    struct timespec over_a_second = {1, 100000000}, half = {0, 500000000};
    uint64_t ours0 = 0, raw0 = 0, ours1 = 0, raw1 = 0;
    ct_now_ns();
    nanosleep(&over_a_second, NULL);
    ct_now_ns(); /* refines */
    struct timespec settle = {0, 2000000};
    nanosleep(&settle, NULL);
    read_pair(&ours0, &raw0);
    nanosleep(&half, NULL);
    read_pair(&ours1, &raw1);
    double ppm = ((double)(ours1 - ours0) / (double)(raw1 - raw0) - 1) * 1e6;
    print_message("%.3f ppm\n", ppm);
    assert_true(ppm > -5 && ppm < 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_explained),
        cmocka_unit_test(test_never_steps_back),
        cmocka_unit_test(test_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
