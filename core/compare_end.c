/* SPDX-License-Identifier: MIT
 *
 * compare_end.c: the rounds of a comparison become its outcome.
 *
 * No round is left out in silence: what the clock saw nothing of, and what others disturbed, is counted and told.
 */
#include <stdlib.h>

#include "clock.h"
#include "compare.h"
#include "format.h"

/* Why there may be no ratio. */
static void explain_rounds(const ct_compare *compare, int interrupted) {
    ct__comparison_block *block = compare->block;
    uint64_t tied = block->comparison.rounds_tied, seen = block->stored - tied;
    ct__text text;
    ct__text_start(&text, block->reason, sizeof block->reason);
    ct__text_put_count(&text, seen);
    ct__text_put(&text, seen == 1 ? " round with a time, " : " rounds with a time, ");
    ct__text_put_count(&text, ct__ratio_rounds_needed(compare->count));
    ct__text_put(&text, " are needed");
    if (interrupted) {
        ct__text_put(&text, ": it was interrupted");
    } else {
        ct__text_put(&text, tied > seen ? ": the clock saw nothing of the others" : ": give it a larger budget");
    }
}

static void explain_disturbed(ct_compare *compare) {
    char sentence[CT__NOTE_SIZE];
    ct__text text;
    const ct_comparison *comparison = &compare->block->comparison;
    if (comparison->rounds_disturbed * 4 < comparison->rounds || comparison->rounds_disturbed == 0) return;
    ct__text_start(&text, sentence, sizeof sentence);
    ct__text_put(&text, "other threads had the CPU in ");
    ct__text_put_count(&text, comparison->rounds_disturbed);
    ct__text_put(&text, " of ");
    ct__text_put_count(&text, comparison->rounds);
    ct__text_put(&text, " rounds; ratios are of the others, where there are enough");
    ct_compare_note(compare, sentence);
}

static void explain_all(ct_compare *compare) {
    ct_comparison *comparison = &compare->block->comparison;
    if (compare->in_rounds && !compare->warm)
        ct_compare_note(compare, "no warm-up: the first calls took most of the budget, and are part of the results");
    if (comparison->rounds_tied > 0 && comparison->rounds_tied < comparison->rounds)
        ct_compare_note(compare, "rounds of which the clock saw nothing were left out");
    explain_disturbed(compare);
}

static void conclude(ct_compare *compare, const ct_time_finish *finishes, const char *interrupted) {
    ct__comparison_block *block = compare->block;
    ct_comparison *comparison = &block->comparison;
    ct__text text;
    comparison->elapsed_ns = ct__clock_ns(compare->source, compare->started ? ct__compare_elapsed(compare) : 0);
    comparison->rounds = block->stored;
    explain_rounds(compare, interrupted != NULL);
    explain_all(compare);
    for (size_t i = 0; i < compare->count; i++) {
        ct_time_finish finish = finishes != NULL ? finishes[i] : (ct_time_finish){.size = sizeof finish};
        finish.interrupted = compare->runs[i]->calls < compare->runs[i]->stop_at ? interrupted : NULL;
        block->results[i] = ct__run_conclude(compare->runs[i], &finish);
        compare->runs[i]->block = NULL;
    }
    ct__ratio_of_rows(block, compare->count, compare->baseline, &comparison->twin);
    for (size_t i = 0; i < compare->count; i++)
        (void)ct_comparison_ratio(comparison, i, compare->baseline, &block->ratios[i]);
    if (interrupted == NULL) return;
    ct__text_start(&text, block->interrupted, sizeof block->interrupted);
    ct__text_put(&text, interrupted);
    comparison->interrupted = block->interrupted;
}

static int is_valid(const ct_compare *compare, const ct_time_finish *finishes) {
    for (size_t i = 0; finishes != NULL && i < compare->count; i++)
        if (finishes[i].size < sizeof *finishes || finishes[i].gc_generations > CT_GC_GENERATIONS_MAX ||
            finishes[i].overheads_count > CT_OVERHEADS_MAX ||
            (finishes[i].memory != NULL && finishes[i].memory->kinds_count > CT_MEMORY_KINDS_MAX))
            return 0;
    return 1;
}

int ct_compare_end(ct_compare *compare, const ct_time_finish *finishes, const char *interrupted,
                   ct_comparison **comparison) {
    int valid = comparison != NULL && is_valid(compare, finishes);
    if (valid) {
        conclude(compare, finishes, interrupted);
        *comparison = &compare->block->comparison;
        compare->block = NULL;
    }
    ct_compare_free(compare);
    return valid ? CT_OK : CT_EINVAL;
}

void ct_compare_free(ct_compare *compare) {
    if (compare == NULL) return;
    for (size_t i = 0; i < compare->all; i++) ct_run_free(compare->runs[i]);
    free(compare->block);
    free(compare);
}

void ct_comparison_free(ct_comparison *comparison) {
    if (comparison == NULL) return;
    for (size_t i = 0; i < comparison->count; i++) ct_result_free((ct_result *)(uintptr_t)comparison->results[i]);
    free(comparison);
}
