/* SPDX-License-Identifier: MIT
 *
 * underway.h: the objects that stand in place of what a measured coroutine, generator or async generator function
 * returns.
 */
#ifndef CTPY_UNDERWAY_H
#define CTPY_UNDERWAY_H

#include "measured.h"

/* A call that can be suspended. It counts from its first slice to its last; a slice is the time between its being
 * resumed and its being suspended. */
typedef struct ctpy_underway {
    PyObject_HEAD PyObject *inner; /* what the function returned; None when this was cleared */
    PyObject *measured;            /* the stand-in of the function, which keeps the counter */
    ct_counter *counter;
    ctpy_state *state; /* lives as long as the type */
    PyObject *weak;
    ct_token token;
    ct_active active;
    int stage;   /* CTPY_CREATED, CTPY_STARTED, CTPY_ENDED */
    int running; /* in a slice: whoever resumes it now is refused by "inner", and that is no end */
} ctpy_underway;

enum { CTPY_CREATED, CTPY_STARTED, CTPY_ENDED };

/* How a slice ended: as CT_RETURNED, CT_FAILED, CT_CANCELLED, or in another suspension. */
enum { CTPY_SUSPENDED = -1 };

/* ---- underway.c ---- */

/* A stand-in for what a call of "measured" returned, which it steals; "made" itself where that cannot be suspended: if
 * "start" (of ct_now_ns) is not 0, it counts as a call that began then. NULL with an exception if "made" is NULL. */
PyObject *ctpy_underway_new(ctpy_state *state, PyObject *measured, ct_counter *counter, PyObject *made, uint64_t start);

/* Around a slice. "starts": whether the slice, as the first, starts the call. Returns whether it is measured, and only
 * then it is ended. */
int ctpy_slice_begin(ctpy_underway *call, int starts);
void ctpy_slice_end(ctpy_underway *call, int outcome);

/* After a slice that was not measured: it may have ended a call that never started. */
void ctpy_slice_passed(ctpy_underway *call);

/* How the slice ended that raised the exception that is set, which stays set. */
int ctpy_slice_judge(ctpy_underway *call);

/* Whether the coroutine or generator has come to its end. An exception that is set stays set. */
int ctpy_has_ended(const ctpy_underway *call);

/* Slots and methods of the types. */
PySendResult ctpy_underway_send(PyObject *call, PyObject *value, PyObject **result);
PyObject *ctpy_underway_next(PyObject *call);
PyObject *ctpy_underway_send_method(PyObject *call, PyObject *value);
PyObject *ctpy_underway_throw(PyObject *call, PyObject *const *args, Py_ssize_t count);
PyObject *ctpy_underway_close(PyObject *call, PyObject *ignored);
PyObject *ctpy_underway_reduce(PyObject *call, PyObject *const *args, Py_ssize_t count);
PyObject *ctpy_underway_repr(PyObject *call);
PyObject *ctpy_underway_compare(PyObject *call, PyObject *other, int operation);
Py_hash_t ctpy_underway_hash(PyObject *call);
PyObject *ctpy_underway_attribute(PyObject *call, PyObject *name);
int ctpy_underway_set_attribute(PyObject *call, PyObject *name, PyObject *value);
int ctpy_underway_visit(PyObject *call, visitproc visit, void *arg);
int ctpy_underway_clear(PyObject *call);
void ctpy_underway_free(PyObject *call);

/* clang-format off */
#define CTPY_UNDERWAY_SLOTS                                          \
    {Py_tp_dealloc, CTPY_SLOT(ctpy_underway_free)},                  \
    {Py_tp_traverse, CTPY_SLOT(ctpy_underway_visit)},                \
    {Py_tp_clear, CTPY_SLOT(ctpy_underway_clear)},                   \
    {Py_tp_getattro, CTPY_SLOT(ctpy_underway_attribute)},            \
    {Py_tp_setattro, CTPY_SLOT(ctpy_underway_set_attribute)},        \
    {Py_tp_richcompare, CTPY_SLOT(ctpy_underway_compare)},           \
    {Py_tp_hash, CTPY_SLOT(ctpy_underway_hash)},                     \
    {Py_tp_repr, CTPY_SLOT(ctpy_underway_repr)}
/* clang-format on */

#define CTPY_UNDERWAY_FLAGS                                                                                            \
    (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION)

/* What next and send return for the outcome of am_send: the value, or NULL with StopIteration (of which a bare NULL is
 * the short form in tp_iternext). Steals "result". */
PyObject *ctpy_sent_next(PySendResult sent, PyObject *result);
PyObject *ctpy_sent(PySendResult sent, PyObject *result);

/* object.name(*args) */
PyObject *ctpy_call_method(PyObject *object, const char *name, PyObject *const *args, Py_ssize_t count);

/* An attribute of "object", whose type has few of its own: all others are those of "inner". */
PyObject *ctpy_forward_attribute(PyObject *object, PyObject *inner, PyObject *name);

/* ---- awaiting.c, asyncgen.c: the types ---- */

extern PyType_Spec ctpy_coroutine_spec;
extern PyType_Spec ctpy_generator_spec;
extern PyType_Spec ctpy_generator_coroutine_spec;
extern PyType_Spec ctpy_async_generator_spec;
extern PyType_Spec ctpy_step_spec;

int ctpy_underway_add_types(PyObject *module, ctpy_state *state);

/* What runs a call a step further: steals "inner", what its __await__, asend, athrow or aclose returned, and returns
 * that itself where there is no memory. "starts": whether it can start the call. "outcome": what it means that a step
 * returns: CTPY_SUSPENDED, CT_RETURNED, CT_CANCELLED. */
PyObject *ctpy_step_new(ctpy_underway *call, PyObject *inner, int starts, int outcome);

#endif
