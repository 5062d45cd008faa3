/* SPDX-License-Identifier: MIT
 *
 * Guards JSON: commas, strings of any bytes, integers to 2^64 - 1, and doubles that read back to the same bits with no
 * more digits than needed, in a locale with a comma too. Fails if a byte breaks a string or a digit is lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "json_check.h"

static char buffer[512];

static const char *number(double value) {
    ct__text text;
    ct__text_start(&text, buffer, sizeof buffer);
    ct__text_put_number(&text, value);
    return buffer;
}

static void test_numbers(void **unused) {
    (void)unused;
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0.0"},
                 {1, "1.0"},
                 {-1.5, "-1.5"},
                 {0.1, "0.1"},
                 {100, "100.0"},
                 {1234567.891, "1234567.891"},
                 {0.1 + 0.2, "0.30000000000000004"},
                 {1e15, "1000000000000000.0"},
                 {1e16, "1e+16"},
                 {1.5e300, "1.5e+300"},
                 {0.00001, "0.00001"},
                 {0.0000012, "1.2e-6"},
                 {5e-324, "4.94065645841247e-324"},
                 {1.7976931348623157e308, "1.7976931348623157e+308"},
                 {NAN, ""},
                 {INFINITY, ""},
                 {-INFINITY, ""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(number(cases[i].value), cases[i].text);
}

static double any_double(void) {
    uint64_t bits = 0;
    double value;
    for (int i = 0; i < 5; i++) bits = bits << 15 ^ (uint64_t)rand();
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void check_round_trip(void) {
    for (int i = 0; i < 20000; i++) {
        double value = any_double();
        if (!isfinite(value)) continue;
        char *text = strdup(number(value)), *end;
        char *locale = strdup(setlocale(LC_NUMERIC, NULL));
        setlocale(LC_NUMERIC, "C");
        assert_true(strtod(text, &end) == value && *end == '\0');
        setlocale(LC_NUMERIC, locale);
        free(locale);
        free(text);
    }
}

/* Where the system has such a locale; without it the test is the same in "C". */
static void test_round_trip(void **unused) {
    (void)unused;
    static const char *const commas[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8", "C"};
    print_message("seed 20261130\n");
    srand(20261130);
    check_round_trip();
    for (size_t i = 0; setlocale(LC_NUMERIC, commas[i]) == NULL; i++) continue;
    check_round_trip();
    setlocale(LC_NUMERIC, "C");
}

static const char *string(const char *bytes, size_t count) {
    ct__text text;
    ct__json json;
    ct__text_start(&text, buffer, sizeof buffer);
    ct__json_start(&json, &text);
    ct__json_string(&json, bytes, count);
    return buffer;
}

static void test_strings(void **unused) {
    (void)unused;
    assert_string_equal(string("plain", 5), "\"plain\"");
    assert_string_equal(string("", 0), "\"\"");
    assert_string_equal(string("a\"b\\c/", 6), "\"a\\\"b\\\\c/\"");
    assert_string_equal(string("\n\t\x01\0\x7f", 5), "\"\\u000a\\u0009\\u0001\\u0000\\u007f\"");
    assert_string_equal(string("\xc3\xbc\xe2\x82\xac", 5), "\"\\u00fc\\u20ac\"");
    assert_string_equal(string("\xf0\x9f\x98\x80", 4), "\"\\ud83d\\ude00\"");
    assert_string_equal(string("\xff\xc3", 2), "\"\\\\xff\\\\xc3\"");
    assert_string_equal(string("\xed\xa0\x80", 3), "\"\\\\xed\\\\xa0\\\\x80\""); /* half a surrogate pair */
    for (int i = 0; i < 20000; i++) {
        char bytes[16];
        for (size_t at = 0; at < sizeof bytes; at++) bytes[at] = (char)rand();
        assert_true(is_json(string(bytes, sizeof bytes)));
    }
}

static void test_structure(void **unused) {
    (void)unused;
    ct__text text;
    ct__json json;
    ct__text_start(&text, buffer, sizeof buffer);
    ct__json_start(&json, &text);
    ct__json_open(&json, "{");
    ct__json_key(&json, "a");
    ct__json_count(&json, UINT64_MAX);
    ct__json_key(&json, "b");
    ct__json_open(&json, "[");
    ct__json_bool(&json, 1);
    ct__json_bool(&json, 0);
    ct__json_text(&json, NULL);
    ct__json_number(&json, NAN);
    ct__json_open(&json, "[");
    ct__json_close(&json, "]");
    ct__json_open(&json, "{");
    ct__json_close(&json, "}");
    ct__json_close(&json, "]");
    ct__json_key(&json, "c");
    ct__json_text(&json, "x");
    ct__json_close(&json, "}");
    assert_string_equal(buffer,
                        "{\"a\": 18446744073709551615, \"b\": [true, false, null, null, [], {}], \"c\": \"x\"}");
    assert_true(is_json(buffer));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_structure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
