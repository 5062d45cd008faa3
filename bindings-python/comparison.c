/* SPDX-License-Identifier: MIT
 *
 * comparison.c: the type codetimer.Comparison, a read-only view of a ct_comparison.
 *
 * As in Result every attribute is made when it is asked for. The results of the candidates belong to the comparison,
 * and the Result objects that show them keep it alive.
 */
#include "running.h"

typedef struct comparison_object {
    PyObject_HEAD ct_comparison *comparison;
    PyObject *names; /* tuple of str */
    uint32_t python; /* which candidates are Python functions, one bit each */
} comparison_object;

PyObject *ctpy_comparison_new(ctpy_state *state, PyObject *names, ct_comparison *comparison, uint32_t python) {
    comparison_object *self = (comparison_object *)state->comparison_type->tp_alloc(state->comparison_type, 0);
    if (self == NULL) {
        ct_comparison_free(comparison);
        return NULL;
    }
    self->comparison = comparison;
    self->names = Py_NewRef(names);
    self->python = python;
    return (PyObject *)self;
}

ct_comparison *ctpy_comparison_get(PyObject *self) { return ((comparison_object *)self)->comparison; }

static ctpy_state *get_state(PyObject *self) { return (ctpy_state *)PyType_GetModuleState(Py_TYPE(self)); }

static PyObject *name_at(PyObject *self, size_t at) {
    return PyTuple_GET_ITEM(((comparison_object *)self)->names, (Py_ssize_t)at);
}

/* A subclass of str can refer back to the Comparison. */
static int traverse_comparison(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((comparison_object *)self)->names);
    return 0;
}

static void free_comparison(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_CLEAR(((comparison_object *)self)->names);
    ct_comparison_free(ctpy_comparison_get(self));
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- by name ---- */

static int refuse_name(PyObject *self, PyObject *name) {
    PyErr_Format(PyExc_KeyError, "there is no candidate %.100R, but %.400R", name, ((comparison_object *)self)->names);
    return -1;
}

/* The index of "name"; the baseline for NULL and None. -1 with an exception. */
static int find(PyObject *self, PyObject *name, size_t *at) {
    const ct_comparison *comparison = ctpy_comparison_get(self);
    *at = comparison->baseline;
    if (name == NULL || name == Py_None) return 0;
    for (*at = 0; *at < comparison->count; ++*at) {
        int equal = PyObject_RichCompareBool(name_at(self, *at), name, Py_EQ);
        if (equal != 0) return equal > 0 ? 0 : -1;
    }
    return refuse_name(self, name);
}

typedef struct pair {
    size_t a, b;
    ct_ratio ratio;
} pair;

/* The arguments (a, b=None): two names. */
static int parse_pair(PyObject *self, PyObject *args, PyObject *kwargs, pair *pair) {
    static const char *const keywords[] = {"a", "b", NULL};
    PyObject *a, *b = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O", CTPY_MUTABLE(char **, keywords), &a, &b)) return -1;
    if (find(self, a, &pair->a) < 0 || find(self, b, &pair->b) < 0) return -1;
    return ct_comparison_ratio(ctpy_comparison_get(self), pair->a, pair->b, &pair->ratio) == CT_OK ? 0 : -1;
}

static PyObject *get_ratio(PyObject *self, PyObject *args, PyObject *kwargs) {
    pair pair;
    if (parse_pair(self, args, kwargs, &pair) < 0) return NULL;
    return pair.ratio.known ? PyFloat_FromDouble(pair.ratio.ratio) : Py_NewRef(Py_None);
}

static PyObject *get_interval(PyObject *self, PyObject *args, PyObject *kwargs) {
    pair pair;
    if (parse_pair(self, args, kwargs, &pair) < 0) return NULL;
    return pair.ratio.known ? Py_BuildValue("(dd)", pair.ratio.low, pair.ratio.high) : Py_NewRef(Py_None);
}

static PyObject *get_different(PyObject *self, PyObject *args, PyObject *kwargs) {
    pair pair;
    if (parse_pair(self, args, kwargs, &pair) < 0) return NULL;
    return PyBool_FromLong(pair.ratio.different);
}

/* ---- sentences ---- */

typedef struct claim {
    const ct_ratio *ratio;
    const char *name, *baseline;
} claim;

static size_t put_claim(const void *what, const void *options, char *buffer, size_t size) {
    const claim *claim = what;
    return ct_ratio_verdict(claim->ratio, claim->name, claim->baseline, options, buffer, size);
}

static PyObject *make_sentence(PyObject *self, const pair *pair) {
    const ct_comparison *comparison = ctpy_comparison_get(self);
    const claim claim = {&pair->ratio, comparison->results[pair->a]->name, comparison->results[pair->b]->name};
    return ctpy_put_text(put_claim, &claim, NULL);
}

static PyObject *get_verdict_of(PyObject *self, PyObject *args, PyObject *kwargs) {
    pair pair;
    return parse_pair(self, args, kwargs, &pair) == 0 ? make_sentence(self, &pair) : NULL;
}

/* A line for each candidate but the baseline. */
static PyObject *get_verdict(PyObject *self, void *closure) {
    (void)closure;
    const ct_comparison *comparison = ctpy_comparison_get(self);
    PyObject *sentences = PyList_New(0), *line = PyUnicode_FromString("\n");
    for (size_t i = 0; sentences != NULL && i < comparison->count; i++) {
        if (i == comparison->baseline) continue;
        const pair pair = {i, comparison->baseline, comparison->ratios[i]};
        PyObject *sentence = make_sentence(self, &pair);
        if (sentence == NULL || PyList_Append(sentences, sentence) < 0) Py_CLEAR(sentences);
        Py_XDECREF(sentence);
    }
    PyObject *verdict = sentences != NULL && line != NULL ? PyUnicode_Join(line, sentences) : NULL;
    Py_XDECREF(sentences);
    Py_XDECREF(line);
    return verdict;
}

/* ---- attributes ---- */

/* A dict by name of what "make" makes. */
static PyObject *make_by_name(PyObject *self, PyObject *(*make)(PyObject *self, size_t at)) {
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict != NULL && i < ctpy_comparison_get(self)->count; i++) {
        PyObject *value = make(self, i);
        if (value == NULL || PyDict_SetItem(dict, name_at(self, i), value) < 0) Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

static PyObject *make_result(PyObject *self, size_t at) {
    const comparison_object *object = (comparison_object *)self;
    ct_result *result = (ct_result *)(uintptr_t)object->comparison->results[at];
    return ctpy_result_new(get_state(self), name_at(self, at), result, (int)(object->python >> at & 1), self);
}

static PyObject *make_ratio(PyObject *self, size_t at) {
    return ctpy_ratio_new(get_state(self), &ctpy_comparison_get(self)->ratios[at]);
}

static PyObject *get_results(PyObject *self, void *closure) {
    (void)closure;
    return make_by_name(self, make_result);
}

static PyObject *get_ratios(PyObject *self, void *closure) {
    (void)closure;
    return make_by_name(self, make_ratio);
}

static PyObject *get_baseline(PyObject *self, void *closure) {
    (void)closure;
    return Py_NewRef(name_at(self, ctpy_comparison_get(self)->baseline));
}

static PyObject *get_twin(PyObject *self, void *closure) {
    (void)closure;
    return ctpy_ratio_new(get_state(self), &ctpy_comparison_get(self)->twin);
}

static PyObject *get_resolution(PyObject *self, void *closure) {
    (void)closure;
    const ct_comparison *comparison = ctpy_comparison_get(self);
    double most = 0;
    for (size_t i = 0; i < comparison->count; i++) {
        if (!comparison->ratios[i].known) return Py_NewRef(Py_None);
        if (comparison->ratios[i].resolved > most) most = comparison->ratios[i].resolved;
    }
    return PyFloat_FromDouble(most);
}

#define GET_FIELD(field, convert)                                                                                      \
    static PyObject *get_##field(PyObject *self, void *closure) {                                                      \
        (void)closure;                                                                                                 \
        return convert(ctpy_comparison_get(self)->field);                                                              \
    }

GET_FIELD(rounds, PyLong_FromUnsignedLongLong)
GET_FIELD(rounds_tied, PyLong_FromUnsignedLongLong)
GET_FIELD(rounds_disturbed, PyLong_FromUnsignedLongLong)
GET_FIELD(budget_ns, PyLong_FromUnsignedLongLong)
GET_FIELD(elapsed_ns, PyLong_FromUnsignedLongLong)
GET_FIELD(interrupted, ctpy_text)

static PyObject *get_notes(PyObject *self, void *closure) {
    (void)closure;
    const ct_comparison *comparison = ctpy_comparison_get(self);
    PyObject *notes = PyTuple_New((Py_ssize_t)comparison->notes_count);
    for (size_t i = 0; notes != NULL && i < comparison->notes_count; i++) {
        PyObject *note = ctpy_text(comparison->notes[i]);
        if (note == NULL) Py_CLEAR(notes);
        if (note != NULL) PyTuple_SET_ITEM(notes, (Py_ssize_t)i, note);
    }
    return notes;
}

/* In the order of to_dict(). */
static PyGetSetDef attributes[] = {
    {"baseline", get_baseline, NULL, "The name of the candidate that the others are compared with (str).", NULL},
    {"results", get_results, NULL, "By name, what was measured of each candidate (dict of Result).", NULL},
    {"ratios", get_ratios, NULL, "By name, how its time compares with the baseline's (dict of Ratio).", NULL},
    {"twin", get_twin, NULL, "The baseline against itself, measured in the same rounds (Ratio).", NULL},
    {"resolution", get_resolution, NULL,
     "Differences below this are not resolved here and now: 0.008 means 0.8 % (float); None: too few rounds.", NULL},
    {"verdict", get_verdict, NULL, "A sentence on each candidate but the baseline, one a line (str).", NULL},
    {"rounds", get_rounds, NULL, "Rounds in which every candidate had its turns (int).", NULL},
    {"rounds_tied", get_rounds_tied, NULL, "Of these, left out since the clock saw nothing of some candidate (int).",
     NULL},
    {"rounds_disturbed", get_rounds_disturbed, NULL,
     "Of these, left out of the ratios, where enough are left, since other threads had the CPU (int).", NULL},
    {"budget_ns", get_budget_ns, NULL, "Nanoseconds that it could use all in all (int).", NULL},
    {"elapsed_ns", get_elapsed_ns, NULL, "Nanoseconds that it took (int).", NULL},
    {"interrupted", get_interrupted, NULL, "None, or what ended it early: 'interrupted' or an exception's name.", NULL},
    {"notes", get_notes, NULL, "What else to know, one sentence each (tuple of str).", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- as a whole ---- */

/* {name: Result} as {name: dict}. */
static int plain_results(PyObject *results) {
    PyObject *name, *result;
    Py_ssize_t at = 0;
    while (PyDict_Next(results, &at, &name, &result)) {
        PyObject *plain = PyObject_CallMethod(result, "to_dict", NULL);
        const int set = plain != NULL ? PyDict_SetItem(results, name, plain) : -1; /* no new key: PyDict_Next goes on */
        Py_XDECREF(plain);
        if (set < 0) return -1;
    }
    return 0;
}

static int plain_ratios(PyObject *ratios) {
    PyObject *name, *ratio;
    Py_ssize_t at = 0;
    while (PyDict_Next(ratios, &at, &name, &ratio)) {
        PyObject *plain = ctpy_plain(Py_NewRef(ratio));
        const int set = plain != NULL ? PyDict_SetItem(ratios, name, plain) : -1;
        Py_XDECREF(plain);
        if (set < 0) return -1;
    }
    return 0;
}

static PyObject *get_plain(PyObject *self, const PyGetSetDef *attribute) {
    PyObject *value = ctpy_plain(attribute->get(self, NULL));
    int failed = value == NULL;
    if (!failed && attribute->get == get_results) failed = plain_results(value) < 0;
    if (!failed && attribute->get == get_ratios) failed = plain_ratios(value) < 0;
    if (failed) Py_CLEAR(value);
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

static size_t put_json(const void *comparison, const void *options, char *buffer, size_t size) {
    return ct_export_comparison(comparison, CT_EXPORT_JSON, options, buffer, size);
}

static PyObject *make_json(PyObject *self, PyObject *ignored) {
    (void)ignored;
    return ctpy_json(put_json, ctpy_comparison_get(self));
}

static size_t put_table(const void *comparison, const void *options, char *buffer, size_t size) {
    return ct_comparison_format(comparison, options, buffer, size);
}

PyObject *ctpy_comparison_format(const void *comparison, const ct_report_options *options) {
    return ctpy_put_text(put_table, comparison, options);
}

static PyObject *make_str(PyObject *self) { return ctpy_comparison_format(ctpy_comparison_get(self), NULL); }

static PyObject *make_repr(PyObject *self) {
    const ct_comparison *comparison = ctpy_comparison_get(self);
    return PyUnicode_FromFormat("<codetimer.Comparison of %.400R: %llu rounds%s%s>",
                                ((comparison_object *)self)->names, (unsigned long long)comparison->rounds,
                                comparison->interrupted != NULL ? ", ended by " : "",
                                comparison->interrupted != NULL ? comparison->interrupted : "");
}

PyDoc_STRVAR(comparison_doc,
             "What a comparison has found. Made by compare; read-only; times are in nanoseconds.\n\n"
             "str() is the table as it is printed. Candidates are named as they were; where a method leaves out b,\n"
             "the baseline is meant.");
PyDoc_STRVAR(ratio_doc, "ratio($self, /, a, b=None)\n--\n\n"
                        "The time of a by that of b (float): below 1, a is faster. None: too few rounds.");
PyDoc_STRVAR(interval_doc, "interval($self, /, a, b=None)\n--\n\n"
                           "Where that ratio is, as (low, high): right with 99 % for all candidates together.\n"
                           "None: too few rounds.");
PyDoc_STRVAR(different_doc, "different($self, /, a, b=None)\n--\n\n"
                            "Whether a and b differ: the interval excludes 1, by more than the baseline differs\n"
                            "from itself.");
PyDoc_STRVAR(verdict_of_doc, "verdict_of($self, /, a, b=None)\n--\n\nOne sentence on a, compared with b (str).");
PyDoc_STRVAR(to_dict_doc, "to_dict($self, /)\n--\n\nAll attributes as a dict of what JSON knows.");
PyDoc_STRVAR(to_json_doc, "to_json($self, /)\n--\n\n"
                          "All that is known as JSON text, the same as in a file of results (see the README).");

static PyMethodDef methods[] = {
    {"ratio", CTPY_WITH_KEYWORDS(get_ratio), METH_VARARGS | METH_KEYWORDS, ratio_doc},
    {"interval", CTPY_WITH_KEYWORDS(get_interval), METH_VARARGS | METH_KEYWORDS, interval_doc},
    {"different", CTPY_WITH_KEYWORDS(get_different), METH_VARARGS | METH_KEYWORDS, different_doc},
    {"verdict_of", CTPY_WITH_KEYWORDS(get_verdict_of), METH_VARARGS | METH_KEYWORDS, verdict_of_doc},
    {"to_dict", make_dict, METH_NOARGS, to_dict_doc},
    {"to_json", make_json, METH_NOARGS, to_json_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, CTPY_MUTABLE(void *, comparison_doc)},
    {Py_tp_traverse, CTPY_SLOT(traverse_comparison)},
    {Py_tp_dealloc, CTPY_SLOT(free_comparison)},
    {Py_tp_str, CTPY_SLOT(make_str)},
    {Py_tp_repr, CTPY_SLOT(make_repr)},
    {Py_tp_getset, attributes},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec ctpy_comparison_spec = {
    .name = "codetimer.Comparison",
    .basicsize = sizeof(comparison_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
