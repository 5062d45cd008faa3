/* SPDX-License-Identifier: MIT
 *
 * Guards the file that the members list is followed in: what it says comes into force when two looks agree on it, at
 * once at the first look, and in the end also where they never agree; what cannot be used is told once and changes
 * nothing; only a changed content is written, so that the last writer wins. Fails if a half-written text is believed,
 * if an empty moment is, or if what others set is overwritten by a file that stayed the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "following.h"

/* ---- when a text is believed ---- */

static void check_settling(void) {
    fake_file_say("a");
    CHECK(ct_config_file("/f") == CT_OK && list_is("a") && now()->lists == 1 && now()->patterns == 1);
    uint64_t changes = ct_poll(), events = now()->events;
    CHECK(later() == changes && now()->events == events && now()->looks == 2);
    fake_file_say("shop.ha");
    CHECK(later() == changes && list_is("a"));
    fake_file_say("shop.handle; shop.ship");
    CHECK(later() == changes && list_is("a"));
    CHECK(later() == changes + 1 && list_is("shop.handle; shop.ship") && now()->patterns == 2 && now()->lists == 2);
    CHECK(later() == changes + 1 && now()->lists == 2);
    fake_file_say("a"); /* there for one look only */
    later();
    fake_file_say("shop.handle; shop.ship");
    later();
    CHECK(later() == changes + 1 && now()->lists == 2);
}

static void check_looks_are_seldom(void) {
    fake_file_say("a");
    CHECK(ct_config_file("/f") == CT_OK);
    for (int i = 0; i < 1000; i++) ct_poll();
    CHECK(fake_file.reads == 1 && now()->looks == 1);
    later();
    CHECK(fake_file.reads == 2);
}

static void check_emptiness(void) {
    fake_file_say("");
    CHECK(ct_config_file("/f") == CT_OK && list_is(NULL) && state_is(CT_CONFIG_WAITING, ""));
    fake_file_say(""); /* written once more, so perhaps about to be filled */
    later();
    CHECK(list_is(NULL));
    later();
    CHECK(list_is("") && state_is(CT_CONFIG_READ, "") && source_is(CT_FROM_FILE, "file /f"));
    fake_file_say("a");
    later();
    later();
    for (int i = 0; i < 20; i++) {
        fake_file_say("");
        later();
        CHECK(list_is("a"));
    }
    later();
    CHECK(list_is(""));
}

static void check_no_rest(void) {
    char text[16];
    int lists = 0;
    fake_file_say("a");
    CHECK(ct_config_file("/f") == CT_OK);
    for (int i = 0; i < 400; i++) { /* a hundred seconds */
        uint64_t before = now()->lists;
        snprintf(text, sizeof text, "m%d", i);
        fake_file_say(text);
        later();
        if (now()->lists == before) continue;
        CHECK(list_is(text));
        lists++;
    }
    CHECK(lists >= 90 && lists <= 140);
}

static void check_busy(void) {
    fake_file_say("a");
    fake_file.busy = 3;
    CHECK(ct_config_file("/f") == CT_OK && list_is(NULL) && state_is(CT_CONFIG_WAITING, ""));
    fake_file.busy = 2;
    later();
    CHECK(list_is("a")); /* the first look that found something */
}

/* ---- what cannot be used ---- */

static void expect_refused(const char *text, size_t length, const char *reason) {
    fake_file_say(text);
    fake_file.length = length;
    later();
    CHECK(!state_is(CT_CONFIG_REFUSED, reason));
    later();
    if (!state_is(CT_CONFIG_REFUSED, reason)) fprintf(stderr, "%s\n", now()->reason);
    CHECK(state_is(CT_CONFIG_REFUSED, reason) && list_is("a") && source_is(CT_FROM_FILE, "file /f"));
    uint64_t events = now()->events;
    later();
    CHECK(now()->events == events);
}

static void check_refusals(void) {
    fake_file_say("a");
    CHECK(ct_config_file("/f") == CT_OK && list_is("a"));
    expect_refused("", 10485760, "it has 10,485,760 bytes, and a members list at most 65,536");
    expect_refused("a\0b", 3, "it is no text in UTF-8: byte 2 is a NUL");
    expect_refused("\xff\xfe"
                   "a\0",
                   4, "it is in UTF-16 or UTF-32, as its first 2 bytes say: save it as UTF-8");
    expect_refused("shop.\xc3", 6, "it is no text in UTF-8: byte 6 does not belong there");
    expect_refused("\xfe\xff\0a", 4, "it is in UTF-16 or UTF-32, as its first 2 bytes say: save it as UTF-8");
    expect_refused("\xed\xa0\x80", 3, "it is no text in UTF-8: byte 1 does not belong there");
    fake_file_refuse(CT_EPERM, "it cannot be opened: why");
    later();
    later();
    CHECK(state_is(CT_CONFIG_REFUSED, "it cannot be opened: why") && list_is("a"));
    fake_file_refuse(CT_ENOENT, "");
    later();
    CHECK(!state_is(CT_CONFIG_MISSING, "there is no such file"));
    later();
    CHECK(state_is(CT_CONFIG_MISSING, "there is no such file") && list_is("a"));
    uint64_t changes = ct_poll();
    fake_file_say("a");
    later();
    CHECK(later() == changes && state_is(CT_CONFIG_READ, "") && now()->lists == 1);
}

static void check_longest(void) {
    static char text[65540];
    memset(text, 'x', sizeof text - 1);
    memcpy(text, "\xef\xbb\xbf", 3);
    fake_file_say(text);
    CHECK(fake_file.length == 65539 && ct_config_file("/f") == CT_OK && list_is(text + 3));
    fake_file.length--;
    memset(text, 'x', 3);
    later();
    later();
    CHECK(state_is(CT_CONFIG_REFUSED, "it has 65,538 bytes, and a members list at most 65,536"));
}

static void check_texts(void) {
    fake_file_say("\xef\xbb\xbfshop.*\r\n!shop.\xc3\xa4\r\n");
    CHECK(ct_config_file("/f") == CT_OK && list_is("shop.*\r\n!shop.\xc3\xa4\r\n") && now()->patterns == 2);
    ct_writer *writer;
    ct_counter *counter;
    ct_sample sample;
    CHECK(ct_writer_open("script", &writer) == CT_OK);
    CHECK(ct_counter_open(writer, NULL, "shop.\xc3\xa4", NULL, &counter) == CT_OK);
    ct_counter_sample(counter, &sample);
    CHECK(!sample.enabled);
}

static void check_paths(void) {
    static char path[5000];
    memset(path, 'x', sizeof path - 1);
    fake_file_say("a");
    CHECK(ct_config_file(path) == CT_EINVAL && now()->state == CT_CONFIG_NONE);
    CHECK(ct_config_file("f") == CT_OK && strcmp(now()->path, "/fake/f") == 0);
    CHECK(ct_config_file(path) == CT_EINVAL && strcmp(now()->path, "/fake/f") == 0);
    CHECK(ct_config_file("") == CT_OK && now()->state == CT_CONFIG_NONE && now()->path[0] == '\0' && list_is("a"));
    fake_file_say("b");
    int reads = fake_file.reads;
    later();
    later();
    CHECK(list_is("a") && fake_file.reads == reads);
    CHECK(ct_config_file(NULL) == CT_OK && list_is("a"));
}

/* ---- others ---- */

static void check_last_writer_wins(void) {
    fake_file_say("a");
    CHECK(ct_config_file("/f") == CT_OK && ct_members_set("b", 1) == CT_OK);
    for (int i = 0; i < 8; i++) later();
    CHECK(list_is("b"));
    fake_file_say("c");
    later();
    later();
    CHECK(list_is("c"));
    CHECK(ct_members_set("b", 1) == CT_OK && ct_config_file("/f") == CT_OK && list_is("c")); /* the same file again */
}

static int others_did;
static void others_set_another(void) {
    if (others_did++ > 0) return;
    fake_file_say("other");
    CHECK(ct_config_file("/other") == CT_OK && list_is("other"));
    fake_file_say("late");
}

/* A look that takes long does not bring back a file that nobody follows any more; and the lock is free meanwhile. */
static void check_replaced_meanwhile(void) {
    fake_file_say("a");
    fake_file.during = others_set_another;
    CHECK(ct_config_file("/f") == CT_OK && list_is("other") && strcmp(now()->path, "/other") == 0);
}

static void others_stop(void) { CHECK(ct_config_file(NULL) == CT_OK); }

static void check_stopped_meanwhile(void) {
    fake_file_say("a");
    fake_file.during = others_stop;
    CHECK(ct_config_file("/f") == CT_OK && list_is(NULL) && now()->state == CT_CONFIG_NONE);
}

static void check_fork(void) {
    fake_file_say("a");
    ct_writer *writer;
    ct_counter *counter;
    ct_token token;
    CHECK(ct_writer_open("script", &writer) == CT_OK);
    CHECK(ct_counter_open(writer, NULL, "a", NULL, &counter) == CT_OK);
    CHECK(ct_config_file("/f") == CT_OK);
    ct_enter(counter, &token);
    ct_leave(counter, &token, CT_RETURNED);
    fake_shm_fork();
    CHECK(list_is("a") && source_is(CT_FROM_FILE, "file /f"));
    fake_file_say("b");
    later();
    later();
    CHECK(list_is("b") && source_is(CT_FROM_FILE, "file /f"));
}

/* ---- who comes along ---- */

static void check_calls(void) {
    ct_writer *writer;
    ct_counter *counter;
    ct_token token;
    fake_file_say("shop.a");
    CHECK(ct_writer_open("script", &writer) == CT_OK);
    CHECK(ct_counter_open(writer, NULL, "shop.a", NULL, &counter) == CT_OK);
    CHECK(ct_config_file("/f") == CT_OK);
    ct_enter(counter, &token);
    ct_leave(counter, &token, CT_RETURNED);
    fake_file_say("shop.b");
    for (int i = 0; i < 2; i++) {
        fake_clock.ns += quarter_ns + quarter_ns / 10;
        ct_enter(counter, &token);
        ct_leave(counter, &token, CT_RETURNED);
    }
    CHECK(list_is("shop.b"));
    ct_enter(counter, &token);
    CHECK(token.state % 2 == 0);
    fake_file_say("shop.a"); /* now nothing is measured any more */
    for (int i = 0; i < 2; i++) {
        CHECK(ct_tend() == 0);
        fake_clock.ns += quarter_ns + quarter_ns / 10;
        CHECK(ct_tend() == 1);
    }
    CHECK(list_is("shop.a"));
}

static void check_tend_without_file(void) {
    CHECK(ct_tend() == 1); /* the first */
    fake_clock.ns += 2 * quarter_ns;
    CHECK(ct_tend() == 0);
    fake_clock.ns += 3 * quarter_ns;
    CHECK(ct_tend() == 1 && ct_tend() == 0);
    CHECK(ct_members_provide("a", 1) == CT_OK);
    fake_clock.ns += 5 * quarter_ns;
    CHECK(ct_tend() == 1);
    fake_clock.ns += quarter_ns + quarter_ns / 10;
    CHECK(ct_tend() == 1);
}

#define SCENARIOS(X)                                                                                                   \
    X(settling)                                                                                                        \
    X(looks_are_seldom)                                                                                                \
    X(emptiness)                                                                                                       \
    X(no_rest)                                                                                                         \
    X(busy)                                                                                                            \
    X(refusals)                                                                                                        \
    X(longest)                                                                                                         \
    X(texts)                                                                                                           \
    X(paths)                                                                                                           \
    X(last_writer_wins)                                                                                                \
    X(replaced_meanwhile)                                                                                              \
    X(stopped_meanwhile)                                                                                               \
    X(fork)                                                                                                            \
    X(calls)                                                                                                           \
    X(tend_without_file)

SCENARIOS(SCENARIO)

int main(void) {
    const struct CMUnitTest tests[] = {SCENARIOS(TEST)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
