/* SPDX-License-Identifier: MIT
 *
 * Guards the list of statuses: each has its own value, name and sentence, CT_OK is 0, failures are negative, CT_EXISTS
 * is a success; unknown values have an answer too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "codetimer.h"

static const int statuses[] = {
#define STATUS_VALUE(name, value, text) name,
    CT_STATUS_LIST(STATUS_VALUE)
#undef STATUS_VALUE
};

enum { COUNT = sizeof statuses / sizeof statuses[0] };

static void test_list(void **unused) {
    (void)unused;
    assert_int_equal(statuses[0], 0);
    for (int i = 0; i < COUNT; i++) {
        assert_true(statuses[i] < 0 || statuses[i] == CT_OK || statuses[i] == CT_EXISTS);
        assert_int_equal(strncmp(ct_status_name(statuses[i]), "CT_", 3), 0);
        for (int j = 0; j < i; j++) {
            assert_int_not_equal(statuses[i], statuses[j]);
            assert_string_not_equal(ct_status_text(statuses[i]), ct_status_text(statuses[j]));
        }
    }
    assert_string_equal(ct_status_name(CT_EPERM), "CT_EPERM");
}

static void test_unknown(void **unused) {
    (void)unused;
    assert_string_equal(ct_status_name(-999), "CT_E?");
    assert_string_equal(ct_status_text(77), "unknown status");
}

static void test_version(void **unused) {
    (void)unused;
    assert_string_equal(ct_version(), CT_VERSION);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
