/* SPDX-License-Identifier: MIT
 *
 * Guards one measured call over a scripted clock: what is counted and when it is not (disabled, reset or removed in
 * between, a clock that steps back), the sums and extremes, several writers of one counter, and a thread's slots
 * passing to the next one with what it left half-written. Fails if a call counts under a generation it did not begin
 * in.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "codetimer.h"
#include "fake_clock.h"
#include "platform/platform.h"
#include "registry.h"

static ct_writer *writer;
static ct_counter *counter;
static ct_sample sample;

static int open_counter(void **unused) {
    (void)unused;
    assert_int_equal(ct_writer_open("script", &writer), CT_OK);
    assert_int_equal(ct_counter_open(writer, NULL, "shop.handle", NULL, &counter), CT_OK);
    return 0;
}

static int close_counter(void **unused) {
    (void)unused;
    ct_counter_remove(counter);
    ct_counter_close(counter);
    ct_writer_close(writer);
    return 0;
}

static void call(uint64_t duration_ns, int outcome) {
    ct_token token;
    ct_enter(counter, &token);
    fake_clock.ns += duration_ns;
    ct_leave(counter, &token, outcome);
}

static void enable(int enabled) {
    ct__os_lock();
    ct__definition_enable(counter->definition, enabled);
    ct__os_unlock();
}

static void take_sample(void) { ct_counter_sample(counter, &sample); }

static uint64_t sum_buckets(void) {
    uint64_t sum = 0;
    for (size_t i = 0; i < CT_BUCKETS; i++) sum += sample.buckets[i];
    return sum;
}

static void test_values(void **unused) {
    (void)unused;
    call(1000, CT_RETURNED);
    call(3000, CT_FAILED);
    call(2000, CT_CANCELLED);
    take_sample();
    assert_true(sample.calls == 3 && sample.errors == 1 && sample.cancelled == 1);
    assert_true(sample.total_ns >= 6000 && sample.total_ns <= 6100); /* each reading takes 10 ns */
    assert_true(sample.active_ns == sample.total_ns);
    assert_true(sample.min_ns >= 1000 && sample.min_ns <= 1020 && sample.max_ns >= 3000 && sample.max_ns <= 3020);
    assert_true(sample.in_flight == 0 && sample.anomalies == 0 && sum_buckets() == 3);
    assert_true(sample.enabled && sample.listed);
}

static void test_nothing_yet(void **unused) {
    (void)unused;
    double value;
    take_sample();
    assert_true(sample.calls == 0 && sample.min_ns == 0 && sample.max_ns == 0);
    assert_int_equal(ct_sample_average_ns(&sample, &value), CT_ENOENT);
    assert_int_equal(ct_sample_percentile_ns(&sample, 50, &value), CT_ENOENT);
}

static void test_disabled(void **unused) {
    (void)unused;
    call(1000, CT_RETURNED);
    enable(0);
    call(1000, CT_RETURNED); /* notices */
    uint64_t reads = fake_clock.reads;
    call(1000, CT_RETURNED);
    assert_true(fake_clock.reads == reads); /* a bare call: not even the clock is read */
    assert_true(!ct_counter_enabled(counter));
    enable(1);
    assert_true(ct_counter_enabled(counter));
    call(1000, CT_RETURNED);
    take_sample();
    assert_true(sample.calls == 2); /* values are kept */
    ct_counter_remove(counter);
    assert_true(!ct_counter_enabled(counter));
}

/* Row B9: a call in flight when measuring is switched on (or off) does not count. */
static void test_switched_in_between(void **unused) {
    (void)unused;
    ct_token token;
    enable(0);
    ct_enter(counter, &token);
    enable(1);
    ct_leave(counter, &token, CT_RETURNED);
    ct_enter(counter, &token);
    enable(0);
    ct_leave(counter, &token, CT_RETURNED);
    enable(1);
    take_sample();
    assert_true(sample.calls == 0 && sample.in_flight == 0);
    ct_enter(counter, &token); /* off and on again within one call: same generation, counts */
    enable(0);
    enable(1);
    ct_leave(counter, &token, CT_RETURNED);
    take_sample();
    assert_true(sample.calls == 1 && sample.in_flight == 0);
}

/* Nobody sees its end: not in flight, not counted, and of another generation nothing at all. */
static void test_abandoned(void **unused) {
    (void)unused;
    ct_token kept, left, old;
    ct_enter(counter, &old);
    ct_counter_reset(counter);
    ct_enter(counter, &kept);
    ct_enter(counter, &left);
    ct_abandon(counter, &left);
    ct_abandon(counter, &old);
    take_sample();
    assert_true(sample.in_flight == 1 && sample.calls == 0);
    ct_leave(counter, &kept, CT_RETURNED);
    enable(0);
    ct_enter(counter, &left);
    ct_abandon(counter, &left);
    take_sample();
    assert_true(sample.in_flight == 0 && sample.calls == 1);
}

static void test_is_enabled(void **unused) {
    (void)unused;
    assert_int_equal(ct_counter_enabled(counter), 1);
    enable(0);
    assert_int_equal(ct_counter_enabled(counter), 0);
    enable(1);
    ct_counter_remove(counter);
    assert_int_equal(ct_counter_enabled(counter), 0);
}

static void test_reset(void **unused) {
    (void)unused;
    ct_token old;
    call(1000, CT_RETURNED);
    ct_enter(counter, &old);
    take_sample();
    assert_true(sample.in_flight == 1);
    uint64_t generation = sample.generation;
    assert_int_equal(ct_counter_reset(counter), CT_OK);
    take_sample();
    assert_true(sample.calls == 0 && sample.in_flight == 0 && sample.generation > generation && sum_buckets() == 0);
    call(50, CT_RETURNED);
    ct_leave(counter, &old, CT_RETURNED); /* began before the reset */
    take_sample();
    assert_true(sample.calls == 1 && sample.in_flight == 0 && sum_buckets() == 1 && sample.max_ns < 100);
}

static void test_remove_and_again(void **unused) {
    (void)unused;
    ct_token token;
    ct_counter *again;
    call(1000, CT_RETURNED);
    ct_enter(counter, &token);
    assert_int_equal(ct_counter_remove(counter), CT_OK);
    assert_int_equal(ct_counter_remove(counter), CT_ENOENT);
    assert_int_equal(ct_counter_reset(counter), CT_ENOENT);
    call(1000, CT_RETURNED); /* counts nowhere */
    take_sample();
    assert_true(!sample.listed && !sample.enabled && sample.calls == 0);
    assert_int_equal(ct_counter_find(writer, "shop/shop.handle", &again), CT_ENOENT);
    assert_int_equal(ct_counter_open(writer, NULL, "shop.handle", NULL, &again), CT_OK);
    ct_leave(counter, &token, CT_RETURNED); /* a removed counter's call never gets into its successor */
    take_sample();
    assert_true(sample.listed && sample.calls == 0 && sample.in_flight == 0);
    call(1000, CT_RETURNED);
    ct_counter_sample(again, &sample);
    assert_true(sample.calls == 1);
    ct_counter_close(again);
}

static void test_two_handles(void **unused) {
    (void)unused;
    ct_counter *other;
    assert_int_equal(ct_counter_open(writer, "shop", "shop.handle", "help", &other), CT_EXISTS);
    call(1000, CT_RETURNED);
    ct_counter_record(other, 500, CT_FAILED);
    call(1000, CT_RETURNED);
    take_sample();
    assert_true(sample.calls == 3 && sample.errors == 1 && sample.min_ns == 500);
    ct_counter_close(other);
}

static void test_recursion(void **unused) {
    (void)unused;
    ct_token tokens[50];
    for (int i = 0; i < 50; i++) ct_enter(counter, &tokens[i]);
    take_sample();
    assert_true(sample.in_flight == 50 && sample.calls == 0);
    for (int i = 49; i >= 0; i--) ct_leave(counter, &tokens[i], CT_RETURNED);
    take_sample();
    assert_true(sample.in_flight == 0 && sample.calls == 50);
}

static void test_clock_steps_back(void **unused) {
    (void)unused;
    ct_token token;
    ct_enter(counter, &token);
    fake_clock.counter_jump -= 100000;
    ct_leave(counter, &token, CT_RETURNED);
    fake_clock.counter_jump = 0;
    take_sample();
    assert_true(sample.calls == 1 && sample.anomalies == 1 && sample.total_ns == 0 && sample.buckets[0] == 1);
}

static void test_several_writers(void **unused) {
    (void)unused;
    ct_writer *other_writer;
    ct_counter *other;
    assert_int_equal(ct_writer_open(NULL, &other_writer), CT_OK);
    assert_int_equal(ct_counter_find(other_writer, "shop/shop.handle", &other), CT_OK);
    call(1000, CT_RETURNED);
    ct_counter_record(other, 7, CT_RETURNED);
    take_sample();
    assert_true(sample.calls == 2 && sample.min_ns == 7);
    assert_ptr_not_equal(counter->slot, other->slot);

    ct__slot *left = other->slot;
    ct__slot_begin(left); /* the thread dies in the middle of an update */
    ct_counter_close(other);
    ct_writer_close(other_writer);
    take_sample();
    assert_true(sample.calls == 2 && sample.unclean); /* what it had counted stays, and reading does not hang */

    assert_int_equal(ct_writer_open(NULL, &other_writer), CT_OK);
    assert_int_equal(ct_counter_find(other_writer, "shop/shop.handle", &other), CT_OK);
    ct_counter_record(other, 9, CT_RETURNED);
    assert_ptr_equal(other->slot, left);
    assert_int_equal(atomic_load(&left->sequence) % 2, 0);
    take_sample();
    assert_true(sample.calls == 3);
    ct_counter_reset(counter);
    ct_counter_record(other, 11, CT_RETURNED);
    take_sample();
    assert_true(sample.calls == 1 && sample.max_ns == 11); /* only slots of this generation are summed */
    ct_counter_close(other);
    ct_writer_close(other_writer);
}

static void test_writer_closed_first(void **unused) {
    (void)unused;
    ct_writer *other_writer;
    ct_counter *other;
    assert_int_equal(ct_writer_open(NULL, &other_writer), CT_OK);
    assert_int_equal(ct_counter_find(other_writer, "shop/shop.handle", &other), CT_OK);
    ct_writer_close(other_writer);
    ct_counter_reset(counter); /* so that the next call asks for the writer again */
    ct_counter_record(other, 7, CT_RETURNED);
    take_sample();
    assert_true(sample.calls == 1);
    ct__slot *slot = other->slot;
    assert_int_not_equal(atomic_load(&slot->owner), 0);
    ct_counter_close(other);
    assert_int_equal(atomic_load(&slot->owner), 0); /* its memory is for the next writer now */
}

static void test_difference(void **unused) {
    (void)unused;
    ct_sample before, window;
    double value;
    ct_counter_record(counter, 1000000, CT_RETURNED);
    ct_counter_sample(counter, &before);
    for (int i = 0; i < 100; i++) ct_counter_record(counter, 1000 + (uint64_t)i, i % 10 == 0 ? CT_FAILED : CT_RETURNED);
    take_sample();
    assert_int_equal(ct_sample_difference(&sample, &before, &window), CT_OK);
    assert_true(window.calls == 100 && window.errors == 10 && window.total_ns == 104950);
    assert_true(window.max_ns >= 1099 && window.max_ns < 1210 && window.min_ns <= 1000 && window.min_ns > 900);
    assert_int_equal(ct_sample_average_ns(&window, &value), CT_OK);
    assert_true(value == 1049.5);
    assert_int_equal(ct_sample_percentile_ns(&window, 50, &value), CT_OK);
    assert_true(value > 1000 && value < 1150);
    assert_int_equal(ct_sample_percentile_ns(&window, -1, &value), CT_EINVAL);
    assert_int_equal(ct_sample_percentile_ns(&window, 100.1, &value), CT_EINVAL);
    assert_int_equal(ct_sample_percentile_ns(&window, 0.0 / 0.0, &value), CT_EINVAL);
    assert_int_equal(ct_sample_difference(&sample, &sample, &window), CT_OK);
    assert_int_equal(ct_sample_percentile_ns(&window, 50, &value), CT_ENOENT);
    ct_counter_reset(counter);
    take_sample();
    assert_int_equal(ct_sample_difference(&sample, &before, &window), CT_ECHANGED);
}

/* A total that would start again at 0 must not: the call is an anomaly. */
static void test_overflow(void **unused) {
    (void)unused;
    assert_true(ct_counter_record(counter, UINT64_MAX - 10, CT_RETURNED));
    assert_false(ct_counter_record(counter, 11, CT_RETURNED));
    assert_true(ct_counter_record(counter, 10, CT_RETURNED));
    take_sample();
    assert_true(sample.calls == 2 && sample.total_ns == UINT64_MAX && sample.anomalies == 1 && sample.in_flight == 0);
}

static void test_longest(void **unused) {
    (void)unused;
    double value;
    ct_counter_record(counter, UINT64_MAX / 4, CT_RETURNED);
    take_sample();
    assert_int_equal(ct_sample_percentile_ns(&sample, 99, &value), CT_OK);
    assert_true(value == (double)(UINT64_MAX / 4));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_values, open_counter, close_counter),
        cmocka_unit_test_setup_teardown(test_nothing_yet, open_counter, close_counter),
        cmocka_unit_test_setup_teardown(test_disabled, open_counter, close_counter),
        cmocka_unit_test_setup_teardown(test_switched_in_between, open_counter, close_counter),
        cmocka_unit_test_setup_teardown(test_abandoned, open_counter, close_counter),
        cmocka_unit_test_setup_teardown(test_is_enabled, open_counter, close_counter),
        cmocka_unit_test_setup_teardown(test_reset, open_counter, close_counter),
        cmocka_unit_test_setup_teardown(test_remove_and_again, open_counter, close_counter),
        cmocka_unit_test_setup_teardown(test_two_handles, open_counter, close_counter),
        cmocka_unit_test_setup_teardown(test_recursion, open_counter, close_counter),
        cmocka_unit_test_setup_teardown(test_clock_steps_back, open_counter, close_counter),
        cmocka_unit_test_setup_teardown(test_several_writers, open_counter, close_counter),
        cmocka_unit_test_setup_teardown(test_writer_closed_first, open_counter, close_counter),
        cmocka_unit_test_setup_teardown(test_difference, open_counter, close_counter),
        cmocka_unit_test_setup_teardown(test_overflow, open_counter, close_counter),
        cmocka_unit_test_setup_teardown(test_longest, open_counter, close_counter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
