/* SPDX-License-Identifier: MIT
 *
 * Guards the sentences about what makes figures mean something else than they seem to: each appears when it must and
 * not a step before, and ordinary runs have none. Fails if a limit moves or a sentence comes of noise.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "codetimer.h"
#include "fake_clock.h"
#include "fake_host.h"
#include "fake_usage.h"

static const uint64_t ms = 1000000;

/* All notes of an automatic run, "" if there are none; valid until the next. */
static const char *notes_of(fake_body *body, const ct_time_finish *finish) {
    static char all[4000];
    ct_result *result = fake_time(CT_N_AUTOMATIC, 200 * ms, body, finish);
    all[0] = '\0';
    for (size_t i = 0; i < result->notes_count; i++) {
        strcat(all, result->notes[i]);
        strcat(all, "\n");
    }
    ct_result_free(result);
    return all;
}

static void nothing_to_say(void) {
    static const uint64_t bodies[] = {5, 80, 4000, 300000, 25000000};
    ct_gc_time gc = {.pauses = 10, .total_ns = 20 * ms, .longest_ns = 3 * ms};
    ct_overhead empty = {"empty C function", 1, 2};
    ct_time_finish finish = {.size = sizeof finish, .gc_time = &gc, .overheads_count = 1, .overheads = &empty};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        fake_body body = {.call_ns = bodies[i]};
        CHECK(*notes_of(&body, &finish) == '\0');
    }
}

/* ---- the collector ---- */

static void dominated_by_gc(void) {
    ct_gc_time gc = {.pauses = 1234, .total_ns = 99 * ms};
    ct_time_finish finish = {.size = sizeof finish, .gc_time = &gc};
    fake_body body = {.call_ns = 1000};
    gc.total_ns = 80 * ms; /* of about 194 */
    CHECK(*notes_of(&body, &finish) == '\0');
    gc.total_ns = 120 * ms;
    fake_body again = {.call_ns = 1000};
    CHECK(strcmp(notes_of(&again, &finish), "dominated by GC: 62 % of the time went to 1,234 pauses\n") == 0);
    gc = (ct_gc_time){.pauses = 1, .total_ns = 900 * ms}; /* more than there was: pauses between the chunks */
    fake_body more = {.call_ns = 1000};
    CHECK(strcmp(notes_of(&more, &finish), "dominated by GC: 100 % of the time went to 1 pause\n") == 0);
}

/* ---- waiting ---- */

static void wait_now(fake_body *body) {
    (void)body;
    fake_usage.switches++;
}

static void lose_cpu(fake_body *body) {
    (void)body;
    fake_usage.preemptions++;
}

static void waiting(void) {
    fake_body body = {.call_ns = 20 * ms, .after = wait_now};
    fake_usage_cpu_share = 0.4;
    CHECK(strcmp(notes_of(&body, NULL), "CPU time is 40 % of wall: it waits\n") == 0);
    fake_body preempted = {.call_ns = 1000, .after = lose_cpu};
    CHECK(strcmp(notes_of(&preempted, NULL), "CPU time is 40 % of wall: other threads had the CPU\n") == 0);
    fake_body neither = {.call_ns = 1000}; /* time taken from the whole machine: nobody's choice */
    CHECK(*notes_of(&neither, NULL) == '\0');
    fake_usage_cpu_share = 0.85;
    fake_body little = {.call_ns = 1000, .after = wait_now};
    CHECK(*notes_of(&little, NULL) == '\0');
    fake_usage_cpu_share = 0.4;
    fake_usage.known = 0;
    fake_body unknown = {.call_ns = 1000, .after = wait_now};
    CHECK(*notes_of(&unknown, NULL) == '\0');
}

/* ---- a trend ---- */

static double slope; /* ns per call in each chunk */

static void change_pace(fake_body *body) {
    double now = 1000 + slope * (double)body->chunks;
    body->call_ns = now > 100 ? (uint64_t)now : 100;
}

static void trend(void) {
    fake_body warming = {.call_ns = 1000, .after = change_pace};
    slope = -0.4;
    CHECK(strstr(notes_of(&warming, NULL), "still warming up: the last third is ") != NULL);
    fake_body slowing = {.call_ns = 1000, .after = change_pace};
    slope = 0.4;
    CHECK(strstr(notes_of(&slowing, NULL), "it slows down: the last third is ") != NULL);
    fake_body slightly = {.call_ns = 1000, .after = change_pace};
    slope = 0.05; /* 5 % from one end to the other: a trend, but no matter */
    CHECK(*notes_of(&slightly, NULL) == '\0');
    fake_body less = {.call_ns = 1000, .after = change_pace};
    slope = -0.04;
    CHECK(*notes_of(&less, NULL) == '\0');
}

static void jitter(fake_body *body) {
    (void)body;
    body->call_ns = 800 + (uint64_t)rand() % 400;
}

/* Noise of 20 % either way, two hundred times. */
static void noise_is_no_trend(void) {
    srand(20261130);
    for (int i = 0; i < 200; i++) {
        fake_body body = {.call_ns = 1000, .after = jitter};
        CHECK(*notes_of(&body, NULL) == '\0');
    }
}

/* ---- growth ---- */

/* The calls of a chunk are ignored: each takes 50 us. */
static void does_not_grow(void) {
    fake_body body = {.chunk_ns = 50000};
    CHECK(strstr(notes_of(&body, NULL), "the work does not grow with n: twice as many calls took 1.00 times") != NULL);
}

/* Half of a small chunk is a fixed cost: no reason to complain. */
static void grows_enough(void) {
    fake_body body = {.call_ns = 100, .chunk_ns = 50000};
    CHECK(strstr(notes_of(&body, NULL), "does not grow") == NULL);
}

/* ---- an empty call ---- */

static void empty_call(void) {
    ct_overhead empty[] = {{"empty C function", 30, 50}, {"empty function", 60, 70}};
    ct_time_finish finish = {.size = sizeof finish, .overheads_count = 2, .overheads = empty};
    fake_body body = {.call_ns = 45};
    CHECK(strcmp(notes_of(&body, &finish), "indistinguishable from an empty call\n") == 0);
    fake_body little = {.call_ns = 52};
    CHECK(*notes_of(&little, &finish) == '\0');
    fake_body faster = {.call_ns = 20};
    CHECK(strcmp(notes_of(&faster, &finish), "indistinguishable from an empty call\n") == 0);
}

/* ---- what is too short to say much ---- */

static void short_runs_say_nothing(void) {
    ct_gc_time gc = {.pauses = 3, .total_ns = 4 * ms};
    ct_time_finish finish = {.size = sizeof finish, .gc_time = &gc};
    fake_body body = {.call_ns = 1000, .after = wait_now};
    fake_usage_cpu_share = 0.1;
    ct_result *result = fake_time(5000, 0, &body, &finish); /* 5 ms */
    CHECK(result->notes_count == 0);
    ct_result_free(result);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_CHILD(nothing_to_say), IN_CHILD(dominated_by_gc),   IN_CHILD(waiting),
        IN_CHILD(trend),          IN_CHILD(noise_is_no_trend), IN_CHILD(does_not_grow),
        IN_CHILD(grows_enough),   IN_CHILD(empty_call),        IN_CHILD(short_runs_say_nothing),
    };
    unsetenv("CODETIMER_CLOCK");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
