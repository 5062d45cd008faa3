/* SPDX-License-Identifier: MIT
 *
 * program.h: how codetimer run runs a program. For the package alone; the functions have no public name.
 *
 * The first four run a program in __main__, as sys.modules has it, to its end and that of the process. They return only
 * where nothing has run: NULL with an exception. To be called on the main thread.
 */
#ifndef CTPY_PROGRAM_H
#define CTPY_PROGRAM_H

#include "common.h"

/* _run_file(path): a script, also a .pyc. OSError where it cannot be opened. */
PyObject *ctpy_run_file(PyObject *module, PyObject *path);

/* _run_stdin(): what standard input has, until its end. */
PyObject *ctpy_run_stdin(PyObject *module, PyObject *ignored);

/* _run_code(code, names): code that was a script. */
PyObject *ctpy_run_code(PyObject *module, PyObject *args);

/* _run_call(fn, *args): what fn(*args) runs. */
PyObject *ctpy_run_call(PyObject *module, PyObject *args);

/* _and_change(function, change): calls function, and returns change(result) of what it returns. It makes no frame, so
 * that the traceback of what function raises is what it was. */
PyObject *ctpy_and_change(PyObject *module, PyObject *args);

/* _untraced(fn): calls fn with one argument; profilers, debuggers and coverage are not told of what runs there. */
PyObject *ctpy_untraced(PyObject *module, PyObject *fn);

#endif
