/* SPDX-License-Identifier: MIT
 *
 * arguments.c: what time() and initialize() accept, checked before anything runs.
 *
 * Every refusal names the argument, shows the value that was seen, and says what to give instead.
 */
#include "common.h"

#define N_RANGE "an integer from 0 to 9223372036854775807"

/* How often a callable may be a method or partial of another before the search for its code is given up. */
#define UNWRAP_MAX 64

/* Clears an error that is the object's own affair. Returns -1 for those that are not: KeyboardInterrupt and the like.
 */
static int forgive(void) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;
    PyErr_Clear();
    return 0;
}

/* As forgive, but no memory to ask with is no answer. */
int ctpy_forgive(void) {
    PyObject *raised = PyErr_Occurred();
    if (raised == NULL) return 0;
    return PyErr_GivenExceptionMatches(raised, PyExc_MemoryError) ? -1 : forgive();
}

int ctpy_refuse(PyObject *type, const char *message, PyObject *value) {
    PyObject *seen = PyObject_Repr(value);
    if (seen == NULL && forgive() < 0) return -1;
    if (seen != NULL) PyErr_Format(type, "%s, not %.100U (%s)", message, seen, Py_TYPE(value)->tp_name);
    if (seen == NULL) PyErr_Format(type, "%s, not this %s (too long to show)", message, Py_TYPE(value)->tp_name);
    Py_XDECREF(seen);
    return -1;
}

/* ---- integers ---- */

static int is_integer(PyObject *value) { return PyIndex_Check(value) && !PyBool_Check(value); }

/* Reads a value with __index__. *outside becomes 1 where it does not fit. */
static int read_integer(PyObject *value, int64_t *integer, int *outside) {
    PyObject *index = PyNumber_Index(value);
    if (index == NULL) return -1;
    int overflow = 0;
    *integer = PyLong_AsLongLongAndOverflow(index, &overflow);
    Py_DECREF(index);
    *outside = overflow != 0;
    return *integer == -1 && PyErr_Occurred() ? -1 : 0;
}

static int parse_n(PyObject *value, int64_t *n) {
    *n = CT_N_AUTOMATIC;
    if (value == Py_None) return 0;
    if (!is_integer(value)) return ctpy_refuse(PyExc_TypeError, "n must be " N_RANGE " or None", value);
    int outside;
    if (read_integer(value, n, &outside) < 0) return -1;
    return outside || *n < 0 ? ctpy_refuse(PyExc_ValueError, "n must be " N_RANGE " or None", value) : 0;
}

static int is_real(PyObject *value) {
    return !PyBool_Check(value) && !PyComplex_Check(value) && PyNumber_Check(value);
}

int ctpy_parse_budget(PyObject *value, uint64_t *budget_ns) {
    static const char message[] = "budget must be a number of seconds above 0, up to 1e9, or None";
    *budget_ns = 0;
    if (value == NULL || value == Py_None) return 0;
    if (!is_real(value)) return ctpy_refuse(PyExc_TypeError, message, value);
    const double seconds = PyFloat_AsDouble(value);
    if (seconds == -1 && PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return -1;
        PyErr_Clear();
        return ctpy_refuse(PyExc_ValueError, message, value);
    }
    if (!(seconds > 0 && seconds <= 1e9)) return ctpy_refuse(PyExc_ValueError, message, value);
    *budget_ns = seconds < 1e-9 ? 1 : (uint64_t)(seconds * 1e9);
    return 0;
}

int ctpy_parse_cpu(PyObject *value, int *cpu) {
    static const char message[] = "cpu must be the number of a CPU (0, 1, ...) or None";
    *cpu = -1;
    if (value == NULL || value == Py_None) return 0;
    if (!is_integer(value)) return ctpy_refuse(PyExc_TypeError, message, value);
    int64_t number;
    int outside;
    if (read_integer(value, &number, &outside) < 0) return -1;
    if (outside || number < 0 || number > INT_MAX) return ctpy_refuse(PyExc_ValueError, message, value);
    *cpu = (int)number;
    return 0;
}

int ctpy_parse_priority(PyObject *value, const char **level) {
    static const char message[] = "priority must be 'high', 'highest', 'realtime' or None";
    static const char *const levels[] = {"high", "highest", "realtime"};
    *level = value == Py_None ? NULL : levels[0];
    if (value == NULL || value == Py_None) return 0;
    if (!PyUnicode_Check(value)) return ctpy_refuse(PyExc_TypeError, message, value);
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        *level = levels[i];
        if (PyUnicode_CompareWithASCIIString(value, levels[i]) == 0) return 0;
    }
    return ctpy_refuse(PyExc_ValueError, message, value);
}

/* ---- the function ---- */

/* functools.partial, borrowed from the module if anyone has imported it; else nothing can be a partial. */
static int is_partial(PyObject *fn) {
    PyObject *name = PyUnicode_FromString("functools");
    PyObject *functools = name != NULL ? PyImport_GetModule(name) : NULL;
    Py_XDECREF(name);
    if (functools == NULL) return PyErr_Occurred() ? -1 : 0;
    PyObject *partial = PyObject_GetAttrString(functools, "partial");
    Py_DECREF(functools);
    if (partial == NULL) return forgive();
    int is = PyType_Check(partial) ? PyObject_TypeCheck(fn, (PyTypeObject *)partial) : 0;
    Py_DECREF(partial);
    return is;
}

/* What "fn" calls in the end, one step further: the function of a method or partial, the __call__ of an object's type.
 * Returns a new reference, NULL without an exception at the end of the way, or NULL with one. */
static PyObject *unwrap(PyObject *fn) {
    if (PyFunction_Check(fn)) return NULL;
    if (PyMethod_Check(fn)) return Py_NewRef(PyMethod_GET_FUNCTION(fn));
    int partial = is_partial(fn);
    if (partial < 0) return NULL;
    PyObject *next =
        partial ? PyObject_GetAttrString(fn, "func") : PyObject_GetAttrString((PyObject *)Py_TYPE(fn), "__call__");
    if (next == NULL) (void)forgive();
    return next;
}

/* "object.name", new; NULL where it has none, or with what cannot be forgiven. */
static PyObject *get(PyObject *object, const char *name) {
    PyObject *value = object != NULL ? PyObject_GetAttrString(object, name) : NULL;
    if (value == NULL) (void)ctpy_forgive();
    return value;
}

/* Whether inspect.markcoroutinefunction (3.12) has been at it, by the mark that inspect itself looks for; where nobody
 * has imported inspect, nobody has. -1 for an exception. */
static int is_marked(PyObject *fn) {
    PyObject *name = PyUnicode_FromString("inspect");
    PyObject *inspect = name != NULL ? PyImport_GetModule(name) : NULL;
    PyObject *mark = get(inspect, "_is_coroutine_mark");
    if (mark == NULL && !PyErr_Occurred()) mark = get(inspect, "_is_coroutine_marker"); /* its name in 3.12 */
    PyObject *own = mark != NULL ? get(fn, "_is_coroutine_marker") : NULL;
    const int is = own != NULL && own == mark;
    Py_XDECREF(name);
    Py_XDECREF(inspect);
    Py_XDECREF(mark);
    Py_XDECREF(own);
    return PyErr_Occurred() ? -1 : is;
}

/* The co_flags of what has a __code__ (functions, and what passes for one); 0 for all else, -1 for an exception. What
 * is marked as a coroutine function is one. */
static int read_code_flags(PyObject *fn) {
    const int marked = is_marked(fn);
    if (marked != 0) return marked < 0 ? -1 : CO_COROUTINE;
    PyObject *code = PyObject_GetAttrString(fn, "__code__");
    if (code == NULL) return forgive();
    int flags = PyCode_Check(code) ? ((PyCodeObject *)code)->co_flags : 0;
    Py_DECREF(code);
    return flags;
}

int ctpy_code_flags(PyObject *fn) {
    int flags = 0;
    Py_INCREF(fn);
    for (int step = 0; step < UNWRAP_MAX && fn != NULL; step++) {
        flags = read_code_flags(fn);
        PyObject *next = flags == 0 ? unwrap(fn) : NULL;
        Py_DECREF(fn);
        fn = next;
    }
    Py_XDECREF(fn);
    return PyErr_Occurred() ? -1 : flags;
}

static int refuse_fn(const char *who, const char *why, PyObject *fn) {
    char message[400];
    (void)PyOS_snprintf(message, sizeof message, "%.150s must %s", who, why);
    return ctpy_refuse(PyExc_TypeError, message, fn);
}

int ctpy_check_fn(const char *who, PyObject *fn, int *is_generator) {
    if (!PyCallable_Check(fn))
        return refuse_fn(who, "be callable without arguments (codetimer calls it; give the function itself)", fn);
    int flags = ctpy_code_flags(fn);
    if (flags < 0) return -1;
    if (flags & (CO_COROUTINE | CO_ITERABLE_COROUTINE))
        return refuse_fn(who,
                         "not be a coroutine function: calling it would only create a coroutine; time what runs it, "
                         "such as lambda: asyncio.run(main())",
                         fn);
    if (flags & CO_ASYNC_GENERATOR)
        return refuse_fn(who,
                         "not be an async generator function: calling it would only create a generator; time what "
                         "runs through it, such as lambda: asyncio.run(main())",
                         fn);
    *is_generator = (flags & CO_GENERATOR) != 0;
    return 0;
}

/* ---- the rest ---- */

int ctpy_check_file(PyObject *file) {
    PyObject *write = PyObject_GetAttrString(file, "write");
    Py_XDECREF(write);
    if (write != NULL) return 0;
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
    PyErr_Clear();
    return ctpy_refuse(PyExc_TypeError, "file must have a write(str) method or be None", file);
}

PyObject *ctpy_encode(PyObject *name) { return PyUnicode_AsEncodedString(name, "utf-8", "backslashreplace"); }

static int check_numbers(ctpy_call *call, PyObject *n, PyObject *budget) {
    if (parse_n(n, &call->n) < 0) return -1;
    if (ctpy_parse_budget(budget, &call->budget_ns) < 0) return -1;
    if (call->budget_ns == 0 || call->n == CT_N_AUTOMATIC) return 0;
    PyErr_SetString(PyExc_ValueError, "budget is for automatic n (n=None): with n given it must be left out");
    return -1;
}

static int check_call(ctpy_call *call, PyObject *n, PyObject *budget) {
    if (!PyUnicode_Check(call->name)) return ctpy_refuse(PyExc_TypeError, "name must be a str", call->name);
    if (check_numbers(call, n, budget) < 0) return -1;
    if (ctpy_check_fn("fn", call->fn, &call->is_generator) < 0) return -1;
    if (call->file != NULL && ctpy_check_file(call->file) < 0) return -1;
    call->encoded = ctpy_encode(call->name);
    return call->encoded != NULL ? 0 : -1;
}

static PyObject *given(PyObject *value) { return value == NULL || value == Py_None ? NULL : Py_NewRef(value); }

int ctpy_parse_call(PyObject *args, PyObject *kwargs, ctpy_call *call) {
    static const char *const keywords[] = {"name",    "n",      "fn",      "file",      "budget",
                                           "gc_time", "memory", "verbose", "_progress", NULL};
    PyObject *name, *n = Py_None, *fn = NULL, *file = NULL, *budget = NULL, *progress = NULL;
    *call = (ctpy_call){0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO$OOpppO:time", CTPY_MUTABLE(char **, keywords), &name, &n, &fn,
                                     &file, &budget, &call->gc_time, &call->memory, &call->verbose, &progress))
        return -1;
    if (fn == NULL) {
        PyErr_SetString(PyExc_TypeError,
                        "time() misses fn: time(name, n, fn), or time(name, fn=fn) for as many calls as fit");
        return -1;
    }
    call->name = Py_NewRef(name);
    call->fn = Py_NewRef(fn);
    call->file = given(file);
    call->progress = given(progress);
    Py_INCREF(n);
    Py_XINCREF(budget);
    const int status = check_call(call, n, budget);
    Py_DECREF(n);
    Py_XDECREF(budget);
    return status;
}

void ctpy_call_clear(ctpy_call *call) {
    Py_CLEAR(call->name);
    Py_CLEAR(call->encoded);
    Py_CLEAR(call->fn);
    Py_CLEAR(call->file);
    Py_CLEAR(call->progress);
}
