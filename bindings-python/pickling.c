/* SPDX-License-Identifier: MIT
 *
 * pickling.c: how a measured object travels: as the name under which it is found, else as what is in it.
 */
#include "measured.h"

/* Names that pickle looks up again find this object, not the wrapped one. -1 for an exception. */
static int is_found_by_name(PyObject *wrapped) {
    if (PyFunction_Check(wrapped)) return 1;
    PyObject *inner = PyObject_GetAttrString(wrapped, "__wrapped__");
    Py_XDECREF(inner);
    return ctpy_forgive() < 0 ? -1 : inner != NULL;
}

/* Where it does not measure it is not found by name either: what travels is the wrapped object. */
static PyObject *reduce_passing(PyObject *object) {
    PyObject *module = PyImport_ImportModule("codetimer._codetimer");
    PyObject *same = module != NULL ? PyObject_GetAttrString(module, "_standin_wrapped") : NULL;
    PyObject *reduced = same != NULL ? Py_BuildValue("N(O)", same, ctpy_measured_wrapped(object)) : NULL;
    Py_XDECREF(module);
    return reduced;
}

/* Anything else travels as itself and is measured again, under the same key, where it arrives. */
static PyObject *reduce_to_wrapped(PyObject *object) {
    PyObject *module = PyImport_ImportModule("codetimer._codetimer");
    PyObject *again = module != NULL ? PyObject_GetAttrString(module, "_measured_again") : NULL;
    PyObject *key = again != NULL ? ctpy_counter_key(ctpy_measured_counter(object)) : NULL;
    PyObject *reduced = key != NULL ? Py_BuildValue("O(OO)", again, ctpy_measured_wrapped(object), key) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(again);
    Py_XDECREF(key);
    return reduced;
}

PyObject *ctpy_reduce_measured(PyObject *object, PyObject *protocol) {
    (void)protocol;
    if (ctpy_measured_passes(object)) return reduce_passing(object);
    int found = is_found_by_name(ctpy_measured_wrapped(object));
    if (found < 0) return NULL;
    return found ? PyObject_GetAttrString(ctpy_measured_wrapped(object), "__qualname__") : reduce_to_wrapped(object);
}
