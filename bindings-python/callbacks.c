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
    PyObject *code;              /* these of a generator */
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
static inline int is_wrong(PyObject *const *args, size_t count) {
    return CTPY_RARELY(PyVectorcall_NARGS(count) < 2 || !PyCode_Check(args[0]));
}

CTPY_APART static PyObject *refuse_call(void) {
    PyErr_SetString(PyExc_TypeError, "it is for sys.monitoring to call");
    return NULL;
}

/* The call of "cell" that is under way in the current frame, or NULL. */
static inline ctpy_activation *find(ctpy_monitoring *monitoring, ctpy_cell *cell) {
    const void *frame = current_frame();
    return cell->own.frame == frame ? &cell->own : ctpy_activation_find(&monitoring->calls, cell, frame);
}

/* ---- ties: where the interpreter does not tell of the end of a generator ---- */

/* cpython#140373. Of the bug-fix releases that may have it fixed, some are counted as not. */
int ctpy_callbacks_need_ties(void) {
    return (Py_Version >= 0x030d0000 && Py_Version < 0x030d0c00) ||
           (Py_Version >= 0x030e0000 && Py_Version < 0x030e0300);
}

/* A generator's record must not outlive it, or a later call might be taken for its end. */
CTPY_APART static void tie(const ctpy_monitoring *monitoring, ctpy_activation *call) {
    PyFrameObject *frame = PyEval_GetFrame();
    PyObject *generator = frame != NULL ? PyFrame_GetGenerator(frame) : NULL, *callback = NULL;
    if (generator != NULL) callback = ctpy_callback_new(monitoring, CTPY_ON_GONE, call->cell->code, call->frame);
    if (callback != NULL) call->tie = PyWeakref_NewRef(generator, callback);
    Py_XDECREF(callback);
    Py_XDECREF(generator);
    ctpy_put_away();
}

/* ---- starts ---- */

CTPY_APART static ctpy_activation *begin_suspending(const ctpy_monitoring *monitoring, ctpy_activation *call) {
    call->active = (ct_active){.since = call->token.start};
    if (monitoring->ties) tie(monitoring, call);
    return call;
}

/* In the table, as one call of the cell is under way, or seems to be. Returns whether the call counts. */
CTPY_APART static int begin_filed(ctpy_monitoring *monitoring, ctpy_cell *cell) {
    const void *frame = current_frame();
    if (cell->own.frame == frame) ctpy_activation_abandon(&monitoring->calls, &cell->own);
    ctpy_activation *call = ctpy_activation_file(&monitoring->calls, cell, frame);
    if (call == NULL) return 1;
    ct_enter(cell->counter, &call->token);
    if (!(call->token.state & 1)) ctpy_activation_end(&monitoring->calls, call);
    if (!(call->token.state & 1)) return 0;
    if (cell->suspends) (void)begin_suspending(monitoring, call);
    return 1;
}

/* Processors let what follows a reading of the clock overlap with it, but not what comes before; so the frame is asked
 * for after. Returns whether the call counts. */
static inline int begin(ctpy_monitoring *monitoring, ctpy_cell *cell) {
    if (CTPY_RARELY(cell->own.frame != NULL)) return begin_filed(monitoring, cell);
    ct_enter(cell->counter, &cell->own.token);
    if (CTPY_RARELY(!(cell->own.token.state & 1))) return 0;
    cell->own.frame = current_frame();
    if (CTPY_RARELY(cell->suspends)) (void)begin_suspending(monitoring, &cell->own);
    return 1;
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
CTPY_APART static PyObject *start_disabled(const ctpy_monitoring *monitoring, ctpy_cell *cell) {
    return ctpy_tool_follow(cell) ? Py_NewRef(Py_None) : disable(monitoring);
}

static PyObject *on_start(PyObject *self, PyObject *const *args, size_t count, PyObject *keywords) {
    (void)keywords;
    if (is_wrong(args, count)) return refuse_call();
    ctpy_monitoring *monitoring = monitoring_of(self);
    ctpy_cell *cell = ctpy_cell_of(monitoring, args[0]);
    if (CTPY_RARELY(cell == NULL || !cell->on)) return start_slowly(monitoring, args[0], cell);
    if (CTPY_RARELY(!begin(monitoring, cell))) return start_disabled(monitoring, cell);
    return Py_NewRef(Py_None);
}

/* ---- ends ---- */

/* A handler of the log may run anything, so the record is free before. */
CTPY_APART static void end_traced(ctpy_monitoring *monitoring, ctpy_activation *ended, int outcome) {
    ctpy_cell *cell = ended->cell;
    const ct_token token = ended->token;
    ct_active active = ended->active;
    ctpy_cell_hold(cell);
    if (cell->suspends) ct_active_suspend(&token, &active);
    ctpy_activation_end(&monitoring->calls, ended);
    if (cell->suspends)
        ctpy_leave_active_traced(monitoring->state, cell->counter, &token, &active, outcome);
    else
        ctpy_leave_traced(monitoring->state, cell->counter, &token, outcome);
    ctpy_cell_release(cell);
}

CTPY_APART static void end_suspending(ctpy_activation *ended, int outcome) {
    ct_active_suspend(&ended->token, &ended->active);
    (void)ct_leave_active(ended->cell->counter, &ended->token, &ended->active, outcome);
}

static inline void end(ctpy_monitoring *monitoring, ctpy_cell *cell, ctpy_activation *ended, int outcome) {
    if (CTPY_RARELY(monitoring->state->trace_increments)) {
        end_traced(monitoring, ended, outcome);
        return;
    }
    if (CTPY_RARELY(cell->suspends))
        end_suspending(ended, outcome);
    else
        (void)ct_leave(cell->counter, &ended->token, outcome);
    ctpy_activation_end(&monitoring->calls, ended);
}

static PyObject *on_return(PyObject *self, PyObject *const *args, size_t count, PyObject *keywords) {
    (void)keywords;
    if (is_wrong(args, count)) return refuse_call();
    ctpy_monitoring *monitoring = monitoring_of(self);
    ctpy_cell *cell = ctpy_cell_of(monitoring, args[0]);
    ctpy_activation *ended = cell != NULL ? find(monitoring, cell) : NULL;
    if (ended != NULL) end(monitoring, cell, ended, CT_RETURNED);
    return Py_NewRef(Py_None);
}

CTPY_APART static void unwind(ctpy_monitoring *monitoring, PyObject *code, PyObject *raised) {
    const int outcome = raised != NULL ? ctpy_judge(raised) : CT_FAILED;
    ctpy_cell *cell = ctpy_cell_of(monitoring, code); /* judging may have run other threads */
    ctpy_activation *ended = cell != NULL ? find(monitoring, cell) : NULL;
    if (ended != NULL) end(monitoring, cell, ended, outcome);
}

/* Comes for every frame of the program that an exception ends. */
static PyObject *on_unwind(PyObject *self, PyObject *const *args, size_t count, PyObject *keywords) {
    (void)keywords;
    if (is_wrong(args, count)) return refuse_call();
    ctpy_monitoring *monitoring = monitoring_of(self);
    ctpy_cell *cell = ctpy_cell_of(monitoring, args[0]);
    if (CTPY_RARELY(cell != NULL && cell->on && find(monitoring, cell) != NULL))
        unwind(monitoring, args[0], PyVectorcall_NARGS(count) > 2 ? args[2] : NULL);
    return Py_NewRef(Py_None);
}

/* ---- in between ---- */

/* The call that goes on, or does not, in the current frame. */
static inline ctpy_activation *find_suspending(PyObject *self, PyObject *code) {
    ctpy_cell *cell = ctpy_cell_of(monitoring_of(self), code);
    return cell != NULL ? find(monitoring_of(self), cell) : NULL;
}

static PyObject *on_yield(PyObject *self, PyObject *const *args, size_t count, PyObject *keywords) {
    (void)keywords;
    if (is_wrong(args, count)) return refuse_call();
    ctpy_activation *call = find_suspending(self, args[0]);
    if (call != NULL) ct_active_suspend(&call->token, &call->active);
    return Py_NewRef(Py_None);
}

/* Also when an exception is thrown into it. */
static PyObject *on_resume(PyObject *self, PyObject *const *args, size_t count, PyObject *keywords) {
    (void)keywords;
    if (is_wrong(args, count)) return refuse_call();
    ctpy_activation *call = find_suspending(self, args[0]);
    if (call != NULL) ct_active_resume(&call->token, &call->active);
    return Py_NewRef(Py_None);
}

/* ---- generators that are gone ---- */

/* Whether the generator of this frame, which is about to be freed, waits at a yield: then it ends here. If not, it was
 * closed before, nobody knows when. */
static int is_suspended(const void *frame) {
#if PY_VERSION_HEX < 0x030e0000
    return ((const PyGenObject *)((const char *)frame - offsetof(PyGenObject, gi_iframe)))->gi_frame_state < 0;
#else
    (void)frame;
    return 0;
#endif
}

/* The weak reference to a generator that is about to be freed, and its frame with it. What an exception thrown into it
 * has it do then is no longer its call's. */
static PyObject *on_gone(PyObject *self, PyObject *const *args, size_t count, PyObject *keywords) {
    (void)keywords;
    const callback_object *callback = (callback_object *)self;
    ctpy_monitoring *monitoring = callback->monitoring;
    ctpy_cell *cell = callback->code != NULL ? ctpy_cell_of(monitoring, callback->code) : NULL;
    if (cell == NULL || PyVectorcall_NARGS(count) != 1) return Py_NewRef(Py_None);
    ctpy_activation *call = cell->own.frame == callback->frame
                                ? &cell->own
                                : ctpy_activation_find(&monitoring->calls, cell, callback->frame);
    if (call == NULL || call->tie != args[0]) return Py_NewRef(Py_None);
    if (is_suspended(callback->frame)) {
        ct_active_resume(&call->token, &call->active); /* its waiting ends */
        end(monitoring, cell, call, CT_CANCELLED);
    } else {
        ctpy_activation_abandon(&monitoring->calls, call);
    }
    return Py_NewRef(Py_None);
}

/* ---- the type ---- */

PyObject *ctpy_callback_new(const ctpy_monitoring *monitoring, int event, PyObject *code, const void *frame) {
    static const vectorcallfunc functions[] = {on_start, on_return, on_yield, on_resume, on_unwind, on_resume, on_gone};
    callback_object *made = (callback_object *)monitoring->type->tp_alloc(monitoring->type, 0);
    if (made == NULL) return NULL;
    made->vectorcall = functions[event];
    made->monitoring = monitoring->state->monitoring;
    made->code = Py_XNewRef(code);
    made->frame = frame;
    return (PyObject *)made;
}

static void free_callback(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((callback_object *)self)->code);
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
