/* SPDX-License-Identifier: MIT
 *
 * callbacks.c: what happens when a function starts, returns, is suspended, resumed or unwound.
 *
 * The interpreter raises in the program what a callback raises, so none does: what goes wrong means that a call is not
 * counted. They are objects of a type of their own, because a call of a built-in function can fail, by the limit of
 * recursion, before it begins. No event comes from what runs inside of them.
 *
 * The current frame is known by its address, which both is quicker to find than the frame object and makes none.
 */
#include "monitoring.h"

#if PY_VERSION_HEX >= 0x030c0000

#include <stddef.h>
#include <structmember.h> /* expects Python.h before it */

typedef struct callback_object {
    PyObject_HEAD vectorcallfunc vectorcall;
    ctpy_monitoring *monitoring; /* lives as long as the type */
    const void *frame;
} callback_object;

static inline const void *current_frame(void) {
#if PY_VERSION_HEX < 0x030d0000
    return PyThreadState_Get()->cframe->current_frame;
#else
    return PyThreadState_Get()->current_frame;
#endif
}

static inline ctpy_monitoring *monitoring_of(PyObject *self) { return ((callback_object *)self)->monitoring; }

/* All take two or three: the code object, the place in it, and what was returned, yielded or raised. */
static inline int is_wrong(size_t count) { return CTPY_RARELY(PyVectorcall_NARGS(count) < 2); }

CTPY_APART static PyObject *refuse_call(void) {
    PyErr_SetString(PyExc_TypeError, "it is for sys.monitoring to call");
    return NULL;
}

/* ---- ties: where the interpreter does not tell of the end of a generator ---- */

/* cpython#140373. Of the bug-fix releases that may have it fixed, some are counted as not. */
int ctpy_callbacks_need_ties(void) {
    return (Py_Version >= 0x030d0000 && Py_Version < 0x030d0c00) ||
           (Py_Version >= 0x030e0000 && Py_Version < 0x030e0300);
}

/* The weak reference to a generator that was freed; its frame was freed with it. */
static PyObject *on_gone(PyObject *self, PyObject *const *args, size_t count, PyObject *keywords) {
    (void)keywords;
    ctpy_activations *calls = &monitoring_of(self)->calls;
    ctpy_activation **link = ctpy_activation_find(calls, ((callback_object *)self)->frame);
    if (PyVectorcall_NARGS(count) == 1 && *link != NULL && (*link)->tie == args[0])
        ctpy_activation_abandon(calls, link);
    return Py_NewRef(Py_None);
}

/* A generator's record must not outlive it, or a later call might be taken for its end. */
CTPY_APART static void tie(const ctpy_monitoring *monitoring, ctpy_activation *call) {
    PyFrameObject *frame = PyEval_GetFrame();
    PyObject *generator = frame != NULL ? PyFrame_GetGenerator(frame) : NULL;
    PyObject *callback = generator != NULL ? ctpy_callback_new(monitoring, CTPY_ON_GONE, call->frame) : NULL;
    if (callback != NULL) call->tie = PyWeakref_NewRef(generator, callback);
    Py_XDECREF(callback);
    Py_XDECREF(generator);
    ctpy_put_away();
}

/* ---- starts ---- */

/* The clock is read last. Returns whether the call counts. */
static inline int begin(ctpy_monitoring *monitoring, ctpy_cell *cell) {
    ctpy_activation *call = ctpy_activation_begin(&monitoring->calls, current_frame(), cell);
    if (CTPY_RARELY(call == NULL)) return 1;
    if (cell->suspends && monitoring->ties) tie(monitoring, call);
    ct_enter(cell->counter, &call->token);
    call->active = (ct_active){.since = call->token.start};
    return (int)(call->token.state & 1);
}

static PyObject *disable(const ctpy_monitoring *monitoring) { return Py_NewRef(monitoring->disable); }

/* The code was never seen before, or its start is not disabled although it is off: another tool had all events start
 * anew. */
CTPY_APART static PyObject *start_slowly(ctpy_monitoring *monitoring, PyObject *code, ctpy_cell *cell) {
    int never = 0;
    if (monitoring->tool < 0) return disable(monitoring);
    if (cell == NULL) {
        cell = ctpy_cell_discover(monitoring, code, &never);
        if (never) return disable(monitoring);
        if (cell == NULL) return Py_NewRef(Py_None); /* perhaps the next time there is memory */
        ctpy_cell_select(cell, 0);
        cell = ctpy_cell_of(monitoring, code); /* other threads may have run */
        if (cell == NULL) return Py_NewRef(Py_None);
    }
    if (!ctpy_tool_follow(cell)) return disable(monitoring);
    (void)begin(monitoring, cell);
    return Py_NewRef(Py_None);
}

/* Somebody has switched its counter off. */
CTPY_APART static PyObject *start_disabled(ctpy_monitoring *monitoring, ctpy_cell *cell) {
    ctpy_activation **link = ctpy_activation_find(&monitoring->calls, current_frame());
    if (*link != NULL) ctpy_activation_end(&monitoring->calls, link);
    return ctpy_tool_follow(cell) ? Py_NewRef(Py_None) : disable(monitoring);
}

static PyObject *on_start(PyObject *self, PyObject *const *args, size_t count, PyObject *keywords) {
    (void)keywords;
    if (is_wrong(count)) return refuse_call();
    ctpy_monitoring *monitoring = monitoring_of(self);
    ctpy_cell *cell = ctpy_cell_of(monitoring, args[0]);
    if (CTPY_RARELY(cell == NULL || !cell->on)) return start_slowly(monitoring, args[0], cell);
    if (CTPY_RARELY(!begin(monitoring, cell))) return start_disabled(monitoring, cell);
    return Py_NewRef(Py_None);
}

/* ---- ends ---- */

/* A handler of the log may run anything, so the record is gone before. */
CTPY_APART static void end_traced(ctpy_monitoring *monitoring, ctpy_activation **link, int outcome) {
    ctpy_activation call = **link;
    call.cell->under_way++;
    ctpy_activation_end(&monitoring->calls, link);
    if (call.cell->suspends) {
        ct_active_suspend(&call.token, &call.active);
        ctpy_leave_active_traced(monitoring->state, call.cell->counter, &call.token, &call.active, outcome);
    } else {
        ctpy_leave_traced(monitoring->state, call.cell->counter, &call.token, outcome);
    }
    if (--call.cell->under_way == 0 && call.cell->code == NULL) ctpy_cell_drop(call.cell);
}

static inline void end(ctpy_monitoring *monitoring, ctpy_activation **link, int outcome) {
    if (CTPY_RARELY(monitoring->state->trace_increments)) {
        end_traced(monitoring, link, outcome);
        return;
    }
    ctpy_activation *call = *link;
    if (call->cell->suspends) {
        ct_active_suspend(&call->token, &call->active);
        (void)ct_leave_active(call->cell->counter, &call->token, &call->active, outcome);
    } else {
        (void)ct_leave(call->cell->counter, &call->token, outcome);
    }
    ctpy_activation_end(&monitoring->calls, link);
}

/* The place of the call that is under way in the current frame. What began there in other code has ended unseen. */
static inline ctpy_activation **find(ctpy_activations *calls, PyObject *code) {
    ctpy_activation **link = ctpy_activation_find(calls, current_frame());
    if (CTPY_RARELY(*link != NULL && (*link)->cell->code != code)) ctpy_activation_abandon(calls, link);
    return link;
}

static PyObject *on_return(PyObject *self, PyObject *const *args, size_t count, PyObject *keywords) {
    (void)keywords;
    if (is_wrong(count)) return refuse_call();
    ctpy_monitoring *monitoring = monitoring_of(self);
    ctpy_activation **link = find(&monitoring->calls, args[0]);
    if (*link != NULL) end(monitoring, link, CT_RETURNED);
    return Py_NewRef(Py_None);
}

/* Comes for every frame of the program that an exception ends. */
static PyObject *on_unwind(PyObject *self, PyObject *const *args, size_t count, PyObject *keywords) {
    (void)keywords;
    if (is_wrong(count)) return refuse_call();
    ctpy_monitoring *monitoring = monitoring_of(self);
    ctpy_activation **link = find(&monitoring->calls, args[0]);
    if (CTPY_RARELY(*link != NULL)) {
        const int outcome = PyVectorcall_NARGS(count) > 2 ? ctpy_judge(args[2]) : CT_FAILED;
        link = find(&monitoring->calls, args[0]); /* judging may have run other threads */
        if (*link != NULL) end(monitoring, link, outcome);
    }
    return Py_NewRef(Py_None);
}

/* ---- in between ---- */

static PyObject *on_yield(PyObject *self, PyObject *const *args, size_t count, PyObject *keywords) {
    (void)keywords;
    if (is_wrong(count)) return refuse_call();
    ctpy_activation *call = *find(&monitoring_of(self)->calls, args[0]);
    if (call != NULL) ct_active_suspend(&call->token, &call->active);
    return Py_NewRef(Py_None);
}

/* Also when an exception is thrown into it. */
static PyObject *on_resume(PyObject *self, PyObject *const *args, size_t count, PyObject *keywords) {
    (void)keywords;
    if (is_wrong(count)) return refuse_call();
    ctpy_activation *call = *find(&monitoring_of(self)->calls, args[0]);
    if (call != NULL) ct_active_resume(&call->token, &call->active);
    return Py_NewRef(Py_None);
}

/* ---- the type ---- */

PyObject *ctpy_callback_new(const ctpy_monitoring *monitoring, int event, const void *frame) {
    static const vectorcallfunc functions[] = {on_start, on_return, on_yield, on_resume, on_unwind, on_resume, on_gone};
    callback_object *made = (callback_object *)monitoring->type->tp_alloc(monitoring->type, 0);
    if (made == NULL) return NULL;
    made->vectorcall = functions[event];
    made->monitoring = monitoring->state->monitoring;
    made->frame = frame;
    return (PyObject *)made;
}

static void free_callback(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(callback_object, vectorcall), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, CTPY_SLOT(free_callback)},
    {Py_tp_call, CTPY_SLOT(PyVectorcall_Call)},
    {Py_tp_members, members},
    {0, NULL},
};

PyType_Spec ctpy_callback_spec = {
    .name = "codetimer._MonitoringCallback",
    .basicsize = sizeof(callback_object),
    .flags =
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

#else

typedef int ctpy_callbacks_need_monitoring; /* an empty file is no C */

#endif
