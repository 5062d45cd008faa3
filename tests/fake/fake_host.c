/* SPDX-License-Identifier: MIT
 *
 * fake_host.c: see fake_host.h.
 */
#include "fake_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_clock.h"

enum { CHUNKS_MOST = 10000000 };

/* Ends the program, and with it the test: this file is also linked where there is no cmocka. */
static void insist(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "fake_host.c: %s\n", what);
    abort();
}

static void describe(const ct_run *run, const fake_body *body) {
    fprintf(stderr, "progress %g, %g calls in %g chunks; a call %g ns, a chunk %g ns, cut at %g, readings %g ns\n",
            ct_time_progress(run), (double)body->made, (double)body->chunks, (double)body->call_ns,
            (double)body->chunk_ns, (double)body->cut_at, (double)fake_clock.step_ns);
}

static void note_chunk(fake_body *body, uint64_t k) {
    double growth = body->chunk_max > 0 ? (double)k / (double)body->chunk_max : 0;
    if (growth > body->growth_max) body->growth_max = growth;
    if (k > body->chunk_max) body->chunk_max = k;
    body->chunks++;
}

uint64_t fake_calls(ct_run *run, fake_body *body, uint64_t k) {
    uint64_t done = body->cut_at > 0 && k > body->cut_at ? body->cut_at : k;
    note_chunk(body, k);
    int fails = body->fails && body->fail_at >= body->made && body->fail_at - body->made < done;
    if (fails) {
        done = body->fail_at - body->made;
    } else if (done < k) {
        ct_time_cut(run);
    }
    fake_clock.ns += body->call_ns * (done + (uint64_t)fails) + body->chunk_ns + (body->made == 0 ? body->first_ns : 0);
    body->made += done;
    if (body->after != NULL) body->after(body);
    return done;
}

void fake_drive(ct_run *run, fake_body *body) {
    uint64_t k;
    int what;
    for (int i = 0; (what = ct_time_next(run, &k)) != 0; i++) {
        if (i == CHUNKS_MOST) describe(run, body);
        insist(i < CHUNKS_MOST, "no end");
        if (what == CT_WARM) {
            body->warms++;
            body->warm_at = body->made;
            fake_clock.ns += body->warm_ns;
            continue;
        }
        ct_time_done(run, fake_calls(run, body, k));
    }
}

static int has_failed(const fake_body *body) { return body->fails && body->made == body->fail_at; }

ct_result *fake_time(int64_t n, uint64_t budget_ns, fake_body *body, const ct_time_finish *finish) {
    const ct_time_options options = {.size = sizeof options, .budget_ns = budget_ns};
    ct_time_finish how = {.size = sizeof how};
    ct_run *run;
    ct_result *result;
    insist(ct_time_begin("fake", n, &options, &run) == CT_OK, "refused");
    fake_drive(run, body);
    if (finish != NULL) how = *finish;
    if (has_failed(body)) how.interrupted = "error";
    insist(ct_time_end(run, &how, &result) == CT_OK, "refused");
    return result;
}

ct_comparison *fake_compare(const char *const *names, size_t count, const ct_compare_options *options,
                            fake_body *bodies) {
    ct_compare *compare;
    ct_comparison *comparison;
    ct_run *run;
    size_t candidate;
    int what, failed = 0;
    insist(ct_compare_begin(names, count, options, &compare) == CT_OK, "refused");
    for (int i = 0; (what = ct_compare_next(compare, &candidate, &run)) != 0; i++) {
        insist(i < CHUNKS_MOST, "no end");
        if (what == CT_WARM) {
            fake_clock.ns += bodies[0].warm_ns;
            bodies[0].warms++;
            continue;
        }
        insist(candidate <= count, "no such candidate");
        fake_drive(run, &bodies[candidate]);
        failed |= has_failed(&bodies[candidate]);
    }
    insist(ct_compare_end(compare, NULL, failed ? "error" : NULL, &comparison) == CT_OK, "refused");
    return comparison;
}

int fake_has_note(const ct_result *result, const char *part) {
    for (size_t i = 0; i < result->notes_count; i++)
        if (strstr(result->notes[i], part) != NULL) return 1;
    return 0;
}
