/* SPDX-License-Identifier: MIT
 *
 * counter.c: the type codetimer.Counter: one counter, found by its key.
 *
 * A Counter owns a handle and nothing else: its values are read when they are asked for, and it is equal to every other
 * Counter of the same key. It stays valid when the counter is removed.
 */
#include "counting.h"

typedef struct counter_object {
    PyObject_HEAD PyObject *key; /* a plain str */
    ct_counter *counter;
} counter_object;

static ct_counter *get_counter(PyObject *self) { return ((counter_object *)self)->counter; }

static ctpy_state *get_state(PyObject *self) { return (ctpy_state *)PyType_GetModuleState(Py_TYPE(self)); }

PyObject *ctpy_counter_new(ctpy_state *state, ct_counter *counter) {
    PyObject *key = ctpy_counter_key(counter);
    counter_object *self = key != NULL ? (counter_object *)state->counter_type->tp_alloc(state->counter_type, 0) : NULL;
    if (self == NULL) {
        Py_XDECREF(key);
        ct_counter_close(counter);
        return NULL;
    }
    self->key = key;
    self->counter = counter;
    return (PyObject *)self;
}

ct_counter *ctpy_counter_handle(PyObject *counter) { return get_counter(counter); }

static void free_counter(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    ct_counter_close(get_counter(self));
    Py_DECREF(((counter_object *)self)->key);
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- attributes ---- */

#define GET_FIELD(field, doc)                                                                                          \
    static PyObject *get_##field(PyObject *self, void *closure) {                                                      \
        (void)closure;                                                                                                 \
        ct_sample sample;                                                                                              \
        ct_counter_sample(get_counter(self), &sample);                                                                 \
        return ctpy_sample_##field(&sample);                                                                           \
    }

CTPY_SAMPLE_FIELDS(GET_FIELD)

static PyObject *get_key(PyObject *self, void *closure) {
    (void)closure;
    return Py_NewRef(((counter_object *)self)->key);
}

static PyObject *get_category(PyObject *self, void *closure) {
    (void)closure;
    return ctpy_key_category(((counter_object *)self)->key);
}

static PyObject *get_member(PyObject *self, void *closure) {
    (void)closure;
    return ctpy_key_member(((counter_object *)self)->key);
}

#define FIELD_ROW(field, doc) {#field, get_##field, NULL, doc, NULL},

static PyGetSetDef attributes[] = {
    {"key", get_key, NULL, "'category/member' (str).", NULL},
    {"category", get_category, NULL, "The part of the key before its first '/' (str).", NULL},
    {"member", get_member, NULL, "The part of the key after its first '/' (str).", NULL},
    CTPY_SAMPLE_FIELDS(FIELD_ROW){NULL, NULL, NULL, NULL, NULL},
};

/* ---- methods ---- */

static PyObject *percentile(PyObject *self, PyObject *q) {
    ct_sample sample;
    ct_counter_sample(get_counter(self), &sample);
    return ctpy_sample_percentile(&sample, q);
}

static PyObject *take_sample(PyObject *self, PyObject *ignored) {
    (void)ignored;
    ct_sample sample;
    ct_counter_sample(get_counter(self), &sample);
    return ctpy_sample_new(get_state(self), ((counter_object *)self)->key, &sample);
}

static int parse_duration(PyObject *value, uint64_t *duration_ns) {
    static const char range[] = "duration_ns must be an integer from 0 to 9223372036854775807";
    if (!PyIndex_Check(value) || PyBool_Check(value)) return ctpy_refuse(PyExc_TypeError, range, value);
    PyObject *index = PyNumber_Index(value);
    if (index == NULL) return -1;
    int overflow = 0;
    long long duration = PyLong_AsLongLongAndOverflow(index, &overflow);
    Py_DECREF(index);
    if (overflow != 0 || duration < 0) return ctpy_refuse(PyExc_ValueError, range, value);
    *duration_ns = (uint64_t)duration;
    return 0;
}

static PyObject *record(PyObject *self, PyObject *args, PyObject *kwargs) {
    static const char *const keywords[] = {"duration_ns", "error", NULL};
    PyObject *duration;
    int error = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$p:record", CTPY_MUTABLE(char **, keywords), &duration, &error))
        return NULL;
    uint64_t duration_ns = 0;
    if (parse_duration(duration, &duration_ns) < 0) return NULL;
    ctpy_state *state = get_state(self);
    const int outcome = error ? CT_FAILED : CT_RETURNED;
    if (state->trace_increments) {
        ctpy_record_traced(state, get_counter(self), duration_ns, outcome);
    } else {
        ct_counter_record(get_counter(self), duration_ns, outcome);
    }
    return Py_NewRef(Py_None);
}

/* False: it had been removed. */
static PyObject *reset(PyObject *self, PyObject *ignored) {
    (void)ignored;
    return PyBool_FromLong(ct_counter_reset(get_counter(self)) == CT_OK);
}

static PyObject *remove_counter(PyObject *self, PyObject *ignored) {
    (void)ignored;
    int removed = ct_counter_remove(get_counter(self)) == CT_OK;
    if (removed) ctpy_trace(get_state(self), CTPY_INFO, "counter removed: %s", ((counter_object *)self)->key);
    return PyBool_FromLong(removed);
}

/* ---- as a whole ---- */

static PyObject *make_repr(PyObject *self) {
    ct_sample sample;
    ct_counter_sample(get_counter(self), &sample);
    return PyUnicode_FromFormat("<codetimer.Counter %R: %llu calls, %llu ns%s>", ((counter_object *)self)->key,
                                (unsigned long long)sample.calls, (unsigned long long)sample.total_ns,
                                !sample.listed    ? ", removed"
                                : !sample.enabled ? ", disabled"
                                                  : "");
}

static Py_hash_t hash(PyObject *self) { return PyObject_Hash(((counter_object *)self)->key); }

static PyObject *compare(PyObject *self, PyObject *other, int operation) {
    if (!Py_IS_TYPE(other, Py_TYPE(self)) || (operation != Py_EQ && operation != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
    return PyObject_RichCompare(((counter_object *)self)->key, ((counter_object *)other)->key, operation);
}

PyDoc_STRVAR(counter_doc, "The running statistics of one member; see counters. Times are in nanoseconds.\n\n"
                          "Each attribute is read when it is asked for; sample() reads all at one moment.\n"
                          "Equal to every Counter of the same key. Removed counters count nothing.");
PyDoc_STRVAR(percentile_doc, "percentile($self, q, /)\n--\n\n"
                             "Nanoseconds below which q percent of all calls lie (float, within one bucket: 9 %);\n"
                             "None without calls. q: a number from 0 to 100.");
PyDoc_STRVAR(sample_doc, "sample($self, /)\n--\n\nAll values at this moment, as a Sample.");
PyDoc_STRVAR(record_doc, "record($self, /, duration_ns, *, error=False)\n--\n\n"
                         "Count one call that was timed elsewhere.\n\n"
                         "duration_ns: int, 0 to 2**63 - 1 (anything with __index__; no bool or float).\n"
                         "error: whether an exception ended it.");
PyDoc_STRVAR(reset_doc, "reset($self, /)\n--\n\n"
                        "Begin again with all values at 0. A call under way does not count.\n\n"
                        "Returns True, or False where the counter has been removed.");
PyDoc_STRVAR(remove_doc,
             "remove($self, /)\n--\n\n"
             "Take the counter out of counters. What it measures runs unmeasured, until it is measured anew.\n\n"
             "Returns True, or False where it had been removed before.");

static PyMethodDef methods[] = {
    {"percentile", percentile, METH_O, percentile_doc},
    {"sample", take_sample, METH_NOARGS, sample_doc},
    {"record", CTPY_WITH_KEYWORDS(record), METH_VARARGS | METH_KEYWORDS, record_doc},
    {"reset", reset, METH_NOARGS, reset_doc},
    {"remove", remove_counter, METH_NOARGS, remove_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, CTPY_MUTABLE(void *, counter_doc)},
    {Py_tp_dealloc, CTPY_SLOT(free_counter)},
    {Py_tp_repr, CTPY_SLOT(make_repr)},
    {Py_tp_hash, CTPY_SLOT(hash)},
    {Py_tp_richcompare, CTPY_SLOT(compare)},
    {Py_tp_getset, attributes},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec ctpy_counter_spec = {
    .name = "codetimer.Counter",
    .basicsize = sizeof(counter_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
