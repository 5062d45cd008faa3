/* SPDX-License-Identifier: MIT
 *
 * The floor of bench_instrument.py: the least that any tool of sys.monitoring can do that times a function. A callback
 * at its start and one at its return, each of which reads the clock, and keeps nothing. They are called in the way that
 * costs least (vectorcall of an object, without the checks of a built-in function).
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <structmember.h>

#include "platform/ticks.h"

typedef struct floor_object {
    PyObject_HEAD vectorcallfunc vectorcall;
    uint64_t ticks; /* so that the reading is not for nothing */
} floor_object;

static PyObject *read_clock(PyObject *callable, PyObject *const *args, size_t count, PyObject *names) {
    (void)args, (void)count, (void)names;
    ((floor_object *)callable)->ticks = ct__ticks();
    return Py_NewRef(Py_None);
}

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    (void)args, (void)kwargs;
    floor_object *self = (floor_object *)type->tp_alloc(type, 0);
    if (self != NULL) self->vectorcall = read_clock;
    return (PyObject *)self;
}

static void drop(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(floor_object, vectorcall), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, make},
    {Py_tp_dealloc, drop},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, members},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "bench_monitoring_floor.Callback",
    .basicsize = sizeof(floor_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "bench_monitoring_floor", .m_size = 0};

PyMODINIT_FUNC PyInit_bench_monitoring_floor(void);
PyMODINIT_FUNC PyInit_bench_monitoring_floor(void) {
    PyObject *module = PyModule_Create(&definition), *type = PyType_FromSpec(&spec);
    if (module == NULL || type == NULL || PyModule_AddObjectRef(module, "Callback", type) < 0) return NULL;
    Py_DECREF(type);
    return module;
}
