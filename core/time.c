/* SPDX-License-Identifier: MIT
 *
 * time.c: the run, in pull style.
 *
 * The host owns the loop; this file says how many calls to make in one go (a chunk) and reads the clock around each.
 * Chunks start at one call and at most double, so that neither a fast nor a slow body is overshot; they aim at what is
 * left of the current batch, at most 5 ms, so that an interrupt or another thread never waits long. The cycles are read
 * outermost, once at each end. Between begin and end nothing is allocated. A chunk that an error cuts short counts in
 * calls and elapsed time, but in no batch: how long its completed calls took is not known.
 */
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "codetimer.h"
#include "cycles.h"
#include "format.h"
#include "run.h"
#include "stats.h"

static const uint64_t batch_ns = 1000000;
static const uint64_t chunk_max_ns = 5000000;

/* Without a clock that moves, growth has to end somewhere: 4 million calls of 10 ns are 40 ms. */
static const uint64_t chunk_max_calls = (uint64_t)1 << 22;

static const double interval_confidence = 0.95;

/* ---- begin ---- */

static ct__result_block *make_block(const char *name, size_t length) {
    ct__result_block *block = calloc(1, sizeof *block + length + 1);
    if (block == NULL) return NULL;
    if (length > 0) memcpy(block->name, name, length);
    ct_result *result = &block->result;
    result->name = block->name;
    result->name_length = length;
    result->batches_ns = block->batches_ns;
    result->batches_calls = block->batches_calls;
    result->cycles_source = block->cycles_source;
    result->cycles_reason = block->cycles_reason;
    result->gc_labels = block->gc_labels;
    result->gc_collections = block->gc_collections;
    result->notes = block->notes;
    result->priority = block->priority;
    return block;
}

static void prepare(ct_run *run, uint64_t n) {
    ct__clock_tend();
    run->n = n;
    run->source = ct__clock_source();
    run->process = ct__os_process_number();
    run->next_chunk = 1;
    run->chunk_ticks_max = run->pause_ticks = ct__clock_ticks_in(run->source, chunk_max_ns);
    ct__batches_start(&run->batches, ct__clock_ticks_in(run->source, batch_ns));
    ct__os_priority_text(run->block->priority, sizeof run->block->priority);
    ct_thread_cycles(&run->cycles_before); /* opens what it needs outside the window */
    run->cycles_after = run->cycles_before;
}

int ct_time_begin(const char *name, int64_t n, const ct_time_options *options, ct_run **run) {
    if (run == NULL || n < 0 || (options != NULL && options->size < sizeof *options)) return CT_EINVAL;
    size_t length = options != NULL ? options->name_length : 0;
    if (name == NULL) {
        length = 0;
    } else if (length == 0) {
        length = strlen(name);
    }
    ct_run *made = calloc(1, sizeof *made);
    ct__result_block *block = make_block(name, length);
    if (made == NULL || block == NULL) {
        free(made);
        free(block);
        return CT_ENOMEM;
    }
    made->block = block;
    prepare(made, (uint64_t)n);
    *run = made;
    return CT_OK;
}

/* ---- chunks ---- */

/* Calls that fit into what is left of the batch, by the rate so far; growth and the 5 ms bound it. */
static uint64_t plan_chunk(const ct_run *run) {
    uint64_t left = run->n - run->calls;
    uint64_t wanted = run->next_chunk;
    if (run->ticks > 0 && run->calls > 0) {
        const ct__batches *batches = &run->batches;
        uint64_t room = batches->target > batches->open_ticks ? batches->target - batches->open_ticks : 1;
        if (room > run->chunk_ticks_max) room = run->chunk_ticks_max;
        double fits = (double)room * ((double)run->calls / (double)run->ticks);
        if (fits < (double)wanted) wanted = fits < 1 ? 1 : (uint64_t)fits;
    }
    return wanted < left ? wanted : left;
}

int ct_time_next(ct_run *run, uint64_t *k) {
    if (run->ended || run->calls == run->n) return 0;
    run->chunk = plan_chunk(run);
    run->due = 0;
    *k = run->chunk;
    if (!run->started) {
        run->started = 1;
        ct_thread_cycles(&run->cycles_before);
        run->pause_start = ct__clock_read(run->source);
    }
    run->chunk_start = ct__clock_read(run->source);
    return 1;
}

int ct_time_done(ct_run *run, uint64_t made) {
    uint64_t end = ct__clock_read(run->source);
    if (run->chunk == 0) return 0; /* none was begun */
    uint64_t span = end - run->chunk_start;
    if (end < run->chunk_start) {
        span = 0;
        run->backward++;
    }
    int whole = made >= run->chunk || run->due;
    if (made > run->chunk) made = run->chunk;
    run->ticks += span;
    run->calls += made;
    run->ended = !whole;
    if (run->ended || run->calls == run->n) ct_thread_cycles(&run->cycles_after);
    if (whole && made > 0) ct__batches_add(&run->batches, span, made);
    if (made == run->chunk && run->chunk >= run->next_chunk && run->next_chunk < chunk_max_calls) run->next_chunk *= 2;
    run->chunk = 0;
    if (end - run->pause_start < run->pause_ticks && end >= run->pause_start) return 0;
    run->pause_start = end;
    return 1;
}

int ct_time_due(ct_run *run) {
    run->due = ct__clock_read(run->source) - run->chunk_start >= run->chunk_ticks_max;
    return run->due;
}

void ct_time_cut(ct_run *run) { run->due = 1; }

/* ---- end ---- */

static void copy_text(char *to, size_t size, const char *from) {
    ct__text text;
    ct__text_start(&text, to, size);
    ct__text_put(&text, from);
}

void ct_time_note(ct_run *run, const char *text) {
    ct__result_block *block = run->block;
    size_t at = block->result.notes_count;
    if (at == CT__NOTES_MAX) return;
    copy_text(block->note_text[at], CT__NOTE_SIZE, text);
    block->notes[at] = block->note_text[at];
    block->result.notes_count = at + 1;
}

static void note_clock(ct_run *run) {
    if (ct__clock_source() != run->source)
        ct_time_note(run, "the clock lost its source during the run; the run kept it");
    if (run->backward > 0) ct_time_note(run, "the clock stepped back; the calls concerned count as 0 ns");
    if (run->ticks == 0 && run->calls > 0 && run->backward == 0)
        ct_time_note(run, "the clock did not move during the run; it is too coarse for it");
}

/* So few batches have no median to speak of: the mean agrees with the elapsed time that stands beside it. */
static double mean_per_call(const ct_result *result) {
    uint64_t ns = 0, calls = 0;
    for (size_t i = 0; i < result->batches; i++) {
        ns += result->batches_ns[i];
        calls += result->batches_calls[i];
    }
    return (double)ns / (double)calls;
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
    if (batches->count == 0 || run->ticks == 0) return;
    size_t rank;
    result->per_call_known = 1;
    result->interval_known = ct__stats_median_rank(batches->count, interval_confidence, &rank);
    if (!result->interval_known) {
        result->per_call_ns = mean_per_call(result);
        return;
    }
    ct__stats_sort(per_call, batches->count);
    result->per_call_ns = ct__stats_median(per_call, batches->count);
    result->interval_low_ns = per_call[rank];
    result->interval_high_ns = per_call[batches->count - 1 - rank];
}

static void set_cycles(ct_run *run) {
    ct_result *result = &run->block->result;
    ct_cycles between;
    ct__cycles_between(&run->cycles_before, &run->cycles_after, &between);
    if (between.kind != CT_CYCLES_NONE && run->process != ct__os_process_number()) {
        between.kind = CT_CYCLES_NONE; /* the clock of a thread begins anew in the child */
        copy_text(between.reason, sizeof between.reason, "the run was carried on in a forked child");
    }
    copy_text(run->block->cycles_source, sizeof run->block->cycles_source, between.source);
    copy_text(run->block->cycles_reason, sizeof run->block->cycles_reason, between.reason);
    result->cycles_kind = between.kind;
    result->cycles = between.kind == CT_CYCLES_NONE || !run->started ? 0 : between.value;
}

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

static ct_result *make_result(ct_run *run, const ct_time_finish *finish) {
    ct__result_block *block = run->block;
    ct_result *result = &block->result;
    result->n = run->n;
    result->calls = run->calls;
    int stopped_between = run->started && !run->ended && run->calls < run->n;
    if (stopped_between) ct_thread_cycles(&run->cycles_after);
    ct__clock_tend(); /* the rate is best known now */
    result->clock = ct__clock_source_name(run->source);
    note_clock(run);
    set_batches(run);
    result->elapsed_ns = sum_elapsed_ns(run);
    set_cycles(run);
    if (finish == NULL) return result;
    set_gc(run, finish);
    if (finish->interrupted != NULL) {
        copy_text(block->interrupted, sizeof block->interrupted, finish->interrupted);
        result->interrupted = block->interrupted;
    }
    return result;
}

int ct_time_end(ct_run *run, const ct_time_finish *finish, ct_result **result) {
    int valid = result != NULL && (finish == NULL || (finish->size >= sizeof *finish &&
                                                      finish->gc_generations <= CT_GC_GENERATIONS_MAX));
    if (!valid) {
        ct_run_free(run);
        return CT_EINVAL;
    }
    *result = make_result(run, finish);
    run->block = NULL;
    ct_run_free(run);
    return CT_OK;
}

void ct_run_free(ct_run *run) {
    if (run == NULL) return;
    free(run->block);
    free(run);
}

void ct_result_free(ct_result *result) { free(result); }
