/* SPDX-License-Identifier: MIT
 *
 * Guards everything at once, for ThreadSanitizer: threads that count, sample, register, reset and remove, set the list,
 * poll and ask about the segment, while the process is published, its file is taken away, and another thread views and
 * switches it. Nothing is lost but what was disabled, and no counter is left under way.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>

#include "live.h"

enum { WRITERS = 3, CALLS = 20000 };

static _Atomic int stop;

static ct_writer *open_writer(void) {
    ct_writer *writer = NULL;
    if (ct_writer_open("threads", &writer) != CT_OK) abort();
    return writer;
}

static ct_counter *open_counter(ct_writer *writer, const char *member) {
    ct_counter *counter = NULL;
    if (ct_counter_open(writer, NULL, member, "a sentence", &counter) < 0) abort();
    return counter;
}

/* "exact" is never reset or switched off; "busy" is. */
static void *count(void *unused) {
    (void)unused;
    ct_writer *writer = open_writer();
    ct_counter *exact = open_counter(writer, "exact"), *busy = open_counter(writer, "busy");
    for (int i = 0; i < CALLS; i++) {
        live_call(exact);
        live_call(busy);
        if (i % 1000 == 0) ct_counter_reset(busy);
    }
    ct_counter_close(exact);
    ct_counter_close(busy);
    ct_writer_close(writer);
    return NULL;
}

static void *register_and_remove(void *unused) {
    ct_writer *writer = open_writer();
    char member[32];
    for (int i = 0; !atomic_load(&stop); i++) {
        snprintf(member, sizeof member, "many%d", i % 30);
        ct_counter *counter = open_counter(writer, member);
        live_call(counter);
        if (i % 3 == 0) ct_counter_remove(counter);
        ct_counter_close(counter);
    }
    ct_writer_close(writer);
    return unused;
}

static void *change_and_ask(void *unused) {
    char text[256];
    size_t length;
    ct_segment segment;
    ct_counters counters;
    while (!atomic_load(&stop)) {
        ct_members_set("*;!busy", 7);
        ct_members_get(text, sizeof text, &length);
        ct_members_set(NULL, 0);
        ct_poll();
        ct_segment_info(&segment);
        ct_counters_info(&counters);
        ct_report_counters(NULL, text, sizeof text);
    }
    return unused;
}

static void *view_and_switch(void *unused) {
    ct_process process;
    ct_view *view;
    ct_view_counter one;
    static ct_sample sample;
    while (!atomic_load(&stop)) {
        if (live_count(CT_SEGMENT_LIVE, &process) == 0 || ct_view_open(process.path, &view, NULL) != CT_OK) continue;
        for (uint32_t i = 0; i < ct_view_end(view); i++) {
            ct_view_counter_at(view, i, &one);
            ct_view_sample(view, i, 1, &sample);
        }
        ct_view_switch(view, "many1*", 6, 0);
        ct_view_switch(view, "many1*", 6, 1);
        ct_view_close(view);
    }
    return unused;
}

static void test_everything(void **unused) {
    (void)unused;
    void *(*const others[])(void *) = {register_and_remove, change_and_ask, view_and_switch};
    pthread_t writers[WRITERS], threads[3];
    ct_sample sample;
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, others[i], NULL), 0);
    for (int i = 0; i < WRITERS; i++) assert_int_equal(pthread_create(&writers[i], NULL, count, NULL), 0);
    for (int i = 0; i < WRITERS; i++) pthread_join(writers[i], NULL);
    atomic_store(&stop, 1);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    ct_counter *exact = NULL, *busy = NULL;
    ct_writer *writer = open_writer();
    assert_int_equal(ct_counter_find(writer, "threads/exact", &exact), CT_OK);
    ct_counter_sample(exact, &sample);
    assert_true(sample.calls == WRITERS * CALLS && sample.in_flight == 0 && !sample.unclean);
    assert_int_equal(ct_counter_find(writer, "threads/busy", &busy), CT_OK);
    ct_counter_sample(busy, &sample);
    assert_true(sample.calls <= WRITERS * CALLS && sample.in_flight == 0);
    ct_counter_close(exact);
    ct_counter_close(busy);
    ct_writer_close(writer);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_everything)};
    unsetenv("CODETIMER_MEASURE");
    live_make_folder();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    live_remove_folder();
    return failed;
}
