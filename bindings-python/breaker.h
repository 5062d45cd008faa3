/* SPDX-License-Identifier: MIT
 *
 * breaker.h: the flag that CPython sets when somebody wants something of a running thread: a signal came, another
 * thread wants the GIL, a collection (since 3.12), an exception from another thread, a stop of the world. The
 * interpreter looks at it after every call; a loop in C that does the same is as quick to answer, for the price of one
 * load. Until 3.12 only an internal header tells where the flag is; within a minor version that place does not change.
 * We never write to it.
 */
#ifndef CTPY_BREAKER_H
#define CTPY_BREAKER_H

#include "common.h"

#if PY_VERSION_HEX < 0x030d0000

#define Py_BUILD_CORE
#undef _PyGC_FINALIZED /* the header has a function of this name */
#include <internal/pycore_interp.h>
#undef Py_BUILD_CORE

static inline int ctpy_is_wanted(PyThreadState *thread) {
    return _Py_atomic_load_relaxed(&thread->interp->ceval.eval_breaker) != 0;
}

#else

/* The upper bits count changes of sys.monitoring. */
static inline int ctpy_is_wanted(PyThreadState *thread) {
    return (_Py_atomic_load_uintptr_relaxed(&thread->eval_breaker) & 0xff) != 0;
}

#endif
#endif
