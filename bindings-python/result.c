/* SPDX-License-Identifier: MIT
 *
 * result.c: the type codetimer.Result, a read-only view of a ct_result.
 *
 * The object holds the core's result and the name as it was given; every attribute is made when it is asked for, so a
 * kept Result is small and its size does not depend on n.
 */
#include "running.h"

typedef struct result_object {
    PyObject_HEAD ct_result *result;
    PyObject *name;
    PyObject *owner; /* the Comparison that it is part of; NULL: "result" is ours to free */
    int is_python;
} result_object;

PyObject *ctpy_result_new(ctpy_state *state, PyObject *name, ct_result *result, int is_python, PyObject *owner) {
    result_object *self = (result_object *)state->result_type->tp_alloc(state->result_type, 0);
    if (self == NULL) {
        if (owner == NULL) ct_result_free(result);
        return NULL;
    }
    self->result = result;
    self->name = Py_NewRef(name);
    self->owner = Py_XNewRef(owner);
    self->is_python = is_python;
    return (PyObject *)self;
}

const ct_result *ctpy_result_get(PyObject *self) { return ((result_object *)self)->result; }

static ctpy_state *get_state(PyObject *self) { return (ctpy_state *)PyType_GetModuleState(Py_TYPE(self)); }

/* A subclass of str can refer back to the Result. */
static int traverse_result(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((result_object *)self)->name);
    Py_VISIT(((result_object *)self)->owner);
    return 0;
}

/* Whose the result is has to be known until the end, and an owner is in no cycle: it does not know us. */
static int clear_result(PyObject *self) {
    Py_CLEAR(((result_object *)self)->name);
    return 0;
}

static void free_result(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    (void)clear_result(self);
    if (((result_object *)self)->owner == NULL) ct_result_free(((result_object *)self)->result);
    Py_CLEAR(((result_object *)self)->owner);
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- attributes: field by field ---- */

static PyObject *get_name(PyObject *self, void *closure) {
    (void)closure;
    return Py_NewRef(((result_object *)self)->name);
}

#define GET_FIELD(field, convert)                                                                                      \
    static PyObject *get_##field(PyObject *self, void *closure) {                                                      \
        (void)closure;                                                                                                 \
        return convert(ctpy_result_get(self)->field);                                                                  \
    }

GET_FIELD(n, PyLong_FromUnsignedLongLong)
GET_FIELD(calls, PyLong_FromUnsignedLongLong)
GET_FIELD(elapsed_ns, PyLong_FromUnsignedLongLong)
GET_FIELD(automatic, PyBool_FromLong)
GET_FIELD(warmup_calls, PyLong_FromUnsignedLongLong)
GET_FIELD(warmup_ns, PyLong_FromUnsignedLongLong)
GET_FIELD(cycles_source, ctpy_text)
GET_FIELD(cycles_reason, ctpy_text)
GET_FIELD(interrupted, ctpy_text)
GET_FIELD(priority, ctpy_text)
GET_FIELD(clock, ctpy_text)

/* A field that has a meaning only where "is_known". */
#define GET_KNOWN(field, is_known, convert)                                                                            \
    static PyObject *get_##field(PyObject *self, void *closure) {                                                      \
        (void)closure;                                                                                                 \
        const ct_result *result = ctpy_result_get(self);                                                               \
        return result->is_known ? convert(result->field) : Py_NewRef(Py_None);                                         \
    }

GET_KNOWN(budget_ns, automatic, PyLong_FromUnsignedLongLong)
GET_KNOWN(per_call_ns, per_call_known, PyFloat_FromDouble)
GET_KNOWN(interval_low_ns, interval_known, PyFloat_FromDouble)
GET_KNOWN(interval_high_ns, interval_known, PyFloat_FromDouble)
GET_KNOWN(min_ns, interval_known, PyFloat_FromDouble)
GET_KNOWN(q1_ns, interval_known, PyFloat_FromDouble)
GET_KNOWN(q3_ns, interval_known, PyFloat_FromDouble)
GET_KNOWN(max_ns, interval_known, PyFloat_FromDouble)
GET_KNOWN(mad_ns, interval_known, PyFloat_FromDouble)
GET_KNOWN(outliers_mild, interval_known, PyLong_FromUnsignedLongLong)
GET_KNOWN(outliers_severe, interval_known, PyLong_FromUnsignedLongLong)
GET_KNOWN(cycles, cycles_kind != CT_CYCLES_NONE, PyLong_FromUnsignedLongLong)
GET_KNOWN(resolution_ns, resolution_ns > 0, PyFloat_FromDouble)

static PyObject *get_cycles_kind(PyObject *self, void *closure) {
    (void)closure;
    return ctpy_text(ct_cycles_kind_name(ctpy_result_get(self)->cycles_kind));
}

/* ---- attributes: sequences ---- */

static PyObject *make_numbers(const uint64_t *numbers, size_t count) {
    PyObject *tuple = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *number = PyLong_FromUnsignedLongLong(numbers[i]);
        if (number == NULL) Py_CLEAR(tuple);
        if (number != NULL) PyTuple_SET_ITEM(tuple, (Py_ssize_t)i, number);
    }
    return tuple;
}

static PyObject *make_texts(const char *const *texts, size_t count) {
    PyObject *tuple = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *text = ctpy_text(texts[i]);
        if (text == NULL) Py_CLEAR(tuple);
        if (text != NULL) PyTuple_SET_ITEM(tuple, (Py_ssize_t)i, text);
    }
    return tuple;
}

#define GET_SEQUENCE(field, make, count)                                                                               \
    static PyObject *get_##field(PyObject *self, void *closure) {                                                      \
        (void)closure;                                                                                                 \
        const ct_result *result = ctpy_result_get(self);                                                               \
        return make(result->field, result->count);                                                                     \
    }

GET_SEQUENCE(batches_ns, make_numbers, batches)
GET_SEQUENCE(batches_calls, make_numbers, batches)
GET_SEQUENCE(gc_collections, make_numbers, gc_generations)
GET_SEQUENCE(gc_labels, make_texts, gc_generations)
GET_SEQUENCE(notes, make_texts, notes_count)

/* ---- attributes: what an empty call takes ---- */

/* A run of given n goes without them until somebody asks. */
static int know_overheads(PyObject *self) {
    result_object *object = (result_object *)self;
    ct_overhead overheads[CTPY_OVERHEADS];
    size_t count;
    if (object->result->overheads_count > 0 || object->is_python < 0) return 0;
    if (ctpy_overheads(get_state(self), object->is_python, overheads, &count) < 0) return -1;
    (void)ct_result_set_overheads(object->result, count, overheads);
    return 0;
}

static PyObject *make_overheads(PyObject *self, const ct_result *result) {
    PyObject *tuple = PyTuple_New((Py_ssize_t)result->overheads_count);
    for (size_t i = 0; tuple != NULL && i < result->overheads_count; i++) {
        PyObject *overhead = ctpy_overhead_new(get_state(self), &result->overheads[i]);
        if (overhead == NULL) Py_CLEAR(tuple);
        if (overhead != NULL) PyTuple_SET_ITEM(tuple, (Py_ssize_t)i, overhead);
    }
    return tuple;
}

static PyObject *get_overheads(PyObject *self, void *closure) {
    (void)closure;
    return know_overheads(self) == 0 ? make_overheads(self, ctpy_result_get(self)) : NULL;
}

static PyObject *get_net(PyObject *self, double (*choose)(const ct_result *result)) {
    if (know_overheads(self) < 0) return NULL;
    const ct_result *result = ctpy_result_get(self);
    return result->net_known ? PyFloat_FromDouble(choose(result)) : Py_NewRef(Py_None);
}

static double choose_low(const ct_result *result) { return result->net_low_ns; }
static double choose_high(const ct_result *result) { return result->net_high_ns; }

static PyObject *get_net_low_ns(PyObject *self, void *closure) {
    (void)closure;
    return get_net(self, choose_low);
}

static PyObject *get_net_high_ns(PyObject *self, void *closure) {
    (void)closure;
    return get_net(self, choose_high);
}

/* ---- attributes: named tuples ---- */

static PyObject *get_usage(PyObject *self, void *closure) {
    (void)closure;
    return ctpy_usage_new(get_state(self), &ctpy_result_get(self)->usage);
}

static PyObject *get_gc_time(PyObject *self, void *closure) {
    (void)closure;
    const ct_result *result = ctpy_result_get(self);
    return result->gc_time_known ? ctpy_gc_time_new(get_state(self), &result->gc_time) : Py_NewRef(Py_None);
}

static PyObject *get_memory(PyObject *self, void *closure) {
    (void)closure;
    const ct_memory *memory = &ctpy_result_get(self)->memory;
    const int asked = memory->calls > 0 || memory->reason != NULL;
    return asked ? ctpy_memory_new(get_state(self), memory) : Py_NewRef(Py_None);
}

/* In the order of to_dict(). */
static PyGetSetDef attributes[] = {
    {"name", get_name, NULL, "The name as it was given (str).", NULL},
    {"n", get_n, NULL, "Calls asked for; of an automatic run, calls measured (int).", NULL},
    {"calls", get_calls, NULL, "Calls completed (int).", NULL},
    {"elapsed_ns", get_elapsed_ns, NULL, "Nanoseconds inside the calls, also of one that an error cut short (int).",
     NULL},
    {"automatic", get_automatic, NULL, "Whether n was found by codetimer, within the budget (bool).", NULL},
    {"budget_ns", get_budget_ns, NULL, "Of an automatic run: what it could use all in all (int); else None.", NULL},
    {"warmup_calls", get_warmup_calls, NULL, "Calls made before the measured ones, to find n (int).", NULL},
    {"warmup_ns", get_warmup_ns, NULL, "Nanoseconds of these (int).", NULL},
    {"per_call_ns", get_per_call_ns, NULL, "Nanoseconds per call: the median of the batches (float); None if unknown.",
     NULL},
    {"interval_low_ns", get_interval_low_ns, NULL,
     "Where the median is, with 95 %: at least (float); None, as all to outliers_severe, with fewer than 6 batches.",
     NULL},
    {"interval_high_ns", get_interval_high_ns, NULL, "At most (float).", NULL},
    {"min_ns", get_min_ns, NULL, "The least of the batches' nanoseconds per call (float).", NULL},
    {"q1_ns", get_q1_ns, NULL, "A quarter of the batches are below (float).", NULL},
    {"q3_ns", get_q3_ns, NULL, "A quarter of the batches are above (float).", NULL},
    {"max_ns", get_max_ns, NULL, "The most of the batches' nanoseconds per call (float).", NULL},
    {"mad_ns", get_mad_ns, NULL, "Median of the distances from the median, not scaled (float).", NULL},
    {"outliers_mild", get_outliers_mild, NULL,
     "Batches beyond 1.5 times (q3 - q1) from the quartiles (int); none is left out.", NULL},
    {"outliers_severe", get_outliers_severe, NULL, "Beyond 3 times (int).", NULL},
    {"net_low_ns", get_net_low_ns, NULL,
     "Nanoseconds per call less those of an empty call, clamped at 0: at least (float); None if unknown.", NULL},
    {"net_high_ns", get_net_high_ns, NULL, "At most (float).", NULL},
    {"overheads", get_overheads, NULL,
     "What an empty call takes in this process (tuple of Overhead); net is made with the first.", NULL},
    {"batches_ns", get_batches_ns, NULL, "Nanoseconds of each batch of consecutive calls (tuple of int, at most 1024).",
     NULL},
    {"batches_calls", get_batches_calls, NULL, "Calls in each batch (tuple of int).", NULL},
    {"cycles", get_cycles, NULL, "CPU cycles of this thread over the run (int); None: see cycles_reason.", NULL},
    {"cycles_kind", get_cycles_kind, NULL, "'core', 'reference' or 'none'.", NULL},
    {"cycles_source", get_cycles_source, NULL, "Where the cycles come from (str).", NULL},
    {"cycles_reason", get_cycles_reason, NULL, "Why the cycles are not core cycles, and what would help (str).", NULL},
    {"usage", get_usage, NULL, "What the system did to the thread meanwhile (Usage).", NULL},
    {"gc_collections", get_gc_collections, NULL, "Garbage collections during the run, by generation (tuple of int).",
     NULL},
    {"gc_labels", get_gc_labels, NULL, "What the report calls the generations (tuple of str).", NULL},
    {"gc_time", get_gc_time, NULL, "Pauses of the collector (GCTime); None: not asked for, see gc_time=.", NULL},
    {"memory", get_memory, NULL, "What a memory pass has counted (Memory); None: not asked for, see memory=.", NULL},
    {"interrupted", get_interrupted, NULL, "None, or what ended the run early: 'interrupted' or an exception's name.",
     NULL},
    {"notes", get_notes, NULL, "What else to know about this run, one sentence each (tuple of str).", NULL},
    {"priority", get_priority, NULL, "Priority of the thread at the start of the run (str).", NULL},
    {"clock", get_clock, NULL, "Source of the clock during the run (str).", NULL},
    {"resolution_ns", get_resolution_ns, NULL, "The least step of that clock (float); None: it did not move.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- as a whole ---- */

static PyObject *make_dict(PyObject *self, PyObject *ignored) {
    (void)ignored;
    PyObject *dict = PyDict_New();
    for (const PyGetSetDef *attribute = attributes; dict != NULL && attribute->name != NULL; attribute++) {
        PyObject *value = ctpy_plain(attribute->get(self, NULL));
        if (value == NULL || PyDict_SetItemString(dict, attribute->name, value) < 0) Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

static size_t put_json(const void *what, const void *options, char *buffer, size_t size) {
    const ct_result *result = what;
    return ct_export_results(&result, 1, CT_EXPORT_JSON, options, buffer, size);
}

static PyObject *make_json(PyObject *self, PyObject *ignored) {
    (void)ignored;
    return know_overheads(self) == 0 ? ctpy_json(put_json, ctpy_result_get(self)) : NULL;
}

static PyObject *make_str(PyObject *self) { return ctpy_format(ctpy_result_get(self), NULL); }

static PyObject *make_repr(PyObject *self) {
    const ct_report_options line = {.size = sizeof line, .line = 1};
    return ctpy_format(ctpy_result_get(self), &line);
}

PyDoc_STRVAR(result_doc, "What a run measured. Made by time; read-only; times are in nanoseconds.\n\n"
                         "str() is the report as it is printed, repr() the same on one line.");
PyDoc_STRVAR(to_dict_doc,
             "to_dict($self, /)\n--\n\n"
             "All attributes as a dict of what JSON knows (sequences are lists, named tuples dicts).");
PyDoc_STRVAR(to_json_doc, "to_json($self, /)\n--\n\n"
                          "All that is known as JSON text, the same as in a file of results (see the README).");

static PyMethodDef methods[] = {
    {"to_dict", make_dict, METH_NOARGS, to_dict_doc},
    {"to_json", make_json, METH_NOARGS, to_json_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, CTPY_MUTABLE(void *, result_doc)},
    {Py_tp_traverse, CTPY_SLOT(traverse_result)},
    {Py_tp_clear, CTPY_SLOT(clear_result)},
    {Py_tp_dealloc, CTPY_SLOT(free_result)},
    {Py_tp_str, CTPY_SLOT(make_str)},
    {Py_tp_repr, CTPY_SLOT(make_repr)},
    {Py_tp_getset, attributes},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec ctpy_result_spec = {
    .name = "codetimer.Result",
    .basicsize = sizeof(result_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
