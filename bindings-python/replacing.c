/* SPDX-License-Identifier: MIT
 *
 * replacing.c: what codetimer.instrumenting is made of, where it puts stand-ins in place of functions.
 *
 * What it must know to take a stand-in away again hangs on the stand-in itself (its note), where the collector sees it:
 * a list anywhere else would keep alive the functions that are in it, and with them their modules and classes.
 */
#include "measured.h"

/* The stand-in that "object" is; NULL with TypeError. */
static PyObject *as_standin(PyObject *object) {
    if (ctpy_is_measured(NULL, object) && !PyMethod_Check(object)) return object;
    (void)ctpy_refuse(PyExc_TypeError, "it must be a measured function", object);
    return NULL;
}

/* _standin_wrapped(object): what it stands in for, or itself. */
PyObject *ctpy_standin_wrapped(PyObject *module, PyObject *object) {
    (void)module;
    int is = ctpy_is_measured(NULL, object) && !PyMethod_Check(object);
    return Py_NewRef(is ? ctpy_measured_wrapped(object) : object);
}

/* _standin_note(stand-in[, note]): its note, or None; sets it. */
PyObject *ctpy_standin_note(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *object, *note = NULL;
    if (!PyArg_ParseTuple(args, "O|O:_standin_note", &object, &note) || as_standin(object) == NULL) return NULL;
    PyObject **slot = ctpy_measured_note(object);
    if (note != NULL) Py_XSETREF(*slot, Py_NewRef(note));
    return Py_NewRef(*slot != NULL ? *slot : Py_None);
}

/* _standin_pass(stand-in[, pass]): whether it is a bare call; sets it. */
PyObject *ctpy_standin_pass(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *object;
    int pass = -1;
    if (!PyArg_ParseTuple(args, "O|p:_standin_pass", &object, &pass) || as_standin(object) == NULL) return NULL;
    if (pass >= 0) ctpy_measured_pass(object, pass);
    return PyBool_FromLong(ctpy_measured_passes(object));
}

/* _member(object): the member that a callable is, or what the members of a class begin with. */
PyObject *ctpy_member(PyObject *module, PyObject *object) {
    (void)module;
    if (!PyType_Check(object)) {
        const ctpy_labels labels = {.part = ""};
        return ctpy_name_member(object, &labels);
    }
    PyObject *from = ctpy_class_module((PyTypeObject *)object);
    PyObject *qualname = from != NULL || !PyErr_Occurred() ? ctpy_class_qualname((PyTypeObject *)object) : NULL;
    PyObject *member = qualname != NULL ? ctpy_name_class(from, qualname) : NULL;
    Py_XDECREF(from);
    Py_XDECREF(qualname);
    return member;
}

/* ---- after a call ---- */

/* The caller is not told of a failure; Ctrl-C arrives at the next safe point. */
static void tell(PyObject *callback, PyObject *args, PyObject *result) {
    PyObject *told = PyObject_CallFunctionObjArgs(callback, args, result, NULL);
    if (told == NULL && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
    PyErr_Clear();
    Py_XDECREF(told);
}

static PyObject *call_and_tell(PyObject *self, PyObject *args, PyObject *kwargs) {
    PyObject *result = PyObject_Call(PyTuple_GET_ITEM(self, 0), args, kwargs);
    if (result != NULL) tell(PyTuple_GET_ITEM(self, 1), args, result);
    return result;
}

/* _and_then(function, callback): calls function, then callback(args, result) unless that raised. It makes no frame, so
 * that tracebacks that pass through are what they were. */
PyObject *ctpy_and_then(PyObject *module, PyObject *args) {
    static PyMethodDef definition = {"_and_then", CTPY_WITH_KEYWORDS(call_and_tell), METH_VARARGS | METH_KEYWORDS,
                                     NULL};
    (void)module;
    if (PyTuple_GET_SIZE(args) == 2) return PyCFunction_New(&definition, args);
    (void)ctpy_refuse(PyExc_TypeError, "it must be given a function and a callback", args);
    return NULL;
}
