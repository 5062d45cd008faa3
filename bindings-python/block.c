/* SPDX-License-Identifier: MIT
 *
 * block.c: what the loop needs in Python code: an empty function, and 64 calls of a Python function in one go.
 *
 * Since CPython 3.12 a call from C enters the interpreter anew, and that alone costs more than the whole call in Python
 * code, where the interpreter only pushes a frame. So Python functions are called from a Python function that consists
 * of 64 times "fn();", and the rest of a chunk from such of 16, of 4 and of one: a chunk enters it ten times more often
 * at the worst than it has to, whatever its calls are. To fn that is the frame that called it, and it must look the
 * same for all calls, as in a loop: to what goes by the caller's line and globals (a warning shows once) all these
 * functions are one place. Each run has its own, since the globals remember which warnings were shown. Their code is
 * the same for all, but not where several run in turns: the interpreter specialises each call for the function that it
 * sees there, and would begin anew at every turn.
 *
 * After an exception the place in the code, which the traceback keeps, tells exactly how many calls were completed: the
 * calls are the same instructions over and over. How long they are is found out by letting a call fail at both ends.
 * Our frames are taken out of the traceback.
 */
#include "running.h"

/* The globals of our functions. */
static PyObject *make_names(void) { return Py_BuildValue("{ss}", "__name__", "codetimer"); }

/* Runs "source", which defines a function "name". Returns it. */
static PyObject *define(const char *source, const char *name) {
    PyObject *code = Py_CompileString(source, "<codetimer>", Py_file_input);
    PyObject *names = code != NULL ? make_names() : NULL;
    PyObject *done = names != NULL ? PyEval_EvalCode(code, names, names) : NULL;
    PyObject *function = done != NULL ? Py_XNewRef(PyDict_GetItemString(names, name)) : NULL;
    Py_XDECREF(done);
    Py_XDECREF(names);
    Py_XDECREF(code);
    return function;
}

static int is_of(PyTracebackObject *traceback, PyObject *function) {
    PyCodeObject *code = PyFrame_GetCode(traceback->tb_frame);
    int is = (PyObject *)code == PyFunction_GetCode(function);
    Py_DECREF(code);
    return is;
}

/* Takes "function" out of the traceback of the exception that is set. Returns the place in its code, or -1 where it is
 * not at the head of the traceback: it was not even entered. */
static int leave_out(PyObject *function) {
    PyObject *type, *value, *traceback;
    int at = -1;
    PyErr_Fetch(&type, &value, &traceback);
    if (traceback != NULL && is_of((PyTracebackObject *)traceback, function)) {
        at = ((PyTracebackObject *)traceback)->tb_lasti;
        PyObject *rest = (PyObject *)((PyTracebackObject *)traceback)->tb_next;
        Py_XINCREF(rest);
        Py_SETREF(traceback, rest);
    }
    PyErr_Restore(type, value, traceback);
    return at;
}

int ctpy_block_open(ctpy_state *state) {
    state->safe_point = define("def safe_point(): pass\n", "safe_point");
    return state->safe_point != NULL ? 0 : -1;
}

int ctpy_safe_point(ctpy_state *state) {
    PyObject *done = PyObject_CallNoArgs(state->safe_point);
    Py_XDECREF(done);
    if (done != NULL) return 0;
    (void)leave_out(state->safe_point);
    return -1;
}

void ctpy_block_clear(ctpy_block *block) {
    for (size_t i = 0; i < CTPY_BLOCK_SIZES; i++) Py_CLEAR(block->functions[i]);
}

#if PY_VERSION_HEX >= 0x030c0000

static const char head[] = "def time(fn):\n ";
static const char call[] = "fn();";
enum { HEAD_LENGTH = sizeof head - 1, CALL_LENGTH = sizeof call - 1 };

/* A function that makes "calls" calls. */
static PyObject *define_calls(size_t calls) {
    char source[HEAD_LENGTH + CTPY_BLOCK_CALLS * CALL_LENGTH + 2];
    char *end = source + HEAD_LENGTH;
    memcpy(source, head, HEAD_LENGTH);
    for (size_t i = 0; i < calls; i++, end += CALL_LENGTH) memcpy(end, call, CALL_LENGTH);
    memcpy(end, "\n", 2);
    return define(source, "time");
}

/* A callable that fails after "completed" calls: __next__ of an iterator over as many bytes. */
static PyObject *make_failing(Py_ssize_t completed) {
    static const char bytes[CTPY_BLOCK_CALLS];
    PyObject *sequence = PyBytes_FromStringAndSize(bytes, completed);
    PyObject *iterator = sequence != NULL ? PyObject_GetIter(sequence) : NULL;
    PyObject *next = iterator != NULL ? PyObject_GetAttrString(iterator, "__next__") : NULL;
    Py_XDECREF(iterator);
    Py_XDECREF(sequence);
    return next;
}

/* Where in "function" the call stands that comes after "completed" others; -1 with an exception. */
static int find_call(PyObject *function, Py_ssize_t completed) {
    PyObject *failing = make_failing(completed);
    if (failing == NULL) return -1;
    PyObject *done = PyObject_CallOneArg(function, failing);
    Py_DECREF(failing);
    Py_XDECREF(done);
    if (done != NULL) PyErr_SetString(PyExc_SystemError, "codetimer: a call that had to fail did not");
    if (!PyErr_ExceptionMatches(PyExc_StopIteration)) return -1;
    int at = leave_out(function);
    PyErr_Clear();
    return at;
}

/* Another thread may come this way at the same time: it finds the same figures. */
static int keep_codes(ctpy_state *state, const ctpy_block *block) {
    const int first = find_call(block->functions[0], 0);
    const int last = first >= 0 ? find_call(block->functions[0], CTPY_BLOCK_CALLS - 1) : -1;
    if (last < 0) return -1;
    state->call_first = first;
    state->call_step = (last - first) / (CTPY_BLOCK_CALLS - 1);
    for (size_t i = CTPY_BLOCK_SIZES; i > 0; i--)
        Py_XSETREF(state->block_codes[i - 1], Py_NewRef(PyFunction_GetCode(block->functions[i - 1])));
    return 0;
}

static int open_codes(ctpy_state *state) {
    ctpy_block block = {{NULL}};
    size_t calls = CTPY_BLOCK_CALLS;
    int failed = 0;
    if (state->block_codes[0] != NULL) return 0;
    for (size_t i = 0; i < CTPY_BLOCK_SIZES && !failed; i++, calls /= 4)
        failed = (block.functions[i] = define_calls(calls)) == NULL;
    if (!failed) failed = keep_codes(state, &block) < 0;
    ctpy_block_clear(&block);
    return failed ? -1 : 0;
}

int ctpy_block_wanted(ctpy_state *state, PyObject *fn) {
    if (!PyFunction_Check(fn)) return 0;
    return open_codes(state) == 0 ? 1 : -1;
}

uint64_t ctpy_block_failed(const ctpy_state *state, PyObject *function) {
    const int at = leave_out(function);
    return at > state->call_first ? (uint64_t)(at - state->call_first) / (uint64_t)state->call_step : 0;
}

#else /* a call from C is the quickest */

int ctpy_block_wanted(ctpy_state *state, PyObject *fn) {
    (void)state, (void)fn;
    return 0;
}

uint64_t ctpy_block_failed(const ctpy_state *state, PyObject *function) {
    (void)state, (void)function;
    return 0;
}

#endif

int ctpy_block_make(PyObject *const *codes, ctpy_block *block) {
    PyObject *names = make_names();
    *block = (ctpy_block){{NULL}};
    if (names == NULL) return -1;
    int failed = 0;
    for (size_t i = 0; i < CTPY_BLOCK_SIZES && !failed; i++)
        failed = (block->functions[i] = PyFunction_New(codes[i], names)) == NULL;
    Py_DECREF(names);
    if (failed) ctpy_block_clear(block);
    return failed ? -1 : 0;
}

int ctpy_block_prepare(ctpy_state *state, PyObject *fn, ctpy_block *block) {
    *block = (ctpy_block){{NULL}};
    const int wanted = ctpy_block_wanted(state, fn);
    if (wanted <= 0) return wanted;
    return ctpy_block_make(state->block_codes, block);
}
