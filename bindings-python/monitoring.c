/* SPDX-License-Identifier: MIT
 *
 * monitoring.c: what is selected, and the switching of code objects when that changes.
 *
 * Whether a function is measured is decided by its cell (cells.c); here all cells are asked, and their events made to
 * be as they say.
 */
#include "monitoring.h"

#if PY_VERSION_HEX >= 0x030c0000

#include "live.h"

void ctpy_monitoring_spare(ctpy_state *state, PyObject *wrapped) {
    ctpy_monitoring *monitoring = state->monitoring;
    if (PyMethod_Check(wrapped)) wrapped = PyMethod_GET_FUNCTION(wrapped);
    if (monitoring == NULL || monitoring->extra < 0 || !PyFunction_Check(wrapped)) return;
    PyObject *code = PyFunction_GET_CODE(wrapped);
    ctpy_cell *cell = ctpy_cell_of(monitoring, code);
    if (cell == NULL) cell = ctpy_cell_make(monitoring, code, NULL);
    if (cell == NULL) return;
    cell->spared = 1;
    ctpy_tool_switch_off(cell);
}

/* ---- all of them ---- */

static int read_list(void *from, char *buffer, size_t size, size_t *length) {
    (void)from;
    return ct_members_get(buffer, size, length);
}

/* Brings our copy of the process's list up to date. Returns whether it changed, -1 with an exception. */
static int reload_list(ctpy_monitoring *monitoring) {
    const uint64_t changes = ct_poll();
    if (changes == monitoring->changes) return 0;
    PyObject *text = ctpy_read_members(read_list, NULL);
    const char *utf8 = NULL;
    Py_ssize_t length = 0;
    ct_members *list = NULL;
    if (text == NULL || ctpy_parse_members(text, 1, &utf8, &length) < 0 ||
        (utf8 != NULL && ct_members_parse(utf8, (size_t)length, &list) != CT_OK)) {
        Py_XDECREF(text);
        if (PyErr_Occurred() == NULL) PyErr_NoMemory();
        return -1;
    }
    Py_DECREF(text);
    ct_members_free(monitoring->list);
    monitoring->list = list;
    monitoring->changes = changes;
    return 1;
}

/* The cell of a code object in a list of them; NULL if it went meanwhile. */
static ctpy_cell *cell_at(const ctpy_monitoring *monitoring, PyObject *codes, Py_ssize_t i) {
    return monitoring->tool >= 0 ? ctpy_cell_of(monitoring, PyList_GET_ITEM(codes, i)) : NULL;
}

/* Nothing in here runs other code of the program. */
static void switch_all(ctpy_monitoring *monitoring, PyObject *codes) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(codes); i++) {
        ctpy_cell *cell = cell_at(monitoring, codes, i);
        if (cell == NULL || cell->on == ctpy_cell_wanted(cell)) continue;
        if (cell->on)
            ctpy_tool_switch_off(cell);
        else if (ctpy_tool_pause(monitoring) == 0)
            ctpy_tool_switch_on(cell);
    }
    if (monitoring->tool >= 0) (void)ctpy_tool_resume(monitoring);
}

static void tell_all(ctpy_monitoring *monitoring, PyObject *codes) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(codes); i++) {
        ctpy_cell *cell = ctpy_cell_of(monitoring, PyList_GET_ITEM(codes, i));
        if (cell != NULL) ctpy_cell_tell(cell);
    }
}

/* "anew": what is selected has changed, too. 0, or -1 with an exception. */
static int update(ctpy_monitoring *monitoring, int anew) {
    const int changed = reload_list(monitoring);
    PyObject *codes = changed >= 0 ? ctpy_cells_list(monitoring) : NULL;
    if (codes == NULL) return -1;
    for (Py_ssize_t i = 0; (anew || changed) && i < PyList_GET_SIZE(codes); i++) {
        ctpy_cell *cell = cell_at(monitoring, codes, i);
        if (cell != NULL) ctpy_cell_select(cell, 1);
    }
    switch_all(monitoring, codes);
    tell_all(monitoring, codes);
    Py_DECREF(codes);
    return 0;
}

/* ---- beginning and ending ---- */

/* An exception that is set stays set. */
static void stop(ctpy_monitoring *monitoring) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    (void)ctpy_tool_pause(monitoring);
    for (ctpy_cell *cell = monitoring->cells; cell != NULL; cell = cell->next) ctpy_tool_forget(cell);
    ctpy_tool_leave(monitoring);
    for (ctpy_cell *cell = monitoring->cells, *next; cell != NULL; cell = next) {
        next = cell->next;
        if (!cell->spared) ctpy_cell_remove(cell);
    }
    ctpy_activations_close(&monitoring->calls);
    PyErr_Restore(type, value, traceback);
}

static int begin(ctpy_monitoring *monitoring, PyObject *name) {
    if (monitoring->tool >= 0) return 0;
    if (monitoring->extra >= 0) return ctpy_tool_take(monitoring, name);
    PyErr_SetString(PyExc_RuntimeError, "this Python has no room left for data at its code objects");
    return -1;
}

/* ---- what is selected ---- */

static void forget(ct_members **chosen, size_t count) {
    for (size_t i = 0; i < count; i++) ct_members_free(chosen[i]);
    PyMem_Free(chosen);
}

/* One text, or None. */
static int choose_one(PyObject *text, ct_members **chosen) {
    const char *utf8;
    Py_ssize_t length;
    *chosen = NULL;
    if (ctpy_parse_members(text, 1, &utf8, &length) < 0) return -1;
    if (utf8 == NULL || ct_members_parse(utf8, (size_t)length, chosen) == CT_OK) return 0;
    PyErr_NoMemory();
    return -1;
}

/* "text": a str or None, or a tuple of them. */
static int choose(ctpy_monitoring *monitoring, PyObject *text) {
    const size_t count = PyTuple_Check(text) ? (size_t)PyTuple_GET_SIZE(text) : 1;
    ct_members **chosen = PyMem_Calloc(count + 1, sizeof *chosen);
    if (chosen == NULL) PyErr_NoMemory();
    for (size_t i = 0; chosen != NULL && i < count; i++) {
        PyObject *one = PyTuple_Check(text) ? PyTuple_GET_ITEM(text, (Py_ssize_t)i) : text;
        if (choose_one(one, &chosen[i]) == 0) continue;
        forget(chosen, count);
        return -1;
    }
    if (chosen == NULL) return -1;
    forget(monitoring->chosen, monitoring->chosen_count);
    monitoring->chosen = chosen;
    monitoring->chosen_count = count;
    Py_XSETREF(monitoring->text, Py_NewRef(text));
    return 0;
}

/* ---- _monitoring_* ---- */

PyObject *ctpy_monitoring_start(PyObject *module, PyObject *args, PyObject *kwargs) {
    static const char *const keywords[] = {"members", "tool_name", NULL};
    ctpy_monitoring *monitoring = ctpy_get_state(module)->monitoring;
    PyObject *text, *name = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|U:_monitoring_start", CTPY_MUTABLE(char **, keywords), &text,
                                     &name))
        return NULL;
    name = name != NULL ? Py_NewRef(name) : PyUnicode_FromString("codetimer");
    const int was_on = monitoring->tool >= 0;
    int begun = name != NULL ? begin(monitoring, name) : -1;
    Py_XDECREF(name);
    if (begun == 0 && choose(monitoring, text) < 0) {
        if (!was_on) stop(monitoring);
        begun = -1;
    }
    return begun < 0 || update(monitoring, 1) < 0 ? NULL : Py_NewRef(Py_None);
}

PyObject *ctpy_monitoring_update(PyObject *module, PyObject *ignored) {
    (void)ignored;
    ctpy_monitoring *monitoring = ctpy_get_state(module)->monitoring;
    return monitoring->tool >= 0 && update(monitoring, 0) < 0 ? NULL : Py_NewRef(Py_None);
}

PyObject *ctpy_monitoring_stop(PyObject *module, PyObject *ignored) {
    (void)ignored;
    ctpy_monitoring *monitoring = ctpy_get_state(module)->monitoring;
    PyObject *codes = monitoring->tool >= 0 ? ctpy_cells_list(monitoring) : NULL;
    if (codes != NULL) tell_all(monitoring, codes);
    Py_XDECREF(codes);
    PyErr_Clear();
    if (monitoring->tool >= 0) stop(monitoring);
    return Py_NewRef(Py_None);
}

PyObject *ctpy_monitoring_info(PyObject *module, PyObject *ignored) {
    (void)ignored;
    const ctpy_monitoring *monitoring = ctpy_get_state(module)->monitoring;
    size_t under_way = 0;
    for (const ctpy_cell *cell = monitoring->cells; cell != NULL; cell = cell->next)
        under_way += cell->filed + (cell->own.frame != NULL);
    const int is_on = monitoring->tool >= 0;
    PyObject *tool = is_on ? PyLong_FromLong(monitoring->tool) : Py_NewRef(Py_None);
    if (tool == NULL) return NULL;
    PyObject *reached = ctpy_cells_members(monitoring);
    if (reached == NULL) Py_DECREF(tool);
    if (reached == NULL) return NULL;
    return Py_BuildValue("{sNsNsOsnsnsn}", "reached", reached, "tool", tool, "members",
                         is_on && monitoring->text != NULL ? monitoring->text : Py_None, "seen",
                         (Py_ssize_t)monitoring->seen, "measured", (Py_ssize_t)monitoring->on, "under_way",
                         (Py_ssize_t)under_way);
}

/* ---- with the module ---- */

int ctpy_monitoring_open(PyObject *module, ctpy_state *state) {
    ctpy_monitoring *monitoring = PyMem_Calloc(1, sizeof *monitoring);
    if (monitoring == NULL) return PyErr_NoMemory() == NULL ? -1 : 0;
    state->monitoring = monitoring;
    monitoring->state = state;
    monitoring->tool = -1;
    monitoring->changes = UINT64_MAX;
    monitoring->ties = ctpy_callbacks_need_ties();
    ctpy_activations_open(&monitoring->calls);
    ctpy_cells_open(monitoring);
    monitoring->type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &ctpy_callback_spec, NULL);
    return monitoring->type != NULL ? 0 : -1;
}

int ctpy_monitoring_visit(ctpy_state *state, visitproc visit, void *arg) {
    if (state->monitoring == NULL) return 0;
    Py_VISIT(state->monitoring->type);
    Py_VISIT(state->monitoring->api);
    return 0;
}

/* The interpreter holds the callbacks, and with them the module, as long as it may call them. */
void ctpy_monitoring_close(ctpy_state *state) {
    ctpy_monitoring *monitoring = state->monitoring;
    if (monitoring == NULL) return;
    if (monitoring->tool >= 0) stop(monitoring);
    while (monitoring->cells != NULL) ctpy_cell_remove(monitoring->cells);
    forget(monitoring->chosen, monitoring->chosen_count);
    ct_members_free(monitoring->list);
    Py_XDECREF(monitoring->text);
    Py_XDECREF(monitoring->disable);
    Py_XDECREF(monitoring->api);
    Py_XDECREF(monitoring->type);
    PyMem_Free(monitoring);
    state->monitoring = NULL;
}

#else

static PyObject *refuse_old(void) {
    PyErr_SetString(PyExc_NotImplementedError, "sys.monitoring came with Python 3.12");
    return NULL;
}

PyObject *ctpy_monitoring_start(PyObject *module, PyObject *args, PyObject *kwargs) {
    (void)module, (void)args, (void)kwargs;
    return refuse_old();
}

PyObject *ctpy_monitoring_update(PyObject *module, PyObject *ignored) {
    (void)module, (void)ignored;
    return refuse_old();
}

PyObject *ctpy_monitoring_stop(PyObject *module, PyObject *ignored) {
    (void)module, (void)ignored;
    return refuse_old();
}

PyObject *ctpy_monitoring_info(PyObject *module, PyObject *ignored) {
    (void)module, (void)ignored;
    return refuse_old();
}

int ctpy_monitoring_open(PyObject *module, ctpy_state *state) {
    (void)module, (void)state;
    return 0;
}

int ctpy_monitoring_visit(ctpy_state *state, visitproc visit, void *arg) {
    (void)state, (void)visit, (void)arg;
    return 0;
}

void ctpy_monitoring_close(ctpy_state *state) { (void)state; }

void ctpy_monitoring_spare(ctpy_state *state, PyObject *wrapped) { (void)state, (void)wrapped; }

#endif
