/* SPDX-License-Identifier: MIT
 *
 * sample.c: reading counters, and the arithmetic of two samples.
 *
 * A record is read inside its writer's sequence: an odd or changed sequence means again. The record is consistent in
 * itself; the buckets are read beside it, each one whole. A writer that stopped in the middle (its thread is gone, or
 * it is held up) is not waited for: after some tries the record is taken as it is. All slots must be of one generation:
 * if another one has begun meanwhile, everything is read again.
 */
#include "sample.h"

#include <string.h>

#include "clock.h"
#include "codetimer.h"
#include "registry.h"

/* An update takes some ns, but its thread may lose the CPU in the middle: then rest between tries, half a second in
 * all. */
enum { TRIES = 200, RESTS = 5000 };

enum { GENERATIONS = 100 };

static uint32_t read_sequence(const ct__slot *slot, memory_order order) {
    return atomic_load_explicit(&((ct__slot *)(uintptr_t)slot)->sequence, order);
}

/* Returns 0 if the record had to be taken half-written. */
static int read_slot(const ct__slot *slot, ct__values *copy) {
    for (int i = 0; i < TRIES + RESTS; i++) {
        uint32_t before = read_sequence(slot, memory_order_acquire);
        ct__values_copy(slot, copy);
        atomic_thread_fence(memory_order_acquire);
        uint32_t after = read_sequence(slot, memory_order_relaxed);
        if (before == after && before % 2 == 0) return 1;
        int gone = atomic_load_explicit(&((ct__slot *)(uintptr_t)slot)->owner, memory_order_acquire) == 0;
        if (gone) return 0;
        if (i >= TRIES) ct__os_rest();
    }
    return 0;
}

static void sum_slots(const ct__record *record, ct_sample *sample) {
    int first = 1;
    uint32_t offset = ct__get32(&record->first_slot);
    while (offset != 0) {
        const ct__slot *slot = ct__segment_at(offset);
        ct__values one;
        if (!read_slot(slot, &one)) sample->unclean = 1;
        if (one.generation == sample->generation) {
            ct__values_add(sample, &one);
            ct__buckets_add(sample, ct__segment_at(ct__get32(&slot->histogram)), first);
            first = 0;
        }
        offset = ct__get32(&slot->next);
    }
    if (first) memset(sample->buckets, 0, sizeof sample->buckets);
    if (sample->calls == 0) sample->min_ns = 0;
}

void ct__record_sample(ct__record *record, ct_sample *sample) {
    for (int i = 0; i < GENERATIONS; i++) {
        uint64_t state = atomic_load_explicit(&record->state, memory_order_acquire);
        ct__sample_start(sample, state, ct__get32(&record->listed) != 0, ct_now_ns());
        sum_slots(record, sample);
        atomic_thread_fence(memory_order_acquire);
        if (ct__generation(ct__get(&record->state)) == sample->generation) return;
    }
}

void ct_counter_sample(const ct_counter *counter, ct_sample *sample) {
    ct__record_sample(counter->definition->record, sample);
}

/* ---- arithmetic ---- */

static uint64_t minus(uint64_t now, uint64_t before) { return now > before ? now - before : 0; }

static void bound_extremes(const ct_sample *now, ct_sample *window) {
    size_t lowest = CT__BUCKETS, highest = 0;
    for (size_t i = 0; i < CT__BUCKETS; i++) {
        if (window->buckets[i] == 0) continue;
        if (lowest == CT__BUCKETS) lowest = i;
        highest = i;
    }
    window->min_ns = now->min_ns;
    window->max_ns = now->max_ns;
    if (lowest == CT__BUCKETS) return;
    double low = ct__histogram_lower_ns(lowest), high = ct__histogram_upper_ns(highest);
    if (low > (double)now->min_ns) window->min_ns = (uint64_t)low;
    if (high < (double)now->max_ns) window->max_ns = (uint64_t)high;
}

int ct_sample_difference(const ct_sample *now, const ct_sample *before, ct_sample *window) {
    if (now->generation != before->generation) return CT_ECHANGED;
    ct_sample result = *now;
    result.calls = minus(now->calls, before->calls);
    result.total_ns = minus(now->total_ns, before->total_ns);
    result.active_ns = minus(now->active_ns, before->active_ns);
    result.active_unknown = minus(now->active_unknown, before->active_unknown);
    result.errors = minus(now->errors, before->errors);
    result.cancelled = minus(now->cancelled, before->cancelled);
    result.anomalies = minus(now->anomalies, before->anomalies);
    for (size_t i = 0; i < CT__BUCKETS; i++) result.buckets[i] = minus(now->buckets[i], before->buckets[i]);
    bound_extremes(now, &result);
    *window = result;
    return CT_OK;
}

/* min_ns and max_ns mean nothing without calls, so they are those of the one that has some. */
static void join_extremes(ct_sample *sum, const ct_sample *more) {
    if (more->calls == 0) return;
    if (sum->calls == 0 || more->min_ns < sum->min_ns) sum->min_ns = more->min_ns;
    if (sum->calls == 0 || more->max_ns > sum->max_ns) sum->max_ns = more->max_ns;
}

void ct_sample_add(ct_sample *sum, const ct_sample *more) {
    join_extremes(sum, more);
    if (more->time_ns > sum->time_ns) sum->time_ns = more->time_ns;
    sum->generation += more->generation;
    sum->listed |= more->listed;
    sum->enabled |= more->enabled;
    sum->unclean |= more->unclean;
    sum->calls += more->calls;
    sum->total_ns += more->total_ns;
    sum->active_ns += more->active_ns;
    sum->active_unknown += more->active_unknown;
    sum->errors += more->errors;
    sum->cancelled += more->cancelled;
    sum->in_flight += more->in_flight;
    sum->anomalies += more->anomalies;
    for (size_t i = 0; i < CT__BUCKETS; i++) sum->buckets[i] += more->buckets[i];
}

int ct_sample_average_ns(const ct_sample *sample, double *average_ns) {
    if (sample->calls == 0) return CT_ENOENT;
    *average_ns = (double)sample->total_ns / (double)sample->calls;
    return CT_OK;
}

int ct_sample_active_average_ns(const ct_sample *sample, double *average_ns) {
    if (sample->calls == 0 || sample->active_unknown > 0) return CT_ENOENT;
    *average_ns = (double)sample->active_ns / (double)sample->calls;
    return CT_OK;
}

int ct_sample_waits(const ct_sample *sample) {
    return sample->active_unknown > 0 || sample->active_ns != sample->total_ns;
}

static int has_values(const ct_sample *sample) {
    for (size_t i = 0; i < CT__BUCKETS; i++)
        if (sample->buckets[i] > 0) return 1;
    return 0;
}

int ct_sample_percentile_ns(const ct_sample *sample, double percent, double *percentile_ns) {
    if (!(percent >= 0 && percent <= 100)) return CT_EINVAL;
    if (!has_values(sample)) return CT_ENOENT;
    double value = ct__histogram_quantile_ns(sample->buckets, percent / 100, (double)sample->max_ns);
    if (sample->calls > 0 && value < (double)sample->min_ns) value = (double)sample->min_ns;
    if (sample->calls > 0 && value > (double)sample->max_ns) value = (double)sample->max_ns;
    *percentile_ns = value;
    return CT_OK;
}
