/* SPDX-License-Identifier: MIT
 *
 * loop.c: the calls of a run, as near to nothing else as CPython allows.
 *
 * The vectorcall pointer is read once, so a call costs one indirect jump; Python functions are called by block.c.
 * Signals and, since CPython 3.12, garbage collections reach a C callable only at a safe point (PyErr_CheckSignals), as
 * they do between the iterations of a plain loop; ours is passed inside the clock, because the work done there belongs
 * to the calls. It costs a few nanoseconds, so it comes often enough that collections happen as in a plain loop and
 * Ctrl-C arrives at once, and no oftener: see choose_stride. The GIL is given up between chunks only, outside the
 * clock.
 */
#include "common.h"

/* Most calls between two safe points. */
#define STRIDE_MAX CTPY_BLOCK_CALLS

/* Calls between two questions whether the chunk is due. Each reads the clock: 0.1 ns a call. */
#define ASK_EVERY 256

/* A C callable passes a safe point about every 300 ns: 3 % of its time, and less than 20 objects allocated between two.
 */
#define SAFE_POINT_NS 300

typedef struct call_loop {
    ct_run *run;
    PyObject *fn;
    PyObject *block; /* or NULL */
    vectorcallfunc call;
    PyThreadState *thread;
    uint64_t stride;
    int failed; /* an exception is set */
} call_loop;

/* For callables that have no vectorcall pointer. */
static PyObject *call_without_vectorcall(PyObject *fn, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    (void)args, (void)nargsf, (void)kwnames;
    return PyObject_CallNoArgs(fn);
}

/* PyErr_Occurred() without a call: read after every call of fn. */
static inline int has_exception(const PyThreadState *thread) {
#if PY_VERSION_HEX >= 0x030c0000
    return thread->current_exception != NULL;
#else
    return thread->curexc_type != NULL;
#endif
}

/* The protocol of a C callable broken: an exception with a result, or neither. CPython says SystemError. */
static void report_broken_callable(PyObject *fn, PyObject *result) {
    if (result == NULL) {
        if (!PyErr_Occurred()) PyErr_Format(PyExc_SystemError, "%R returned NULL without setting an exception", fn);
        return;
    }
    Py_DECREF(result);
    PyObject *type, *cause, *traceback;
    PyErr_Fetch(&type, &cause, &traceback);
    PyErr_NormalizeException(&type, &cause, &traceback);
    PyErr_Format(PyExc_SystemError, "%R returned a result with an exception set", fn);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    PyObject *error_type, *error, *error_traceback;
    PyErr_Fetch(&error_type, &error, &error_traceback);
    PyErr_NormalizeException(&error_type, &error, &error_traceback);
    if (error != NULL && cause != NULL) PyException_SetCause(error, Py_NewRef(cause));
    Py_XDECREF(cause);
    PyErr_Restore(error_type, error, error_traceback);
}

/* "k" calls. Returns the calls completed. */
static uint64_t call_each(call_loop *loop, uint64_t k) {
    PyObject *const fn = loop->fn;
    const vectorcallfunc call = loop->call;
    const PyThreadState *const thread = loop->thread;
    for (uint64_t made = 0; made < k; made++) {
        PyObject *result = call(fn, NULL, 0, NULL);
        if (result == NULL || has_exception(thread)) {
            report_broken_callable(fn, result);
            loop->failed = 1;
            return made;
        }
        Py_DECREF(result);
    }
    return k;
}

static uint64_t call_block(call_loop *loop) {
    PyObject *done = PyObject_CallOneArg(loop->block, loop->fn);
    Py_XDECREF(done);
    if (done != NULL) return CTPY_BLOCK_CALLS;
    loop->failed = 1;
    return ctpy_block_failed(loop->block);
}

/* "k" calls and a safe point. Returns the calls completed. */
static uint64_t call_stride(call_loop *loop, uint64_t k) {
    uint64_t made = loop->block != NULL && k == CTPY_BLOCK_CALLS ? call_block(loop) : call_each(loop, k);
    if (!loop->failed) loop->failed = PyErr_CheckSignals() < 0;
    return made;
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Up to "k" calls, fewer after an exception or when the chunk has lasted long enough. Returns the calls completed. */
static uint64_t call_chunk(call_loop *loop, uint64_t k) {
    uint64_t made = 0, asked = 0;
    while (made < k && !loop->failed) {
        made += call_stride(loop, least(k - made, loop->stride));
        if (made - asked < ASK_EVERY || made == k || loop->failed) continue;
        if (ct_time_due(loop->run)) break;
        asked = made;
    }
    return made;
}

/* A Python function polls by itself each time it is entered, others depend on us. */
static uint64_t choose_stride(const call_loop *loop, uint64_t calls, uint64_t spent_ns) {
    if (PyFunction_Check(loop->fn) || spent_ns == 0) return STRIDE_MAX;
    const double stride = (double)calls * SAFE_POINT_NS / (double)spent_ns;
    if (stride < 1) return 1;
    return stride < STRIDE_MAX ? (uint64_t)stride : STRIDE_MAX;
}

static void let_others_in(void) {
    Py_BEGIN_ALLOW_THREADS;
    Py_END_ALLOW_THREADS;
}

int ctpy_loop(ct_run *run, PyObject *fn, PyObject *block) {
    const vectorcallfunc call = PyVectorcall_Function(fn);
    call_loop loop = {run, fn, block, call != NULL ? call : call_without_vectorcall, PyThreadState_Get(), 1, 0};
    uint64_t k;
    while (!loop.failed && ct_time_next(run, &k)) {
        const uint64_t began_ns = ct_now_ns();
        const uint64_t made = call_chunk(&loop, k);
        const int pause = ct_time_done(run, made);
        loop.stride = choose_stride(&loop, made, ct_now_ns() - began_ns);
        if (pause && !loop.failed) let_others_in();
    }
    return loop.failed ? -1 : 0;
}
