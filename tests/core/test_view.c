/* SPDX-License-Identifier: MIT
 *
 * Guards readers of a segment: the values of a record belong together though it changes while it is read; a writer that
 * is in the way gives the last good values, one that is gone an unclean sample; a reset or a recycled record in the
 * middle is noticed. Fails if a sequence or a generation is not looked at.
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
#include "segment.h"

#define FIRST "/fake/77-1234-0"

static ct_writer *writer;
static ct_counter *counter, *others[70];

static ct_counter *open_counter(ct_writer *of, const char *member) {
    ct_counter *opened;
    CHECK(ct_counter_open(of, NULL, member, "a sentence", &opened) >= 0);
    return opened;
}

/* A published segment: shop.handle with three calls of 7 ns, by two writers, and 70 others. */
static void publish(void) {
    ct_writer *other;
    char name[32];
    CHECK(ct_writer_open("script", &writer) == CT_OK && ct_writer_open("script", &other) == CT_OK);
    counter = open_counter(writer, "shop.handle");
    ct_counter *second = open_counter(other, "shop.handle");
    ct_counter_record(counter, 7, CT_RETURNED);
    ct_counter_record(counter, 7, CT_FAILED);
    ct_counter_record(second, 7, CT_CANCELLED);
    for (int i = 0; i < 70; i++) {
        snprintf(name, sizeof name, "other%d", i);
        others[i] = open_counter(writer, name);
        ct_counter_record(others[i], 5, CT_RETURNED);
    }
}

static ct_view *open_view(void) {
    ct_view *view;
    CHECK(ct_view_open(FIRST, &view, NULL) == CT_OK);
    return view;
}

/* ---- values ---- */

static void check_values(void) {
    ct_sample sample;
    ct_view_counter one;
    publish();
    ct_view *view = open_view();
    CHECK(ct_view_end(view) == 71);
    CHECK(ct_view_counter_at(view, 0, &one) == CT_OK && one.listed && one.enabled && one.category_length == 4);
    CHECK(one.key_length == 16 && memcmp(one.key, "shop/shop.handle", 16) == 0);
    CHECK(one.help_length == 10 && memcmp(one.help, "a sentence", 10) == 0);
    CHECK(ct_view_sample(view, 0, 1, &sample) == CT_OK);
    CHECK(sample.calls == 3 && sample.total_ns == 21 && sample.errors == 1 && sample.cancelled == 1);
    CHECK(sample.min_ns == 7 && sample.max_ns == 7 && sample.in_flight == 0 && !sample.unclean);
    CHECK(sample.buckets[ct__histogram_index(7)] == 3 && sample.buckets[ct__histogram_index(5)] == 0);
    CHECK(ct_view_counter_at(view, 71, &one) == CT_ENOENT && ct_view_sample(view, 71, 0, &sample) == CT_ENOENT);
    open_counter(writer, "new");
    CHECK(ct_view_end(view) == 71 && ct_view_refresh(view, NULL) == CT_OK && ct_view_end(view) == 72);
    CHECK(ct_view_sample(view, 71, 1, &sample) == CT_OK && sample.calls == 0 && sample.min_ns == 0);
    for (size_t i = 0; i < CT_BUCKETS; i++) CHECK(sample.buckets[i] == 0);
    ct_view_close(view);
}

static void check_values_by_copies(void) {
    fake_shm.by_copies = 1;
    check_values();
}

/* One key in two segments of a process. */
static void check_sums(void) {
    ct_sample sum, more, none = {.generation = 1, .min_ns = 99};
    publish();
    ct_view *view = open_view();
    CHECK(ct_view_sample(view, 0, 1, &sum) == CT_OK && ct_view_sample(view, 1, 1, &more) == CT_OK);
    uint64_t generation = sum.generation;
    ct_sample_add(&sum, &more);
    CHECK(sum.calls == 4 && sum.total_ns == 26 && sum.errors == 1 && sum.min_ns == 5 && sum.max_ns == 7);
    CHECK(sum.buckets[ct__histogram_index(5)] == 1 && sum.generation == generation + more.generation && sum.enabled);
    ct_sample_add(&sum, &none);
    CHECK(sum.calls == 4 && sum.min_ns == 5);
    ct_sample_add(&none, &more);
    CHECK(none.calls == 1 && none.min_ns == 5 && none.max_ns == 5);
    ct_view_close(view);
}

static void check_names(void) {
    ct_view_counter one;
    static char huge[65536];
    publish();
    memset(huge, 'x', 65535);
    open_counter(writer, "\x1b[31m\n\xff;*");
    open_counter(writer, huge);
    ct_view *view = open_view();
    CHECK(ct_view_counter_at(view, 71, &one) == CT_OK);
    CHECK(one.key_length == 16 && memcmp(one.key, "script/\x1b[31m\n\xff;*", 16) == 0);
    CHECK(ct_view_counter_at(view, 72, &one) == CT_OK && one.key_length == 65535 + 7);
    ct_view_close(view);
}

static void check_file_gone(void) {
    ct_process process;
    ct_sample sample;
    publish();
    ct_view *view = open_view();
    fake_shm_remove(FIRST);
    CHECK(ct_view_refresh(view, &process) == CT_ENOENT && process.reason[0] != '\0');
    CHECK(ct_view_sample(view, 0, 1, &sample) == CT_OK && sample.calls == 3);
    ct_view_close(view);
    CHECK(ct_view_open(FIRST, &view, &process) == CT_ENOENT && process.state == CT_SEGMENT_UNUSABLE);
}

static void check_listing(void) {
    ct_listing *listing;
    ct_process process;
    int live = 0, unusable = 0;
    publish();
    fake_shm_put("/fake/empty", "", 0);
    fake_shm_put("/fake/short", "CODETIMR", 8);
    CHECK(ct_listing_open(NULL, &listing) == CT_OK);
    while (ct_listing_next(listing, &process)) {
        live += process.state == CT_SEGMENT_LIVE && process.pid == 77;
        unusable += process.state == CT_SEGMENT_UNUSABLE && process.reason[0] != '\0';
    }
    CHECK(live == 1 && unusable == 2);
    ct_listing_close(listing);
    ct_listing_close(NULL);
    fake_shm.folder_status = CT_ENOENT;
    CHECK(ct_listing_open(NULL, &listing) == CT_OK && !ct_listing_next(listing, &process));
    ct_listing_close(listing);
    CHECK(ct_listing_open("/fake", &listing) == CT_ENOENT && ct_listing_open(NULL, NULL) == CT_EINVAL);
    fake_shm.directory_status = CT_EPERM;
    CHECK(ct_listing_open(NULL, &listing) == CT_EPERM);
    CHECK(ct_segment_reap(FIRST) == CT_EPERM && ct_segment_reap(NULL) == CT_EINVAL);
    fake_shm.dead = 1;
    CHECK(ct_segment_reap(FIRST) == CT_OK && ct_segment_reap(FIRST) == CT_ENOENT);
}

static void check_wrong_arguments(void) {
    ct_view *view;
    char path[400];
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = '\0';
    CHECK(ct_view_open(path, &view, NULL) == CT_EINVAL && ct_view_open(NULL, &view, NULL) == CT_EINVAL);
    CHECK(ct_view_open(FIRST, NULL, NULL) == CT_EINVAL);
    ct_view_close(NULL);
}

/* ---- in the middle of an update ---- */

static int interruptions;

/* A call by the writer while its record is being copied. */
static void call_between(size_t offset, size_t size) {
    (void)offset;
    if (size != sizeof(ct__slot) || interruptions == 0) return;
    interruptions--;
    ct_counter_record(counter, 7, CT_FAILED);
}

static void check_changed_while_read(void) {
    ct_sample sample;
    publish();
    fake_shm.by_copies = 1;
    fake_shm.before_copy = call_between;
    ct_view *view = open_view();
    for (int i = 0; i < 50; i++) {
        interruptions = i;
        CHECK(ct_view_sample(view, 0, 1, &sample) == CT_OK);
        CHECK(sample.total_ns == 7 * sample.calls && sample.calls == sample.errors + 2 && interruptions == 0);
        CHECK(sample.buckets[ct__histogram_index(7)] == sample.calls);
    }
    ct_view_close(view);
}

static void check_always_in_the_way(void) {
    ct_sample sample;
    publish();
    fake_shm.by_copies = 1;
    ct_view *view = open_view(), *fresh = open_view();
    CHECK(ct_view_sample(view, 0, 1, &sample) == CT_OK && sample.calls == 3);
    fake_shm.before_copy = call_between;
    interruptions = -1;
    uint64_t before = sample.time_ns;
    CHECK(ct_view_sample(view, 0, 1, &sample) == CT_EXISTS);
    CHECK(sample.calls == 3 && sample.total_ns == 21 && sample.min_ns == 7 && sample.time_ns > before &&
          sample.enabled);
    CHECK(sample.buckets[ct__histogram_index(7)] > 3); /* they only grow */
    CHECK(ct_view_sample(fresh, 0, 1, &sample) == CT_OK && sample.unclean); /* none were ever good: as it is, never 0 */
    CHECK(sample.calls > 3 && sample.total_ns >= 7 * (sample.calls - 1) && sample.total_ns <= 7 * (sample.calls + 1));
    fake_shm.before_copy = NULL;
    CHECK(ct_counter_reset(counter) == CT_OK);
    ct_counter_record(counter, 7, CT_RETURNED);
    fake_shm.before_copy = call_between;
    CHECK(ct_view_sample(view, 0, 1, &sample) == CT_OK && sample.unclean && sample.calls > 0);
    CHECK(sample.generation == counter->seen >> 1); /* those of another generation are not good */
    ct_view_close(view);
    ct_view_close(fresh);
}

static void check_half_written(void) {
    ct_sample sample;
    publish();
    ct_view *view = open_view();
    CHECK(ct_view_sample(view, 0, 1, &sample) == CT_OK);
    ct__slot_begin(counter->slot);
    ct__add(&counter->slot->calls, 1);
    CHECK(ct_view_sample(view, 0, 1, &sample) == CT_EXISTS && sample.calls == 3 && !sample.unclean);
    atomic_store(&counter->slot->owner, 0); /* its thread is gone */
    CHECK(ct_view_sample(view, 0, 1, &sample) == CT_OK && sample.calls == 4 && sample.unclean);
    atomic_store(&counter->slot->owner, 1);
    fake_shm.dead = 1;
    CHECK(ct_view_refresh(view, NULL) == CT_OK);
    CHECK(ct_view_sample(view, 0, 1, &sample) == CT_OK && sample.calls == 4 && sample.unclean);
    ct_view_close(view);
}

/* ---- another generation in the middle ---- */

static void reset_between(size_t offset, size_t size) {
    (void)offset;
    if (size != sizeof(ct__slot) || interruptions == 0) return;
    interruptions--;
    ct_counter_reset(counter);
    ct_counter_record(counter, 9, CT_RETURNED);
}

static void check_reset_while_read(void) {
    ct_sample sample;
    publish();
    fake_shm.by_copies = 1;
    fake_shm.before_copy = reset_between;
    ct_view *view = open_view();
    interruptions = 1;
    CHECK(ct_view_sample(view, 0, 1, &sample) == CT_OK && interruptions == 0);
    CHECK(sample.calls == 1 && sample.total_ns == 9 && sample.generation == counter->seen >> 1);
    CHECK(sample.buckets[ct__histogram_index(7)] == 0 && sample.buckets[ct__histogram_index(9)] == 1);
    interruptions = -1;
    CHECK(ct_view_sample(view, 0, 1, &sample) == CT_OK && sample.unclean);
    ct_view_close(view);
}

/* Its memory is given to another counter while the name is copied. */
static void recycle_between(size_t offset, size_t size) {
    (void)offset;
    if (size != strlen("script/other3") || interruptions == 0) return;
    interruptions--;
    ct_counter_remove(others[3]);
    ct_counter_close(others[3]);
    open_counter(writer, "fresh3");
}

static void check_recycled_while_read(void) {
    ct_view_counter one;
    publish();
    fake_shm.by_copies = 1;
    ct_view *view = open_view();
    fake_shm.before_copy = recycle_between;
    interruptions = 1;
    CHECK(ct_view_counter_at(view, 4, &one) == CT_OK && interruptions == 0);
    CHECK(one.key_length == strlen("script/fresh3") && memcmp(one.key, "script/fresh3", one.key_length) == 0);
    ct_view_close(view);
}

#define SCENARIO(name)                                                                                                 \
    static void test_##name(void **unused) {                                                                           \
        (void)unused;                                                                                                  \
        assert_int_equal(run_in_child(check_##name), 0);                                                               \
    }

SCENARIO(values)
SCENARIO(values_by_copies)
SCENARIO(sums)
SCENARIO(names)
SCENARIO(file_gone)
SCENARIO(listing)
SCENARIO(wrong_arguments)
SCENARIO(changed_while_read)
SCENARIO(always_in_the_way)
SCENARIO(half_written)
SCENARIO(reset_while_read)
SCENARIO(recycled_while_read)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_values_by_copies),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_file_gone),
        cmocka_unit_test(test_listing),
        cmocka_unit_test(test_wrong_arguments),
        cmocka_unit_test(test_changed_while_read),
        cmocka_unit_test(test_always_in_the_way),
        cmocka_unit_test(test_half_written),
        cmocka_unit_test(test_reset_while_read),
        cmocka_unit_test(test_recycled_while_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
