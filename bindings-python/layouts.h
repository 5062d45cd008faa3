/* SPDX-License-Identifier: MIT
 *
 * layouts.h: the same code at several places in memory.
 */
#ifndef CTPY_LAYOUTS_H
#define CTPY_LAYOUTS_H

#include "running.h"

enum { CTPY_LAYOUTS = 16 };

/* What is called in turn for each of "count" functions: bodies[i * CTPY_LAYOUTS ...]. Returns 0, or -1 with an
 * exception; ctpy_bodies_clear is due in either case. */
int ctpy_bodies_make(ctpy_state *state, PyObject *const *fns, size_t count, ctpy_body *bodies);
void ctpy_bodies_clear(ctpy_body *bodies, size_t count);

/* Copies of each of "count" codes, CTPY_LAYOUTS of each, into copies[i * CTPY_LAYOUTS ...]: those of the same number
 * lie at the same place within a page, as far as it can be had. NULL in "codes" has none. Returns 0, or -1 with an
 * exception; what is in "copies" is owned in either case. */
int ctpy_layouts_make(PyObject *const *codes, size_t count, PyObject **copies);

/* The code of "fn" if copies of it are the same to all who can tell; NULL without an exception if not, or with one. */
PyObject *ctpy_layouts_code(const ctpy_state *state, PyObject *fn);

/* A function as "fn" (a Python function), but of "code". */
PyObject *ctpy_layouts_function(PyObject *fn, PyObject *code);

#endif
