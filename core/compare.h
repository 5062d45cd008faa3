/* SPDX-License-Identifier: MIT
 *
 * compare.h: floor 3, a comparison under way and the block of memory that becomes its outcome.
 *
 * All memory is allocated before the first call. Of each round the logarithm of every candidate's time per call is
 * kept; the ratio of any two is made from the differences of one round each, so that what slowed a whole round cancels.
 */
#ifndef CT_COMPARE_H
#define CT_COMPARE_H

#include "codetimer.h"
#include "run.h"

/* Notes: one of each candidate, and some of them all. */
enum { CT__ROUNDS_MAX = 1024, CT__REASON_SIZE = 160, CT__COMPARISON_NOTES_MAX = CT_CANDIDATES_MAX + CT__NOTES_MAX };

typedef struct ct__comparison_block {
    ct_comparison comparison; /* first: ct_comparison_free gets its address */
    const ct_result *results[CT_CANDIDATES_MAX];
    ct_ratio ratios[CT_CANDIDATES_MAX];
    char interrupted[128];
    char reason[CT__REASON_SIZE]; /* why there is no ratio; the same for all */
    const char *notes[CT__COMPARISON_NOTES_MAX];
    char note_text[CT__COMPARISON_NOTES_MAX][CT__NOTE_SIZE];
    size_t stored;                                     /* rounds in "logs", tied ones too */
    float logs[CT_CANDIDATES_MAX + 1][CT__ROUNDS_MAX]; /* NAN: the clock saw nothing */
    unsigned char disturbed[CT_CANDIDATES_MAX + 1][CT__ROUNDS_MAX]; /* 1: other threads had the CPU in all slots */
} ct__comparison_block;

/* A comparison under way. */
struct ct_compare {
    ct__comparison_block *block;
    size_t count, baseline, all; /* all: with the twin */
    ct_run *runs[CT_CANDIDATES_MAX + 1];
    uint64_t calls[CT_CANDIDATES_MAX + 1]; /* in a slot */
    double rates[CT_CANDIDATES_MAX + 1];   /* calls per tick */
    int ready[CT_CANDIDATES_MAX + 1];      /* its slot is long enough */
    int source, started, ended, in_rounds;
    int step_known;                            /* of the clock */
    int warm;                                  /* the calls to warm up could be forgotten */
    int between;                               /* the host has been told so, and may be collecting */
    uint64_t last_slot[CT_CANDIDATES_MAX + 1]; /* ticks it took */
    uint64_t budget_ticks, slot_ticks, began, rounds_began;
    size_t turn, at;                     /* the candidate whose slot it is; slots of the round that are complete */
    size_t first;                        /* the candidate that the round begins with */
    uint64_t ticks_before, calls_before, preemptions_before; /* of that candidate */
    uint64_t round_ticks[CT_CANDIDATES_MAX + 1], round_calls[CT_CANDIDATES_MAX + 1];
    int calm[CT_CANDIDATES_MAX + 1]; /* of its slots in this round: those in which it kept the CPU */
    uint64_t still; /* rounds in a row in which the clock saw nothing */
};

/* Ticks since it began. */
uint64_t ct__compare_elapsed(const ct_compare *compare);

/* The ratio of two rows of logs (row "count" is the twin), without a verdict. Fills known, ratio, low, high,
 * confidence. */
void ct__ratio_of_rows(const ct__comparison_block *block, size_t a, size_t b, ct_ratio *ratio);

/* Whether the difference is more than the twin shows. */
void ct__ratio_judge(const ct_ratio *twin, ct_ratio *ratio);

/* Rounds without which there is no interval for "count" candidates. */
size_t ct__ratio_rounds_needed(size_t count);

#endif
