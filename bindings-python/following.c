/* SPDX-License-Identifier: MIT
 *
 * following.c: lists that come from a file or a provider: what is told of them, and the way to the module
 * codetimer.following, whose threads look after them. That module is imported when it is needed first.
 */
#include <stdlib.h>
#include <string.h>

#include "counting.h"
#include "live.h"

/* ---- what is skipped ---- */

/* A pattern that is wrong is skipped, which nobody would notice without a line in the log. */
void ctpy_tell_problems(ctpy_state *state, const ct_members *members) {
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

static void tell_variable(ctpy_state *state) {
    const char *text = getenv("CODETIMER_MEASURE");
    ct_members *members;
    if (text == NULL || *text == '\0') return;
    size_t length = tell_too_long(state, text, strlen(text));
    if (ct_members_parse(text, length, &members) != CT_OK) return;
    ctpy_tell_problems(state, members);
    ct_members_free(members);
}

void ctpy_tell_environment(ctpy_state *state) {
    if (state->told_environment) return;
    state->told_environment = 1;
    tell_variable(state);
    ctpy_tell_file(state);
}

/* ---- what became of the list ---- */

/* The patterns of the list in force; NULL: there is none, or no memory. */
static ct_members *parse_list(void) {
    char *text = malloc(CTPY_MEMBERS_MOST + 1);
    ct_members *members = NULL;
    size_t length;
    if (text != NULL && ct_members_get(text, CTPY_MEMBERS_MOST + 1, &length) == CT_OK)
        (void)ct_members_parse(text, length, &members);
    free(text);
    return members;
}

static void tell_text(ctpy_state *state, int level, const char *format, PyObject *text) {
    if (text != NULL) (void)ctpy_trace(state, level, format, text);
    PyErr_Clear();
    Py_XDECREF(text);
}

static void tell_list(ctpy_state *state, const ct_config *config) {
    PyObject *path = PyUnicode_DecodeFSDefault(config->path);
    if (config->patterns == 0)
        tell_text(state, CTPY_WARNING, "the file %s has no members pattern: nothing is measured", path);
    else
        tell_text(state, CTPY_INFO, "members list read from the file %s", path);
    ct_members *members = parse_list();
    if (members != NULL) ctpy_tell_problems(state, members);
    ct_members_free(members);
}

static void tell_state(ctpy_state *state, const ct_config *config) {
    PyObject *path = PyUnicode_DecodeFSDefault(config->path), *reason = ctpy_text(config->reason), *text = NULL;
    if (path != NULL && reason != NULL) text = PyUnicode_FromFormat("%U: %U", path, reason);
    Py_XDECREF(path);
    Py_XDECREF(reason);
    tell_text(state, CTPY_WARNING, "the members list stays, its file cannot be used: %s", text);
}

void ctpy_tell_file(ctpy_state *state) {
    ct_config config;
    ct_config_info(&config);
    if (config.events == state->told_events) return;
    const int read = config.state == CT_CONFIG_READ, is_new = config.lists != state->told_lists;
    state->told_events = config.events;
    state->told_lists = config.lists;
    if (read && is_new) tell_list(state, &config);
    if (read && !is_new)
        tell_text(state, CTPY_INFO, "the file %s can be used again", PyUnicode_DecodeFSDefault(config.path));
    if (config.state == CT_CONFIG_MISSING || config.state == CT_CONFIG_REFUSED) tell_state(state, &config);
}

static void tell_change(ctpy_state *state, uint64_t changes) {
    char source[4200];
    if (changes == state->told_changes) return;
    state->told_changes = changes;
    const int from = ct_members_source(source, sizeof source);
    if (from == CT_FROM_NOBODY || from == CT_FROM_FILE) return; /* that was told already */
    tell_text(state, CTPY_INFO, "members list now from %s", PyUnicode_DecodeFSDefault(source));
}

/* ---- what the module asks for ---- */

static uint64_t poll_core(void) {
    uint64_t changes;
    Py_BEGIN_ALLOW_THREADS changes = ct_poll();
    Py_END_ALLOW_THREADS return changes;
}

PyObject *ctpy_follow(PyObject *module, PyObject *ignored) {
    (void)ignored;
    const uint64_t changes = poll_core();
    ctpy_tell_file(ctpy_get_state(module));
    tell_change(ctpy_get_state(module), changes);
    return PyLong_FromUnsignedLongLong(changes);
}

/* A function may still be to come; so this is no warning. */
PyObject *ctpy_tell_unmatched(PyObject *module, PyObject *ignored) {
    (void)ignored;
    ct_members *members = parse_list();
    for (size_t i = 0; members != NULL && i < ct_members_count(members); i++) {
        const ct_members_pattern *pattern = ct_members_at(members, i);
        if (pattern->problem != NULL || ct_members_pattern_hits(pattern) > 0) continue;
        PyObject *text = PyUnicode_DecodeUTF8(pattern->text, (Py_ssize_t)pattern->length, "replace");
        tell_text(ctpy_get_state(module), CTPY_INFO, "members pattern %s matches no counter so far", text);
    }
    ct_members_free(members);
    Py_RETURN_NONE;
}

PyObject *ctpy_is_main(PyObject *module, PyObject *ignored) {
    (void)module, (void)ignored;
    return PyBool_FromLong(PyInterpreterState_Get() == PyInterpreterState_Main());
}

PyObject *ctpy_provide(PyObject *module, PyObject *text) {
    (void)module;
    const char *utf8;
    Py_ssize_t length;
    if (ctpy_parse_members(text, 1, &utf8, &length) < 0) return NULL;
    int status = ct_members_provide(utf8, (size_t)length);
    if (status < 0) return ctpy_raise(status, "members cannot be set", NULL);
    return PyBool_FromLong(status == CT_OK);
}

/* ---- after a fork ---- */

/* What is added while Python code runs in a pending call can be forgotten, so it is asked for again after that. */
static int call_pending(void *fn) {
    PyObject *done = PyObject_CallNoArgs((PyObject *)fn);
    if (done == NULL) PyErr_WriteUnraisable((PyObject *)fn);
    if (done == Py_False && Py_AddPendingCall(call_pending, Py_NewRef((PyObject *)fn)) < 0) Py_DECREF((PyObject *)fn);
    Py_XDECREF(done);
    Py_DECREF((PyObject *)fn);
    return 0;
}

PyObject *ctpy_soon(PyObject *module, PyObject *fn) {
    (void)module;
    if (Py_AddPendingCall(call_pending, Py_NewRef(fn)) == 0) Py_RETURN_TRUE;
    Py_DECREF(fn);
    Py_RETURN_FALSE;
}

/* ---- the way to the module ---- */

PyObject *ctpy_call_following(const char *function, int only_if_there, const char *format, ...) {
    PyObject *name = PyUnicode_FromString("codetimer.following"), *following = NULL, *args = NULL, *result = NULL;
    if (name != NULL) following = only_if_there ? PyImport_GetModule(name) : PyImport_Import(name);
    Py_XDECREF(name);
    if (following == NULL) return only_if_there && !PyErr_Occurred() ? Py_NewRef(Py_None) : NULL;
    va_list values;
    va_start(values, format);
    args = format != NULL ? Py_VaBuildValue(format, values) : PyTuple_New(0);
    va_end(values);
    PyObject *callable = args != NULL ? PyObject_GetAttrString(following, function) : NULL;
    if (callable != NULL) result = PyObject_CallObject(callable, args);
    Py_XDECREF(callable);
    Py_XDECREF(args);
    Py_DECREF(following);
    return result;
}

static int start_following(void) {
    PyObject *started = ctpy_call_following("start", 0, NULL);
    Py_XDECREF(started);
    return started != NULL ? 0 : -1;
}

int ctpy_set_provider(PyObject *provider) {
    PyObject *done = ctpy_call_following("set_provider", provider == Py_None, "(O)", provider);
    Py_XDECREF(done);
    return done != NULL ? 0 : -1;
}

int ctpy_convert_file(PyObject *file, PyObject **bytes) {
    if (PyUnicode_FSConverter(file, bytes)) return 0;
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
    PyErr_Clear();
    return ctpy_refuse(PyExc_TypeError, "file must be a path (str or os.PathLike) or None", file);
}

/* It is read at once, which may take a moment. */
static int set_file(const char *path) {
    int status;
    Py_BEGIN_ALLOW_THREADS status = ct_config_file(path);
    Py_END_ALLOW_THREADS return status;
}

int ctpy_follow_file(ctpy_state *state, PyObject *file) {
    PyObject *bytes = NULL;
    if (file != Py_None && ctpy_convert_file(file, &bytes) < 0) return -1;
    const char *path = bytes != NULL ? PyBytes_AS_STRING(bytes) : "";
    const int is_one = path[0] != '\0';
    const int status = set_file(path);
    if (status == CT_EINVAL) (void)ctpy_raise(status, "the path of the file is too long", path);
    if (status == CT_ENOMEM) PyErr_NoMemory();
    Py_XDECREF(bytes);
    if (status != CT_OK) return -1;
    ctpy_tell_file(state);
    return is_one ? start_following() : 0;
}

void ctpy_follow_environment(void) {
    const char *path = getenv("CODETIMER_CONFIG");
    if (path != NULL && *path != '\0') (void)start_following();
    PyErr_Clear(); /* a module that cannot be imported: measured calls look after the file too */
}
