/* SPDX-License-Identifier: MIT
 *
 * sample.h: floor 2, the values of one slot, copied and summed. For sample.c (this process) and view_sample.c
 * (another).
 */
#ifndef CT_SAMPLE_H
#define CT_SAMPLE_H

#include <string.h>

#include "codetimer.h"
#include "segment.h"

typedef struct ct__values {
    uint64_t generation, calls, total_ns, active_ns, errors, cancelled, min_ns, max_ns, entered, finished, anomalies,
        active_unknown;
} ct__values;

static inline uint32_t ct__get32(const _Atomic uint32_t *word) {
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)word, memory_order_relaxed);
}

/* Each word once; whether they belong together is for the caller to find out, by the sequence. */
static inline void ct__values_copy(const ct__slot *slot, ct__values *copy) {
    copy->generation = ct__get(&slot->generation);
    copy->calls = ct__get(&slot->calls);
    copy->total_ns = ct__get(&slot->total_ns);
    copy->active_ns = ct__get(&slot->active_ns);
    copy->active_unknown = ct__get(&slot->active_unknown); /* 0 in segments of layout 1.0 */
    copy->errors = ct__get(&slot->errors);
    copy->cancelled = ct__get(&slot->cancelled);
    copy->min_ns = ct__get(&slot->min_ns);
    copy->max_ns = ct__get(&slot->max_ns);
    copy->finished = ct__get(&slot->finished); /* before entered, so that what is in flight is not negative */
    copy->entered = ct__get(&slot->entered);
    copy->anomalies = ct__get(&slot->anomalies);
}

static inline void ct__values_add(ct_sample *sample, const ct__values *one) {
    sample->calls += one->calls;
    sample->total_ns += one->total_ns;
    sample->active_ns += one->active_ns;
    sample->active_unknown += one->active_unknown;
    sample->errors += one->errors;
    sample->cancelled += one->cancelled;
    sample->anomalies += one->anomalies;
    if (one->entered > one->finished) sample->in_flight += one->entered - one->finished;
    if (one->calls == 0) return;
    if (one->min_ns < sample->min_ns) sample->min_ns = one->min_ns;
    if (one->max_ns > sample->max_ns) sample->max_ns = one->max_ns;
}

/* A sample of a record with that state word, still without values. Its buckets are left as they are. */
static inline void ct__sample_start(ct_sample *sample, uint64_t state, int listed, uint64_t now_ns) {
    memset(sample, 0, offsetof(ct_sample, buckets));
    sample->time_ns = now_ns;
    sample->generation = state >> 1;
    sample->enabled = (int)(state & 1);
    sample->listed = listed;
    sample->min_ns = UINT64_MAX;
}

/* Buckets only ever grow, each by itself: what is counted here is at least what the record said before, and at most
 * what it says when it is read after this. The first histogram is copied, the others are added. */
static inline void ct__buckets_add(ct_sample *sample, const ct__histogram *histogram, int first) {
    if (first)
        for (size_t i = 0; i < CT__BUCKETS; i++) sample->buckets[i] = ct__get(&histogram->buckets[i]);
    else
        for (size_t i = 0; i < CT__BUCKETS; i++) sample->buckets[i] += ct__get(&histogram->buckets[i]);
    atomic_thread_fence(memory_order_acquire);
}

#endif
