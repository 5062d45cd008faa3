/* SPDX-License-Identifier: MIT
 *
 * The floor of bench_measured.py: the least that any wrapper of a Python function can do that times it. A callable
 * object that passes its call straight on between two plain readings of the clock, and keeps nothing. Whatever
 * codetimer.measured costs beyond this is its own.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <structmember.h>

#include "platform/ticks.h"

typedef struct floor_object {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject *wrapped;
    vectorcallfunc call; /* of the wrapped function */
    uint64_t ticks;      /* of the last call, so that the readings are not for nothing */
} floor_object;

static PyObject *pass_on(PyObject *callable, PyObject *const *args, size_t count, PyObject *names) {
    floor_object *self = (floor_object *)callable;
    uint64_t start = ct__ticks();
    PyObject *result = self->call(self->wrapped, args, count, names);
    self->ticks = ct__ticks() - start;
    return result;
}

/* Nothing at all around the call: the floor of a counter that is switched off. */
static PyObject *pass_silently(PyObject *callable, PyObject *const *args, size_t count, PyObject *names) {
    floor_object *self = (floor_object *)callable;
    return self->call(self->wrapped, args, count, names);
}

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    (void)kwargs;
    PyObject *wrapped;
    int silent = 0;
    if (!PyArg_ParseTuple(args, "O|p:Floor", &wrapped, &silent)) return NULL;
    vectorcallfunc call = PyVectorcall_Function(wrapped);
    if (call == NULL) return PyErr_Format(PyExc_TypeError, "%R has no vectorcall", wrapped);
    floor_object *self = (floor_object *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->vectorcall = silent ? pass_silently : pass_on;
    self->wrapped = Py_NewRef(wrapped);
    self->call = call;
    return (PyObject *)self;
}

static void drop(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_DECREF(((floor_object *)self)->wrapped);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *bind(PyObject *self, PyObject *instance, PyObject *type) {
    (void)type;
    return instance != NULL ? PyMethod_New(self, instance) : Py_NewRef(self);
}

static PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(floor_object, vectorcall), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, make},       {Py_tp_dealloc, drop},    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_descr_get, bind}, {Py_tp_members, members}, {0, NULL},
};

static PyType_Spec spec = {
    .name = "bench_floor.Floor",
    .basicsize = sizeof(floor_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "bench_floor", .m_size = 0};

PyMODINIT_FUNC PyInit_bench_floor(void);
PyMODINIT_FUNC PyInit_bench_floor(void) {
    PyObject *module = PyModule_Create(&definition), *type = PyType_FromSpec(&spec);
    if (module == NULL || type == NULL || PyModule_AddObjectRef(module, "Floor", type) < 0) return NULL;
    Py_DECREF(type);
    return module;
}
