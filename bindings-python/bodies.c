/* SPDX-License-Identifier: MIT
 *
 * bodies.c: what a comparison calls for each of its functions: copies of it, each by calling code of its own, and that
 * code too at the same places for all.
 */
#include "layouts.h"

/* Of each function: its code and its copies, or the calling code of one size and its copies. */
typedef struct table {
    PyObject *codes[CT_CANDIDATES_MAX + 1];
    PyObject *copies[(CT_CANDIDATES_MAX + 1) * CTPY_LAYOUTS];
} table;

static void clear(table *table) {
    for (size_t i = 0; i < (size_t)(CT_CANDIDATES_MAX + 1) * CTPY_LAYOUTS; i++) Py_CLEAR(table->copies[i]);
}

/* ---- functions ---- */

/* A new one of "code"; "before": the copy before this one. */
static PyObject *copy_function(const ctpy_state *state, PyObject *fn, PyObject *code, PyObject *before) {
    if (!ctpy_statement_check(state, fn)) return ctpy_layouts_function(fn, code);
    PyObject *inner = ctpy_statement_function(fn);
    if (before != NULL && !ctpy_statement_is_quick(fn)) return Py_NewRef(before);
    PyObject *function = ctpy_layouts_function(inner, code);
    PyObject *copy = function != NULL ? ctpy_statement_copy(fn, function) : NULL;
    Py_XDECREF(function);
    return copy;
}

static int make_functions(const ctpy_state *state, PyObject *const *fns, size_t count, const table *table,
                          ctpy_body *bodies) {
    for (size_t i = 0; i < count * CTPY_LAYOUTS; i++) {
        PyObject *fn = fns[i / CTPY_LAYOUTS], *code = table->copies[i];
        PyObject *before = i % CTPY_LAYOUTS > 0 ? bodies[i - 1].fn : NULL;
        bodies[i].fn = code != NULL ? copy_function(state, fn, code, before) : Py_NewRef(fn);
        if (bodies[i].fn == NULL) return -1;
    }
    return 0;
}

static PyObject *code_of(const ctpy_state *state, PyObject *fn) {
    return ctpy_layouts_code(state, ctpy_statement_check(state, fn) ? ctpy_statement_function(fn) : fn);
}

static int copy_functions(const ctpy_state *state, PyObject *const *fns, size_t count, table *table,
                          ctpy_body *bodies) {
    for (size_t i = 0; i < count; i++) table->codes[i] = code_of(state, fns[i]);
    if (PyErr_Occurred() || ctpy_layouts_make(table->codes, count, table->copies) < 0) return -1;
    return make_functions(state, fns, count, table, bodies);
}

/* ---- calling code ---- */

static int copy_calls(ctpy_state *state, PyObject *const *fns, size_t count, size_t size, table *table) {
    for (size_t i = 0; i < count; i++) {
        const int wanted = ctpy_block_wanted(state, fns[i]);
        if (wanted < 0) return -1;
        table->codes[i] = wanted ? state->block_codes[size] : NULL;
    }
    return ctpy_layouts_make(table->codes, count, table->copies);
}

static int make_blocks(size_t count, const table *tables, ctpy_body *bodies) {
    for (size_t i = 0; i < count * CTPY_LAYOUTS; i++) {
        PyObject *codes[CTPY_BLOCK_SIZES];
        for (size_t size = 0; size < CTPY_BLOCK_SIZES; size++) codes[size] = tables[size].copies[i];
        if (codes[0] != NULL && ctpy_block_make(codes, &bodies[i].block) < 0) return -1;
    }
    return 0;
}

static int make(ctpy_state *state, PyObject *const *fns, size_t count, table *tables, ctpy_body *bodies) {
    for (size_t size = 0; size < CTPY_BLOCK_SIZES; size++)
        if (copy_calls(state, fns, count, size, &tables[size]) < 0) return -1;
    if (make_blocks(count, tables, bodies) < 0) return -1;
    return copy_functions(state, fns, count, &tables[CTPY_BLOCK_SIZES], bodies);
}

int ctpy_bodies_make(ctpy_state *state, PyObject *const *fns, size_t count, ctpy_body *bodies) {
    table *tables = PyMem_Calloc(CTPY_BLOCK_SIZES + 1, sizeof *tables);
    if (tables == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    const int status = make(state, fns, count, tables, bodies);
    for (size_t i = 0; i < CTPY_BLOCK_SIZES + 1; i++) clear(&tables[i]);
    PyMem_Free(tables);
    return status;
}

void ctpy_bodies_clear(ctpy_body *bodies, size_t count) {
    for (size_t i = 0; i < count * CTPY_LAYOUTS; i++) {
        Py_CLEAR(bodies[i].fn);
        ctpy_block_clear(&bodies[i].block);
    }
}
