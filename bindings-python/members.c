/* SPDX-License-Identifier: MIT
 *
 * members.c: the type codetimer.Members: a members list, to ask what it selects. The language of the lists is the
 * core's.
 */
#include "live.h"

typedef struct members_object {
    PyObject_HEAD PyObject *text; /* an exact str, or None */
    ct_members *members;          /* NULL: no list */
} members_object;

static PyStructSequence_Field pattern_fields[] = {
    {"text", "as it was written (str)"},
    {"position", "of its first character in the list (int)"},
    {"problem", "why it is skipped (str); None of one that is right"},
    {NULL, NULL},
};

static PyStructSequence_Desc pattern_description = {"codetimer.MembersPattern", "A pattern of a Members.",
                                                    pattern_fields, 3};

int ctpy_members_add_types(PyObject *module, ctpy_state *state) {
    return ctpy_add_fields_type(module, &pattern_description, &state->pattern_type);
}

/* ---- texts ---- */

int ctpy_parse_members(PyObject *text, int none, const char **utf8, Py_ssize_t *length) {
    static const Py_ssize_t most = CTPY_MEMBERS_MOST;
    *utf8 = NULL;
    *length = 0;
    if (none && text == Py_None) return 0;
    if (!PyUnicode_Check(text))
        return ctpy_refuse(PyExc_TypeError, none ? "members must be a str or None" : "members must be a str", text);
    *utf8 = PyUnicode_AsUTF8AndSize(text, length);
    if (*utf8 == NULL) return -1;
    if (*length <= most) return 0;
    PyErr_Format(PyExc_ValueError, "members must have at most 65,536 bytes in UTF-8, not %zd", *length);
    return -1;
}

/* "position" of the text in characters, as Python counts them. */
static PyObject *count_characters(const char *utf8, size_t position) {
    PyObject *before = PyUnicode_DecodeUTF8(utf8, (Py_ssize_t)position, "replace");
    PyObject *count = before != NULL ? PyLong_FromSsize_t(PyUnicode_GET_LENGTH(before)) : NULL;
    Py_XDECREF(before);
    return count;
}

static void refuse_pattern(const char *utf8, const ct_members_pattern *pattern) {
    PyObject *position = count_characters(utf8, pattern->position);
    PyObject *text = PyUnicode_DecodeUTF8(pattern->text, (Py_ssize_t)pattern->length, "replace");
    if (position != NULL && text != NULL)
        PyErr_Format(PyExc_ValueError, "the pattern %R at %S is wrong: %s", text, position, pattern->problem);
    Py_XDECREF(position);
    Py_XDECREF(text);
}

int ctpy_check_patterns(const char *utf8, Py_ssize_t length) {
    ct_members *members;
    const int status = ct_members_parse(utf8, (size_t)length, &members);
    if (status != CT_OK) (void)ctpy_raise(status, "members cannot be parsed", NULL);
    if (status != CT_OK) return -1;
    const ct_members_pattern *pattern = NULL;
    for (size_t i = 0; i < ct_members_count(members) && (pattern == NULL || pattern->problem == NULL); i++)
        pattern = ct_members_at(members, i);
    const int wrong = pattern != NULL && pattern->problem != NULL;
    if (wrong) refuse_pattern(utf8, pattern);
    ct_members_free(members);
    return wrong ? -1 : 0;
}

PyObject *ctpy_read_members(ctpy_members_reader read, void *from) {
    char *buffer = NULL;
    size_t size = 1024, length = size;
    int status = CT_OK;
    while (status == CT_OK && length >= size) { /* it can grow in between */
        size = length + 1;
        PyMem_Free(buffer);
        buffer = PyMem_Malloc(size);
        if (buffer == NULL) return PyErr_NoMemory();
        status = read(from, buffer, size, &length);
    }
    PyObject *text = NULL;
    if (status == CT_OK) text = PyUnicode_DecodeUTF8(buffer, (Py_ssize_t)length, "replace");
    if (status == CT_ENOENT) text = Py_NewRef(Py_None);
    if (text == NULL && !PyErr_Occurred()) (void)ctpy_raise(status, "the members list cannot be read", NULL);
    PyMem_Free(buffer);
    return text;
}

/* ---- the type ---- */

static PyObject *new_members(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static const char *const keywords[] = {"text", NULL};
    PyObject *text;
    const char *utf8;
    Py_ssize_t length;
    ct_members *members = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:Members", CTPY_MUTABLE(char **, keywords), &text)) return NULL;
    if (ctpy_parse_members(text, 1, &utf8, &length) < 0) return NULL;
    int status = utf8 != NULL ? ct_members_parse(utf8, (size_t)length, &members) : CT_OK;
    if (status != CT_OK) return ctpy_raise(status, "it cannot be parsed", NULL);
    PyObject *kept = utf8 != NULL ? PyUnicode_FromStringAndSize(utf8, length) : Py_NewRef(Py_None);
    members_object *self = kept != NULL ? (members_object *)type->tp_alloc(type, 0) : NULL;
    if (self == NULL) {
        Py_XDECREF(kept);
        ct_members_free(members);
        return NULL;
    }
    self->text = kept;
    self->members = members;
    return (PyObject *)self;
}

static void free_members(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    ct_members_free(((members_object *)self)->members);
    Py_DECREF(((members_object *)self)->text);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *selects(PyObject *self, PyObject *member) {
    Py_ssize_t length;
    if (!PyUnicode_Check(member)) {
        (void)ctpy_refuse(PyExc_TypeError, "member must be a str", member);
        return NULL;
    }
    const char *utf8 = PyUnicode_AsUTF8AndSize(member, &length);
    if (utf8 == NULL) return NULL;
    return PyBool_FromLong(ct_members_selects(((members_object *)self)->members, utf8, (size_t)length));
}

static PyObject *get_text(PyObject *self, void *closure) {
    (void)closure;
    return Py_NewRef(((members_object *)self)->text);
}

static PyObject *make_pattern(PyTypeObject *type, const char *utf8, const ct_members_pattern *pattern) {
    PyObject *values[] = {
        PyUnicode_DecodeUTF8(pattern->text, (Py_ssize_t)pattern->length, "replace"),
        count_characters(utf8, pattern->position),
        ctpy_text(pattern->problem),
    };
    return CTPY_FILL(type, values);
}

static PyObject *get_patterns(PyObject *self, void *closure) {
    (void)closure;
    const members_object *members = (members_object *)self;
    PyTypeObject *type = ((ctpy_state *)PyType_GetModuleState(Py_TYPE(self)))->pattern_type;
    const size_t count = members->members != NULL ? ct_members_count(members->members) : 0;
    const char *utf8 = count > 0 ? PyUnicode_AsUTF8(members->text) : "";
    PyObject *patterns = utf8 != NULL ? PyTuple_New((Py_ssize_t)count) : NULL;
    for (size_t i = 0; patterns != NULL && i < count; i++) {
        PyObject *pattern = make_pattern(type, utf8, ct_members_at(members->members, i));
        if (pattern == NULL) Py_CLEAR(patterns);
        if (pattern != NULL) PyTuple_SET_ITEM(patterns, (Py_ssize_t)i, pattern);
    }
    return patterns;
}

static PyObject *make_repr(PyObject *self) {
    return PyUnicode_FromFormat("codetimer.Members(%R)", ((members_object *)self)->text);
}

static PyGetSetDef attributes[] = {
    {"text", get_text, NULL, "The list as it was given (str), or None.", NULL},
    {"patterns", get_patterns, NULL, "Its patterns, also those that are wrong (tuple of MembersPattern).", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(
    members_doc,
    "Members(text)\n--\n\n"
    "A members list: text that selects members by name.\n\n"
    "text: str of at most 65,536 bytes in UTF-8: patterns separated by ';' or newlines; '#' begins a comment;\n"
    "    '*' stands for any characters, dots too, '?' for one; '!' in front excludes; the last pattern that\n"
    "    matches decides; a list that begins with '!' starts from all; case matters; a backslash quotes\n"
    "    ; ! # * ? and itself. None: no list, which selects all.\n\n"
    "A pattern that is wrong is skipped and says why in patterns; the rest applies.");
PyDoc_STRVAR(selects_doc, "selects($self, member, /)\n--\n\nWhether the list selects this member (str).");

static PyMethodDef methods[] = {
    {"selects", selects, METH_O, selects_doc},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, CTPY_MUTABLE(void *, members_doc)},
    {Py_tp_new, CTPY_SLOT(new_members)},
    {Py_tp_dealloc, CTPY_SLOT(free_members)},
    {Py_tp_repr, CTPY_SLOT(make_repr)},
    {Py_tp_getset, attributes},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec ctpy_members_spec = {
    .name = "codetimer.Members",
    .basicsize = sizeof(members_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
