/* SPDX-License-Identifier: MIT
 *
 * Guards the language of members lists: the shared cases of tests/cases/members.tsv, positions and reasons of patterns
 * that are wrong, the texts that switching on and off makes, and that no pattern takes long. Fails if the first match
 * wins, or if a star stops at a dot.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codetimer.h"

#ifndef CASES
#define CASES "tests/cases"
#endif

static ct_members *parse(const char *text) {
    ct_members *members = NULL;
    assert_int_equal(ct_members_parse(text, strlen(text), &members), CT_OK);
    return members;
}

static int selects(const char *text, const char *member) {
    ct_members *members = parse(text);
    int selected = ct_members_selects(members, member, strlen(member));
    ct_members_free(members);
    return selected;
}

/* \n and \s of the case file; everything else stays. */
static void unquote(char *text) {
    char *to = text;
    if (strcmp(text, "-") == 0) *text = '\0';
    for (char *from = text; *from != '\0'; from++) {
        if (from[0] == '\\' && (from[1] == 'n' || from[1] == 's')) {
            *to++ = *++from == 'n' ? '\n' : ' ';
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
}

static void test_cases(void **unused) {
    (void)unused;
    char line[512];
    int seen = 0;
    FILE *file = fopen(CASES "/members.tsv", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        char *rest = line, *list = strsep(&rest, "\t"), *member = strsep(&rest, "\t"),
             *expected = strsep(&rest, "\t\n");
        if (expected == NULL || strncmp(line, "# list", 6) == 0) continue;
        unquote(list);
        if (selects(list, member) != (expected[0] == '1'))
            fail_msg("\"%s\" and \"%s\": not %s", list, member, expected);
        seen++;
    }
    fclose(file);
    assert_true(seen >= 40);
}

static void test_no_list(void **unused) {
    (void)unused;
    assert_int_equal(ct_members_selects(NULL, "anything", 8), 1);
    assert_int_equal(ct_members_count(NULL), 0);
    assert_null(ct_members_at(NULL, 0));
    ct_members_free(NULL);
}

static void check_problem(const ct_members *members, size_t index, size_t position, const char *problem) {
    const ct_members_pattern *pattern = ct_members_at(members, index);
    assert_non_null(pattern);
    assert_int_equal(pattern->position, position);
    if (problem == NULL) {
        assert_null(pattern->problem);
    } else {
        assert_non_null(pattern->problem);
        assert_non_null(strstr(pattern->problem, problem));
    }
}

static void test_problems(void **unused) {
    (void)unused;
    ct_members *members = parse("a; !;b\\x; !c ;d\\");
    assert_int_equal(ct_members_count(members), 5);
    check_problem(members, 0, 0, NULL);
    check_problem(members, 1, 3, "nothing follows");
    check_problem(members, 2, 5, "backslash quotes only");
    check_problem(members, 3, 10, NULL);
    check_problem(members, 4, 14, "ends in a backslash");
    const ct_members_pattern *pattern = ct_members_at(members, 3);
    assert_true(pattern->exclude && pattern->length == 2 && pattern->body_length == 1);
    assert_int_equal(ct_members_pattern_matches(pattern, "c", 1), 1); /* the body, whichever way it decides */
    assert_int_equal(ct_members_pattern_matches(ct_members_at(members, 2), "bx", 2), 0);
    assert_null(ct_members_at(members, 5));
    ct_members_free(members);
}

static void test_odd_texts(void **unused) {
    (void)unused;
    ct_members *members = NULL;
    char *large = malloc(70000);
    memset(large, 'x', 70000);
    assert_int_equal(ct_members_parse(large, 65537, &members), CT_EINVAL);
    assert_int_equal(ct_members_parse(large, 65536, &members), CT_OK);
    ct_members_free(members);
    free(large);
    assert_int_equal(ct_members_parse(NULL, 3, &members), CT_EINVAL);
    assert_int_equal(ct_members_parse("a\0b;c", 5, &members), CT_OK);
    assert_non_null(strstr(ct_members_at(members, 0)->problem, "NUL"));
    assert_int_equal(ct_members_selects(members, "c", 1), 1);
    ct_members_free(members);
    assert_int_equal(selects("\xef\xbb\xbfshop.x", "shop.x"), 1); /* a byte order mark */
    assert_int_equal(selects("a\r\nb\r\n", "a"), 1);
}

/* The two-finger method is at worst length x length: no exponential walk through the stars. */
static void test_many_stars(void **unused) {
    (void)unused;
    enum { STARS = 20000 };
    char *list = malloc(2 * STARS + 2), *member = malloc(2001);
    for (int i = 0; i < STARS; i++) memcpy(list + 2 * i, "*a", 2);
    memcpy(list + 2 * STARS, "b", 2);
    memset(member, 'a', 2000);
    member[2000] = '\0';
    assert_int_equal(selects(list, member), 0);
    free(list);
    free(member);
}

static void check_switch(const char *list, const char *change, int enable, const char *expected) {
    char buffer[256];
    ct_members *members = list != NULL ? parse(list) : NULL, *changes = parse(change);
    size_t length = ct_members_switch(members, changes, enable, buffer, sizeof buffer);
    assert_string_equal(buffer, expected);
    assert_int_equal(length, strlen(expected));
    char small[4];
    assert_int_equal(ct_members_switch(members, changes, enable, small, sizeof small), length);
    ct_members_free(members);
    ct_members_free(changes);
}

static void test_switch(void **unused) {
    (void)unused;
    check_switch(NULL, "shop.x", 0, "*;!shop.x");
    check_switch(NULL, "shop.x", 1, "*;shop.x");
    check_switch("", "shop.x", 1, "shop.x");
    check_switch("a;b", "c", 1, "a;b;c");
    check_switch("a;b", "c", 0, "a;b;!c");
    check_switch("a;b;!c", "c", 1, "a;b;c");
    check_switch("c;a;c;b", "c", 1, "a;b;c");
    check_switch("!a", "b", 1, "*;!a;b");
    check_switch("!a", "a", 1, "*;a");
    check_switch("*;a", "*", 0, "a;!*");
    check_switch("a # why\n b;bad\\x", "c;d", 0, "a;b;!c;!d");
    check_switch("a", "!b", 1, "a;!b"); /* switching an exclusion on excludes */
    check_switch("a", "!b", 0, "a;b");
    check_switch("a\\;b", "c", 1, "a\\;b;c");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),     cmocka_unit_test(test_no_list),    cmocka_unit_test(test_problems),
        cmocka_unit_test(test_odd_texts), cmocka_unit_test(test_many_stars), cmocka_unit_test(test_switch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
