/* SPDX-License-Identifier: MIT
 *
 * Guards the contract of ct_priority_raise and _restore over a scripted system: a refusal is a fact in the report and
 * no failure; restoring is idempotent, refused on another thread, and leaves alone what someone else has changed. Fails
 * if the thread is not compared, if "restored" is set too early, or if a level is passed on although none was asked
 * for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <string.h>

#include "../fake/fake_priority.h"
#include "codetimer.h"

static int start_afresh(void **state) {
    (void)state;
    fake_priority_reset();
    return 0;
}

static ct_priority *raise_to(const char *level, int cpu) {
    ct_priority *priority = NULL;
    assert_int_equal(ct_priority_raise(level, cpu, &priority), CT_OK);
    assert_non_null(priority);
    return priority;
}

static void test_levels(void **state) {
    static const char *const names[] = {"high", "highest", "realtime"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        char name[16];
        strcpy(name, names[i]);
        fake_priority_reset();
        ct_priority *priority = raise_to(name, -1);
        memset(name, '?', sizeof name - 1); /* the report must not point at the caller's text */
        assert_string_equal(priority->requested, names[i]);
        assert_int_equal(fake_priority.level, i + 1);
        assert_int_equal(priority->status, CT_OK);
        assert_int_equal(priority->cpu, -1);
        assert_string_equal(priority->previous, "level 0");
        assert_memory_equal(priority->effective, "level ", 6);
        assert_int_equal(priority->effective[6] - '0', i + 1);
        assert_string_equal(priority->scope, "this thread");
        assert_string_equal(priority->reason, "");
        assert_int_equal(ct_priority_restore(priority), CT_OK);
        assert_int_equal(fake_priority.level, 0);
        ct_priority_free(priority);
    }
}

static void test_wrong_arguments(void **state) {
    (void)state;
    ct_priority *priority = (ct_priority *)(void *)&fake_priority; /* must not be written */
    assert_int_equal(ct_priority_raise("High", -1, &priority), CT_EINVAL);
    assert_int_equal(ct_priority_raise("", -1, &priority), CT_EINVAL);
    assert_int_equal(ct_priority_raise("high", -2, &priority), CT_EINVAL);
    assert_int_equal(ct_priority_raise("high", -1, NULL), CT_EINVAL);
    assert_ptr_equal(priority, &fake_priority);
    assert_int_equal(ct_priority_restore(NULL), CT_EINVAL);
    ct_priority_free(NULL);
    assert_int_equal(fake_priority.calls, 0);
}

static void test_nothing_asked_for(void **state) {
    (void)state;
    fake_priority.raise_status = CT_EPERM; /* would show if it were tried */
    ct_priority *priority = raise_to(NULL, -1);
    assert_null(priority->requested);
    assert_int_equal(priority->status, CT_OK);
    assert_string_equal(priority->reason, "");
    assert_string_equal(priority->effective, "level 0");
    assert_int_equal(ct_priority_restore(priority), CT_OK);
    assert_int_equal(fake_priority.calls, 0);
    ct_priority_free(priority);
}

static void test_denied(void **state) {
    (void)state;
    fake_priority.raise_status = CT_EPERM;
    fake_priority.pin_status = CT_ENOTSUP;
    ct_priority *priority = raise_to("high", 7);
    assert_int_equal(priority->status, CT_EPERM);
    assert_int_equal(priority->cpu, 7);
    assert_int_equal(priority->cpu_status, CT_ENOTSUP);
    assert_string_equal(priority->effective, "level 0");
    assert_string_equal(priority->reason, "level 1 refused by the script; CPU 7 refused by the script");
    assert_int_equal(ct_priority_restore(priority), CT_OK);
    assert_int_equal(fake_priority.calls, 0);
    ct_priority_free(priority);
}

static void test_one_of_two_denied(void **state) {
    (void)state;
    fake_priority.pin_status = CT_EPERM;
    ct_priority *priority = raise_to("high", 7);
    assert_string_equal(priority->reason, "CPU 7 refused by the script");
    assert_int_equal(priority->status, CT_OK);
    assert_int_equal(ct_priority_restore(priority), CT_OK);
    assert_int_equal(fake_priority.level, 0);
    ct_priority_free(priority);
}

static void test_restore_is_idempotent(void **state) {
    (void)state;
    ct_priority *priority = raise_to("high", 3);
    assert_int_equal(priority->restored, 0);
    assert_int_equal(fake_priority.cpu, 3);
    assert_int_equal(ct_priority_restore(priority), CT_OK);
    assert_int_equal(priority->restored, 1);
    assert_int_equal(fake_priority.cpu, -1);
    fake_priority.level = 1; /* as if someone raised it: none of our business any more */
    assert_int_equal(ct_priority_restore(priority), CT_OK);
    assert_int_equal(fake_priority.level, 1);
    ct_priority_free(priority);
}

static void *restore_elsewhere(void *priority) { return (void *)(intptr_t)ct_priority_restore(priority); }

static void test_another_thread(void **state) {
    (void)state;
    ct_priority *priority = raise_to("high", 3);
    pthread_t thread;
    void *status = NULL;
    assert_int_equal(pthread_create(&thread, NULL, restore_elsewhere, priority), 0);
    assert_int_equal(pthread_join(thread, &status), 0);
    assert_int_equal((intptr_t)status, CT_ETHREAD);
    assert_int_equal(fake_priority.level, 1);
    assert_int_equal(fake_priority.cpu, 3);
    assert_int_equal(priority->restored, 0);
    assert_int_equal(ct_priority_restore(priority), CT_OK);
    assert_int_equal(fake_priority.level, 0);
    ct_priority_free(priority);
}

static void test_changed_by_someone_else(void **state) {
    (void)state;
    ct_priority *priority = raise_to("high", 3);
    fake_priority.level = 2;
    assert_int_equal(ct_priority_restore(priority), CT_ECHANGED);
    assert_int_equal(fake_priority.level, 2); /* left alone */
    assert_int_equal(fake_priority.cpu, -1);  /* the pin was still ours */
    assert_int_equal(priority->restored, 0);
    fake_priority.level = 1;
    assert_int_equal(ct_priority_restore(priority), CT_OK);
    assert_int_equal(fake_priority.level, 0);
    ct_priority_free(priority);

    priority = raise_to(NULL, 3);
    fake_priority.cpu = 5;
    assert_int_equal(ct_priority_restore(priority), CT_ECHANGED);
    assert_int_equal(fake_priority.cpu, 5);
    ct_priority_free(priority);
}

static void test_restore_refused_by_the_system(void **state) {
    (void)state;
    ct_priority *priority = raise_to("high", 3);
    fake_priority.unpin_status = CT_EPERM;
    assert_int_equal(ct_priority_restore(priority), CT_EPERM);
    assert_int_equal(priority->restored, 0);
    fake_priority.unpin_status = CT_OK;
    assert_int_equal(ct_priority_restore(priority), CT_OK);
    assert_int_equal(priority->restored, 1);
    assert_int_equal(fake_priority.cpu, -1);
    ct_priority_free(priority);
}

static void test_nesting(void **state) {
    (void)state;
    ct_priority *outer = raise_to("high", 1), *inner = raise_to("realtime", 2), *equal = raise_to("high", -1);
    assert_string_equal(inner->previous, "level 1");
    assert_string_equal(equal->effective, "level 3"); /* already higher */
    assert_int_equal(ct_priority_restore(equal), CT_OK);
    assert_int_equal(fake_priority.level, 3);
    assert_int_equal(ct_priority_restore(inner), CT_OK);
    assert_int_equal(fake_priority.level, 1);
    assert_int_equal(fake_priority.cpu, 1);
    assert_int_equal(ct_priority_restore(outer), CT_OK);
    assert_int_equal(fake_priority.level, 0);
    assert_int_equal(fake_priority.cpu, -1);
    ct_priority_free(equal);
    ct_priority_free(inner);
    ct_priority_free(outer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_levels, start_afresh),
        cmocka_unit_test_setup(test_wrong_arguments, start_afresh),
        cmocka_unit_test_setup(test_nothing_asked_for, start_afresh),
        cmocka_unit_test_setup(test_denied, start_afresh),
        cmocka_unit_test_setup(test_one_of_two_denied, start_afresh),
        cmocka_unit_test_setup(test_restore_is_idempotent, start_afresh),
        cmocka_unit_test_setup(test_another_thread, start_afresh),
        cmocka_unit_test_setup(test_changed_by_someone_else, start_afresh),
        cmocka_unit_test_setup(test_restore_refused_by_the_system, start_afresh),
        cmocka_unit_test_setup(test_nesting, start_afresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
