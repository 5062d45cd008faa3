/* SPDX-License-Identifier: MIT
 *
 * blocks.h: the sizes of the blocks that were given out while somebody counts.
 *
 * Whoever frees a block does not say how large it is, so that has to be remembered. A table with open addressing; what
 * is deleted is filled up from behind, so that no search ever has to go over gaps. Its memory comes from the system.
 * What is done at every allocation is inline: it decides what counting costs.
 */
#ifndef CTPY_BLOCKS_H
#define CTPY_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

typedef struct ctpy_block_entry {
    uintptr_t address; /* 0: empty */
    size_t size;
} ctpy_block_entry;

typedef struct ctpy_blocks {
    ctpy_block_entry *entries;
    unsigned bits; /* 2^bits entries, at most half of them used */
    size_t used;
    int incomplete; /* there was no memory to grow: some blocks are missing */
} ctpy_blocks;

int ctpy_blocks_open(ctpy_blocks *blocks); /* 0 if there is no memory */
void ctpy_blocks_close(ctpy_blocks *blocks);

/* When more than half of the entries are used. */
void ctpy_blocks_grow(ctpy_blocks *blocks);

/* Blocks are at least 16 bytes apart; the multiplier spreads what remains (Knuth, The Art of Computer Programming 3,
 * section 6.4). */
static inline size_t ctpy_blocks_place(const ctpy_blocks *blocks, uintptr_t address) {
    return (size_t)(((uint64_t)(address >> 4) * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - blocks->bits));
}

static inline size_t ctpy_blocks_next(const ctpy_blocks *blocks, size_t at) {
    return (at + 1) & (((size_t)1 << blocks->bits) - 1);
}

/* Where the address is, or the empty entry where it would be. */
static inline size_t ctpy_blocks_find(const ctpy_blocks *blocks, uintptr_t address) {
    size_t at = ctpy_blocks_place(blocks, address);
    while (blocks->entries[at].address != 0 && blocks->entries[at].address != address)
        at = ctpy_blocks_next(blocks, at);
    return at;
}

/* Remembers a block, and gives the size that was remembered for the same address (0: none): that one was freed unseen.
 */
static inline size_t ctpy_blocks_put(ctpy_blocks *blocks, const void *address, size_t size) {
    size_t at = ctpy_blocks_find(blocks, (uintptr_t)address);
    size_t before = blocks->entries[at].address != 0 ? blocks->entries[at].size : 0;
    if (blocks->entries[at].address == 0) {
        if (blocks->incomplete) return 0;
        blocks->used++;
    }
    blocks->entries[at] = (ctpy_block_entry){(uintptr_t)address, size};
    if (blocks->used > (size_t)1 << (blocks->bits - 1)) ctpy_blocks_grow(blocks);
    return before;
}

/* Moves up what would not be found any more. */
static inline void ctpy_blocks_close_gap(ctpy_blocks *blocks, size_t gap) {
    size_t mask = ((size_t)1 << blocks->bits) - 1;
    for (size_t at = ctpy_blocks_next(blocks, gap); blocks->entries[at].address != 0;
         at = ctpy_blocks_next(blocks, at)) {
        size_t home = ctpy_blocks_place(blocks, blocks->entries[at].address);
        if (((at - home) & mask) < ((at - gap) & mask)) continue; /* its home lies behind the gap */
        blocks->entries[gap] = blocks->entries[at];
        gap = at;
    }
    blocks->entries[gap].address = 0;
}

/* Forgets it. Returns 1 and its size, or 0 if it is not known. */
static inline int ctpy_blocks_take(ctpy_blocks *blocks, const void *address, size_t *size) {
    size_t at = ctpy_blocks_find(blocks, (uintptr_t)address);
    if (blocks->entries[at].address == 0) return 0;
    *size = blocks->entries[at].size;
    blocks->used--;
    ctpy_blocks_close_gap(blocks, at);
    return 1;
}

#endif
