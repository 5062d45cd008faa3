/* SPDX-License-Identifier: MIT
 *
 * batches.c: the fixed table in which a run keeps its spread.
 *
 * Invariant: the batches cover all calls of whole chunks, in order, each at least the target long except the last. When
 * the table is full, neighbours are merged and the target doubles.
 */
#include "run.h"

#include <string.h>

void ct__batches_start(ct__batches *batches, uint64_t target) {
    memset(batches, 0, sizeof *batches);
    batches->target = target;
}

static void merge_neighbours(ct__batches *batches) {
    for (size_t i = 0; i < CT_BATCHES_MAX / 2; i++) {
        batches->ticks[i] = batches->ticks[2 * i] + batches->ticks[2 * i + 1];
        batches->calls[i] = batches->calls[2 * i] + batches->calls[2 * i + 1];
    }
    batches->count = CT_BATCHES_MAX / 2;
    batches->target *= 2;
}

static void close_open(ct__batches *batches) {
    batches->ticks[batches->count] = batches->open_ticks;
    batches->calls[batches->count] = batches->open_calls;
    batches->count++;
    batches->open_ticks = batches->open_calls = 0;
}

void ct__batches_add(ct__batches *batches, uint64_t ticks, uint64_t calls) {
    batches->open_ticks += ticks;
    batches->open_calls += calls;
    if (batches->open_ticks < batches->target) return;
    if (batches->count == CT_BATCHES_MAX) merge_neighbours(batches);
    if (batches->open_ticks >= batches->target) close_open(batches); /* merging may just have doubled the target */
}

void ct__batches_finish(ct__batches *batches) {
    if (batches->open_calls == 0) return;
    if (batches->count > 0 && batches->open_ticks < batches->target / 2) {
        batches->ticks[batches->count - 1] += batches->open_ticks;
        batches->calls[batches->count - 1] += batches->open_calls;
        return;
    }
    if (batches->count == CT_BATCHES_MAX) merge_neighbours(batches);
    close_open(batches);
}
