/* SPDX-License-Identifier: MIT
 *
 * run.c: codetimer.time: one run from its arguments to its printed report.
 *
 * The order is the point. The core allocates the run before the full collection, and from the collection to the end of
 * the last call nothing here creates an object that the collector knows, so its counts move by what the calls do. The
 * exception that ends a run is put aside while the result is made and printed, and comes out as the object it was; no
 * failure on the way takes its place. A run that has begun has a result, also if Ctrl-C comes before its first call.
 */
#include "common.h"

/* What the collector has done so far, and whether it is on. */
typedef struct gc_reading {
    int enabled;
    size_t generations;
    uint64_t collections[CT_GC_GENERATIONS_MAX];
} gc_reading;

static const char *const gc_labels[CT_GC_GENERATIONS_MAX] = {"Gen 0", "Gen 1", "Gen 2", "Gen 3"};

/* An exception put aside. */
typedef struct pending {
    PyObject *type, *value, *traceback;
} pending;

/* ---- garbage collector ---- */

static int read_collections(PyObject *stats, gc_reading *reading) {
    if (!PyList_Check(stats)) return -1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(stats) && i < CT_GC_GENERATIONS_MAX; i++) {
        PyObject *generation = PyList_GET_ITEM(stats, i);
        PyObject *count = PyDict_Check(generation) ? PyDict_GetItemString(generation, "collections") : NULL;
        if (count == NULL) return -1;
        reading->collections[i] = PyLong_AsUnsignedLongLong(count);
        if (PyErr_Occurred()) return -1;
        reading->generations++;
    }
    return 0;
}

/* The collector is off for the moment of the reading: the dicts that get_stats makes must not set off a collection. */
static int read_gc(ctpy_state *state, gc_reading *reading) {
    *reading = (gc_reading){0};
    reading->enabled = PyGC_Disable();
    PyObject *stats = PyObject_CallNoArgs(state->gc_get_stats);
    int read = stats != NULL ? read_collections(stats, reading) : -1;
    Py_XDECREF(stats);
    if (reading->enabled) PyGC_Enable();
    return read;
}

/* Collects, and passes a safe point: a collection that was due before (since 3.12 they wait for one) is not the run's.
 */
static int collect(ctpy_state *state) {
    PyObject *found = PyObject_CallNoArgs(state->gc_collect);
    Py_XDECREF(found);
    return found != NULL ? PyErr_CheckSignals() : -1;
}

static void note_gc(ct_run *run, const gc_reading *before, const gc_reading *after) {
    if (before->enabled && !after->enabled) ct_time_note(run, "the garbage collector was switched off during the run");
    if (!before->enabled && after->enabled) ct_time_note(run, "the garbage collector was switched on during the run");
}

/* ---- what ended the run ---- */

/* A word for the exception: "interrupted" for Ctrl-C, else the name of its type. *kept holds the text. */
static const char *describe_pending(const pending *raised, PyObject **kept) {
    if (raised->type == NULL) return NULL;
    if (PyErr_GivenExceptionMatches(raised->type, PyExc_KeyboardInterrupt)) return "interrupted";
    *kept = PyObject_GetAttrString(raised->type, "__name__");
    const char *word = *kept != NULL && PyUnicode_Check(*kept) ? PyUnicode_AsUTF8(*kept) : NULL;
    if (word == NULL) PyErr_Clear();
    return word != NULL ? word : "error";
}

static PyObject *report_status(int status) {
    if (status == CT_ENOMEM) return PyErr_NoMemory();
    return PyErr_Format(PyExc_SystemError, "codetimer: %s (%s)", ct_status_text(status), ct_status_name(status));
}

/* Ends the run and makes the Result, whatever ended it. "before" is NULL where it came to no call. */
static PyObject *finish_run(ctpy_state *state, const ctpy_call *call, ct_run *run, const gc_reading *before,
                            const pending *raised) {
    gc_reading after;
    if (read_gc(state, &after) < 0) {
        PyErr_Clear();
        after.generations = 0;
        ct_time_note(run, "collections are unknown: gc.get_stats failed after the run");
    }
    if (before == NULL) before = &after;
    note_gc(run, before, &after);
    PyObject *kept = NULL;
    const size_t generations = before->generations < after.generations ? before->generations : after.generations;
    const ct_time_finish finish = {.size = sizeof finish,
                                   .interrupted = describe_pending(raised, &kept),
                                   .gc_generations = generations,
                                   .gc_labels = gc_labels,
                                   .gc_before = before->collections,
                                   .gc_after = after.collections};
    ct_result *result;
    int status = ct_time_end(run, &finish, &result);
    Py_XDECREF(kept);
    return status == CT_OK ? ctpy_result_new(state, call->name, result) : report_status(status);
}

/* ---- the run ---- */

/* Everything after the last call: the result is kept before it is printed, so that a failure to print loses nothing. */
static PyObject *conclude(ctpy_state *state, const ctpy_call *call, ct_run *run, const gc_reading *before) {
    pending raised;
    PyErr_Fetch(&raised.type, &raised.value, &raised.traceback);
    PyObject *result = finish_run(state, call, run, before, &raised);
    if (result != NULL) {
        Py_XSETREF(state->last_result, Py_NewRef(result));
        if (ctpy_print(ctpy_result_get(result), call->file) < 0) Py_CLEAR(result);
    }
    if (raised.type == NULL) return result;
    PyErr_Restore(raised.type, raised.value, raised.traceback);
    Py_XDECREF(result);
    return NULL;
}

static PyObject *run_block(ctpy_state *state, const ctpy_call *call, const ctpy_block *block) {
    const ct_time_options options = {.size = sizeof options, .name_length = (size_t)PyBytes_GET_SIZE(call->encoded)};
    ct_run *run;
    int status = ct_time_begin(PyBytes_AS_STRING(call->encoded), call->n, &options, &run);
    if (status != CT_OK) return report_status(status);
    if (call->is_generator)
        ct_time_note(run, "fn is a generator function: only the creation of its generators was timed");
    gc_reading before;
    const int ready = collect(state) == 0 && read_gc(state, &before) == 0;
    if (ready) (void)ctpy_loop(state, run, call->fn, block);
    return conclude(state, call, run, ready ? &before : NULL); /* the exception of either is still set */
}

static PyObject *run_call(ctpy_state *state, const ctpy_call *call) {
    ctpy_block block;
    if (ctpy_block_prepare(state, call->fn, &block) < 0) return NULL;
    PyObject *result = run_block(state, call, &block);
    ctpy_block_clear(&block);
    return result;
}

PyObject *ctpy_time(PyObject *module, PyObject *args, PyObject *kwargs) {
    ctpy_call call;
    PyObject *result = NULL;
    if (ctpy_parse_call(args, kwargs, &call) == 0) result = run_call(ctpy_get_state(module), &call);
    ctpy_call_clear(&call);
    return result;
}
