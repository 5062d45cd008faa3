/* SPDX-License-Identifier: MIT
 *
 * Guards readers against the file: nothing in it is trusted; any length, any header field, any word of it may be wild,
 * it may be of another version or byte order, its lists may have no end; every refusal says why. Fails if an offset is
 * followed unchecked.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "child.h"
#include "codetimer.h"
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
static ct_counter *counter;

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
        ct_counter_record(open_counter(writer, name), 5, CT_RETURNED);
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
    CHECK(ct_view_sample(view, 0, 1, &sample) == CT_OK && sample.unclean && sample.calls == 3);
    ct__slot_begin(counter->slot); /* and in the way of each other */
    CHECK(ct_view_sample(view, 0, 1, &sample) == CT_EXISTS && sample.calls == 3);
    atomic_fetch_add(&counter->slot->sequence, 1);
    atomic_store(&counter->slot->next, 0xfffffff8u);
    CHECK(ct_view_sample(view, 0, 1, &sample) == CT_OK && sample.unclean && sample.calls == 3);
    ct_view_close(view);
}

#define SCENARIO(name)                                                                                                 \
    static void test_##name(void **unused) {                                                                           \
        (void)unused;                                                                                                  \
        assert_int_equal(run_in_child(check_##name), 0);                                                               \
    }

SCENARIO(versions)
SCENARIO(every_length)
SCENARIO(every_word_wild)
SCENARIO(random_damage)
SCENARIO(endless_list)

int main(void) {
    printf("seed %llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),        cmocka_unit_test(test_every_length),
        cmocka_unit_test(test_every_word_wild), cmocka_unit_test(test_random_damage),
        cmocka_unit_test(test_endless_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
