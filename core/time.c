/* SPDX-License-Identifier: MIT
 *
 * time.c: the run, in pull style.
 *
 * The host owns the loop; this file says how many calls to make in one go (a chunk) and reads the clock around each.
 * Chunks start at one call and at most double (tenfold while an automatic run looks for its n), so that neither a fast
 * nor a slow body is overshot; they aim at what is left of the current batch, at most 5 ms, so that an interrupt or
 * another thread never waits long. The cycles are read outermost, at both ends of a stretch. Between begin and end
 * nothing is allocated. A chunk that an error cuts short counts in calls and elapsed time, but in no batch: how long
 * its completed calls took is not known.
 */
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "codetimer.h"
#include "cycles.h"
#include "format.h"
#include "run.h"

static const uint64_t batch_ns = 1000000;
static const uint64_t chunk_max_ns = 5000000;

/* Without a clock that moves, growth has to end somewhere: 4 million calls of 10 ns are 40 ms. */
static const uint64_t chunk_max_calls = (uint64_t)1 << 22;

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
    result->overheads = block->overheads;
    result->notes = block->notes;
    result->priority = block->priority;
    return block;
}

static void prepare(ct_run *run) {
    ct__clock_tend();
    run->source = ct__clock_source();
    run->process = ct__os_process_number();
    run->next_chunk = 1;
    run->chunk_ticks_max = run->pause_ticks = ct__clock_ticks_in(run->source, chunk_max_ns);
    ct__batches_start(&run->batches, ct__clock_ticks_in(run->source, batch_ns));
    ct__os_priority_text(run->block->priority, sizeof run->block->priority);
    ct_thread_cycles(&run->cycles_before); /* opens what it needs outside the window */
    run->cycles = run->cycles_before;
    run->cycles.value = 0;
}

static int begin(const char *name, size_t length, ct_run **run) {
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
    prepare(made);
    *run = made;
    return CT_OK;
}

int ct_time_begin(const char *name, int64_t n, const ct_time_options *options, ct_run **run) {
    if (run == NULL || n < CT_N_AUTOMATIC || (options != NULL && options->size < sizeof *options)) return CT_EINVAL;
    int status = begin(name, options != NULL ? options->name_length : 0, run);
    if (status != CT_OK) return status;
    if (n == CT_N_AUTOMATIC) {
        ct__pilot_start(*run, options != NULL ? options->budget_ns : 0);
    } else {
        (*run)->n = (*run)->stop_at = (uint64_t)n;
    }
    return CT_OK;
}

int ct__run_begin(const char *name, size_t name_length, ct_run **run) {
    int status = begin(name, name_length, run);
    if (status != CT_OK) return status;
    (*run)->turns = 1;
    (*run)->next_chunk = chunk_max_calls; /* how many calls a turn has is known to be right */
    return CT_OK;
}

void ct__run_turn(ct_run *run, uint64_t calls) {
    if (run->ended) return;
    run->stop_at = run->calls + calls;
    run->n = run->stop_at;
}

/* ---- stretches ---- */

static void open_stretch(ct_run *run) {
    run->open = run->started = 1;
    ct__usage_read(&run->usage_before, !run->turns);
    ct_thread_cycles(&run->cycles_before);
    run->wall_before = run->pause_start = ct__clock_read(run->source);
    if (run->began == 0) run->began = run->wall_before;
}

/* What cannot be had for one stretch cannot be had for their sum. */
static void add_cycles(ct_run *run) {
    ct_cycles after, between;
    ct_thread_cycles(&after);
    ct__cycles_between(&run->cycles_before, &after, &between);
    if (run->cycles.kind == CT_CYCLES_NONE && run->usage.parts > 0) return;
    if (between.kind != CT_CYCLES_NONE && run->usage.parts > 0) between.value += run->cycles.value;
    run->cycles = between;
}

static void close_stretch(ct_run *run, uint64_t now) {
    ct__usage usage;
    if (!run->open) return;
    run->open = 0;
    add_cycles(run);
    ct__usage_read(&usage, !run->turns);
    ct__usage_add(&run->usage, &run->usage_before, &usage);
    if (now > run->wall_before) run->wall_ticks += now - run->wall_before;
}

/* ---- chunks ---- */

/* By all calls, because a single chunk says little on a coarse clock; but where the last one that told was faster, the
 * first calls were slow ones. A pilot grows fast, and goes by the last alone. */
double ct__run_rate(const ct_run *run) {
    double last = run->rate_ticks > 0 ? (double)run->rate_calls / (double)run->rate_ticks : 0;
    double all = run->ticks > 0 ? (double)run->calls / (double)run->ticks : 0;
    return run->phase != CT__PILOT && all > last ? all : last;
}

/* Calls that fit into what is left of the batch, by the rate so far; growth and the 5 ms bound it. */
static uint64_t plan_chunk(const ct_run *run) {
    uint64_t left = run->stop_at - run->calls;
    uint64_t wanted = run->next_chunk;
    double rate = ct__run_rate(run);
    if (rate > 0) {
        const ct__batches *batches = &run->batches;
        uint64_t room = batches->target > batches->open_ticks ? batches->target - batches->open_ticks : 1;
        if (room > run->chunk_ticks_max || run->turns) room = run->chunk_ticks_max;
        double fits = (double)room * rate;
        if (fits < (double)wanted) wanted = fits < 1 ? 1 : (uint64_t)fits;
    }
    return wanted < left ? wanted : left;
}

int ct_time_next(ct_run *run, uint64_t *k) {
    if (run->phase == CT__WARM) {
        run->used_ticks = ct__pilot_spent(run);
        close_stretch(run, ct__clock_read(run->source));
        ct__pilot_forget(run);
        return CT_WARM;
    }
    if (run->ended || (run->phase == CT__EXACT && run->calls == run->stop_at)) return 0;
    run->chunk = run->phase == CT__EXACT ? plan_chunk(run) : ct__pilot_plan(run);
    run->due = 0;
    *k = run->chunk;
    if (run->chunk == 0) { /* the budget is used up */
        run->ended = 1;
        close_stretch(run, ct__clock_read(run->source));
        return 0;
    }
    if (!run->open) open_stretch(run);
    run->chunk_start = ct__clock_read(run->source);
    return 1;
}

/* Millions of calls take longer than a hundredth of a chunk, if the clock runs. */
static int moved(const ct_run *run, uint64_t span) {
    return span > 0 && (run->chunk < chunk_max_calls || span > run->chunk_ticks_max / 100);
}

/* On a coarse clock all spans are multiples of its step. */
static void learn_step(ct_run *run, uint64_t ticks) {
    if (ticks > 0 && (run->least_step == 0 || ticks < run->least_step)) run->least_step = ticks;
}

static uint64_t measure_span(ct_run *run, uint64_t end) {
    uint64_t span = end - run->chunk_start;
    if (end < run->chunk_start) {
        span = 0;
        run->backward++;
    }
    run->still = moved(run, span) ? 0 : run->still + 1;
    learn_step(run, span);
    learn_step(run, span > run->last_span ? span - run->last_span : run->last_span - span);
    run->last_span = span;
    return span;
}

static void learn_rate(ct_run *run, uint64_t span, uint64_t made) {
    if (span == 0) return;
    run->rate_calls = made;
    run->rate_ticks = span;
}

static int is_over(const ct_run *run) { return run->ended || (run->phase == CT__EXACT && run->calls == run->stop_at); }

int ct_time_done(ct_run *run, uint64_t made) {
    uint64_t end = ct__clock_read(run->source);
    if (run->chunk == 0) return 0; /* none was begun */
    uint64_t span = measure_span(run, end);
    int whole = made >= run->chunk || run->due;
    if (made > run->chunk) made = run->chunk;
    run->ticks += span;
    run->calls += made;
    run->ended = !whole;
    if (is_over(run)) close_stretch(run, end);
    if (whole && made > 0) {
        learn_rate(run, span, made);
        ct__batches_add(&run->batches, span, made);
        if (run->phase != CT__EXACT) ct__pilot_learn(run, span, made);
    }
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

double ct_time_progress(const ct_run *run) {
    double all = run->phase == CT__EXACT ? (double)run->n : (double)run->budget_ticks;
    double now = run->phase == CT__EXACT ? (double)run->calls : (double)ct__pilot_spent(run);
    if (run->ended || all <= 0) return 1;
    return now < all ? now / all : 1;
}

double ct_time_per_call_ns(const ct_run *run) {
    return run->calls > 0 ? (double)ct__clock_ns(run->source, run->ticks) / (double)run->calls : 0;
}

/* ---- end ---- */

void ct_time_note(ct_run *run, const char *sentence) {
    ct__result_block *block = run->block;
    size_t at = block->result.notes_count;
    if (at == CT__NOTES_MAX) return;
    ct__text text;
    ct__text_start(&text, block->note_text[at], CT__NOTE_SIZE);
    ct__text_put(&text, sentence);
    block->notes[at] = block->note_text[at];
    block->result.notes_count = at + 1;
}

static int is_valid(const ct_time_finish *finish) {
    return finish == NULL || (finish->size >= sizeof *finish && finish->gc_generations <= CT_GC_GENERATIONS_MAX &&
                              finish->overheads_count <= CT_OVERHEADS_MAX &&
                              (finish->memory == NULL || finish->memory->kinds_count <= CT_MEMORY_KINDS_MAX));
}

int ct_time_end(ct_run *run, const ct_time_finish *finish, ct_result **result) {
    if (result == NULL || !is_valid(finish)) {
        ct_run_free(run);
        return CT_EINVAL;
    }
    if (run->open) close_stretch(run, ct__clock_read(run->source)); /* stopped between two chunks, or by the budget */
    *result = ct__run_conclude(run, finish);
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
