/* SPDX-License-Identifier: MIT
 *
 * segment.c: see segment.h. A bump allocator over reserved address space, with one list of freed pieces per class.
 *
 * Invariant: [0, used) has been handed out, [0, committed) is readable and writable, offset 0 is the header and
 * therefore never a piece. The first word of a freed piece holds the offset of the next. What the allocator knows lies
 * outside of the region: in a forked child the region still is the parent's, which goes on changing it, so nothing may
 * be read there. The child begins with an empty region, in which the chunks of its parent are islands that are hopped
 * over.
 */
#include "segment.h"

#include <string.h>

#include "platform/platform.h"

enum { TEXT_CLASSES = 27, TEXT_LEAST = 32, CLASSES = CT__PIECE_TEXT + TEXT_CLASSES, GRAIN = 64 };

static const size_t commit_step = (size_t)1 << 16;
static const size_t reserve_most = (size_t)1 << 30;
static const size_t reserve_least = (size_t)1 << 22;

static char *base;
static size_t reserved, committed, used;
static uint32_t freed[CLASSES];
static int lost; /* a fork left no memory */

static uint32_t chunks_at[CT__CHUNKS_MAX]; /* in the order of their making, which is that of their records */
static size_t chunks_made;
static uint32_t islands[CT__CHUNKS_MAX]; /* ascending */
static size_t islands_made, islands_passed;

static int grow_privately(void *address, size_t offset, size_t size) {
    (void)offset;
    return ct__os_memory_commit(address, size);
}

int (*ct__segment_grow)(void *address, size_t offset, size_t size) = grow_privately;

static int reserve(void) {
    for (size_t size = reserve_most; size >= reserve_least && base == NULL; size /= 2) {
        base = ct__os_memory_reserve(size);
        reserved = size;
    }
    return base != NULL;
}

/* Makes [0, end) usable. */
static int commit(size_t end) {
    if (end <= committed) return 1;
    size_t wanted = (end + commit_step - 1) / commit_step * commit_step;
    if (wanted > reserved || !ct__segment_grow(base + committed, committed, wanted - committed)) return 0;
    committed = wanted;
    return 1;
}

ct__header *ct__segment_header(void) {
    if (lost) return NULL;
    if (used > 0) return (ct__header *)(void *)base;
    if (base == NULL && !reserve()) return NULL;
    size_t size = (sizeof(ct__header) + GRAIN - 1) / GRAIN * GRAIN;
    if (!commit(size)) return NULL;
    used = size;
    return (ct__header *)(void *)base;
}

static size_t text_class(size_t size, size_t *rounded) {
    size_t class = 0;
    *rounded = TEXT_LEAST;
    while (*rounded < size) {
        *rounded *= 2;
        class ++;
    }
    return class;
}

static size_t class_of(int piece, size_t size, size_t *rounded) {
    switch (piece) {
    case CT__PIECE_CHUNK:
        *rounded = sizeof(ct__record) * CT__RECORDS_PER_CHUNK;
        return CT__PIECE_CHUNK;
    case CT__PIECE_SLOT:
        *rounded = sizeof(ct__slot);
        return CT__PIECE_SLOT;
    case CT__PIECE_HISTOGRAM:
        *rounded = sizeof(ct__histogram);
        return CT__PIECE_HISTOGRAM;
    case CT__PIECE_MEMBERS:
        *rounded = sizeof(ct__members_area);
        return CT__PIECE_MEMBERS;
    default:
        return CT__PIECE_TEXT + text_class(size, rounded);
    }
}

static uint32_t take_freed(size_t class, size_t rounded) {
    uint32_t offset = freed[class];
    if (offset == 0) return 0;
    memcpy(&freed[class], base + offset, sizeof freed[class]);
    memset(base + offset, 0, rounded);
    return offset;
}

/* Where the next piece of that size can begin. */
static size_t pass_islands(size_t start, size_t size) {
    while (islands_passed < islands_made && islands[islands_passed] < start + size)
        start = islands[islands_passed++] + sizeof(ct__record) * CT__RECORDS_PER_CHUNK;
    return start;
}

static uint32_t take_fresh(size_t rounded, size_t grain) {
    size_t start = pass_islands((used + grain - 1) / grain * grain, rounded);
    if (start > reserved || rounded > reserved - start || !commit(start + rounded)) return 0;
    used = start + rounded;
    return (uint32_t)start;
}

uint32_t ct__segment_take(int piece, size_t size) {
    size_t rounded;
    if (size > (size_t)TEXT_LEAST << (TEXT_CLASSES - 1) || ct__segment_header() == NULL) return 0;
    size_t class = class_of(piece, size, &rounded);
    uint32_t offset = take_freed(class, rounded);
    if (offset == 0) offset = take_fresh(rounded, piece == CT__PIECE_TEXT ? sizeof(uint32_t) : GRAIN);
    if (offset != 0 && piece == CT__PIECE_CHUNK) chunks_at[chunks_made++] = offset;
    return offset;
}

void ct__segment_give(int piece, size_t size, uint32_t offset) {
    size_t rounded;
    if (offset == 0 || lost) return;
    size_t class = class_of(piece, size, &rounded);
    memcpy(base + offset, &freed[class], sizeof freed[class]);
    freed[class] = offset;
}

static void sort_islands(void) {
    for (size_t i = 0; i < chunks_made; i++) {
        size_t at = i;
        for (; at > 0 && islands[at - 1] > chunks_at[i]; at--) islands[at] = islands[at - 1];
        islands[at] = chunks_at[i];
    }
    islands_made = chunks_made;
    islands_passed = 0;
}

int ct__segment_begin_anew(void) {
    if (used == 0 || lost) return !lost;
    lost = !ct__os_memory_clear(base, committed);
    if (lost) return 0;
    ct__header *header = ct__segment_header();
    used = (sizeof *header + GRAIN - 1) / GRAIN * GRAIN;
    memset(freed, 0, sizeof freed);
    sort_islands();
    for (size_t i = 0; i < chunks_made; i++)
        atomic_store_explicit(&header->chunks[i], chunks_at[i], memory_order_relaxed);
    return 1;
}

void *ct__segment_at(uint32_t offset) { return base + offset; }
uint32_t ct__segment_offset(const void *piece) { return (uint32_t)((const char *)piece - base); }
size_t ct__segment_used(void) { return used; }
size_t ct__segment_committed(void) { return committed; }
