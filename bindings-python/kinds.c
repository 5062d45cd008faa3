/* SPDX-License-Identifier: MIT
 *
 * kinds.c: things that hold functions and bind or call them in their own way: static and class methods, properties,
 * cached properties, partials and the like.
 *
 * Such a thing is not wrapped, because then it would no longer be one: it is built again, as of its own type and with
 * all its attributes, around measured functions. A subclass may have a constructor that wants other arguments and does
 * other things; so that of the built-in type makes it, and what the subclass keeps is copied. If none of its functions
 * had to be replaced, it is returned as it is. Only a singledispatchmethod gets a stand-in that binds as it does, since
 * what it will call is not known before the call.
 */
#include "measured.h"

typedef struct part {
    const char *attribute; /* in which it holds the function */
    const char *label;     /* what the member of that function ends in */
} part;

typedef struct kind {
    PyTypeObject *type;    /* a built-in type, or */
    const char *functools; /* the name of one in functools */
    part parts[3];
    PyObject *(*build)(PyTypeObject *base, PyObject *old, PyObject *const *functions); /* NULL: gets a stand-in */
} kind;

/* ---- building again ---- */

/* What "old" has in its dict and "made" has not: all that was set on it by hand. */
static int inherit_dict(PyObject *made, PyObject *old) {
    PyObject *from = PyObject_GetAttrString(old, "__dict__"), *to = NULL;
    if (from != NULL) to = PyObject_GetAttrString(made, "__dict__");
    int failed = to == NULL || !PyDict_Check(from) || !PyDict_Check(to) ? -1 : PyDict_Merge(to, from, 0);
    Py_XDECREF(from);
    Py_XDECREF(to);
    if (!failed || (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_AttributeError))) return failed;
    PyErr_Clear(); /* no dict: nothing was set */
    return 0;
}

/* Drops what is half made. What that raises, or clears (as 3.13 does where memory is short), is not what failed. */
static PyObject *give_up(PyObject *made) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    Py_DECREF(made);
    PyErr_Restore(type, value, traceback);
    return NULL;
}

/* Slots of the classes between the type of "old" and "base". */
static int inherit_slots(PyObject *made, PyObject *old, PyTypeObject *base) {
    PyObject *mro = Py_TYPE(old)->tp_mro;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro) && PyTuple_GET_ITEM(mro, i) != (PyObject *)base; i++) {
        PyObject *name, *slot;
        Py_ssize_t position = 0;
        while (PyDict_Next(((PyTypeObject *)PyTuple_GET_ITEM(mro, i))->tp_dict, &position, &name, &slot)) {
            if (!Py_IS_TYPE(slot, &PyMemberDescr_Type)) continue;
            PyObject *value = Py_TYPE(slot)->tp_descr_get(slot, old, (PyObject *)Py_TYPE(old));
            int failed = value != NULL ? Py_TYPE(slot)->tp_descr_set(slot, made, value) : ctpy_forgive();
            Py_XDECREF(value);
            if (failed) return -1;
        }
    }
    return 0;
}

/* Steals "made". */
static PyObject *with_state(PyObject *made, PyObject *old, PyTypeObject *base) {
    if (made == NULL) return NULL;
    return inherit_dict(made, old) < 0 || inherit_slots(made, old, base) < 0 ? give_up(made) : made;
}

/* An object of the type of "old", made by the constructor of "base" alone. Steals "args". */
static PyObject *construct(PyTypeObject *base, PyObject *old, PyObject *args, PyObject *keywords) {
    PyObject *made = args != NULL ? base->tp_new(Py_TYPE(old), args, keywords) : NULL;
    int wants = base->tp_init != PyBaseObject_Type.tp_init;
    if (made != NULL && wants && base->tp_init(made, args, keywords) < 0) made = give_up(made);
    Py_XDECREF(args);
    return with_state(made, old, base);
}

static PyObject *build_method(PyTypeObject *base, PyObject *old, PyObject *const *functions) {
    return construct(base, old, PyTuple_Pack(1, functions[0]), NULL);
}

/* A text that comes from the getter goes on coming from it. New; NULL with an exception. */
static PyObject *own_doc(PyObject *property, PyObject *fget) {
    PyObject *doc = PyObject_GetAttrString(property, "__doc__");
    PyObject *theirs = doc != NULL && fget != NULL ? PyObject_GetAttrString(fget, "__doc__") : NULL;
    if (ctpy_forgive() < 0) Py_CLEAR(doc);
    if (PyErr_Occurred()) return NULL;
    if (theirs != NULL && theirs == doc) Py_SETREF(doc, Py_NewRef(Py_None));
    Py_XDECREF(theirs);
    return doc != NULL ? doc : Py_NewRef(Py_None);
}

static PyObject *build_property(PyTypeObject *base, PyObject *old, PyObject *const *functions) {
    PyObject *arguments[3], *doc = own_doc(old, functions[0]);
    if (doc == NULL) return NULL;
    for (size_t i = 0; i < 3; i++) arguments[i] = functions[i] != NULL ? functions[i] : Py_None;
    return construct(base, old, Py_BuildValue("OOON", arguments[0], arguments[1], arguments[2], doc), NULL);
}

/* The positional arguments of a partial, after the function. */
static PyObject *partial_arguments(PyObject *old, PyObject *function) {
    PyObject *args = PyObject_GetAttrString(old, "args");
    PyObject *first = args != NULL ? PyTuple_Pack(1, function) : NULL;
    PyObject *all = first != NULL ? PySequence_Concat(first, args) : NULL;
    Py_XDECREF(args);
    Py_XDECREF(first);
    return all;
}

static PyObject *build_partial(PyTypeObject *base, PyObject *old, PyObject *const *functions) {
    PyObject *keywords = PyObject_GetAttrString(old, "keywords");
    PyObject *made = keywords != NULL ? construct(base, old, partial_arguments(old, functions[0]), keywords) : NULL;
    Py_XDECREF(keywords);
    return made;
}

/* Objects of Python classes that keep everything in their dict: a copy with another function. */
static PyObject *build_copy(PyTypeObject *base, PyObject *old, PyObject *const *functions) {
    (void)base;
    PyObject *made = construct(&PyBaseObject_Type, old, PyTuple_New(0), NULL);
    return made != NULL && PyObject_SetAttrString(made, "func", functions[0]) < 0 ? give_up(made) : made;
}

/* ---- which kind ---- */

static const kind kinds[] = {
    {&PyStaticMethod_Type, NULL, {{"__func__", ""}}, build_method},
    {&PyClassMethod_Type, NULL, {{"__func__", ""}}, build_method},
    {&PyProperty_Type, NULL, {{"fget", ""}, {"fset", ".setter"}, {"fdel", ".deleter"}}, build_property},
    {NULL, "partial", {{"func", ""}}, build_partial},
    {NULL, "partialmethod", {{"func", ""}}, build_copy},
    {NULL, "cached_property", {{"func", ""}}, build_copy},
    {NULL, "singledispatchmethod", {{"func", ""}}, NULL},
};

/* New; NULL, without an exception too, if there is none or nobody has imported functools. */
static PyTypeObject *get_functools(const char *name) {
    PyObject *text = PyUnicode_FromString("functools");
    PyObject *functools = text != NULL ? PyImport_GetModule(text) : NULL;
    PyObject *type = functools != NULL ? PyObject_GetAttrString(functools, name) : NULL;
    Py_XDECREF(text);
    Py_XDECREF(functools);
    if (type != NULL && !PyType_Check(type)) Py_CLEAR(type);
    return (PyTypeObject *)type;
}

int ctpy_is_functools(PyObject *object, const char *name) {
    PyTypeObject *type = get_functools(name);
    int is = type != NULL && PyObject_TypeCheck(object, type);
    Py_XDECREF((PyObject *)type);
    return ctpy_forgive() < 0 ? -1 : is;
}

/* *found: NULL for what is of none. */
static int find_kind(PyObject *object, const kind **found) {
    *found = NULL;
    if (PyFunction_Check(object) || PyType_Check(object)) return 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        PyTypeObject *type = kinds[i].type;
        int is = type != NULL ? PyObject_TypeCheck(object, type) : ctpy_is_functools(object, kinds[i].functools);
        if (is) *found = &kinds[i];
        if (is) return is < 0 ? -1 : 0;
    }
    return 0;
}

/* *function: NULL where the thing has none of this part. */
static int get_part(PyObject *object, const part *which, PyObject **function) {
    *function = NULL;
    if (which->attribute == NULL) return 0;
    *function = PyObject_GetAttrString(object, which->attribute);
    if (*function == NULL) return -1;
    if (*function == Py_None) Py_CLEAR(*function);
    return 0;
}

/* ---- measuring the parts ---- */

/* The labels for one part; a name that was found for the whole thing goes for all of them. */
static ctpy_labels label_part(const ctpy_labels *labels, const part *which) {
    ctpy_labels labelled = *labels;
    if (which->label[0] != '\0') labelled.part = which->label;
    return labelled;
}

/* Replaces functions[i] by what stands in for it. Returns how many had to be, or -1. */
static int measure_parts(ctpy_state *state, const kind *of, const ctpy_labels *labels, PyObject **functions) {
    int replaced = 0;
    for (size_t i = 0; i < 3; i++) {
        if (functions[i] == NULL) continue;
        ctpy_labels labelled = label_part(labels, &of->parts[i]);
        PyObject *measured = ctpy_wrap(state, functions[i], &labelled);
        if (measured == NULL) return -1;
        replaced += measured != functions[i];
        Py_SETREF(functions[i], measured);
    }
    return replaced;
}

static PyObject *build_again(const kind *of, PyObject *object, PyObject *const *functions) {
    if (of->type != NULL) return of->build(of->type, object, functions);
    PyTypeObject *base = get_functools(of->functools);
    PyObject *made = base != NULL ? of->build(base, object, functions) : NULL;
    if (base == NULL && !PyErr_Occurred()) made = Py_NewRef(object); /* functools has just been taken away */
    Py_XDECREF((PyObject *)base);
    return made;
}

static int build(ctpy_state *state, const kind *of, PyObject *object, const ctpy_labels *labels, PyObject **functions,
                 PyObject **rebuilt) {
    for (size_t i = 0; i < 3; i++)
        if (get_part(object, &of->parts[i], &functions[i]) < 0) return -1;
    int replaced = measure_parts(state, of, labels, functions);
    if (replaced < 0) return -1;
    *rebuilt = replaced ? build_again(of, object, functions) : Py_NewRef(object);
    return *rebuilt != NULL ? 0 : -1;
}

/* A stand-in that binds as the thing does, named after the function in it. */
static int stand_in(ctpy_state *state, const kind *of, PyObject *object, const ctpy_labels *labels, PyObject **made) {
    PyObject *function, *member = NULL;
    ct_counter *counter = NULL;
    if (get_part(object, &of->parts[0], &function) < 0) return -1;
    const int suspends = function != NULL ? ctpy_suspends(function) : 0;
    if (suspends >= 0) member = ctpy_name_member(function != NULL ? function : object, labels);
    Py_XDECREF(function);
    int refused = member != NULL ? ctpy_open_counter(state, labels->category, member, labels->help, &counter) : -1;
    Py_XDECREF(member);
    if (refused < 0) return -1;
    *made = refused ? Py_NewRef(object) : ctpy_measured_new(state, object, counter, suspends);
    return *made != NULL ? 0 : -1;
}

/* A partial of a class is called as a whole: the class in it stays what it is. */
static int is_partial_of_class(const kind *of, PyObject *object) {
    if (of->build != build_partial) return 0;
    PyObject *function;
    if (get_part(object, &of->parts[0], &function) < 0) return -1;
    int is = function != NULL && PyType_Check(function);
    Py_XDECREF(function);
    return is;
}

int ctpy_rebuild(ctpy_state *state, PyObject *object, const ctpy_labels *labels, PyObject **rebuilt) {
    const kind *of;
    *rebuilt = NULL;
    if (find_kind(object, &of) < 0) return -1;
    if (of == NULL) return 0;
    int whole = is_partial_of_class(of, object);
    if (whole) return whole < 0 ? -1 : 0;
    if (of->build == NULL) return stand_in(state, of, object, labels, rebuilt);
    PyObject *functions[3] = {NULL, NULL, NULL};
    int failed = build(state, of, object, labels, functions, rebuilt);
    for (size_t i = 0; i < 3; i++) Py_XDECREF(functions[i]);
    return failed;
}

/* ---- looking inside ---- */

int ctpy_is_method_like(PyObject *object) {
    if (PyFunction_Check(object)) return 1;
    int cached = ctpy_is_functools(object, "_lru_cache_wrapper");
    if (cached) return cached;
    const kind *of;
    if (find_kind(object, &of) < 0) return -1;
    return of != NULL && of->build != build_partial;
}

int ctpy_list_functions(PyObject *object, PyObject *list) {
    const kind *of;
    if (find_kind(object, &of) < 0) return -1;
    if (of == NULL) return PyList_Append(list, object);
    for (size_t i = 0; i < 3; i++) {
        PyObject *function;
        if (get_part(object, &of->parts[i], &function) < 0) return -1;
        int failed = function != NULL ? ctpy_list_functions(function, list) : 0;
        Py_XDECREF(function);
        if (failed) return -1;
    }
    return 0;
}
