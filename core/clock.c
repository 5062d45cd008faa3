/* SPDX-License-Identifier: MIT
 *
 * clock.c: which clock is read, and what its ticks are worth.
 *
 * The hardware counter is used when the CPU calls it invariant, the system trusts it for its own clock, and it agrees
 * with the system's raw clock; else the system's clock. ct_now_ns follows a line (anchor, rate) of the current map. A
 * better rate makes a new map: its new line starts 1 ms in the future and until then equals the old one, so that no
 * reader on any CPU, early or late, sees time step back. Maps are written once, published by their index, and never
 * reused; there are as many as there can be changes. A counter that stops agreeing is given up for good.
 */
#include "clock.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate.h"
#include "codetimer.h"
#include "format.h"
#include "scale.h"

typedef struct line {
    uint64_t ticks, ns, rate;
} line;

typedef struct map {
    int source;
    line before, after;
    uint64_t switch_ticks; /* "after" holds from here */
} map;

/* The rate is refined when this much time has passed since the first bracket. */
static const uint64_t refine_after_ns[] = {10000000, 100000000, 1000000000, 10000000000, 100000000000};

enum { REFINEMENTS = sizeof refine_after_ns / sizeof refine_after_ns[0], MAPS = REFINEMENTS + 2 };

enum { UNCHOSEN = 0, CHOSEN = 1, CHOOSING = 2 }; /* CHOOSING + the number of the process that is at it */

static const uint64_t second_ns = 1000000000;
static const uint64_t settle_ns = 1000000;

/* Both clocks come from one oscillator: beyond this (and the error of the calibration) the counter is wrong. */
static const double drift_ppm = 200;

struct ct__clock_shared ct__clock_shared;

static _Atomic uint64_t state;
static _Atomic uint32_t current;         /* index of the map in use */
static _Atomic uint64_t tending_process; /* 0, or the process in which a thread is at it */
static _Atomic int given_up;
static map maps[MAPS];
static ct__bracket first, agreed; /* written while choosing or tending */
static uint32_t refined;
static ct__os_counter counter;
static char reason[200];

static uint64_t follow(const line *along, uint64_t ticks) {
    return ticks < along->ticks ? along->ns : along->ns + ct__scale(ticks - along->ticks, along->rate);
}

static uint64_t map_ns(const map *along, uint64_t ticks) {
    return follow(ticks < along->switch_ticks ? &along->before : &along->after, ticks);
}


static void publish(uint32_t index) {
    atomic_store(&ct__clock_shared.source, maps[index].source);
    if (maps[index].source == CT__SOURCE_SYSTEM) atomic_store(&ct__clock_shared.due_ticks, INT64_MAX);
    atomic_store_explicit(&current, index, memory_order_release);
}

/* ---- choosing ---- */

static int wants(const char *choice) {
    const char *wish = getenv("CODETIMER_CLOCK");
    return wish != NULL && strcmp(wish, choice) == 0;
}

static void explain(const char *why, double error_ppm) {
    ct__text text;
    ct__text_start(&text, reason, sizeof reason);
    const char *wish = getenv("CODETIMER_CLOCK");
    if (wish != NULL && *wish != '\0' && !wants("tsc") && !wants("monotonic"))
        ct__text_put(&text, "CODETIMER_CLOCK is neither tsc nor monotonic and is ignored; ");
    ct__text_put(&text, why);
    if (error_ppm <= 0) return;
    ct__text_put(&text, "; calibrated within ");
    ct__text_put_decimal(&text, error_ppm, 1);
    ct__text_put(&text, " ppm");
}

static void use_system(const char *why) {
    uint64_t now = ct__os_clock_ns();
    line identity = {now, now, (uint64_t)1 << 32};
    maps[0] = (map){CT__SOURCE_SYSTEM, identity, identity, 0};
    explain(why, 0);
}

static void use_counter(const ct__calibration *calibration, const char *why) {
    line along = {calibration->first.ticks, calibration->first.ns, calibration->rate};
    maps[0] = (map){CT__SOURCE_COUNTER, along, along, 0};
    first = agreed = calibration->first;
    uint64_t due = ct__scale_ratio(refine_after_ns[0], (uint64_t)1 << 32, calibration->rate);
    atomic_store(&ct__clock_shared.due_ticks, calibration->first.ticks + due);
    explain(why, calibration->error_ppm);
}

static void choose_source(void) {
    ct__calibration calibration = {0};
    ct__os_counter_probe(&counter);
    if (!counter.present) {
        use_system(counter.reason);
        return;
    }
    ct__calibrate(&calibration);
    int usable = calibration.rate != 0 && (counter.trusted || wants("tsc"));
    /* The reference of thread cycles, whatever the clock. */
    atomic_store(&ct__clock_shared.rate, usable ? calibration.rate : 0);
    if (wants("monotonic")) {
        use_system("CODETIMER_CLOCK=monotonic");
    } else if (wants("tsc") && calibration.rate != 0) {
        use_counter(&calibration, "CODETIMER_CLOCK=tsc");
    } else if (!counter.trusted) {
        use_system(counter.reason);
    } else if (!calibration.agrees) {
        atomic_store(&ct__clock_shared.rate, 0);
        use_system("the counter does not run at a constant rate: it disagrees with the system's raw clock");
    } else {
        use_counter(&calibration, counter.reason);
    }
}

/* One thread chooses, the others wait; a fork in the middle leaves the child to begin again. */
static void choose(void) {
    uint64_t mine = CHOOSING + ct__os_process_number();
    uint64_t seen = atomic_load_explicit(&state, memory_order_acquire);
    while (seen != CHOSEN) {
        if (seen == mine) {
            ct__os_rest();
        } else if (atomic_compare_exchange_strong(&state, &seen, mine)) {
            choose_source();
            publish(0);
            atomic_store_explicit(&state, CHOSEN, memory_order_release);
            return;
        }
        seen = atomic_load_explicit(&state, memory_order_acquire);
    }
}

static inline const map *current_map(void) {
    if (atomic_load_explicit(&state, memory_order_acquire) != CHOSEN) choose();
    return &maps[atomic_load_explicit(&current, memory_order_acquire)];
}

/* ---- housekeeping ---- */

/* From now on the system's clock: continue where the counter had led, or would have led if it had gone on rightly. */
static void give_up(const ct__bracket *now) {
    const map *old = &maps[atomic_load(&current)];
    uint64_t led = map_ns(old, now->ticks);
    uint64_t should = map_ns(old, agreed.ticks) + (now->ns > agreed.ns ? now->ns - agreed.ns : 0);
    uint64_t at = ct__os_clock_ns();
    line along = {at, led > should ? led : should, (uint64_t)1 << 32};
    uint32_t next = atomic_load(&current) + 1;
    maps[next] = (map){CT__SOURCE_SYSTEM, along, along, 0};
    atomic_store(&given_up, 1);
    publish(next);
}

static void refine(const ct__bracket *now) {
    uint64_t rate = ct__scale_rate(now->ns - first.ns, now->ticks - first.ticks);
    if (rate == 0) return;
    const map *old = &maps[atomic_load(&current)];
    uint32_t next = atomic_load(&current) + 1;
    uint64_t start = ct__ticks() + ct__scale_ratio(settle_ns, (uint64_t)1 << 32, rate);
    line along = {start, map_ns(old, start), rate};
    maps[next] = (map){CT__SOURCE_COUNTER, old->after, along, start};
    atomic_store(&ct__clock_shared.rate, rate);
    publish(next);
}

static void schedule(const ct__bracket *now) {
    uint64_t since = now->ns - first.ns;
    uint64_t wait = second_ns;
    if (refined < REFINEMENTS && refine_after_ns[refined] > since) wait = refine_after_ns[refined] - since;
    if (wait > second_ns) wait = second_ns;
    uint64_t rate = atomic_load(&ct__clock_shared.rate);
    atomic_store(&ct__clock_shared.due_ticks, now->ticks + ct__scale_ratio(wait, (uint64_t)1 << 32, rate));
}

/* Refinement makes the tolerance of the check the drift alone; before it the calibration may be off by as much again.
 * */
static void check_and_refine(void) {
    ct__bracket now;
    double tolerance = refined == 0 ? 4 * drift_ppm : drift_ppm;
    int holds = ct__calibration_holds(&agreed, atomic_load(&ct__clock_shared.rate), tolerance, &now);
    if (holds == 0) holds = ct__calibration_holds(&agreed, atomic_load(&ct__clock_shared.rate), tolerance, &now);
    if (holds == 0) {
        give_up(&now);
        return;
    }
    if (holds == 1) {
        agreed = now;
        int due = refined < REFINEMENTS && now.ns - first.ns >= refine_after_ns[refined];
        if (due) {
            refine(&now);
            while (refined < REFINEMENTS && now.ns - first.ns >= refine_after_ns[refined]) refined++;
        }
    }
    schedule(&now);
}

/* Never waits: whoever finds another thread at it goes on. A lock left behind by a fork is taken over. */
static void tend(void) {
    uint64_t process = ct__os_process_number();
    uint64_t holder = atomic_load(&tending_process);
    if (holder == process || !atomic_compare_exchange_strong(&tending_process, &holder, process)) return;
    if (maps[atomic_load(&current)].source == CT__SOURCE_COUNTER) check_and_refine();
    atomic_store(&tending_process, 0);
}

static int is_due(const map *along, uint64_t ticks) {
    int backwards = ticks < along->before.ticks && ticks < along->after.ticks;
    return backwards || (int64_t)(ticks - atomic_load_explicit(&ct__clock_shared.due_ticks, memory_order_relaxed)) >= 0;
}

void ct__clock_tend(void) {
    const map *along = current_map();
    if (along->source == CT__SOURCE_COUNTER && is_due(along, ct__ticks())) tend();
}

/* ---- reading ---- */

int ct__clock_source(void) { return current_map()->source; }

const char *ct__clock_source_name(int source) {
    return source == CT__SOURCE_COUNTER ? counter.name : ct__os_clock_name();
}

double ct__clock_frequency_hz(void) {
    current_map();
    uint64_t rate = atomic_load(&ct__clock_shared.rate);
    return rate == 0 ? 0 : 4294967296.0 * 1e9 / (double)rate;
}

uint64_t ct__clock_ticks_in(int source, uint64_t ns) {
    uint64_t rate = atomic_load(&ct__clock_shared.rate);
    return source == CT__SOURCE_COUNTER && rate != 0 ? ct__scale_ratio(ns, (uint64_t)1 << 32, rate) : ns;
}

uint64_t ct_now_ns(void) {
    static _Thread_local uint64_t last; /* a counter that jumps back must not take this thread with it */
    const map *along = current_map();
    uint64_t ticks = ct__clock_read(along->source); /* fenced: not before what another thread has published is seen */
    while (along != current_map()) { /* ticks must be read while their map is current */
        along = current_map();
        ticks = ct__clock_read(along->source);
    }
    uint64_t now = map_ns(along, ticks);
    if (along->source == CT__SOURCE_COUNTER && (is_due(along, ticks) || now + 1000 < last)) tend();
    if (now > last) last = now;
    return last;
}

/* ---- describing ---- */

enum { COST_READS = 64, COST_ROUNDS = 8, STEP_READS = 2000 };

/* The least mean of a few short loops. */
static double measure_cost_ns(int source) {
    uint64_t best = UINT64_MAX;
    for (int round = 0; round < COST_ROUNDS; round++) {
        uint64_t start = ct__clock_read(source);
        for (int i = 0; i < COST_READS; i++) (void)ct__clock_read(source);
        uint64_t end = ct__clock_read(source);
        if (end > start && end - start < best) best = end - start;
    }
    return best == UINT64_MAX ? 0 : (double)ct__clock_ns(source, best) / COST_READS;
}

uint64_t ct__clock_step(int source) {
    uint64_t best = UINT64_MAX;
    uint64_t before = ct__clock_read(source);
    for (int i = 0; i < STEP_READS; i++) {
        uint64_t after = ct__clock_read(source);
        if (after > before && after - before < best) best = after - before;
        before = after;
    }
    return best == UINT64_MAX ? 0 : best;
}

double ct__clock_exact_ns(int source, uint64_t ticks) {
    double hz = ct__clock_frequency_hz();
    return source == CT__SOURCE_COUNTER && hz > 0 ? (double)ticks * 1e9 / hz : (double)ticks;
}

void ct_clock_info(ct_clock *clock) {
    ct__text text;
    ct__clock_tend();
    int source = ct__clock_source();
    ct__text_start(&text, clock->source, sizeof clock->source);
    ct__text_put(&text, ct__clock_source_name(source));
    clock->resolution_ns = ct__clock_exact_ns(source, ct__clock_step(source));
    clock->read_cost_ns = measure_cost_ns(source);
    clock->frequency_hz = ct__clock_frequency_hz();
    ct__text_start(&text, clock->reason, sizeof clock->reason);
    if (atomic_load(&given_up)) {
        ct__text_put(&text, counter.name);
        ct__text_put(&text, " was given up: it stopped agreeing with the system's clock");
        return;
    }
    ct__text_put(&text, reason);
}
