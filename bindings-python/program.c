/* SPDX-License-Identifier: MIT
 *
 * program.c: runs a program to its end, as python itself does with the program of its command line.
 *
 * What python does once it is set up, it does by a few functions that anyone may call: run a file or a function of
 * runpy in __main__, print what was raised, finalize, exit. Here they are called with no Python frame below, so that
 * tracebacks, sys._getframe, stacklevel= and the depth of recursion are those of a program that python started. None of
 * these functions returns once the program has begun.
 */
#include "program.h"

#include <signal.h>
#include <stdlib.h>

/* The frames of whoever called us are left where they are, but nothing leads to them any more, as at the start of a
 * greenlet. Where this is not known to be right they stay visible. */
static void forget_frames(PyThreadState *thread) {
#if PY_VERSION_HEX >= 0x030f0000
    (void)thread;
#elif PY_VERSION_HEX >= 0x030d0000
    thread->current_frame = NULL;
#elif PY_VERSION_HEX >= 0x030b0000
    thread->cframe->current_frame = NULL;
#else
    thread->frame = NULL;
#endif
}

/* The levels that those frames have used up are there again. */
static void forget_depth(PyThreadState *thread) {
#if PY_VERSION_HEX >= 0x030f0000
    (void)thread;
#elif PY_VERSION_HEX >= 0x030c0000
    thread->py_recursion_remaining = thread->py_recursion_limit;
#elif PY_VERSION_HEX >= 0x030b0000
    thread->recursion_remaining = thread->recursion_limit;
#else
    thread->recursion_depth = 0;
#endif
#if PY_VERSION_HEX >= 0x030d0000 && PY_VERSION_HEX < 0x030e0000
    thread->c_recursion_remaining = Py_C_RECURSION_LIMIT;
#elif PY_VERSION_HEX >= 0x030c0000 && PY_VERSION_HEX < 0x030d0000
    thread->c_recursion_remaining = C_RECURSION_LIMIT;
#endif
}

static void begin(void) {
    PyThreadState *thread = PyThreadState_Get();
    forget_frames(thread);
    forget_depth(thread);
}

/* ---- the end ---- */

/* Ctrl-C that nobody caught ends a process by its signal, so that a shell notices. */
static void end_interrupted(void) {
    (void)Py_FinalizeEx();
#ifdef MS_WINDOWS
    exit((int)0xC000013A); /* STATUS_CONTROL_C_EXIT */
#else
    if (signal(SIGINT, SIG_DFL) != SIG_ERR) (void)raise(SIGINT);
    exit(128 + SIGINT);
#endif
}

/* python -i, or PYTHONINSPECT that the program has set itself. Returns 1 if that failed. */
static int inspect(int failed) {
    const char *variable = getenv("PYTHONINSPECT");
    PyObject *flags = PySys_GetObject("flags");
    PyObject *flag = flags != NULL ? PyObject_GetAttrString(flags, "inspect") : NULL;
    int wanted = (flag != NULL && PyObject_IsTrue(flag) == 1) || (variable != NULL && variable[0] != '\0');
    Py_XDECREF(flag);
    PyErr_Clear();
    if (!wanted || !Py_FdIsInteractive(stdin, "<stdin>")) return failed;
    return PyRun_AnyFileExFlags(stdin, "<stdin>", 0, NULL) != 0;
}

static void end(int failed, int interrupted) {
    failed = inspect(failed);
    if (interrupted) end_interrupted();
    Py_Exit(failed ? 1 : 0);
}

/* Whether what PyErr_Print has printed last was Ctrl-C. */
static int was_interrupted(void) { return PySys_GetObject("last_type") == PyExc_KeyboardInterrupt; }

/* What is raised stays so. */
static void flush(const char *name) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *stream = PySys_GetObject(name);
    PyObject *done = stream != NULL ? PyObject_CallMethod(stream, "flush", NULL) : NULL;
    Py_XDECREF(done);
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

/* ---- programs ---- */

static FILE *open_program(PyObject *path) {
#if PY_VERSION_HEX >= 0x030e0000
    return Py_fopen(path, "rb");
#else
    FILE *file = _Py_fopen_obj(path, "rb");
    if (file == NULL && !PyErr_Occurred()) PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path);
    return file;
#endif
}

PyObject *ctpy_run_file(PyObject *module, PyObject *path) {
    (void)module;
    PyObject *encoded = NULL;
    if (!PyUnicode_FSConverter(path, &encoded)) return NULL;
    FILE *file = open_program(path);
    if (file == NULL) {
        Py_DECREF(encoded);
        return NULL;
    }
    begin();
    int failed = PyRun_AnyFileExFlags(file, PyBytes_AS_STRING(encoded), 1, NULL) != 0;
    end(failed, failed && was_interrupted());
    return NULL;
}

PyObject *ctpy_run_stdin(PyObject *module, PyObject *ignored) {
    (void)module, (void)ignored;
    begin();
    int failed = PyRun_AnyFileExFlags(stdin, "<stdin>", 0, NULL) != 0;
    end(failed, failed && was_interrupted());
    return NULL;
}

/* As python runs a file, but for the file. */
PyObject *ctpy_run_code(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *code, *names;
    if (!PyArg_ParseTuple(args, "O!O!:_run_code", &PyCode_Type, &code, &PyDict_Type, &names)) return NULL;
    begin();
    PyObject *value = PyEval_EvalCode(code, names, names);
    int interrupted = PyErr_Occurred() == PyExc_KeyboardInterrupt;
    flush("stderr");
    flush("stdout");
    if (value == NULL) PyErr_Print();
    if (PyDict_DelItemString(names, "__file__") < 0) PyErr_Clear();
    if (PyDict_DelItemString(names, "__cached__") < 0) PyErr_Clear();
    end(value == NULL, interrupted);
    return NULL;
}

PyObject *ctpy_run_call(PyObject *module, PyObject *args) {
    (void)module;
    Py_ssize_t count = PyTuple_GET_SIZE(args);
    PyObject *fn = count > 0 ? PyTuple_GET_ITEM(args, 0) : Py_None;
    PyObject *rest = PyTuple_GetSlice(args, 1, count);
    if (rest == NULL) return NULL;
    begin();
    PyObject *value = PyObject_Call(fn, rest, NULL);
    int interrupted = PyErr_Occurred() == PyExc_KeyboardInterrupt;
    if (value == NULL) PyErr_Print();
    end(value == NULL, interrupted);
    return NULL;
}

/* ---- what the program does not see ---- */

static PyObject *call_and_change(PyObject *self, PyObject *args, PyObject *kwargs) {
    PyObject *result = PyObject_Call(PyTuple_GET_ITEM(self, 0), args, kwargs);
    PyObject *changed = result != NULL ? PyObject_CallOneArg(PyTuple_GET_ITEM(self, 1), result) : NULL;
    Py_XDECREF(result);
    return changed;
}

PyObject *ctpy_and_change(PyObject *module, PyObject *args) {
    static PyMethodDef definition = {"_and_change", CTPY_WITH_KEYWORDS(call_and_change), METH_VARARGS | METH_KEYWORDS,
                                     NULL};
    (void)module;
    if (PyTuple_GET_SIZE(args) == 2) return PyCFunction_New(&definition, args);
    (void)ctpy_refuse(PyExc_TypeError, "it must be given a function and what changes its result", args);
    return NULL;
}

static void pause_tracing(PyThreadState *thread, int pause) {
#if PY_VERSION_HEX >= 0x030b0000
    (pause ? PyThreadState_EnterTracing : PyThreadState_LeaveTracing)(thread);
#else
    thread->tracing += pause ? 1 : -1;
    thread->cframe->use_tracing = !pause && (thread->c_tracefunc != NULL || thread->c_profilefunc != NULL);
#endif
}

static PyObject *call_untraced(PyObject *self, PyObject *arg) {
    PyThreadState *thread = PyThreadState_Get();
    pause_tracing(thread, 1);
    PyObject *result = PyObject_CallOneArg(self, arg);
    pause_tracing(thread, 0);
    return result;
}

PyObject *ctpy_untraced(PyObject *module, PyObject *fn) {
    static PyMethodDef definition = {"_untraced", call_untraced, METH_O, NULL};
    (void)module;
    return PyCFunction_New(&definition, fn);
}
