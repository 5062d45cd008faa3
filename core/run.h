/* SPDX-License-Identifier: MIT
 *
 * run.h: floor 3, a run and the block of memory that becomes its result.
 *
 * The block is allocated whole before the run begins: its size depends on the name alone, and the end of a run can
 * neither fail nor disturb what was measured. A run is made of stretches: one, or in a comparison one for each turn.
 * At both ends of a stretch the cycles and the usage of the thread are read, and their differences added up.
 */
#ifndef CT_RUN_H
#define CT_RUN_H

#include "codetimer.h"
#include "usage.h"

enum { CT__NOTES_MAX = 12, CT__NOTE_SIZE = 200 };

typedef struct ct__result_block {
    ct_result result; /* first: ct_result_free gets its address */
    uint64_t batches_ns[CT_BATCHES_MAX];
    uint64_t batches_calls[CT_BATCHES_MAX];
    uint64_t gc_collections[CT_GC_GENERATIONS_MAX];
    const char *gc_labels[CT_GC_GENERATIONS_MAX];
    char gc_label_text[CT_GC_GENERATIONS_MAX][24];
    ct_overhead overheads[CT_OVERHEADS_MAX];
    char overhead_text[CT_OVERHEADS_MAX][48];
    const char *notes[CT__NOTES_MAX];
    char note_text[CT__NOTES_MAX][CT__NOTE_SIZE];
    char interrupted[128];
    char cycles_source[48];
    char cycles_reason[200];
    char memory_reason[160];
    ct_memory_kind kinds[CT_MEMORY_KINDS_MAX];
    char kind_text[CT_MEMORY_KINDS_MAX][16];
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

/* EXACT: as many calls as were asked for. PILOT: to see how long a call takes. WARM: that is known, the host has to be
 * told. MEASURING: until the budget is used up. */
enum { CT__EXACT, CT__PILOT, CT__WARM, CT__MEASURING };

/* Chunks of k, 2k, 2k and k calls, and the least that either kind took: does the work grow with n? */
typedef struct ct__growth {
    uint64_t k; /* 0: not asked */
    int asked;  /* chunks so far */
    uint64_t once, twice;
} ct__growth;

struct ct_run {
    ct__result_block *block;
    int source; /* of the clock, kept for the whole run */
    uint64_t process;
    uint64_t n, calls;
    uint64_t stop_at; /* as many calls in all end the stretch */
    uint64_t ticks;   /* sum of all chunks */
    ct__batches batches;
    uint64_t chunk, chunk_start, chunk_ticks_max;
    uint64_t next_chunk; /* what growth allows */
    uint64_t pause_start, pause_ticks;
    uint64_t backward;   /* chunks whose clock stepped back */
    uint64_t last_span;
    uint64_t rate_calls, rate_ticks; /* of the last chunk that told how long a call takes */
    uint64_t least_step; /* ticks of the shortest chunk in which the clock moved, or by which two differ; 0: none yet */
    uint64_t still;      /* chunks in a row in which it did not, or hardly */
    int started, ended, due;
    int open;  /* within a stretch */
    int turns; /* of a comparison: many stretches */
    ct_cycles cycles_before, cycles;
    ct__usage usage_before, usage;
    uint64_t wall_before, wall_ticks; /* from end to end of the stretches, pauses too */
    /* of an automatic run */
    int phase;
    uint64_t budget_ticks, began;
    uint64_t used_ticks;             /* of the budget, before what is measured */
    uint64_t warm_ticks;             /* of them, in calls */
    int kept;                        /* the first calls are among the measured ones */
    ct__growth growth;
};

/* ---- time.c ---- */

/* The same as ct_time_begin, for runs in turns: "calls" more calls at each ct__run_turn. */
int ct__run_begin(const char *name, size_t name_length, ct_run **run);
void ct__run_turn(ct_run *run, uint64_t calls);

/* Calls per tick, to plan with. 0: nothing is known yet. */
double ct__run_rate(const ct_run *run);

/* ---- pilot.c ---- */

void ct__pilot_start(ct_run *run, uint64_t budget_ns);

/* Of the budget, in ticks: what has passed or was measured, without the host's break between warm-up and batches. */
uint64_t ct__pilot_spent(const ct_run *run);

/* What the next chunk of an automatic run is to be; 0: the budget is used up. */
uint64_t ct__pilot_plan(ct_run *run);

/* A whole chunk has lasted "span" ticks. */
void ct__pilot_learn(ct_run *run, uint64_t span, uint64_t made);

/* Forgets the calls so far. */
void ct__pilot_forget(ct_run *run);

/* ---- conclude.c ---- */

ct_result *ct__run_conclude(ct_run *run, const ct_time_finish *finish);

/* ---- anomalies.c ---- */

/* Adds a sentence for whatever makes the figures mean something else than they seem to. */
void ct__run_explain(ct_run *run);

#endif
