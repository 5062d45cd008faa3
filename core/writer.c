/* SPDX-License-Identifier: MIT
 *
 * writer.c: who writes, and where.
 *
 * A writer is what the host serialises: an interpreter under a global lock, a lua_State, a thread. Each has a slot of
 * its own per counter. A writer that goes away leaves its slots, with their values, to the next one that needs a slot
 * of that counter; what it may have left half-written is closed first.
 */
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "config.h"
#include "publish.h"
#include "registry.h"

static uint32_t writers;     /* numbers given out */
static uint32_t active;      /* have written in this process, and are not closed */
static uint32_t process = 1; /* counted up by forks */

/* ---- slots ---- */

/* The writer's own slot of the record, else one that a gone writer left, else NULL. */
static ct__slot *find_slot(ct__record *record, uint32_t number) {
    ct__slot *left = NULL;
    uint32_t offset = atomic_load_explicit(&record->first_slot, memory_order_relaxed);
    while (offset != 0) {
        ct__slot *slot = ct__segment_at(offset);
        uint32_t owner = atomic_load_explicit(&slot->owner, memory_order_acquire);
        if (owner == number) return slot;
        if (owner == 0) left = slot;
        offset = atomic_load_explicit(&slot->next, memory_order_relaxed);
    }
    return left;
}

static ct__slot *make_slot(ct__record *record) {
    uint32_t offset = ct__segment_take(CT__PIECE_SLOT, 0);
    uint32_t histogram = ct__segment_take(CT__PIECE_HISTOGRAM, 0);
    if (offset == 0 || histogram == 0) {
        ct__segment_give(CT__PIECE_SLOT, 0, offset);
        ct__segment_give(CT__PIECE_HISTOGRAM, 0, histogram);
        return NULL;
    }
    ct__slot *slot = ct__segment_at(offset);
    atomic_store_explicit(&slot->histogram, histogram, memory_order_relaxed);
    atomic_store_explicit(&slot->next, atomic_load_explicit(&record->first_slot, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(&record->first_slot, offset, memory_order_release);
    return slot;
}

static ct__slot *own_slot(ct__record *record, uint32_t number) {
    ct__slot *slot = find_slot(record, number);
    if (slot == NULL) slot = make_slot(record);
    if (slot == NULL) return NULL;
    uint32_t sequence = atomic_load_explicit(&slot->sequence, memory_order_relaxed);
    if (sequence % 2 == 1) atomic_store_explicit(&slot->sequence, sequence + 1, memory_order_release);
    atomic_store_explicit(&slot->owner, number, memory_order_relaxed);
    return slot;
}

static void start_generation(ct__slot *slot, ct__histogram *histogram, uint64_t generation) {
    ct__word *const values[] = {&slot->calls,    &slot->total_ns,  &slot->active_ns, &slot->active_unknown,
                                &slot->errors,   &slot->cancelled, &slot->max_ns,    &slot->entered,
                                &slot->finished, &slot->anomalies};
    uint32_t sequence = ct__slot_begin(slot);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) ct__set(values[i], 0);
    ct__set(&slot->min_ns, UINT64_MAX);
    for (size_t i = 0; i < CT__BUCKETS; i++) ct__set(&histogram->buckets[i], 0);
    ct__set(&slot->generation, generation);
    ct__slot_end(slot, sequence);
}

/* Without memory the values go to the writer's sink: the measured program goes on, unmeasured. */
static void attach(ct_counter *counter, uint64_t generation) {
    ct__slot *slot = own_slot(counter->definition->record, counter->writer->number);
    counter->slot = slot != NULL ? slot : &counter->writer->sink;
    counter->histogram = &counter->writer->sink_histogram;
    if (slot == NULL) return;
    counter->histogram = ct__segment_at(atomic_load_explicit(&slot->histogram, memory_order_relaxed));
    if (ct__get(&slot->generation) != generation) start_generation(slot, counter->histogram, generation);
}

static void become_active(ct_writer *writer) {
    if (writer->process == process) return;
    writer->process = process;
    active++;
}

uint64_t ct__counter_resolve(ct_counter *counter) {
    ct__os_lock();
    ct__selection_follow();
    uint64_t state = atomic_load_explicit(counter->state, memory_order_acquire);
    if (ct__enabled(state)) {
        ct__publish_first();
        become_active(counter->writer);
        attach(counter, ct__generation(state));
    }
    counter->seen = state;
    ct__os_unlock();
    return state;
}

uint32_t ct__writers_active(void) { return active; }

void ct__writers_begin_anew(void) {
    process++;
    active = 0;
}

/* ---- writers ---- */

int ct_writer_open(const char *script, ct_writer **writer) {
    if (writer == NULL || (script != NULL && (!ct__is_name(script) || strchr(script, '/') != NULL))) return CT_EINVAL;
    ct_writer *made = calloc(1, sizeof *made);
    if (script == NULL) script = "main";
    char *copy = malloc(strlen(script) + 1);
    if (made == NULL || copy == NULL) {
        free(made);
        free(copy);
        return CT_ENOMEM;
    }
    ct__config_begin(); /* before the first counter asks */
    ct__clock_source(); /* chosen here, so that no measured call has to ask */
    made->script = memcpy(copy, script, strlen(script) + 1);
    ct__os_lock();
    made->number = ++writers;
    ct__os_unlock();
    *writer = made;
    return CT_OK;
}

static void disown(ct__record *record, uint32_t number) {
    uint32_t offset = atomic_load_explicit(&record->first_slot, memory_order_relaxed);
    while (offset != 0) {
        ct__slot *slot = ct__segment_at(offset);
        uint32_t owner = atomic_load_explicit(&slot->owner, memory_order_relaxed);
        if (owner == number) atomic_store_explicit(&slot->owner, 0, memory_order_release);
        offset = atomic_load_explicit(&slot->next, memory_order_relaxed);
    }
}

static void end_writer(ct_writer *writer) {
    uint32_t end = ct__segment_header() != NULL ? ct__records_end() : 0;
    if (writer->process == process) active--;
    for (uint32_t i = 0; i < end; i++) disown(ct__record_at(i), writer->number);
    free(writer->script);
    free(writer);
}

void ct__writer_release(ct_writer *writer) {
    if (--writer->handles == 0 && writer->closed) end_writer(writer);
}

void ct_writer_close(ct_writer *writer) {
    if (writer == NULL) return;
    ct__os_lock();
    writer->closed = 1;
    if (writer->handles == 0) end_writer(writer);
    ct__os_unlock();
}
