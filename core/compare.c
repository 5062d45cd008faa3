/* SPDX-License-Identifier: MIT
 *
 * compare.c: candidates in turns.
 *
 * First every candidate is called, growing tenfold at the most, until its slot lasts long enough; these calls warm it
 * up and are forgotten. Then rounds follow until the budget is used up: all candidates in an order that turns from
 * round to round, and then all of them backwards, so each has two slots whose middle is the middle of the round. The
 * twin is one more candidate, which calls what the baseline calls.
 *
 * Invariant: a round counts only when all its slots are complete. In which slots another thread had the CPU is known,
 * since the system counts that; they say nothing of the candidate, and do not count where there are others.
 */
#include "compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "format.h"

static const uint64_t budget_each_ns = 250000000;
static const uint64_t least_slot_ns = 100000;
static const uint64_t most_calls = (uint64_t)1 << 22;

static const double rate_kept = 0.98; /* from slot to slot */

enum { ROUNDS_WANTED = 1000, STEPS_WANTED = 100, STILL_MOST = 4 };

/* ---- begin ---- */

static int begin_runs(ct_compare *compare, const char *const *names, const size_t *lengths) {
    for (size_t i = 0; i < compare->all; i++) {
        size_t from = i < compare->count ? i : compare->baseline;
        int status = ct__run_begin(names[from], lengths != NULL ? lengths[from] : 0, &compare->runs[i]);
        if (status != CT_OK) return status;
        compare->calls[i] = 1;
    }
    return CT_OK;
}

static void plan(ct_compare *compare, uint64_t budget_ns) {
    if (budget_ns == 0) budget_ns = budget_each_ns * compare->count;
    compare->block->comparison.budget_ns = budget_ns;
    compare->source = ct__clock_source();
    compare->budget_ticks = ct__clock_ticks_in(compare->source, budget_ns);
    uint64_t slot = compare->budget_ticks / (2 * compare->all * ROUNDS_WANTED);
    uint64_t least = ct__clock_ticks_in(compare->source, least_slot_ns);
    uint64_t steps = ct__clock_step(compare->source) * STEPS_WANTED;
    compare->step_known = steps > 0;
    if (slot < least) slot = least;
    compare->slot_ticks = slot > steps ? slot : steps;
    for (size_t i = 0; i < compare->all; i++) ct__batches_start(&compare->runs[i]->batches, compare->slot_ticks);
}

static ct_compare *allocate(size_t count, size_t baseline) {
    ct_compare *compare = calloc(1, sizeof *compare);
    ct__comparison_block *block = calloc(1, sizeof *block);
    if (compare == NULL || block == NULL) {
        free(compare);
        free(block);
        return NULL;
    }
    compare->block = block;
    compare->count = block->comparison.count = count;
    compare->baseline = block->comparison.baseline = baseline;
    compare->all = count + 1;
    block->comparison.results = block->results;
    block->comparison.ratios = block->ratios;
    block->comparison.notes = block->notes;
    return compare;
}

int ct_compare_begin(const char *const *names, size_t count, const ct_compare_options *options, ct_compare **compare) {
    static const ct_compare_options plain = {.size = sizeof plain};
    if (names == NULL || compare == NULL || count < 2 || count > CT_CANDIDATES_MAX) return CT_EINVAL;
    if (options == NULL) options = &plain;
    if (options->size < sizeof *options || options->baseline >= count) return CT_EINVAL;
    ct_compare *made = allocate(count, options->baseline);
    if (made == NULL) return CT_ENOMEM;
    int status = begin_runs(made, names, options->name_lengths);
    if (status != CT_OK) {
        ct_compare_free(made);
        return status;
    }
    plan(made, options->budget_ns);
    *compare = made;
    return CT_OK;
}

/* ---- time ---- */

uint64_t ct__compare_elapsed(const ct_compare *compare) {
    uint64_t now = ct__clock_read(compare->source), measured = 0;
    for (size_t i = 0; i < compare->all; i++) measured += compare->runs[i]->warm_ticks + compare->runs[i]->ticks;
    uint64_t passed = compare->started && now > compare->began ? now - compare->began : 0;
    return passed > measured ? passed : measured;
}

/* By the rounds so far; before the first by the slots of the warm-up. */
static uint64_t ticks_of_round(const ct_compare *compare, uint64_t now) {
    uint64_t rounds = compare->block->stored, sum = 0;
    for (size_t i = 0; i < compare->all; i++) sum += 2 * compare->last_slot[i];
    return rounds > 0 && now > compare->rounds_began ? (now - compare->rounds_began) / rounds : sum;
}

/* Half a round too much is as far from the budget as half a round too little. */
static int is_used_up(const ct_compare *compare) {
    uint64_t now = ct__compare_elapsed(compare), half = ticks_of_round(compare, now) / 2;
    if (compare->block->stored == CT__ROUNDS_MAX || compare->still >= STILL_MOST) return 1;
    return now >= compare->budget_ticks || half >= compare->budget_ticks - now;
}

/* ---- warming up ---- */

/* Calls for a slot that is long enough; more by the tenth part of what they are, or tenfold to warm up. What a slot
 * costs beyond its calls weighs on all candidates alike only if all slots are equally long. So the fastest slot counts,
 * which was not disturbed; but it is forgotten little by little. */
static void learn_calls(ct_compare *compare, size_t candidate, uint64_t span) {
    double calls = (double)compare->calls[candidate], most = compare->in_rounds ? calls * 1.1 + 1 : calls * 10;
    double now = span > 0 ? calls / (double)span : 0, before = compare->rates[candidate] * rate_kept;
    compare->rates[candidate] = now > before ? now : before;
    double fits = span > 0 ? (double)compare->slot_ticks * compare->rates[candidate] : most;
    if (span == 0 && compare->in_rounds) return;
    if (fits > most) fits = most;
    if (fits > (double)most_calls) fits = (double)most_calls;
    compare->calls[candidate] = fits < 1 ? 1 : (uint64_t)fits;
}

static void learn_slot(ct_compare *compare, size_t candidate, uint64_t span) {
    if (!compare->step_known && span > 0) { /* two thousand readings did not see it move: this was a step, or a few */
        compare->step_known = 1;
        if (span > compare->slot_ticks / STEPS_WANTED) compare->slot_ticks = span * STEPS_WANTED;
    }
    compare->last_slot[candidate] = span;
    compare->ready[candidate] = span >= compare->slot_ticks / 2 || compare->calls[candidate] == most_calls;
    learn_calls(compare, candidate, span);
}

/* Every candidate is called at least once; the twin, and the rest, while there is budget. */
static int find_unready(const ct_compare *compare, size_t *candidate) {
    int in_budget = ct__compare_elapsed(compare) < compare->budget_ticks;
    for (size_t i = 1; i <= compare->all; i++) {
        *candidate = (compare->turn + i) % compare->all;
        int called = compare->runs[*candidate]->calls > 0 || *candidate == compare->count;
        if (!called || (in_budget && !compare->ready[*candidate])) return 1;
    }
    return 0;
}

/* If so much of the budget is gone, what there is must do. Returns whether the calls so far are forgotten. */
static int begin_rounds(ct_compare *compare) {
    compare->in_rounds = 1;
    compare->rounds_began = ct__compare_elapsed(compare);
    compare->warm = compare->rounds_began <= compare->budget_ticks / 2;
    if (!compare->warm) return 0;
    for (size_t i = 0; i < compare->all; i++) {
        ct_run *run = compare->runs[i];
        ct__pilot_forget(run);
        run->phase = CT__EXACT;
        run->n = run->stop_at = 0;
        ct__batches_start(&run->batches, compare->slot_ticks);
    }
    return 1;
}

/* ---- rounds ---- */

/* A B C, then C B A; the next round B C A A C B. */
static size_t whose_turn(const ct_compare *compare) {
    size_t at = compare->at < compare->all ? compare->at : 2 * compare->all - 1 - compare->at;
    at += compare->first;
    return at < compare->all ? at : at - compare->all;
}

static void keep_round(ct_compare *compare) {
    ct__comparison_block *block = compare->block;
    int tied = 0, disturbed = 0;
    for (size_t i = 0; i < compare->all; i++) {
        double ticks = (double)compare->round_ticks[i], calls = (double)compare->round_calls[i];
        block->logs[i][block->stored] = ticks > 0 ? (float)log(ticks / calls) : NAN;
        block->disturbed[i][block->stored] = compare->calm[i] == 0;
        tied |= compare->round_ticks[i] == 0;
        disturbed |= compare->calm[i] == 0;
    }
    block->comparison.rounds_tied += (uint64_t)tied;
    block->comparison.rounds_disturbed += (uint64_t)disturbed;
    compare->still = tied ? compare->still + 1 : 0;
    block->stored++;
    compare->at = 0;
    compare->first = compare->first + 1 < compare->all ? compare->first + 1 : 0;
    memset(compare->round_ticks, 0, sizeof compare->round_ticks);
    memset(compare->round_calls, 0, sizeof compare->round_calls);
    memset(compare->calm, 0, sizeof compare->calm);
}

/* Of two slots, one in which another thread had the CPU counts for nothing. */
static void add_slot(ct_compare *compare, uint64_t span, uint64_t calls) {
    size_t at = compare->turn;
    const ct__usage *usage = &compare->runs[at]->usage;
    int disturbed = usage->os.known && usage->os.preemptions > compare->preemptions_before;
    if (disturbed && compare->calm[at] > 0) return;
    if (!disturbed && compare->calm[at]++ == 0) compare->round_ticks[at] = compare->round_calls[at] = 0;
    compare->round_ticks[at] += span;
    compare->round_calls[at] += calls;
}

static void finish_slot(ct_compare *compare) {
    const ct_run *run = compare->runs[compare->turn];
    uint64_t span = run->ticks - compare->ticks_before;
    if (run->ended || run->calls != run->stop_at) {
        compare->ended = 1;
        return;
    }
    if (!compare->in_rounds) {
        learn_slot(compare, compare->turn, span);
        return;
    }
    learn_calls(compare, compare->turn, span);
    add_slot(compare, span, run->calls - compare->calls_before);
    if (++compare->at == 2 * compare->all) keep_round(compare);
}

/* As ct_compare_next returns it. */
static int choose_turn(ct_compare *compare) {
    if (!compare->in_rounds) {
        size_t candidate;
        if (find_unready(compare, &candidate)) {
            compare->turn = candidate;
            return 1;
        }
        if (begin_rounds(compare)) return CT_WARM;
    }
    if (compare->at == 0 && is_used_up(compare)) return 0;
    compare->turn = whose_turn(compare);
    return 1;
}

static void give_turn(ct_compare *compare, size_t *candidate, ct_run **run) {
    ct_run *next = compare->runs[compare->turn];
    compare->ticks_before = next->ticks;
    compare->calls_before = next->calls;
    compare->preemptions_before = next->usage.os.preemptions;
    ct__run_turn(next, compare->calls[compare->turn]);
    *candidate = compare->turn;
    *run = next;
}

/* What the host did between warm-up and rounds is not on the budget. */
static void leave_out_break(ct_compare *compare) {
    uint64_t passed = ct__compare_elapsed(compare);
    if (passed > compare->rounds_began) compare->began += passed - compare->rounds_began;
}

int ct_compare_next(ct_compare *compare, size_t *candidate, ct_run **run) {
    if (compare->started && !compare->ended && !compare->between) finish_slot(compare);
    if (compare->between) leave_out_break(compare);
    if (!compare->started) {
        compare->turn = compare->all - 1; /* the first that warms up comes after it */
        compare->began = ct__clock_read(compare->source);
    }
    compare->started = 1;
    int what = compare->ended ? 0 : choose_turn(compare);
    compare->ended = what == 0;
    compare->between = what == CT_WARM;
    if (what == 1) give_turn(compare, candidate, run);
    return what;
}

double ct_compare_progress(const ct_compare *compare) {
    if (compare->ended || compare->budget_ticks == 0) return 1;
    double part = (double)ct__compare_elapsed(compare) / (double)compare->budget_ticks;
    return part < 1 ? part : 1;
}

void ct_compare_note(ct_compare *compare, const char *sentence) {
    ct__comparison_block *block = compare->block;
    size_t at = block->comparison.notes_count;
    ct__text text;
    if (at == CT__COMPARISON_NOTES_MAX) return;
    ct__text_start(&text, block->note_text[at], CT__NOTE_SIZE);
    ct__text_put(&text, sentence);
    block->notes[at] = block->note_text[at];
    block->comparison.notes_count = at + 1;
}
