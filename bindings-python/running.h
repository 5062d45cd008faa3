/* SPDX-License-Identifier: MIT
 *
 * running.h: what time and compare share: the calls, the collector around them, and what ends them early.
 */
#ifndef CTPY_RUNNING_H
#define CTPY_RUNNING_H

#include "common.h"

/* ---- block.c ---- */

/* Python functions that call "fn" 64, 16, 4 times, and once; NULL where calls from C are quicker. */
typedef struct ctpy_block {
    PyObject *functions[CTPY_BLOCK_SIZES];
} ctpy_block;

/* Passes the interpreter's safe point. Returns 0, or -1 with the exception that was raised there. */
int ctpy_safe_point(ctpy_state *state);

/* New functions for calls of "fn". Returns 0, or -1 with an exception and an empty block. */
int ctpy_block_prepare(ctpy_state *state, PyObject *fn, ctpy_block *block);

/* The same of these codes (block_codes or copies of them), which nobody else runs, so that what the interpreter learns
 * in them about one function stays while others run. */
int ctpy_block_make(PyObject *const *codes, ctpy_block *block);

/* Whether calls of "fn" are made by blocks. Then state->block_codes are there. -1 with an exception. */
int ctpy_block_wanted(ctpy_state *state, PyObject *fn);
void ctpy_block_clear(ctpy_block *block);

/* After "function" of a block has failed: how many calls it completed. Takes it out of the exception's traceback. */
uint64_t ctpy_block_failed(const ctpy_state *state, PyObject *function);

/* ---- collector.c ---- */

/* What the collector has done so far, and whether it is on. */
typedef struct ctpy_collections {
    int enabled;
    size_t generations;
    uint64_t counts[CT_GC_GENERATIONS_MAX];
} ctpy_collections;

extern const char *const ctpy_gc_labels[CT_GC_GENERATIONS_MAX];

/* Reads without setting off a collection. Returns 0, or -1 with an exception and no generations. */
int ctpy_collections_read(const ctpy_state *state, ctpy_collections *reading);

/* gc.get_threshold(). */
typedef struct ctpy_thresholds {
    int known;
    long long values[3];
} ctpy_thresholds;

/* Reads without setting off a collection, and without leaving an exception. */
void ctpy_thresholds_read(const ctpy_state *state, ctpy_thresholds *thresholds);
int ctpy_thresholds_changed(const ctpy_state *state, const ctpy_thresholds *before);

/* Collects, and passes a safe point: a collection that was due before (since 3.12 they wait for one) is not the
 * run's. Returns 0, or -1 with an exception. */
int ctpy_collect(const ctpy_state *state);

/* An entry in gc.callbacks, which adds the pauses of the collector up. Lives as long as "entry". */
typedef struct ctpy_pauses {
    PyObject *entry;
    ct_gc_time *into;  /* NULL: they are nobody's */
    uint64_t start_ns; /* of the collection under way */
    int under_way;
} ctpy_pauses;

/* Enters it. NULL with an exception. */
ctpy_pauses *ctpy_pauses_begin(const ctpy_state *state);

/* Takes it out, also if an exception is set, which stays. Accepts NULL. Returns 0 where it had been taken out already:
 * pauses may be missing. */
int ctpy_pauses_end(const ctpy_state *state, ctpy_pauses *pauses);

/* The collector around one run. */
typedef struct ctpy_gc {
    const ctpy_state *state;
    ctpy_pauses *pauses; /* NULL: not asked for */
    ct_gc_time time;
    int enabled;                /* was the collector, before the first call */
    ctpy_thresholds thresholds; /* likewise */
    int known;                  /* "before" is */
    ctpy_collections before;
} ctpy_gc;

/* Collects and takes the counts; also once more after the warm-up of an automatic run. Returns 0, or -1 with an
 * exception. */
int ctpy_gc_begin(ctpy_gc *gc);

/* ---- loop.c ---- */

/* Whoever wants to know how far a run has come, now and then. */
typedef struct ctpy_progress {
    PyObject *callback; /* called with a float from 0 to 1, and the nanoseconds per call so far (0: not known) */
    uint64_t next_ns;
} ctpy_progress;

/* Tells, unless it has done so in the last tenth of a second. Returns 0, or -1 with the exception of the callback. */
int ctpy_progress_tell(ctpy_progress *progress, double part, double per_call_ns);

typedef struct ctpy_body {
    PyObject *fn;
    ctpy_block block;
    ctpy_gc *gc;             /* of an automatic run, else NULL */
    ctpy_progress *progress; /* NULL: nobody wants to know */
} ctpy_body;

/* Gives up the GIL for a moment, if calls of "fn" do so by themselves. */
void ctpy_offer_gil(PyObject *fn);

/* Makes the calls of a run, by the block unless it is empty. Returns 0, or -1 with the exception that ended it early.
 */
int ctpy_loop(ctpy_state *state, ct_run *run, const ctpy_body *body);

/* ---- pending.c: an exception put aside ---- */

typedef struct ctpy_pending {
    PyObject *type, *value, *traceback;
    PyObject *kept; /* holds the text of "word" */
    const char *word; /* what ended the run: "interrupted" for Ctrl-C, else the name of its type; NULL: nothing did */
} ctpy_pending;

void ctpy_pending_take(ctpy_pending *pending);

/* Raises it again, in the place of any other, and drops "result"; without one returns "result". */
PyObject *ctpy_pending_raise(ctpy_pending *pending, PyObject *result);

/* An exception that came after the run ended well is the one to raise, but nothing that was put aside. */
void ctpy_pending_add(ctpy_pending *pending);

/* The exception for a status of the core other than CT_OK. Returns NULL. */
PyObject *ctpy_report_status(int status);

/* ---- rounds.c: candidates in turns ---- */

typedef struct ctpy_candidate {
    PyObject *name;    /* str */
    PyObject *encoded; /* bytes, as in ctpy_call */
    PyObject *fn;
    int is_generator;
    size_t generations;
    uint64_t collections[CT_GC_GENERATIONS_MAX];
    ct_gc_time gc_time;
} ctpy_candidate;

typedef struct ctpy_rounds {
    ctpy_state *state;
    ct_compare *compare;
    ctpy_candidate *candidates;
    size_t count, baseline;
    ctpy_body *bodies;       /* [count + 1, the twin][CTPY_LAYOUTS] */
    uint64_t turns;          /* since the warm-up */
    ctpy_pauses *pauses;     /* NULL: not asked for */
    ctpy_progress *progress; /* NULL: nobody wants to know */
    size_t ended_by;         /* the candidate that raised; count where none did */
    uint64_t pause_ns;       /* when others were let in */
    int collected;           /* the collector was switched on before the first call */
    ctpy_thresholds thresholds;
} ctpy_rounds;

/* Begins the comparison, with copies of its own code for each candidate. Returns 0, or -1 with an exception;
 * ctpy_rounds_clear is due in either case. */
int ctpy_rounds_begin(ctpy_rounds *rounds, uint64_t budget_ns);

/* All turns until the budget is used up. Returns 0, or -1 with the exception that ended it early. */
int ctpy_rounds_run(ctpy_rounds *rounds);

/* Drops the copies, and a comparison that was not ended. */
void ctpy_rounds_clear(ctpy_rounds *rounds);

/* ---- statement.c ---- */

int ctpy_statement_check(const ctpy_state *state, PyObject *fn);

/* Up to "k" turns of a Statement. Returns those completed; *failed is 1 with the exception that ended the last one. */
uint64_t ctpy_statement_run(PyObject *self, uint64_t k, int *failed);

/* Its generator function (borrowed). */
PyObject *ctpy_statement_function(PyObject *self);

/* Another Statement, of "function", which runs the setup for it. */
PyObject *ctpy_statement_copy(PyObject *self, PyObject *function);

/* Whether the setup took so little that it may be run for some copies more. */
int ctpy_statement_is_quick(PyObject *self);

/* What an empty turn takes: *count is 0 where nobody has said. */
void ctpy_statement_overhead(PyObject *self, ct_overhead *overheads, size_t *count);

/* ---- overheads.c ---- */

enum { CTPY_OVERHEADS = 2 };

/* What empty calls take in this process, measured at the first question, in some 20 ms; of the two kinds, Python
 * functions and other callables, "is_python" says which is first. *count is 0 where the clock is too coarse to tell.
 * Returns 0, or -1 with an exception. */
int ctpy_overheads(ctpy_state *state, int is_python, ct_overhead overheads[CTPY_OVERHEADS], size_t *count);

/* The same for what "fn" is, also a Statement. */
int ctpy_overheads_of(ctpy_state *state, PyObject *fn, ct_overhead overheads[CTPY_OVERHEADS], size_t *count);

#endif
