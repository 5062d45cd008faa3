/* SPDX-License-Identifier: MIT
 *
 * view.c: the type codetimer.View: the counters of another process, read and switched from outside.
 *
 * A view of the core is not for two threads at a time. Reading holds the GIL; switching may have to wait for another
 * controller and does so without it, and the view is marked as in use meanwhile. What is read from two segments is
 * joined by key: one counter for each key, whose values are the sum.
 */
#include <errno.h>

#include "counting.h"
#include "live.h"

typedef struct view_object {
    PyObject_HEAD ctpy_views views; /* none: closed */
    PyObject *busy;                 /* a frozenset of keys */
    int in_use;
} view_object;

static ctpy_state *get_state(PyObject *self) { return (ctpy_state *)PyType_GetModuleState(Py_TYPE(self)); }

PyObject *ctpy_view_new(ctpy_state *state, ctpy_views *views) {
    PyObject *busy = PyFrozenSet_New(NULL);
    view_object *self = busy != NULL ? (view_object *)state->view_type->tp_alloc(state->view_type, 0) : NULL;
    if (self == NULL) {
        Py_XDECREF(busy);
        ctpy_close_views(views);
        return NULL;
    }
    self->views = *views;
    self->busy = busy;
    return (PyObject *)self;
}

static void free_view(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    ctpy_close_views(&((view_object *)self)->views);
    Py_DECREF(((view_object *)self)->busy); /* of plain str */
    type->tp_free(self);
    Py_DECREF(type);
}

/* The object, if it can be used now; NULL with an exception. */
static view_object *use(PyObject *self) {
    view_object *view = (view_object *)self;
    if (view->in_use) {
        PyErr_SetString(PyExc_RuntimeError, "the view is in use by another thread: give each thread its own");
        return NULL;
    }
    if (view->views.count > 0) return view;
    PyErr_SetString(PyExc_ValueError, "the view is closed");
    return NULL;
}

/* ---- processes ---- */

static PyObject *describe(ctpy_state *state, ct_view *view) {
    ct_process process;
    (void)ct_view_refresh(view, &process); /* what is wrong is in the struct too */
    return ctpy_process_new(state, &process);
}

static PyObject *get_process(PyObject *self, void *closure) {
    (void)closure;
    const view_object *view = use(self);
    return view != NULL ? describe(get_state(self), view->views.views[0]) : NULL;
}

static PyObject *get_segments(PyObject *self, void *closure) {
    (void)closure;
    const view_object *view = use(self);
    PyObject *segments = view != NULL ? PyTuple_New((Py_ssize_t)view->views.count) : NULL;
    for (size_t i = 0; segments != NULL && i < view->views.count; i++) {
        PyObject *process = describe(get_state(self), view->views.views[i]);
        if (process == NULL) Py_CLEAR(segments);
        if (process != NULL) PyTuple_SET_ITEM(segments, (Py_ssize_t)i, process);
    }
    return segments;
}

/* ---- counters ---- */

/* What is done with each listed counter of a view. Returns 0, or -1 with an exception. */
typedef int (*visitor)(ctpy_state *state, ct_view *view, uint32_t index, const ct_view_counter *counter, void *to);

static int visit_all(PyObject *self, visitor visit, void *to) {
    const view_object *object = use(self);
    if (object == NULL) return -1;
    for (size_t i = 0; i < object->views.count; i++) {
        ct_view *view = object->views.views[i];
        (void)ct_view_refresh(view, NULL); /* where its file is gone, its last values stay readable */
        const uint32_t end = ct_view_end(view);
        for (uint32_t index = 0; index < end; index++) {
            ct_view_counter counter;
            if (ct_view_counter_at(view, index, &counter) != CT_OK || !counter.listed) continue;
            if (visit(get_state(self), view, index, &counter, to) < 0) return -1;
        }
    }
    return 0;
}

/* Enabled is what is so in one of two segments, as in their sum; the help is that of the first that has one. */
static int join_info(ctpy_state *state, PyObject *infos, PyObject *key, PyObject **info) {
    PyObject *other = PyDict_GetItemWithError(infos, key);
    if (other == NULL) return PyErr_Occurred() ? -1 : 0;
    PyObject *help = PyStructSequence_GetItem(other, 2);
    int enabled = PyStructSequence_GetItem(other, 1) == Py_True || PyStructSequence_GetItem(*info, 1) == Py_True;
    if (PyUnicode_GET_LENGTH(help) == 0) help = PyStructSequence_GetItem(*info, 2);
    PyObject *values[] = {Py_NewRef(key), PyBool_FromLong(enabled), Py_NewRef(help)};
    Py_SETREF(*info, CTPY_FILL(state->info_type, values));
    return *info != NULL ? 0 : -1;
}

static int add_info(ctpy_state *state, ct_view *view, uint32_t index, const ct_view_counter *counter, void *to) {
    (void)view, (void)index;
    PyObject *info = ctpy_info_new(state, counter);
    if (info == NULL) return -1;
    PyObject *key = Py_NewRef(PyStructSequence_GetItem(info, 0));
    int added = join_info(state, to, key, &info) == 0 ? PyDict_SetItem(to, key, info) : -1;
    Py_DECREF(key);
    Py_XDECREF(info);
    return added;
}

static PyObject *get_counters(PyObject *self, void *closure) {
    (void)closure;
    PyObject *infos = PyDict_New();
    if (infos != NULL && visit_all(self, add_info, infos) < 0) Py_CLEAR(infos);
    return infos;
}

/* ---- samples ---- */

typedef struct sampling {
    PyObject *samples; /* a dict */
    PyObject *busy;    /* a set */
    int buckets;
} sampling;

static int add_to_samples(ctpy_state *state, PyObject *samples, PyObject *key, const ct_sample *sample) {
    PyObject *other = PyDict_GetItemWithError(samples, key);
    if (other == NULL && PyErr_Occurred()) return -1;
    ct_sample sum = *sample;
    if (other != NULL) ct_sample_add(&sum, ctpy_sample_values(other));
    PyObject *made = ctpy_sample_new(state, key, &sum);
    int added = made != NULL ? PyDict_SetItem(samples, key, made) : -1;
    Py_XDECREF(made);
    return added;
}

static int add_sample(ctpy_state *state, ct_view *view, uint32_t index, const ct_view_counter *counter, void *to) {
    sampling *into = to;
    ct_sample sample = {0};
    PyObject *key = PyUnicode_DecodeUTF8(counter->key, (Py_ssize_t)counter->key_length, "replace");
    if (key == NULL) return -1;
    int status = ct_view_sample(view, index, into->buckets, &sample);
    int added = status >= 0 ? add_to_samples(state, into->samples, key, &sample) : 0;
    if (added == 0 && status == CT_EXISTS) added = PySet_Add(into->busy, key);
    Py_DECREF(key);
    return added;
}

static PyObject *sample(PyObject *self, PyObject *args, PyObject *kwargs) {
    static const char *const keywords[] = {"buckets", NULL};
    sampling into = {NULL, NULL, 1};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|p:sample", CTPY_MUTABLE(char **, keywords), &into.buckets))
        return NULL;
    into.samples = PyDict_New();
    into.busy = PySet_New(NULL);
    int visited = into.samples != NULL && into.busy != NULL ? visit_all(self, add_sample, &into) : -1;
    PyObject *busy = visited == 0 ? PyFrozenSet_New(into.busy) : NULL;
    Py_XDECREF(into.busy);
    if (busy == NULL) {
        Py_XDECREF(into.samples);
        return NULL;
    }
    Py_SETREF(((view_object *)self)->busy, busy);
    return into.samples;
}

static PyObject *get_busy(PyObject *self, void *closure) {
    (void)closure;
    return Py_NewRef(((view_object *)self)->busy);
}

/* ---- members ---- */

static int read_first(void *from, char *buffer, size_t size, size_t *length) {
    return ct_view_members(from, buffer, size, length);
}

static PyObject *get_members(PyObject *self, void *closure) {
    (void)closure;
    const view_object *view = use(self);
    return view != NULL ? ctpy_read_members(read_first, view->views.views[0]) : NULL;
}

static PyObject *get_acknowledged(PyObject *self, void *closure) {
    (void)closure;
    const view_object *view = use(self);
    if (view == NULL) return NULL;
    int acknowledged = 1;
    for (size_t i = 0; i < view->views.count; i++) acknowledged &= ct_view_acknowledged(view->views.views[i]);
    return PyBool_FromLong(acknowledged);
}

enum { SET, ENABLE, DISABLE };

static int control(ct_view *view, int how, const char *text, size_t length) {
    return how == SET ? ct_view_set_members(view, text, length) : ct_view_switch(view, text, length, how == ENABLE);
}

static PyObject *raise_refusal(int status, ct_view *view) {
    ct_process process;
    (void)ct_view_refresh(view, &process);
    if (status == CT_ENOENT) {
        PyObject *error = PyObject_CallFunction(PyExc_ProcessLookupError, "iss", ESRCH,
                                                "the process has ended: its counters cannot be switched", process.path);
        if (error != NULL) PyErr_SetObject(PyExc_ProcessLookupError, error);
        Py_XDECREF(error);
        return NULL;
    }
    return ctpy_raise(status,
                      status == CT_EPERM ? "only the same user, or root, can switch its counters"
                      : status == CT_EINVAL
                          ? "the members list would be longer than 65,536 bytes, or the segment is damaged"
                      : status == CT_EBUSY ? "another controller is at it, or was stopped in the middle: try again"
                                           : "its counters cannot be switched",
                      process.path);
}

/* The process may log it too, but where nobody may be looking. */
static void tell_skipped(ctpy_state *state, const char *utf8, Py_ssize_t length) {
    ct_members *members;
    if (utf8 == NULL || ct_members_parse(utf8, (size_t)length, &members) != CT_OK) return;
    ctpy_tell_problems(state, members);
    ct_members_free(members);
}

/* All segments are switched, also when one of them refuses; the first refusal is told. */
static PyObject *control_all(PyObject *self, int how, PyObject *text) {
    view_object *view = use(self);
    const char *utf8;
    Py_ssize_t length;
    if (view == NULL || ctpy_parse_members(text, how == SET, &utf8, &length) < 0) return NULL;
    if (how != SET && ctpy_check_patterns(utf8, length) < 0) return NULL;
    int refusal = CT_OK;
    size_t refused = 0;
    view->in_use = 1;
    Py_BEGIN_ALLOW_THREADS for (size_t i = 0; i < view->views.count; i++) {
        int status = control(view->views.views[i], how, utf8, (size_t)length);
        if (status == CT_OK || refusal != CT_OK) continue;
        refusal = status;
        refused = i;
    }
    Py_END_ALLOW_THREADS view->in_use = 0;
    if (refusal != CT_OK) return raise_refusal(refusal, view->views.views[refused]);
    if (how == SET) tell_skipped(get_state(self), utf8, length);
    return Py_NewRef(Py_None);
}

static PyObject *enable(PyObject *self, PyObject *text) { return control_all(self, ENABLE, text); }
static PyObject *disable(PyObject *self, PyObject *text) { return control_all(self, DISABLE, text); }
static PyObject *set_members(PyObject *self, PyObject *text) { return control_all(self, SET, text); }

/* ---- as a whole ---- */

static PyObject *get_closed(PyObject *self, void *closure) {
    (void)closure;
    return PyBool_FromLong(((view_object *)self)->views.count == 0);
}

static PyObject *close_view(PyObject *self, PyObject *ignored) {
    (void)ignored;
    view_object *view = (view_object *)self;
    if (view->in_use) return (PyObject *)use(self); /* NULL, with its reason */
    ctpy_close_views(&view->views);
    return Py_NewRef(Py_None);
}

static PyObject *enter(PyObject *self, PyObject *ignored) {
    (void)ignored;
    return use(self) != NULL ? Py_NewRef(self) : NULL;
}

static PyObject *leave(PyObject *self, PyObject *args) { return close_view(self, args); }

static PyObject *make_repr(PyObject *self) {
    const view_object *view = (view_object *)self;
    if (view->in_use || view->views.count == 0)
        return PyUnicode_FromFormat("<codetimer.View %s>", view->in_use ? "in use" : "closed");
    ct_process process;
    (void)ct_view_refresh(view->views.views[0], &process);
    return PyUnicode_FromFormat("<codetimer.View of process %lld: %llu counters>", (long long)process.pid,
                                (unsigned long long)process.counters);
}

static PyGetSetDef attributes[] = {
    {"process", get_process, NULL, "The process as it is now (Process), by its first segment.", NULL},
    {"segments", get_segments, NULL,
     "All its segments as they are now (tuple of Process): one for each language in it that measures.", NULL},
    {"counters", get_counters, NULL, "Its counters, also disabled ones (dict of CounterInfo by key).", NULL},
    {"members", get_members, NULL, "Its members list (str), of its first segment; None: it has no list.", NULL},
    {"acknowledged", get_acknowledged, NULL,
     "Whether the process itself has taken notice of the latest list (bool): counters that it makes from now on follow "
     "it. It does so within a second while it measures; where all is switched off, when it measures again.",
     NULL},
    {"busy", get_busy, NULL,
     "The keys (frozenset of str) whose writer was in the way at the last sample(): their values are older, their "
     "buckets not to be used.",
     NULL},
    {"closed", get_closed, NULL, "Whether it is closed (bool).", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(view_doc,
             "The counters of a process; made by attach(). A context manager that closes it.\n\n"
             "The counters of its languages are joined by key; where two have the same key, values are summed.\n"
             "Of a process that has ended the last values are shown. Not for two threads at a time.");
PyDoc_STRVAR(sample_doc, "sample($self, /, buckets=True)\n--\n\n"
                         "The values of all its counters now, as a dict of Sample by key.\n\n"
                         "buckets: whether percentiles are needed; reading is quicker without.");
PyDoc_STRVAR(enable_doc,
             "enable($self, members, /)\n--\n\n"
             "Switch on what these patterns (str, as in a members list) match, now and for counters to come.\n\n"
             "Raises ProcessLookupError where the process has ended, PermissionError where it is another\n"
             "user's, ValueError where its list would become too long or a pattern is wrong; then nothing is\n"
             "switched.");
PyDoc_STRVAR(disable_doc, "disable($self, members, /)\n--\n\nSwitch off what these patterns match; as enable().");
PyDoc_STRVAR(set_members_doc, "set_members($self, members, /)\n--\n\n"
                              "Set its members list (str; None: no list, all is measured). A pattern that is wrong is\n"
                              "skipped, and told to the logger \"codetimer\", as by configure(); the rest\n"
                              "applies. Raises as enable() otherwise.");
PyDoc_STRVAR(close_doc, "close($self, /)\n--\n\nLet go of the process. Can be called twice.");

static PyMethodDef methods[] = {
    {"sample", CTPY_WITH_KEYWORDS(sample), METH_VARARGS | METH_KEYWORDS, sample_doc},
    {"enable", enable, METH_O, enable_doc},
    {"disable", disable, METH_O, disable_doc},
    {"set_members", set_members, METH_O, set_members_doc},
    {"close", close_view, METH_NOARGS, close_doc},
    {"__enter__", enter, METH_NOARGS, NULL},
    {"__exit__", leave, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, CTPY_MUTABLE(void *, view_doc)},
    {Py_tp_dealloc, CTPY_SLOT(free_view)},
    {Py_tp_repr, CTPY_SLOT(make_repr)},
    {Py_tp_getset, attributes},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec ctpy_view_spec = {
    .name = "codetimer.View",
    .basicsize = sizeof(view_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
