/* SPDX-License-Identifier: MIT
 *
 * Guards the members list in force and those who change it: the process, its environment, controllers. A list acts on
 * the next call and on counters made later; a text is never mixed, whoever writes when; the last writer wins, and the
 * bits follow the text even where a controller died half-way or the other side wrote meanwhile. Fails if the sides
 * share a buffer, or if a record that was given to another counter is switched by its old name.
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
#include "fake_shm.h"
#include "registry.h"

#define FIRST "/fake/77-1234-0"

static ct_writer *writer;
static ct_counter *a, *b;
static ct_view *view;

static ct_counter *open_counter(const char *member) {
    ct_counter *opened;
    if (writer == NULL) CHECK(ct_writer_open("script", &writer) == CT_OK);
    CHECK(ct_counter_open(writer, NULL, member, NULL, &opened) >= 0);
    return opened;
}

static int counts(ct_counter *counter) {
    ct_sample before, after;
    ct_token token;
    ct_counter_sample(counter, &before);
    ct_enter(counter, &token);
    ct_leave(counter, &token, CT_RETURNED);
    ct_counter_sample(counter, &after);
    return after.calls != before.calls;
}

static void publish(void) {
    a = open_counter("shop.a");
    b = open_counter("shop.b");
    CHECK(counts(a) && counts(b));
    CHECK(ct_view_open(FIRST, &view, NULL) == CT_OK);
}

static int list_is(const char *expected) {
    static char mine[70000], seen[70000];
    size_t length;
    if (expected == NULL)
        return ct_members_get(mine, sizeof mine, &length) == CT_ENOENT &&
               ct_view_members(view, seen, sizeof seen, &length) == CT_ENOENT;
    CHECK(ct_view_members(view, seen, sizeof seen, &length) == CT_OK && length == strlen(expected));
    CHECK(ct_members_get(mine, sizeof mine, &length) == CT_OK && length == strlen(expected));
    return strcmp(mine, expected) == 0 && strcmp(seen, expected) == 0;
}

static int switch_on(const char *patterns) { return ct_view_switch(view, patterns, strlen(patterns), 1); }
static int switch_off(const char *patterns) { return ct_view_switch(view, patterns, strlen(patterns), 0); }
static int set(const char *text) { return ct_view_set_members(view, text, strlen(text)); }

static void check_switching(void) {
    publish();
    CHECK(list_is(NULL) && ct_view_acknowledged(view));
    CHECK(switch_off("shop.a") == CT_OK);
    CHECK(!counts(a) && counts(b)); /* the very next call */
    CHECK(list_is("*;!shop.a"));
    CHECK(switch_on("shop.a") == CT_OK && counts(a) && list_is("*;shop.a"));
    CHECK(set("shop.b") == CT_OK && !counts(a) && counts(b));
    CHECK(!counts(open_counter("shop.new")));
    CHECK(ct_view_set_members(view, NULL, 0) == CT_OK && counts(a) && list_is(NULL));
    CHECK(counts(open_counter("shop.new")));
    CHECK(set("") == CT_OK && !counts(a) && !counts(b) && list_is(""));
    CHECK(ct_members_set("shop.?", 6) == CT_OK && counts(a) && list_is("shop.?"));
    CHECK(fake_shm.controls == 0);
}

static void check_acknowledgement(void) {
    publish();
    CHECK(set("shop.b") == CT_OK && !ct_view_acknowledged(view));
    CHECK(counts(b) && !ct_view_acknowledged(view)); /* the fast path knows nothing of it */
    fake_clock.ns += 1100000000;
    CHECK(counts(b) && ct_view_acknowledged(view));
    CHECK(set("shop.a") == CT_OK && !ct_view_acknowledged(view));
    CHECK(!counts(b) && ct_view_acknowledged(view)); /* its state had changed: the slow path */
    CHECK(set("*") == CT_OK && !ct_view_acknowledged(view));
    open_counter("shop.new");
    CHECK(ct_view_acknowledged(view));
    uint64_t changes = ct_poll();
    CHECK(set("shop.*") == CT_OK && ct_poll() == changes + 1 && ct_view_acknowledged(view) && ct_poll() == changes + 1);
}

static void check_environment(void) {
    setenv("CODETIMER_MEASURE", "shop.a", 1);
    a = open_counter("shop.a");
    b = open_counter("shop.b");
    CHECK(counts(a) && !counts(b));
    CHECK(ct_view_open(FIRST, &view, NULL) == CT_OK && list_is("shop.a"));
}

/* Cut between patterns, never inside of one. */
static void check_huge_environment(void) {
    size_t length;
    char *text = malloc(70001);
    for (size_t i = 0; i < 70000; i++) text[i] = i % 10 == 9 ? ';' : 'x';
    text[70000] = '\0';
    setenv("CODETIMER_MEASURE", text, 1);
    a = open_counter("shop.a");
    CHECK(ct_members_get(text, 70000, &length) == CT_OK && length == 65529 && text[65528] == 'x');
    free(text);
}

static void check_refusals(void) {
    static char huge[70000];
    publish();
    memset(huge, 'x', sizeof huge - 1);
    CHECK(ct_view_set_members(view, huge, 65537) == CT_EINVAL && ct_view_switch(view, huge, 65537, 1) == CT_EINVAL);
    CHECK(ct_view_set_members(view, NULL, 1) == CT_EINVAL && ct_members_set(NULL, 1) == CT_EINVAL);
    CHECK(ct_view_set_members(view, huge, 65536) == CT_OK && ct_members_set(huge, 65537) == CT_EINVAL);
    CHECK(switch_on("y") == CT_EINVAL); /* there is no room for more */
    huge[65536] = '\0';
    CHECK(list_is(huge));
    fake_shm.control_status = CT_EPERM;
    CHECK(set("x") == CT_EPERM && switch_on("x") == CT_EPERM);
    fake_shm.control_status = CT_OK;
    fake_shm.dead = 1;
    CHECK(set("x") == CT_ENOENT && switch_on("x") == CT_ENOENT);
    fake_shm.dead = 0;
    fake_shm_remove(FIRST);
    CHECK(set("x") == CT_ENOENT);
}

static void check_damaged_area(void) {
    size_t size, length;
    char text[64];
    publish();
    ct__header *header = (ct__header *)(void *)fake_shm_bytes(FIRST, &size);
    uint32_t at = atomic_load(&header->members_at);
    ct__members_area *area = ct__segment_at(at);
    CHECK(set("shop.a") == CT_OK);
    for (int i = 0; i < 2; i++) atomic_store(&area->sides[CT__BY_CONTROLLER].lengths[i], 99999);
    CHECK(ct_view_members(view, text, sizeof text, &length) == CT_EINVAL && switch_on("x") == CT_EINVAL);
    CHECK(counts(a)); /* what was in force stays */
    const uint32_t wild[] = {0, 4, 12, at + 4, 0xfffffff8u, (uint32_t)size - 8};
    for (size_t i = 0; i < sizeof wild / sizeof wild[0]; i++) {
        atomic_store(&header->members_at, wild[i]);
        CHECK(ct_view_refresh(view, NULL) == CT_OK);
        CHECK(ct_view_members(view, text, sizeof text, &length) == CT_EINVAL && set("x") == CT_EINVAL);
        CHECK(!ct_view_acknowledged(view));
    }
}

/* ---- at the same time ---- */

static ct__members_area *area_of_process(void) {
    return ct__segment_at(atomic_load(&((ct__header *)ct__segment_header())->members_at));
}

/* A controller that dies after the text, before the bits. */
static void check_controller_dies_half_way(void) {
    publish();
    ct__members_write(area_of_process(), CT__BY_CONTROLLER, "shop.b", 6);
    CHECK(counts(a)); /* within the second */
    fake_clock.ns += 1100000000;
    counts(a);
    CHECK(!counts(a) && counts(b) && list_is("shop.b"));
    CHECK(switch_on("shop.a") == CT_OK && counts(a) && counts(b)); /* the next controller goes on from its text */
}

/* It dies before it has turned to its text: nothing has happened. */
static void check_controller_dies_early(void) {
    publish();
    CHECK(set("shop.*") == CT_OK);
    ct__members_side *side = &area_of_process()->sides[CT__BY_CONTROLLER];
    uint64_t unread = (ct__get(&side->state) & 1) ^ 1;
    memcpy(side->texts[unread], "garbage", 7);
    atomic_store(&side->lengths[unread], 7);
    CHECK(list_is("shop.*") && counts(a));
    CHECK(set("shop.b") == CT_OK && list_is("shop.b"));
}

/* The process writes while a controller fills its text: both have their own, and the later one wins. */
static void check_both_sides(void) {
    publish();
    for (int i = 0; i < 20; i++) {
        CHECK(set(i % 2 ? "shop.a" : "shop.b") == CT_OK && list_is(i % 2 ? "shop.a" : "shop.b"));
        CHECK(ct_members_set(i % 3 ? "shop.c" : "shop.*", 6) == CT_OK && list_is(i % 3 ? "shop.c" : "shop.*"));
    }
    ct__members_area *area = area_of_process();
    CHECK(set("shop.a") == CT_OK); /* the same number on both sides: the controller's is in force */
    uint64_t id = ct__members_id(ct__get(&area->sides[CT__BY_CONTROLLER].state));
    ct__set(&area->sides[CT__BY_PROCESS].state, (id - 1) * 2);
    CHECK(list_is("shop.a"));
}

static int interruptions;

/* The process turns to another list while a controller is setting bits. */
static void set_between(size_t offset, size_t size) {
    (void)offset;
    if (size != sizeof(ct__record) || interruptions == 0) return;
    interruptions--;
    ct_members_set("shop.a", 6);
}

static void check_process_overtakes_controller(void) {
    publish();
    fake_shm.by_copies = 1;
    ct_view_close(view);
    CHECK(ct_view_open(FIRST, &view, NULL) == CT_OK);
    fake_shm.before_copy = set_between;
    interruptions = 1;
    CHECK(set("shop.b") == CT_OK && interruptions == 0);
    CHECK(counts(a) && !counts(b) && list_is("shop.a"));
}

/* A record is given to another counter while a controller looks at its name. */
static void recycle_between(size_t offset, size_t size) {
    (void)offset;
    if (size != strlen("shop/shop.b") || interruptions == 0) return;
    interruptions--;
    ct_counter_remove(b);
    ct_counter_close(b);
    b = open_counter("shop.c");
}

static void check_recycled_while_switched(void) {
    publish();
    fake_shm.by_copies = 1;
    ct_view_close(view);
    CHECK(ct_view_open(FIRST, &view, NULL) == CT_OK);
    fake_shm.before_copy = recycle_between;
    interruptions = 1;
    CHECK(set("shop.c") == CT_OK && interruptions == 0);
    CHECK(!counts(a) && counts(b));
    interruptions = 0;
    CHECK(set("!shop.c") == CT_OK && counts(a) && !counts(b));
}

static void check_damaged_pattern_is_skipped(void) {
    publish();
    CHECK(set("shop.b;\\x;!") == CT_OK && !counts(a) && counts(b));
    CHECK(switch_on("\\y") == CT_OK && counts(b) && list_is("shop.b"));
}

static void check_hits(void) {
    ct_members *list;
    publish();
    open_counter("shop.c");
    CHECK(ct_members_parse("shop.*;!shop.b;none;\\x", 23, &list) == CT_OK);
    const uint64_t expected[] = {3, 1, 0, 0};
    for (size_t i = 0; i < 4; i++) CHECK(ct_members_pattern_hits(ct_members_at(list, i)) == expected[i]);
    CHECK(ct_counter_remove(a) == CT_OK && ct_members_pattern_hits(ct_members_at(list, 0)) == 2);
    ct_members_free(list);
}

#define SCENARIO(name)                                                                                                 \
    static void test_##name(void **unused) {                                                                           \
        (void)unused;                                                                                                  \
        assert_int_equal(run_in_child(check_##name), 0);                                                               \
    }

SCENARIO(switching)
SCENARIO(acknowledgement)
SCENARIO(environment)
SCENARIO(huge_environment)
SCENARIO(refusals)
SCENARIO(damaged_area)
SCENARIO(controller_dies_half_way)
SCENARIO(controller_dies_early)
SCENARIO(both_sides)
SCENARIO(process_overtakes_controller)
SCENARIO(recycled_while_switched)
SCENARIO(damaged_pattern_is_skipped)
SCENARIO(hits)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_switching),
        cmocka_unit_test(test_acknowledgement),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_huge_environment),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_damaged_area),
        cmocka_unit_test(test_controller_dies_half_way),
        cmocka_unit_test(test_controller_dies_early),
        cmocka_unit_test(test_both_sides),
        cmocka_unit_test(test_process_overtakes_controller),
        cmocka_unit_test(test_recycled_while_switched),
        cmocka_unit_test(test_damaged_pattern_is_skipped),
        cmocka_unit_test(test_hits),
    };
    unsetenv("CODETIMER_MEASURE");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
