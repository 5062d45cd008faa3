/* SPDX-License-Identifier: MIT
 *
 * blocks.c: see blocks.h.
 */
#include "blocks.h"

#include <stdlib.h>

enum { FIRST_BITS = 10, MOST_BITS = 28 };

int ctpy_blocks_open(ctpy_blocks *blocks) {
    *blocks = (ctpy_blocks){.bits = FIRST_BITS};
    blocks->entries = calloc((size_t)1 << FIRST_BITS, sizeof *blocks->entries);
    return blocks->entries != NULL;
}

void ctpy_blocks_close(ctpy_blocks *blocks) {
    free(blocks->entries);
    blocks->entries = NULL;
}

void ctpy_blocks_grow(ctpy_blocks *blocks) {
    ctpy_blocks larger = {.bits = blocks->bits + 1, .used = blocks->used};
    if (larger.bits <= MOST_BITS) larger.entries = calloc((size_t)1 << larger.bits, sizeof *larger.entries);
    if (larger.entries == NULL) {
        blocks->incomplete = 1;
        return;
    }
    for (size_t i = 0; i < (size_t)1 << blocks->bits; i++)
        if (blocks->entries[i].address != 0)
            larger.entries[ctpy_blocks_find(&larger, blocks->entries[i].address)] = blocks->entries[i];
    free(blocks->entries);
    *blocks = larger;
}
