/* SPDX-License-Identifier: MIT
 *
 * following.h: what the tests of the members list and of the file that it is followed in share. A step is a quarter of
 * a second of the scripted clock; each scenario has a process of its own.
 */
#ifndef FOLLOWING_H
#define FOLLOWING_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "codetimer.h"
#include "fake_clock.h"
#include "fake_file.h"
#include "fake_shm.h"

static const uint64_t quarter_ns = 250000000;

static inline uint64_t later(void) {
    fake_clock.ns += quarter_ns;
    return ct_poll();
}

static inline int list_is(const char *expected) {
    static char text[70000];
    size_t length;
    if (expected == NULL) return ct_members_get(text, sizeof text, &length) == CT_ENOENT;
    return ct_members_get(text, sizeof text, &length) == CT_OK && strcmp(text, expected) == 0;
}

static inline int source_is(int kind, const char *expected) {
    char text[256];
    return ct_members_source(text, sizeof text) == kind && strcmp(text, expected) == 0;
}

static inline const ct_config *now(void) {
    static ct_config config;
    ct_config_info(&config);
    return &config;
}

static inline int state_is(int state, const char *reason) {
    return now()->state == state && strcmp(now()->reason, reason) == 0;
}

static inline int begin(void **unused) {
    (void)unused;
    fake_clock_reset();
    fake_shm_reset();
    unsetenv("CODETIMER_MEASURE");
    unsetenv("CODETIMER_CONFIG");
    fake_file_refuse(CT_ENOENT, "");
    return 0;
}

#define SCENARIO(name)                                                                                                 \
    static void test_##name(void **unused) {                                                                           \
        (void)unused;                                                                                                  \
        assert_int_equal(run_in_child(check_##name), 0);                                                               \
    }
#define TEST(name) cmocka_unit_test_setup(test_##name, begin),

#endif
