/* SPDX-License-Identifier: MIT
 *
 * Guards comparisons over a scripted clock: the order of turns, warm-up forgotten, only whole rounds, budgets of every
 * size, an end by error in any slot, drift that cancels, and what the table and the sentences say of it. Fails if a
 * slot is missing from a round or if a half round enters a ratio.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "codetimer.h"
#include "fake_clock.h"
#include "fake_host.h"
#include "fake_usage.h"

static const uint64_t ms = 1000000, second = 1000000000;
static const char *const names[] = {"a", "b", "c", "d"};

static ct_comparison *compare(size_t count, uint64_t budget_ns, size_t baseline, fake_body *bodies) {
    const ct_compare_options options = {.size = sizeof options, .budget_ns = budget_ns, .baseline = baseline};
    return fake_compare(names, count, &options, bodies);
}

/* Each round: all candidates and the twin, then all of them backwards; each round begins with another one. */
static void order_of_turns(void) {
    enum { ALL = 4 }; /* three candidates and the twin */
    ct_compare *begun;
    ct_run *run;
    size_t candidate, turns[4000], seen = 0;
    fake_body bodies[ALL] = {{.call_ns = 1000}, {.call_ns = 1500}, {.call_ns = 700}, {.call_ns = 1000}};
    const ct_compare_options options = {.size = sizeof options, .budget_ns = 100 * ms};
    int warms = 0;
    CHECK(ct_compare_begin(names, 3, &options, &begun) == CT_OK);
    for (int what; (what = ct_compare_next(begun, &candidate, &run)) != 0;) {
        if (what == CT_WARM) {
            warms++;
            continue;
        }
        if (warms > 0 && seen < 4000) turns[seen++] = candidate;
        fake_drive(run, &bodies[candidate]);
    }
    CHECK(warms == 1 && seen < 4000 && seen >= 4 * 2 * ALL && seen % (2 * ALL) == 0);
    for (size_t i = 0; i < seen; i++) {
        size_t round = i / (2 * ALL), at = i % (2 * ALL), place = at < ALL ? at : 2 * ALL - 1 - at;
        CHECK(turns[i] == (place + round) % ALL);
    }
    CHECK(ct_compare_next(begun, &candidate, &run) == 0);
    CHECK(ct_compare_progress(begun) == 1);
    ct_compare_free(begun);
}

/* Known ratios are found exactly, whichever the baseline is; and the budget is kept. */
static void ratios(void) {
    for (size_t baseline = 0; baseline < 3; baseline++) {
        static const uint64_t call_ns[] = {1000, 1250, 500};
        fake_body bodies[4] = {{.call_ns = 1000}, {.call_ns = 1250}, {.call_ns = 500}, {.call_ns = call_ns[baseline]}};
        uint64_t start = fake_clock.ns;
        ct_comparison *found = compare(3, 600 * ms, baseline, bodies);
        CHECK_BETWEEN(fake_clock.ns - start, 590 * ms, 610 * ms);
        CHECK_BETWEEN(found->elapsed_ns, 590 * ms, 610 * ms);
        CHECK(found->rounds > 50 && found->rounds_tied == 0 && found->interrupted == NULL && found->notes_count == 0);
        for (size_t i = 0; i < 3; i++) {
            double expected = (double)call_ns[i] / (double)call_ns[baseline];
            const ct_ratio *ratio = &found->ratios[i];
            CHECK(ratio->known && ratio->in_turns && ratio->reason == NULL);
            CHECK(fabs(ratio->ratio / expected - 1) < 0.001);
            CHECK(ratio->low <= ratio->ratio && ratio->ratio <= ratio->high);
            CHECK(ratio->different == (i != baseline));
            CHECK(fabs(found->results[i]->per_call_ns / (double)call_ns[i] - 1) < 0.01);
            CHECK(found->results[i]->warmup_calls > 0 && found->results[i]->interval_known);
        }
        CHECK(found->ratios[baseline].ratio == 1);
        CHECK(found->twin.known && fabs(found->twin.ratio - 1) < 0.001 && !found->twin.different);
        ct_comparison_free(found);
    }
}

static void default_budget(void) {
    fake_body bodies[3] = {{.call_ns = 100}, {.call_ns = 100}, {.call_ns = 100}};
    ct_comparison *found = fake_compare(names, 2, NULL, bodies);
    CHECK(found->budget_ns == 500 * ms);
    CHECK(!found->ratios[1].different && found->ratios[1].known);
    ct_comparison_free(found);
}

static void thirty_two(void) {
    const char *many[CT_CANDIDATES_MAX + 1];
    fake_body bodies[CT_CANDIDATES_MAX + 1];
    ct_compare *begun;
    for (size_t i = 0; i <= CT_CANDIDATES_MAX; i++) {
        many[i] = "one of many";
        bodies[i] = (fake_body){.call_ns = i == 7 ? 1100 : 1000};
    }
    ct_comparison *found = fake_compare(many, CT_CANDIDATES_MAX, NULL, bodies);
    for (size_t i = 1; i < CT_CANDIDATES_MAX; i++) CHECK(found->ratios[i].different == (i == 7));
    CHECK(fabs(found->ratios[7].confidence - (1 - 0.01 / 31)) < 1e-12);
    ct_comparison_free(found);
    CHECK(ct_compare_begin(many, CT_CANDIDATES_MAX + 1, NULL, &begun) == CT_EINVAL);
}

static void wrong_arguments(void) {
    ct_compare *begun = NULL;
    ct_comparison *found = NULL;
    ct_time_finish bad[2] = {{.size = sizeof bad[0]}, {.size = sizeof bad[0], .overheads_count = 5}};
    const ct_compare_options beyond = {.size = sizeof beyond, .baseline = 2}, no_size = {0};
    CHECK(ct_compare_begin(names, 1, NULL, &begun) == CT_EINVAL &&
          ct_compare_begin(names, 0, NULL, &begun) == CT_EINVAL);
    CHECK(ct_compare_begin(NULL, 2, NULL, &begun) == CT_EINVAL && ct_compare_begin(names, 2, NULL, NULL) == CT_EINVAL);
    CHECK(ct_compare_begin(names, 2, &beyond, &begun) == CT_EINVAL);
    CHECK(ct_compare_begin(names, 2, &no_size, &begun) == CT_EINVAL && begun == NULL);
    CHECK(ct_compare_begin(names, 2, NULL, &begun) == CT_OK);
    CHECK(ct_compare_end(begun, bad, NULL, &found) == CT_EINVAL && found == NULL);
    CHECK(ct_compare_begin(names, 2, NULL, &begun) == CT_OK);
    CHECK(ct_compare_end(begun, NULL, NULL, NULL) == CT_EINVAL);
    ct_compare_free(NULL);
    ct_comparison_free(NULL);
}

/* ---- budgets ---- */

/* Minutes for each call: every candidate is called once, none twice, and that is said. */
static void bodies_of_minutes(void) {
    fake_body bodies[4] = {
        {.call_ns = 60 * second}, {.call_ns = 90 * second}, {.call_ns = 1000}, {.call_ns = 60 * second}};
    ct_comparison *found = compare(3, 500 * ms, 0, bodies);
    CHECK(bodies[0].made == 1 && bodies[1].made == 1 && bodies[2].made == 1 && bodies[3].made == 0);
    CHECK(found->rounds == 0 && !found->ratios[1].known && !found->twin.known);
    CHECK(strstr(found->ratios[1].reason, "0 rounds with a time, 9 are needed: give it a larger budget") != NULL);
    CHECK(strstr(found->notes[0], "no warm-up") != NULL);
    CHECK(found->results[1]->calls == 1 && fabs(found->results[1]->per_call_ns - 90e9) < 1e6);
    ct_comparison_free(found);
}

/* A round would take 510 ms of 500: none is begun that would end far beyond the budget. */
static void rounds_that_do_not_fit(void) {
    fake_body bodies[3] = {{.call_ns = 85 * ms}, {.call_ns = 85 * ms}, {.call_ns = 85 * ms}};
    uint64_t start = fake_clock.ns;
    ct_comparison *found = compare(2, 500 * ms, 0, bodies);
    CHECK(fake_clock.ns - start < 300 * ms);
    CHECK(!found->ratios[1].known && found->results[0]->calls == 1);
    ct_comparison_free(found);
}

/* The host collects for a second after the warm-up: not on the budget. */
static void break_is_not_counted(void) {
    fake_body bodies[3] = {{.call_ns = 1000, .warm_ns = second}, {.call_ns = 1000}, {.call_ns = 1000}};
    ct_comparison *found = compare(2, 500 * ms, 0, bodies);
    CHECK(bodies[0].warms == 1 && found->rounds > 100);
    ct_comparison_free(found);
}

static void tiny_budget(void) {
    fake_body bodies[3] = {{.call_ns = 1000}, {.call_ns = 1000}, {.call_ns = 1000}};
    ct_comparison *found = compare(2, 1, 0, bodies);
    CHECK(bodies[0].made == 1 && bodies[1].made == 1 && !found->ratios[1].known);
    ct_comparison_free(found);
}

/* ---- an end by error ---- */

static size_t whole_rounds;

/* In any slot, of any candidate: what is there counts, the half round does not. */
static void errors(void) {
    for (uint64_t at = 0; at < 20000; at = at * 5 / 4 + 1) {
        for (size_t who = 0; who < 3; who++) {
            fake_body bodies[3] = {{.call_ns = 2000}, {.call_ns = 1000}, {.call_ns = 2000}};
            bodies[who].fails = 1;
            bodies[who].fail_at = at;
            ct_comparison *found = compare(2, 30 * ms, 0, bodies);
            CHECK(found->interrupted != NULL || bodies[who].made < at || at == 0);
            if (found->interrupted != NULL) CHECK(strcmp(found->interrupted, "error") == 0);
            if (found->ratios[1].known) CHECK(fabs(found->ratios[1].ratio - 0.5) < 0.01);
            if (!found->ratios[1].known) CHECK(strstr(found->ratios[1].reason, "interrupted") != NULL);
            if (who < 2 && found->interrupted != NULL) CHECK(found->results[who]->interrupted != NULL);
            if (found->interrupted != NULL) CHECK(found->results[who == 0]->interrupted == NULL);
            whole_rounds += found->rounds;
            ct_comparison_free(found);
        }
    }
    CHECK(whole_rounds > 0);
}

/* ---- clocks ---- */

static void frozen(void) {
    ct_now_ns();
    fake_clock.counter_frozen = 1;
    fake_body bodies[3] = {{.call_ns = 1000}, {.call_ns = 1000}, {.call_ns = 1000}};
    ct_comparison *found = compare(2, 500 * ms, 0, bodies);
    CHECK(bodies[0].chunks < 200 && !found->ratios[1].known && found->rounds == found->rounds_tied);
    CHECK(strstr(found->ratios[1].reason, "the clock saw nothing of the others") != NULL);
    CHECK(!found->results[0]->per_call_known);
    ct_comparison_free(found);
}

static int ties;

static void freeze_now_and_then(fake_body *body) {
    fake_clock.counter_frozen = ++ties % 50 >= 47;
    (void)body;
}

/* Rounds of which the clock saw nothing are left out, counted and told. */
static void tied_rounds(void) {
    fake_body bodies[3] = {{.call_ns = 1000, .after = freeze_now_and_then}, {.call_ns = 2000}, {.call_ns = 1000}};
    ct_comparison *found = compare(2, 500 * ms, 0, bodies);
    CHECK(found->rounds_tied > 0 && found->rounds_tied < found->rounds);
    CHECK(strstr(found->notes[0], "rounds of which the clock saw nothing were left out") != NULL);
    CHECK(found->ratios[1].known && isfinite(found->ratios[1].ratio));
    ct_comparison_free(found);
}

static int slots_of_b, calm_every;

static void lose_the_cpu(fake_body *body) {
    (void)body;
    if (++slots_of_b % calm_every == 0) return;
    fake_clock.ns += 4 * ms;
    fake_usage.preemptions++;
}

/* Most rounds have a slot in which another thread had the CPU: of two slots the other counts, and where both were
 * disturbed the round is left out. If all are, they have to do. */
static void disturbed_rounds(void) {
    fake_body bodies[3] = {
        {.call_ns = 1000}, {.call_ns = 1000, .after = lose_the_cpu}, {.call_ns = 1000}};
    calm_every = 3;
    ct_comparison *found = compare(2, 2 * second, 0, bodies);
    CHECK(found->rounds_disturbed * 4 > found->rounds && found->rounds_disturbed < found->rounds);
    CHECK(fabs(found->ratios[1].ratio - 1) < 0.001 && !found->ratios[1].different);
    CHECK(strstr(found->notes[0], "other threads had the CPU in ") != NULL);
    ct_comparison_free(found);
    calm_every = INT_MAX;
    found = compare(2, 2 * second, 0, bodies);
    CHECK(found->rounds_disturbed == found->rounds);
    CHECK(found->ratios[1].known && found->ratios[1].different && found->ratios[1].ratio > 4);
    ct_comparison_free(found);
}

static void coarse(void) {
    setenv("CODETIMER_CLOCK", "monotonic", 1);
    fake_clock.grain_ns = 15625000;
    fake_body bodies[3] = {{.call_ns = 1000}, {.call_ns = 1250}, {.call_ns = 1000}};
    ct_comparison *found = compare(2, 500 * ms, 0, bodies);
    CHECK(!found->ratios[1].known);
    ct_comparison_free(found);
    found = compare(2, 300 * second, 0, bodies);
    CHECK(found->ratios[1].known && fabs(found->ratios[1].ratio - 1.25) < 0.03);
    ct_comparison_free(found);
}

/* A slot costs something beyond its calls, and one candidate's first call seems slow: its slots must not stay short, or
 * it would carry more of that than the other. */
static void slots_of_one_length(void) {
    fake_body bodies[3] = {{.call_ns = 1000, .chunk_ns = 2000},
                           {.call_ns = 1000, .chunk_ns = 2000, .first_ns = 20 * ms},
                           {.call_ns = 1000, .chunk_ns = 2000}};
    ct_comparison *found = compare(2, 500 * ms, 0, bodies);
    CHECK(fabs(found->ratios[1].ratio - 1) < 0.001 && !found->ratios[1].different);
    ct_comparison_free(found);
}

static uint64_t drift_start;

/* Twice as slow after half a second. A body that does not fail has its first pace there. */
static void drift(fake_body *body) {
    body->call_ns = body->fail_at + body->fail_at * ((fake_clock.ns - drift_start) / 1000) / 500000;
}

/* A machine that gets slower all the time: within a round it cancels. */
static void drift_cancels(void) {
    fake_body bodies[3] = {{.call_ns = 10000, .fail_at = 10000, .after = drift},
                           {.call_ns = 11000, .fail_at = 11000, .after = drift},
                           {.call_ns = 10000, .fail_at = 10000, .after = drift}};
    drift_start = fake_clock.ns;
    ct_comparison *found = compare(2, 500 * ms, 0, bodies);
    CHECK(fabs(found->ratios[1].ratio - 1.1) < 0.001 && found->ratios[1].different);
    CHECK(fabs(found->twin.ratio - 1) < 0.001);
    ct_comparison_free(found);
}

/* ---- words ---- */

static char text[8192];

static const char *format(const ct_comparison *found, const ct_report_options *options) {
    size_t length = ct_comparison_format(found, options, text, sizeof text);
    CHECK(length == strlen(text) && ct_comparison_format(found, options, NULL, 0) == length);
    return text;
}

static void words(void) {
    ct_report_options options = {.size = sizeof options};
    fake_body bodies[4] = {{.call_ns = 1000}, {.call_ns = 1340}, {.call_ns = 1000}, {.call_ns = 1000}};
    ct_comparison *found = compare(3, 600 * ms, 0, bodies);
    format(found, NULL);
    CHECK(strncmp(text, "Candidate  ", 11) == 0);
    CHECK(strstr(text, "\nb is 1.34\xc3\x97 slower than a, 1.34\xe2\x80\x93"
                       "1.34\n") != NULL);
    CHECK(strstr(text, "\nc and a: no difference resolved; this machine resolves ") != NULL);
    CHECK(strstr(text, "baseline") != NULL && strstr(text, "1.340 (") != NULL && strstr(text, "Rounds:") == NULL);
    CHECK(strcmp(text + strlen(text) - 2, "\n\n") == 0);
    options.ascii = options.color = options.verbose = 1;
    format(found, &options);
    for (const char *at = text; *at != '\0'; at++) CHECK((unsigned char)*at < 0x80);
    CHECK(strstr(text, "\x1b[33mb\x1b[0m is 1.34x slower than \x1b[33ma\x1b[0m, 1.34-1.34\n") != NULL);
    CHECK(strstr(text, "against itself: 1.000 (") != NULL && strstr(text, "Rounds: ") != NULL);
    options = (ct_report_options){.size = sizeof options, .line = 1};
    CHECK(strchr(format(found, &options), '\n') == NULL && strstr(text, "; c and a: no difference") != NULL);
    ct_comparison_free(found);
}

static void words_of_an_early_end(void) {
    fake_body bodies[3] = {{.call_ns = 1000}, {.call_ns = 1000, .fails = 1, .fail_at = 5}, {.call_ns = 1000}};
    ct_comparison *found = compare(2, 100 * ms, 0, bodies);
    format(found, NULL);
    CHECK(strstr(text, "b and a: not compared (0 rounds with a time, 8 are needed: it was interrupted)\n") != NULL);
    CHECK(strstr(text, "Ended early after 0 rounds (error)\n") != NULL);
    ct_comparison_free(found);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_CHILD(order_of_turns),
        IN_CHILD(ratios),
        IN_CHILD(default_budget),
        IN_CHILD(thirty_two),
        IN_CHILD(wrong_arguments),
        IN_CHILD(bodies_of_minutes),
        IN_CHILD(rounds_that_do_not_fit),
        IN_CHILD(break_is_not_counted),
        IN_CHILD(tiny_budget),
        IN_CHILD(errors),
        IN_CHILD(frozen),
        IN_CHILD(tied_rounds),
        IN_CHILD(disturbed_rounds),
        IN_CHILD(coarse),
        IN_CHILD(slots_of_one_length),
        IN_CHILD(drift_cancels),
        IN_CHILD(words),
        IN_CHILD(words_of_an_early_end),
    };
    unsetenv("CODETIMER_CLOCK");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
