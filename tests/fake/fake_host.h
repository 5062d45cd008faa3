/* SPDX-License-Identifier: MIT
 *
 * fake_host.h: a host in place of a language: it "makes" calls by moving the scripted clock.
 *
 * A chunk of any size costs nothing to make, so that scripts may ask for millions of calls.
 */
#ifndef FAKE_HOST_H
#define FAKE_HOST_H

#include "codetimer.h"

typedef struct fake_body {
    uint64_t first_ns; /* of the very first call, beyond the others */
    uint64_t call_ns;  /* of every call */
    uint64_t chunk_ns; /* of every chunk, whatever its size */
    int fails;
    uint64_t fail_at; /* if it "fails": this call (0-based) */
    uint64_t cut_at;  /* chunks of more calls are cut here, without an error; 0: none is */
    uint64_t warm_ns; /* what the host's break between warm-up and batches takes */
    /* Called after each chunk, with the calls so far. NULL: nothing. */
    void (*after)(struct fake_body *body);
    /* what was seen */
    uint64_t made, chunks, chunk_max, warm_at;
    double growth_max; /* largest chunk by the largest before it */
    int warms;
} fake_body;

/* Makes the next chunk of k calls. Returns those completed. */
uint64_t fake_calls(ct_run *run, fake_body *body, uint64_t k);

/* Drives a run that has begun until there is nothing more to do. Ends the program if that takes 10^7 chunks. */
void fake_drive(ct_run *run, fake_body *body);

/* A whole run. "finish" may be NULL; a body that failed is marked "error". */
ct_result *fake_time(int64_t n, uint64_t budget_ns, fake_body *body, const ct_time_finish *finish);

/* A whole comparison: bodies[count] is the twin's. */
ct_comparison *fake_compare(const char *const *names, size_t count, const ct_compare_options *options,
                            fake_body *bodies);

/* 1 if some note has this in it. */
int fake_has_note(const ct_result *result, const char *part);

#endif
