/* SPDX-License-Identifier: MIT
 *
 * Guards what counters there are: keys and categories, names that are refused, the limit with what it reports, memory
 * that stays flat over a million creations and removals, generations that only grow when a record is used again, and a
 * program that goes on unharmed when there is no memory for its counters. Scenarios that use up a process run in a
 * child.
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
#include "fake_memory.h"
#include "registry.h"
#include "segment.h"

static ct_writer *open_writer(void) {
    ct_writer *writer;
    CHECK(ct_writer_open("script", &writer) == CT_OK);
    return writer;
}

static void check_key(ct_writer *writer, const char *category, const char *member, const char *expected) {
    char key[256];
    ct_counter *counter;
    CHECK(ct_counter_open(writer, category, member, NULL, &counter) == CT_OK);
    CHECK(ct_counter_key(counter, key, sizeof key) == strlen(expected));
    CHECK(strcmp(key, expected) == 0);
    CHECK(ct_counter_remove(counter) == CT_OK);
    ct_counter_close(counter);
}

static void check_keys(void) {
    ct_writer *writer = open_writer();
    check_key(writer, NULL, "shop.orders.handle", "shop/shop.orders.handle");
    check_key(writer, NULL, "handle", "script/handle");
    check_key(writer, NULL, ".hidden", "script/.hidden");
    check_key(writer, "group", "shop.handle", "group/shop.handle");
    check_key(writer, "group", "a/b", "group/a/b");
    check_key(writer, NULL, "a/b.c", "script/a/b.c"); /* "a/b" could not be a category */
    check_key(writer, NULL, "\xff\x1b;*", "script/\xff\x1b;*");
    ct_writer_close(writer);
}

static void check_refused_names(void) {
    ct_writer *writer = open_writer();
    ct_counter *counter = NULL;
    char *huge = malloc(70001);
    memset(huge, 'x', 70000);
    huge[70000] = '\0';
    CHECK(ct_counter_open(writer, NULL, "", NULL, &counter) == CT_EINVAL);
    CHECK(ct_counter_open(writer, NULL, NULL, NULL, &counter) == CT_EINVAL);
    CHECK(ct_counter_open(writer, NULL, huge, NULL, &counter) == CT_EINVAL);
    CHECK(ct_counter_open(writer, NULL, "m", huge, &counter) == CT_EINVAL);
    CHECK(ct_counter_open(writer, "", "m", NULL, &counter) == CT_EINVAL);
    CHECK(ct_counter_open(writer, "a/b", "m", NULL, &counter) == CT_EINVAL);
    CHECK(ct_counter_open(NULL, NULL, "m", NULL, &counter) == CT_EINVAL);
    CHECK(ct_writer_open("a/b", &writer) == CT_EINVAL);
    CHECK(counter == NULL && fake_memory.locks == 0);
    huge[65535] = '\0';
    CHECK(ct_counter_open(writer, NULL, huge, NULL, &counter) == CT_OK);
    CHECK(ct_counter_key(counter, NULL, 0) == 65535 + strlen("script/"));
    free(huge);
}

static void check_limit(void) {
    enum { OVER = 100000, LIMIT = 16384 };
    ct_writer *writer = open_writer();
    ct_counters counters;
    ct_counter *counter;
    char name[32];
    for (int i = 0; i < OVER; i++) {
        snprintf(name, sizeof name, "member%d", i);
        int status = ct_counter_open(writer, NULL, name, NULL, &counter);
        CHECK(status == (i < LIMIT ? CT_OK : CT_EFULL));
        if (i < LIMIT) ct_counter_record(counter, 5, CT_RETURNED);
    }
    ct_counters_info(&counters);
    CHECK(counters.listed == LIMIT && counters.capacity == LIMIT && counters.refused == OVER - LIMIT);
    CHECK(strcmp(counters.last_refused, "script/member99999") == 0);
    CHECK(ct_counter_find(writer, "script/member7", &counter) == CT_OK);
    CHECK(ct_counter_remove(counter) == CT_OK);
    CHECK(ct_counter_open(writer, NULL, "one more", NULL, &counter) == CT_OK); /* room again */
}

static void check_limit_by_environment(void) {
    setenv("CODETIMER_MAX_COUNTERS", "3", 1);
    ct_writer *writer = open_writer();
    ct_counter *counter;
    CHECK(ct_counter_open(writer, NULL, "a", NULL, &counter) == CT_OK);
    CHECK(ct_counter_open(writer, NULL, "b", NULL, &counter) == CT_OK);
    CHECK(ct_counter_open(writer, NULL, "c", NULL, &counter) == CT_OK);
    CHECK(ct_counter_open(writer, NULL, "d", NULL, &counter) == CT_EFULL);
    CHECK(ct_counter_open(writer, NULL, "a", NULL, &counter) == CT_EXISTS);
}

static uint64_t capacity_by(const char *limit) {
    setenv("CODETIMER_MAX_COUNTERS", limit, 1);
    ct_counters counters;
    ct_counters_info(&counters);
    return counters.capacity;
}

/* It is read once in a process. strtoul takes a sign. */
static void check_odd_environment(void) { CHECK(capacity_by("many") == 16384); }
static void check_empty_environment(void) { CHECK(capacity_by("") == 16384); }
static void check_zero_environment(void) { CHECK(capacity_by("0") == 16384); }
static void check_negative_environment(void) { CHECK(capacity_by("-1") == 16384); }
static void check_broken_environment(void) { CHECK(capacity_by("5.5") == 16384); }
static void check_power_environment(void) { CHECK(capacity_by("1e3") == 16384); }
static void check_hexadecimal_environment(void) { CHECK(capacity_by("0x10") == 16384); }
static void check_highest_environment(void) { CHECK(capacity_by("65536") == 65536); }
static void check_higher_environment(void) { CHECK(capacity_by("65537") == 65536); }
static void check_huge_environment(void) { CHECK(capacity_by("99999999999999999999999") == 65536); }

static void check_memory_stays_flat(void) {
    ct_writer *writer = open_writer();
    ct_counter *counter;
    size_t used = 0;
    uint64_t generation = 0;
    for (int i = 0; i < 1000000; i++) {
        char name[32];
        snprintf(name, sizeof name, "member%d", i % 1000);
        CHECK(ct_counter_open(writer, NULL, name, "a sentence of help", &counter) == CT_OK);
        ct_counter_record(counter, 5, CT_RETURNED);
        uint64_t now = ct__get(counter->state) >> 1;
        CHECK(now > generation); /* the same record each time */
        generation = now;
        CHECK(ct_counter_remove(counter) == CT_OK);
        ct_counter_close(counter);
        if (i == 1000) used = ct__segment_used();
    }
    CHECK(ct__segment_used() == used);
    CHECK(ct_counters_end() == 1);
}

/* A removed counter that is still held must not be given to another key. */
static void check_held_memory_is_not_reused(void) {
    ct_writer *writer = open_writer();
    ct_counter *held, *other;
    ct_sample sample;
    CHECK(ct_counter_open(writer, NULL, "held", NULL, &held) == CT_OK);
    CHECK(ct_counter_record(held, 5, CT_RETURNED) == 1);
    CHECK(ct_counter_remove(held) == CT_OK);
    CHECK(ct_counter_open(writer, NULL, "other", NULL, &other) == CT_OK);
    CHECK(other->definition->record != held->definition->record);
    ct_counter_record(other, 5, CT_RETURNED);
    CHECK(other->slot != held->slot);
    CHECK(ct_counter_record(held, 5, CT_RETURNED) == 0);
    ct_counter_sample(other, &sample);
    CHECK(sample.calls == 1);
    ct_counter_close(held);
    CHECK(ct_counter_open(writer, NULL, "third", NULL, &held) == CT_OK);
    CHECK(ct_counters_end() == 2); /* now it is */
}

static void check_listing(void) {
    ct_writer *writer = open_writer();
    ct_counter *a, *b;
    char key[64];
    CHECK(ct_counters_end() == 0);
    CHECK(ct_counter_open(writer, NULL, "a.a", NULL, &a) == CT_OK);
    CHECK(ct_counter_open(writer, NULL, "b.b", NULL, &b) == CT_OK);
    CHECK(ct_counters_end() == 2);
    CHECK(ct_counters_key(0, key, sizeof key) == 5 && strcmp(key, "a/a.a") == 0);
    key[0] = '#';
    CHECK(ct_counters_key(1, key, 5) == 5 && key[0] == '#'); /* too small: not written */
    CHECK(ct_counter_remove(a) == CT_OK);
    CHECK(ct_counters_key(0, key, sizeof key) == 0 && ct_counters_key(99, key, sizeof key) == 0);
    ct_counter_close(a);
    CHECK(ct_counter_find(writer, "b/b.b", &a) == CT_OK);
    CHECK(ct_counter_find(writer, "b/b", &a) == CT_ENOENT);
}

static void check_no_memory_at_all(void) {
    fake_memory.reserve_most = 0;
    ct_writer *writer = open_writer();
    ct_counter *counter = NULL;
    CHECK(ct_counter_open(writer, NULL, "m", NULL, &counter) == CT_ENOMEM);
    CHECK(counter == NULL && ct_counters_end() == 0);
    ct_writer_close(writer);
}

/* Memory for the definition, none for its slot: the measured program goes on, the call is lost. */
static void check_no_memory_for_slots(void) {
    fake_memory.commit_left = 65536;
    ct_writer *writer = open_writer();
    ct_counter *counters[1000];
    ct_sample sample;
    char name[32];
    int opened = 0;
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "member%d", i);
        if (ct_counter_open(writer, NULL, name, NULL, &counters[opened]) == CT_OK) opened++;
    }
    CHECK(opened > 0 && opened <= 1000);
    uint64_t calls = 0;
    for (int i = 0; i < opened; i++) {
        ct_token token;
        ct_enter(counters[i], &token);
        ct_leave(counters[i], &token, CT_RETURNED);
        ct_counter_sample(counters[i], &sample);
        calls += sample.calls;
    }
    CHECK(calls < (uint64_t)opened);
    CHECK(fake_memory.locks == 0);
}

static void check_small_address_space(void) {
    fake_memory.reserve_most = (size_t)1 << 24;
    ct_writer *writer = open_writer();
    ct_counter *counter;
    CHECK(ct_counter_open(writer, NULL, "m", NULL, &counter) == CT_OK);
}

#define SCENARIO(name)                                                                                                 \
    static void test_##name(void **unused) {                                                                           \
        (void)unused;                                                                                                  \
        assert_int_equal(run_in_child(check_##name), 0);                                                               \
    }

SCENARIO(keys)
SCENARIO(refused_names)
SCENARIO(limit)
SCENARIO(limit_by_environment)
SCENARIO(odd_environment)
SCENARIO(empty_environment)
SCENARIO(zero_environment)
SCENARIO(negative_environment)
SCENARIO(broken_environment)
SCENARIO(power_environment)
SCENARIO(hexadecimal_environment)
SCENARIO(highest_environment)
SCENARIO(higher_environment)
SCENARIO(huge_environment)
SCENARIO(memory_stays_flat)
SCENARIO(held_memory_is_not_reused)
SCENARIO(listing)
SCENARIO(no_memory_at_all)
SCENARIO(no_memory_for_slots)
SCENARIO(small_address_space)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_refused_names),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_limit_by_environment),
        cmocka_unit_test(test_odd_environment),
        cmocka_unit_test(test_empty_environment),
        cmocka_unit_test(test_zero_environment),
        cmocka_unit_test(test_negative_environment),
        cmocka_unit_test(test_broken_environment),
        cmocka_unit_test(test_power_environment),
        cmocka_unit_test(test_hexadecimal_environment),
        cmocka_unit_test(test_highest_environment),
        cmocka_unit_test(test_higher_environment),
        cmocka_unit_test(test_huge_environment),
        cmocka_unit_test(test_memory_stays_flat),
        cmocka_unit_test(test_held_memory_is_not_reused),
        cmocka_unit_test(test_listing),
        cmocka_unit_test(test_no_memory_at_all),
        cmocka_unit_test(test_no_memory_for_slots),
        cmocka_unit_test(test_small_address_space),
    };
    unsetenv("CODETIMER_MAX_COUNTERS");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
