/* SPDX-License-Identifier: MIT
 *
 * Guards the run for C programs: it calls fn exactly n times, prints the block on standard output, says so when that
 * fails, prints nothing for an empty name, and ends at the first error. Standard output is a file or /dev/full in a
 * forked child.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <string.h>

#include "child.h"
#include "codetimer.h"
#include "fake_clock.h"

static int count_call(void *made) {
    fake_clock.ns += 1000;
    ++*(int *)made;
    return 0;
}

static int fail_at_third(void *made) { return ++*(int *)made == 3; }

static char output[256];

static void redirect(void) {
    strcpy(output, "/tmp/codetimer-test-XXXXXX");
    int fd = mkstemp(output);
    CHECK(fd >= 0);
    fflush(stdout);
    CHECK(dup2(fd, 1) == 1);
    close(fd);
}

static void check_output(const char *expected_start) {
    char text[1024] = "";
    fflush(stdout);
    FILE *file = fopen(output, "r");
    CHECK(file != NULL);
    size_t got = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    unlink(output);
    text[got] = '\0';
    CHECK(strncmp(text, expected_start, strlen(expected_start)) == 0);
    CHECK(expected_start[0] != '\0' || got == 0);
}

static void check_prints(void) {
    int made = 0;
    ct_result *result;
    redirect();
    CHECK(ct_time("Some Name", 1000, count_call, &made, NULL, &result) == CT_OK);
    CHECK(made == 1000 && result->calls == 1000);
    ct_result_free(result);
    check_output("Some Name\n    Calls:          1,000\n    Time Elapsed:   ");
}

static void check_silent(void) {
    int made = 0;
    redirect();
    CHECK(ct_time("", 10, count_call, &made, NULL, NULL) == CT_OK);
    CHECK(made == 10);
    CHECK(ct_time(NULL, 10, count_call, &made, NULL, NULL) == CT_OK);
    CHECK(made == 20);
    check_output("");
}

static void check_error(void) {
    int made = 0;
    ct_result *result;
    redirect();
    CHECK(ct_time("x", 10, fail_at_third, &made, NULL, &result) == CT_OK);
    CHECK(made == 3 && result->calls == 2);
    ct_result_free(result);
    check_output("x\n    Calls:          2 of 10 (error)\n");
}

static void check_full(void) {
    int made = 0;
    ct_result *result = NULL;
    int full = open("/dev/full", O_WRONLY);
    if (full < 0) return; /* a system without one */
    CHECK(dup2(full, 1) == 1);
    CHECK(ct_time("x", 10, count_call, &made, NULL, &result) == CT_EOS);
    CHECK(made == 10 && result != NULL && result->calls == 10);
    ct_result_free(result);
}

static void check_closed(void) {
    int made = 0;
    fclose(stdout);
    CHECK(ct_time("", 10, count_call, &made, NULL, NULL) == CT_OK && made == 10);
}

static void test_prints(void **unused) { (void)unused; assert_int_equal(run_in_child(check_prints), 0); }
static void test_silent(void **unused) { (void)unused; assert_int_equal(run_in_child(check_silent), 0); }
static void test_error(void **unused) { (void)unused; assert_int_equal(run_in_child(check_error), 0); }
static void test_full(void **unused) { (void)unused; assert_int_equal(run_in_child(check_full), 0); }
static void test_closed(void **unused) { (void)unused; assert_int_equal(run_in_child(check_closed), 0); }

static void test_bad_arguments(void **unused) {
    (void)unused;
    int made = 0;
    assert_int_equal(ct_time("x", -2, count_call, &made, NULL, NULL), CT_EINVAL);
    assert_int_equal(ct_time("x", 1, NULL, NULL, NULL, NULL), CT_EINVAL);
    assert_int_equal(made, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prints), cmocka_unit_test(test_silent), cmocka_unit_test(test_error),
        cmocka_unit_test(test_full),   cmocka_unit_test(test_closed), cmocka_unit_test(test_bad_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
