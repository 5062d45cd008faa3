/* SPDX-License-Identifier: MIT
 *
 * counters.c: codetimer.counters, the mapping of all counters of this process by key, and report().
 *
 * Other threads, and other interpreters of the process, make and remove counters at any time. So whatever walks over
 * them works on the keys of one moment, and a counter that is gone by then is left out.
 */
#include "counting.h"

static ctpy_state *get_state(PyObject *self) { return (ctpy_state *)PyType_GetModuleState(Py_TYPE(self)); }

/* ---- keys ---- */

/* In a tuple, as a key that is None or a tuple would be taken for the arguments themselves. */
static void refuse_key(PyObject *key) {
    PyObject *args = PyTuple_Pack(1, key);
    if (args != NULL) PyErr_SetObject(PyExc_KeyError, args);
    Py_XDECREF(args);
}

PyObject *ctpy_encode_key(PyObject *key) {
    if (!PyUnicode_Check(key)) {
        refuse_key(key);
        return NULL;
    }
    PyObject *bytes = PyUnicode_AsEncodedString(key, "utf-8", "backslashreplace");
    if (bytes == NULL || strlen(PyBytes_AS_STRING(bytes)) == (size_t)PyBytes_GET_SIZE(bytes)) return bytes;
    Py_DECREF(bytes);
    refuse_key(key);
    return NULL;
}

/* The key at "index" as a str; NULL where none is listed, or with an exception. */
static PyObject *read_key(uint32_t index) {
    char small[256], *buffer = small;
    size_t size = sizeof small, length = ct_counters_key(index, small, size);
    while (length >= size) { /* another key can be there each time */
        size = length + 1;
        if (buffer != small) PyMem_Free(buffer);
        buffer = PyMem_Malloc(size);
        if (buffer == NULL) return PyErr_NoMemory();
        length = ct_counters_key(index, buffer, size);
    }
    PyObject *key = length > 0 ? PyUnicode_DecodeUTF8(buffer, (Py_ssize_t)length, "replace") : NULL;
    if (buffer != small) PyMem_Free(buffer);
    return key;
}

/* A list of all keys at this moment; with "member", of those that have it. */
static PyObject *list_keys(PyObject *member) {
    PyObject *keys = PyList_New(0);
    const uint32_t end = ct_counters_end();
    for (uint32_t i = 0; keys != NULL && i < end; i++) {
        PyObject *key = read_key(i);
        if (key == NULL && !PyErr_Occurred()) continue;
        PyObject *part = key != NULL && member != NULL ? ctpy_key_member(key) : NULL;
        int wanted = member == NULL || (part != NULL && PyUnicode_Compare(part, member) == 0);
        if (PyErr_Occurred() || (wanted && PyList_Append(keys, key) < 0)) Py_CLEAR(keys);
        Py_XDECREF(part);
        Py_XDECREF(key);
    }
    return keys;
}

/* ---- one counter ---- */

/* *counter: the Counter of exactly this key, new; NULL where there is none. -1 with KeyError for what cannot be a key,
 * or another exception. */
static int find_exactly(ctpy_state *state, PyObject *key, PyObject **counter) {
    *counter = NULL;
    PyObject *bytes = ctpy_encode_key(key);
    if (bytes == NULL) return -1;
    ct_writer *writer = ctpy_get_writer(state);
    ct_counter *handle;
    int status = writer != NULL ? ct_counter_find(writer, PyBytes_AS_STRING(bytes), &handle) : CT_ENOMEM;
    Py_DECREF(bytes);
    if (status == CT_ENOENT) return 0;
    if (status != CT_OK) {
        PyErr_NoMemory();
        return -1;
    }
    *counter = ctpy_counter_new(state, handle);
    return *counter != NULL ? 0 : -1;
}

/* "member" with lone surrogates as they are in keys. */
static PyObject *normalize(PyObject *member) {
    PyObject *bytes = ctpy_encode_key(member);
    if (bytes == NULL) return NULL;
    PyObject *text = PyUnicode_DecodeUTF8(PyBytes_AS_STRING(bytes), PyBytes_GET_SIZE(bytes), "replace");
    Py_DECREF(bytes);
    return text;
}

/* The one key of a member, new; NULL with KeyError where there is none, or more than one: then it names them. */
static PyObject *find_key(PyObject *member) {
    PyObject *plain = normalize(member);
    PyObject *keys = plain != NULL ? list_keys(plain) : NULL;
    Py_XDECREF(plain);
    if (keys == NULL) return NULL;
    PyObject *key = NULL;
    if (PyList_GET_SIZE(keys) == 1) key = Py_NewRef(PyList_GET_ITEM(keys, 0));
    if (PyList_GET_SIZE(keys) == 0) refuse_key(member);
    if (PyList_GET_SIZE(keys) > 1)
        PyErr_Format(PyExc_KeyError, "%R is the member of several counters; ask by key: %R", member, keys);
    Py_DECREF(keys);
    return key;
}

static PyObject *get_item(PyObject *self, PyObject *key) {
    PyObject *counter;
    if (find_exactly(get_state(self), key, &counter) < 0 || counter != NULL) return counter;
    PyObject *full = find_key(key);
    if (full == NULL) return NULL;
    if (find_exactly(get_state(self), full, &counter) == 0 && counter == NULL) refuse_key(key);
    Py_DECREF(full);
    return counter;
}

/* ---- as a mapping ---- */

static int contains(PyObject *self, PyObject *key) {
    PyObject *counter = get_item(self, key);
    if (counter == NULL && !PyErr_ExceptionMatches(PyExc_KeyError)) return -1;
    PyErr_Clear();
    Py_XDECREF(counter);
    return counter != NULL;
}

static Py_ssize_t count(PyObject *self) {
    (void)self;
    ct_counters info;
    ct_counters_info(&info);
    return (Py_ssize_t)info.listed;
}

static PyObject *iterate(PyObject *self) {
    (void)self;
    PyObject *keys = list_keys(NULL);
    PyObject *iterator = keys != NULL ? PyObject_GetIter(keys) : NULL;
    Py_XDECREF(keys);
    return iterator;
}

static int put_counter(ctpy_state *state, PyObject *dict, PyObject *key) {
    PyObject *counter;
    if (find_exactly(state, key, &counter) < 0) return -1;
    int put = counter != NULL ? PyDict_SetItem(dict, key, counter) : 0;
    Py_XDECREF(counter);
    return put;
}

/* All counters of this moment in a dict, whose views are then those of a mapping. */
static PyObject *copy_to_dict(PyObject *self) {
    PyObject *keys = list_keys(NULL), *dict = keys != NULL ? PyDict_New() : NULL;
    for (Py_ssize_t i = 0; dict != NULL && i < PyList_GET_SIZE(keys); i++)
        if (put_counter(get_state(self), dict, PyList_GET_ITEM(keys, i)) < 0) Py_CLEAR(dict);
    Py_XDECREF(keys);
    return dict;
}

static PyObject *make_view(PyObject *self, const char *method) {
    PyObject *dict = copy_to_dict(self);
    PyObject *view = dict != NULL ? PyObject_CallMethod(dict, method, NULL) : NULL;
    Py_XDECREF(dict);
    return view;
}

static PyObject *get_keys(PyObject *self, PyObject *ignored) {
    (void)ignored;
    return make_view(self, "keys");
}

static PyObject *get_values(PyObject *self, PyObject *ignored) {
    (void)ignored;
    return make_view(self, "values");
}

static PyObject *get_items(PyObject *self, PyObject *ignored) {
    (void)ignored;
    return make_view(self, "items");
}

static PyObject *get(PyObject *self, PyObject *args, PyObject *kwargs) {
    static const char *const keywords[] = {"", "default", NULL};
    PyObject *key, *otherwise = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:get", CTPY_MUTABLE(char **, keywords), &key, &otherwise))
        return NULL;
    PyObject *counter = get_item(self, key);
    if (counter != NULL || !PyErr_ExceptionMatches(PyExc_KeyError)) return counter;
    PyErr_Clear();
    return Py_NewRef(otherwise);
}

/* ---- attributes ---- */

static PyObject *get_capacity(PyObject *self, void *closure) {
    (void)self, (void)closure;
    ct_counters info;
    ct_counters_info(&info);
    return PyLong_FromUnsignedLongLong(info.capacity);
}

static PyObject *get_refused(PyObject *self, void *closure) {
    (void)self, (void)closure;
    ct_counters info;
    ct_counters_info(&info);
    return PyLong_FromUnsignedLongLong(info.refused);
}

static PyObject *get_last_refused(PyObject *self, void *closure) {
    (void)self, (void)closure;
    ct_counters info;
    ct_counters_info(&info);
    return ctpy_text(info.refused > 0 ? info.last_refused : NULL);
}

static PyObject *make_repr(PyObject *self) { return PyUnicode_FromFormat("<codetimer.counters: %zd>", count(self)); }

static PyGetSetDef attributes[] = {
    {"capacity", get_capacity, NULL,
     "How many there can be (int): CODETIMER_MAX_COUNTERS, of at most 65,536; 16,384 where that is no number.", NULL},
    {"refused", get_refused, NULL, "How often a counter could not be made (int).", NULL},
    {"last_refused", get_last_refused, NULL,
     "The key of the last one that could not be made, cut to fit (str), or None.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(counters_doc,
             "All counters of this process: a mapping from 'category/member' to Counter.\n\n"
             "counters['member'] works too where only one counter has that member; where several have, the KeyError\n"
             "names their keys. Disabled counters are here, removed ones are not. Views and iterators show the moment\n"
             "at which they were made.");

static PyMethodDef methods[] = {
    {"get", CTPY_WITH_KEYWORDS(get), METH_VARARGS | METH_KEYWORDS,
     "get($self, key, /, default=None)\n--\n\nThe Counter, or default where there is none."},
    {"keys", get_keys, METH_NOARGS, "keys($self, /)\n--\n\nThe keys at this moment."},
    {"values", get_values, METH_NOARGS, "values($self, /)\n--\n\nThe Counters at this moment."},
    {"items", get_items, METH_NOARGS, "items($self, /)\n--\n\nThe pairs of key and Counter at this moment."},
    {NULL, NULL, 0, NULL},
};

/* The module holds the one instance, the instance its type, the type the module: the collector must see the whole ring.
 * */
static int visit_counters(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static void free_counters(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyType_Slot slots[] = {
    {Py_tp_traverse, CTPY_SLOT(visit_counters)},
    {Py_tp_dealloc, CTPY_SLOT(free_counters)},
    {Py_tp_doc, CTPY_MUTABLE(void *, counters_doc)},
    {Py_tp_repr, CTPY_SLOT(make_repr)},
    {Py_mp_subscript, CTPY_SLOT(get_item)},
    {Py_mp_length, CTPY_SLOT(count)},
    {Py_sq_contains, CTPY_SLOT(contains)},
    {Py_tp_iter, CTPY_SLOT(iterate)},
    {Py_tp_getset, attributes},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec ctpy_counters_spec = {
    .name = "codetimer.Counters",
    .basicsize = sizeof(PyObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int ctpy_counters_add(PyObject *module, ctpy_state *state) {
    PyObject *abc = PyImport_ImportModule("_collections_abc");
    PyObject *mapping = abc != NULL ? PyObject_GetAttrString(abc, "Mapping") : NULL;
    PyObject *registered =
        mapping != NULL ? PyObject_CallMethod(mapping, "register", "O", (PyObject *)state->counters_type) : NULL;
    Py_XDECREF(abc);
    Py_XDECREF(mapping);
    Py_XDECREF(registered);
    if (registered == NULL) return -1;
    PyObject *counters = state->counters_type->tp_alloc(state->counters_type, 0);
    int added = counters != NULL ? PyModule_AddObjectRef(module, "counters", counters) : -1;
    Py_XDECREF(counters);
    return added;
}

/* ---- report() ---- */

/* Reading thousands of counters takes some ms, so others may run meanwhile, and the table may grow between two looks.
 */
static PyObject *format_table(const void *what, const ct_report_options *options) {
    (void)what;
    size_t size = 0, length = 1;
    char *buffer = NULL;
    while (length > 0 && length >= size) {
        size = length + 1024;
        PyMem_Free(buffer);
        buffer = PyMem_Malloc(size);
        if (buffer == NULL) return PyErr_NoMemory();
        Py_BEGIN_ALLOW_THREADS length = ct_report_counters(options, buffer, size);
        Py_END_ALLOW_THREADS
    }
    PyObject *text = length > 0 ? PyUnicode_DecodeUTF8(buffer, (Py_ssize_t)length, "replace") : PyErr_NoMemory();
    PyMem_Free(buffer);
    return text;
}

PyObject *ctpy_report(PyObject *module, PyObject *args, PyObject *kwargs) {
    (void)module;
    static const char *const keywords[] = {"file", NULL};
    PyObject *file = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:report", CTPY_MUTABLE(char **, keywords), &file)) return NULL;
    if (file == Py_None) file = NULL;
    if (file != NULL && ctpy_check_file(file) < 0) return NULL;
    return ctpy_write(file, format_table, NULL) == 0 ? Py_NewRef(Py_None) : NULL;
}
