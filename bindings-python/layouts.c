/* SPDX-License-Identifier: MIT
 *
 * layouts.c: why two copies of one function need not be equally fast, and what is done about it.
 *
 * Where in its page a code object lies decides which of the loads of its instructions wait for stores of the frame to
 * addresses that look the same in the last 12 bits; of two identical functions one can so be 20 % slower for as long as
 * it lives. That is no difference of the functions. So a comparison calls copies of their code at different places in
 * turn, the copies of all candidates at the same places: of very many copies those are kept whose addresses agree.
 *
 * A copy has everything of the function that its calls can see: globals, defaults, closure, names. Code that
 * sys.monitoring watches by itself, or that others have given another way to be called, is left alone.
 */
#include "layouts.h"

#include <string.h>

enum { DRAWN = 192, PLACES = 256, STRIP = PLACES / CTPY_LAYOUTS }; /* places of 16 bytes in a page of 4 KiB */

/* ---- drawing ---- */

static PyObject *copy_code(PyObject *code);

/* code.replace(), with "value" for "key" unless it is NULL. */
static PyObject *replace(PyObject *code, const char *key, PyObject *value) {
    PyObject *method = PyObject_GetAttrString(code, "replace");
    PyObject *none = method != NULL ? PyTuple_New(0) : NULL;
    PyObject *what = none != NULL && value != NULL ? Py_BuildValue("{sO}", key, value) : NULL;
    PyObject *copy = none != NULL && (value == NULL || what != NULL) ? PyObject_Call(method, none, what) : NULL;
    Py_XDECREF(what);
    Py_XDECREF(none);
    Py_XDECREF(method);
    return copy;
}

#if PY_VERSION_HEX >= 0x030b0000

static size_t get_place(PyObject *code) { return ((uintptr_t)code & 4095) / 16; }

static PyObject *copy_plain(PyObject *code) { return replace(code, NULL, NULL); }

#else /* the instructions lie in an object of bytes, which copies would share */

static size_t get_place(PyObject *code) { return ((uintptr_t)((PyCodeObject *)code)->co_code & 4095) / 16; }

static PyObject *copy_plain(PyObject *code) {
    PyObject *own = ((PyCodeObject *)code)->co_code;
    PyObject *bytes = PyBytes_FromStringAndSize(PyBytes_AS_STRING(own), PyBytes_GET_SIZE(own));
    PyObject *copy = bytes != NULL ? replace(code, "co_code", bytes) : NULL;
    Py_XDECREF(bytes);
    return copy;
}

#endif

/* The constants of "code" with copies of the code among them (of generator expressions, lambdas); itself if there is
 * none. NULL with an exception. */
static PyObject *copy_constants(PyObject *code) {
    PyObject *constants = ((PyCodeObject *)code)->co_consts, *copies = Py_NewRef(constants);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constants) && copies != NULL; i++) {
        PyObject *inner = PyTuple_GET_ITEM(constants, i);
        if (!PyCode_Check(inner)) continue;
        if (copies == constants) Py_SETREF(copies, PySequence_List(constants));
        PyObject *copy = copies != NULL ? copy_code(inner) : NULL;
        if (copy == NULL || PyList_SetItem(copies, i, copy) < 0) Py_CLEAR(copies);
    }
    if (copies != NULL && copies != constants) Py_SETREF(copies, PyList_AsTuple(copies));
    return copies;
}

static PyObject *copy_code(PyObject *code) {
    PyObject *constants = copy_constants(code);
    PyObject *copy = constants != NULL ? copy_plain(code) : NULL;
    if (copy != NULL && constants != ((PyCodeObject *)code)->co_consts)
        Py_SETREF(copy, replace(copy, "co_consts", constants));
    Py_XDECREF(constants);
    return copy;
}

/* The copies of one code, by their places: the first that came to lie there. */
typedef struct drawn {
    PyObject *at[PLACES];
} drawn;

static void clear(drawn *all, size_t count) {
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < PLACES; j++) Py_CLEAR(all[i].at[j]);
    PyMem_Free(all);
}

/* Alternately, so that all of them get their places from the same parts of memory. */
static int draw(PyObject *const *codes, size_t count, drawn *all, PyObject *kept) {
    for (size_t n = 0; n < DRAWN * count; n++) {
        const size_t i = n % count;
        PyObject *copy = codes[i] != NULL ? copy_code(codes[i]) : NULL;
        if (copy == NULL && codes[i] != NULL) return -1;
        if (copy == NULL) continue;
        PyObject **place = &all[i].at[get_place(copy)];
        const int failed = PyList_Append(kept, copy) < 0; /* also if it is not needed: the next is to lie elsewhere */
        if (*place == NULL) *place = Py_NewRef(copy);
        Py_DECREF(copy);
        if (failed) return -1;
    }
    return 0;
}

/* ---- choosing ---- */

static size_t count_at(PyObject *const *codes, size_t count, const drawn *all, size_t place) {
    size_t have = 0;
    for (size_t i = 0; i < count; i++) have += codes[i] == NULL || all[i].at[place] != NULL;
    return have;
}

/* The place in a strip that most of them have. */
static size_t choose_place(PyObject *const *codes, size_t count, const drawn *all, size_t strip) {
    size_t best = strip * STRIP + STRIP / 2;
    for (size_t place = strip * STRIP; place < (strip + 1) * STRIP; place++)
        if (count_at(codes, count, all, place) > count_at(codes, count, all, best)) best = place;
    return best;
}

static PyObject *nearest(const drawn *one, size_t place) {
    for (size_t distance = 0; distance < PLACES; distance++) {
        PyObject *above = one->at[(place + distance) % PLACES];
        PyObject *below = one->at[(place + PLACES - distance) % PLACES];
        if (above != NULL || below != NULL) return above != NULL ? above : below;
    }
    return NULL;
}

int ctpy_layouts_make(PyObject *const *codes, size_t count, PyObject **copies) {
    drawn *all = PyMem_Calloc(count, sizeof *all);
    PyObject *kept = PyList_New(0);
    memset(copies, 0, count * CTPY_LAYOUTS * sizeof *copies);
    if (all == NULL) PyErr_NoMemory();
    const int failed = all == NULL || kept == NULL || draw(codes, count, all, kept) < 0;
    for (size_t strip = 0; strip < CTPY_LAYOUTS && !failed; strip++) {
        const size_t place = choose_place(codes, count, all, strip);
        for (size_t i = 0; i < count; i++)
            if (codes[i] != NULL) copies[i * CTPY_LAYOUTS + strip] = Py_XNewRef(nearest(&all[i], place));
    }
    if (all != NULL) clear(all, count);
    Py_XDECREF(kept);
    return failed ? -1 : 0;
}

/* ---- functions ---- */

#if PY_VERSION_HEX >= 0x030c0000

/* Whether a tool watches this code alone: -1 with an exception. */
static int is_watched(PyObject *code) {
    PyObject *monitoring = PySys_GetObject("monitoring");
    int watched = 0;
    for (int tool = 0; tool < 6 && watched == 0 && monitoring != NULL; tool++) {
        PyObject *name = PyObject_CallMethod(monitoring, "get_tool", "i", tool);
        PyObject *events = NULL;
        if (name == NULL) return -1;
        if (name != Py_None) {
            events = PyObject_CallMethod(monitoring, "get_local_events", "iO", tool, code);
            watched = events != NULL ? PyObject_IsTrue(events) : -1;
        }
        Py_XDECREF(events);
        Py_DECREF(name);
    }
    return watched;
}

#else

static int is_watched(PyObject *code) {
    (void)code;
    return 0;
}

#endif

PyObject *ctpy_layouts_code(const ctpy_state *state, PyObject *fn) {
    if (!PyFunction_Check(fn) || PyVectorcall_Function(fn) != PyVectorcall_Function(state->safe_point)) return NULL;
    PyObject *code = PyFunction_GetCode(fn);
    return is_watched(code) == 0 ? code : NULL;
}

static int take_over(PyObject *function, PyObject *fn) {
    PyObject *defaults = PyFunction_GetDefaults(fn), *closure = PyFunction_GetClosure(fn);
    PyObject *keywords = PyFunction_GetKwDefaults(fn);
    if (defaults != NULL && PyFunction_SetDefaults(function, defaults) < 0) return -1;
    if (keywords != NULL && PyFunction_SetKwDefaults(function, keywords) < 0) return -1;
    return closure != NULL ? PyFunction_SetClosure(function, closure) : 0;
}

PyObject *ctpy_layouts_function(PyObject *fn, PyObject *code) {
    PyObject *qualname = PyObject_GetAttrString(fn, "__qualname__");
    PyObject *function =
        qualname != NULL ? PyFunction_NewWithQualName(code, PyFunction_GetGlobals(fn), qualname) : NULL;
    Py_XDECREF(qualname);
    if (function != NULL && take_over(function, fn) < 0) Py_CLEAR(function);
    return function;
}
