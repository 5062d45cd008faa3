/* SPDX-License-Identifier: MIT
 *
 * activations.c: the calls of measured functions that are under way.
 *
 * A call is known by the address of its frame in the interpreter, which no other living call of the process has and
 * which it keeps until it ends: also while it is suspended, on whatever thread or greenlet it goes on. So there is
 * one table for all of them and no stack to get out of step: an end is matched with the beginning in its own frame or
 * with none. Where an end was not seen, the record lies there until its function is switched off or a new call begins
 * in its frame, which shows that the old one is over.
 */
#include "monitoring.h"

#if PY_VERSION_HEX >= 0x030c0000

#include <stdlib.h>

enum { FIRST = 128 };

struct ctpy_activation_block {
    struct ctpy_activation_block *next;
    ctpy_activation places[];
};

void ctpy_activations_open(ctpy_activations *all) {
    *all = (ctpy_activations){.shift = 63};
    all->buckets = all->none;
}

/* ---- growing ---- */

static size_t count_buckets(const ctpy_activations *all) { return (size_t)1 << (64 - all->shift); }

static void move_all(ctpy_activations *all, ctpy_activation **from, size_t count) {
    for (size_t i = 0; i < count; i++) {
        while (from[i] != NULL) {
            ctpy_activation *moved = from[i];
            from[i] = moved->next;
            ctpy_activation **link = ctpy_activation_find(all, moved->frame);
            moved->next = NULL;
            *link = moved;
        }
    }
}

/* Without memory for more of them, it stays as it is, only slower. */
static void add_buckets(ctpy_activations *all, size_t least) {
    ctpy_activation **from = all->buckets;
    size_t before = count_buckets(all), count = before;
    unsigned shift = all->shift;
    for (; count < least; count *= 2) shift--;
    ctpy_activation **buckets = calloc(count, sizeof *buckets);
    if (buckets == NULL) return;
    all->buckets = buckets;
    all->shift = shift;
    move_all(all, from, before);
    if (from != all->none) free(from);
}

int ctpy_activations_grow(ctpy_activations *all) {
    size_t more = all->made > 0 ? all->made : FIRST;
    struct ctpy_activation_block *block = malloc(sizeof *block + more * sizeof *block->places);
    if (block == NULL) return 0;
    block->next = all->blocks;
    all->blocks = block;
    for (size_t i = more; i-- > 0;) { /* the first place is used first */
        block->places[i] = (ctpy_activation){.next = all->unused};
        all->unused = &block->places[i];
    }
    all->made += more;
    add_buckets(all, 2 * all->made);
    return 1;
}

/* ---- ends that nobody sees ---- */

void ctpy_activation_abandon(ctpy_activations *all, ctpy_activation **link) {
    ct_abandon((*link)->cell->counter, &(*link)->token);
    ctpy_activation_end(all, link);
}

void ctpy_activations_abandon(ctpy_activations *all, const ctpy_cell *cell) {
    if (cell != NULL && cell->under_way == 0) return;
    for (size_t i = 0; i < count_buckets(all); i++) {
        ctpy_activation **link = &all->buckets[i];
        while (*link != NULL)
            if (cell == NULL || (*link)->cell == cell)
                ctpy_activation_abandon(all, link);
            else
                link = &(*link)->next;
    }
}

void ctpy_activations_close(ctpy_activations *all) {
    ctpy_activations_abandon(all, NULL);
    if (all->buckets != all->none) free(all->buckets);
    while (all->blocks != NULL) {
        struct ctpy_activation_block *next = all->blocks->next;
        free(all->blocks);
        all->blocks = next;
    }
    ctpy_activations_open(all);
}

#else

typedef int ctpy_activations_need_monitoring; /* an empty file is no C */

#endif
