/* SPDX-License-Identifier: MIT
 *
 * counter.c: one measured call: two readings of the counter and a few plain stores.
 *
 * A handle remembers the state word (generation and enabled) it was last resolved for. Equal and odd: the fast path.
 * Even: a bare call. Everything else (the first call, reset, remove) goes through ct__counter_resolve. A call counts
 * only if the state word is the same at its end as at its beginning. There is one writer per slot, so the updates need
 * no lock and no locked instruction; readers are kept off half-made records by the sequence (segment.h).
 */
#include "clock.h"
#include "codetimer.h"
#include "registry.h"
#include "segment.h"

/* Housekeeping is due when so many ticks have passed since the last; 0: at once. A clock that went back, or was
 * replaced by one that counts otherwise, makes it due as well. */
static _Atomic uint64_t tended_ticks, period_ticks;

/* Both for the compiler only: the path of a call that counts is laid out straight and keeps no register for the other.
 */
#define RARELY(condition) __builtin_expect(!!(condition), 0)
#define APART             __attribute__((noinline, cold))

/* Of a call that cannot be suspended: all its time. */
static const ct_active whole = {.ticks = UINT64_MAX};

/* The whole of one finished call, under the sequence lock. "known" 0: nobody can tell how much of it was active. */
static inline void update(ct_counter *counter, uint64_t duration_ns, uint64_t active_ns, int known, int outcome) {
    ct__slot *slot = counter->slot;
    uint32_t sequence = ct__slot_begin(slot);
    ct__add(&slot->calls, 1);
    ct__add(&slot->total_ns, duration_ns);
    ct__add(&slot->active_ns, active_ns);
    if (!known) ct__add(&slot->active_unknown, 1);
    if (outcome == CT_FAILED) ct__add(&slot->errors, 1);
    if (outcome == CT_CANCELLED) ct__add(&slot->cancelled, 1);
    if (duration_ns < ct__get(&slot->min_ns)) ct__set(&slot->min_ns, duration_ns);
    if (duration_ns > ct__get(&slot->max_ns)) ct__set(&slot->max_ns, duration_ns);
    ct__add(&counter->histogram->buckets[ct__histogram_index(duration_ns)], 1);
    ct__slot_end(slot, sequence);
}

int ct_counter_enabled(const ct_counter *counter) { return ct__enabled(ct__get(counter->state)) != 0; }

/* ---- entering ---- */

/* The first call of a generation, the first after a switch, or a clock without a counter. */
APART static void enter_slowly(ct_counter *counter, ct_token *token) {
    token->state = ct__get(counter->state) != counter->seen ? ct__counter_resolve(counter) : counter->seen;
    if (!ct__enabled(token->state)) return;
    token->source = ct__clock_source_now();
    ct__add(&counter->slot->entered, 1);
    token->start = token->source == CT__SOURCE_COUNTER ? ct__ticks() : ct__os_clock_ns();
}

/* Processors finish what comes before a reading of the counter first, and let what follows overlap with the call. So
 * only what decides whether to read it comes before; that the handle is up to date is made sure of after. */
void ct_enter(ct_counter *counter, ct_token *token) {
    uint64_t seen = counter->seen;
    int source = ct__clock_source_now();
    token->state = seen;
    if (!ct__enabled(seen) && ct__get(counter->state) == seen) return;
    if (RARELY(!ct__enabled(seen) || source != CT__SOURCE_COUNTER)) {
        enter_slowly(counter, token);
        return;
    }
    token->source = source;
    token->start = ct__ticks();
    if (RARELY(ct__get(counter->state) != seen)) {
        enter_slowly(counter, token);
        return;
    }
    ct__add(&counter->slot->entered, 1);
}

/* ---- leaving ---- */

/* Heartbeat, clock, a list that was changed from outside: by whoever comes along. "writer": by one. */
APART static void tend(int source, uint64_t now, int writer) {
    atomic_store_explicit(&period_ticks, ct__clock_ticks_in(source, ct__tend_every_ns()), memory_order_relaxed);
    atomic_store_explicit(&tended_ticks, now, memory_order_relaxed);
    ct__clock_tend();
    ct__tend(writer);
}

static inline int is_due(uint64_t now) {
    uint64_t period = atomic_load_explicit(&period_ticks, memory_order_relaxed);
    return now - atomic_load_explicit(&tended_ticks, memory_order_relaxed) + period >= 2 * period;
}

int ct_tend(void) {
    int source = ct__clock_source();
    uint64_t now = source == CT__SOURCE_COUNTER ? ct__ticks() : ct__os_clock_ns();
    if (!is_due(now)) return 0;
    tend(source, now, 0);
    return 1;
}

void ct__counter_tend_soon(void) { atomic_store_explicit(&period_ticks, 0, memory_order_relaxed); }

/* It was only switched off: the call is no longer in flight. Of another generation nothing is shown any more, and after
 * a fork the slot may have become something else. */
static int64_t abandon(ct_counter *counter, const ct_token *token, uint64_t state) {
    uint64_t generation = ct__generation(token->state);
    if (ct__generation(state) == generation && ct__get(&counter->slot->generation) == generation)
        ct__add(&counter->slot->finished, 1);
    return -1;
}

void ct_abandon(ct_counter *counter, const ct_token *token) {
    if (ct__enabled(token->state)) (void)abandon(counter, token, ct__get(counter->state));
}

/* Whatever can have happened, in full. "active" NULL: not known. */
APART static int64_t leave_slowly(ct_counter *counter, const ct_token *token, uint64_t end, const ct_active *active,
                                  int outcome) {
    uint64_t state = ct__get(counter->state);
    if (state != token->state) return abandon(counter, token, state);
    ct__add(&counter->slot->finished, 1);
    uint64_t ticks = end - token->start;
    if (end < token->start || token->source != ct__clock_source_now()) {
        ct__add(&counter->slot->anomalies, 1);
        if (token->source != ct__clock_source_now()) return -1; /* the clock was given up: no duration is known */
        ticks = 0;
    }
    uint64_t active_ticks = active == NULL ? 0 : active->ticks < ticks ? active->ticks : ticks;
    uint64_t duration_ns = ct__clock_ns(token->source, ticks);
    update(counter, duration_ns, ct__clock_ns(token->source, active_ticks), active != NULL, outcome);
    if (is_due(end)) tend(token->source, end, 1);
    return (int64_t)duration_ns;
}

APART static int64_t tend_after(uint64_t now, uint64_t duration_ns) {
    tend(CT__SOURCE_COUNTER, now, 1);
    return (int64_t)duration_ns;
}

int64_t ct_leave(ct_counter *counter, const ct_token *token, int outcome) {
    if (!ct__enabled(token->state)) return -1;
    if (RARELY(token->source != CT__SOURCE_COUNTER))
        return leave_slowly(counter, token, ct__os_clock_ns(), &whole, outcome);
    uint64_t end = ct__ticks();
    if (RARELY(ct__get(counter->state) != token->state || end < token->start ||
               ct__clock_source_now() != CT__SOURCE_COUNTER || outcome != CT_RETURNED))
        return leave_slowly(counter, token, end, &whole, outcome);
    uint64_t duration_ns = ct__clock_ns(CT__SOURCE_COUNTER, end - token->start);
    ct__add(&counter->slot->finished, 1);
    update(counter, duration_ns, duration_ns, 1, CT_RETURNED);
    if (RARELY(is_due(end))) return tend_after(end, duration_ns);
    return (int64_t)duration_ns;
}

/* ---- calls that wait ---- */

static uint64_t read_clock(const ct_token *token) {
    return token->source == CT__SOURCE_COUNTER ? ct__ticks() : ct__os_clock_ns();
}

void ct_active_resume(const ct_token *token, ct_active *active) {
    if (ct__enabled(token->state)) active->since = read_clock(token);
}

void ct_active_suspend(const ct_token *token, ct_active *active) {
    if (!ct__enabled(token->state)) return;
    uint64_t now = read_clock(token);
    if (now > active->since) active->ticks += now - active->since;
}

int64_t ct_leave_active(ct_counter *counter, const ct_token *token, const ct_active *active, int outcome) {
    if (!ct__enabled(token->state)) return -1;
    return leave_slowly(counter, token, read_clock(token), active, outcome);
}

int ct_counter_record(ct_counter *counter, uint64_t duration_ns, int outcome) {
    uint64_t state = ct__get(counter->state);
    if (state != counter->seen) state = ct__counter_resolve(counter);
    if (!ct__enabled(state)) return 0;
    if (ct__get(&counter->slot->total_ns) > UINT64_MAX - duration_ns) {
        ct__add(&counter->slot->anomalies, 1); /* no clock can do that, but a caller can */
        return 0;
    }
    ct__add(&counter->slot->entered, 1);
    ct__add(&counter->slot->finished, 1);
    update(counter, duration_ns, duration_ns, 1, outcome);
    return 1;
}
