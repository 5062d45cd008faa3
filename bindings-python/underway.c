/* SPDX-License-Identifier: MIT
 *
 * underway.c: a measured call that can be suspended: what all its stand-ins have in common.
 *
 * The stand-in hands everything on to the coroutine or generator it is around, between two readings of the clock where
 * that makes it run. A call is entered with its first slice and left with its last, so what never starts is never
 * counted. It ends by returning, by an exception, or by being closed or thrown away half way, which counts as
 * cancelled. Whatever says nothing about the call (a wrong argument, an attempt to resume what runs) is no end of it.
 */
#include "underway.h"

/* ---- slices ---- */

static void leave(ctpy_underway *call, int outcome) {
    call->stage = CTPY_ENDED;
    if (call->state->trace_increments) {
        ctpy_leave_active_traced(call->state, call->counter, &call->token, &call->active, outcome);
    } else {
        ct_leave_active(call->counter, &call->token, &call->active, outcome);
    }
}

int ctpy_slice_begin(ctpy_underway *call, int starts) {
    if (call->running || call->stage == CTPY_ENDED || (call->stage == CTPY_CREATED && !starts)) return 0;
    if (call->stage == CTPY_CREATED) {
        ct_enter(call->counter, &call->token);
        call->stage = CTPY_STARTED;
    }
    call->running = 1;
    ct_active_resume(&call->token, &call->active);
    return 1;
}

void ctpy_slice_end(ctpy_underway *call, int outcome) {
    ct_active_suspend(&call->token, &call->active);
    call->running = 0;
    if (outcome != CTPY_SUSPENDED) leave(call, outcome);
}

void ctpy_slice_passed(ctpy_underway *call) {
    if (call->stage == CTPY_CREATED && !call->running && ctpy_has_ended(call)) call->stage = CTPY_ENDED;
}

/* ---- ends ---- */

/* What has no frame any more has ended; what cannot tell has it when it raises. */
int ctpy_has_ended(const ctpy_underway *call) {
    static const char *const names[] = {"cr_frame", "gi_frame", "gi_frame", "ag_frame"};
    PyObject *type, *value, *traceback, *frame = NULL;
    PyErr_Fetch(&type, &value, &traceback);
    for (size_t i = 0; i < CTPY_STEP && frame == NULL; i++) {
        if (!Py_IS_TYPE(call, call->state->underway_types[i])) continue;
        frame = PyObject_GetAttrString(call->inner, names[i]);
    }
    const int ended = frame == NULL || frame == Py_None;
    Py_XDECREF(frame);
    PyErr_Restore(type, value, traceback); /* also drops what asking may have raised */
    return ended;
}

int ctpy_slice_judge(ctpy_underway *call) {
    if (!ctpy_has_ended(call)) return CTPY_SUSPENDED;
    const int is_async = Py_IS_TYPE(call, call->state->underway_types[CTPY_ASYNC_GENERATOR]);
    PyObject *end = is_async ? PyExc_StopAsyncIteration : PyExc_StopIteration;
    return PyErr_ExceptionMatches(end) ? CT_RETURNED : ctpy_judge_raised();
}

/* ---- what makes it run ---- */

PySendResult ctpy_underway_send(PyObject *object, PyObject *value, PyObject **result) {
    ctpy_underway *call = (ctpy_underway *)object;
    if (!ctpy_slice_begin(call, value == Py_None)) return PyIter_Send(call->inner, value, result);
    Py_INCREF(object);
    const PySendResult sent = PyIter_Send(call->inner, value, result);
    const int outcome = sent == PYGEN_NEXT ? CTPY_SUSPENDED : sent == PYGEN_RETURN ? CT_RETURNED : ctpy_judge_raised();
    ctpy_slice_end(call, outcome);
    Py_DECREF(object);
    return sent;
}

PyObject *ctpy_call_method(PyObject *object, const char *name, PyObject *const *args, Py_ssize_t count) {
    PyObject *method = PyObject_GetAttrString(object, name);
    PyObject *result = method != NULL ? PyObject_Vectorcall(method, args, (size_t)count, NULL) : NULL;
    Py_XDECREF(method);
    return result;
}

PyObject *ctpy_underway_throw(PyObject *object, PyObject *const *args, Py_ssize_t count) {
    ctpy_underway *call = (ctpy_underway *)object;
    const int measured = ctpy_slice_begin(call, 0);
    Py_INCREF(object);
    PyObject *result = ctpy_call_method(call->inner, "throw", args, count);
    if (measured) ctpy_slice_end(call, result != NULL ? CTPY_SUSPENDED : ctpy_slice_judge(call));
    if (!measured) ctpy_slice_passed(call);
    Py_DECREF(object);
    return result;
}

PyObject *ctpy_underway_close(PyObject *object, PyObject *ignored) {
    (void)ignored;
    ctpy_underway *call = (ctpy_underway *)object;
    const int measured = ctpy_slice_begin(call, 0);
    Py_INCREF(object);
    PyObject *result = ctpy_call_method(call->inner, "close", NULL, 0);
    if (measured) ctpy_slice_end(call, result != NULL ? CT_CANCELLED : ctpy_slice_judge(call));
    if (!measured) ctpy_slice_passed(call);
    Py_DECREF(object);
    return result;
}

/* ---- what it returns ---- */

/* Of some values StopIteration would make its arguments, or itself. */
static void set_stop(PyObject *value) {
    if (!PyTuple_Check(value) && !PyExceptionInstance_Check(value)) {
        PyErr_SetObject(PyExc_StopIteration, value);
        return;
    }
    PyObject *stop = PyObject_CallOneArg(PyExc_StopIteration, value);
    if (stop != NULL) PyErr_SetObject(PyExc_StopIteration, stop);
    Py_XDECREF(stop);
}

PyObject *ctpy_sent_next(PySendResult sent, PyObject *result) {
    if (sent != PYGEN_RETURN) return result;
    if (result != Py_None) set_stop(result);
    Py_DECREF(result);
    return NULL;
}

PyObject *ctpy_sent(PySendResult sent, PyObject *result) {
    if (sent == PYGEN_RETURN && result == Py_None) PyErr_SetNone(PyExc_StopIteration);
    return ctpy_sent_next(sent, result);
}

PyObject *ctpy_underway_next(PyObject *object) {
    PyObject *result = NULL;
    const PySendResult sent = ctpy_underway_send(object, Py_None, &result);
    return ctpy_sent_next(sent, result);
}

PyObject *ctpy_underway_send_method(PyObject *object, PyObject *value) {
    PyObject *result = NULL;
    const PySendResult sent = ctpy_underway_send(object, value, &result);
    return ctpy_sent(sent, result);
}

/* ---- making and ending ---- */

static int is_coroutine_of_old(PyObject *generator) {
#if PY_VERSION_HEX >= 0x030c0000
    PyCodeObject *code = PyGen_GetCode((PyGenObject *)generator);
    const int flags = code->co_flags;
    Py_DECREF(code);
    return (flags & CO_ITERABLE_COROUTINE) != 0;
#else
    return (((PyCodeObject *)((PyGenObject *)generator)->gi_code)->co_flags & CO_ITERABLE_COROUTINE) != 0;
#endif
}

/* Borrowed; NULL where there is none for it. What is measured under another name too has a stand-in around its
 * stand-in. */
static PyTypeObject *choose_type(ctpy_state *state, PyObject *made) {
    PyTypeObject **types = state->underway_types;
    if (PyCoro_CheckExact(made)) return types[CTPY_COROUTINE];
    if (PyGen_CheckExact(made)) return types[is_coroutine_of_old(made) ? CTPY_GENERATOR_COROUTINE : CTPY_GENERATOR];
    if (PyAsyncGen_CheckExact(made)) return types[CTPY_ASYNC_GENERATOR];
    for (size_t i = 0; i < CTPY_STEP; i++)
        if (Py_IS_TYPE(made, types[i])) return types[i];
    return NULL;
}

static void tell_uncounted(ctpy_state *state, PyObject *measured) {
    if (state->told_uncounted) return;
    state->told_uncounted = 1;
    ctpy_trace(state, CTPY_WARNING,
               "not counted: calls of %s that return what can be awaited and is no coroutine. This is said once",
               measured);
}

/* A function that only sometimes returns a coroutine has returned something else, or failed. */
static void count_plain(ctpy_state *state, PyObject *measured, ct_counter *counter, PyObject *made, uint64_t start) {
    const uint64_t duration_ns = ct_now_ns() - start;
    const PyAsyncMethods *methods = made != NULL ? Py_TYPE(made)->tp_as_async : NULL;
    if (methods != NULL && methods->am_await != NULL) {
        tell_uncounted(state, measured);
        return;
    }
    const int outcome = made != NULL ? CT_RETURNED : ctpy_judge_raised();
    if (state->trace_increments) {
        ctpy_record_traced(state, counter, duration_ns, outcome);
    } else {
        ct_counter_record(counter, duration_ns, outcome);
    }
}

PyObject *ctpy_underway_new(ctpy_state *state, PyObject *measured, ct_counter *counter, PyObject *made,
                            uint64_t start) {
    PyTypeObject *type = made != NULL ? choose_type(state, made) : NULL;
    if (type == NULL && start != 0) count_plain(state, measured, counter, made, start);
    if (type == NULL) return made;
    ctpy_underway *call = (ctpy_underway *)type->tp_alloc(type, 0);
    if (call == NULL) (void)ctpy_go_unmeasured(state, measured);
    if (call == NULL) return made;
    call->inner = made;
    call->measured = Py_NewRef(measured);
    call->counter = counter;
    call->state = state;
    return (PyObject *)call;
}

int ctpy_underway_visit(PyObject *object, visitproc visit, void *arg) {
    ctpy_underway *call = (ctpy_underway *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(call->inner);
    Py_VISIT(call->measured);
    return 0;
}

/* A generator that nobody wants any more closes itself, which is its last slice. */
int ctpy_underway_clear(PyObject *object) {
    ctpy_underway *call = (ctpy_underway *)object;
    const int measured = ctpy_slice_begin(call, 0);
    PyObject *inner = call->inner;
    call->inner = Py_NewRef(Py_None);
    Py_XDECREF(inner);
    if (measured) ctpy_slice_end(call, CT_CANCELLED);
    return 0;
}

static void free_now(PyObject *object) {
    ctpy_underway *call = (ctpy_underway *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (call->weak != NULL) PyObject_ClearWeakRefs(object);
    (void)ctpy_underway_clear(object);
    Py_DECREF(call->inner);
    Py_XDECREF(call->measured);
    type->tp_free(object);
    Py_DECREF(type);
}

/* Generators that hold each other may be a long chain: the trashcan keeps it from using up the stack. */
void ctpy_underway_free(PyObject *object) {
    PyObject_GC_UnTrack(object);
    Py_TRASHCAN_BEGIN(object, ctpy_underway_free)
    free_now(object);
    Py_TRASHCAN_END
}

/* ---- attributes ---- */

/* What every type has, and says nothing about its objects. */
static int is_of_type(PyObject *name) {
    return PyUnicode_CompareWithASCIIString(name, "__doc__") == 0 ||
           PyUnicode_CompareWithASCIIString(name, "__module__") == 0;
}

PyObject *ctpy_forward_attribute(PyObject *object, PyObject *inner, PyObject *name) {
    PyObject *own = PyUnicode_Check(name) ? PyDict_GetItemWithError(Py_TYPE(object)->tp_dict, name) : NULL;
    if (own == NULL && PyErr_Occurred()) return NULL;
    return own != NULL && !is_of_type(name) ? PyObject_GenericGetAttr(object, name) : PyObject_GetAttr(inner, name);
}

PyObject *ctpy_underway_attribute(PyObject *object, PyObject *name) {
    return ctpy_forward_attribute(object, ((ctpy_underway *)object)->inner, name);
}

/* Also deletes: "value" is NULL then. */
int ctpy_underway_set_attribute(PyObject *object, PyObject *name, PyObject *value) {
    return PyObject_SetAttr(((ctpy_underway *)object)->inner, name, value);
}

/* It is equal to what it stands in for, which hooks and tools may have got hold of. */
PyObject *ctpy_underway_compare(PyObject *object, PyObject *other, int operation) {
    if (operation != Py_EQ && operation != Py_NE) Py_RETURN_NOTIMPLEMENTED;
    PyObject *inner = ((ctpy_underway *)object)->inner;
    int same = object == other || inner == other;
    if (!same && Py_IS_TYPE(other, Py_TYPE(object))) same = inner == ((ctpy_underway *)other)->inner;
    if (!same) Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong(operation == Py_EQ);
}

Py_hash_t ctpy_underway_hash(PyObject *object) { return PyObject_Hash(((ctpy_underway *)object)->inner); }

PyObject *ctpy_underway_repr(PyObject *object) { return PyObject_Repr(((ctpy_underway *)object)->inner); }

/* Refuses, in the words that it has for it. */
PyObject *ctpy_underway_reduce(PyObject *object, PyObject *const *args, Py_ssize_t count) {
    return ctpy_call_method(((ctpy_underway *)object)->inner, "__reduce_ex__", args, count);
}
