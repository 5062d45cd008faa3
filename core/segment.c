/* SPDX-License-Identifier: MIT
 *
 * segment.c: see segment.h. A bump allocator over reserved address space, with one list of freed pieces per class.
 *
 * Invariant: [0, used) has been handed out, [0, committed) is readable and writable, offset 0 is the header and therefore
 * never a piece. The first word of a freed piece holds the offset of the next.
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
        class++;
    }
    return class;
}

static size_t class_of(int piece, size_t size, size_t *rounded) {
    switch (piece) {
    case CT__PIECE_CHUNK: *rounded = sizeof(ct__record) * CT__RECORDS_PER_CHUNK; return CT__PIECE_CHUNK;
    case CT__PIECE_SLOT: *rounded = sizeof(ct__slot); return CT__PIECE_SLOT;
    case CT__PIECE_HISTOGRAM: *rounded = sizeof(ct__histogram); return CT__PIECE_HISTOGRAM;
    case CT__PIECE_MEMBERS: *rounded = sizeof(ct__members_area); return CT__PIECE_MEMBERS;
    default: return CT__PIECE_TEXT + text_class(size, rounded);
    }
}

static uint32_t take_freed(size_t class, size_t rounded) {
    uint32_t offset = freed[class];
    if (offset == 0) return 0;
    memcpy(&freed[class], base + offset, sizeof freed[class]);
    memset(base + offset, 0, rounded);
    return offset;
}

uint32_t ct__segment_take(int piece, size_t size) {
    size_t rounded;
    if (size > (size_t)TEXT_LEAST << (TEXT_CLASSES - 1) || ct__segment_header() == NULL) return 0;
    size_t class = class_of(piece, size, &rounded);
    uint32_t offset = take_freed(class, rounded);
    if (offset != 0) return offset;
    size_t start = piece == CT__PIECE_TEXT ? used : (used + GRAIN - 1) / GRAIN * GRAIN;
    if (rounded > reserved - start || !commit(start + rounded)) return 0;
    used = start + rounded;
    return (uint32_t)start;
}

void ct__segment_give(int piece, size_t size, uint32_t offset) {
    size_t rounded;
    if (offset == 0) return;
    size_t class = class_of(piece, size, &rounded);
    memcpy(base + offset, &freed[class], sizeof freed[class]);
    freed[class] = offset;
}

void *ct__segment_at(uint32_t offset) { return base + offset; }
uint32_t ct__segment_offset(const void *piece) { return (uint32_t)((const char *)piece - base); }
size_t ct__segment_used(void) { return used; }
size_t ct__segment_committed(void) { return committed; }
