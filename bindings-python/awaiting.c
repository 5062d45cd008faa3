/* SPDX-License-Identifier: MIT
 *
 * awaiting.c: the stand-ins of coroutines and generators.
 *
 * Whoever drives them finds what the bare ones have: a task sends, "await" and "yield from" iterate, and anything may
 * throw or close. A coroutine can be iterated by the interpreter alone, so the two methods for that are taken out of
 * what Python sees of its type: nothing takes it for an iterator.
 */
#include <stddef.h>

#include "underway.h"

#include <structmember.h> /* expects Python.h before it */

/* ---- coroutines ---- */

/* "await" of one that somebody awaits already would steal what that is waiting for. */
static PyObject *await_coroutine(PyObject *object) {
    ctpy_underway *call = (ctpy_underway *)object;
    if (call->stage == CTPY_CREATED) return Py_NewRef(object);
    PyObject *awaited = PyObject_GetAttrString(call->inner, "cr_await");
    if (awaited == NULL) return NULL;
    Py_DECREF(awaited);
    if (awaited == Py_None) return Py_NewRef(object);
    PyErr_SetString(PyExc_RuntimeError, "coroutine is being awaited already");
    return NULL;
}

/* What a call of __await__ gets: with "yield from", a generator may run it. */
static PyObject *make_await(PyObject *object, PyObject *ignored) {
    (void)ignored;
    ctpy_underway *call = (ctpy_underway *)object;
    return ctpy_step_new(call, ctpy_call_method(call->inner, "__await__", NULL, 0), 1, CT_RETURNED);
}

static int flags_of_caller(void) {
    PyFrameObject *frame = PyEval_GetFrame();
    PyCodeObject *code = frame != NULL ? PyFrame_GetCode(frame) : NULL;
    const int flags = code != NULL ? code->co_flags : 0;
    Py_XDECREF(code);
    return flags;
}

/* "yield from" in a generator that types.coroutine has made a coroutine; nobody else can iterate over it. */
static PyObject *iterate_coroutine(PyObject *object) {
    const int flags = flags_of_caller();
    if (flags & CO_ITERABLE_COROUTINE) return Py_NewRef(object);
    PyErr_SetString(PyExc_TypeError, flags & CO_GENERATOR ? "cannot 'yield from' a coroutine object in a non-coroutine "
                                                            "generator"
                                                          : "'coroutine' object is not iterable");
    return NULL;
}

static PyMethodDef coroutine_methods[] = {
    {"send", ctpy_underway_send_method, METH_O, NULL},
    {"throw", CTPY_WITH_KEYWORDS(ctpy_underway_throw), METH_FASTCALL, NULL},
    {"close", ctpy_underway_close, METH_NOARGS, NULL},
    {"__await__", make_await, METH_NOARGS | METH_COEXIST, NULL},
    {"__reduce_ex__", CTPY_WITH_KEYWORDS(ctpy_underway_reduce), METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ctpy_underway, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot coroutine_slots[] = {
    CTPY_UNDERWAY_SLOTS,
    {Py_am_await, CTPY_SLOT(await_coroutine)},
    {Py_am_send, CTPY_SLOT(ctpy_underway_send)},
    {Py_tp_iter, CTPY_SLOT(iterate_coroutine)},
    {Py_tp_iternext, CTPY_SLOT(ctpy_underway_next)},
    {Py_tp_methods, coroutine_methods},
    {Py_tp_members, members},
    {0, NULL},
};

PyType_Spec ctpy_coroutine_spec = {
    .name = "codetimer.MeasuredCoroutine",
    .basicsize = sizeof(ctpy_underway),
    .flags = CTPY_UNDERWAY_FLAGS,
    .slots = coroutine_slots,
};

/* ---- generators ---- */

static PyMethodDef generator_methods[] = {
    {"send", ctpy_underway_send_method, METH_O, NULL},
    {"throw", CTPY_WITH_KEYWORDS(ctpy_underway_throw), METH_FASTCALL, NULL},
    {"close", ctpy_underway_close, METH_NOARGS, NULL},
    {"__reduce_ex__", CTPY_WITH_KEYWORDS(ctpy_underway_reduce), METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot generator_slots[] = {
    CTPY_UNDERWAY_SLOTS,
    {Py_am_send, CTPY_SLOT(ctpy_underway_send)},
    {Py_tp_iter, CTPY_SLOT(PyObject_SelfIter)},
    {Py_tp_iternext, CTPY_SLOT(ctpy_underway_next)},
    {Py_tp_methods, generator_methods},
    {Py_tp_members, members},
    {0, NULL},
};

PyType_Spec ctpy_generator_spec = {
    .name = "codetimer.MeasuredGenerator",
    .basicsize = sizeof(ctpy_underway),
    .flags = CTPY_UNDERWAY_FLAGS,
    .slots = generator_slots,
};

/* A generator that types.coroutine has made a coroutine. */
static PyType_Slot generator_coroutine_slots[] = {
    CTPY_UNDERWAY_SLOTS,
    {Py_am_await, CTPY_SLOT(PyObject_SelfIter)},
    {Py_am_send, CTPY_SLOT(ctpy_underway_send)},
    {Py_tp_iter, CTPY_SLOT(PyObject_SelfIter)},
    {Py_tp_iternext, CTPY_SLOT(ctpy_underway_next)},
    {Py_tp_methods, generator_methods},
    {Py_tp_members, members},
    {0, NULL},
};

PyType_Spec ctpy_generator_coroutine_spec = {
    .name = "codetimer.MeasuredGeneratorCoroutine",
    .basicsize = sizeof(ctpy_underway),
    .flags = CTPY_UNDERWAY_FLAGS,
    .slots = generator_coroutine_slots,
};

/* ---- all types ---- */

/* The slots stay, so the interpreter goes on using them. */
static int hide(PyTypeObject *type, const char *name) {
    if (PyDict_DelItemString(type->tp_dict, name) < 0) return -1;
    PyType_Modified(type);
    return 0;
}

int ctpy_underway_add_types(PyObject *module, ctpy_state *state) {
    PyType_Spec *const specs[CTPY_UNDERWAY_TYPES] = {&ctpy_coroutine_spec, &ctpy_generator_spec,
                                                     &ctpy_generator_coroutine_spec, &ctpy_async_generator_spec,
                                                     &ctpy_step_spec};
    for (size_t i = 0; i < CTPY_UNDERWAY_TYPES; i++) {
        state->underway_types[i] = (PyTypeObject *)PyType_FromModuleAndSpec(module, specs[i], NULL);
        if (state->underway_types[i] == NULL) return -1;
    }
    if (hide(state->underway_types[CTPY_COROUTINE], "__iter__") < 0) return -1;
    if (hide(state->underway_types[CTPY_COROUTINE], "__next__") < 0) return -1;
    return hide(state->underway_types[CTPY_GENERATOR_COROUTINE], "__await__");
}
