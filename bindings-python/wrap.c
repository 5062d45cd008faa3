/* SPDX-License-Identifier: MIT
 *
 * wrap.c: codetimer.measured: what it accepts, and what it returns for it.
 *
 * A callable gets a stand-in; a thing that holds functions (kinds.c) is built again around stand-ins; a class
 * (classes.c) is measured in place. Whatever is measured already is returned as it is, and so is what there is no
 * memory to measure.
 */
#include "measured.h"
#include "monitoring.h"

/* How many decorators may be one around the other before the search for a measured one is given up. */
#define UNWRAP_MAX 64

/* ---- async ---- */

/* The flags of the code that a call runs, also from behind a cache. */
static int read_flags(PyObject *object) {
    int cached = ctpy_is_functools(object, "_lru_cache_wrapper");
    PyObject *inner = cached > 0 ? PyObject_GetAttrString(object, "__wrapped__") : NULL;
    int flags = cached == 0 ? ctpy_code_flags(object) : inner != NULL ? ctpy_code_flags(inner) : -1;
    Py_XDECREF(inner);
    return flags;
}

int ctpy_suspends(PyObject *object) {
    const int flags = read_flags(object);
    if (flags < 0) return -1;
    return (flags & (CO_COROUTINE | CO_ITERABLE_COROUTINE | CO_GENERATOR | CO_ASYNC_GENERATOR)) != 0;
}

/* ---- one callable ---- */

static PyObject *wrap_callable(ctpy_state *state, PyObject *object, const ctpy_labels *labels) {
    const int suspends = ctpy_suspends(object);
    if (suspends < 0) return NULL;
    PyObject *member = ctpy_name_member(object, labels);
    if (member == NULL) return NULL;
    ct_counter *counter;
    int refused = ctpy_open_counter(state, labels->category, member, labels->help, &counter);
    Py_DECREF(member);
    if (refused < 0) return NULL;
    if (refused) return Py_NewRef(object);
    ctpy_monitoring_spare(state, object);
    return ctpy_measured_new(state, object, counter, suspends);
}

static PyObject *refuse(PyObject *object) {
    const char *message = "measured must be given a function, method, class or other callable";
    if (PyUnicode_Check(object)) message = "measured must be given a callable (its name as measured(name=...))";
    if (PyType_Check(object))
        message = "a class cannot stand where a function is measured: measure the class itself, or its methods";
    (void)ctpy_refuse(PyExc_TypeError, message, object);
    return NULL;
}

/* What is measured of "object": itself, or, where no name is given, what is below its decorators: measured again under
 * the same name, each call would count twice. New; NULL, perhaps with an exception. */
static PyObject *find_measured(ctpy_state *state, PyObject *object, const ctpy_labels *labels) {
    Py_INCREF(object);
    for (int step = 0; step < UNWRAP_MAX && !ctpy_is_measured(state, object); step++) {
        PyObject *inner = labels->name == NULL ? PyObject_GetAttrString(object, "__wrapped__") : NULL;
        if (inner == NULL) break;
        Py_SETREF(object, inner);
    }
    if (ctpy_forgive() < 0 || !ctpy_is_measured(state, object)) Py_CLEAR(object);
    return object;
}

/* ---- a name that is not taken ---- */

static PyObject *find_key(PyObject *measured) {
    if (PyMethod_Check(measured)) measured = PyMethod_GET_FUNCTION(measured);
    return ctpy_counter_key(ctpy_measured_counter(measured));
}

/* What the user wants in place of "member", with the category if that was said. */
static PyObject *find_wanted(PyObject *member, const ctpy_labels *labels) {
    PyObject *name =
        labels->name != NULL ? PyUnicode_FromFormat("%U%s", labels->name, labels->part) : Py_NewRef(member);
    if (labels->category == NULL || name == NULL) return name;
    PyObject *wanted = PyUnicode_FromFormat("%U/%U", labels->category, name);
    Py_DECREF(name);
    return wanted;
}

/* It keeps the name that it has, which nobody would notice without a line in the log. */
static void tell_kept(ctpy_state *state, PyObject *measured, const ctpy_labels *labels) {
    PyObject *key = find_key(measured), *member = NULL, *said = NULL;
    if (key != NULL) {
        const Py_ssize_t slash = PyUnicode_FindChar(key, '/', 0, PyUnicode_GET_LENGTH(key), 1);
        member = PyUnicode_Substring(key, slash + 1, PyUnicode_GET_LENGTH(key));
    }
    PyObject *wanted = member != NULL ? find_wanted(member, labels) : NULL;
    if (wanted != NULL && PyUnicode_Compare(wanted, labels->category != NULL ? key : member) != 0)
        said = PyUnicode_FromFormat("%U, for what is measured already, as %U, and stays so", wanted, key);
    PyErr_Clear(); /* no memory to tell it */
    if (said != NULL) (void)ctpy_trace(state, CTPY_WARNING, "name not taken: %s", said);
    Py_XDECREF(said);
    Py_XDECREF(wanted);
    Py_XDECREF(member);
    Py_XDECREF(key);
}

PyObject *ctpy_wrap(ctpy_state *state, PyObject *object, const ctpy_labels *labels) {
    PyObject *measured = find_measured(state, object, labels);
    if (measured != NULL) {
        if (!labels->of_class) tell_kept(state, measured, labels);
        Py_DECREF(measured);
        return Py_NewRef(object);
    }
    if (PyErr_Occurred()) return NULL;
    PyObject *rebuilt;
    if (ctpy_rebuild(state, object, labels, &rebuilt) < 0 || rebuilt != NULL) return rebuilt;
    return PyCallable_Check(object) && !PyType_Check(object) ? wrap_callable(state, object, labels) : refuse(object);
}

/* ---- a class ---- */

static PyObject *wrap_class(ctpy_state *state, PyObject *object, const ctpy_labels *labels) {
    if (labels->name != NULL || labels->help != NULL) {
        PyErr_Format(
            PyExc_TypeError,
            "%s= is for one function, and %R is a class: measure its methods one by one, or give category= only",
            labels->name != NULL ? "name" : "help", object);
        return NULL;
    }
    return ctpy_measure_class(state, (PyTypeObject *)object, labels) < 0 ? NULL : Py_NewRef(object);
}

/* Lack of memory does not reach the program: "object" itself stands in for what could not be made. */
static PyObject *or_unmeasured(ctpy_state *state, PyObject *object, PyObject *made) {
    if (made != NULL || object == NULL || ctpy_go_unmeasured(state, object) < 0) return made;
    return Py_NewRef(object);
}

static PyObject *wrap_any(ctpy_state *state, PyObject *object, const ctpy_labels *labels) {
    PyObject *made = PyType_Check(object) ? wrap_class(state, object, labels) : ctpy_wrap(state, object, labels);
    return or_unmeasured(state, object, made);
}

/* ---- measured ---- */

/* A label of the user: a str with something in it, or None. What the core thinks of it is told when it is used. */
static int check_label(PyObject **label, const char *message) {
    if (*label == Py_None) *label = NULL;
    if (*label == NULL) return 0;
    if (!PyUnicode_Check(*label)) return ctpy_refuse(PyExc_TypeError, message, *label);
    return PyUnicode_GET_LENGTH(*label) > 0 ? 0 : ctpy_refuse(PyExc_ValueError, message, *label);
}

static int check_labels(ctpy_labels *labels) {
    if (check_label(&labels->name, "name must be a str that is not empty, or None") < 0) return -1;
    if (check_label(&labels->category, "category must be a str that is not empty, or None") < 0) return -1;
    return check_label(&labels->help, "help must be a str that is not empty, or None");
}

/* What measured(name=...) returns: it has the module and the labels in a tuple as its self. */
static PyObject *apply(PyObject *self, PyObject *object) {
    PyObject *texts[3];
    for (Py_ssize_t i = 0; i < 3; i++) {
        PyObject *text = PyTuple_GET_ITEM(self, i + 1);
        texts[i] = text != Py_None ? text : NULL;
    }
    const ctpy_labels labels = {.name = texts[0], .category = texts[1], .help = texts[2], .part = ""};
    return wrap_any(ctpy_get_state(PyTuple_GET_ITEM(self, 0)), object, &labels);
}

static PyMethodDef decorator_definition = {"measured", apply, METH_O,
                                           "measured($self, fn, /)\n--\n\nMeasure fn as measured was told to."};

static PyObject *make_decorator(PyObject *module, const ctpy_labels *labels) {
    PyObject *self = PyTuple_Pack(4, module, labels->name != NULL ? labels->name : Py_None,
                                  labels->category != NULL ? labels->category : Py_None,
                                  labels->help != NULL ? labels->help : Py_None);
    PyObject *decorator = self != NULL ? PyCFunction_New(&decorator_definition, self) : NULL;
    Py_XDECREF(self);
    return decorator;
}

PyObject *ctpy_measured(PyObject *module, PyObject *args, PyObject *kwargs) {
    static const char *const keywords[] = {"", "name", "category", "help", NULL};
    PyObject *object = NULL;
    ctpy_labels labels = {.part = ""};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$OOO:measured", CTPY_MUTABLE(char **, keywords), &object,
                                     &labels.name, &labels.category, &labels.help))
        return or_unmeasured(ctpy_get_state(module), PyTuple_GET_SIZE(args) == 1 ? PyTuple_GET_ITEM(args, 0) : NULL,
                             NULL);
    if (check_labels(&labels) < 0) return NULL;
    return object != NULL ? wrap_any(ctpy_get_state(module), object, &labels) : make_decorator(module, &labels);
}

/* What a pickled stand-in of an object calls where it arrives: the object, and the key "category/member". */
PyObject *ctpy_measured_again(PyObject *module, PyObject *args) {
    PyObject *object, *key;
    if (!PyArg_ParseTuple(args, "OU:_measured_again", &object, &key)) return NULL;
    Py_ssize_t slash = PyUnicode_FindChar(key, '/', 0, PyUnicode_GET_LENGTH(key), 1);
    if (slash < 0) (void)ctpy_refuse(PyExc_ValueError, "the key must be 'category/member'", key);
    if (slash < 0) return NULL;
    PyObject *category = PyUnicode_Substring(key, 0, slash);
    PyObject *member = PyUnicode_Substring(key, slash + 1, PyUnicode_GET_LENGTH(key));
    const ctpy_labels labels = {.name = member, .category = category, .part = ""};
    PyObject *made = category != NULL && member != NULL ? ctpy_wrap(ctpy_get_state(module), object, &labels) : NULL;
    Py_XDECREF(category);
    Py_XDECREF(member);
    return or_unmeasured(ctpy_get_state(module), object, made);
}
