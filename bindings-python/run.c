/* SPDX-License-Identifier: MIT
 *
 * run.c: codetimer.time: one run from its arguments to its printed report.
 *
 * The order is the point. The core allocates the run before the full collection, and from the collection to the end of
 * the last call nothing here creates an object that the collector knows, so its counts move by what the calls do. The
 * exception that ends a run is put aside while the result is made and printed, and comes out as the object it was; no
 * failure on the way takes its place. A run that has begun has a result, also if Ctrl-C comes before its first call.
 */
#include "allocations.h"
#include "running.h"

typedef struct timed_run {
    ctpy_state *state;
    const ctpy_call *call;
    ct_run *run;
    ctpy_body body;
    ctpy_gc gc;
    ctpy_progress progress;
    ct_overhead overheads[CTPY_OVERHEADS];
    size_t overheads_count;
} timed_run;

/* ---- what the host knows ---- */

/* Also what a call of the warm-up has changed. */
static void note_gc(ct_run *run, const ctpy_gc *gc, const ctpy_collections *after) {
    if (gc->enabled && !after->enabled) ct_time_note(run, "the garbage collector was switched off during the run");
    if (!gc->enabled && after->enabled) ct_time_note(run, "the garbage collector was switched on during the run");
    if (ctpy_thresholds_changed(gc->state, &gc->thresholds))
        ct_time_note(run, "the thresholds of the garbage collector were changed during the run");
}

/* Takes the counts after the run. Where it came to no call, those before it are the same. */
static void read_after(timed_run *timed, ctpy_collections *after) {
    if (ctpy_collections_read(timed->state, after) < 0) {
        PyErr_Clear();
        ct_time_note(timed->run, "collections are unknown: gc.get_stats failed after the run");
    }
    if (!timed->gc.known) timed->gc.before = *after;
    note_gc(timed->run, &timed->gc, after);
}

/* Whether the pauses are known. */
static int end_pauses(timed_run *timed) {
    if (timed->gc.pauses == NULL) return 0;
    const int whole = ctpy_pauses_end(timed->state, timed->gc.pauses);
    timed->gc.pauses = NULL;
    if (!whole) ct_time_note(timed->run, "GC time is unknown: gc.callbacks was emptied during the run");
    return whole;
}

static int end_run(timed_run *timed, const char *interrupted, ct_result **result) {
    ctpy_collections after;
    const int pauses_known = end_pauses(timed);
    read_after(timed, &after);
    const ctpy_collections *before = &timed->gc.before;
    const ct_time_finish finish = {
        .size = sizeof finish,
        .interrupted = interrupted,
        .gc_generations = before->generations < after.generations ? before->generations : after.generations,
        .gc_labels = ctpy_gc_labels,
        .gc_before = before->counts,
        .gc_after = after.counts,
        .gc_time = pauses_known ? &timed->gc.time : NULL,
        .overheads_count = timed->overheads_count,
        .overheads = timed->overheads};
    return ct_time_end(timed->run, &finish, result);
}

/* ---- the end ---- */

/* Only after a whole run: a body that has failed would fail again. */
static void count_memory(const timed_run *timed, ct_result *result, ctpy_pending *raised) {
    ct_memory memory = {.reason = "the run did not come to its end"};
    if (!timed->call->memory) return;
    if (raised->type == NULL && ctpy_count_allocations(timed->body.fn, ct_result_memory_calls(result), &memory) < 0)
        ctpy_pending_add(raised);
    (void)ct_result_set_memory(result, &memory);
}

static PyObject *keep_result(const timed_run *timed, ct_result *made) {
    PyObject *fn = timed->body.fn;
    const int is_python = ctpy_statement_check(timed->state, fn) ? -1 : PyFunction_Check(fn);
    PyObject *result = ctpy_result_new(timed->state, timed->call->name, made, is_python, NULL);
    if (result != NULL) Py_XSETREF(timed->state->last_result, Py_NewRef(result));
    return result;
}

/* Everything after the last call: the result is kept before it is printed, so that a failure to print loses nothing. */
static PyObject *conclude(timed_run *timed) {
    ctpy_pending raised;
    ct_result *made;
    ctpy_pending_take(&raised);
    int status = end_run(timed, raised.word, &made);
    if (status != CT_OK) return ctpy_pending_raise(&raised, ctpy_report_status(status));
    count_memory(timed, made, &raised);
    PyObject *result = keep_result(timed, made);
    if (result != NULL && ctpy_print(ctpy_result_get(result), timed->call->file, timed->call->verbose) < 0)
        Py_CLEAR(result);
    return ctpy_pending_raise(&raised, result);
}

/* ---- the run ---- */

static int begin_run(timed_run *timed) {
    const ctpy_call *call = timed->call;
    const ct_time_options options = {.size = sizeof options,
                                     .name_length = (size_t)PyBytes_GET_SIZE(call->encoded),
                                     .budget_ns = call->budget_ns};
    int status = ct_time_begin(PyBytes_AS_STRING(call->encoded), call->n, &options, &timed->run);
    if (status != CT_OK) (void)ctpy_report_status(status);
    if (status == CT_OK && call->is_generator)
        ct_time_note(timed->run, "fn is a generator function: only the creation of its generators was timed");
    return status == CT_OK ? 0 : -1;
}

static PyObject *make_run(timed_run *timed) {
    if (timed->call->gc_time && (timed->gc.pauses = ctpy_pauses_begin(timed->state)) == NULL) return NULL;
    if (begin_run(timed) < 0) {
        (void)ctpy_pauses_end(timed->state, timed->gc.pauses);
        return NULL;
    }
    timed->gc.enabled = PyGC_IsEnabled();
    ctpy_thresholds_read(timed->state, &timed->gc.thresholds);
    if (ctpy_gc_begin(&timed->gc) == 0) (void)ctpy_loop(timed->state, timed->run, &timed->body);
    return conclude(timed); /* the exception of either is still set */
}

static PyObject *run_call(ctpy_state *state, const ctpy_call *call) {
    timed_run timed = {.state = state, .call = call, .gc.state = state, .progress.callback = call->progress};
    const int wanted = call->n == CT_N_AUTOMATIC || call->verbose || ctpy_statement_check(state, call->fn);
    if (wanted && ctpy_overheads_of(state, call->fn, timed.overheads, &timed.overheads_count) < 0) return NULL;
    timed.body = (ctpy_body){.fn = call->fn, .gc = &timed.gc, .progress = &timed.progress};
    if (ctpy_block_prepare(state, call->fn, &timed.body.block) < 0) return NULL;
    PyObject *result = make_run(&timed);
    ctpy_block_clear(&timed.body.block);
    return result;
}

PyObject *ctpy_time(PyObject *module, PyObject *args, PyObject *kwargs) {
    ctpy_call call;
    PyObject *result = NULL;
    if (ctpy_parse_call(args, kwargs, &call) == 0) result = run_call(ctpy_get_state(module), &call);
    ctpy_call_clear(&call);
    return result;
}
