/* SPDX-License-Identifier: MIT
 *
 * Guards counters under real threads: no call is lost or counted twice with one writer per thread, records read
 * meanwhile are consistent in themselves, registration by all threads at once, threads that come and go, reset and
 * remove while others count, and a fork by one thread while another registers. Runs under ThreadSanitizer in the
 * sanitizer lane. Fails if the sequence is not written, or a slot is shared.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "codetimer.h"

enum { THREADS = 4, CALLS = 300000 };

static _Atomic int stop;

static ct_writer *open_writer(void) {
    ct_writer *writer = NULL;
    if (ct_writer_open("real", &writer) != CT_OK) abort();
    return writer;
}

static ct_counter *open_counter(ct_writer *writer, const char *member) {
    ct_counter *counter = NULL;
    if (ct_counter_open(writer, NULL, member, NULL, &counter) < 0) abort();
    return counter;
}

static void *count(void *member) {
    ct_writer *writer = open_writer();
    ct_counter *counter = open_counter(writer, member);
    for (int i = 0; i < CALLS; i++) {
        ct_token token;
        ct_enter(counter, &token);
        ct_leave(counter, &token, i % 10 == 0 ? CT_FAILED : CT_RETURNED);
    }
    ct_counter_close(counter);
    ct_writer_close(writer);
    return NULL;
}

static void run_threads(void *(*body)(void *), void *argument) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, body, argument), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

static void test_exact(void **unused) {
    (void)unused;
    char member[] = "exact.sum";
    ct_sample sample;
    run_threads(count, member);
    run_threads(count, member); /* the second wave takes over the first one's slots */
    ct_writer *writer = open_writer();
    ct_counter *counter = open_counter(writer, member);
    ct_counter_sample(counter, &sample);
    assert_true(sample.calls == 2 * THREADS * CALLS && sample.errors == 2 * THREADS * CALLS / 10);
    assert_true(sample.in_flight == 0);
    ct_counter_close(counter);
    ct_writer_close(writer);
}

/* Every record: 7 ns, an error. */
static void *record(void *member) {
    ct_writer *writer = open_writer();
    ct_counter *counter = open_counter(writer, member);
    while (!atomic_load(&stop)) {
        ct_counter_record(counter, 7, CT_FAILED);
    }
    ct_counter_close(counter);
    ct_writer_close(writer);
    return NULL;
}

static void test_consistent(void **unused) {
    (void)unused;
    char member[] = "consistent.record";
    pthread_t thread;
    ct_sample sample;
    ct_writer *writer = open_writer();
    ct_counter *counter = open_counter(writer, member);
    atomic_store(&stop, 0);
    assert_int_equal(pthread_create(&thread, NULL, record, member), 0);
    uint64_t last = 0;
    for (int i = 0; i < 20000; i++) {
        ct_counter_sample(counter, &sample);
        assert_true(sample.total_ns == 7 * sample.calls && sample.errors == sample.calls && sample.calls >= last);
        last = sample.calls;
    }
    atomic_store(&stop, 1);
    pthread_join(thread, NULL);
    ct_counter_close(counter);
    ct_writer_close(writer);
}

static void *register_many(void *unused) {
    (void)unused;
    ct_writer *writer = open_writer();
    char member[32];
    for (int i = 0; i < 2000; i++) {
        snprintf(member, sizeof member, "many.m%d", i % 50);
        ct_counter *counter = open_counter(writer, member);
        ct_counter_record(counter, 5, CT_RETURNED);
        if (i % 7 == 0) ct_counter_reset(counter);
        if (i % 11 == 0) ct_counter_remove(counter);
        ct_counter_close(counter);
    }
    ct_writer_close(writer);
    return NULL;
}

static void test_registration(void **unused) {
    (void)unused;
    run_threads(register_many, NULL);
    ct_counters counters;
    ct_counters_info(&counters);
    assert_true(counters.listed <= 53 && counters.refused == 0);
}

static void *register_until_stopped(void *unused) {
    while (!atomic_load(&stop)) register_many(unused);
    return NULL;
}

static void test_fork_while_registering(void **unused) {
    (void)unused;
    if (__lsan_disable != NULL) { /* its allocator stays locked in the child when another thread is in it */
        printf("skipped: AddressSanitizer does not survive a fork among threads\n");
        skip();
    }
    pthread_t thread;
    atomic_store(&stop, 0);
    assert_int_equal(pthread_create(&thread, NULL, register_until_stopped, NULL), 0);
    for (int i = 0; i < 50; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(20); /* a lock left locked would hang here */
            register_many(NULL);
            _exit(0);
        }
        int status = -1;
        waitpid(child, &status, 0);
        assert_int_equal(status, 0);
    }
    atomic_store(&stop, 1);
    pthread_join(thread, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_consistent),
        cmocka_unit_test(test_registration),
        cmocka_unit_test(test_fork_while_registering),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
