/* SPDX-License-Identifier: MIT
 *
 * pilot.c: how an automatic run finds out how many calls to make.
 *
 * The budget comes first. From one call on, chunks grow at most tenfold by the wall clock until one lasts long enough
 * to tell how long a call takes, or a tenth of the budget is gone. These calls also warm the body up, and are
 * forgotten; but if they alone took more than half of the budget they are what there is, and stay. Then batches follow,
 * long against the steps of the clock, until the budget is used up. The first chunks are of k, 2k, 2k and k calls: work
 * that takes no longer for twice the calls is not what the calls do.
 *
 * Whatever the clock does, a run ends: by the time that has passed or was measured, and where the clock stands still by
 * the number of chunks.
 */
#include <string.h>

#include "clock.h"
#include "run.h"

static const uint64_t default_budget_ns = 200000000;
static const uint64_t least_batch_ns = 100000;
static const uint64_t most_calls = (uint64_t)1 << 22; /* in one chunk, as in time.c */

enum {
    BATCHES_WANTED = 1000,
    STEPS_WANTED = 100,
    STEPS_TO_TELL = 8,
    STILL_MOST = 20,
    PILOT_PART = 10,
    GROWTH_CHUNKS = 12
};

void ct__pilot_start(ct_run *run, uint64_t budget_ns) {
    if (budget_ns == 0) budget_ns = default_budget_ns;
    run->phase = CT__PILOT;
    run->n = run->stop_at = INT64_MAX;
    run->block->result.automatic = 1;
    run->block->result.budget_ns = budget_ns;
    run->budget_ticks = ct__clock_ticks_in(run->source, budget_ns);
}

/* ---- how long a call takes ---- */

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* At least 1. "otherwise": nothing is known yet. */
static uint64_t calls_in(const ct_run *run, uint64_t ticks, uint64_t otherwise) {
    double rate = ct__run_rate(run);
    if (rate <= 0) return otherwise;
    double fits = (double)ticks * rate;
    if (fits >= (double)most_calls) return most_calls;
    return fits < 1 ? 1 : (uint64_t)fits;
}

/* ---- the budget ---- */

uint64_t ct__pilot_spent(const ct_run *run) {
    uint64_t now = ct__clock_read(run->source);
    uint64_t passed = run->open && now > run->began ? now - run->began : 0;
    return run->used_ticks + (run->ticks > passed ? run->ticks : passed);
}

/* Half a call too much is as far from the budget as half a call too little. Whatever the warm-up took, something is
 * measured. */
static int is_used_up(const ct_run *run) {
    if (run->calls == 0) return 0;
    if (run->still >= STILL_MOST) return 1;
    double rate = ct__run_rate(run), half = rate > 0 ? 0.5 / rate : 0;
    return (double)ct__pilot_spent(run) + half >= (double)run->budget_ticks;
}

/* ---- pilot ---- */

static uint64_t pilot_chunk(const ct_run *run) {
    uint64_t target = least(run->budget_ticks / 40 + 1, run->chunk_ticks_max);
    uint64_t fits = calls_in(run, target, most_calls), grown = run->next_chunk;
    return least(least(fits, grown), most_calls);
}

static int knows_enough(const ct_run *run, uint64_t span) {
    uint64_t target = least(run->budget_ticks / 50 + 1, run->chunk_ticks_max / 2);
    return span >= target || run->ticks >= run->budget_ticks / PILOT_PART || run->next_chunk >= most_calls ||
           ct__pilot_spent(run) >= run->budget_ticks / 2 || run->still >= STILL_MOST;
}

/* Where not even two thousand readings see the clock move, its chunks tell its step. */
static uint64_t find_step(const ct_run *run) {
    uint64_t step = ct__clock_step(run->source);
    return step > 0 ? step : run->least_step;
}

/* Short ones, because on a busy machine more than half of the long ones would be disturbed, and with them their median;
 * but long against what reading the clock costs. */
static uint64_t batch_ticks(const ct_run *run, uint64_t step) {
    uint64_t floor = least(ct__clock_ticks_in(run->source, least_batch_ns), run->budget_ticks / 100);
    uint64_t target = run->budget_ticks / BATCHES_WANTED, long_enough = step * STEPS_WANTED;
    if (target < floor) target = floor;
    if (target == 0) target = 1;
    return target > long_enough ? target : least(long_enough, run->budget_ticks);
}

/* Asked where the budget and the clock allow it. */
static void start_growth(ct_run *run, uint64_t step) {
    uint64_t half = least(run->batches.target, run->chunk_ticks_max) / 2, k = calls_in(run, half, 1);
    double rate = ct__run_rate(run), fits = (double)run->budget_ticks / 4 * rate;
    memset(&run->growth, 0, sizeof run->growth);
    if (k > most_calls / 2) k = most_calls / 2;
    if (half >= step * STEPS_TO_TELL && 6.0 * (double)k <= fits) run->growth.k = k;
}

static void end_pilot(ct_run *run) {
    run->kept = ct__pilot_spent(run) > run->budget_ticks / 2 || run->ticks == 0;
    run->phase = run->kept ? CT__MEASURING : CT__WARM;
    if (run->ticks == 0) run->batches.target = run->budget_ticks; /* a clock too coarse for more than one */
}

void ct__pilot_forget(ct_run *run) {
    ct_result *result = &run->block->result;
    result->warmup_calls = run->calls;
    result->warmup_ns = ct__clock_ns(run->source, run->ticks);
    run->warm_ticks = run->ticks;
    run->calls = run->ticks = run->wall_ticks = run->began = 0;
    run->cycles.value = 0;
    memset(&run->usage, 0, sizeof run->usage);
    uint64_t step = find_step(run);
    ct__batches_start(&run->batches, batch_ticks(run, step));
    start_growth(run, step);
    run->phase = CT__MEASURING;
}

/* ---- measuring ---- */

static uint64_t measured_chunk(const ct_run *run) {
    const ct__batches *batches = &run->batches;
    const ct__growth *growth = &run->growth;
    if (growth->k > 0) return growth->asked % 4 == 1 || growth->asked % 4 == 2 ? growth->k * 2 : growth->k;
    uint64_t room = batches->target > batches->open_ticks ? batches->target - batches->open_ticks : 1;
    return least(calls_in(run, least(room, run->chunk_ticks_max), most_calls), least(run->next_chunk, most_calls));
}

uint64_t ct__pilot_plan(ct_run *run) {
    if (run->phase == CT__PILOT) return pilot_chunk(run);
    return is_used_up(run) ? 0 : measured_chunk(run);
}

/* ---- after a chunk ---- */

/* Noise only lengthens, so the least of each kind counts; when it looks strange, it is asked twice more. */
static void learn_growth(ct_run *run, uint64_t span, uint64_t made) {
    ct__growth *growth = &run->growth;
    uint64_t *least_of = growth->asked % 4 == 1 || growth->asked % 4 == 2 ? &growth->twice : &growth->once;
    if (made != run->chunk) { /* cut short: no answer */
        memset(growth, 0, sizeof *growth);
        return;
    }
    if (*least_of == 0 || span < *least_of) *least_of = span;
    growth->asked++;
    int strange = growth->twice < growth->once + growth->once / 4;
    if (growth->asked % 4 == 0 && (!strange || growth->asked >= GROWTH_CHUNKS)) growth->k = 0;
}

void ct__pilot_learn(ct_run *run, uint64_t span, uint64_t made) {
    if (run->phase == CT__MEASURING) {
        if (run->growth.k > 0) learn_growth(run, span, made);
        return;
    }
    if (made == run->next_chunk && run->next_chunk < most_calls) run->next_chunk *= 10;
    if (knows_enough(run, span)) end_pilot(run);
}
