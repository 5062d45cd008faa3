/* SPDX-License-Identifier: MIT
 *
 * asyncgen.c: the stand-in of async generators, and that of what runs one a step further.
 *
 * An async generator does not run when it is asked for its next value, but when somebody awaits the answer. So the
 * slices are those of the awaitables that __anext__, asend, athrow and aclose return. They belong to the call of the
 * generator. The hooks of sys.set_asyncgen_hooks get the generator itself: it calls them, as ever.
 */
#include <stddef.h>

#include "underway.h"

#include <structmember.h> /* expects Python.h before it */

/* ---- steps ---- */

typedef struct step_object {
    PyObject_HEAD PyObject *inner;
    ctpy_underway *call;
    int starts, outcome; /* see ctpy_step_new */
} step_object;

PyObject *ctpy_step_new(ctpy_underway *call, PyObject *inner, int starts, int outcome) {
    PyTypeObject *type = call->state->underway_types[CTPY_STEP];
    if (inner == NULL || type == NULL) return inner; /* the module is being cleared */
    step_object *self = (step_object *)type->tp_alloc(type, 0);
    if (self == NULL) (void)ctpy_go_unmeasured(call->state, call->measured);
    if (self == NULL) return inner;
    self->inner = inner;
    self->call = (ctpy_underway *)Py_NewRef((PyObject *)call);
    self->starts = starts;
    self->outcome = outcome;
    return (PyObject *)self;
}

static int visit_step(PyObject *object, visitproc visit, void *arg) {
    step_object *self = (step_object *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->inner);
    Py_VISIT(self->call);
    return 0;
}

static int clear_step(PyObject *object) {
    step_object *self = (step_object *)object;
    PyObject *inner = self->inner;
    self->inner = Py_NewRef(Py_None);
    Py_XDECREF(inner);
    return 0; /* the call is kept: it is told what happens to its steps */
}

static void free_step(PyObject *object) {
    step_object *self = (step_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    Py_XDECREF(self->inner);
    Py_XDECREF((PyObject *)self->call);
    type->tp_free(object);
    Py_DECREF(type);
}

/* A step returns, also by StopIteration, one more value of the generator, or the end of the call. */
static int judge(const step_object *self, PySendResult sent) {
    if (sent == PYGEN_NEXT || (sent == PYGEN_RETURN && self->outcome == CTPY_SUSPENDED)) return CTPY_SUSPENDED;
    if (sent == PYGEN_ERROR && !PyErr_ExceptionMatches(PyExc_StopIteration)) return ctpy_slice_judge(self->call);
    return ctpy_has_ended(self->call) ? self->outcome : CTPY_SUSPENDED;
}

static PySendResult send_step(PyObject *object, PyObject *value, PyObject **result) {
    step_object *self = (step_object *)object;
    const int measured = ctpy_slice_begin(self->call, self->starts && value == Py_None);
    Py_INCREF(object);
    const PySendResult sent = PyIter_Send(self->inner, value, result);
    if (measured) ctpy_slice_end(self->call, judge(self, sent));
    if (!measured) ctpy_slice_passed(self->call);
    Py_DECREF(object);
    return sent;
}

/* As the interpreter runs it: what says StopIteration is handed on as it is. */
static PyObject *next_step(PyObject *object) {
    step_object *self = (step_object *)object;
    if (!PyIter_Check(self->inner)) return ctpy_call_method(self->inner, "__next__", NULL, 0);
    const int measured = ctpy_slice_begin(self->call, self->starts);
    Py_INCREF(object);
    PyObject *result = Py_TYPE(self->inner)->tp_iternext(self->inner);
    const int raised = result == NULL && PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_StopIteration);
    const PySendResult sent = result != NULL ? PYGEN_NEXT : raised ? PYGEN_ERROR : PYGEN_RETURN;
    if (measured) ctpy_slice_end(self->call, judge(self, sent));
    if (!measured) ctpy_slice_passed(self->call);
    Py_DECREF(object);
    return result;
}

static PyObject *send_step_method(PyObject *object, PyObject *value) {
    PyObject *result = NULL;
    const PySendResult sent = send_step(object, value, &result);
    return ctpy_sent(sent, result);
}

/* Ends what a throw or close did, which may have nothing to do with the call. */
static PyObject *pass_on(step_object *self, int measured, PyObject *result, int outcome) {
    if (measured) ctpy_slice_end(self->call, outcome);
    if (!measured) ctpy_slice_passed(self->call);
    Py_DECREF(self);
    return result;
}

static PyObject *throw_step(PyObject *object, PyObject *const *args, Py_ssize_t count) {
    step_object *self = (step_object *)Py_NewRef(object);
    const int measured = ctpy_slice_begin(self->call, 0);
    PyObject *result = ctpy_call_method(self->inner, "throw", args, count);
    return pass_on(self, measured, result, judge(self, result != NULL ? PYGEN_NEXT : PYGEN_ERROR));
}

static PyObject *close_step(PyObject *object, PyObject *ignored) {
    (void)ignored;
    step_object *self = (step_object *)Py_NewRef(object);
    const int measured = ctpy_slice_begin(self->call, 0);
    PyObject *result = ctpy_call_method(self->inner, "close", NULL, 0);
    int outcome = judge(self, result != NULL ? PYGEN_NEXT : PYGEN_ERROR);
    if (result != NULL && ctpy_has_ended(self->call)) outcome = CT_CANCELLED;
    return pass_on(self, measured, result, outcome);
}

static PyObject *get_step_attribute(PyObject *object, PyObject *name) {
    return ctpy_forward_attribute(object, ((step_object *)object)->inner, name);
}

static PyObject *make_step_repr(PyObject *object) { return PyObject_Repr(((step_object *)object)->inner); }

static PyMethodDef step_methods[] = {
    {"send", send_step_method, METH_O, NULL},
    {"throw", CTPY_WITH_KEYWORDS(throw_step), METH_FASTCALL, NULL},
    {"close", close_step, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot step_slots[] = {
    {Py_tp_dealloc, CTPY_SLOT(free_step)},
    {Py_tp_traverse, CTPY_SLOT(visit_step)},
    {Py_tp_clear, CTPY_SLOT(clear_step)},
    {Py_tp_getattro, CTPY_SLOT(get_step_attribute)},
    {Py_tp_repr, CTPY_SLOT(make_step_repr)},
    {Py_am_await, CTPY_SLOT(PyObject_SelfIter)},
    {Py_am_send, CTPY_SLOT(send_step)},
    {Py_tp_iter, CTPY_SLOT(PyObject_SelfIter)},
    {Py_tp_iternext, CTPY_SLOT(next_step)},
    {Py_tp_methods, step_methods},
    {0, NULL},
};

PyType_Spec ctpy_step_spec = {
    .name = "codetimer.MeasuredStep",
    .basicsize = sizeof(step_object),
    .flags = CTPY_UNDERWAY_FLAGS,
    .slots = step_slots,
};

/* ---- async generators ---- */

static PyObject *make_next(PyObject *object) {
    ctpy_underway *call = (ctpy_underway *)object;
    const PyAsyncMethods *methods = Py_TYPE(call->inner)->tp_as_async;
    PyObject *inner = methods != NULL && methods->am_anext != NULL
                          ? methods->am_anext(call->inner)
                          : ctpy_call_method(call->inner, "__anext__", NULL, 0);
    return ctpy_step_new(call, inner, 1, CTPY_SUSPENDED);
}

/* A value can be sent only to a generator that has started. */
static PyObject *make_asend(PyObject *object, PyObject *value) {
    ctpy_underway *call = (ctpy_underway *)object;
    PyObject *inner = ctpy_call_method(call->inner, "asend", &value, 1);
    return ctpy_step_new(call, inner, value == Py_None, CTPY_SUSPENDED);
}

static PyObject *make_athrow(PyObject *object, PyObject *const *args, Py_ssize_t count) {
    ctpy_underway *call = (ctpy_underway *)object;
    return ctpy_step_new(call, ctpy_call_method(call->inner, "athrow", args, count), 0, CTPY_SUSPENDED);
}

static PyObject *make_aclose(PyObject *object, PyObject *ignored) {
    (void)ignored;
    ctpy_underway *call = (ctpy_underway *)object;
    return ctpy_step_new(call, ctpy_call_method(call->inner, "aclose", NULL, 0), 0, CT_CANCELLED);
}

static PyMethodDef methods[] = {
    {"asend", make_asend, METH_O, NULL},
    {"athrow", CTPY_WITH_KEYWORDS(make_athrow), METH_FASTCALL, NULL},
    {"aclose", make_aclose, METH_NOARGS, NULL},
    {"__reduce_ex__", CTPY_WITH_KEYWORDS(ctpy_underway_reduce), METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ctpy_underway, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    CTPY_UNDERWAY_SLOTS,
    {Py_am_aiter, CTPY_SLOT(PyObject_SelfIter)},
    {Py_am_anext, CTPY_SLOT(make_next)},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, NULL},
};

PyType_Spec ctpy_async_generator_spec = {
    .name = "codetimer.MeasuredAsyncGenerator",
    .basicsize = sizeof(ctpy_underway),
    .flags = CTPY_UNDERWAY_FLAGS,
    .slots = slots,
};
