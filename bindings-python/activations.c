/* SPDX-License-Identifier: MIT
 *
 * activations.c: the calls of measured functions that are under way.
 *
 * A call is known by the address of its frame in the interpreter, which no other living call of the process has and
 * which it keeps until it ends: also while it is suspended, on whatever thread or greenlet it goes on. So there is no
 * stack to get out of step: an end is matched with the beginning in its own frame or with none. Where an end was not
 * seen, the record lies there until its function is switched off or goes away, or until a new call begins in its frame,
 * which shows that the old one is over.
 *
 * Each cell has one record of its own, which is the quickest to get at; further calls of it (recursion, threads,
 * generators) are in one table, by their frames.
 */
#include "monitoring.h"

#if PY_VERSION_HEX >= 0x030c0000

#include <stdlib.h>

enum { FIRST = 64 };

struct ctpy_activation_block {
    struct ctpy_activation_block *next;
    ctpy_activation places[];
};

void ctpy_activations_open(ctpy_activations *all) {
    *all = (ctpy_activations){.shift = 63};
    all->buckets = all->none;
}

void ctpy_activations_close(ctpy_activations *all) {
    if (all->buckets != all->none) free(all->buckets);
    while (all->blocks != NULL) {
        struct ctpy_activation_block *next = all->blocks->next;
        free(all->blocks);
        all->blocks = next;
    }
    ctpy_activations_open(all);
}

/* ---- the table ---- */

static ctpy_activation **bucket_of(ctpy_activations *all, const void *frame) {
    return &all->buckets[((uint64_t)(uintptr_t)frame * 0x9e3779b97f4a7c15u) >> all->shift];
}

static size_t count_buckets(const ctpy_activations *all) { return (size_t)1 << (64 - all->shift); }

static void push(ctpy_activation **list, ctpy_activation *call) {
    call->next = *list;
    *list = call;
}

/* Without memory for more buckets it stays as it is, only slower. */
static void add_buckets(ctpy_activations *all, size_t least) {
    ctpy_activation **from = all->buckets;
    const size_t before = count_buckets(all);
    size_t count = before;
    unsigned shift = all->shift;
    for (; count < least; count *= 2) shift--;
    ctpy_activation **buckets = calloc(count, sizeof *buckets);
    if (buckets == NULL) return;
    all->buckets = buckets;
    all->shift = shift;
    for (size_t i = 0; i < before; i++)
        for (ctpy_activation *call = from[i], *next; call != NULL; call = next) {
            next = call->next;
            push(bucket_of(all, call->frame), call);
        }
    if (from != all->none) free(from);
}

static int grow(ctpy_activations *all) {
    const size_t more = all->made > 0 ? all->made : FIRST;
    struct ctpy_activation_block *block = malloc(sizeof *block + more * sizeof *block->places);
    if (block == NULL) return 0;
    block->next = all->blocks;
    all->blocks = block;
    for (size_t i = more; i-- > 0;) { /* the first place is used first */
        block->places[i] = (ctpy_activation){0};
        push(&all->unused, &block->places[i]);
    }
    all->made += more;
    add_buckets(all, 2 * all->made);
    return 1;
}

/* In that frame, of whatever cell. */
static ctpy_activation *find_any(ctpy_activations *all, const void *frame) {
    ctpy_activation *call = *bucket_of(all, frame);
    while (call != NULL && call->frame != frame) call = call->next;
    return call;
}

ctpy_activation *ctpy_activation_find(ctpy_activations *all, const ctpy_cell *cell, const void *frame) {
    ctpy_activation *call = cell->filed > 0 ? find_any(all, frame) : NULL;
    return call != NULL && call->cell == cell ? call : NULL;
}

ctpy_activation *ctpy_activation_file(ctpy_activations *all, ctpy_cell *cell, const void *frame) {
    ctpy_activation *before = find_any(all, frame);
    if (before != NULL) ctpy_activation_abandon(all, before);
    if (all->unused == NULL && !grow(all)) return NULL;
    ctpy_activation *call = all->unused;
    all->unused = call->next;
    call->frame = frame;
    call->cell = cell;
    push(bucket_of(all, frame), call);
    cell->filed++;
    return call;
}

void ctpy_activation_unfile(ctpy_activations *all, ctpy_activation *ended) {
    ctpy_activation **link = bucket_of(all, ended->frame);
    while (*link != ended) link = &(*link)->next;
    *link = ended->next;
    ended->cell->filed--;
    push(&all->unused, ended);
}

/* ---- ends that nobody sees ---- */

void ctpy_activation_abandon(ctpy_activations *all, ctpy_activation *call) {
    ct_abandon(call->cell->counter, &call->token);
    ctpy_activation_end(all, call);
}

void ctpy_activations_abandon(ctpy_activations *all, ctpy_cell *cell) {
    if (cell->own.frame != NULL) ctpy_activation_abandon(all, &cell->own);
    for (size_t i = 0; cell->filed > 0 && i < count_buckets(all); i++)
        for (ctpy_activation *call = all->buckets[i], *next; call != NULL; call = next) {
            next = call->next;
            if (call->cell == cell) ctpy_activation_abandon(all, call);
        }
}

#else

typedef int ctpy_activations_need_monitoring; /* an empty file is no C */

#endif
