/* SPDX-License-Identifier: MIT
 *
 * run.h: floor 3, a run and the block of memory that becomes its result.
 *
 * The block is allocated whole before the run begins: its size depends on the name alone, and the end of a run can
 * neither fail nor disturb what was measured.
 */
#ifndef CT_RUN_H
#define CT_RUN_H

#include "codetimer.h"

enum { CT__NOTES_MAX = 8, CT__NOTE_SIZE = 160 };

typedef struct ct__result_block {
    ct_result result; /* first: ct_result_free gets its address */
    uint64_t batches_ns[CT_BATCHES_MAX];
    uint64_t batches_calls[CT_BATCHES_MAX];
    uint64_t gc_collections[CT_GC_GENERATIONS_MAX];
    const char *gc_labels[CT_GC_GENERATIONS_MAX];
    char gc_label_text[CT_GC_GENERATIONS_MAX][24];
    const char *notes[CT__NOTES_MAX];
    char note_text[CT__NOTES_MAX][CT__NOTE_SIZE];
    char interrupted[128];
    char cycles_source[48];
    char cycles_reason[200];
    char priority[64];
    char name[]; /* name_length bytes and a NUL */
} ct__result_block;

/* The table of batches: neighbours merge when it is full, so that memory does not grow with n. In ticks. */
typedef struct ct__batches {
    size_t count;
    uint64_t target; /* a batch is closed when it has lasted this long */
    uint64_t ticks[CT_BATCHES_MAX];
    uint64_t calls[CT_BATCHES_MAX];
    uint64_t open_ticks, open_calls; /* the one being filled */
} ct__batches;

void ct__batches_start(ct__batches *batches, uint64_t target);
void ct__batches_add(ct__batches *batches, uint64_t ticks, uint64_t calls);

/* Closes the open batch: under half the target it joins the one before. */
void ct__batches_finish(ct__batches *batches);

struct ct_run {
    ct__result_block *block;
    int source; /* of the clock, kept for the whole run */
    uint64_t process;
    uint64_t n, calls;
    uint64_t ticks; /* sum of all chunks */
    ct__batches batches;
    uint64_t chunk, chunk_start, chunk_ticks_max;
    uint64_t next_chunk; /* what growth allows */
    uint64_t pause_start, pause_ticks;
    uint64_t backward; /* chunks whose clock stepped back */
    int started, ended, due;
    ct_cycles cycles_before, cycles_after;
};

#endif
