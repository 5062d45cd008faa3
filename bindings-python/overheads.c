/* SPDX-License-Identifier: MIT
 *
 * overheads.c: what empty calls take in this process: a comparison of the two kinds of callables that the loop knows.
 *
 * They are measured once, at the first question, in turns with each other and by the loop that all runs use, so that
 * they are what is in every figure beside the body. An empty call takes more or less time by where its code happens to
 * lie; the comparison goes through several such places, and what an empty call takes is what its batches took, from the
 * least up to those that count as outliers.
 */
#include <string.h>

#include "running.h"

static const uint64_t budget_ns = 20000000;

/* Where the machine was busy with something else all the time, it is asked again, with twice the budget each time. */
enum { ATTEMPTS = 4, BATCHES_LEAST = 20 };

enum { C_FUNCTION, PYTHON_FUNCTION };

static const char *const labels[CTPY_OVERHEADS] = {"empty C function", "empty Python function"};

static PyObject *do_nothing(PyObject *self, PyObject *ignored) {
    (void)self, (void)ignored;
    Py_RETURN_NONE;
}

static PyMethodDef empty = {"empty", do_nothing, METH_NOARGS, NULL};

/* The safe point's function is an empty one; a copy of it is no other run's. */
static PyObject *make_function(const ctpy_state *state) {
    PyObject *code = PyObject_CallMethod(PyFunction_GetCode(state->safe_point), "replace", NULL);
    PyObject *function = code != NULL ? PyFunction_New(code, PyFunction_GetGlobals(state->safe_point)) : NULL;
    Py_XDECREF(code);
    return function;
}

static int prepare(const ctpy_state *state, ctpy_candidate *candidates) {
    candidates[C_FUNCTION].fn = PyCFunction_New(&empty, NULL);
    candidates[PYTHON_FUNCTION].fn = make_function(state);
    for (size_t i = 0; i < CTPY_OVERHEADS; i++) {
        candidates[i].encoded = PyBytes_FromString(labels[i]);
        if (candidates[i].fn == NULL || candidates[i].encoded == NULL) return -1;
    }
    return 0;
}

/* Up to where outliers begin (Tukey), or a tenth more: so much the place of one function can make. */
static double find_high(const ct_result *result) {
    const double fence = 1.5 * (result->q3_ns - result->q1_ns), tenth = 0.1 * result->q3_ns;
    return result->q3_ns + (fence > tenth ? fence : tenth);
}

static void keep(ctpy_state *state, const ct_comparison *comparison) {
    for (size_t i = 0; i < CTPY_OVERHEADS; i++) {
        const ct_result *result = comparison->results[i];
        if (!result->interval_known || result->batches < BATCHES_LEAST) return;
        state->overheads[i] = (ct_overhead){labels[i], result->min_ns, find_high(result)};
    }
    state->overheads_known = 1;
}

static int measure(ctpy_state *state, ctpy_candidate *candidates, uint64_t within_ns) {
    ctpy_rounds rounds = {.state = state, .candidates = candidates, .count = CTPY_OVERHEADS};
    ct_comparison *comparison = NULL;
    int failed = ctpy_rounds_begin(&rounds, within_ns) < 0 || ctpy_rounds_run(&rounds) < 0;
    if (!failed) {
        if (ct_compare_end(rounds.compare, NULL, NULL, &comparison) == CT_OK) keep(state, comparison);
        rounds.compare = NULL;
        ct_comparison_free(comparison);
    }
    ctpy_rounds_clear(&rounds);
    return failed ? -1 : 0;
}

static int learn(ctpy_state *state) {
    ctpy_candidate candidates[CTPY_OVERHEADS];
    memset(candidates, 0, sizeof candidates);
    int failed = prepare(state, candidates) < 0;
    for (int i = 0; i < ATTEMPTS && !failed && !state->overheads_known; i++)
        failed = measure(state, candidates, budget_ns << i) < 0;
    for (size_t i = 0; i < CTPY_OVERHEADS; i++) {
        Py_XDECREF(candidates[i].fn);
        Py_XDECREF(candidates[i].encoded);
    }
    return failed ? -1 : 0;
}

int ctpy_overheads(ctpy_state *state, int is_python, ct_overhead overheads[CTPY_OVERHEADS], size_t *count) {
    *count = 0;
    if (!state->overheads_known && learn(state) < 0) return -1;
    if (!state->overheads_known) return 0;
    overheads[0] = state->overheads[is_python ? PYTHON_FUNCTION : C_FUNCTION];
    overheads[1] = state->overheads[is_python ? C_FUNCTION : PYTHON_FUNCTION];
    *count = CTPY_OVERHEADS;
    return 0;
}

int ctpy_overheads_of(ctpy_state *state, PyObject *fn, ct_overhead overheads[CTPY_OVERHEADS], size_t *count) {
    if (!ctpy_statement_check(state, fn)) return ctpy_overheads(state, PyFunction_Check(fn), overheads, count);
    ctpy_statement_overhead(fn, overheads, count);
    return 0;
}
