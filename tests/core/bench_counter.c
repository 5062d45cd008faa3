/* SPDX-License-Identifier: MIT
 *
 * What a counter costs in the core, in nanoseconds: the update alone, the whole of ct_enter and ct_leave beside two
 * bare readings of the clock, and the same over ten thousand counters in random order. Every variant takes its turn
 * slice by slice, so that the load of the machine hits all alike; the least slice counts, less that of an empty loop.
 * Nothing is asserted; the last lines say whether the targets were met.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "codetimer.h"
#include "platform/ticks.h"

enum { COUNTERS = 10000, DURATIONS = 1024, SLICES = 300, CALLS = 20000 };

static const uint64_t seed = 0x9E3779B97F4A7C15;
static const double update_most = 6, scattered_most = 20;

static ct_counter *counters[COUNTERS];
static uint32_t order[CALLS], nowhere[CALLS]; /* which counter next: at random, always the first */
static uint64_t durations[DURATIONS];
static volatile uint64_t sink;

typedef void (*variant)(const uint32_t *which);

static uint64_t step(uint64_t *x) {
    *x ^= *x >> 12;
    *x ^= *x << 25;
    *x ^= *x >> 27;
    return *x * 0x2545F4914F6CDD1D;
}

/* ---- what is measured ---- */

static void run_empty(const uint32_t *which) {
    for (int i = 0; i < CALLS; i++) sink = (uint64_t)(uintptr_t)counters[which[i]] + durations[i % DURATIONS];
}

static void run_record(const uint32_t *which) {
    for (int i = 0; i < CALLS; i++) ct_counter_record(counters[which[i]], durations[i % DURATIONS], CT_RETURNED);
}

static void run_call(const uint32_t *which) {
    for (int i = 0; i < CALLS; i++) {
        ct_token token;
        ct_enter(counters[which[i]], &token);
        ct_leave(counters[which[i]], &token, CT_RETURNED);
    }
}

static void run_ticks(const uint32_t *which) {
    (void)which;
    for (int i = 0; i < CALLS; i++) {
        uint64_t start = ct__ticks();
        sink = ct__ticks() - start;
    }
}

static const struct {
    const char *label;
    variant run;
    const uint32_t *which;
} variants[] = {
    {"empty loop", run_empty, nowhere},
    {"empty loop, random order", run_empty, order},
    {"two bare readings of the clock", run_ticks, nowhere},
    {"update (ct_counter_record)", run_record, nowhere},
    {"update, 10,000 counters at random", run_record, order},
    {"ct_enter + ct_leave", run_call, nowhere},
    {"ct_enter + ct_leave, 10,000 at random", run_call, order},
};

enum { EMPTY, EMPTY_SCATTERED, TICKS, UPDATE, UPDATE_SCATTERED, CALL, CALL_SCATTERED, VARIANTS };

/* ---- the bench ---- */

static void prepare(void) {
    ct_writer *writer;
    uint64_t x = seed;
    if (ct_writer_open("bench", &writer) != CT_OK) exit(1);
    for (int i = 0; i < COUNTERS; i++) {
        char name[32];
        snprintf(name, sizeof name, "bench.counter%d", i);
        if (ct_counter_open(writer, NULL, name, NULL, &counters[i]) < 0) exit(1);
        ct_counter_record(counters[i], 1, CT_RETURNED);
    }
    for (int i = 0; i < CALLS; i++) order[i] = (uint32_t)(step(&x) % COUNTERS);
    for (int i = 0; i < DURATIONS; i++) durations[i] = 1000 + step(&x) % 100000;
}

static void measure(double *least_ns) {
    for (int v = 0; v < VARIANTS; v++) least_ns[v] = 1e9;
    for (int i = 0; i < SLICES; i++) {
        for (int v = 0; v < VARIANTS; v++) {
            uint64_t start = ct_now_ns();
            variants[v].run(variants[v].which);
            double one = (double)(ct_now_ns() - start) / CALLS;
            if (one < least_ns[v]) least_ns[v] = one;
        }
    }
}

static void judge(const char *what, double value, double most) {
    printf("%-55s %6.2f ns, at most %.0f: %s\n", what, value, most, value <= most ? "met" : "MISSED");
}

int main(void) {
    double ns[VARIANTS];
    prepare();
    measure(ns);
    printf("seed 0x%llx\n", (unsigned long long)seed);
    for (int v = 0; v < VARIANTS; v++) {
        double empty = v < TICKS ? 0 : variants[v].which == order ? ns[EMPTY_SCATTERED] : ns[EMPTY];
        printf("%-40s %6.2f ns\n", variants[v].label, ns[v] - empty);
    }
    double update = ns[UPDATE] - ns[EMPTY], scattered = ns[UPDATE_SCATTERED] - ns[EMPTY_SCATTERED];
    judge("update without clock", update, update_most);
    judge("more over 10,000 counters in random order", scattered - update, scattered_most);
    return 0;
}
