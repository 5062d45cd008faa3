/* SPDX-License-Identifier: MIT
 *
 * Guards a forked child, over scripted shared memory: it starts from zero under new generations in a file of its own,
 * takes nothing from its parent's, which goes on changing, keeps the members list, lets memory stay flat over many
 * forks, and goes on unmeasured where there is no memory. Fails if the child reads or writes the parent's region.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_clock.h"
#include "fake_memory.h"
#include "fake_shm.h"
#include "live.h"
#include "registry.h"
#include "segment.h"

#define FIRST "/fake/77-1234-0"

static void check_fork(void) {
    size_t size;
    ct_token across;
    ct_sample sample;
    ct_counter *counter = live_counter("shop.handle"), *removed = live_counter("gone"), *quiet = live_counter("quiet");
    for (int i = 0; i < 5; i++) live_call(counter);
    live_call(removed);
    CHECK(ct_counter_remove(removed) == CT_OK);
    CHECK(ct_members_set("shop.*; gone", 12) == CT_OK);
    ct_enter(counter, &across);
    uint64_t generation = counter->seen >> 1;
    unsigned char *parent = fake_shm_bytes(FIRST, &size), *copy = malloc(size);
    fake_shm_fork();
    memset(parent, 0xff, size); /* whatever the parent does now is nothing to the child */
    memcpy(copy, parent, size);
    ct_leave(counter, &across, CT_RETURNED);
    ct_counter_sample(counter, &sample);
    CHECK(sample.calls == 0 && sample.generation > generation && sample.listed && sample.enabled);
    CHECK(fake_shm_count() == 1);
    live_call(counter);
    live_call(quiet);
    CHECK(strcmp(segment_now().path, "/fake/78-1234-0") == 0 && fake_shm_count() == 2);
    CHECK(live_calls("/fake/78-1234-0", "shop/shop.handle") == 1 && live_calls("/fake/78-1234-0", "script/quiet") == 0);
    CHECK(live_calls("/fake/78-1234-0", "script/gone") == -1);
    CHECK(live_counter("gone") != NULL);
    live_call(removed);
    CHECK(live_calls("/fake/78-1234-0", "script/gone") == 1);
    fake_shm_exit();
    CHECK(fake_shm_count() == 1 && fake_shm_bytes(FIRST, &size) != NULL && memcmp(parent, copy, size) == 0);
}

static void check_fork_keeps_the_list(void) {
    char text[32];
    size_t length;
    ct_counter *counter = live_counter("a");
    CHECK(ct_members_set("b", 1) == CT_OK);
    fake_shm_fork();
    CHECK(ct_members_get(text, sizeof text, &length) == CT_OK && strcmp(text, "b") == 0);
    live_call(counter);
    live_call(live_counter("b"));
    CHECK(calls_of(counter) == 0 && calls_of(live_counter("b")) == 1);
    fake_shm_fork();
    live_call(live_counter("b"));
    CHECK(calls_of(counter) == 0 && calls_of(live_counter("b")) == 1);
}

/* Children of children: memory stays flat though the chunks of records stay where they are. */
static void check_fork_chain(void) {
    enum { COUNTERS = 300 };
    ct_counter *counters[COUNTERS + 1];
    char name[64];
    size_t used = 0;
    for (int i = 0; i < COUNTERS; i++) {
        snprintf(name, sizeof name, "chain.member%d", i);
        counters[i] = live_counter(name);
        live_call(counters[i]);
    }
    for (int generation = 0; generation < 50; generation++) {
        fake_shm_fork();
        for (int i = 0; i < COUNTERS; i++) {
            CHECK(calls_of(counters[i]) == 0);
            for (int j = 0; j <= i % 3; j++) live_call(counters[i]);
        }
        for (int i = 0; i < COUNTERS; i++) CHECK(calls_of(counters[i]) == (uint64_t)(i % 3 + 1));
        snprintf(name, sizeof name, "new.chunk%d", generation);
        for (int i = 0; i < 2; i++) live_call(live_counter(name)); /* 50 more: also a new chunk among the old ones */
        CHECK(live_calls(segment_now().path, "chain/chain.member299") == 3);
        if (generation == 9) used = ct__segment_used();
    }
    CHECK(ct__segment_used() < used + 50 * 4096);
    snprintf(name, sizeof name, "new/%s", "new.chunk49");
    CHECK(live_calls(segment_now().path, name) == 2);
}

static void check_fork_without_memory(void) {
    ct_writer *writer;
    ct_counter *counter = live_counter("m"), *other;
    CHECK(ct_writer_open("script", &writer) == CT_OK);
    live_call(counter);
    fake_shm.clear_fails = 1;
    fake_shm_fork();
    live_call(counter);
    ct_counter_record(counter, 5, CT_RETURNED);
    CHECK(calls_of(counter) == 0 && ct_counter_reset(counter) == CT_ENOENT && ct_counter_remove(counter) == CT_ENOENT);
    CHECK(ct_counter_open(writer, NULL, "m", NULL, &other) == CT_ENOMEM);
    CHECK(ct_counter_open(writer, NULL, "n", NULL, &other) == CT_ENOMEM);
    CHECK(ct_members_set("*", 1) == CT_ENOMEM);
    ct_poll();
    CHECK(!segment_now().published && strstr(segment_now().reason, "no memory") != NULL);
    fake_shm_fork();
    ct_counter_close(counter);
    ct_writer_close(writer);
    fake_shm_exit();
    CHECK(fake_memory.locks == 0 && fake_shm_count() == 1);
}

#define SCENARIO(name)                                                                                                 \
    static void test_##name(void **unused) {                                                                           \
        (void)unused;                                                                                                  \
        assert_int_equal(run_in_child(check_##name), 0);                                                               \
    }

SCENARIO(fork)
SCENARIO(fork_keeps_the_list)
SCENARIO(fork_chain)
SCENARIO(fork_without_memory)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_fork_keeps_the_list),
        cmocka_unit_test(test_fork_chain),
        cmocka_unit_test(test_fork_without_memory),
    };
    unsetenv("CODETIMER_MEASURE");
    unsetenv("CODETIMER_PUBLISH");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
