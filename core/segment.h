/* SPDX-License-Identifier: MIT
 *
 * segment.h: floor 2, the layout in which counters lie in memory, and the memory itself.
 *
 * One region of address space is reserved once; it is filled from the front and never moves, so a writer may keep
 * pointers into it for ever. What lies in it refers to itself by offsets from the region's start, never by pointers, so
 * that another process can read a copy at any address. Freed pieces go to lists of their class and are used again;
 * nothing is handed back. Everything is fixed-width, naturally aligned, and written as relaxed atomics: on every
 * supported system a plain store.
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

enum { CT__LAYOUT_MAJOR = 1, CT__LAYOUT_MINOR = 1, CT__MEMBERS_MOST = 65536 };

/* "CODETIMR", and a number that shows the byte order. */
#define CT__MAGIC  0x524d495445444f43u
#define CT__ENDIAN 0x01020304u

/* The members list. The process and its controllers write it without waiting for each other (a controller may be
 * stopped at any moment), so each side has texts of its own: two, of which it fills the one that nobody reads and then
 * turns to it. Controllers exclude each other by a lock of the file. The side with the higher number is in force;
 * whoever writes takes a number above both. */
enum { CT__BY_PROCESS, CT__BY_CONTROLLER };

typedef struct ct__members_side {
    ct__word state;              /* (number * 2 + side) * 2 + which of the texts */
    _Atomic uint32_t lengths[2]; /* CT__NO_LIST: there is none */
    char texts[2][CT__MEMBERS_MOST];
} ct__members_side;

typedef struct ct__members_area {
    ct__word seen; /* number * 2 + side of the list that the process has read last */
    ct__members_side sides[2];
} ct__members_area;

#define CT__NO_LIST UINT32_MAX

/* Major versions are refused by readers of another; minor ones only append to the header and use spare fields. */
typedef struct ct__header {
    uint64_t magic;
    uint32_t endian;
    uint16_t major, minor;
    uint32_t header_size, record_size, slot_size, histogram_size;
    uint64_t pid, start_time, uid;
    char boot_id[40];
    char program[256], host[16], clock[24];
    ct__word heartbeat_ns; /* of the system's monotonic clock */
    ct__word size;         /* bytes of the file that are in use; what lies beyond is not published */
    ct__word listed, refused;
    char last_refused[256];
    _Atomic uint32_t members_at;             /* offset of the members area */
    _Atomic uint32_t records;                /* ever used; published after they are filled */
    _Atomic uint32_t chunks[CT__CHUNKS_MAX]; /* offset of each chunk; 0: not there yet */
    _Atomic uint32_t incomplete;             /* 1: the file could not grow, so later counters are missing in it */
    uint32_t spare[15];
} ct__header;

/* A definition, as a reader sees it. The texts change only while it is not listed. The state word is generation * 2 +
 * enabled; generations only grow, also when the record is used again for another counter. */
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
    ct__word active_unknown;    /* since layout 1.1 */
    uint64_t spare[2];
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
enum { CT__PIECE_CHUNK, CT__PIECE_SLOT, CT__PIECE_HISTOGRAM, CT__PIECE_MEMBERS, CT__PIECE_TEXT };

/* The header, or NULL when even the first page cannot be had: then nothing here may be written. */
ct__header *ct__segment_header(void);

/* Offset of a zeroed piece ("size" counts for texts), 0 when there is no room. */
uint32_t ct__segment_take(int piece, size_t size);
void ct__segment_give(int piece, size_t size, uint32_t offset);

void *ct__segment_at(uint32_t offset);
uint32_t ct__segment_offset(const void *piece);

/* Zeroed private memory in place of everything, in a forked child: but chunks of records stay where they are, because
 * handles point into them. Returns 0 if there is no memory: then all is zero, and nothing can be taken or written. */
int ct__segment_begin_anew(void);

/* Bytes in use, for tests of leaks. */
size_t ct__segment_used(void);

/* Bytes that are readable and writable, from the start. */
size_t ct__segment_committed(void);

/* How the memory grows: in a published segment the file grows first. Returns 0 if there is no more. */
extern int (*ct__segment_grow)(void *address, size_t offset, size_t size);

static inline uint64_t ct__get(const ct__word *word) {
    return atomic_load_explicit((ct__word *)(uintptr_t)word, memory_order_relaxed);
}
static inline void ct__set(ct__word *word, uint64_t value) { atomic_store_explicit(word, value, memory_order_relaxed); }

/* A plain add: there is one writer. */
static inline void ct__add(ct__word *word, uint64_t value) { ct__set(word, ct__get(word) + value); }

/* Number and side of a list, from the state of its side; the higher one is in force. */
static inline uint64_t ct__members_id(uint64_t state) { return state >> 1; }

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
