/* SPDX-License-Identifier: MIT
 *
 * sample.c: the type codetimer.Sample: the values of a counter at one moment, or what happened between two moments.
 *
 * It never changes, so averages and percentiles of it agree with each other, which those asked of a Counter one after
 * the other need not. The arithmetic is the core's.
 */
#include "counting.h"

typedef struct sample_object {
    PyObject_HEAD PyObject *key;
    ct_sample sample;
} sample_object;

static const ct_sample *get_sample(PyObject *self) { return &((sample_object *)self)->sample; }

PyObject *ctpy_sample_new(ctpy_state *state, PyObject *key, const ct_sample *sample) {
    sample_object *self = (sample_object *)state->sample_type->tp_alloc(state->sample_type, 0);
    if (self == NULL) return NULL;
    self->key = Py_NewRef(key);
    self->sample = *sample;
    return (PyObject *)self;
}

const ct_sample *ctpy_sample_values(PyObject *sample) { return get_sample(sample); }

static void free_sample(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_DECREF(((sample_object *)self)->key); /* a plain str */
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- the values ---- */

#define NUMBER(field)                                                                                                  \
    PyObject *ctpy_sample_##field(const ct_sample *sample) { return PyLong_FromUnsignedLongLong(sample->field); }

#define NUMBER_WITH_CALLS(field)                                                                                       \
    PyObject *ctpy_sample_##field(const ct_sample *sample) {                                                           \
        return sample->calls > 0 ? PyLong_FromUnsignedLongLong(sample->field) : Py_NewRef(Py_None);                    \
    }

#define TRUTH(field)                                                                                                   \
    PyObject *ctpy_sample_##field(const ct_sample *sample) { return PyBool_FromLong(sample->field); }

TRUTH(listed)
TRUTH(enabled)
TRUTH(unclean)
NUMBER(generation)
NUMBER(calls)
NUMBER(errors)
NUMBER(cancelled)
NUMBER(total_ns)
NUMBER(active_unknown)
NUMBER(in_flight)
NUMBER(anomalies)
NUMBER_WITH_CALLS(min_ns)
NUMBER_WITH_CALLS(max_ns)

PyObject *ctpy_sample_average_ns(const ct_sample *sample) {
    double average;
    return ct_sample_average_ns(sample, &average) == CT_OK ? PyFloat_FromDouble(average) : Py_NewRef(Py_None);
}

/* ---- the time in which calls ran ---- */

PyObject *ctpy_sample_active_ns(const ct_sample *sample) {
    return sample->active_unknown == 0 ? PyLong_FromUnsignedLongLong(sample->active_ns) : Py_NewRef(Py_None);
}

PyObject *ctpy_sample_active_reason(const ct_sample *sample) {
    if (sample->active_unknown == 0) return Py_NewRef(Py_None);
    return PyUnicode_FromFormat("%llu of the calls could wait, and their language does not tell for how long they did",
                                (unsigned long long)sample->active_unknown);
}

PyObject *ctpy_sample_active_average_ns(const ct_sample *sample) {
    double average;
    if (ct_sample_active_average_ns(sample, &average) != CT_OK) return Py_NewRef(Py_None);
    return PyFloat_FromDouble(average);
}

/* ---- percentiles ---- */

PyObject *ctpy_sample_percentile(const ct_sample *sample, PyObject *q) {
    static const char range[] = "q must be a number from 0 to 100";
    double percent = PyBool_Check(q) ? -1 : PyFloat_AsDouble(q), value;
    if (PyBool_Check(q) || (percent == -1 && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_TypeError))) {
        (void)ctpy_refuse(PyExc_TypeError, range, q);
        return NULL;
    }
    int overflow = PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_OverflowError);
    if (PyErr_Occurred() && !overflow) return NULL;
    int status = overflow ? CT_EINVAL : ct_sample_percentile_ns(sample, percent, &value);
    if (status == CT_OK) return PyFloat_FromDouble(value);
    if (status == CT_ENOENT) return Py_NewRef(Py_None);
    (void)ctpy_refuse(PyExc_ValueError, range, q);
    return NULL;
}

#define GET_FIELD(field, doc)                                                                                          \
    static PyObject *get_##field(PyObject *self, void *closure) {                                                      \
        (void)closure;                                                                                                 \
        return ctpy_sample_##field(get_sample(self));                                                                  \
    }

CTPY_SAMPLE_FIELDS(GET_FIELD)

static PyObject *get_time_ns(PyObject *self, void *closure) {
    (void)closure;
    return PyLong_FromUnsignedLongLong(get_sample(self)->time_ns);
}

static PyObject *get_buckets(PyObject *self, void *closure) {
    (void)closure;
    PyObject *tuple = PyTuple_New(CT_BUCKETS);
    for (Py_ssize_t i = 0; tuple != NULL && i < CT_BUCKETS; i++) {
        PyObject *count = PyLong_FromUnsignedLongLong(get_sample(self)->buckets[i]);
        if (count == NULL) Py_CLEAR(tuple);
        if (count != NULL) PyTuple_SET_ITEM(tuple, i, count);
    }
    return tuple;
}

/* ---- the key ---- */

PyObject *ctpy_key_category(PyObject *key) {
    return PyUnicode_Substring(key, 0, PyUnicode_FindChar(key, '/', 0, PyUnicode_GET_LENGTH(key), 1));
}

PyObject *ctpy_key_member(PyObject *key) {
    Py_ssize_t length = PyUnicode_GET_LENGTH(key);
    return PyUnicode_Substring(key, PyUnicode_FindChar(key, '/', 0, length, 1) + 1, length);
}

static PyObject *get_key(PyObject *self, void *closure) {
    (void)closure;
    return Py_NewRef(((sample_object *)self)->key);
}

static PyObject *get_category(PyObject *self, void *closure) {
    (void)closure;
    return ctpy_key_category(((sample_object *)self)->key);
}

static PyObject *get_member(PyObject *self, void *closure) {
    (void)closure;
    return ctpy_key_member(((sample_object *)self)->key);
}

#define FIELD_ROW(field, doc) {#field, get_##field, NULL, doc, NULL},

static PyGetSetDef attributes[] = {
    {"key", get_key, NULL, "'category/member' (str).", NULL},
    {"category", get_category, NULL, "The part of the key before its first '/' (str).", NULL},
    {"member", get_member, NULL, "The part of the key after its first '/' (str).", NULL},
    {"time_ns", get_time_ns, NULL, "now_ns() when it was taken (int); of a difference: of the later sample.", NULL},
    CTPY_SAMPLE_FIELDS(FIELD_ROW){
        "buckets", get_buckets, NULL,
        "How many calls took how long (tuple of 338 int): 0 ns, 1 ns, then eight buckets to the octave up to 2**42 ns "
        "(bucket i ends at 2**(i / 8) ns and includes that), then all that is longer.",
        NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- methods ---- */

static PyObject *percentile(PyObject *self, PyObject *q) { return ctpy_sample_percentile(get_sample(self), q); }

static PyObject *subtract(const sample_object *later, const sample_object *earlier) {
    PyObject *type = PyExc_ValueError;
    if (PyUnicode_Compare(later->key, earlier->key) != 0)
        return PyErr_Format(type, "a difference needs two samples of one counter, not of %R and %R", later->key,
                            earlier->key);
    if (later->sample.time_ns < earlier->sample.time_ns)
        return PyErr_Format(type, "a difference is later - earlier; these samples of %R are the other way round",
                            later->key);
    ct_sample window;
    if (ct_sample_difference(&later->sample, &earlier->sample, &window) != CT_OK)
        return PyErr_Format(type, "%R was reset or removed between these samples: there is nothing to subtract from",
                            later->key);
    ctpy_state *state = (ctpy_state *)PyType_GetModuleState(Py_TYPE(later));
    return ctpy_sample_new(state, later->key, &window);
}

static PyObject *difference(PyObject *self, PyObject *earlier) {
    if (Py_IS_TYPE(earlier, Py_TYPE(self))) return subtract((sample_object *)self, (sample_object *)earlier);
    (void)ctpy_refuse(PyExc_TypeError, "earlier must be a Sample", earlier);
    return NULL;
}

/* The type cannot be subclassed, so two operands of one type are two Samples. */
static PyObject *minus(PyObject *left, PyObject *right) {
    if (!Py_IS_TYPE(left, Py_TYPE(right))) Py_RETURN_NOTIMPLEMENTED;
    return subtract((sample_object *)left, (sample_object *)right);
}

static PyObject *make_repr(PyObject *self) {
    const ct_sample *sample = get_sample(self);
    return PyUnicode_FromFormat("<codetimer.Sample %R: %llu calls, %llu ns>", ((sample_object *)self)->key,
                                (unsigned long long)sample->calls, (unsigned long long)sample->total_ns);
}

PyDoc_STRVAR(sample_doc,
             "The values of a counter at one moment; they never change.\n\n"
             "later - earlier is what happened between two samples of one counter, as a Sample; its min_ns\n"
             "and max_ns are then known within a bucket (9 %). ValueError where the counter was reset or\n"
             "removed in between.");
PyDoc_STRVAR(percentile_doc, "percentile($self, q, /)\n--\n\n"
                             "Nanoseconds below which q percent of the calls lie (float, within one bucket: 9 %);\n"
                             "None without calls. q: a number from 0 to 100.");
PyDoc_STRVAR(difference_doc,
             "difference($self, earlier, /)\n--\n\nWhat happened since the earlier Sample: self - earlier.");

static PyMethodDef methods[] = {
    {"percentile", percentile, METH_O, percentile_doc},
    {"difference", difference, METH_O, difference_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, CTPY_MUTABLE(void *, sample_doc)},
    {Py_tp_dealloc, CTPY_SLOT(free_sample)},
    {Py_tp_repr, CTPY_SLOT(make_repr)},
    {Py_nb_subtract, CTPY_SLOT(minus)},
    {Py_tp_getset, attributes},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec ctpy_sample_spec = {
    .name = "codetimer.Sample",
    .basicsize = sizeof(sample_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
