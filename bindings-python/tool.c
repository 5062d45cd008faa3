/* SPDX-License-Identifier: MIT
 *
 * tool.c: our place among the tools of sys.monitoring, and which events are switched on there.
 *
 * On for all code is the start of functions: a code object that is not measured answers the first one by having it
 * disabled for itself, and costs nothing from then on. A code object that is measured has the events of its ends in
 * addition; those that end by an exception come for all code (before 3.15), so they are on only while something is
 * measured. A start that was disabled stays so until it is no longer asked for by us at all; so, to switch code on that
 * was seen before, we ask for no starts, change the code, and ask again. That disturbs no other tool.
 */
#include "monitoring.h"

#if PY_VERSION_HEX >= 0x030c0000

static const char *const names[CTPY_EVENTS] = {"PY_START",  "PY_RETURN", "PY_YIELD",
                                               "PY_RESUME", "PY_UNWIND", "PY_THROW"};

/* ---- sys.monitoring ---- */

/* 0, or -1 with the exception put away: somebody took our tool id from us, or there is no memory. */
static int ask(PyObject *answer) {
    Py_XDECREF(answer);
    if (answer == NULL) ctpy_put_away();
    return answer != NULL ? 0 : -1;
}

static int set_everywhere(ctpy_monitoring *monitoring, int events) {
    if (monitoring->everywhere == events) return 0;
    if (ask(PyObject_CallMethod(monitoring->api, "set_events", "ii", monitoring->tool, events)) < 0) return -1;
    monitoring->everywhere = events;
    return 0;
}

static int set_local(const ctpy_monitoring *monitoring, PyObject *code, int events) {
    return ask(PyObject_CallMethod(monitoring->api, "set_local_events", "iOi", monitoring->tool, code, events));
}

static int exceptions_are_local(void) { return Py_Version >= 0x030f0000; }

static int events_of(const ctpy_cell *cell) {
    const int *bits = cell->monitoring->bits;
    int events = bits[CTPY_ON_RETURN];
    if (exceptions_are_local()) events |= bits[CTPY_ON_UNWIND];
    if (!cell->suspends) return events;
    if (exceptions_are_local()) events |= bits[CTPY_ON_THROW];
    return events | bits[CTPY_ON_YIELD] | bits[CTPY_ON_RESUME];
}

static int needed_everywhere(const ctpy_monitoring *monitoring) {
    const int *bits = monitoring->bits;
    const int ends = monitoring->on > 0 && !exceptions_are_local() ? bits[CTPY_ON_UNWIND] | bits[CTPY_ON_THROW] : 0;
    return bits[CTPY_ON_START] | ends;
}

int ctpy_tool_pause(ctpy_monitoring *monitoring) { return set_everywhere(monitoring, 0); }

int ctpy_tool_resume(ctpy_monitoring *monitoring) { return set_everywhere(monitoring, needed_everywhere(monitoring)); }

/* ---- one code object ---- */

void ctpy_tool_switch_on(ctpy_cell *cell) {
    if (cell->on || set_local(cell->monitoring, cell->code, events_of(cell)) < 0) return;
    cell->on = 1;
    cell->monitoring->on++;
}

void ctpy_tool_switch_off(ctpy_cell *cell) {
    if (!cell->on) return;
    (void)set_local(cell->monitoring, cell->code, 0);
    cell->on = 0;
    cell->monitoring->on--;
    ctpy_activations_abandon(&cell->monitoring->calls, cell);
}

/* A code object is brought up to date when its own events change, else not before it runs: a start that it had disabled
 * would be so for the next user of our id, too. */
void ctpy_tool_forget(ctpy_cell *cell) {
    if (!cell->on) (void)set_local(cell->monitoring, cell->code, cell->monitoring->bits[CTPY_ON_RETURN]);
    if (!cell->on) (void)set_local(cell->monitoring, cell->code, 0);
    ctpy_tool_switch_off(cell);
}

int ctpy_tool_follow(ctpy_cell *cell) {
    ctpy_monitoring *monitoring = cell->monitoring;
    if (ctpy_cell_wanted(cell))
        ctpy_tool_switch_on(cell);
    else
        ctpy_tool_switch_off(cell);
    (void)ctpy_tool_resume(monitoring);
    return cell->on;
}

/* ---- beginning and ending ---- */

void ctpy_tool_leave(ctpy_monitoring *monitoring) {
    const int tool = monitoring->tool;
    (void)set_everywhere(monitoring, 0);
    monitoring->tool = -1;
    for (int i = 0; i < CTPY_EVENTS; i++)
        (void)ask(PyObject_CallMethod(monitoring->api, "register_callback", "iiO", tool, monitoring->bits[i], Py_None));
    (void)ask(PyObject_CallMethod(monitoring->api, "free_tool_id", "i", tool));
}

/* Who has a tool id: its name, or None; NULL with an exception. */
static PyObject *get_tool(const ctpy_monitoring *monitoring, int tool) {
    return PyObject_CallMethod(monitoring->api, "get_tool", "i", tool);
}

static int refuse(const ctpy_monitoring *monitoring) {
    PyObject *third = get_tool(monitoring, 3), *fourth = third != NULL ? get_tool(monitoring, 4) : NULL;
    if (fourth != NULL)
        PyErr_Format(PyExc_RuntimeError,
                     "sys.monitoring has no free tool id left: 3 is used by %R and 4 by %R; stop one of these tools, "
                     "then instrument again",
                     third, fourth);
    Py_XDECREF(third);
    Py_XDECREF(fourth);
    return -1;
}

/* The ids of debuggers, coverage, profilers and optimizers are left to them. */
static int take_id(ctpy_monitoring *monitoring, PyObject *name) {
    for (int tool = 3; tool <= 4; tool++) {
        PyObject *user = get_tool(monitoring, tool);
        const int is_free = user == Py_None;
        Py_XDECREF(user);
        if (user == NULL) return -1;
        if (!is_free) continue;
        PyObject *taken = PyObject_CallMethod(monitoring->api, "use_tool_id", "iO", tool, name);
        Py_XDECREF(taken);
        if (taken != NULL) monitoring->tool = tool;
        return taken != NULL ? 0 : -1;
    }
    return refuse(monitoring);
}

static int read_bits(ctpy_monitoring *monitoring) {
    PyObject *events = PyObject_GetAttrString(monitoring->api, "events");
    for (int i = 0; events != NULL && i < CTPY_EVENTS; i++) {
        PyObject *bit = PyObject_GetAttrString(events, names[i]);
        monitoring->bits[i] = bit != NULL ? (int)PyLong_AsLong(bit) : -1;
        Py_XDECREF(bit);
        if (monitoring->bits[i] < 0) Py_CLEAR(events);
    }
    Py_XDECREF(events);
    return events != NULL ? 0 : -1;
}

static int find_api(ctpy_monitoring *monitoring) {
    if (monitoring->api != NULL) return 0;
    PyObject *api = Py_XNewRef(PySys_GetObject("monitoring"));
    if (api == NULL) PyErr_SetString(PyExc_RuntimeError, "this Python has no sys.monitoring");
    if (api == NULL) return -1;
    monitoring->disable = PyObject_GetAttrString(api, "DISABLE");
    monitoring->api = api;
    if (monitoring->disable != NULL && read_bits(monitoring) == 0) return 0;
    Py_CLEAR(monitoring->disable);
    Py_CLEAR(monitoring->api);
    return -1;
}

static int register_callbacks(const ctpy_monitoring *monitoring) {
    for (int i = 0; i < CTPY_EVENTS; i++) {
        PyObject *callback = ctpy_callback_new(monitoring, i, NULL, NULL);
        PyObject *before = callback == NULL ? NULL
                                            : PyObject_CallMethod(monitoring->api, "register_callback", "iiO",
                                                                  monitoring->tool, monitoring->bits[i], callback);
        Py_XDECREF(callback);
        Py_XDECREF(before);
        if (before == NULL) return -1;
    }
    return 0;
}

int ctpy_tool_take(ctpy_monitoring *monitoring, PyObject *name) {
    if (find_api(monitoring) < 0 || take_id(monitoring, name) < 0) return -1;
    monitoring->everywhere = 0;
    if (register_callbacks(monitoring) == 0) return 0;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    ctpy_tool_leave(monitoring);
    PyErr_Restore(type, value, traceback);
    return -1;
}

#else

typedef int ctpy_tool_needs_monitoring; /* an empty file is no C */

#endif
