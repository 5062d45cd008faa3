/* SPDX-License-Identifier: MIT
 *
 * Guards readers of a segment: nothing in it is trusted (any length, any header field, any word of it may be wild, and
 * every refusal says why); the values of a record belong together though it changes while it is read; a writer that is
 * in the way gives the last good values, one that is gone an unclean sample; a reset or a recycled record in the middle
 * is noticed. Fails if an offset is followed unchecked, or a sequence is ignored.
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

static const uint64_t seed = 20240611;
static uint64_t drawn = 20240611;

static uint64_t draw(void) {
    drawn ^= drawn << 13;
    drawn ^= drawn >> 7;
    drawn ^= drawn << 17;
    return drawn;
}

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

/* Everything that a reader does. */
static void read_all(ct_view *view) {
    static char text[70000];
    ct_view_counter one;
    ct_sample sample;
    ct_process process;
    size_t length;
    for (uint32_t i = 0; i < ct_view_end(view) && i < 200; i++) {
        if (ct_view_counter_at(view, i, &one) == CT_OK) CHECK(memchr(one.key, '/', one.key_length) != NULL);
        if (ct_view_sample(view, i, 1, &sample) == CT_OK) CHECK(sample.calls != 0 || sample.min_ns == 0);
    }
    ct_view_members(view, text, sizeof text, &length);
    ct_view_acknowledged(view);
    ct_view_refresh(view, &process);
}

static int try_to_read(const char *path, ct_process *process) {
    ct_view *view;
    int status = ct_view_open(path, &view, process);
    CHECK(status == CT_OK || (process->state == CT_SEGMENT_UNUSABLE && process->reason[0] != '\0'));
    if (status != CT_OK) return status;
    read_all(view);
    ct_view_close(view);
    return CT_OK;
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

/* ---- other versions ---- */

static void expect_refusal(const char *reason) {
    ct_process process;
    ct_view *view;
    CHECK(ct_view_open(FIRST, &view, &process) == CT_EINVAL);
    CHECK(process.state == CT_SEGMENT_UNUSABLE && strstr(process.reason, reason) != NULL);
}

static void check_versions(void) {
    size_t size;
    publish();
    ct__header *header = (ct__header *)(void *)fake_shm_bytes(FIRST, &size);
    ct_process process;
    header->minor = 9;
    header->header_size += 64;
    CHECK(try_to_read(FIRST, &process) == CT_OK);
    header->major = 2;
    expect_refusal("version 2.9");
    header->major = CT__LAYOUT_MAJOR;
    header->endian = 0x04030201;
    expect_refusal("byte order");
    header->endian = CT__ENDIAN;
    header->magic++;
    expect_refusal("not a segment");
    header->magic--;
    header->slot_size = 64;
    expect_refusal("damaged");
}

/* ---- damage ---- */

static void check_every_length(void) {
    size_t size;
    ct_process process;
    publish();
    unsigned char *bytes = fake_shm_bytes(FIRST, &size), *copy = malloc(size);
    memcpy(copy, bytes, size);
    fake_shm.dead = 1;
    for (size_t length = 0; length < size; length += length < 6000 ? 48 : 3989) {
        fake_shm.by_copies = (int)(length / 48 % 2);
        fake_shm_put("/fake/short", copy, length);
        int status = try_to_read("/fake/short", &process);
        CHECK((status == CT_OK) == (length >= sizeof(ct__header)));
        if (status == CT_OK) CHECK(strstr(process.reason, "shorter") != NULL);
    }
    free(copy);
}

static uint64_t wild(int kind, uint64_t was) {
    switch (kind) {
    case 0:
        return 0;
    case 1:
        return 1;
    case 2:
        return UINT64_MAX;
    case 3:
        return draw();
    case 4:
        return was ^ (uint64_t)1 << draw() % 64;
    default:
        return (was & UINT64_C(0xffffffff00000000)) | (draw() & 0xffff8);
    }
}

/* Every word of a part, one at a time. */
static void make_wild(unsigned char *bytes, size_t from, size_t size) {
    ct_process process;
    for (size_t at = from; at < from + size; at += 8) {
        for (int kind = 0; kind < 6; kind++) {
            uint64_t was, word;
            memcpy(&was, bytes + at, 8);
            word = wild(kind, was);
            memcpy(bytes + at, &word, 8);
            fake_shm.by_copies = kind == 5;
            try_to_read("/fake/wild", &process);
            memcpy(bytes + at, &was, 8);
        }
    }
}

static void check_every_word_wild(void) {
    size_t size;
    publish();
    const unsigned char *whole = fake_shm_bytes(FIRST, &size);
    const ct__header *header = ct__segment_header();
    fake_shm_put("/fake/wild", whole, size);
    unsigned char *bytes = fake_shm_bytes("/fake/wild", &size);
    make_wild(bytes, 0, offsetof(ct__header, program));
    make_wild(bytes, offsetof(ct__header, heartbeat_ns), 32);
    make_wild(bytes, offsetof(ct__header, members_at), 32);
    make_wild(bytes, offsetof(ct__header, chunks) + sizeof header->chunks - 8, 72);
    make_wild(bytes, ct__segment_offset(counter->definition->record), 2 * sizeof(ct__record));
    make_wild(bytes, atomic_load(&header->members_at), 32);
    make_wild(bytes, ct__segment_offset(counter->slot), sizeof(ct__slot));
    make_wild(bytes, ct__segment_offset(counter->histogram), 64);
}

static void check_random_damage(void) {
    size_t size;
    ct_process process;
    publish();
    const unsigned char *whole = fake_shm_bytes(FIRST, &size);
    fake_shm_put("/fake/wild", whole, size);
    unsigned char *bytes = fake_shm_bytes("/fake/wild", &size);
    for (int round = 0; round < 300; round++) {
        memcpy(bytes, whole, size);
        for (int i = 0; i < 40; i++) {
            uint64_t word = wild((int)(draw() % 6), draw());
            size_t at = (draw() % 4 == 0 ? draw() % sizeof(ct__header) : draw() % (size - 8)) / 8 * 8;
            if (at >= 24) memcpy(bytes + at, &word, 8);
        }
        try_to_read("/fake/wild", &process);
    }
}

static void check_endless_list(void) {
    ct_sample sample;
    publish();
    ct_view *view = open_view();
    atomic_store(&counter->slot->next, ct__segment_offset(counter->slot));
    CHECK(ct_view_sample(view, 0, 1, &sample) == CT_OK && sample.unclean);
    atomic_store(&counter->slot->next, 0xfffffff8u);
    CHECK(ct_view_sample(view, 0, 1, &sample) == CT_OK && sample.unclean && sample.calls == 3);
    ct_view_close(view);
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
    CHECK(ct_view_sample(fresh, 0, 1, &sample) == CT_EXISTS);
    CHECK(sample.calls == 0 && sample.min_ns == 0 && sample.total_ns == 0); /* none were ever good */
    fake_shm.before_copy = NULL;
    CHECK(ct_counter_reset(counter) == CT_OK);
    ct_counter_record(counter, 7, CT_RETURNED);
    fake_shm.before_copy = call_between;
    CHECK(ct_view_sample(view, 0, 1, &sample) == CT_EXISTS);
    CHECK(sample.calls == 0 && sample.generation == counter->seen >> 1); /* those of another generation are not good */
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
    CHECK(ct_view_sample(view, 0, 1, &sample) == CT_EXISTS);
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
SCENARIO(names)
SCENARIO(file_gone)
SCENARIO(listing)
SCENARIO(wrong_arguments)
SCENARIO(versions)
SCENARIO(every_length)
SCENARIO(every_word_wild)
SCENARIO(random_damage)
SCENARIO(endless_list)
SCENARIO(changed_while_read)
SCENARIO(always_in_the_way)
SCENARIO(half_written)
SCENARIO(reset_while_read)
SCENARIO(recycled_while_read)

int main(void) {
    printf("seed %llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_values_by_copies),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_file_gone),
        cmocka_unit_test(test_listing),
        cmocka_unit_test(test_wrong_arguments),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_every_length),
        cmocka_unit_test(test_every_word_wild),
        cmocka_unit_test(test_random_damage),
        cmocka_unit_test(test_endless_list),
        cmocka_unit_test(test_changed_while_read),
        cmocka_unit_test(test_always_in_the_way),
        cmocka_unit_test(test_half_written),
        cmocka_unit_test(test_reset_while_read),
        cmocka_unit_test(test_recycled_while_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
