/* SPDX-License-Identifier: MIT
 *
 * Guards that nothing negative, infinite or invented is ever reported, whatever clock and host do, and that every run
 * ends: 100,000 random scripts (fixed, printed seed; CODETIMER_TEST_SCRIPTS for another number) of exact n, automatic n
 * and comparisons. The clock jumps, stands still, steps back, ticks at 15.6 ms; calls fail anywhere; the host tells any
 * counts. Every field, report and file of every one is looked at (sane.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "codetimer.h"
#include "fake_clock.h"
#include "fake_cycles.h"
#include "fake_host.h"
#include "fake_usage.h"
#include "sane.h"

static const unsigned seed = 20261130;
static long scripts = 100000;

/* ---- chance ---- */

static uint64_t state;

/* xorshift64* */
static uint64_t any(void) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * UINT64_C(0x2545F4914F6CDD1D);
}

static uint64_t below(uint64_t limit) { return any() % limit; }

/* Of any magnitude up to "bits" bits, small ones as often as large ones. */
static uint64_t magnitude(unsigned bits) { return any() >> (64 - bits) >> below(bits); }

static int one_in(uint64_t many) { return below(many) == 0; }

/* ---- clocks ---- */

static void shake_clock(fake_body *body) {
    if (one_in(3)) body->call_ns = (body->call_ns & 0xFFFFFFF) * (1 + below(16)) / 8 + below(3);
    switch (below(40)) {
    case 0:
        fake_clock.counter_jump += (int64_t)magnitude(40) - (int64_t)magnitude(40);
        break;
    case 1:
        fake_clock.system_jump_ns += (int64_t)magnitude(40);
        break;
    case 2:
        fake_clock.system_jump_ns -= (int64_t)magnitude(30) % (1 + fake_clock.system_jump_ns);
        break;
    case 3:
        fake_clock.counter_frozen = one_in(2);
        break;
    case 4:
        fake_clock.frozen = one_in(2);
        fake_clock.frozen_ns = fake_clock.ns;
        break;
    case 5:
        fake_clock.ns += magnitude(40);
        break;
    case 6:
        fake_clock.step_ns = below(100);
        break;
    case 7:
        fake_usage.switches = magnitude(64);
        break;
    case 8:
        fake_usage.minor_faults += magnitude(30);
        break;
    case 9:
        fake_usage.known = fake_usage.migrations_known = one_in(2);
        break;
    default:
        break;
    }
}

static void calm_clock(void) {
    fake_clock.counter_frozen = fake_clock.frozen = 0;
    fake_clock.step_ns = 1 + below(50);
    fake_usage.known = fake_usage.migrations_known = !one_in(4);
    fake_usage_cpu_share = (double)below(100) / 100;
}

/* ---- hosts ---- */

static const char *const labels[] = {"Gen 0", "Gen 1", "Gen 2", "Gen 3"};
static const char *const names[] = {"plain", "", " ", "a,b\"c\"|d", "\xff\x01\n", "\xc3\xbc", "a,b\"c\"|d"};

typedef struct told {
    uint64_t before[CT_GC_GENERATIONS_MAX], after[CT_GC_GENERATIONS_MAX];
    ct_gc_time gc_time;
    ct_memory memory;
    ct_overhead overheads[CT_OVERHEADS_MAX];
    ct_time_finish finish;
} told;

static void tell_memory(told *host) {
    static const ct_memory_kind kinds[] = {{"tables", 3}, {"strings", UINT64_MAX}};
    host->memory = (ct_memory){.calls = magnitude(64),
                               .allocations = magnitude(64),
                               .reallocations = magnitude(64),
                               .frees = magnitude(64),
                               .allocated_bytes = magnitude(64),
                               .peak_bytes = magnitude(64),
                               .kinds_count = below(3),
                               .kinds = kinds};
    if (one_in(3)) host->memory = (ct_memory){.reason = "refused by the script"};
}

static void tell(told *host) {
    memset(host, 0, sizeof *host);
    ct_time_finish *finish = &host->finish;
    *finish = (ct_time_finish){.size = sizeof *finish,
                               .gc_generations = below(CT_GC_GENERATIONS_MAX + 1),
                               .gc_labels = labels,
                               .gc_before = host->before,
                               .gc_after = host->after,
                               .gc_time = one_in(2) ? &host->gc_time : NULL,
                               .memory = one_in(2) ? &host->memory : NULL,
                               .overheads_count = below(CT_OVERHEADS_MAX + 1),
                               .overheads = host->overheads};
    for (int i = 0; i < CT_GC_GENERATIONS_MAX; i++) {
        host->before[i] = magnitude(64);
        host->after[i] = one_in(10) ? magnitude(64) : UINT64_MAX - magnitude(63);
        double low = (double)magnitude(20) / 16;
        host->overheads[i] = (ct_overhead){"empty call", low, low + (double)magnitude(20) / 16};
    }
    host->gc_time = (ct_gc_time){magnitude(64), magnitude(64), magnitude(64)};
    tell_memory(host);
}

static fake_body make_body(void) {
    fake_body body = {.first_ns = one_in(4) ? magnitude(36) : 0, .call_ns = magnitude(30), .after = shake_clock};
    if (one_in(5)) body.chunk_ns = magnitude(24);
    if (one_in(6)) { /* a host that cuts at one call needs some time for itself, or there is no end to it */
        body.cut_at = 1 + magnitude(12);
        body.chunk_ns += 200;
    }
    if (one_in(6)) body.warm_ns = magnitude(36);
    body.fails = one_in(4);
    body.fail_at = magnitude(24);
    return body;
}

/* ---- scripts ---- */

static void insist(const char *wrong, long script) {
    if (wrong == NULL) return;
    fprintf(stderr, "script %ld: not so: %s\n", script, wrong);
    exit(1);
}

static void random_run(long script, int64_t n) {
    told host;
    fake_body body = make_body();
    tell(&host);
    ct_result *result = fake_time(n, magnitude(body.cut_at > 0 ? 26 : 36), &body, &host.finish);
    insist(sane_result(result), script);
    insist(sane_texts_of_result(result), script);
    ct_result_free(result);
}

static void random_comparison(long script) {
    fake_body bodies[CT_CANDIDATES_MAX + 1];
    const char *chosen[CT_CANDIDATES_MAX];
    size_t count = 2 + below(one_in(50) ? CT_CANDIDATES_MAX - 1 : 3);
    const ct_compare_options options = {.size = sizeof options, .budget_ns = magnitude(26), .baseline = below(count)};
    for (size_t i = 0; i <= count; i++) bodies[i] = make_body();
    for (size_t i = 0; i <= count; i++) bodies[i].fails &= one_in(10);
    for (size_t i = 0; i < count; i++) chosen[i] = names[below(sizeof names / sizeof names[0])];
    ct_comparison *comparison = fake_compare(chosen, count, &options, bodies);
    insist(sane_comparison(comparison), script);
    insist(sane_texts_of_comparison(comparison), script);
    ct_comparison_free(comparison);
}

static void run_scripts(uint64_t from) {
    state = seed + from;
    for (long script = 0; script < scripts / 5; script++) {
        calm_clock();
        uint64_t kind = below(10);
        if (kind < 4) {
            random_run(script, (int64_t)magnitude(12));
        } else if (kind < 8) {
            random_run(script, CT_N_AUTOMATIC);
        } else {
            random_comparison(script);
        }
    }
}

/* ---- on every clock; a process chooses one, and gives the counter up when it stops agreeing ---- */

static void on_the_counter(void) { run_scripts(1); }

static void on_the_counter_for_good(void) {
    setenv("CODETIMER_CLOCK", "tsc", 1);
    fake_clock.counter_hz = 1e8;
    run_scripts(2);
}

static void on_the_system(void) {
    setenv("CODETIMER_CLOCK", "monotonic", 1);
    run_scripts(3);
}

static void on_a_coarse_clock(void) {
    setenv("CODETIMER_CLOCK", "monotonic", 1);
    fake_clock.grain_ns = 15625000;
    run_scripts(4);
}

static void without_cycles(void) {
    fake_clock.present = 0;
    run_scripts(5);
}

int main(void) {
    const struct CMUnitTest tests[] = {IN_CHILD(on_the_counter), IN_CHILD(on_the_counter_for_good),
                                       IN_CHILD(on_the_system), IN_CHILD(on_a_coarse_clock), IN_CHILD(without_cycles)};
    const char *given = getenv("CODETIMER_TEST_SCRIPTS");
    if (given != NULL) scripts = strtol(given, NULL, 10);
    unsetenv("CODETIMER_CLOCK");
    print_message("seed %u, %ld scripts\n", seed, scripts);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
