/* SPDX-License-Identifier: MIT
 *
 * info.c: ClockInfo, ThreadCycles and Priority: the core's small structs as named tuples.
 *
 * Their fields have the names and the order of the C structs. A fact that is not known is None, never 0.
 */
#include "common.h"

static PyStructSequence_Field clock_fields[] = {
    {"source", "where the time comes from: 'tsc', 'monotonic', ..."},
    {"resolution_ns", "the least step seen between two readings (float)"},
    {"read_cost_ns", "the least time that one reading takes (float)"},
    {"frequency_hz", "of the reference counter (float); None when there is none"},
    {"reason", "why this source and not a faster one, or what has changed since"},
    {NULL, NULL},
};

static PyStructSequence_Field cycles_fields[] = {
    {"value", "cycles since an arbitrary moment of this thread (int); None when the kind is 'none'"},
    {"kind", "'core': real cycles of the core; 'reference': ticks of the constant-rate counter; 'none'"},
    {"source", "the facility that gave the value"},
    {"reason", "why not core cycles, and what would help; empty for core cycles"},
    {NULL, NULL},
};

static PyStructSequence_Field priority_fields[] = {
    {"requested", "'high', 'highest', 'realtime'; None: left alone"},
    {"status", "'CT_OK', or why it was not obtained: 'CT_EPERM', ..."},
    {"cpu", "the CPU asked for (int), or None"},
    {"cpu_status", "'CT_OK', or why the pin was not obtained"},
    {"restored", "whether everything has been put back (bool)"},
    {"previous", "the priority before"},
    {"effective", "the priority read back afterwards"},
    {"scope", "what it applies to"},
    {"reason", "why less than the request was obtained; empty otherwise"},
    {NULL, NULL},
};

static PyStructSequence_Desc descriptions[] = {
    {"codetimer.ClockInfo", "What clock_info tells of the clock behind time and now_ns.", clock_fields, 5},
    {"codetimer.ThreadCycles", "What thread_cycles tells of the calling thread.", cycles_fields, 4},
    {"codetimer.Priority", "What initialize asked for and what was obtained.", priority_fields, 9},
};

/* A struct sequence of Python finds its size in the dict of its type, which the collector may have cleared before the
 * last instance goes, at the end of an interpreter. Ours show all their fields, so their length says it. */
static int traverse_fields(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    for (Py_ssize_t i = 0; i < Py_SIZE(self); i++) Py_VISIT(PyTuple_GET_ITEM(self, i));
    return 0;
}

static void free_fields(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    for (Py_ssize_t i = 0; i < Py_SIZE(self); i++) Py_XDECREF(PyTuple_GET_ITEM(self, i));
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

int ctpy_add_fields_type(PyObject *module, PyStructSequence_Desc *description, PyTypeObject **type) {
    *type = PyStructSequence_NewType(description);
    if (*type == NULL) return -1;
    (*type)->tp_traverse = traverse_fields;
    (*type)->tp_dealloc = free_fields;
    return PyModule_AddType(module, *type);
}

int ctpy_info_add_types(PyObject *module, ctpy_state *state) {
    if (ctpy_add_fields_type(module, &descriptions[0], &state->clock_type) < 0) return -1;
    if (ctpy_add_fields_type(module, &descriptions[1], &state->cycles_type) < 0) return -1;
    return ctpy_add_fields_type(module, &descriptions[2], &state->priority_type);
}

PyObject *ctpy_fill(PyTypeObject *type, PyObject **values, Py_ssize_t count) {
    PyObject *filled = PyStructSequence_New(type);
    int complete = filled != NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        complete = complete && values[i] != NULL;
        if (filled == NULL) {
            Py_XDECREF(values[i]);
        } else {
            PyStructSequence_SetItem(filled, i, values[i]);
        }
    }
    if (!complete) Py_CLEAR(filled);
    return filled;
}

PyObject *ctpy_clock_new(ctpy_state *state, const ct_clock *clock) {
    PyObject *values[] = {
        ctpy_text(clock->source),
        PyFloat_FromDouble(clock->resolution_ns),
        PyFloat_FromDouble(clock->read_cost_ns),
        clock->frequency_hz > 0 ? PyFloat_FromDouble(clock->frequency_hz) : Py_NewRef(Py_None),
        ctpy_text(clock->reason),
    };
    return CTPY_FILL(state->clock_type, values);
}

PyObject *ctpy_cycles_new(ctpy_state *state, const ct_cycles *cycles) {
    PyObject *values[] = {
        cycles->kind != CT_CYCLES_NONE ? PyLong_FromUnsignedLongLong(cycles->value) : Py_NewRef(Py_None),
        ctpy_text(ct_cycles_kind_name(cycles->kind)),
        ctpy_text(cycles->source),
        ctpy_text(cycles->reason),
    };
    return CTPY_FILL(state->cycles_type, values);
}

PyObject *ctpy_priority_new(ctpy_state *state, const ct_priority *priority) {
    PyObject *values[] = {
        ctpy_text(priority->requested),
        ctpy_text(ct_status_name(priority->status)),
        priority->cpu >= 0 ? PyLong_FromLong(priority->cpu) : Py_NewRef(Py_None),
        ctpy_text(ct_status_name(priority->cpu_status)),
        PyBool_FromLong(priority->restored),
        ctpy_text(priority->previous),
        ctpy_text(priority->effective),
        ctpy_text(priority->scope),
        ctpy_text(priority->reason),
    };
    return CTPY_FILL(state->priority_type, values);
}
