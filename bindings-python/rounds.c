/* SPDX-License-Identifier: MIT
 *
 * rounds.c: the turns of a comparison: whose calls come next is the core's to say, and they are made as in a run.
 *
 * Each candidate, and the twin, has copies of its code and calling code of its own (see layouts.c, block.c), which come
 * in turn. The collector is left as it is: a collection
 * falls on the candidate whose allocation makes it due. Its counts are read around each turn, outside the clock. In a
 * turn nothing here makes an object.
 */
#include "layouts.h"

static const uint64_t pause_every_ns = 5000000;

/* Rounds before the next copies are called: the first slot of each is to find its code in the caches again. */
enum { ROUNDS_EACH = 4 };

/* ---- begin ---- */

static int prepare_bodies(ctpy_rounds *rounds) {
    PyObject *fns[CT_CANDIDATES_MAX + 1];
    for (size_t i = 0; i < rounds->count; i++) fns[i] = rounds->candidates[i].fn;
    fns[rounds->count] = fns[rounds->baseline];
    rounds->bodies = PyMem_Calloc((rounds->count + 1) * CTPY_LAYOUTS, sizeof *rounds->bodies);
    if (rounds->bodies == NULL) PyErr_NoMemory();
    return rounds->bodies != NULL ? ctpy_bodies_make(rounds->state, fns, rounds->count + 1, rounds->bodies) : -1;
}

int ctpy_rounds_begin(ctpy_rounds *rounds, uint64_t budget_ns) {
    const char *names[CT_CANDIDATES_MAX];
    size_t lengths[CT_CANDIDATES_MAX];
    rounds->compare = NULL;
    rounds->ended_by = rounds->count;
    if (prepare_bodies(rounds) < 0) return -1;
    for (size_t i = 0; i < rounds->count; i++) {
        names[i] = PyBytes_AS_STRING(rounds->candidates[i].encoded);
        lengths[i] = (size_t)PyBytes_GET_SIZE(rounds->candidates[i].encoded);
    }
    const ct_compare_options options = {
        .size = sizeof options, .budget_ns = budget_ns, .baseline = rounds->baseline, .name_lengths = lengths};
    int status = ct_compare_begin(names, rounds->count, &options, &rounds->compare);
    if (status != CT_OK) (void)ctpy_report_status(status);
    return status == CT_OK ? 0 : -1;
}

void ctpy_rounds_clear(ctpy_rounds *rounds) {
    if (rounds->bodies != NULL) ctpy_bodies_clear(rounds->bodies, rounds->count + 1);
    PyMem_Free(rounds->bodies);
    rounds->bodies = NULL;
    ct_compare_free(rounds->compare);
    rounds->compare = NULL;
}

/* ---- what the collector did ---- */

static void forget(ctpy_rounds *rounds) {
    for (size_t i = 0; i < rounds->count; i++) {
        ctpy_candidate *candidate = &rounds->candidates[i];
        for (size_t j = 0; j < CT_GC_GENERATIONS_MAX; j++) candidate->collections[j] = 0;
        candidate->gc_time = (ct_gc_time){0, 0, 0};
    }
}

static void add_counts(ctpy_candidate *candidate, const ctpy_collections *before, const ctpy_collections *after) {
    candidate->generations = before->generations < after->generations ? before->generations : after->generations;
    for (size_t i = 0; i < candidate->generations; i++)
        if (after->counts[i] > before->counts[i]) candidate->collections[i] += after->counts[i] - before->counts[i];
}

/* An exception that is set stays set. */
static void count_turn(ctpy_rounds *rounds, ctpy_candidate *candidate, const ctpy_collections *before) {
    PyObject *type, *value, *traceback;
    ctpy_collections after;
    PyErr_Fetch(&type, &value, &traceback);
    if (ctpy_collections_read(rounds->state, &after) == 0) add_counts(candidate, before, &after);
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

/* ---- turns ---- */

/* All candidates are called at the same places in a round. */
static const ctpy_body *choose_body(ctpy_rounds *rounds, size_t at) {
    const uint64_t round = rounds->turns++ / (2 * (rounds->count + 1));
    return &rounds->bodies[at * CTPY_LAYOUTS + round / ROUNDS_EACH % CTPY_LAYOUTS];
}

/* "at" is count for the twin. */
static int take_turn(ctpy_rounds *rounds, size_t at, ct_run *run) {
    const ctpy_body *body = choose_body(rounds, at);
    ctpy_candidate *candidate = &rounds->candidates[at];
    ctpy_collections before;
    if (at == rounds->count) return ctpy_loop(rounds->state, run, body);
    if (ctpy_collections_read(rounds->state, &before) < 0) return -1;
    if (rounds->pauses != NULL) rounds->pauses->into = &candidate->gc_time;
    const int status = ctpy_loop(rounds->state, run, body);
    if (rounds->pauses != NULL) rounds->pauses->into = NULL;
    count_turn(rounds, candidate, &before);
    return status;
}

/* Others get their turn as in a run: a turn here may be too short to have a pause. */
static int come_up(ctpy_rounds *rounds, PyObject *fn) {
    const uint64_t now_ns = ct_now_ns();
    if (now_ns - rounds->pause_ns >= pause_every_ns) {
        rounds->pause_ns = now_ns;
        ctpy_offer_gil(fn);
    }
    if (rounds->progress == NULL) return 0;
    return ctpy_progress_tell(rounds->progress, ct_compare_progress(rounds->compare), 0);
}

int ctpy_rounds_run(ctpy_rounds *rounds) {
    size_t at;
    ct_run *run;
    int what, failed = ctpy_collect(rounds->state) < 0;
    while (!failed && (what = ct_compare_next(rounds->compare, &at, &run)) != 0) {
        if (what == CT_WARM) {
            failed = ctpy_collect(rounds->state) < 0;
            forget(rounds);
            rounds->turns = 0;
            continue;
        }
        failed = take_turn(rounds, at, run) < 0;
        if (failed) rounds->ended_by = at < rounds->count ? at : rounds->baseline;
        if (!failed) failed = come_up(rounds, rounds->candidates[at < rounds->count ? at : rounds->baseline].fn) < 0;
    }
    return failed ? -1 : 0;
}
