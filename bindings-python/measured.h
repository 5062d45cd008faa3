/* SPDX-License-Identifier: MIT
 *
 * measured.h: the callable that stands in place of a measured function, and how things come to be measured.
 */
#ifndef CTPY_MEASURED_H
#define CTPY_MEASURED_H

#include "counting.h"

/* What the user said about a counter. All are str or NULL, borrowed. */
typedef struct ctpy_labels {
    PyObject *name, *category, *help;
    PyObject *otherwise; /* the member where neither "name" nor the object says one: a function in a class */
    const char *part;    /* ".setter", ".deleter" or "" after the name */
    int of_class;        /* they were said about the class: a method that has its own keeps them */
} ctpy_labels;

/* ---- measured.c: the types ---- */

/* They differ in how they bind as an attribute of a class: like a function; as the object they wrap does; not at all;
 * as that object does, and cannot be called but when bound. */
extern PyType_Spec ctpy_measured_function_spec;
extern PyType_Spec ctpy_measured_descriptor_spec;
extern PyType_Spec ctpy_measured_object_spec;
extern PyType_Spec ctpy_measured_attribute_spec;

/* Whether it is a stand-in of an object that is not a function, and what is in a stand-in (borrowed). */
int ctpy_is_measured_object(PyObject *object);
PyObject *ctpy_measured_wrapped(PyObject *object);

/* Whether it is such a stand-in, or one bound to an instance. */
int ctpy_is_measured(ctpy_state *state, PyObject *object);

ct_counter *ctpy_measured_counter(PyObject *object);

/* A measured stand-in for "wrapped"; owns "counter" (also on failure). "suspends": its calls return what runs later. */
PyObject *ctpy_measured_new(ctpy_state *state, PyObject *wrapped, ct_counter *counter, int suspends);

/* A stand-in that passes is a bare call, until it does so no longer; and a slot for an object of instrument's. */
void ctpy_measured_pass(PyObject *object, int pass);
int ctpy_measured_passes(PyObject *object);
PyObject **ctpy_measured_note(PyObject *object);

/* ---- pickling.c ---- */

/* Their methods __reduce__ and __reduce_ex__. */
PyObject *ctpy_reduce_measured(PyObject *object, PyObject *protocol);

/* ---- special.c ---- */

/* Their methods __set_name__: of what stands in for a function, for another object. */
PyObject *ctpy_set_function_name(PyObject *object, PyObject *args);
PyObject *ctpy_set_object_name(PyObject *object, PyObject *args);

/* Slots of every stand-in: of an object, of a function; of both. */
PyObject *ctpy_compare_wrapped(PyObject *object, PyObject *other, int operation);
PyObject *ctpy_compare_function(PyObject *object, PyObject *other, int operation);
Py_hash_t ctpy_hash_wrapped(PyObject *object);

/* The type for a stand-in of "wrapped": measured_types[which], made by "spec", or the same with the special methods
 * that "wrapped" has. Borrowed; NULL with an exception. */
PyTypeObject *ctpy_special_type(ctpy_state *state, int which, const PyType_Spec *spec, PyObject *wrapped);

/* ---- naming.c ---- */

/* The member that a callable is: a new str. */
PyObject *ctpy_name_member(PyObject *object, const ctpy_labels *labels);

/* "object.name" if it is a str, new; NULL without an exception otherwise, or NULL with one that ctpy_forgive leaves. */
PyObject *ctpy_get_str(PyObject *object, const char *name);

/* What the class itself has, whatever its metaclass answers: its qualified name, new; its module, new, or NULL (also
 * without an exception). And the member "module.qualname", where "module" may be NULL. */
PyObject *ctpy_class_qualname(PyTypeObject *type);
PyObject *ctpy_class_module(PyTypeObject *type);
PyObject *ctpy_name_class(PyObject *module, PyObject *qualname);

/* ---- wrap.c ---- */

PyObject *ctpy_measured(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ctpy_measured_again(PyObject *module, PyObject *args);

/* What stands in place of "object": the measured stand-in of a callable; a thing of the same kind around the stand-ins
 * of what it is made of; the same object if it is measured already or its counter was refused. New; NULL with
 * TypeError. */
PyObject *ctpy_wrap(ctpy_state *state, PyObject *object, const ctpy_labels *labels);

/* Whether a call of "object" only creates what runs later: a coroutine or generator. -1 for an exception. */
int ctpy_suspends(PyObject *object);

/* ---- kinds.c: what is taken apart and built again ---- */

/* *rebuilt: the same kind around measured parts, new; NULL where "object" is not of such a kind. 0, or -1. */
int ctpy_rebuild(ctpy_state *state, PyObject *object, const ctpy_labels *labels, PyObject **rebuilt);

/* Whether "object" is, in a class, a function or built around functions. -1 for an exception. */
int ctpy_is_method_like(PyObject *object);

/* Appends to a list the functions that "object" is built around, or itself. 0, or -1. */
int ctpy_list_functions(PyObject *object, PyObject *list);

/* Whether "object" is an instance of functools."name". -1 for an exception. */
int ctpy_is_functools(PyObject *object, const char *name);

/* ---- replacing.c: what codetimer.instrumenting is made of ---- */

PyObject *ctpy_standin_wrapped(PyObject *module, PyObject *object);
PyObject *ctpy_standin_note(PyObject *module, PyObject *args);
PyObject *ctpy_standin_pass(PyObject *module, PyObject *args);
PyObject *ctpy_member(PyObject *module, PyObject *object);
PyObject *ctpy_and_then(PyObject *module, PyObject *args);

/* ---- classes.c ---- */

/* Measures, in place, what the body of a class defines. 0, or -1 with an exception and nothing changed. */
int ctpy_measure_class(ctpy_state *state, PyTypeObject *type, const ctpy_labels *labels);

#endif
