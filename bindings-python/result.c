/* SPDX-License-Identifier: MIT
 *
 * result.c: the type codetimer.Result, a read-only view of a ct_result.
 *
 * The object holds the core's result and the name as it was given; every attribute is made when it is asked for, so a
 * kept Result is small and its size does not depend on n.
 */
#include "common.h"

typedef struct result_object {
    PyObject_HEAD ct_result *result;
    PyObject *name;
} result_object;

PyObject *ctpy_result_new(ctpy_state *state, PyObject *name, ct_result *result) {
    result_object *self = (result_object *)state->result_type->tp_alloc(state->result_type, 0);
    if (self == NULL) {
        ct_result_free(result);
        return NULL;
    }
    self->result = result;
    self->name = Py_NewRef(name);
    return (PyObject *)self;
}

const ct_result *ctpy_result_get(PyObject *self) { return ((result_object *)self)->result; }

/* A subclass of str can refer back to the Result. */
static int traverse_result(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((result_object *)self)->name);
    return 0;
}

static int clear_result(PyObject *self) {
    Py_CLEAR(((result_object *)self)->name);
    return 0;
}

static void free_result(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    (void)clear_result(self);
    ct_result_free(((result_object *)self)->result);
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
GET_FIELD(cycles_source, ctpy_text)
GET_FIELD(cycles_reason, ctpy_text)
GET_FIELD(interrupted, ctpy_text)
GET_FIELD(priority, ctpy_text)
GET_FIELD(clock, ctpy_text)

static PyObject *get_per_call_ns(PyObject *self, void *closure) {
    (void)closure;
    const ct_result *result = ctpy_result_get(self);
    return result->per_call_known ? PyFloat_FromDouble(result->per_call_ns) : Py_NewRef(Py_None);
}

static PyObject *get_cycles(PyObject *self, void *closure) {
    (void)closure;
    const ct_result *result = ctpy_result_get(self);
    return result->cycles_kind != CT_CYCLES_NONE ? PyLong_FromUnsignedLongLong(result->cycles) : Py_NewRef(Py_None);
}

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

/* In the order of to_dict(). */
static PyGetSetDef attributes[] = {
    {"name", get_name, NULL, "The name as it was given (str).", NULL},
    {"n", get_n, NULL, "Calls asked for (int).", NULL},
    {"calls", get_calls, NULL, "Calls completed (int).", NULL},
    {"elapsed_ns", get_elapsed_ns, NULL, "Nanoseconds inside the calls, also of one that an error cut short (int).",
     NULL},
    {"per_call_ns", get_per_call_ns, NULL, "Nanoseconds per call: the median of the batches (float); None if unknown.",
     NULL},
    {"batches_ns", get_batches_ns, NULL, "Nanoseconds of each batch of consecutive calls (tuple of int, at most 128).",
     NULL},
    {"batches_calls", get_batches_calls, NULL, "Calls in each batch (tuple of int).", NULL},
    {"cycles", get_cycles, NULL, "CPU cycles of this thread over the run (int); None: see cycles_reason.", NULL},
    {"cycles_kind", get_cycles_kind, NULL, "'core', 'reference' or 'none'.", NULL},
    {"cycles_source", get_cycles_source, NULL, "Where the cycles come from (str).", NULL},
    {"cycles_reason", get_cycles_reason, NULL, "Why the cycles are not core cycles, and what would help (str).", NULL},
    {"gc_collections", get_gc_collections, NULL, "Garbage collections during the run, by generation (tuple of int).",
     NULL},
    {"gc_labels", get_gc_labels, NULL, "What the report calls the generations (tuple of str).", NULL},
    {"interrupted", get_interrupted, NULL, "None, or what ended the run early: 'interrupted' or an exception's name.",
     NULL},
    {"notes", get_notes, NULL, "What else to know about this run, one sentence each (tuple of str).", NULL},
    {"priority", get_priority, NULL, "Priority of the thread at the start of the run (str).", NULL},
    {"clock", get_clock, NULL, "Source of the clock during the run (str).", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- as a whole ---- */

/* Sequences become lists, as JSON gives them back. */
static PyObject *get_plain(PyObject *self, const PyGetSetDef *attribute) {
    PyObject *value = attribute->get(self, NULL);
    if (value == NULL || !PyTuple_Check(value)) return value;
    Py_SETREF(value, PySequence_List(value));
    return value;
}

static PyObject *make_dict(PyObject *self, PyObject *ignored) {
    (void)ignored;
    PyObject *dict = PyDict_New();
    for (const PyGetSetDef *attribute = attributes; dict != NULL && attribute->name != NULL; attribute++) {
        PyObject *value = get_plain(self, attribute);
        if (value == NULL || PyDict_SetItemString(dict, attribute->name, value) < 0) Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

static PyObject *make_json(PyObject *self, PyObject *ignored) {
    PyObject *json = PyImport_ImportModule("json");
    PyObject *dict = json != NULL ? make_dict(self, ignored) : NULL;
    PyObject *text = dict != NULL ? PyObject_CallMethod(json, "dumps", "O", dict) : NULL;
    Py_XDECREF(dict);
    Py_XDECREF(json);
    return text;
}

static PyObject *make_str(PyObject *self) { return ctpy_format(ctpy_result_get(self), NULL); }

static PyObject *make_repr(PyObject *self) {
    const ct_report_options line = {.size = sizeof line, .line = 1};
    return ctpy_format(ctpy_result_get(self), &line);
}

PyDoc_STRVAR(result_doc, "What a run measured. Made by time; read-only; times are in nanoseconds.\n\n"
                         "str() is the report as it is printed, repr() the same on one line.");
PyDoc_STRVAR(to_dict_doc,
             "to_dict($self, /)\n--\n\nAll attributes as a dict of what JSON knows (sequences are lists).");
PyDoc_STRVAR(to_json_doc, "to_json($self, /)\n--\n\nAll attributes as JSON text (ASCII, one line).");

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
