/* SPDX-License-Identifier: MIT
 *
 * segment.h: floor 2, the layout in which counters lie in memory, and the memory itself.
 *
 * One region of address space is reserved once; it is filled from the front and never moves, so a writer may keep pointers
 * into it for ever. What lies in it refers to itself by offsets from the region's start, never by pointers, so that
 * another process can read a copy at any address. Freed pieces go to lists of their class and are used again; nothing is
 * handed back. Everything is fixed-width, naturally aligned, and written as relaxed atomics: on every supported system a
 * plain store.
 *
 *   header | pieces in the order of their making: chunks of 64 records, slots, histograms, texts
 *
 * All functions here except the slot operations need the registry's lock (registry.h).
 */
#ifndef CT_SEGMENT_H
#define CT_SEGMENT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "histogram.h"

typedef _Atomic uint64_t ct__word;

enum { CT__RECORDS_PER_CHUNK = 64, CT__CHUNKS_MAX = 1024, CT__RECORDS_MAX = CT__RECORDS_PER_CHUNK * CT__CHUNKS_MAX };

typedef struct ct__header {
    _Atomic uint32_t chunks[CT__CHUNKS_MAX]; /* offset of each chunk; 0: not there yet */
    _Atomic uint32_t records;                /* records ever used; published after they are filled */
    uint32_t spare[15];
} ct__header;

/* A definition, as a reader sees it. The state word is generation * 2 + enabled; generations only grow, also when the
 * record is used again for another counter. */
typedef struct ct__record {
    ct__word state;
    _Atomic uint32_t listed; /* 0: removed, or free */
    _Atomic uint32_t first_slot;
    _Atomic uint32_t key, key_length, category_length; /* "category/member" */
    _Atomic uint32_t help, help_length;
    uint32_t spare[7];
} ct__record;

/* One per writer and counter. Only its writer writes it, inside the sequence lock: odd while it does. */
typedef struct ct__slot {
    _Atomic uint32_t sequence;
    _Atomic uint32_t next; /* slot of the same counter, by another writer */
    ct__word generation;   /* the values belong to this one */
    ct__word calls, total_ns, active_ns, errors, cancelled, min_ns, max_ns, entered, finished, anomalies;
    _Atomic uint32_t histogram; /* 0: no call yet */
    _Atomic uint32_t owner;     /* number of the writer; 0: it is gone */
    uint64_t spare[3];
} ct__slot;

typedef struct ct__histogram {
    ct__word buckets[CT__BUCKETS];
    uint64_t spare[6];
} ct__histogram;

_Static_assert(sizeof(ct__record) == 64, "a record is one cache line");
_Static_assert(sizeof(ct__slot) == 128, "a slot is two cache lines");
_Static_assert(sizeof(ct__histogram) % 64 == 0, "histograms keep what follows aligned");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "64-bit words must be lock-free to be shared between processes");

/* Pieces of these sizes only, so that freed ones fit again. Texts are rounded up to a power of two. */
enum { CT__PIECE_CHUNK, CT__PIECE_SLOT, CT__PIECE_HISTOGRAM, CT__PIECE_TEXT };

/* The header, or NULL when even the first page cannot be had. */
ct__header *ct__segment_header(void);

/* Offset of a zeroed piece ("size" counts for texts), 0 when there is no room. */
uint32_t ct__segment_take(int piece, size_t size);
void ct__segment_give(int piece, size_t size, uint32_t offset);

void *ct__segment_at(uint32_t offset);
uint32_t ct__segment_offset(const void *piece);

/* Bytes in use, for tests of leaks. */
size_t ct__segment_used(void);

static inline uint64_t ct__get(const ct__word *word) {
    return atomic_load_explicit((ct__word *)(uintptr_t)word, memory_order_relaxed);
}
static inline void ct__set(ct__word *word, uint64_t value) { atomic_store_explicit(word, value, memory_order_relaxed); }

/* A plain add: there is one writer. */
static inline void ct__add(ct__word *word, uint64_t value) { ct__set(word, ct__get(word) + value); }

/* Opens the record; what it returns closes it. */
static inline uint32_t ct__slot_begin(ct__slot *slot) {
    uint32_t sequence = atomic_load_explicit(&slot->sequence, memory_order_relaxed);
    atomic_store_explicit(&slot->sequence, sequence + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    return sequence + 2;
}
static inline void ct__slot_end(ct__slot *slot, uint32_t sequence) {
    atomic_store_explicit(&slot->sequence, sequence, memory_order_release);
}

#endif
