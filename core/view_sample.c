/* SPDX-License-Identifier: MIT
 *
 * view_sample.c: reading the values of a counter of another process.
 *
 * A record is read inside its writer's sequence. When its writer is in the way for too long, the last good values are
 * given and said to be such; where there are none yet, reading is more patient. When its process or its thread is gone,
 * or it stands still in the middle of an update, the record is taken as it is, and said to be unclean. Buckets need no
 * sequence: they only grow. All slots must be of one generation, else everything is read again. Lists are bounded, and
 * every offset is checked (view.h).
 */
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "codetimer.h"
#include "sample.h"
#include "view.h"

/* RESTS of 0.1 ms has each view, for counters that it has not read yet. */
enum { SLOTS_MOST = 4096, TRIES = 1000, GENERATIONS = 16, RESTS = 100 };

enum { CONSISTENT, UNCLEAN, BUSY, LOST };

static uint32_t read_sequence(const ct_view *view, size_t offset, memory_order order) {
    _Atomic uint32_t room;
    const _Atomic uint32_t *sequence = ct__view_at(view, offset + offsetof(ct__slot, sequence), sizeof room, &room);
    if (sequence == NULL) return 1;
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)sequence, order);
}

/* The slot is "room" where the file is read by copies; else it goes on changing. A sample has so many tries for all its
 * slots, but each slot has one. */
static int read_slot(const ct_view *view, size_t offset, int *tries, ct__slot *room, const ct__slot **slot,
                     ct__values *values) {
    for (int more = 1; more; more = (*tries)-- > 0) {
        uint32_t before = read_sequence(view, offset, memory_order_acquire);
        *slot = ct__view_at(view, offset, sizeof **slot, room);
        if (*slot == NULL) return LOST;
        ct__values_copy(*slot, values);
        atomic_thread_fence(memory_order_acquire);
        uint32_t after = read_sequence(view, offset, memory_order_relaxed);
        if (before == after && before % 2 == 0) return CONSISTENT;
        int gone = !view->alive || ct__get32(&(*slot)->owner) == 0;
        if (gone && before == after) return UNCLEAN;
    }
    return BUSY;
}

static int add_buckets(const ct_view *view, ct_sample *sample, uint32_t offset, int first) {
    ct__histogram room;
    if (offset < sizeof(ct__header) || offset % 8 != 0) return 0;
    const ct__histogram *histogram = ct__view_at(view, offset, sizeof room, &room);
    if (histogram == NULL) return 0;
    ct__buckets_add(sample, histogram, first);
    return 1;
}

/* Sums the slots of the current generation. Returns 0 if the values of one of them could not be had. */
static int sum_slots(const ct_view *view, uint32_t offset, int buckets, ct_sample *sample) {
    int whole = 1, first = 1, tries = TRIES;
    uint32_t passed = 0; /* every now and then, one to recognise: a list that comes to it again has no end */
    for (int i = 0; i < SLOTS_MOST && offset >= sizeof(ct__header) && offset % 8 == 0 && offset != passed; i++) {
        if ((i & (i + 1)) == 0) passed = offset;
        ct__slot room;
        const ct__slot *slot;
        ct__values values;
        int read = read_slot(view, offset, &tries, &room, &slot, &values);
        if (read == LOST) break;
        if (values.generation == sample->generation) {
            if (read == UNCLEAN) sample->unclean = 1;
            if (read == BUSY) whole = 0;
            ct__values_add(sample, &values);
            if (buckets && add_buckets(view, sample, ct__get32(&slot->histogram), first)) first = 0;
        }
        offset = ct__get32(&slot->next);
    }
    if (offset != 0) sample->unclean = 1; /* the list leads nowhere, or has no end */
    if (buckets && first) memset(sample->buckets, 0, sizeof sample->buckets);
    if (sample->calls == 0) sample->min_ns = 0;
    return whole;
}

/* ---- the last good values ---- */

static ct__known *known_at(ct_view *view, uint32_t index) {
    if (index >= view->known_room) {
        size_t room = view->records + 64u;
        ct__known *more = realloc(view->known, room * sizeof *more);
        if (more == NULL) return NULL;
        memset(more + view->known_room, 0, (room - view->known_room) * sizeof *more);
        view->known = more;
        view->known_room = room;
    }
    return &view->known[index];
}

static void remember(ct_view *view, uint32_t index, const ct_sample *sample) {
    ct__known *known = known_at(view, index);
    if (known == NULL) return;
    known->good = 1;
    memcpy(known->values, sample, sizeof known->values);
}

/* Puts the last good values of this generation into the sample; the buckets stay as they were just read. Returns 0 if
 * there are none. */
static int recall(ct_view *view, uint32_t index, ct_sample *sample) {
    ct_sample good;
    const ct__known *known = known_at(view, index);
    if (known == NULL || !known->good) return 0;
    memcpy(&good, known->values, sizeof known->values);
    if (good.generation != sample->generation) return 0;
    good.time_ns = sample->time_ns;
    good.listed = sample->listed;
    good.enabled = sample->enabled;
    memcpy(sample, &good, offsetof(ct_sample, buckets));
    return 1;
}

/* CT_OK, CT_EXISTS (a writer was in the way of this reading), CT_ENOENT. */
static int read_sample(const ct_view *view, uint32_t index, int buckets, ct_sample *sample) {
    int whole = 0;
    for (int i = 0; i < GENERATIONS; i++) {
        ct__record room;
        const ct__record *record = ct__view_record(view, index, &room);
        if (record == NULL) return CT_ENOENT;
        uint64_t state = atomic_load_explicit((ct__word *)(uintptr_t)&record->state, memory_order_acquire);
        ct__sample_start(sample, state, ct__get32(&record->listed) != 0, ct_now_ns());
        whole = sum_slots(view, ct__get32(&record->first_slot), buckets, sample);
        atomic_thread_fence(memory_order_acquire);
        record = ct__view_record(view, index, &room);
        if (record == NULL) return CT_ENOENT;
        if (ct__get(&record->state) >> 1 == sample->generation) break;
        whole = 0;
    }
    return whole ? CT_OK : CT_EXISTS;
}

int ct_view_sample(ct_view *view, uint32_t index, int buckets, ct_sample *sample) {
    int status = read_sample(view, index, buckets, sample);
    while (status == CT_EXISTS && !recall(view, index, sample)) {
        if (view->rests++ >= RESTS) { /* as it is: better than none, and it says so */
            sample->unclean = 1;
            return CT_OK;
        }
        ct__os_rest();
        status = read_sample(view, index, buckets, sample);
    }
    if (status == CT_OK) remember(view, index, sample);
    return status;
}
