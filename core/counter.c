/* SPDX-License-Identifier: MIT
 *
 * counter.c: one measured call: two readings of the counter and a few plain stores.
 *
 * A handle remembers the state word (generation and enabled) it was last resolved for. Equal and odd: the fast path. Even:
 * a bare call. Everything else (the first call, reset, remove) goes through ct__counter_resolve. A call counts only if the
 * state word is the same at its end as at its beginning. There is one writer per slot, so the updates need no lock and
 * no locked instruction; readers are kept off half-made records by the sequence (segment.h).
 */
#include "clock.h"
#include "codetimer.h"
#include "registry.h"
#include "segment.h"

static const uint64_t tend_every_ns = 1000000000;

/* Housekeeping is due when so many ticks have passed since the last; 0: never yet. A clock that went back, or was replaced
 * by one that counts otherwise, makes it due as well. */
static _Atomic uint64_t tended_ticks, period_ticks;

static inline uint64_t read_ticks(int source) {
    return source == CT__SOURCE_COUNTER ? ct__ticks() : ct__os_clock_ns();
}

/* The whole of one finished call, under the sequence lock. */
static inline void update(ct_counter *counter, uint64_t duration_ns, uint64_t active_ns, int outcome) {
    ct__slot *slot = counter->slot;
    ct__slot_begin(slot);
    ct__add(&slot->calls, 1);
    ct__add(&slot->total_ns, duration_ns);
    ct__add(&slot->active_ns, active_ns);
    if (outcome == CT_FAILED) ct__add(&slot->errors, 1);
    if (outcome == CT_CANCELLED) ct__add(&slot->cancelled, 1);
    if (duration_ns < ct__get(&slot->min_ns)) ct__set(&slot->min_ns, duration_ns);
    if (duration_ns > ct__get(&slot->max_ns)) ct__set(&slot->max_ns, duration_ns);
    ct__add(&counter->histogram->buckets[ct__histogram_index(duration_ns)], 1);
    ct__slot_end(slot);
}

void ct_enter(ct_counter *counter, ct_token *token) {
    uint64_t state = ct__get(counter->state);
    if (state != counter->seen) state = ct__counter_resolve(counter);
    token->state = state;
    if (!ct__enabled(state)) return;
    token->source = ct__clock_source_now();
    ct__add(&counter->slot->entered, 1);
    token->start = read_ticks(token->source);
}

/* Heartbeat, clock, a list that was changed from outside: once a second, by whoever comes along. */
static void tend(int source, uint64_t now) {
    atomic_store_explicit(&period_ticks, ct__clock_ticks_in(source, tend_every_ns), memory_order_relaxed);
    atomic_store_explicit(&tended_ticks, now, memory_order_relaxed);
    ct__clock_tend();
    ct__counter_tend(1);
}

static inline int is_due(uint64_t now) {
    uint64_t period = atomic_load_explicit(&period_ticks, memory_order_relaxed);
    return now - atomic_load_explicit(&tended_ticks, memory_order_relaxed) + period >= 2 * period;
}

/* It was only switched off: the call is no longer in flight. Of another generation nothing is shown any more, and after a
 * fork the slot may have become something else. */
static void abandon(ct_counter *counter, const ct_token *token, uint64_t state) {
    uint64_t generation = ct__generation(token->state);
    if (ct__generation(state) != generation || ct__get(&counter->slot->generation) != generation) return;
    ct__add(&counter->slot->finished, 1);
}

int64_t ct_leave(ct_counter *counter, const ct_token *token, int outcome) {
    if (!ct__enabled(token->state)) return -1;
    uint64_t end = read_ticks(token->source);
    uint64_t state = ct__get(counter->state);
    if (state != token->state) {
        abandon(counter, token, state);
        return -1;
    }
    ct__add(&counter->slot->finished, 1);
    uint64_t ticks = end - token->start;
    if (end < token->start || token->source != ct__clock_source_now()) {
        ct__add(&counter->slot->anomalies, 1);
        if (token->source != ct__clock_source_now()) return -1; /* the clock was given up meanwhile: no duration is known */
        ticks = 0;
    }
    uint64_t duration_ns = ct__clock_ns(token->source, ticks);
    update(counter, duration_ns, duration_ns, outcome);
    if (is_due(end)) tend(token->source, end);
    return (int64_t)duration_ns;
}

void ct_counter_record(ct_counter *counter, uint64_t duration_ns, int outcome) {
    uint64_t state = ct__get(counter->state);
    if (state != counter->seen) state = ct__counter_resolve(counter);
    if (!ct__enabled(state)) return;
    ct__add(&counter->slot->entered, 1);
    ct__add(&counter->slot->finished, 1);
    update(counter, duration_ns, duration_ns, outcome);
}
