/* SPDX-License-Identifier: MIT
 *
 * facts.c: Usage, GCTime, Memory, Overhead and Ratio: the parts of results, as named tuples.
 *
 * Their fields have the names and the order of the C structs. A fact that is not known is None, never 0.
 */
#include "common.h"

static PyStructSequence_Field usage_fields[] = {
    {"cpu_ns", "CPU time of the thread, in user and kernel mode (int)"},
    {"switches", "how often it gave up the CPU: it waited"},
    {"preemptions", "how often it was put off the CPU for another thread"},
    {"minor_faults", "pages that had to be mapped"},
    {"major_faults", "pages that had to be read in"},
    {"migrations", "how often it went on on another CPU"},
    {"reason", "what is not known (None), and why; empty when all is"},
    {NULL, NULL},
};

static PyStructSequence_Field gc_time_fields[] = {
    {"pauses", "collections that ended during the run (int)"},
    {"total_ns", "nanoseconds that they took (int)"},
    {"longest_ns", "nanoseconds of the longest (int)"},
    {NULL, NULL},
};

static PyStructSequence_Field memory_fields[] = {
    {"calls", "calls that the memory pass made (int); 0: see reason, all else is None"},
    {"allocations", "allocator calls for a new block, in the whole pass (int); so is all below"},
    {"reallocations", "for another size of a block"},
    {"frees", "that gave a block back"},
    {"allocated_bytes", "bytes of new blocks, and by which others grew"},
    {"peak_bytes", "the most that was in use at a time beyond what was at the start"},
    {"reason", "why nothing was counted, or None"},
    {NULL, NULL},
};

static PyStructSequence_Field overhead_fields[] = {
    {"label", "what was called: 'empty C function', 'empty Python function'"},
    {"low_ns", "nanoseconds of one call, at least (float)"},
    {"high_ns", "at most (float)"},
    {NULL, NULL},
};

static PyStructSequence_Field ratio_fields[] = {
    {"ratio", "time of the candidate by that of the other, below 1: it is faster (float); None: see reason"},
    {"low", "the least that the ratio can be (float)"},
    {"high", "the most (float)"},
    {"confidence", "that the ratio is between them (float)"},
    {"different", "whether the two differ by more than this machine could make up (bool)"},
    {"resolved", "differences below this are not resolved: 0.008 means 0.8 % (float)"},
    {"reason", "why the ratio is not known, or None"},
    {NULL, NULL},
};

static PyStructSequence_Desc descriptions[] = {
    {"codetimer.Usage", "What the system did to the thread during a run.", usage_fields, 7},
    {"codetimer.GCTime", "The pauses of the garbage collector during a run.", gc_time_fields, 3},
    {"codetimer.Memory", "What a separate pass has counted at the allocators.", memory_fields, 7},
    {"codetimer.Overhead", "The time of one empty call, to compare with.", overhead_fields, 3},
    {"codetimer.Ratio", "How the times of two candidates compare.", ratio_fields, 7},
};

int ctpy_facts_add_types(PyObject *module, ctpy_state *state) {
    PyTypeObject **const types[] = {&state->usage_type, &state->gc_time_type, &state->memory_type,
                                    &state->overhead_type, &state->ratio_type};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (ctpy_add_fields_type(module, &descriptions[i], types[i]) < 0) return -1;
    return 0;
}

static PyObject *make_count(int known, uint64_t count) {
    return known ? PyLong_FromUnsignedLongLong(count) : Py_NewRef(Py_None);
}

static PyObject *make_number(int known, double number) {
    return known ? PyFloat_FromDouble(number) : Py_NewRef(Py_None);
}

PyObject *ctpy_usage_new(ctpy_state *state, const ct_usage *usage) {
    const int known = usage->known;
    PyObject *values[] = {
        make_count(known, usage->cpu_ns),
        make_count(known, usage->switches),
        make_count(known, usage->preemptions),
        make_count(known, usage->minor_faults),
        make_count(known, usage->major_faults),
        make_count(usage->migrations_known, usage->migrations),
        ctpy_text(usage->reason),
    };
    return CTPY_FILL(state->usage_type, values);
}

PyObject *ctpy_gc_time_new(ctpy_state *state, const ct_gc_time *gc_time) {
    PyObject *values[] = {
        PyLong_FromUnsignedLongLong(gc_time->pauses),
        PyLong_FromUnsignedLongLong(gc_time->total_ns),
        PyLong_FromUnsignedLongLong(gc_time->longest_ns),
    };
    return CTPY_FILL(state->gc_time_type, values);
}

PyObject *ctpy_memory_new(ctpy_state *state, const ct_memory *memory) {
    const int known = memory->calls > 0;
    PyObject *values[] = {
        PyLong_FromUnsignedLongLong(memory->calls),
        make_count(known, memory->allocations),
        make_count(known, memory->reallocations),
        make_count(known, memory->frees),
        make_count(known, memory->allocated_bytes),
        make_count(known, memory->peak_bytes),
        ctpy_text(memory->reason),
    };
    return CTPY_FILL(state->memory_type, values);
}

PyObject *ctpy_overhead_new(ctpy_state *state, const ct_overhead *overhead) {
    PyObject *values[] = {
        ctpy_text(overhead->label),
        PyFloat_FromDouble(overhead->low_ns),
        PyFloat_FromDouble(overhead->high_ns),
    };
    return CTPY_FILL(state->overhead_type, values);
}

PyObject *ctpy_ratio_new(ctpy_state *state, const ct_ratio *ratio) {
    const int known = ratio->known;
    PyObject *values[] = {
        make_number(known, ratio->ratio),      make_number(known, ratio->low),
        make_number(known, ratio->high),       make_number(known, ratio->confidence),
        PyBool_FromLong(ratio->different),     make_number(known, ratio->resolved),
        ctpy_text(ratio->reason),
    };
    return CTPY_FILL(state->ratio_type, values);
}

/* ---- as JSON knows it ---- */

static PyObject *make_list(PyObject *tuple) {
    PyObject *list = PyList_New(PyTuple_GET_SIZE(tuple));
    for (Py_ssize_t i = 0; list != NULL && i < PyTuple_GET_SIZE(tuple); i++) {
        PyObject *item = ctpy_plain(Py_NewRef(PyTuple_GET_ITEM(tuple, i)));
        if (item == NULL) Py_CLEAR(list);
        if (item != NULL) PyList_SET_ITEM(list, i, item);
    }
    return list;
}

/* By the names that every named tuple has in its type. */
static PyObject *make_dict(PyObject *fields) {
    PyObject *names = PyObject_GetAttrString((PyObject *)Py_TYPE(fields), "__match_args__");
    PyObject *dict = names != NULL ? PyDict_New() : NULL;
    for (Py_ssize_t i = 0; dict != NULL && i < PyTuple_GET_SIZE(names); i++) {
        PyObject *item = ctpy_plain(Py_NewRef(PyTuple_GET_ITEM(fields, i)));
        if (item == NULL || PyDict_SetItem(dict, PyTuple_GET_ITEM(names, i), item) < 0) Py_CLEAR(dict);
        Py_XDECREF(item);
    }
    Py_XDECREF(names);
    return dict;
}

PyObject *ctpy_plain(PyObject *value) {
    if (value == NULL || !PyTuple_Check(value)) return value;
    Py_SETREF(value, PyTuple_CheckExact(value) ? make_list(value) : make_dict(value));
    return value;
}
