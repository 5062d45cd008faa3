/* SPDX-License-Identifier: MIT
 *
 * cells.c: what a code object is measured as.
 *
 * Each code object that was seen to start has a cell, also if nothing selects it: when the selection changes, the cells
 * are asked again, so nothing has to be searched for and no other tool's events are started anew. A cell hangs on its
 * code object and goes away with it; nothing here keeps code alive.
 *
 * The member is the module, as the globals have it where the code was first seen to start, and the qualified name.
 * All functions made of one code object (closures, above all) are one member, and so are code objects of one name.
 * Lambdas and generator expressions are functions like any other, under the names that Python gives them; the bodies of
 * modules and classes are not, nor are the functions that Python makes for scopes of its own.
 */
#include "monitoring.h"

#if PY_VERSION_HEX >= 0x030c0000

#include <string.h>

void ctpy_put_away(void) {
    if (PyErr_Occurred() == NULL) return;
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
    PyErr_Clear();
}

/* ---- life ---- */

static void drop(ctpy_cell *cell) {
    ct_counter_close(cell->counter);
    Py_XDECREF(cell->module);
    PyMem_Free(cell);
}

void ctpy_cell_release(ctpy_cell *cell) {
    if (--cell->held == 0 && cell->code == NULL) drop(cell);
}

/* No call of it is left, as a frame keeps its code. */
static void unlink_cell(ctpy_cell *cell) {
    ctpy_monitoring *monitoring = cell->monitoring;
    ctpy_activations_abandon(&monitoring->calls, cell);
    if (cell->next != NULL) cell->next->previous = cell->previous;
    *(cell->previous != NULL ? &cell->previous->next : &monitoring->cells) = cell->next;
    monitoring->seen--;
    monitoring->on -= (size_t)cell->on;
    cell->on = 0;
    cell->code = NULL;
    if (cell->held == 0) drop(cell);
}

/* Its code object goes away, or gets another value in its place. */
static void free_extra(void *cell) {
    if (cell != NULL) unlink_cell(cell);
}

CTPY_APART ctpy_cell *ctpy_cell_asked_for(const ctpy_monitoring *monitoring, PyObject *code) {
    void *cell = NULL;
    if (PyUnstable_Code_GetExtra(code, monitoring->extra, &cell) < 0) PyErr_Clear();
    return cell;
}

void ctpy_cell_remove(ctpy_cell *cell) {
    if (PyUnstable_Code_SetExtra(cell->code, cell->monitoring->extra, NULL) < 0) PyErr_Clear(); /* frees it */
}

/* In 3.12 the code of some modules of the standard library is one for all interpreters. */
static int is_shared(PyObject *code) {
#if PY_VERSION_HEX < 0x030d0000
    return _Py_IsImmortal(code) && PyInterpreterState_Get() != PyInterpreterState_Main();
#else
    (void)code;
    return 0;
#endif
}

ctpy_cell *ctpy_cell_make(ctpy_monitoring *monitoring, PyObject *code, PyObject *module) {
    static const int suspending = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE;
    ctpy_cell *cell = is_shared(code) ? NULL : PyMem_Calloc(1, sizeof *cell);
    if (cell == NULL) return NULL;
    if (PyUnstable_Code_SetExtra(code, monitoring->extra, cell) < 0) {
        PyErr_Clear();
        PyMem_Free(cell);
        return NULL;
    }
    cell->monitoring = monitoring;
    cell->code = code;
    cell->own.cell = cell;
    cell->module = Py_XNewRef(module);
    cell->suspends = (((PyCodeObject *)code)->co_flags & suspending) != 0;
    cell->next = monitoring->cells;
    if (cell->next != NULL) cell->next->previous = cell;
    monitoring->cells = cell;
    monitoring->seen++;
    return cell;
}

void ctpy_cells_open(ctpy_monitoring *monitoring) {
    monitoring->extra = PyUnstable_Eval_RequestCodeExtraIndex(free_extra);
    if (monitoring->extra != 0) return;
    PyCodeObject *code = PyCode_NewEmpty("<codetimer>", "extras", 1);
    const ctpy_cell *cell = code != NULL ? ctpy_cell_make(monitoring, (PyObject *)code, NULL) : NULL;
    const struct ctpy_extras *extras = cell != NULL ? code->co_extra : NULL;
    monitoring->extra_is_first = extras != NULL && extras->count > 0 && extras->cells[0] == cell;
    Py_XDECREF(code);
    PyErr_Clear();
}

/* ---- members ---- */

static int is_function(const PyCodeObject *code) {
    static const int both = CO_OPTIMIZED | CO_NEWLOCALS;
    if ((code->co_flags & both) != both) return 0;
    PyObject *name = code->co_name;
    if (PyUnicode_GET_LENGTH(name) == 0 || PyUnicode_READ_CHAR(name, 0) != '<') return 1;
    return PyUnicode_CompareWithASCIIString(name, "<lambda>") == 0 ||
           PyUnicode_CompareWithASCIIString(name, "<genexpr>") == 0;
}

/* The __name__ in the globals of the current frame, borrowed; NULL if there is none. */
static PyObject *find_module(void) {
    PyObject *globals = PyEval_GetGlobals();
    PyObject *name = globals != NULL ? PyDict_GetItemString(globals, "__name__") : NULL;
    return name != NULL && PyUnicode_Check(name) ? name : NULL;
}

/* codetimer itself, whose functions run in the middle of measuring. */
static int is_own(PyObject *module) {
    if (module == NULL) return 0;
    const char *name = PyUnicode_AsUTF8(module);
    if (name == NULL) PyErr_Clear();
    return name != NULL && strncmp(name, "codetimer", 9) == 0 && (name[9] == '\0' || name[9] == '.');
}

static int is_selected(const ctpy_monitoring *monitoring, const char *member, size_t length) {
    for (size_t i = 0; i < monitoring->chosen_count; i++) {
        const ct_members *by = monitoring->chosen[i] != NULL ? monitoring->chosen[i] : monitoring->list;
        if (by != NULL && ct_members_selects(by, member, length)) return 1;
    }
    return 0;
}

/* "module.qualname" in UTF-8, as counters have it: new bytes; NULL without an exception. */
static PyObject *name_code(PyObject *module, PyObject *code, PyObject **member) {
    *member = ctpy_name_class(module, ((PyCodeObject *)code)->co_qualname);
    PyObject *bytes = *member != NULL ? PyUnicode_AsEncodedString(*member, "utf-8", "backslashreplace") : NULL;
    ctpy_put_away();
    return bytes;
}

ctpy_cell *ctpy_cell_discover(ctpy_monitoring *monitoring, PyObject *code, int *never) {
    *never = !is_function((PyCodeObject *)code) || is_shared(code);
    if (*never) return NULL;
    PyObject *module = Py_XNewRef(find_module());
    *never = is_own(module);
    ctpy_cell *cell = *never ? NULL : ctpy_cell_make(monitoring, code, module);
    Py_XDECREF(module);
    return cell;
}

/* ---- selecting ---- */

/* Opening also lists a counter that was removed; a handle that is there already goes on with it. */
static void open_counter(ctpy_cell *cell, PyObject *member) {
    ct_counter *counter;
    const int status = ctpy_open_untold(cell->monitoring->state, member, &counter);
    ctpy_put_away();
    if (status < 0 && status == cell->status) return; /* nothing new to tell */
    cell->status = status;
    cell->untold = status != CT_EXISTS || cell->counter == NULL;
    if (cell->counter != NULL || cell->code == NULL)
        ct_counter_close(counter);
    else
        cell->counter = counter;
}

static int may_come_back(const ctpy_cell *cell, const char *member, size_t length) {
    return !ct_counter_enabled(cell->counter) && ct_members_selects(cell->monitoring->list, member, length);
}

void ctpy_cell_select(ctpy_cell *cell, int reopen) {
    if (cell->spared) return;
    ctpy_cell_hold(cell);
    PyObject *member, *bytes = name_code(cell->module, cell->code, &member);
    if (bytes != NULL && cell->code != NULL) {
        const char *text = PyBytes_AS_STRING(bytes);
        const size_t length = (size_t)PyBytes_GET_SIZE(bytes);
        cell->selected = is_selected(cell->monitoring, text, length);
        if (cell->selected && (cell->counter == NULL || (reopen && may_come_back(cell, text, length))))
            open_counter(cell, member);
    }
    Py_XDECREF(bytes);
    Py_XDECREF(member);
    ctpy_cell_release(cell);
}

int ctpy_cell_wanted(const ctpy_cell *cell) {
    return cell->selected && !cell->spared && cell->counter != NULL && ct_counter_enabled(cell->counter);
}

void ctpy_cell_tell(ctpy_cell *cell) {
    if (!cell->untold) return;
    cell->untold = 0;
    ctpy_cell_hold(cell);
    ctpy_tell_counter(cell->monitoring->state, cell->status, cell->counter);
    ctpy_cell_release(cell);
}

PyObject *ctpy_cells_list(const ctpy_monitoring *monitoring) {
    PyObject *list = PyList_New(0);
    for (const ctpy_cell *cell = monitoring->cells; list != NULL && cell != NULL; cell = cell->next)
        if (Py_REFCNT(cell->code) > 0 && PyList_Append(list, cell->code) < 0) Py_CLEAR(list);
    return list;
}

PyObject *ctpy_cells_members(const ctpy_monitoring *monitoring) {
    PyObject *codes = ctpy_cells_list(monitoring), *members = codes != NULL ? PyList_New(0) : NULL;
    for (Py_ssize_t i = 0; members != NULL && i < PyList_GET_SIZE(codes); i++) {
        const ctpy_cell *cell = ctpy_cell_of(monitoring, PyList_GET_ITEM(codes, i));
        if (cell == NULL || !cell->selected || cell->spared || cell->counter == NULL) continue;
        PyObject *member = ctpy_name_class(cell->module, ((PyCodeObject *)cell->code)->co_qualname);
        if (member == NULL || PyList_Append(members, member) < 0) Py_CLEAR(members);
        Py_XDECREF(member);
    }
    Py_XDECREF(codes);
    return members;
}

#else

typedef int ctpy_cells_need_monitoring; /* an empty file is no C */

#endif
