/* SPDX-License-Identifier: MIT
 *
 * classes.c: measuring a class: in place, what its own body defines.
 *
 * Left alone are: what is inherited or nested; what a decorator or metaclass generated; a few methods that run inside
 * every attribute access or before there is an instance; and what is measured already. Everything is prepared before
 * the first attribute is replaced, so that an error leaves the class as it was. Attributes are set as type itself sets
 * them: what a metaclass makes of assignments was made when the class was.
 */
#include "measured.h"

/* How many decorators may be one around the other before the search for the function is given up. */
#define UNWRAP_MAX 64

typedef struct work {
    ctpy_state *state;
    PyTypeObject *type;
    const ctpy_labels *labels;
    PyObject *module; /* of the class: its own functions are from there */
    PyObject *within; /* "Class.": what their qualified names begin with */
    PyObject *prefix; /* "module.Class." */
    PyObject *seen;   /* {id of an object: its stand-in}: an alias stays one */
    PyObject *ready;  /* {name: stand-in} */
} work;

/* ---- what belongs to the body ---- */

static int is_excluded(PyObject *name) {
    static const char *const excluded[] = {"__getattribute__", "__setattr__",       "__delattr__",      "__del__",
                                           "__new__",          "__class_getitem__", "__init_subclass__"};
    for (size_t i = 0; i < sizeof excluded / sizeof *excluded; i++)
        if (PyUnicode_CompareWithASCIIString(name, excluded[i]) == 0) return 1;
    return 0;
}

static int begins_with(PyObject *text, const char *beginning) {
    PyObject *prefix = PyUnicode_FromString(beginning);
    int begins = prefix != NULL ? (int)PyUnicode_Tailmatch(text, prefix, 0, PY_SSIZE_T_MAX, -1) : -1;
    Py_XDECREF(prefix);
    return begins;
}

/* dict[name], borrowed; NULL, perhaps with an exception. */
static PyObject *get_item(PyObject *dict, const char *name) {
    PyObject *key = PyUnicode_FromString(name);
    PyObject *item = key != NULL ? PyDict_GetItemWithError(dict, key) : NULL;
    Py_XDECREF(key);
    return item;
}

/* Makers of methods compile them from text, and say so in the name of the file. That of dataclasses may be the name of
 * one's own file too: then a private name in a class that has fields decides. */
static int is_generated(const work *job, PyObject *function, PyObject *name) {
    PyObject *file = ((PyCodeObject *)PyFunction_GET_CODE(function))->co_filename;
    int generated = begins_with(file, "<attrs generated");
    if (generated || PyUnicode_CompareWithASCIIString(file, "<string>") != 0 || begins_with(name, "_") != 1)
        return generated;
    return get_item(job->type->tp_dict, "__dataclass_fields__") != NULL;
}

/* The end of the __wrapped__ chain, new; NULL with an exception. */
static PyObject *unwrap(PyObject *object) {
    Py_INCREF(object);
    for (int step = 0; step < UNWRAP_MAX; step++) {
        PyObject *inner = PyObject_GetAttrString(object, "__wrapped__");
        if (inner == NULL) break;
        Py_SETREF(object, inner);
    }
    if (ctpy_forgive() < 0) Py_CLEAR(object);
    return object;
}

/* Whether a function, below its decorators, was written in the module of the class. */
static int is_own_function(const work *job, PyObject *object, PyObject *name) {
    PyObject *function = unwrap(object);
    if (function == NULL) return -1;
    int own = 0;
    if (PyFunction_Check(function)) {
        PyObject *module = get_item(PyFunction_GET_GLOBALS(function), "__name__");
        own = module != NULL && PyUnicode_Check(module) && PyUnicode_Compare(module, job->module) == 0 &&
              !is_excluded(((PyFunctionObject *)function)->func_name) && !is_generated(job, function, name);
    }
    Py_DECREF(function);
    return PyErr_Occurred() ? -1 : own;
}

/* ---- one attribute ---- */

/* Whether a qualified name says which function of this class it is. */
static int is_of_class(const work *job, PyObject *qualname) {
    PyObject *lambda = PyUnicode_FromString("<lambda>");
    int of = lambda != NULL && PyUnicode_Tailmatch(qualname, lambda, 0, PY_SSIZE_T_MAX, 1) == 0 &&
             PyUnicode_Tailmatch(qualname, job->within, 0, PY_SSIZE_T_MAX, -1) == 1;
    Py_XDECREF(lambda);
    return of;
}

/* "module.Class.name" where the function's own name does not tell, else NULL. */
static PyObject *name_otherwise(const work *job, PyObject *function, PyObject *name) {
    PyObject *qualname = ctpy_get_str(function, "__qualname__");
    int tells = qualname != NULL && is_of_class(job, qualname);
    Py_XDECREF(qualname);
    return tells || PyErr_Occurred() ? NULL : PyUnicode_FromFormat("%U%U", job->prefix, name);
}

/* The stand-in, made or found; NULL with an exception. */
static PyObject *measure(const work *job, PyObject *object, PyObject *function, PyObject *name) {
    PyObject *id = PyLong_FromVoidPtr(object);
    PyObject *made = id != NULL ? Py_XNewRef(PyDict_GetItemWithError(job->seen, id)) : NULL;
    if (made == NULL && !PyErr_Occurred()) {
        ctpy_labels labels = *job->labels;
        labels.of_class = 1;
        labels.otherwise = name_otherwise(job, function, name);
        if (!PyErr_Occurred()) made = ctpy_wrap(job->state, object, &labels);
        Py_XDECREF(labels.otherwise);
        if (made != NULL && PyDict_SetItem(job->seen, id, made) < 0) Py_CLEAR(made);
    }
    Py_XDECREF(id);
    return made;
}

/* Whether to measure what is built around these functions: 1, 0, or -1. */
static int is_wanted(const work *job, PyObject *functions, PyObject *name) {
    return PyList_GET_SIZE(functions) == 0 ? 0 : is_own_function(job, PyList_GET_ITEM(functions, 0), name);
}

static int prepare_one(const work *job, PyObject *name, PyObject *object) {
    int method = !PyUnicode_Check(name) || is_excluded(name) || ctpy_is_measured(job->state, object)
                     ? 0
                     : ctpy_is_method_like(object);
    if (method <= 0) return method;
    PyObject *functions = PyList_New(0);
    if (functions == NULL) return -1;
    int wanted = ctpy_list_functions(object, functions) < 0 ? -1 : is_wanted(job, functions, name);
    PyObject *made = wanted > 0 ? measure(job, object, PyList_GET_ITEM(functions, 0), name) : NULL;
    Py_DECREF(functions);
    if (wanted > 0 && (made == NULL || (made != object && PyDict_SetItem(job->ready, name, made) < 0))) wanted = -1;
    Py_XDECREF(made);
    return wanted < 0 ? -1 : 0;
}

static int prepare(const work *job) {
    PyObject *items = PyDict_Items(job->type->tp_dict);
    if (items == NULL) return -1;
    int failed = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items) && !failed; i++) {
        PyObject *item = PyList_GET_ITEM(items, i);
        failed = prepare_one(job, PyTuple_GET_ITEM(item, 0), PyTuple_GET_ITEM(item, 1));
    }
    Py_DECREF(items);
    return failed;
}

/* ---- the class ---- */

/* A property knows its name from the making of the class. */
static int tell_name(const work *job, PyObject *name, PyObject *made) {
    if (!PyObject_TypeCheck(made, &PyProperty_Type)) return 0;
    PyObject *tell = PyObject_GetAttrString((PyObject *)&PyProperty_Type, "__set_name__"); /* a subclass's was called */
    if (tell == NULL) return ctpy_forgive();
    PyObject *told = PyObject_CallFunctionObjArgs(tell, made, (PyObject *)job->type, name, NULL);
    Py_DECREF(tell);
    Py_XDECREF(told);
    return told != NULL ? 0 : -1;
}

static int replace(const work *job) {
    PyObject *name, *made;
    Py_ssize_t position = 0;
    while (PyDict_Next(job->ready, &position, &name, &made)) {
        if (PyType_Type.tp_setattro((PyObject *)job->type, name, made) < 0) return -1;
        if (tell_name(job, name, made) < 0) return -1;
    }
    return 0;
}

static int check_type(PyTypeObject *type) {
    if (!PyType_HasFeature(type, Py_TPFLAGS_IMMUTABLETYPE)) return 0;
    PyErr_Format(PyExc_TypeError,
                 "measured cannot measure the immutable type %R: its methods cannot be replaced; measure single ones, "
                 "such as codetimer.measured(str.upper), and call the result",
                 type);
    return -1;
}

/* "Class." and "module.Class." */
static int begin_names(work *job) {
    PyObject *module = ctpy_class_module(job->type), *qualname = NULL, *member = NULL;
    if (module != NULL || !PyErr_Occurred()) qualname = ctpy_class_qualname(job->type);
    if (qualname != NULL) member = ctpy_name_class(module, qualname);
    if (member != NULL) job->within = PyUnicode_FromFormat("%U.", qualname);
    if (job->within != NULL) job->prefix = PyUnicode_FromFormat("%U.", member);
    if (job->prefix != NULL) job->module = module != NULL ? Py_NewRef(module) : PyUnicode_FromString("");
    Py_XDECREF(module);
    Py_XDECREF(qualname);
    Py_XDECREF(member);
    return job->module != NULL ? 0 : -1;
}

static int begin(work *job) {
    if (begin_names(job) < 0) return -1;
    job->seen = PyDict_New();
    job->ready = PyDict_New();
    return job->seen && job->ready ? 0 : -1;
}

static void end(work *job) {
    Py_XDECREF(job->module);
    Py_XDECREF(job->within);
    Py_XDECREF(job->prefix);
    Py_XDECREF(job->seen);
    Py_XDECREF(job->ready);
}

int ctpy_measure_class(ctpy_state *state, PyTypeObject *type, const ctpy_labels *labels) {
    if (check_type(type) < 0) return -1;
    work job = {.state = state, .type = type, .labels = labels};
    int failed = begin(&job) < 0 || prepare(&job) < 0 || replace(&job) < 0 ? -1 : 0;
    end(&job);
    return failed;
}
