/* SPDX-License-Identifier: MIT
 *
 * loop.c: the calls of a run, as near to nothing else as CPython allows.
 *
 * The vectorcall pointer is read once, so a call costs one indirect jump; Python functions are called by block.c. After
 * each call we look at the flag of breaker.h, as a plain loop does, so that a callable may turn slow at any call and
 * still nobody waits longer than for that call. Signals and, since CPython 3.12, collections are then seen to inside
 * the clock (PyErr_CheckSignals), because that work belongs to the calls. For all else the chunk is cut short, and the
 * safe point passed outside the clock: it gives up the GIL to who has asked for it. It is a call of an empty Python
 * function, since nothing in the C API delivers the exceptions of other threads (PyThreadState_SetAsyncExc) or takes
 * the flag back.
 *
 * Python functions pass the safe point by themselves when they are entered, inside the clock. To have the GIL go
 * outside of it all the same, it is offered in each pause. With other callables it is not: an offer that comes just
 * before the others' patience ends (5 ms) starts their waiting anew, so that they might never ask.
 */
#include "breaker.h"
#include "running.h"

/* Calls between two questions whether the chunk is due, while nobody wants anything. Each reads the clock: 0.1 ns a
 * call. */
#define ASK_EVERY 256

typedef struct call_loop {
    ctpy_state *state;
    ct_run *run;
    const ctpy_body *body;
    vectorcallfunc call;
    PyThreadState *thread;
    int is_statement;
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

/* Up to "k" calls, fewer after an exception or when somebody wants something. Returns the calls completed. */
static uint64_t call_each(call_loop *loop, uint64_t k) {
    PyObject *const fn = loop->body->fn;
    const vectorcallfunc call = loop->call;
    PyThreadState *const thread = loop->thread;
    uint64_t made = 0;
    while (made < k) {
        PyObject *result = call(fn, NULL, 0, NULL);
        if (result == NULL || has_exception(thread)) {
            report_broken_callable(fn, result);
            loop->failed = 1;
            return made;
        }
        Py_DECREF(result);
        made++;
        if (ctpy_is_wanted(thread)) break;
    }
    return made;
}

/* By "function" of a block, which makes "k" calls. */
static uint64_t call_by(call_loop *loop, PyObject *function, uint64_t k) {
    PyObject *done = PyObject_CallOneArg(function, loop->body->fn);
    Py_XDECREF(done);
    if (done != NULL) return k;
    loop->failed = 1;
    return ctpy_block_failed(loop->state, function);
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t call_some(call_loop *loop, uint64_t k) {
    PyObject *const *functions = loop->body->block.functions;
    uint64_t calls = CTPY_BLOCK_CALLS;
    if (loop->is_statement) return ctpy_statement_run(loop->body->fn, least(k, ASK_EVERY), &loop->failed);
    if (*functions == NULL) return call_each(loop, least(k, ASK_EVERY));
    for (; calls > k; calls /= 4) functions++;
    return call_by(loop, *functions, calls);
}

/* Does what is wanted as far as it belongs into the clock. Returns 1 when the chunk is to end for the rest. */
static int attend(call_loop *loop) {
    loop->failed = PyErr_CheckSignals() < 0;
    if (loop->failed || !ctpy_is_wanted(loop->thread)) return loop->failed;
    ct_time_cut(loop->run);
    return 1;
}

/* Up to "k" calls, fewer after an exception or when the chunk is due. Returns the calls completed. */
static uint64_t call_chunk(call_loop *loop, uint64_t k) {
    uint64_t made = 0, asked = 0;
    while (made < k) {
        made += call_some(loop, k - made);
        if (loop->failed || (ctpy_is_wanted(loop->thread) && attend(loop))) break;
        if (made - asked < ASK_EVERY || made == k) continue;
        if (ct_time_due(loop->run)) break;
        asked = made;
    }
    return made;
}

/* Between two chunks. */
static void let_others_in(call_loop *loop, int pause) {
    if (pause) ctpy_offer_gil(loop->body->fn);
    if (ctpy_is_wanted(loop->thread)) loop->failed = ctpy_safe_point(loop->state) < 0;
}

void ctpy_offer_gil(PyObject *fn) {
    if (!PyFunction_Check(fn)) return;
    Py_BEGIN_ALLOW_THREADS;
    Py_END_ALLOW_THREADS;
}

static void make_chunk(call_loop *loop, uint64_t k) {
    const uint64_t made = call_chunk(loop, k);
    const int pause = ct_time_done(loop->run, made);
    if (!loop->failed) let_others_in(loop, pause);
    if (!loop->failed && pause && loop->body->progress != NULL)
        loop->failed = ctpy_progress_tell(loop->body->progress, ct_time_progress(loop->run),
                                          ct_time_per_call_ns(loop->run)) < 0;
}

int ctpy_loop(ctpy_state *state, ct_run *run, const ctpy_body *body) {
    const vectorcallfunc call = PyVectorcall_Function(body->fn);
    call_loop loop = {state, run, body, call != NULL ? call : call_without_vectorcall, PyThreadState_Get(),
                      ctpy_statement_check(state, body->fn), 0};
    uint64_t k;
    int what;
    while (!loop.failed && (what = ct_time_next(run, &k)) != 0) {
        if (what == CT_WARM) {
            loop.failed = body->gc != NULL && ctpy_gc_begin(body->gc) < 0;
        } else {
            make_chunk(&loop, k);
        }
    }
    return loop.failed ? -1 : 0;
}

/* ---- progress ---- */

static const uint64_t tell_every_ns = 100000000;

int ctpy_progress_tell(ctpy_progress *progress, double part, double per_call_ns) {
    const uint64_t now_ns = ct_now_ns();
    if (progress->callback == NULL || now_ns < progress->next_ns) return 0;
    progress->next_ns = now_ns + tell_every_ns;
    PyObject *told = PyObject_CallFunction(progress->callback, "dd", part, per_call_ns);
    Py_XDECREF(told);
    return told != NULL ? 0 : -1;
}
