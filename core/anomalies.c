/* SPDX-License-Identifier: MIT
 *
 * anomalies.c: one plain sentence for each thing that makes the figures of a run mean something else than they seem to.
 *
 * Each is drawn from facts of the result alone, with limits wide enough that noise does not trip them: a sentence that
 * is often wrong is soon not read.
 */
#include "clock.h"
#include "format.h"
#include "run.h"
#include "stats.h"

/* Shorter runs are too easily disturbed to say more than their figures do. */
static const uint64_t least_elapsed_ns = 10000000;

enum { SENTENCE_SIZE = CT__NOTE_SIZE, TREND_BATCHES = 12 };

/* ---- the clock ---- */

static void explain_clock(ct_run *run) {
    char sentence[SENTENCE_SIZE];
    ct__text text;
    const ct_result *result = &run->block->result;
    double batch_ns = result->batches > 0 ? (double)result->elapsed_ns / (double)result->batches : 0;
    if (batch_ns <= 0 || result->resolution_ns < 1000 || batch_ns >= 100 * result->resolution_ns) return;
    ct__text_start(&text, sentence, sizeof sentence);
    ct__text_put(&text, "the clock ticks only every ");
    ct__text_put_duration(&text, result->resolution_ns, 1);
    ct__text_put(&text, ": measure longer");
    ct_time_note(run, sentence);
}

/* ---- an automatic run ---- */

static void explain_pilot(ct_run *run) {
    char sentence[SENTENCE_SIZE];
    ct__text text;
    const ct_result *result = &run->block->result;
    if (!run->kept || run->ticks == 0) return;
    ct__text_start(&text, sentence, sizeof sentence);
    ct__text_put(&text, run->calls == 1 ? "no warm-up: the first call took most of the budget of "
                                        : "no warm-up: the first calls took most of the budget of ");
    ct__text_put_duration(&text, (double)result->budget_ns, 1);
    ct__text_put(&text, run->calls == 1 ? ", and is the result" : ", and are part of the result");
    ct_time_note(run, sentence);
}

static void explain_growth(ct_run *run) {
    char sentence[SENTENCE_SIZE];
    ct__text text;
    const ct__growth *growth = &run->growth;
    double once = (double)growth->once, twice = (double)growth->twice;
    int told = growth->asked > 4 && growth->k == 0;
    if (!told || once <= 0 || twice >= once * 1.25) return;
    ct__text_start(&text, sentence, sizeof sentence);
    ct__text_put(&text, "the work does not grow with n: twice as many calls took ");
    ct__text_put_decimal(&text, twice / once, 2);
    ct__text_put(&text, " times as long");
    ct_time_note(run, sentence);
}

/* ---- what the time went to ---- */

static void explain_gc(ct_run *run) {
    char sentence[SENTENCE_SIZE];
    ct__text text;
    const ct_result *result = &run->block->result;
    if (!result->gc_time_known || result->elapsed_ns == 0) return;
    double part = (double)result->gc_time.total_ns / (double)result->elapsed_ns;
    if (part < 0.5) return;
    ct__text_start(&text, sentence, sizeof sentence);
    ct__text_put(&text, "dominated by GC: ");
    ct__text_put_percent(&text, part < 1 ? part : 1, 0);
    ct__text_put(&text, " of the time went to ");
    ct__text_put_count(&text, result->gc_time.pauses);
    ct__text_put(&text, result->gc_time.pauses == 1 ? " pause" : " pauses");
    ct_time_note(run, sentence);
}

/* Whoever is put off the CPU has not chosen to wait. */
static void explain_waiting(ct_run *run) {
    char sentence[SENTENCE_SIZE];
    ct__text text;
    const ct_usage *usage = &run->block->result.usage;
    double wall_ns = (double)ct__clock_ns(run->source, run->wall_ticks);
    if (!usage->known || wall_ns <= 0 || run->turns) return;
    double part = (double)usage->cpu_ns / wall_ns;
    if (part >= 0.8 || usage->switches + usage->preemptions == 0) return;
    ct__text_start(&text, sentence, sizeof sentence);
    ct__text_put(&text, "CPU time is ");
    ct__text_put_percent(&text, part, 0);
    ct__text_put(&text,
                 usage->switches >= usage->preemptions ? " of wall: it waits" : " of wall: other threads had the CPU");
    ct_time_note(run, sentence);
}

static void explain_empty(ct_run *run) {
    const ct_result *result = &run->block->result;
    if (!result->net_known || result->net_low_ns > 0) return;
    if (result->interval_low_ns > result->overheads[0].high_ns) return;
    ct_time_note(run, "indistinguishable from an empty call");
}

/* ---- the batches in their order ---- */

static double median_of(const ct_result *result, size_t first, size_t count) {
    double values[CT_BATCHES_MAX];
    for (size_t i = 0; i < count; i++)
        values[i] = (double)result->batches_ns[first + i] / (double)result->batches_calls[first + i];
    ct__stats_sort(values, count);
    return ct__stats_median(values, count);
}

/* A trend over all batches that is no chance (4 deviations: 1 in 16,000) and matters (10 % between the thirds). */
static void explain_trend(ct_run *run) {
    char sentence[SENTENCE_SIZE];
    double values[CT_BATCHES_MAX], work[CT_BATCHES_MAX];
    ct__text text;
    const ct_result *result = &run->block->result;
    size_t count = result->batches, third = count / 3;
    if (!result->interval_known || count < TREND_BATCHES) return;
    for (size_t i = 0; i < count; i++) values[i] = (double)result->batches_ns[i] / (double)result->batches_calls[i];
    double deviate = ct__stats_trend(values, count, work);
    double first = median_of(result, 0, third), last = median_of(result, count - third, third);
    int faster = deviate < -4 && last < first * 0.9;
    int slower = deviate > 4 && first < last * 0.9;
    if (!faster && !slower) return;
    ct__text_start(&text, sentence, sizeof sentence);
    ct__text_put(&text, faster ? "still warming up: the last third is " : "it slows down: the last third is ");
    ct__text_put_percent(&text, faster ? 1 - last / first : last / first - 1, 0);
    ct__text_put(&text, faster ? " faster than the first" : " slower than the first");
    ct_time_note(run, sentence);
}

void ct__run_explain(ct_run *run) {
    explain_pilot(run);
    explain_clock(run);
    explain_growth(run);
    explain_empty(run);
    if (run->block->result.elapsed_ns < least_elapsed_ns) return;
    explain_gc(run);
    explain_waiting(run);
    explain_trend(run);
}
