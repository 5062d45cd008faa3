/* SPDX-License-Identifier: MIT
 *
 * trace.c: what the logger "codetimer" is told: counters created, removed, refused, and, where asked for, every
 * increment.
 *
 * Telling must never disturb the measured program: failures of logging go where Python puts what cannot be raised, and
 * what a handler itself measures or opens is not told in turn. Nothing is asked of logging until somebody has imported
 * it: before that nobody can listen below a warning.
 */
#include "counting.h"
#include "live.h"

/* ---- one line ---- */

/* logging.getLogger("codetimer"), borrowed; NULL where it is not to be had, without an exception. */
static PyObject *get_logger(ctpy_state *state, int level) {
    if (state->logger != NULL) return state->logger;
    PyObject *name = PyUnicode_FromString("logging"), *logging = NULL;
    if (name != NULL) logging = level >= CTPY_WARNING ? PyImport_Import(name) : PyImport_GetModule(name);
    Py_XDECREF(name);
    if (logging != NULL) {
        PyObject *logger = PyObject_CallMethod(logging, "getLogger", "s", "codetimer");
        if (state->logger == NULL) state->logger = Py_XNewRef(logger);
        Py_XDECREF(logger);
        Py_DECREF(logging);
    }
    PyErr_Clear(); /* at the end of the interpreter, or while logging is being imported */
    return state->logger;
}

/* Sets the mark in this thread's dict, unless it is telling something already. New; NULL, perhaps with an exception. */
static PyObject *begin_telling(void) {
    PyObject *dict = PyThreadState_GetDict();
    PyObject *mark = dict != NULL ? PyUnicode_FromString("codetimer.telling") : NULL;
    if (mark == NULL || (PyDict_GetItemWithError(dict, mark) != Py_True && PyDict_SetItem(dict, mark, Py_True) == 0))
        return mark;
    Py_DECREF(mark);
    return NULL;
}

/* The mark is in the dict: this needs no memory. */
static void end_telling(PyObject *mark) {
    (void)PyDict_SetItem(PyThreadState_GetDict(), mark, Py_False);
    Py_DECREF(mark);
    PyErr_Clear();
}

/* Ctrl-C that arrives in a handler is raised at the next safe point; the rest is shown as unraisable, but where there
 * is no memory to tell, there is none to show it. */
static void put_away(PyObject *logger) {
    if (PyErr_ExceptionMatches(PyExc_MemoryError)) {
        PyErr_Clear();
        return;
    }
    if (!PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
        PyErr_WriteUnraisable(logger);
        return;
    }
    PyErr_Clear();
    PyErr_SetInterrupt();
}

/* "args" are those of Logger.log; steals them. Returns whether it was told. */
static int tell(PyObject *logger, PyObject *args) {
    PyObject *mark = args != NULL ? begin_telling() : NULL;
    if (mark == NULL) {
        PyErr_Clear();
        Py_XDECREF(args);
        return 0;
    }
    Py_INCREF(logger);
    PyObject *log = PyObject_GetAttrString(logger, "log");
    PyObject *told = log != NULL ? PyObject_CallObject(log, args) : NULL;
    const int done = told != NULL;
    if (!done) put_away(logger);
    Py_XDECREF(told);
    Py_XDECREF(log);
    Py_DECREF(logger);
    Py_DECREF(args);
    end_telling(mark);
    return done;
}

/* The first thing told is usually a counter that was created: what is skipped of the list stands before it. */
int ctpy_trace(ctpy_state *state, int level, const char *format, PyObject *key) {
    ctpy_tell_environment(state);
    PyObject *logger = get_logger(state, level);
    return logger != NULL && tell(logger, Py_BuildValue("isO", level, format, key));
}

/* ---- increments ---- */

static int is_wanted(PyObject *logger) {
    PyObject *answer = PyObject_CallMethod(logger, "isEnabledFor", "i", CTPY_DEBUG);
    int wanted = answer == Py_True;
    Py_XDECREF(answer);
    PyErr_Clear();
    return wanted;
}

/* An exception that is set stays set. */
static void tell_increment(ctpy_state *state, const ct_counter *counter, int64_t duration_ns) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *logger = get_logger(state, CTPY_DEBUG);
    PyObject *key = logger != NULL && is_wanted(logger) ? ctpy_counter_key(counter) : NULL;
    if (key != NULL)
        tell(logger, Py_BuildValue("isNL", CTPY_DEBUG, "counter %s incremented by %d ns", key, (long long)duration_ns));
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

void ctpy_leave_traced(ctpy_state *state, ct_counter *counter, const ct_token *token, int outcome) {
    int64_t duration_ns = ct_leave(counter, token, outcome);
    if (duration_ns >= 0) tell_increment(state, counter, duration_ns);
}

void ctpy_leave_active_traced(ctpy_state *state, ct_counter *counter, const ct_token *token, const ct_active *active,
                              int outcome) {
    int64_t duration_ns = ct_leave_active(counter, token, active, outcome);
    if (duration_ns >= 0) tell_increment(state, counter, duration_ns);
}

void ctpy_record_traced(ctpy_state *state, ct_counter *counter, uint64_t duration_ns, int outcome) {
    if (ct_counter_record(counter, duration_ns, outcome)) tell_increment(state, counter, (int64_t)duration_ns);
}

PyObject *ctpy_trace_increments(PyObject *module, PyObject *on) {
    ctpy_state *state = ctpy_get_state(module);
    int wanted = PyObject_IsTrue(on);
    if (wanted < 0) return NULL;
    PyObject *before = PyBool_FromLong(state->trace_increments);
    state->trace_increments = wanted;
    return before;
}
