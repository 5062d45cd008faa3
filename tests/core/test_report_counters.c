/* SPDX-License-Identifier: MIT
 *
 * Guards the table of counters: columns, order, escapes, which rows are left out and what is said of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "child.h"
#include "codetimer.h"
#include "fake_clock.h"
#include "platform/platform.h"
#include "registry.h"

static char buffer[4096];

static ct_counter *open_counter(ct_writer *writer, const char *category, const char *member) {
    ct_counter *counter;
    CHECK(ct_counter_open(writer, category, member, NULL, &counter) == CT_OK);
    return counter;
}

static void check_text(const ct_report_options *options, const char *expected) {
    size_t length = ct_report_counters(options, buffer, sizeof buffer);
    if (strcmp(buffer, expected) != 0) fprintf(stderr, "got:\n%s\nexpected:\n%s\n", buffer, expected);
    CHECK(strcmp(buffer, expected) == 0);
    CHECK(length == strlen(expected));
    CHECK(ct_report_counters(options, NULL, 0) == length);
}

static void check_empty(void) {
    check_text(NULL, "Member  Calls  Average  P50  P99  Min  Max  Total  Errors  In Flight\n");
}

static void check_table(void) {
    ct_writer *writer;
    CHECK(ct_writer_open("script", &writer) == CT_OK);
    ct_counter *handle = open_counter(writer, NULL, "shop.handle"), *plain = open_counter(writer, NULL, "plain\n");
    ct_counter *other = open_counter(writer, "group", "shop.x"), *off = open_counter(writer, NULL, "off.off");
    open_counter(writer, NULL, "never.called");
    ct_token token;
    for (int i = 0; i < 1000; i++) ct_counter_record(handle, 1024, i < 5 ? CT_FAILED : CT_RETURNED);
    ct_counter_record(plain, 1, CT_RETURNED);
    ct_counter_record(other, 8388608, CT_RETURNED);
    ct_counter_record(off, 1, CT_RETURNED);
    ct_enter(handle, &token);
    ct__os_lock();
    ct__definition_enable(off->definition, 0);
    ct__os_unlock();
    check_text(NULL,
               "Member          Calls   Average       P50       P99       Min       Max     Total  Errors  In Flight\n"
               "group/shop.x        1  8.389 ms  8.389 ms  8.389 ms  8.389 ms  8.389 ms  8.389 ms       0          0\n"
               "shop.handle     1,000  1.024 \xc2\xb5s  1.024 \xc2\xb5s  1.024 \xc2\xb5s  1.024 \xc2\xb5s  "
               "1.024 \xc2\xb5s  1.024 ms       5          1\n"
               "script/plain\\n      1  1.000 ns  1.000 ns  1.000 ns  1.000 ns  1.000 ns  1.000 ns       0          0\n"
               "2 counters without calls\n");
    ct_report_options options = {.size = sizeof options, .color = 1, .ascii = 1};
    ct_report_counters(&options, buffer, sizeof buffer);
    CHECK(strstr(buffer, "\x1b[33mshop.handle\x1b[0m ") != NULL && strstr(buffer, "1.024 us") != NULL);
}

static void take(ct_counter *counter, const ct_active *active) {
    ct_token token;
    ct_enter(counter, &token);
    fake_clock.ns += 50000000;
    ct_leave_active(counter, &token, active, CT_RETURNED);
}

/* How long calls were active is shown beside how long they took, as soon as one of them waited. */
static void check_active(void) {
    ct_writer *writer;
    CHECK(ct_writer_open("script", &writer) == CT_OK);
    ct_counter *waits = open_counter(writer, NULL, "a.waits"), *unknown = open_counter(writer, NULL, "a.unknown");
    ct_counter *plain = open_counter(writer, NULL, "a.plain"), *begun = open_counter(writer, NULL, "a.begun");
    ct_counter_record(plain, 1000000, CT_RETURNED);
    ct_report_counters(NULL, buffer, sizeof buffer);
    CHECK(strstr(buffer, "Active") == NULL);
    take(waits, &(ct_active){0});
    take(unknown, NULL);
    ct_token token;
    ct_enter(begun, &token);
    ct_report_counters(&(ct_report_options){.size = sizeof(ct_report_options), .ascii = 1}, buffer, sizeof buffer);
    CHECK(strstr(buffer, "Member     Calls    Average    Active        P50 ") != NULL);
    CHECK(strstr(buffer, "a.waits        1  50.000 ms  0.000 ns ") != NULL);
    CHECK(strstr(buffer, "a.unknown      1  50.000 ms         - ") != NULL);
    CHECK(strstr(buffer, "a.plain        1   1.000 ms  1.000 ms ") != NULL);
    CHECK(strstr(buffer, "a.begun        0          -         -          -          -          -          -") != NULL);
}

/* One huge name must not make every row as wide. */
static void check_huge_name(void) {
    ct_writer *writer;
    char name[4001];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    CHECK(ct_writer_open("script", &writer) == CT_OK);
    ct_counter_record(open_counter(writer, "group", name), 5, CT_RETURNED);
    for (int i = 0; i < 10; i++) {
        char member[16];
        snprintf(member, sizeof member, "m.m%d", i);
        ct_counter_record(open_counter(writer, NULL, member), 1, CT_RETURNED);
    }
    CHECK(ct_report_counters(NULL, NULL, 0) < 4000 + 12 * 250);
}

static void check_refused(void) {
    setenv("CODETIMER_MAX_COUNTERS", "1", 1);
    ct_writer *writer;
    ct_counter *counter;
    CHECK(ct_writer_open("script", &writer) == CT_OK);
    open_counter(writer, NULL, "a");
    CHECK(ct_counter_open(writer, NULL, "b\x1b", NULL, &counter) == CT_EFULL);
    ct_report_counters(NULL, buffer, sizeof buffer);
    CHECK(strstr(buffer, "\n1 counter without calls\n"
                         "1 refused (limit 1, CODETIMER_MAX_COUNTERS), the last: script/b\\x1b\n"));
}

static void test_empty(void **unused) { (void)unused; assert_int_equal(run_in_child(check_empty), 0); }
static void test_table(void **unused) { (void)unused; assert_int_equal(run_in_child(check_table), 0); }
static void test_active(void **unused) { (void)unused; assert_int_equal(run_in_child(check_active), 0); }
static void test_huge_name(void **unused) { (void)unused; assert_int_equal(run_in_child(check_huge_name), 0); }
static void test_refused(void **unused) { (void)unused; assert_int_equal(run_in_child(check_refused), 0); }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_active),
        cmocka_unit_test(test_huge_name),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
