/* SPDX-License-Identifier: MIT
 *
 * monitoring.h: measuring functions that nobody has decorated, through sys.monitoring (CPython 3.12 and later).
 *
 * The interpreter tells when a function starts, returns, is suspended, resumed or unwound. Three things are kept: what
 * each code object is measured as (cells.c), which of its calls are under way (activations.c), and which of the events
 * are switched on (monitoring.c). All belong to one interpreter and are guarded by its global lock.
 */
#ifndef CTPY_MONITORING_H
#define CTPY_MONITORING_H

#include "counting.h"
#include "measured.h"

/* ---- for all versions: monitoring.c ---- */

/* When the module is made, visited and freed. Open returns 0, or -1 with an exception. */
int ctpy_monitoring_open(PyObject *module, ctpy_state *state);
int ctpy_monitoring_visit(ctpy_state *state, visitproc visit, void *arg);
void ctpy_monitoring_close(ctpy_state *state);

/* "wrapped" is measured by a stand-in from now on; its calls would be counted twice. Leaves no exception. */
void ctpy_monitoring_spare(ctpy_state *state, PyObject *wrapped);

PyObject *ctpy_monitoring_start(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ctpy_monitoring_update(PyObject *module, PyObject *ignored);
PyObject *ctpy_monitoring_stop(PyObject *module, PyObject *ignored);
PyObject *ctpy_monitoring_info(PyObject *module, PyObject *ignored);

#if PY_VERSION_HEX >= 0x030c0000

#if defined(__GNUC__)
#define CTPY_RARELY(condition) __builtin_expect(!!(condition), 0)
#define CTPY_APART             __attribute__((noinline, cold))
#else
#define CTPY_RARELY(condition) (condition)
#define CTPY_APART
#endif

/* ---- activations: the calls under way ---- */

typedef struct ctpy_activation {
    const void *frame; /* the interpreter's, whose address it has while it lives; NULL: unused */
    ct_token token;
    ct_active active;
    PyObject *tie; /* NULL, or what tells that the generator is gone */
    struct ctpy_cell *cell;
    struct ctpy_activation *next; /* in its bucket, or of the unused */
} ctpy_activation;

typedef struct ctpy_activations {
    ctpy_activation **buckets;
    unsigned shift; /* 64 less the logarithm of their number */
    size_t made;
    ctpy_activation *unused;
    struct ctpy_activation_block *blocks;
    ctpy_activation *none[2]; /* the buckets of an empty table */
} ctpy_activations;

/* ---- what a code object is measured as ---- */

typedef struct ctpy_cell {
    ct_counter *counter; /* NULL: it was not selected yet, or there was no room */
    int on;              /* its events are */
    int suspends;        /* a generator or the like */
    ctpy_activation own; /* of one of its calls; of the others: */
    size_t filed;        /* so many are in the table */
    PyObject *code;      /* borrowed: the cell hangs on it; NULL when it is gone */
    PyObject *module;    /* str or NULL: __name__ where it was first seen to start */
    int selected;        /* by the members that are to be measured */
    int spared;          /* measured by a stand-in */
    int untold, status;  /* what became of the counter, and whether the log is still to be told */
    size_t held;         /* by who runs code of the program meanwhile */
    struct ctpy_monitoring *monitoring;
    struct ctpy_cell *next, *previous; /* among all of the interpreter */
} ctpy_cell;

/* ---- activations.c ---- */

void ctpy_activations_open(ctpy_activations *all);

/* Gives the memory back. All have ended. */
void ctpy_activations_close(ctpy_activations *all);

/* The one of that cell in that frame, but its own; NULL if there is none. */
ctpy_activation *ctpy_activation_find(ctpy_activations *all, const ctpy_cell *cell, const void *frame);

/* A new one of that cell in that frame, in the table; NULL without memory. */
ctpy_activation *ctpy_activation_file(ctpy_activations *all, ctpy_cell *cell, const void *frame);

/* The record is free again: its call has ended. */
void ctpy_activation_unfile(ctpy_activations *all, ctpy_activation *ended);
static inline void ctpy_activation_end(ctpy_activations *all, ctpy_activation *ended) {
    if (CTPY_RARELY(ended->tie != NULL)) Py_CLEAR(ended->tie);
    if (CTPY_RARELY(ended != &ended->cell->own)) ctpy_activation_unfile(all, ended);
    ended->frame = NULL;
}

/* Nobody will see the end of the call; of all calls of a cell. */
void ctpy_activation_abandon(ctpy_activations *all, ctpy_activation *call);
void ctpy_activations_abandon(ctpy_activations *all, ctpy_cell *cell);

/* ---- the whole ---- */

enum { CTPY_ON_START, CTPY_ON_RETURN, CTPY_ON_YIELD, CTPY_ON_RESUME, CTPY_ON_UNWIND, CTPY_ON_THROW, CTPY_EVENTS };

typedef struct ctpy_monitoring {
    ctpy_state *state;
    Py_ssize_t extra;      /* where code objects keep the cell; -1: nowhere */
    int extra_is_first;    /* and it can be read there directly */
    PyTypeObject *type;    /* of the callbacks */
    PyObject *api;         /* sys.monitoring; NULL: never started */
    PyObject *disable;     /* sys.monitoring.DISABLE */
    int tool;              /* our id; -1: not started */
    int bits[CTPY_EVENTS]; /* the interpreter's numbers of the events */
    int everywhere;        /* the events that are on for all code */
    PyObject *text;        /* of what is selected, as it was given: str, None, or a tuple of these */
    ct_members **chosen;   /* the same parsed; NULL: as the list of the process says */
    size_t chosen_count;
    ct_members *list; /* that of the process; NULL: there is none */
    uint64_t changes; /* of that list, when it was read */
    ctpy_cell *cells;
    size_t seen, on; /* cells, and those whose events are on */
    int ties;        /* this version does not tell of every end of a generator */
    ctpy_activations calls;
} ctpy_monitoring;

/* ---- cells.c ---- */

/* The cell of a code object, or NULL; without an exception.
 *
 * A callback learns late which object it is, after a long chain of loads in the interpreter, but early which code
 * object it is called for. So the cell is found without the former, by a constant place, and only whether that was
 * right hangs on it. The layout is CPython's own; ctpy_cells_open tries it out. */
struct ctpy_extras {
    Py_ssize_t count;
    ctpy_cell *cells[];
};

ctpy_cell *ctpy_cell_asked_for(const ctpy_monitoring *monitoring, PyObject *code);

static inline ctpy_cell *ctpy_cell_of(const ctpy_monitoring *monitoring, PyObject *code) {
    if (CTPY_RARELY(!monitoring->extra_is_first)) return ctpy_cell_asked_for(monitoring, code);
    const struct ctpy_extras *extras = ((PyCodeObject *)code)->co_extra;
    return extras != NULL && extras->count > 0 ? extras->cells[0] : NULL;
}

/* Reserves the place where code objects keep it. */
void ctpy_cells_open(ctpy_monitoring *monitoring);

/* The cell of the code that starts in the current frame, made now; NULL where it is none that can be measured (*never
 * is 1) or where there is no memory. Leaves no exception. */
ctpy_cell *ctpy_cell_discover(ctpy_monitoring *monitoring, PyObject *code, int *never);

/* A cell without a module; NULL without memory. */
ctpy_cell *ctpy_cell_make(ctpy_monitoring *monitoring, PyObject *code, PyObject *module);

/* Whether it is selected is found out anew; opens its counter the first time that it is, and again where the counter
 * was removed and "reopen". Leaves no exception. */
void ctpy_cell_select(ctpy_cell *cell, int reopen);

/* Whether its calls are to be counted now. */
int ctpy_cell_wanted(const ctpy_cell *cell);

/* Tells the log what became of its counter, once. */
void ctpy_cell_tell(ctpy_cell *cell);

/* The members that are selected now, as far as their code has been seen: a new list. */
PyObject *ctpy_cells_members(const ctpy_monitoring *monitoring);

/* All code objects that have a cell: a new list. */
PyObject *ctpy_cells_list(const ctpy_monitoring *monitoring);

/* Takes the cell off its code object. Calls of it that are under way are abandoned. */
void ctpy_cell_remove(ctpy_cell *cell);

/* A cell that is held stays, also when its code object goes. */
static inline void ctpy_cell_hold(ctpy_cell *cell) { cell->held++; }
void ctpy_cell_release(ctpy_cell *cell);

/* Clears an exception that must not reach the program; Ctrl-C is raised at the next safe point. */
void ctpy_put_away(void);

/* ---- callbacks.c: what the interpreter calls at the events ---- */

extern PyType_Spec ctpy_callback_spec;

/* One more kind of callback: the end of a generator that nothing else tells of. */
enum { CTPY_ON_GONE = CTPY_EVENTS };

/* The callback of an event. For CTPY_ON_GONE: the code and the frame of the generator; else NULL. */
PyObject *ctpy_callback_new(const ctpy_monitoring *monitoring, int event, PyObject *code, const void *frame);

/* Whether this version of CPython closes some generators without an event. */
int ctpy_callbacks_need_ties(void);

/* ---- tool.c: our place among the tools of sys.monitoring. What fails there is put away ---- */

/* Takes a tool id that is free and registers the callbacks. 0, or -1 with an exception. */
int ctpy_tool_take(ctpy_monitoring *monitoring, PyObject *name);
void ctpy_tool_leave(ctpy_monitoring *monitoring);

/* Which events come for all code: none, or what is needed. 0, or -1. */
int ctpy_tool_pause(ctpy_monitoring *monitoring);
int ctpy_tool_resume(ctpy_monitoring *monitoring);

/* The events of one code object. Calls under way are lost when they go off, as their ends will not be seen. */
void ctpy_tool_switch_on(ctpy_cell *cell);
void ctpy_tool_switch_off(ctpy_cell *cell);

/* Leaves no event of ours at the code object, while events are paused for all code. */
void ctpy_tool_forget(ctpy_cell *cell);

/* Either, as it is wanted. Returns whether they are on. */
int ctpy_tool_follow(ctpy_cell *cell);

#endif
#endif
