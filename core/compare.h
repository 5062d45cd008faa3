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

enum { CT__ROUNDS_MAX = 1024, CT__REASON_SIZE = 160 };

typedef struct ct__comparison_block {
    ct_comparison comparison; /* first: ct_comparison_free gets its address */
    const ct_result *results[CT_CANDIDATES_MAX];
    ct_ratio ratios[CT_CANDIDATES_MAX];
    char interrupted[128];
    char reason[CT__REASON_SIZE]; /* why there is no ratio; the same for all */
    const char *notes[CT__NOTES_MAX];
    char note_text[CT__NOTES_MAX][CT__NOTE_SIZE];
    size_t stored;                                     /* rounds in "logs", tied ones too */
    float logs[CT_CANDIDATES_MAX + 1][CT__ROUNDS_MAX]; /* NAN: the clock saw nothing */
} ct__comparison_block;

/* The ratio of two rows of logs (row "count" is the twin), without a verdict. Fills known, ratio, low, high,
 * confidence. */
void ct__ratio_of_rows(const ct__comparison_block *block, size_t a, size_t b, ct_ratio *ratio);

/* Whether the difference is more than the twin shows. */
void ct__ratio_judge(const ct_ratio *twin, ct_ratio *ratio);

/* Rounds without which there is no interval for "count" candidates. */
size_t ct__ratio_rounds_needed(size_t count);

#endif
