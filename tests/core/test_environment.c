/* SPDX-License-Identifier: MIT
 *
 * Guards ct_initialize and its text: three lines in every case, a refused priority as one phrase, lengths as snprintf
 * gives them, everything put back. Fails if a refusal makes initialize fail, or if the measuring path is left cold.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "../fake/fake_clock.h"
#include "../fake/fake_cycles.h"
#include "../fake/fake_priority.h"
#include "codetimer.h"
#include "platform/platform.h"

static int start_afresh(void **state) {
    (void)state;
    fake_clock_reset();
    fake_cycles_reset();
    fake_priority_reset();
    return 0;
}

static ct_environment *initialize(const char *level, int cpu) {
    ct_environment *environment = NULL;
    assert_int_equal(ct_initialize(level, cpu, &environment), CT_OK);
    assert_non_null(environment);
    return environment;
}

/* The text, checked to be three lines of the right names. */
static const char *format(const ct_environment *environment) {
    static char text[2000];
    size_t length = ct_environment_format(environment, text, sizeof text);
    assert_int_equal(length, strlen(text));
    assert_memory_equal(text, "Priority: ", 10);
    const char *clock = strstr(text, "\nClock: "), *cycles = strstr(text, "\nCycles: ");
    assert_true(clock != NULL && cycles != NULL && clock < cycles);
    int lines = 0;
    for (const char *at = text; *at != '\0'; at++) lines += *at == '\n';
    assert_int_equal(lines, 3);
    assert_int_equal(text[length - 1], '\n');
    return text;
}

static void test_obtained(void **state) {
    (void)state;
    ct_environment *environment = initialize("high", 1234);
    assert_string_equal(environment->priority->requested, "high");
    assert_true(environment->clock.source[0] != '\0');
    assert_int_equal(environment->cycles.kind, CT_CYCLES_REFERENCE);
    assert_true(fake_cycles.reads > 2); /* warm */
    const char *text = format(environment);
    assert_non_null(strstr(text, "Priority: level 1, was level 0, on CPU 1,234 (this thread)\n"));
    assert_non_null(strstr(text, "\nCycles: reference, thread CPU time x "));
    assert_non_null(strstr(text, "(no counter in the script)\n"));
    assert_int_equal(ct_environment_restore(environment), CT_OK);
    assert_int_equal(fake_priority.level, 0);
    assert_int_equal(fake_priority.cpu, -1);
    assert_non_null(strstr(format(environment), "Priority: level 0, restored (this thread)\n"));
    assert_int_equal(ct_environment_restore(environment), CT_OK);
    ct_environment_free(environment);
}

static void test_denied(void **state) {
    (void)state;
    fake_priority.raise_status = CT_EPERM;
    fake_cycles.kind = CT__CYCLES_NONE;
    ct_environment *environment = initialize("realtime", -1);
    const char *text = format(environment);
    assert_non_null(strstr(text, "Priority: level 0 (this thread): level 3 refused by the script\n"));
    assert_non_null(strstr(text, "\nCycles: unavailable (no counter in the script)\n"));
    assert_int_equal(ct_environment_restore(environment), CT_OK);
    ct_environment_free(environment);
}

static void test_priority_left_alone(void **state) {
    (void)state;
    fake_cycles.kind = CT__CYCLES_CORE;
    ct_environment *environment = initialize(NULL, -1);
    const char *text = format(environment);
    assert_non_null(strstr(text, "Priority: level 0 (this thread)\n"));
    assert_non_null(strstr(text, "\nCycles: core, thread CPU time\n"));
    ct_environment_free(environment);
    assert_int_equal(fake_priority.calls, 0);
}

static void test_wrong_arguments(void **state) {
    (void)state;
    ct_environment *environment = NULL;
    assert_int_equal(ct_initialize("fast", -1, &environment), CT_EINVAL);
    assert_int_equal(ct_initialize("high", -2, &environment), CT_EINVAL);
    assert_int_equal(ct_initialize("high", -1, NULL), CT_EINVAL);
    assert_null(environment);
    assert_int_equal(ct_environment_restore(NULL), CT_EINVAL);
    ct_environment_free(NULL);
    assert_int_equal(fake_priority.calls, 0);
}

static void test_short_buffers(void **state) {
    (void)state;
    ct_environment *environment = initialize("high", -1);
    char whole[2000], part[2000];
    size_t length = ct_environment_format(environment, whole, sizeof whole);
    assert_int_equal(ct_environment_format(environment, NULL, 0), length);
    for (size_t size = 1; size <= length + 1; size++) {
        memset(part, '#', sizeof part);
        assert_int_equal(ct_environment_format(environment, part, size), length);
        assert_int_equal(strlen(part), size - 1);
        assert_memory_equal(part, whole, size - 1);
        assert_int_equal(part[size], '#');
    }
    assert_int_equal(ct_environment_format(NULL, part, sizeof part), 0);
    assert_string_equal(part, "");
    ct_environment_free(environment);
}

static void test_nesting(void **state) {
    (void)state;
    ct_environment *outer = initialize("high", -1), *inner = initialize("highest", -1);
    assert_int_equal(ct_environment_restore(inner), CT_OK);
    assert_int_equal(fake_priority.level, 1);
    assert_int_equal(ct_environment_restore(outer), CT_OK);
    assert_int_equal(fake_priority.level, 0);
    ct_environment_free(inner);
    ct_environment_free(outer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_obtained, start_afresh),
        cmocka_unit_test_setup(test_denied, start_afresh),
        cmocka_unit_test_setup(test_priority_left_alone, start_afresh),
        cmocka_unit_test_setup(test_wrong_arguments, start_afresh),
        cmocka_unit_test_setup(test_short_buffers, start_afresh),
        cmocka_unit_test_setup(test_nesting, start_afresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
