/* SPDX-License-Identifier: MIT
 *
 * bench_view.c: what live counters cost. Prints, and asserts nothing: reading 10,000 counters of another process from
 * the second reading of an open view on, what publishing adds to a measured call, and bytes per counter and writer.
 */
#define _GNU_SOURCE
#include "live.h"

enum { COUNTERS = 10000, ROUNDS = 15, CALLS = 2000000 };

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void publish(void) {
    char name[64];
    for (int i = 0; i < COUNTERS; i++) {
        snprintf(name, sizeof name, "package.module.function%d", i);
        ct_counter *counter = live_counter(name);
        for (uint64_t j = 0; j < 20; j++) ct_counter_record(counter, j * j * 100, CT_RETURNED);
    }
}

static void time_reading(ct_view *view, int buckets, ct_sample *samples) {
    double first = 0, best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double start = seconds();
        for (uint32_t i = 0; i < COUNTERS; i++) ct_view_sample(view, i, buckets, &samples[buckets ? i % 16 : 0]);
        double took = seconds() - start;
        if (round == 0) first = took;
        if (round > 0 && took < best) best = took;
    }
    printf("reading %d counters %s histograms: first %.3f ms, then %.3f ms\n", COUNTERS, buckets ? "with" : "without",
           first * 1e3, best * 1e3);
}

static void bench_reading(void) {
    ct_process process;
    ct_view *view;
    struct stat facts;
    ct_sample *samples = malloc(16 * sizeof *samples);
    live_child child = live_start(publish);
    CHECK(live_count(CT_SEGMENT_LIVE, &process) == 1);
    CHECK(ct_view_open(process.path, &view, NULL) == CT_OK && stat(process.path, &facts) == 0);
    time_reading(view, 0, samples);
    time_reading(view, 1, samples);
    printf("file: %.1f MB, %.2f KiB for each counter and writer\n", (double)facts.st_size / 1e6,
           ((double)facts.st_size - 327680) / COUNTERS / 1024);
    ct_view_close(view);
    free(samples);
    live_end(child, 0);
}

static double time_calls(ct_counter *counter) {
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double start = seconds();
        for (int i = 0; i < CALLS / ROUNDS; i++) live_call(counter);
        double took = (seconds() - start) / (CALLS / ROUNDS) * 1e9;
        if (took < best) best = took;
    }
    return best;
}

static void bench_calls(void) {
    printf("a measured call: %.2f ns ", time_calls(live_counter("call")));
    ct_segment segment;
    ct_segment_info(&segment);
    printf("%s\n", segment.published ? "published" : "private");
}

int main(void) {
    live_make_folder();
    bench_reading();
    for (int i = 0; i < 3; i++) {
        unsetenv("CODETIMER_PUBLISH");
        run_in_child(bench_calls);
        setenv("CODETIMER_PUBLISH", "0", 1);
        run_in_child(bench_calls);
    }
    live_remove_folder();
    return 0;
}
