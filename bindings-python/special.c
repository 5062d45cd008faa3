/* SPDX-License-Identifier: MIT
 *
 * special.c: the special methods that Python looks up on the type of a measured object, and not on the object.
 *
 * Each is handed on to the wrapped object. A stand-in has just those that the type of the wrapped object has, so that
 * whoever asks the type (collections.abc, "with", iter) gets the answer of the bare object. So there is a type for each
 * set of them, made when it is first needed; comparison and hash every object has. What a class gets after its object
 * was measured is not followed.
 */
#include "measured.h"

static PyObject *wrapped_in(PyObject *object) { return ctpy_measured_wrapped(object); }

/* ---- what every stand-in of an object has ---- */

/* As the wrapped object compares; and it is equal to its stand-in, and that to another stand-in of it. */
PyObject *ctpy_compare_wrapped(PyObject *object, PyObject *other, int operation) {
    PyObject *wrapped = wrapped_in(object);
    if (!PyMethod_Check(other) && ctpy_is_measured(NULL, other)) other = wrapped_in(other);
    richcmpfunc compare = Py_TYPE(wrapped)->tp_richcompare;
    PyObject *answer = compare != NULL ? compare(wrapped, other, operation) : Py_NewRef(Py_NotImplemented);
    if (answer != Py_NotImplemented || wrapped != other || (operation != Py_EQ && operation != Py_NE)) return answer;
    Py_DECREF(answer);
    return PyBool_FromLong(operation == Py_EQ);
}

/* A function that somebody keeps in a list or dict is found there by its stand-in, and the other way round. */
PyObject *ctpy_compare_function(PyObject *object, PyObject *other, int operation) {
    return ctpy_compare_wrapped(object, other, operation);
}

Py_hash_t ctpy_hash_wrapped(PyObject *object) { return PyObject_Hash(wrapped_in(object)); }

/* ---- what it has where the wrapped object has it ---- */

static int is_true(PyObject *object) { return PyObject_IsTrue(wrapped_in(object)); }

static Py_ssize_t get_length(PyObject *object) { return PyObject_Size(wrapped_in(object)); }

static PyObject *get_item(PyObject *object, PyObject *key) { return PyObject_GetItem(wrapped_in(object), key); }

static PyObject *get_item_at(PyObject *object, Py_ssize_t i) { return PySequence_GetItem(wrapped_in(object), i); }

/* Also deletes: "value" is NULL then. */
static int set_item(PyObject *object, PyObject *key, PyObject *value) {
    PyObject *wrapped = wrapped_in(object);
    return value != NULL ? PyObject_SetItem(wrapped, key, value) : PyObject_DelItem(wrapped, key);
}

static int contains(PyObject *object, PyObject *item) { return PySequence_Contains(wrapped_in(object), item); }

static PyObject *iterate(PyObject *object) { return PyObject_GetIter(wrapped_in(object)); }

/* What "with" calls: the method of the type. What enters as itself enters as its stand-in. */
static PyObject *enter(PyObject *object, PyObject *ignored) {
    (void)ignored;
    PyObject *wrapped = wrapped_in(object), *entered = PyObject_CallMethod(wrapped, "__enter__", NULL);
    if (entered == wrapped) Py_SETREF(entered, Py_NewRef(object));
    return entered;
}

static PyObject *leave(PyObject *object, PyObject *args) {
    PyObject *exit = PyObject_GetAttrString(wrapped_in(object), "__exit__");
    PyObject *answer = exit != NULL ? PyObject_CallObject(exit, args) : NULL;
    Py_XDECREF(exit);
    return answer;
}

static PyMethodDef context_methods[] = {
    {"__enter__", enter, METH_NOARGS, NULL},
    {"__exit__", leave, METH_VARARGS, NULL},
};

/* ---- which of them ---- */

enum { BOOL = 1, LENGTH = 2, KEYS = 4, INDEXES = 8, ASSIGN = 16, CONTAINS = 32, ITERATE = 64, NO_HASH = 128 };
enum { CONTEXT = 256 };

/* Slots of one feature have its bit. */
static const struct {
    int feature;
    PyType_Slot slot;
} slots[] = {
    {BOOL, {Py_nb_bool, CTPY_SLOT(is_true)}},         {LENGTH, {Py_mp_length, CTPY_SLOT(get_length)}},
    {LENGTH, {Py_sq_length, CTPY_SLOT(get_length)}},  {KEYS, {Py_mp_subscript, CTPY_SLOT(get_item)}},
    {INDEXES, {Py_sq_item, CTPY_SLOT(get_item_at)}},  {ASSIGN, {Py_mp_ass_subscript, CTPY_SLOT(set_item)}},
    {CONTAINS, {Py_sq_contains, CTPY_SLOT(contains)}}, {ITERATE, {Py_tp_iter, CTPY_SLOT(iterate)}},
    {NO_HASH, {Py_tp_hash, CTPY_SLOT(PyObject_HashNotImplemented)}},
};

/* Whether a type has an attribute. -1 for an exception. */
static int has(PyTypeObject *type, const char *name) {
    PyObject *found = PyObject_GetAttrString((PyObject *)type, name);
    Py_XDECREF(found);
    return ctpy_forgive() < 0 ? -1 : found != NULL;
}

/* -1 for an exception. */
static int find_features(PyTypeObject *type) {
    const PyNumberMethods *number = type->tp_as_number;
    const PySequenceMethods *sequence = type->tp_as_sequence;
    const PyMappingMethods *mapping = type->tp_as_mapping;
    int features = 0;
    if (number != NULL && number->nb_bool != NULL) features |= BOOL;
    if (sequence != NULL && sequence->sq_length != NULL) features |= LENGTH;
    if (sequence != NULL && sequence->sq_item != NULL) features |= INDEXES;
    if (sequence != NULL && sequence->sq_contains != NULL) features |= CONTAINS;
    if (mapping != NULL && mapping->mp_length != NULL) features |= LENGTH;
    if (mapping != NULL && mapping->mp_subscript != NULL) features |= KEYS;
    if (mapping != NULL && mapping->mp_ass_subscript != NULL) features |= ASSIGN;
    if (type->tp_iter != NULL) features |= ITERATE;
    if (type->tp_hash == PyObject_HashNotImplemented) features |= NO_HASH;
    int enters = has(type, "__enter__"), leaves = enters > 0 ? has(type, "__exit__") : enters;
    return leaves < 0 ? -1 : leaves > 0 ? features | CONTEXT : features;
}

/* ---- the types ---- */

/* Straight into the new type, which is immutable for everybody else. */
static int add_context(PyTypeObject *type) {
    for (size_t i = 0; i < sizeof context_methods / sizeof *context_methods; i++) {
        PyObject *method = PyDescr_NewMethod(type, &context_methods[i]);
        int failed = method == NULL || PyDict_SetItemString(type->tp_dict, context_methods[i].ml_name, method) < 0;
        Py_XDECREF(method);
        if (failed) return -1;
    }
    PyType_Modified(type);
    return 0;
}

/* "base" and the slots of the features; where both have one (the hash), the features' holds. */
static PyObject *make_type(PyObject *module, const PyType_Spec *base, int features) {
    enum { MOST = 32 };
    PyType_Slot all[MOST];
    PyType_Spec spec = *base;
    size_t count = 0;
    for (const PyType_Slot *slot = base->slots; slot->slot != 0 && count < MOST - 10; slot++)
        if (slot->slot != Py_tp_hash || !(features & NO_HASH)) all[count++] = *slot;
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        if (features & slots[i].feature) all[count++] = slots[i].slot;
    all[count] = (PyType_Slot){0, NULL};
    spec.slots = all;
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    if (type != NULL && (features & CONTEXT) && add_context((PyTypeObject *)type) < 0) Py_CLEAR(type);
    return type;
}

PyTypeObject *ctpy_special_type(ctpy_state *state, int which, const PyType_Spec *spec, PyObject *wrapped) {
    PyTypeObject *plain = state->measured_types[which];
    if (PyMethod_Check(wrapped) || PyCFunction_Check(wrapped)) return plain;
    int features = find_features(Py_TYPE(wrapped));
    if (features <= 0) return features < 0 ? NULL : plain;
    if (state->special_types == NULL) state->special_types = PyDict_New();
    PyObject *key = state->special_types != NULL ? PyLong_FromLong(features * CTPY_MEASURED_TYPES + which) : NULL;
    PyObject *type = key != NULL ? PyDict_GetItemWithError(state->special_types, key) : NULL;
    if (type == NULL && key != NULL && !PyErr_Occurred()) {
        PyObject *made = make_type(PyType_GetModule(plain), spec, features);
        if (made != NULL && PyDict_SetItem(state->special_types, key, made) == 0) type = made;
        Py_XDECREF(made); /* the dict has it */
    }
    Py_XDECREF(key);
    return (PyTypeObject *)type;
}

/* ---- in a class ---- */

/* The making of a class turns functions of these names into static and class methods, but only true functions. */
static PyTypeObject *find_implied(PyObject *name) {
    if (!PyUnicode_Check(name)) return NULL;
    if (PyUnicode_CompareWithASCIIString(name, "__new__") == 0) return &PyStaticMethod_Type;
    int is_class_method = PyUnicode_CompareWithASCIIString(name, "__init_subclass__") == 0 ||
                          PyUnicode_CompareWithASCIIString(name, "__class_getitem__") == 0;
    return is_class_method ? &PyClassMethod_Type : NULL;
}

PyObject *ctpy_set_function_name(PyObject *object, PyObject *args) {
    PyObject *owner, *name;
    if (!PyArg_ParseTuple(args, "OO:__set_name__", &owner, &name)) return NULL;
    PyTypeObject *implied = PyFunction_Check(ctpy_measured_wrapped(object)) ? find_implied(name) : NULL;
    if (implied == NULL || !PyType_Check(owner)) return Py_NewRef(Py_None);
    PyObject *method = PyObject_CallOneArg((PyObject *)implied, object);
    int failed = method == NULL || PyType_Type.tp_setattro(owner, name, method) < 0;
    Py_XDECREF(method);
    return failed ? NULL : Py_NewRef(Py_None);
}

/* A callable object may want to know its name. */
PyObject *ctpy_set_object_name(PyObject *object, PyObject *args) {
    PyObject *wrapped = ctpy_measured_wrapped(object);
    PyObject *own = PyObject_GetAttrString((PyObject *)Py_TYPE(wrapped), "__set_name__");
    if (own == NULL && !PyErr_ExceptionMatches(PyExc_AttributeError)) return NULL;
    PyErr_Clear();
    if (own == NULL) return Py_NewRef(Py_None);
    Py_SETREF(own, PyObject_GetAttrString(wrapped, "__set_name__"));
    PyObject *done = own != NULL ? PyObject_CallObject(own, args) : NULL;
    Py_XDECREF(own);
    return done;
}
