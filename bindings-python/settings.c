/* SPDX-License-Identifier: MIT
 *
 * settings.c: codetimer.configure and the type codetimer.Settings.
 *
 * There is one members list in a process, and it lies in the core; a Settings is a way to look at it. Who wrote it is
 * told from the core's count of changes: it is configure's as long as that count is the one that configure left behind.
 */
#include <stdlib.h>
#include <string.h>

#include "counting.h"
#include "live.h"

static ctpy_state *get_state(PyObject *self) { return (ctpy_state *)PyType_GetModuleState(Py_TYPE(self)); }

static int read_own(void *from, char *buffer, size_t size, size_t *length) {
    (void)from;
    return ct_members_get(buffer, size, length);
}

static PyObject *get_members(PyObject *self, void *closure) {
    (void)self, (void)closure;
    return ctpy_read_members(read_own, NULL);
}

static int is_in_environment(const char *name) {
    PyObject *os = PyImport_ImportModule("os");
    PyObject *found = os != NULL ? PyObject_CallMethod(os, "getenv", "s", name) : NULL;
    int is = found != NULL ? PyObject_IsTrue(found) : -1;
    Py_XDECREF(found);
    Py_XDECREF(os);
    return is;
}

static PyObject *get_source(PyObject *self, void *closure) {
    (void)closure;
    const ctpy_state *state = get_state(self);
    const uint64_t changes = ct_poll();
    if (state->configured > 0 && state->configured == changes) return PyUnicode_FromString("configure");
    if (changes == 0) return Py_NewRef(Py_None);
    int given = changes == 1 && state->configured == 0 ? is_in_environment("CODETIMER_MEASURE") : 0;
    if (given < 0) return NULL;
    return PyUnicode_FromString(given ? "environment" : "controller");
}

/* (pattern, hits, problem) */
static PyObject *make_match(const ct_members_pattern *pattern) {
    const uint64_t hits = pattern->problem == NULL ? ct_members_pattern_hits(pattern) : 0;
    PyObject *problem = ctpy_text(pattern->problem);
    PyObject *text = PyUnicode_DecodeUTF8(pattern->text, (Py_ssize_t)pattern->length, "replace");
    PyObject *match = NULL;
    if (problem != NULL && text != NULL) match = Py_BuildValue("(OKO)", text, (unsigned long long)hits, problem);
    Py_XDECREF(problem);
    Py_XDECREF(text);
    return match;
}

static PyObject *list_matches(const ct_members *members) {
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < ct_members_count(members); i++) {
        PyObject *match = make_match(ct_members_at(members, i));
        if (match == NULL || PyList_Append(list, match) < 0) Py_CLEAR(list);
        Py_XDECREF(match);
    }
    return list;
}

static PyObject *get_matches(PyObject *self, void *closure) {
    (void)self, (void)closure;
    PyObject *text = ctpy_read_members(read_own, NULL);
    if (text == NULL) return NULL;
    const char *utf8;
    Py_ssize_t length;
    ct_members *members = NULL;
    PyObject *matches = NULL;
    if (ctpy_parse_members(text, 1, &utf8, &length) == 0) {
        int status = utf8 != NULL ? ct_members_parse(utf8, (size_t)length, &members) : CT_ENOENT;
        if (status == CT_ENOENT) matches = PyList_New(0);
        if (status == CT_OK) matches = list_matches(members);
        if (status == CT_ENOMEM) PyErr_NoMemory();
    }
    ct_members_free(members);
    Py_DECREF(text);
    return matches;
}

static void free_settings(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *make_repr(PyObject *self) {
    PyObject *members = get_members(self, NULL), *source = members != NULL ? get_source(self, NULL) : NULL;
    PyObject *text =
        source != NULL ? PyUnicode_FromFormat("<codetimer.Settings: members %R from %S>", members, source) : NULL;
    Py_XDECREF(members);
    Py_XDECREF(source);
    return text;
}

static PyGetSetDef attributes[] = {
    {"members", get_members, NULL, "The members list in force (str); None: there is no list, all is measured.", NULL},
    {"source", get_source, NULL,
     "Who wrote it: 'environment' (CODETIMER_MEASURE), 'configure', 'controller' (from outside), or None.", NULL},
    {"matches", get_matches, NULL,
     "Of each pattern (text, hits, problem): how many counters of this process it matches, and why it is skipped "
     "(None: it is not).",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(settings_doc,
             "What decides which members are measured; see configure(). Each attribute is read when it is\n"
             "asked for.");

static PyType_Slot slots[] = {
    {Py_tp_doc, CTPY_MUTABLE(void *, settings_doc)},
    {Py_tp_dealloc, CTPY_SLOT(free_settings)},
    {Py_tp_repr, CTPY_SLOT(make_repr)},
    {Py_tp_getset, attributes},
    {0, NULL},
};

PyType_Spec ctpy_settings_spec = {
    .name = "codetimer.Settings",
    .basicsize = sizeof(PyObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

/* ---- what is skipped ---- */

/* A pattern that is wrong is skipped, which nobody would notice without a line in the log. */
static void tell_problems(ctpy_state *state, const ct_members *members) {
    for (size_t i = 0; i < ct_members_count(members); i++) {
        const ct_members_pattern *pattern = ct_members_at(members, i);
        if (pattern->problem == NULL) continue;
        PyObject *written = PyUnicode_DecodeUTF8(pattern->text, (Py_ssize_t)pattern->length, "replace");
        PyObject *text = written == NULL
                             ? NULL
                             : PyUnicode_FromFormat("%R at byte %zu: %s", written, pattern->position, pattern->problem);
        Py_XDECREF(written);
        if (text != NULL) ctpy_trace(state, CTPY_WARNING, "members pattern skipped: %s", text);
        if (text == NULL) PyErr_Clear();
        Py_XDECREF(text);
    }
}

/* The core takes of a text that is too long the whole patterns at its beginning. */
static size_t tell_too_long(ctpy_state *state, const char *text, size_t length) {
    if (length <= CTPY_MEMBERS_MOST) return length;
    size_t taken = CTPY_MEMBERS_MOST;
    while (taken > 0 && text[taken] != ';' && text[taken] != '\n') taken--;
    PyObject *what = PyUnicode_FromFormat("CODETIMER_MEASURE has %zu bytes, at most %d are taken: all from byte %zu on",
                                          length, CTPY_MEMBERS_MOST, taken);
    if (what != NULL) ctpy_trace(state, CTPY_WARNING, "members patterns skipped: %s", what);
    if (what == NULL) PyErr_Clear();
    Py_XDECREF(what);
    return taken;
}

void ctpy_tell_environment(ctpy_state *state) {
    if (state->told_environment) return;
    state->told_environment = 1;
    const char *text = getenv("CODETIMER_MEASURE");
    ct_members *members;
    if (text == NULL || *text == '\0') return;
    size_t length = tell_too_long(state, text, strlen(text));
    if (ct_members_parse(text, length, &members) != CT_OK) return;
    tell_problems(state, members);
    ct_members_free(members);
}

/* ---- configure() ---- */

static int set_members(ctpy_state *state, PyObject *text) {
    const char *utf8;
    Py_ssize_t length;
    ct_members *members = NULL;
    if (ctpy_parse_members(text, 0, &utf8, &length) < 0) return -1;
    int status = ct_members_parse(utf8, (size_t)length, &members);
    if (status == CT_OK) status = ct_members_set(utf8, (size_t)length);
    if (status == CT_OK) {
        state->configured = ct_poll();
        tell_problems(state, members);
    }
    ct_members_free(members);
    if (status != CT_OK) (void)ctpy_raise(status, "members cannot be set", NULL);
    return status == CT_OK ? 0 : -1;
}

PyObject *ctpy_configure(PyObject *module, PyObject *args, PyObject *kwargs) {
    static const char *const keywords[] = {"members", "file", "provider", NULL};
    ctpy_state *state = ctpy_get_state(module);
    PyObject *members = Py_None, *file = Py_None, *provider = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOO:configure", CTPY_MUTABLE(char **, keywords), &members, &file,
                                     &provider))
        return NULL;
    if (file != Py_None || provider != Py_None) {
        PyErr_SetString(PyExc_NotImplementedError,
                        "this version of codetimer takes members= as a str; file= and provider= are not there yet");
        return NULL;
    }
    if (members != Py_None && set_members(state, members) < 0) return NULL;
    return state->settings_type->tp_alloc(state->settings_type, 0);
}
