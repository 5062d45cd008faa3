/* SPDX-License-Identifier: MIT
 *
 * Guards the text of numbers and names: thousands, rounding at every edge of a unit, escapes, buffers that are too
 * small, and a locale with a decimal comma. Fails if printf formats a number, or if a byte is written past the buffer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <locale.h>
#include <math.h>
#include <string.h>

#include "format.h"

static char buffer[256];
static ct__text text;

static void start(void) { ct__text_start(&text, buffer, sizeof buffer); }

static void check_count(uint64_t count, const char *expected) {
    start();
    ct__text_put_count(&text, count);
    assert_string_equal(buffer, expected);
}

static void test_counts(void **unused) {
    (void)unused;
    check_count(0, "0");
    check_count(999, "999");
    check_count(1000, "1,000");
    check_count(1234567, "1,234,567");
    check_count(UINT64_MAX, "18,446,744,073,709,551,615");
}

static void check_decimal(double value, int decimals, const char *expected) {
    start();
    ct__text_put_decimal(&text, value, decimals);
    assert_string_equal(buffer, expected);
}

static void test_decimals(void **unused) {
    (void)unused;
    check_decimal(0, 3, "0.000");
    check_decimal(0.0004, 3, "0.000");
    check_decimal(0.0005, 3, "0.001");
    check_decimal(999.9996, 3, "1,000.000");
    check_decimal(1234.5, 1, "1,234.5");
    check_decimal(2.5, 0, "3");
    check_decimal(0.05, 1, "0.1");
    check_decimal(-1, 3, "?");
    check_decimal(NAN, 3, "?");
    check_decimal(INFINITY, 3, "?");
    check_decimal(1e16, 3, "10,000,000,000,000,000.000");
    check_decimal(1e20, 3, "> 10,000,000,000,000,000,000");
}

static void check_duration(double ns, int ascii, const char *expected) {
    start();
    ct__text_put_duration(&text, ns, ascii);
    assert_string_equal(buffer, expected);
}

static void test_durations(void **unused) {
    (void)unused;
    check_duration(0, 0, "0.000 ns");
    check_duration(0.27, 0, "0.270 ns");
    check_duration(999.9994, 0, "999.999 ns");
    check_duration(999.9996, 0, "1.000 \xc2\xb5s");
    check_duration(1500, 1, "1.500 us");
    check_duration(999999.6, 0, "1.000 ms");
    check_duration(3.0001e9, 0, "3.000 s");
    check_duration(86400e9, 0, "86,400.000 s");
}

static void check_escaped(const char *name, size_t length, const char *expected) {
    start();
    ct__text_put_escaped(&text, name, length);
    assert_string_equal(buffer, expected);
}

#define ESCAPED(literal, expected) check_escaped(literal, sizeof(literal) - 1, expected)

static void test_escapes(void **unused) {
    (void)unused;
    ESCAPED("plain \\ name", "plain \\ name");
    ESCAPED("a\nb\tc\rd", "a\\nb\\tc\\rd");
    ESCAPED("\x1b[31m", "\\x1b[31m");
    ESCAPED("nul\0nul", "nul\\x00nul");
    ESCAPED("\x7f", "\\x7f");
    ESCAPED("gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f");
    ESCAPED("\xc2\x85", "\\x85");                         /* NEL, a C1 control */
    ESCAPED("\xe2\x80\xae" "abc", "\\u202eabc");          /* right-to-left override */
    ESCAPED("\xff\xfe", "\\xff\\xfe");                    /* no UTF-8 */
    ESCAPED("\xc0\xaf", "\\xc0\\xaf");                    /* overlong */
    ESCAPED("\xed\xa0\x80", "\\xed\\xa0\\x80");           /* surrogate */
    ESCAPED("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");  /* above U+10FFFF */
    ESCAPED("cut\xe2\x82", "cut\\xe2\\x82");              /* truncated sequence */
    ESCAPED("\xf0\x9f\x90\xa2", "\xf0\x9f\x90\xa2");
}

/* Every size from 0 up: the length is always the whole one, the text a prefix, and nothing is written behind. */
static void test_small_buffers(void **unused) {
    (void)unused;
    static const char expected[] = "1,234.567 ms \\x1b!";
    for (size_t size = 0; size <= sizeof expected; size++) {
        char small[32];
        memset(small, '#', sizeof small);
        ct__text_start(&text, small, size);
        ct__text_put_decimal(&text, 1234.567, 3);
        ct__text_put(&text, " ms ");
        ct__text_put_escaped(&text, "\x1b!", 2);
        assert_int_equal(text.length, sizeof expected - 1);
        assert_int_equal(small[size], '#');
        if (size == 0) continue;
        assert_int_equal(strlen(small), size - 1);
        assert_memory_equal(small, expected, size - 1);
    }
}

static void test_locale(void **unused) {
    (void)unused;
    if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL) skip();
    check_decimal(1234.5, 3, "1,234.500");
    setlocale(LC_ALL, "C");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),  cmocka_unit_test(test_decimals),      cmocka_unit_test(test_durations),
        cmocka_unit_test(test_escapes), cmocka_unit_test(test_small_buffers), cmocka_unit_test(test_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
