/* SPDX-License-Identifier: MIT
 *
 * conclude.c: what was seen during a run becomes its result.
 *
 * Nothing is left out: outliers are counted, not removed, and overheads stand beside the times, not taken off them. A
 * fact that is not known is marked so and has its reason.
 */
#include <string.h>

#include "clock.h"
#include "codetimer.h"
#include "format.h"
#include "run.h"
#include "stats.h"

static const double interval_confidence = 0.95;

static void copy_text(char *to, size_t size, const char *from) {
    ct__text text;
    ct__text_start(&text, to, size);
    ct__text_put(&text, from);
}

/* ---- the clock ---- */

static void note_clock(ct_run *run) {
    if (ct__clock_source() != run->source)
        ct_time_note(run, "the clock lost its source during the run; the run kept it");
    if (run->backward > 0) ct_time_note(run, "the clock stepped back; the calls concerned count as 0 ns");
    if (run->ticks == 0 && run->calls > 0 && run->backward == 0)
        ct_time_note(run, "the clock did not move during the run; it is too coarse for it");
}

static void set_clock(ct_run *run) {
    ct_result *result = &run->block->result;
    uint64_t step = ct__clock_step(run->source);
    result->clock = ct__clock_source_name(run->source);
    result->resolution_ns = ct__clock_exact_ns(run->source, step > 0 ? step : run->least_step);
    note_clock(run);
}

/* ---- the batches ---- */

/* So few batches have no median to speak of: the mean agrees with the elapsed time that stands beside it. */
static double mean_per_call(const ct_result *result) {
    double ns = 0, calls = 0;
    for (size_t i = 0; i < result->batches; i++) {
        ns += (double)result->batches_ns[i];
        calls += (double)result->batches_calls[i];
    }
    return calls > 0 ? ns / calls : 0;
}

static void set_spread(ct_result *result, double *per_call, size_t rank) {
    double work[CT_BATCHES_MAX];
    size_t count = result->batches, mild, severe;
    ct__stats_sort(per_call, count);
    result->per_call_ns = ct__stats_median(per_call, count);
    result->interval_low_ns = per_call[rank];
    result->interval_high_ns = per_call[count - 1 - rank];
    result->min_ns = per_call[0];
    result->q1_ns = ct__stats_quantile(per_call, count, 0.25);
    result->q3_ns = ct__stats_quantile(per_call, count, 0.75);
    result->max_ns = per_call[count - 1];
    result->mad_ns = ct__stats_mad(per_call, count, result->per_call_ns, work);
    ct__stats_outliers(per_call, count, &mild, &severe);
    result->outliers_mild = mild;
    result->outliers_severe = severe;
}

static void set_batches(ct_run *run) {
    ct_result *result = &run->block->result;
    ct__batches *batches = &run->batches;
    double per_call[CT_BATCHES_MAX];
    ct__batches_finish(batches);
    result->batches = batches->count;
    for (size_t i = 0; i < batches->count; i++) {
        run->block->batches_ns[i] = ct__clock_ns(run->source, batches->ticks[i]);
        run->block->batches_calls[i] = batches->calls[i];
        per_call[i] = (double)run->block->batches_ns[i] / (double)batches->calls[i];
    }
    size_t rank;
    result->per_call_ns = mean_per_call(result);
    result->per_call_known = result->per_call_ns > 0; /* else the clock saw nothing of them */
    if (!result->per_call_known) return;
    result->interval_known = ct__stats_median_rank(batches->count, interval_confidence, &rank);
    if (result->interval_known) set_spread(result, per_call, rank);
}

/* The sum of the batches, and of the chunk that an error cut short. */
static uint64_t sum_elapsed_ns(const ct_run *run) {
    const ct_result *result = &run->block->result;
    uint64_t elapsed = 0, in_batches = 0;
    for (size_t i = 0; i < result->batches; i++) {
        elapsed += result->batches_ns[i];
        in_batches += run->batches.ticks[i];
    }
    return elapsed + ct__clock_ns(run->source, run->ticks - in_batches);
}

/* ---- the thread ---- */

static void set_cycles(ct_run *run) {
    ct_result *result = &run->block->result;
    ct_cycles *cycles = &run->cycles;
    if (cycles->kind != CT_CYCLES_NONE && run->process != ct__os_process_number()) {
        cycles->kind = CT_CYCLES_NONE; /* the clock of a thread begins anew in the child */
        copy_text(cycles->reason, sizeof cycles->reason, "the run was carried on in a forked child");
    }
    copy_text(run->block->cycles_source, sizeof run->block->cycles_source, cycles->source);
    copy_text(run->block->cycles_reason, sizeof run->block->cycles_reason, cycles->reason);
    result->cycles_kind = cycles->kind;
    result->cycles = cycles->kind == CT_CYCLES_NONE || !run->started ? 0 : cycles->value;
}

static void set_usage(ct_run *run) {
    run->usage.went_down |= run->process != ct__os_process_number(); /* as the cycles: it begins anew */
    ct__usage_tell(&run->usage, &run->block->result.usage);
}

/* ---- what the host knows ---- */

static void set_gc(ct_run *run, const ct_time_finish *finish) {
    ct__result_block *block = run->block;
    for (size_t i = 0; i < finish->gc_generations; i++) {
        if (finish->gc_after[i] < finish->gc_before[i]) {
            ct_time_note(run, "collections are not shown: a count of the host's collector went down during the run");
            return;
        }
        copy_text(block->gc_label_text[i], sizeof block->gc_label_text[i], finish->gc_labels[i]);
        block->gc_labels[i] = block->gc_label_text[i];
        block->gc_collections[i] = finish->gc_after[i] - finish->gc_before[i];
    }
    block->result.gc_generations = finish->gc_generations;
}

int ct_result_set_memory(ct_result *result, const ct_memory *memory) {
    ct__result_block *block = (ct__result_block *)result; /* its first member */
    if (result == NULL || memory == NULL || memory->kinds_count > CT_MEMORY_KINDS_MAX) return CT_EINVAL;
    block->result.memory = *memory;
    block->result.memory.kinds = block->kinds;
    for (size_t i = 0; i < memory->kinds_count; i++) {
        copy_text(block->kind_text[i], sizeof block->kind_text[i], memory->kinds[i].label);
        block->kinds[i] = (ct_memory_kind){block->kind_text[i], memory->kinds[i].count};
    }
    if (memory->reason == NULL) return CT_OK;
    copy_text(block->memory_reason, sizeof block->memory_reason, memory->reason);
    block->result.memory.reason = block->memory_reason;
    return CT_OK;
}

uint64_t ct_result_memory_calls(const ct_result *result) {
    const double budget_ns = 50e6, most = 100;
    if (result == NULL || result->calls == 0) return 0;
    const double fits = result->per_call_known && result->per_call_ns > 0 ? budget_ns / result->per_call_ns : most;
    return fits < 1 ? 1 : fits > most ? (uint64_t)most : (uint64_t)fits;
}

static double less(double a, double b) { return a > b ? a - b : 0; }

int ct_result_set_overheads(ct_result *result, size_t count, const ct_overhead *overheads) {
    ct__result_block *block = (ct__result_block *)result; /* its first member */
    if (result == NULL || count > CT_OVERHEADS_MAX || (count > 0 && overheads == NULL)) return CT_EINVAL;
    for (size_t i = 0; i < count; i++) {
        copy_text(block->overhead_text[i], sizeof block->overhead_text[i], overheads[i].label);
        block->overheads[i] = overheads[i];
        block->overheads[i].label = block->overhead_text[i];
    }
    result->overheads_count = count;
    result->net_known = result->overheads_count > 0 && result->interval_known;
    if (!result->net_known) return CT_OK;
    result->net_low_ns = less(result->interval_low_ns, block->overheads[0].high_ns);
    result->net_high_ns = less(result->interval_high_ns, block->overheads[0].low_ns);
    return CT_OK;
}

static void set_finish(ct_run *run, const ct_time_finish *finish) {
    ct__result_block *block = run->block;
    set_gc(run, finish);
    (void)ct_result_set_overheads(&block->result, finish->overheads_count, finish->overheads);
    if (finish->gc_time != NULL) block->result.gc_time = *finish->gc_time;
    block->result.gc_time_known = finish->gc_time != NULL;
    if (finish->memory != NULL) (void)ct_result_set_memory(&block->result, finish->memory);
    if (finish->interrupted == NULL) return;
    copy_text(block->interrupted, sizeof block->interrupted, finish->interrupted);
    block->result.interrupted = block->interrupted;
}

/* ---- all together ---- */

ct_result *ct__run_conclude(ct_run *run, const ct_time_finish *finish) {
    ct_result *result = &run->block->result;
    result->n = result->automatic ? run->calls : run->n;
    result->calls = run->calls;
    ct__clock_tend(); /* the rate is best known now */
    set_clock(run);
    set_batches(run);
    result->elapsed_ns = sum_elapsed_ns(run);
    set_cycles(run);
    set_usage(run);
    if (finish != NULL) set_finish(run, finish);
    ct__run_explain(run);
    return result;
}
