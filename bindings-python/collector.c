/* SPDX-License-Identifier: MIT
 *
 * collector.c: what Python's garbage collector does during a run.
 *
 * Counts are read outside the clock, at both ends. Pauses, where they are asked for, come from an entry in gc.callbacks
 * that reads the clock and adds up; it holds no lock and makes no object. Each collection then costs some 300 ns more.
 * The entry is told of all collections of the interpreter, also of those that other threads set off.
 */
#include <string.h>

#include "running.h"

const char *const ctpy_gc_labels[CT_GC_GENERATIONS_MAX] = {"Gen 0", "Gen 1", "Gen 2", "Gen 3"};

/* ---- counts ---- */

static int take_counts(PyObject *stats, ctpy_collections *reading) {
    if (!PyList_Check(stats)) return -1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(stats) && i < CT_GC_GENERATIONS_MAX; i++) {
        PyObject *generation = PyList_GET_ITEM(stats, i);
        PyObject *count = PyDict_Check(generation) ? PyDict_GetItemString(generation, "collections") : NULL;
        if (count == NULL) return -1;
        reading->counts[i] = PyLong_AsUnsignedLongLong(count);
        if (PyErr_Occurred()) return -1;
        reading->generations++;
    }
    return 0;
}

/* The collector is off for the moment of the reading: the dicts that get_stats makes must not set off a collection. */
int ctpy_collections_read(const ctpy_state *state, ctpy_collections *reading) {
    *reading = (ctpy_collections){0};
    reading->enabled = PyGC_Disable();
    PyObject *stats = PyObject_CallNoArgs(state->gc_get_stats);
    int read = stats != NULL ? take_counts(stats, reading) : -1;
    Py_XDECREF(stats);
    if (reading->enabled) PyGC_Enable();
    if (read == 0) return 0;
    reading->generations = 0;
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "gc.get_stats() gives something else than it should");
    return -1;
}

/* The collector is off for the moment of the reading, as above. */
void ctpy_thresholds_read(const ctpy_state *state, ctpy_thresholds *thresholds) {
    *thresholds = (ctpy_thresholds){0};
    const int enabled = PyGC_Disable();
    PyObject *tuple = PyObject_CallNoArgs(state->gc_get_threshold);
    long long *values = thresholds->values;
    thresholds->known = tuple != NULL && PyArg_ParseTuple(tuple, "LLL", &values[0], &values[1], &values[2]);
    Py_XDECREF(tuple);
    if (enabled) PyGC_Enable();
    PyErr_Clear();
}

int ctpy_thresholds_changed(const ctpy_state *state, const ctpy_thresholds *before) {
    ctpy_thresholds now;
    ctpy_thresholds_read(state, &now);
    return before->known && now.known && memcmp(before->values, now.values, sizeof now.values) != 0;
}

int ctpy_collect(const ctpy_state *state) {
    PyObject *found = PyObject_CallNoArgs(state->gc_collect);
    Py_XDECREF(found);
    return found != NULL ? PyErr_CheckSignals() : -1;
}

/* ---- pauses ---- */

static const char capsule_name[] = "codetimer.pauses";

static void begin_pause(ctpy_pauses *pauses) {
    pauses->under_way = 1;
    pauses->start_ns = ct_now_ns();
}

static void end_pause(ctpy_pauses *pauses) {
    const uint64_t now_ns = ct_now_ns();
    if (!pauses->under_way) return; /* entered during a collection */
    pauses->under_way = 0;
    if (pauses->into == NULL) return;
    const uint64_t pause_ns = now_ns - pauses->start_ns;
    pauses->into->pauses++;
    pauses->into->total_ns += pause_ns;
    if (pause_ns > pauses->into->longest_ns) pauses->into->longest_ns = pause_ns;
}

/* What gc calls with "start" or "stop", and details. */
static PyObject *observe(PyObject *capsule, PyObject *const *args, Py_ssize_t count) {
    ctpy_pauses *pauses = PyCapsule_GetPointer(capsule, capsule_name);
    if (pauses == NULL) return NULL;
    const int told = count > 0 && PyUnicode_Check(args[0]);
    if (told && PyUnicode_CompareWithASCIIString(args[0], "start") == 0) begin_pause(pauses);
    if (told && PyUnicode_CompareWithASCIIString(args[0], "stop") == 0) end_pause(pauses);
    Py_RETURN_NONE;
}

static PyMethodDef observer = {"codetimer_pauses", (PyCFunction)(void (*)(void))observe, METH_FASTCALL,
                               "Adds up the pauses of the collector while codetimer.time or compare runs."};

static void free_pauses(PyObject *capsule) { PyMem_Free(PyCapsule_GetPointer(capsule, capsule_name)); }

static PyObject *make_entry(ctpy_pauses *pauses) {
    PyObject *capsule = PyCapsule_New(pauses, capsule_name, free_pauses);
    if (capsule == NULL) PyMem_Free(pauses);
    PyObject *entry = capsule != NULL ? PyCFunction_New(&observer, capsule) : NULL;
    Py_XDECREF(capsule);
    return entry;
}

ctpy_pauses *ctpy_pauses_begin(const ctpy_state *state) {
    ctpy_pauses *pauses = PyMem_Calloc(1, sizeof *pauses);
    if (pauses == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    PyObject *entry = make_entry(pauses);
    if (entry == NULL) return NULL;
    pauses->entry = entry;
    if (PyList_Append(state->gc_callbacks, entry) == 0) return pauses;
    Py_DECREF(entry);
    return NULL;
}

static int take_out(PyObject *callbacks, PyObject *entry) {
    for (Py_ssize_t i = PyList_GET_SIZE(callbacks) - 1; i >= 0; i--)
        if (PyList_GET_ITEM(callbacks, i) == entry) return PySequence_DelItem(callbacks, i) == 0;
    return 0;
}

int ctpy_pauses_end(const ctpy_state *state, ctpy_pauses *pauses) {
    PyObject *type, *value, *traceback;
    if (pauses == NULL) return 1;
    PyErr_Fetch(&type, &value, &traceback);
    pauses->into = NULL;
    const int taken = take_out(state->gc_callbacks, pauses->entry);
    PyErr_Clear();
    Py_DECREF(pauses->entry);
    PyErr_Restore(type, value, traceback);
    return taken;
}

/* ---- around a run ---- */

int ctpy_gc_begin(ctpy_gc *gc) {
    gc->known = 0;
    if (gc->pauses != NULL) gc->pauses->into = NULL;
    if (ctpy_collect(gc->state) < 0 || ctpy_collections_read(gc->state, &gc->before) < 0) return -1;
    gc->known = 1;
    memset(&gc->time, 0, sizeof gc->time);
    if (gc->pauses != NULL) gc->pauses->into = &gc->time;
    return 0;
}
