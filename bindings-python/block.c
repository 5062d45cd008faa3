/* SPDX-License-Identifier: MIT
 *
 * block.c: 64 calls of a Python function in one go, written in Python.
 *
 * Since CPython 3.12 a call from C enters the interpreter anew, and that alone costs more than the whole call in Python
 * code, where the interpreter only pushes a frame. So Python functions are called from a Python function that consists
 * of 64 lines "fn()". Each call is on a line of its own: after an exception the line tells exactly how many calls were
 * completed. The frame of this helper is taken out of the traceback again; fn can see it as the frame that called it.
 */
#include "common.h"

#if PY_VERSION_HEX >= 0x030c0000

static const char head[] = "def time(fn):\n";
static const char line[] = " fn()\n";
enum { FIRST_LINE = 2, HEAD_LENGTH = sizeof head - 1, LINE_LENGTH = sizeof line - 1 };

static PyObject *compile_block(void) {
    char source[HEAD_LENGTH + CTPY_BLOCK_CALLS * LINE_LENGTH + 1];
    memcpy(source, head, HEAD_LENGTH);
    for (size_t i = 0; i < CTPY_BLOCK_CALLS; i++) memcpy(source + HEAD_LENGTH + i * LINE_LENGTH, line, LINE_LENGTH);
    source[sizeof source - 1] = '\0';
    return Py_CompileString(source, "<codetimer>", Py_file_input);
}

static PyObject *define_block(void) {
    PyObject *code = compile_block();
    PyObject *names = code != NULL ? Py_BuildValue("{ss}", "__name__", "codetimer") : NULL;
    PyObject *done = names != NULL ? PyEval_EvalCode(code, names, names) : NULL;
    PyObject *block = done != NULL ? Py_XNewRef(PyDict_GetItemString(names, "time")) : NULL;
    Py_XDECREF(done);
    Py_XDECREF(names);
    Py_XDECREF(code);
    return block;
}

int ctpy_block_prepare(ctpy_state *state, PyObject *fn, PyObject **block) {
    *block = NULL;
    if (!PyFunction_Check(fn)) return 0;
    if (state->block == NULL) state->block = define_block();
    *block = state->block;
    return *block != NULL ? 0 : -1;
}

static int is_of_block(PyTracebackObject *traceback, PyObject *block) {
    PyCodeObject *code = PyFrame_GetCode(traceback->tb_frame);
    int is = (PyObject *)code == PyFunction_GetCode(block);
    Py_DECREF(code);
    return is;
}

static uint64_t count_completed(PyObject *traceback) {
    PyObject *number = PyObject_GetAttrString(traceback, "tb_lineno");
    long at = number != NULL ? PyLong_AsLong(number) : FIRST_LINE;
    Py_XDECREF(number);
    PyErr_Clear();
    return at > FIRST_LINE ? (uint64_t)(at - FIRST_LINE) : 0;
}

/* Nothing was completed where the block is not at the head of the traceback: it was not even entered. */
uint64_t ctpy_block_failed(PyObject *block) {
    uint64_t completed = 0;
    PyObject *raised = PyErr_GetRaisedException();
    PyObject *traceback = PyException_GetTraceback(raised);
    if (traceback != NULL && is_of_block((PyTracebackObject *)traceback, block)) {
        PyObject *rest = (PyObject *)((PyTracebackObject *)traceback)->tb_next;
        completed = count_completed(traceback);
        PyException_SetTraceback(raised, rest != NULL ? rest : Py_None);
    }
    Py_XDECREF(traceback);
    PyErr_SetRaisedException(raised);
    return completed;
}

#else /* a call from C is the quickest */

int ctpy_block_prepare(ctpy_state *state, PyObject *fn, PyObject **block) {
    (void)state, (void)fn;
    *block = NULL;
    return 0;
}

uint64_t ctpy_block_failed(PyObject *block) {
    (void)block;
    return 0;
}

#endif
