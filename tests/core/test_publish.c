/* SPDX-License-Identifier: MIT
 *
 * Guards publishing over scripted shared memory: the file appears with the first measured call and is complete; what is
 * refused, full or cannot grow is counted privately and says why; a deleted file is replaced by a single writer and
 * given up with several; a forked child starts from zero in a file of its own, takes nothing from its parent's, which
 * may change meanwhile, and goes on unmeasured where there is no memory. Fails if the child reads or writes the
 * parent's region.
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
#include "fake_shm.h"
#include "registry.h"
#include "segment.h"

#define FIRST "/fake/77-1234-0"

static ct_writer *writer;

static ct_counter *open_counter(const char *member) {
    ct_counter *counter;
    if (writer == NULL) CHECK(ct_writer_open("script", &writer) == CT_OK);
    CHECK(ct_counter_open(writer, NULL, member, "a sentence", &counter) >= 0);
    return counter;
}

static void call(ct_counter *counter) {
    ct_token token;
    ct_enter(counter, &token);
    ct_leave(counter, &token, CT_RETURNED);
}

static uint64_t calls_of(const ct_counter *counter) {
    ct_sample sample;
    ct_counter_sample(counter, &sample);
    return sample.calls;
}

static ct_segment segment_now(void) {
    ct_segment segment;
    ct_segment_info(&segment);
    return segment;
}

/* What a reader finds under that key; -1: it is not there. */
static int64_t calls_in(const char *path, const char *key) {
    ct_view *view;
    ct_view_counter counter;
    ct_sample sample;
    int64_t calls = -1;
    CHECK(ct_view_open(path, &view, NULL) == CT_OK);
    for (uint32_t i = 0; i < ct_view_end(view); i++) {
        if (ct_view_counter_at(view, i, &counter) != CT_OK || !counter.listed) continue;
        if (counter.key_length != strlen(key) || memcmp(counter.key, key, counter.key_length) != 0) continue;
        CHECK(ct_view_sample(view, i, 1, &sample) == CT_OK);
        calls = (int64_t)sample.calls;
    }
    ct_view_close(view);
    return calls;
}

static void pass_a_second(void) { fake_clock.ns += 1100000000; }

/* ---- the first call ---- */

static void check_first_call(void) {
    ct_process process;
    ct_view *view;
    ct_segment_describe("the program", "C");
    ct_counter *counter = open_counter("shop.handle");
    CHECK(fake_shm_count() == 0 && strstr(segment_now().reason, "nothing has been measured") != NULL);
    call(counter);
    CHECK(fake_shm_count() == 1 && segment_now().published && strcmp(segment_now().path, FIRST) == 0);
    CHECK(segment_now().reason[0] == '\0');
    CHECK(ct_view_open(FIRST, &view, &process) == CT_OK);
    CHECK(process.state == CT_SEGMENT_LIVE && process.pid == 77 && process.start_time == 1234);
    CHECK(strcmp(process.program, "the program") == 0 && strcmp(process.host, "C") == 0 && process.counters == 1);
    ct_view_close(view);
    CHECK(calls_in(FIRST, "shop/shop.handle") == 1);
    call(counter);
    CHECK(calls_in(FIRST, "shop/shop.handle") == 2 && fake_shm.publications == 1);
}

static void check_a_bare_call_publishes_nothing(void) {
    CHECK(ct_members_set("", 0) == CT_OK);
    call(open_counter("m"));
    CHECK(fake_shm_count() == 0);
}

static void check_private(const char *reason) {
    ct_counter *counter = open_counter("m");
    call(counter);
    call(counter);
    CHECK(calls_of(counter) == 2 && fake_shm_count() == 0 && !segment_now().published);
    CHECK(strstr(segment_now().reason, reason) != NULL && segment_now().path[0] == '\0');
}

static void check_no_folder(void) {
    fake_shm.directory_status = CT_EPERM;
    check_private("no folder in the script");
}

static void check_no_room(void) {
    fake_shm.room = 4096;
    check_private("refused by the script");
}

static void check_no_permission(void) {
    fake_shm.publish_status = CT_EPERM;
    check_private("refused by the script");
}

static void check_switched_off(void) {
    setenv("CODETIMER_PUBLISH", "0", 1);
    check_private("CODETIMER_PUBLISH=0");
    fake_shm_fork();
    check_private("CODETIMER_PUBLISH=0");
}

/* ---- names ---- */

static void check_second_core(void) {
    fake_shm_put(FIRST, "x", 1);
    call(open_counter("m"));
    CHECK(strcmp(segment_now().path, "/fake/77-1234-1") == 0 && fake_shm_count() == 2);
}

static void check_left_by_exec(void) {
    fake_shm_put(FIRST, "x", 1);
    fake_shm.dead = 1;
    call(open_counter("m"));
    CHECK(strcmp(segment_now().path, FIRST) == 0 && fake_shm_count() == 1 && fake_shm.reaps == 1);
}

static void check_left_by_exec_and_kept(void) {
    setenv("CODETIMER_KEEP", "1", 1);
    fake_shm_put(FIRST, "x", 1);
    fake_shm.dead = 1;
    call(open_counter("m"));
    CHECK(strcmp(segment_now().path, "/fake/77-1234-1") == 0 && fake_shm_count() == 2);
}

static void check_names_taken(void) {
    fake_shm.publish_status = CT_EXISTS;
    check_private("all names");
}

/* ---- growth ---- */

static void make_many(int from, int to, int with_calls) {
    char name[64];
    for (int i = from; i < to; i++) {
        snprintf(name, sizeof name, "many.m%d", i);
        ct_counter *counter = open_counter(name);
        if (with_calls) call(counter);
    }
}

static void check_growth(void) {
    make_many(0, 2000, 1);
    CHECK(fake_shm.growths > 10);
    CHECK(calls_in(FIRST, "many/many.m0") == 1 && calls_in(FIRST, "many/many.m1999") == 1);
}

static void check_growth_fails(void) {
    ct_process process;
    ct_view *view;
    make_many(0, 100, 1);
    fake_shm.room = 0;
    make_many(100, 2000, 1);
    ct_counter *last = open_counter("many.m1999");
    CHECK(calls_of(last) == 1);
    CHECK(segment_now().published && strstr(segment_now().reason, "could not grow") != NULL);
    CHECK(ct_view_open(FIRST, &view, &process) == CT_OK && strstr(process.reason, "could not grow") != NULL);
    ct_view_close(view);
    CHECK(calls_in(FIRST, "many/many.m0") == 1 && calls_in(FIRST, "many/many.m1999") == -1);
    pass_a_second();
    call(last);
    CHECK(fake_shm.publications == 1);
}

static void check_growth_of_a_deleted_file(void) {
    make_many(0, 100, 1);
    fake_shm_remove(FIRST);
    make_many(100, 1000, 1);
    CHECK(strstr(segment_now().reason, "deleted") != NULL);
    pass_a_second();
    call(open_counter("many.m7"));
    CHECK(fake_shm.publications == 2 && segment_now().reason[0] == '\0');
    CHECK(calls_in(FIRST, "many/many.m999") == 1 && calls_in(FIRST, "many/many.m7") == 2);
}

/* ---- deleted ---- */

static void check_deleted(void) {
    ct_counter *counter = open_counter("m");
    call(counter);
    fake_shm_remove(FIRST);
    call(counter);
    CHECK(fake_shm_count() == 0);
    pass_a_second();
    ct_poll(); /* somebody else's: the writer may be writing */
    CHECK(fake_shm_count() == 0 && segment_now().published);
    call(counter);
    CHECK(fake_shm_count() == 1 && calls_in(FIRST, "script/m") == 3);
    call(counter);
    CHECK(calls_in(FIRST, "script/m") == 4);
}

static void check_deleted_and_no_room(void) {
    ct_counter *counter = open_counter("m");
    call(counter);
    fake_shm_remove(FIRST);
    fake_shm.room = 0;
    pass_a_second();
    call(counter);
    call(counter);
    CHECK(!segment_now().published && calls_of(counter) == 3);
    fake_shm.room = (size_t)1 << 30;
    fake_shm_fork(); /* still mapped, though it is no longer published */
    CHECK(calls_of(counter) == 0);
}

static void check_deleted_with_several_writers(void) {
    ct_writer *other;
    ct_counter *counter = open_counter("m"), *second;
    CHECK(ct_writer_open(NULL, &other) == CT_OK && ct_counter_find(other, "script/m", &second) == CT_OK);
    call(counter);
    call(second);
    fake_shm_remove(FIRST);
    pass_a_second();
    call(counter);
    CHECK(fake_shm_count() == 0 && !segment_now().published);
    CHECK(strstr(segment_now().reason, "several threads") != NULL);
    call(second);
    CHECK(calls_of(counter) == 4);
}

/* A writer that is open but has not written here is none. */
static void check_deleted_with_a_silent_writer(void) {
    ct_writer *other;
    ct_counter *counter = open_counter("m"), *second;
    CHECK(ct_writer_open(NULL, &other) == CT_OK && ct_counter_find(other, "script/m", &second) == CT_OK);
    call(counter);
    fake_shm_remove(FIRST);
    pass_a_second();
    call(counter);
    CHECK(fake_shm_count() == 1);
    call(second);
    ct_counter_close(second);
    ct_writer_close(other);
    fake_shm_remove(FIRST);
    pass_a_second();
    call(counter);
    CHECK(fake_shm_count() == 1 && calls_in(FIRST, "script/m") == 4);
}

/* ---- exit ---- */

static void check_exit(void) {
    ct_counter *counter = open_counter("m");
    call(counter);
    fake_shm_exit();
    CHECK(fake_shm_count() == 0);
    pass_a_second();
    call(counter); /* a thread that is still running does not bring it back */
    CHECK(fake_shm_count() == 0 && calls_of(counter) == 2);
}

static void check_kept(void) {
    setenv("CODETIMER_KEEP", "1", 1);
    call(open_counter("m"));
    fake_shm_exit();
    CHECK(fake_shm_count() == 1);
}

/* ---- housekeeping ---- */

static void check_heartbeat(void) {
    ct_process process;
    ct_view *view;
    ct_counter *counter = open_counter("m");
    call(counter);
    CHECK(ct_view_open(FIRST, &view, &process) == CT_OK);
    fake_clock.ns += 5000000000;
    CHECK(ct_view_refresh(view, &process) == CT_OK);
    CHECK(process.heartbeat_age_ns >= 5000000000);
    call(counter);
    CHECK(ct_view_refresh(view, &process) == CT_OK);
    CHECK(process.heartbeat_age_ns < 1000000000);
    fake_clock.counter_jump = -1000000000000; /* the counter goes back: housekeeping must not stop for hours */
    fake_clock.ns += 5000000000;
    call(counter);
    call(counter);
    CHECK(ct_view_refresh(view, &process) == CT_OK);
    CHECK(process.heartbeat_age_ns < 1000000000);
}

#define SCENARIO(name)                                                                                                 \
    static void test_##name(void **unused) {                                                                           \
        (void)unused;                                                                                                  \
        assert_int_equal(run_in_child(check_##name), 0);                                                               \
    }

SCENARIO(first_call)
SCENARIO(a_bare_call_publishes_nothing)
SCENARIO(no_folder)
SCENARIO(no_room)
SCENARIO(no_permission)
SCENARIO(switched_off)
SCENARIO(second_core)
SCENARIO(left_by_exec)
SCENARIO(left_by_exec_and_kept)
SCENARIO(names_taken)
SCENARIO(growth)
SCENARIO(growth_fails)
SCENARIO(growth_of_a_deleted_file)
SCENARIO(deleted)
SCENARIO(deleted_and_no_room)
SCENARIO(deleted_with_several_writers)
SCENARIO(deleted_with_a_silent_writer)
SCENARIO(exit)
SCENARIO(kept)
SCENARIO(heartbeat)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_call),
        cmocka_unit_test(test_a_bare_call_publishes_nothing),
        cmocka_unit_test(test_no_folder),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_no_permission),
        cmocka_unit_test(test_switched_off),
        cmocka_unit_test(test_second_core),
        cmocka_unit_test(test_left_by_exec),
        cmocka_unit_test(test_left_by_exec_and_kept),
        cmocka_unit_test(test_names_taken),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_growth_fails),
        cmocka_unit_test(test_growth_of_a_deleted_file),
        cmocka_unit_test(test_deleted),
        cmocka_unit_test(test_deleted_and_no_room),
        cmocka_unit_test(test_deleted_with_several_writers),
        cmocka_unit_test(test_deleted_with_a_silent_writer),
        cmocka_unit_test(test_exit),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_heartbeat),
    };
    unsetenv("CODETIMER_KEEP");
    unsetenv("CODETIMER_PUBLISH");
    unsetenv("CODETIMER_MEASURE");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
