/* SPDX-License-Identifier: MIT
 *
 * Guards calls that can be suspended, over a scripted clock: of a coroutine's elapsed time only what it ran is active,
 * also where the clock steps back or the counter is switched off meanwhile; what nobody can tell is marked unknown.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

/* A coroutine: 50 us from begin to end, of which it ran for 3. */
static void test_active(void **unused) {
    (void)unused;
    ct_token token;
    ct_active active = {0};
    ct_enter(counter, &token);
    for (int i = 0; i < 3; i++) {
        ct_active_resume(&token, &active);
        fake_clock.ns += 1000;
        ct_active_suspend(&token, &active);
        fake_clock.ns += 16000;
    }
    assert_true(ct_leave_active(counter, &token, &active, CT_RETURNED) >= 51000);
    take_sample();
    assert_true(sample.calls == 1 && sample.active_unknown == 0 && sample.in_flight == 0);
    assert_true(sample.total_ns >= 51000 && sample.total_ns <= 51200);
    assert_true(sample.active_ns >= 3000 && sample.active_ns <= 3100);
    assert_true(sum_buckets() == 1 && sample.max_ns == sample.total_ns);
    double average = 0;
    assert_int_equal(ct_sample_active_average_ns(&sample, &average), CT_OK);
    assert_true(average == (double)sample.active_ns && ct_sample_waits(&sample));
}

static void test_active_is_not_known(void **unused) {
    (void)unused;
    ct_token token;
    ct_sample before, window;
    call(1000, CT_RETURNED);
    take_sample();
    before = sample;
    ct_enter(counter, &token);
    fake_clock.ns += 5000;
    ct_leave_active(counter, &token, NULL, CT_FAILED);
    take_sample();
    assert_true(sample.calls == 2 && sample.active_unknown == 1 && sample.errors == 1);
    assert_true(sample.active_ns < 1100 && sample.total_ns >= 6000);
    assert_int_equal(ct_sample_difference(&sample, &before, &window), CT_OK);
    assert_true(window.active_unknown == 1 && window.active_ns == 0);
    double average = 0;
    assert_int_equal(ct_sample_active_average_ns(&sample, &average), CT_ENOENT);
    assert_true(ct_sample_waits(&sample) && !ct_sample_waits(&before));
    assert_int_equal(ct_sample_active_average_ns(&before, &average), CT_OK);
    assert_true(average == (double)before.total_ns);
    ct_sample_add(&window, &sample);
    assert_true(window.active_unknown == 2);
    assert_int_equal(ct_counter_reset(counter), CT_OK);
    call(1000, CT_RETURNED);
    take_sample();
    assert_true(sample.active_unknown == 0);
}

/* Never more than the whole, whatever the clock did meanwhile; a slice in which it stepped back has none. */
static void test_active_with_a_clock_that_steps_back(void **unused) {
    (void)unused;
    ct_token token;
    ct_active active = {0};
    ct_enter(counter, &token);
    ct_active_resume(&token, &active);
    fake_clock.ns += 9000;
    ct_active_suspend(&token, &active);
    ct_active_resume(&token, &active);
    fake_clock.ns -= 5000;
    ct_active_suspend(&token, &active);
    ct_leave_active(counter, &token, &active, CT_RETURNED);
    take_sample();
    assert_true(sample.calls == 1 && sample.active_ns == sample.total_ns && sample.total_ns < 5000);
}

static void test_active_while_switched_off(void **unused) {
    (void)unused;
    ct_token token;
    ct_active active = {0};
    enable(0);
    ct_enter(counter, &token);
    uint64_t reads = fake_clock.reads;
    ct_active_resume(&token, &active);
    ct_active_suspend(&token, &active);
    assert_true(ct_leave_active(counter, &token, &active, CT_RETURNED) == -1 && fake_clock.reads == reads);
    enable(1);
    ct_enter(counter, &token);
    enable(0);
    ct_leave_active(counter, &token, &active, CT_RETURNED);
    enable(1);
    take_sample();
    assert_true(sample.calls == 0 && sample.in_flight == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_active, open_counter, close_counter),
        cmocka_unit_test_setup_teardown(test_active_is_not_known, open_counter, close_counter),
        cmocka_unit_test_setup_teardown(test_active_with_a_clock_that_steps_back, open_counter, close_counter),
        cmocka_unit_test_setup_teardown(test_active_while_switched_off, open_counter, close_counter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
