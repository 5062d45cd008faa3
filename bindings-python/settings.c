/* SPDX-License-Identifier: MIT
 *
 * settings.c: codetimer.configure and the type codetimer.Settings.
 *
 * There is one members list in a process, and it lies in the core; a Settings is a way to look at it. What takes a
 * thread (a file, a provider, callbacks) is in following.c and in the module codetimer.following.
 */
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

static PyObject *get_source(PyObject *self, void *closure) {
    (void)self, (void)closure;
    char source[4200];
    if (ct_members_source(source, sizeof source) == CT_FROM_NOBODY) return Py_NewRef(Py_None);
    return PyUnicode_DecodeFSDefault(source);
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

static PyObject *get_file(PyObject *self, void *closure) {
    (void)self, (void)closure;
    ct_config config;
    ct_config_info(&config);
    return config.path[0] != '\0' ? PyUnicode_DecodeFSDefault(config.path) : Py_NewRef(Py_None);
}

static int set_file(PyObject *self, PyObject *file, void *closure) {
    (void)closure;
    return ctpy_follow_file(get_state(self), file != NULL ? file : Py_None);
}

static PyObject *get_provider(PyObject *self, void *closure) {
    (void)self, (void)closure;
    return ctpy_call_following("get_provider", 1, NULL);
}

static int set_provider(PyObject *self, PyObject *provider, void *closure) {
    (void)self, (void)closure;
    return ctpy_set_provider(provider != NULL ? provider : Py_None);
}

static PyObject *get_problem(PyObject *self, void *closure) {
    (void)self, (void)closure;
    ct_config config;
    ct_config_info(&config);
    if (config.reason[0] == '\0') return ctpy_call_following("get_problem", 1, NULL);
    PyObject *path = PyUnicode_DecodeFSDefault(config.path), *reason = ctpy_text(config.reason), *problem = NULL;
    if (path != NULL && reason != NULL) problem = PyUnicode_FromFormat("file %U: %U", path, reason);
    Py_XDECREF(path);
    Py_XDECREF(reason);
    return problem;
}

/* ---- methods ---- */

static PyObject *on_change(PyObject *self, PyObject *callback) {
    return ctpy_call_following("add", 0, "OO", self, callback);
}

static PyObject *remove_on_change(PyObject *self, PyObject *callback) {
    (void)self;
    return ctpy_call_following("remove", 0, "(O)", callback);
}

/* Both are asked again, and what they say is written even if they said it before. */
static PyObject *reload(PyObject *self, PyObject *ignored) {
    (void)ignored;
    PyObject *file = get_file(self, NULL), *provider = file != NULL ? get_provider(self, NULL) : NULL;
    int status = provider != NULL ? 0 : -1;
    if (status == 0 && file == Py_None && provider == Py_None) {
        PyErr_SetString(PyExc_LookupError,
                        "there is nothing to reload: neither a file nor a provider is set; give one to configure(), as "
                        "in configure(provider=...)");
        status = -1;
    }
    if (status == 0 && file != Py_None) status = set_file(self, file, NULL);
    PyObject *done = NULL;
    if (status == 0) done = provider != Py_None ? ctpy_call_following("reload", 0, NULL) : Py_NewRef(Py_None);
    Py_XDECREF(file);
    Py_XDECREF(provider);
    return done;
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
     "Who wrote it: 'environment' (CODETIMER_MEASURE), 'configure', 'file PATH', 'provider', 'controller' (from "
     "outside); None while nobody has.",
     NULL},
    {"matches", get_matches, NULL,
     "Of each pattern (text, hits, problem): how many counters of this process it matches, and why it is skipped "
     "(None: it is not).",
     NULL},
    {"file", get_file, set_file,
     "The file in which the list is followed (str, absolute), or None. Setting it to None, or deleting it, ends that.",
     NULL},
    {"provider", get_provider, set_provider,
     "The provider whose list is followed, or None. Setting it to None, or deleting it, ends that.", NULL},
    {"problem", get_problem, NULL, "Why the file, or else the provider, cannot be used (str); None: it can.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(
    on_change_doc,
    "on_change($self, callback, /)\n--\n\n"
    "Call callback(settings) after each change of the members list, by whomever, and return callback, so that\n"
    "it can be used as a decorator.\n\n"
    "It is called in a thread of its own, within a second; once for changes that come while it runs. What it\n"
    "raises is logged, and it stays. It can prevent nothing: the list is in force when it is called.");
PyDoc_STRVAR(remove_doc, "remove_on_change($self, callback, /)\n--\n\n"
                         "No longer call this callback. Returns whether it was there (bool).");
PyDoc_STRVAR(reload_doc,
             "reload($self, /)\n--\n\n"
             "Read the file and ask the provider now, and put into force what they say even if it is not new: that\n"
             "undoes what others have switched meanwhile.\n\n"
             "Raises LookupError where neither is set. A failure of theirs is in problem.");

static PyMethodDef methods[] = {
    {"on_change", on_change, METH_O, on_change_doc},
    {"remove_on_change", remove_on_change, METH_O, remove_doc},
    {"reload", reload, METH_NOARGS, reload_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(settings_doc,
             "What decides which members are measured; see configure(). Each attribute is read when it is\n"
             "asked for.");

static PyType_Slot slots[] = {
    {Py_tp_doc, CTPY_MUTABLE(void *, settings_doc)},
    {Py_tp_dealloc, CTPY_SLOT(free_settings)},
    {Py_tp_repr, CTPY_SLOT(make_repr)},
    {Py_tp_getset, attributes},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec ctpy_settings_spec = {
    .name = "codetimer.Settings",
    .basicsize = sizeof(PyObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

/* ---- configure() ---- */

static int set_members(ctpy_state *state, PyObject *text) {
    const char *utf8;
    Py_ssize_t length;
    ct_members *members = NULL;
    if (ctpy_parse_members(text, 0, &utf8, &length) < 0) return -1;
    int status = ct_members_parse(utf8, (size_t)length, &members);
    if (status == CT_OK) status = ct_members_set(utf8, (size_t)length);
    if (status == CT_OK) ctpy_tell_problems(state, members);
    ct_members_free(members);
    if (status != CT_OK) (void)ctpy_raise(status, "members cannot be set", NULL);
    return status == CT_OK ? 0 : -1;
}

/* Before anything is done. */
static int check_all(PyObject *members, PyObject *file, PyObject *provider) {
    const char *utf8;
    Py_ssize_t length;
    PyObject *path = NULL;
    if (members != Py_None && ctpy_parse_members(members, 0, &utf8, &length) < 0) return -1;
    if (file != Py_None && ctpy_convert_file(file, &path) < 0) return -1;
    Py_XDECREF(path);
    PyObject *checked = provider == Py_None ? Py_NewRef(Py_None) : ctpy_call_following("check", 0, "(O)", provider);
    Py_XDECREF(checked);
    return checked != NULL ? 0 : -1;
}

PyObject *ctpy_configure(PyObject *module, PyObject *args, PyObject *kwargs) {
    static const char *const keywords[] = {"members", "file", "provider", NULL};
    ctpy_state *state = ctpy_get_state(module);
    PyObject *members = Py_None, *file = Py_None, *provider = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOO:configure", CTPY_MUTABLE(char **, keywords), &members, &file,
                                     &provider))
        return NULL;
    if (check_all(members, file, provider) < 0) return NULL;
    if (members != Py_None && set_members(state, members) < 0) return NULL;
    if (file != Py_None && ctpy_follow_file(state, file) < 0) return NULL;
    if (provider != Py_None && ctpy_set_provider(provider) < 0) return NULL;
    PyObject *woken = ctpy_call_following("wake", 1, NULL);
    if (woken == NULL) return NULL;
    Py_DECREF(woken);
    return state->settings_type->tp_alloc(state->settings_type, 0);
}
