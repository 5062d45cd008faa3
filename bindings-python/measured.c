/* SPDX-License-Identifier: MIT
 *
 * measured.c: the object that stands in place of a measured function.
 *
 * A call passes straight through, between two readings of the clock: the arguments are handed on as they came, no
 * frame, tuple or dict is made. For everything else the object is the wrapped one: attributes are read from it and
 * written to it, its repr, class, signature and pickled form are its own. What belongs to the object itself is little:
 * how it is called, bound, compared, and __wrapped__, which is the wrapped object unless that has one of its own.
 *
 * It never holds NULL: clearing it (when it is garbage) leaves None in place of the function, so that a late call is an
 * error and not a crash. A call keeps the object alive, because it may drop the last name of itself.
 */
#include <stddef.h>

#include "underway.h"

#include <structmember.h> /* expects Python.h before it */

typedef struct measured_object {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject *wrapped;
    ct_counter *counter;
    ctpy_state *state; /* lives as long as the type */
    PyObject *owner;   /* NULL, or the measured object whose counter this bound one uses */
    PyObject *note;    /* NULL, or what instrument knows about it */
    PyObject *weak;
    int suspends; /* what it calls returns what runs later: always (1), or most of the time (2) */
} measured_object;

/* ---- calls ---- */

static inline void leave(measured_object *self, const ct_token *token, PyObject *result) {
    int outcome = result != NULL ? CT_RETURNED : ctpy_judge_raised();
    if (self->state->trace_increments) {
        ctpy_leave_traced(self->state, self->counter, token, outcome);
    } else {
        ct_leave(self->counter, token, outcome);
    }
}

/* An even state: switched off, nothing to leave. */
static inline PyObject *finish(measured_object *self, const ct_token *token, PyObject *result) {
    if (token->state % 2 == 1) leave(self, token, result);
    Py_DECREF(self);
    return result;
}

/* The wrapped object is a Python function. Its entry is read at each call, as other tools may replace it. */
static PyObject *call_function(PyObject *callable, PyObject *const *args, size_t count, PyObject *names) {
    measured_object *self = (measured_object *)callable;
    ct_token token;
    ct_enter(self->counter, &token);
    Py_INCREF(self);
    PyObject *result = ((PyFunctionObject *)self->wrapped)->vectorcall(self->wrapped, args, count, names);
    return finish(self, &token, result);
}

static PyObject *call_any(PyObject *callable, PyObject *const *args, size_t count, PyObject *names) {
    measured_object *self = (measured_object *)callable;
    ct_token token;
    ct_enter(self->counter, &token);
    Py_INCREF(self);
    return finish(self, &token, PyObject_Vectorcall(self->wrapped, args, count, names));
}

/* Instrumented no longer, but still called by those who kept it. */
static PyObject *pass_through(PyObject *callable, PyObject *const *args, size_t count, PyObject *names) {
    PyObject *wrapped = Py_NewRef(((measured_object *)callable)->wrapped);
    PyObject *result = PyObject_Vectorcall(wrapped, args, count, names);
    Py_DECREF(wrapped);
    return result;
}

/* What is created counts later, by itself; while the counter is switched off it is left alone. */
static PyObject *call_suspending(PyObject *callable, PyObject *const *args, size_t count, PyObject *names) {
    measured_object *self = (measured_object *)callable;
    if (!ct_counter_enabled(self->counter)) return pass_through(callable, args, count, names);
    Py_INCREF(self);
    const uint64_t start = self->suspends == 1 ? 0 : ct_now_ns();
    PyObject *made = PyObject_Vectorcall(self->wrapped, args, count, names);
    made = ctpy_underway_new(self->state, callable, self->counter, made, start);
    Py_DECREF(self);
    return made;
}

static vectorcallfunc choose_call(const measured_object *self) {
    return self->suspends ? call_suspending : PyFunction_Check(self->wrapped) ? call_function : call_any;
}

void ctpy_measured_pass(PyObject *object, int pass) {
    measured_object *self = (measured_object *)object;
    self->vectorcall = pass ? pass_through : choose_call(self);
}

int ctpy_measured_passes(PyObject *object) { return ((measured_object *)object)->vectorcall == pass_through; }

PyObject **ctpy_measured_note(PyObject *object) { return &((measured_object *)object)->note; }

/* ---- making ---- */

static void free_measured(PyObject *object);

/* The types cannot be subclassed, so a slot of theirs tells. */
int ctpy_is_measured(ctpy_state *state, PyObject *object) {
    (void)state;
    if (PyMethod_Check(object)) object = PyMethod_GET_FUNCTION(object);
    return Py_TYPE(object)->tp_dealloc == free_measured;
}

int ctpy_is_measured_object(PyObject *object) {
    return Py_TYPE(object)->tp_richcompare == ctpy_compare_wrapped;
}

PyObject *ctpy_measured_wrapped(PyObject *object) { return ((measured_object *)object)->wrapped; }

ct_counter *ctpy_measured_counter(PyObject *object) { return ((measured_object *)object)->counter; }

/* Borrowed; NULL with an exception. */
static PyTypeObject *choose_type(ctpy_state *state, PyObject *wrapped) {
    if (!PyCallable_Check(wrapped)) return state->measured_types[CTPY_ATTRIBUTE];
    if (PyType_HasFeature(Py_TYPE(wrapped), Py_TPFLAGS_METHOD_DESCRIPTOR)) return state->measured_types[CTPY_FUNCTION];
    if (Py_TYPE(wrapped)->tp_descr_get == NULL)
        return ctpy_special_type(state, CTPY_OBJECT, &ctpy_measured_object_spec, wrapped);
    return ctpy_special_type(state, CTPY_DESCRIPTOR, &ctpy_measured_descriptor_spec, wrapped);
}

static int is_suspending_code(PyObject *wrapped) {
    const int flags = PyFunction_Check(wrapped) ? ((PyCodeObject *)PyFunction_GET_CODE(wrapped))->co_flags : 0;
    return (flags & (CO_COROUTINE | CO_GENERATOR | CO_ASYNC_GENERATOR)) != 0;
}

static measured_object *make(PyTypeObject *type, PyObject *wrapped, int suspends) {
    measured_object *self = type != NULL ? (measured_object *)type->tp_alloc(type, 0) : NULL;
    if (self == NULL) return NULL;
    self->state = (ctpy_state *)PyType_GetModuleState(type);
    self->wrapped = Py_NewRef(wrapped);
    self->suspends = !suspends ? 0 : is_suspending_code(wrapped) ? 1 : 2;
    self->vectorcall = choose_call(self);
    return self;
}

PyObject *ctpy_measured_new(ctpy_state *state, PyObject *wrapped, ct_counter *counter, int suspends) {
    measured_object *self = make(choose_type(state, wrapped), wrapped, suspends);
    if (self == NULL) ctpy_close_counter(counter);
    if (self != NULL) self->counter = counter;
    return (PyObject *)self;
}

static int visit_measured(PyObject *object, visitproc visit, void *arg) {
    measured_object *self = (measured_object *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->wrapped);
    Py_VISIT(self->owner);
    Py_VISIT(self->note);
    return 0;
}

static int clear_measured(PyObject *object) {
    measured_object *self = (measured_object *)object;
    PyObject *wrapped = self->wrapped;
    self->vectorcall = call_any;
    self->wrapped = Py_NewRef(Py_None);
    Py_XDECREF(wrapped);
    Py_CLEAR(self->note);
    return 0; /* the owner is kept: its counter may still be used */
}

static void free_measured(PyObject *object) {
    measured_object *self = (measured_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (self->weak != NULL) PyObject_ClearWeakRefs(object);
    if (self->owner == NULL) ctpy_close_counter(self->counter);
    Py_XDECREF(self->owner);
    Py_XDECREF(self->note);
    Py_XDECREF(self->wrapped);
    type->tp_free(object);
    Py_DECREF(type);
}

/* ---- binding ---- */

static PyObject *bind_function(PyObject *object, PyObject *instance, PyObject *type) {
    (void)type;
    return instance == NULL || instance == Py_None ? Py_NewRef(object) : PyMethod_New(object, instance);
}

/* As the wrapped object binds; what comes out of it is called under the same counter. Steals "bound". */
static PyObject *measure_bound(measured_object *self, PyObject *bound) {
    PyTypeObject *type = ctpy_special_type(self->state, CTPY_OBJECT, &ctpy_measured_object_spec, bound);
    measured_object *made = make(type, bound, self->suspends);
    Py_DECREF(bound);
    if (made == NULL) return NULL;
    made->counter = self->counter;
    made->owner = Py_NewRef(self);
    return (PyObject *)made;
}

static PyObject *bind_descriptor(PyObject *object, PyObject *instance, PyObject *type) {
    measured_object *self = (measured_object *)object;
    descrgetfunc get = Py_TYPE(self->wrapped)->tp_descr_get;
    if (get == NULL) return Py_NewRef(object);
    PyObject *bound = get(self->wrapped, instance, type);
    if (bound == self->wrapped) {
        Py_DECREF(bound);
        return Py_NewRef(object);
    }
    int measured = bound != NULL && PyCallable_Check(bound) && !ctpy_measured_passes(object);
    return measured ? measure_bound(self, bound) : bound;
}

/* ---- attributes ---- */

/* What is the object's own; all other names are the wrapped object's. */
static int is_own(PyObject *name) {
    static const char *const own[] = {"__wrapped__", "__call__",      "__get__",  "__eq__",  "__ne__",
                                      "__reduce__",  "__reduce_ex__", "__hash__", "__repr__"};
    if (!PyUnicode_Check(name) || PyUnicode_GET_LENGTH(name) < 4 || PyUnicode_READ_CHAR(name, 0) != '_') return 0;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (PyUnicode_CompareWithASCIIString(name, own[i]) == 0) return 1;
    return 0;
}

/* Copying would ask the wrapped object for a copy, which would not be measured; without this it asks __reduce_ex__. */
static int is_hidden(PyObject *name) {
    return PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "__deepcopy__") == 0;
}

/* Frameworks ask an object's __call__ whether it is a coroutine function. */
static PyObject *get_call(measured_object *self, PyObject *name) {
    PyObject *call = PyObject_GetAttr(self->wrapped, name);
    return call != NULL && !ctpy_measured_passes((PyObject *)self) ? measure_bound(self, call) : call;
}

static int is_call(PyObject *name) {
    return PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, "__call__") == 0;
}

static PyObject *get_attribute(PyObject *object, PyObject *name) {
    measured_object *self = (measured_object *)object;
    PyObject *wrapped = self->wrapped;
    if (self->suspends && ctpy_is_measured_object(object) && is_call(name)) return get_call(self, name);
    return is_own(name) || is_hidden(name) ? PyObject_GenericGetAttr(object, name) : PyObject_GetAttr(wrapped, name);
}

/* What the wrapped object itself is around, if it is; so that the chain is as long as ever where functools.wraps set
 * it. */
static PyObject *get_wrapped(PyObject *object, void *name) {
    PyObject *wrapped = ((measured_object *)object)->wrapped;
    PyObject *inner = PyObject_GetAttrString(wrapped, name);
    if (inner != NULL || !PyErr_ExceptionMatches(PyExc_AttributeError)) return inner;
    PyErr_Clear();
    return Py_NewRef(wrapped);
}

/* For those who ask by way of object.__getattribute__. */
static PyObject *get_text(PyObject *object, void *name) {
    return PyObject_GetAttrString(((measured_object *)object)->wrapped, name);
}

/* Also deletes: "value" is NULL then. */
static int set_attribute(PyObject *object, PyObject *name, PyObject *value) {
    return PyObject_SetAttr(((measured_object *)object)->wrapped, name, value);
}

static PyObject *make_repr(PyObject *object) { return PyObject_Repr(((measured_object *)object)->wrapped); }

static PyObject *make_str(PyObject *object) { return PyObject_Str(((measured_object *)object)->wrapped); }

/* ---- the types ---- */

static PyMethodDef function_methods[] = {
    {"__reduce__", ctpy_reduce_measured, METH_NOARGS, NULL},
    {"__reduce_ex__", ctpy_reduce_measured, METH_O, NULL},
    {"__set_name__", ctpy_set_function_name, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef object_methods[] = {
    {"__reduce__", ctpy_reduce_measured, METH_NOARGS, NULL},
    {"__reduce_ex__", ctpy_reduce_measured, METH_O, NULL},
    {"__set_name__", ctpy_set_object_name, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(measured_object, weak), READONLY, NULL},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(measured_object, vectorcall), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyMemberDef attribute_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(measured_object, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"__wrapped__", get_wrapped, NULL, NULL, CTPY_MUTABLE(void *, "__wrapped__")},
    {"__doc__", get_text, NULL, NULL, CTPY_MUTABLE(void *, "__doc__")},
    {"__name__", get_text, NULL, NULL, CTPY_MUTABLE(void *, "__name__")},
    {"__qualname__", get_text, NULL, NULL, CTPY_MUTABLE(void *, "__qualname__")},
    {NULL, NULL, NULL, NULL, NULL},
};

/* clang-format off */
#define COMMON_SLOTS                                   \
    {Py_tp_dealloc, CTPY_SLOT(free_measured)},         \
    {Py_tp_traverse, CTPY_SLOT(visit_measured)},       \
    {Py_tp_clear, CTPY_SLOT(clear_measured)},          \
    {Py_tp_getattro, CTPY_SLOT(get_attribute)},        \
    {Py_tp_setattro, CTPY_SLOT(set_attribute)},        \
    {Py_tp_repr, CTPY_SLOT(make_repr)},                \
    {Py_tp_str, CTPY_SLOT(make_str)},                  \
    {Py_tp_getset, attributes}
/* clang-format on */

static PyType_Slot function_slots[] = {
    COMMON_SLOTS,
    {Py_tp_richcompare, CTPY_SLOT(ctpy_compare_function)},
    {Py_tp_hash, CTPY_SLOT(ctpy_hash_wrapped)},
    {Py_tp_call, CTPY_SLOT(PyVectorcall_Call)},
    {Py_tp_members, members},
    {Py_tp_descr_get, CTPY_SLOT(bind_function)},
    {Py_tp_methods, function_methods},
    {0, NULL},
};

static PyType_Slot descriptor_slots[] = {
    COMMON_SLOTS,
    {Py_tp_richcompare, CTPY_SLOT(ctpy_compare_wrapped)},
    {Py_tp_hash, CTPY_SLOT(ctpy_hash_wrapped)},
    {Py_tp_call, CTPY_SLOT(PyVectorcall_Call)},
    {Py_tp_members, members},
    {Py_tp_descr_get, CTPY_SLOT(bind_descriptor)},
    {Py_tp_methods, object_methods},
    {0, NULL},
};

static PyType_Slot object_slots[] = {
    COMMON_SLOTS,
    {Py_tp_richcompare, CTPY_SLOT(ctpy_compare_wrapped)},
    {Py_tp_hash, CTPY_SLOT(ctpy_hash_wrapped)},
    {Py_tp_call, CTPY_SLOT(PyVectorcall_Call)},
    {Py_tp_members, members},
    {Py_tp_methods, object_methods},
    {0, NULL},
};

/* What only binds: a singledispatchmethod cannot be called itself. */
static PyType_Slot attribute_slots[] = {
    COMMON_SLOTS,
    {Py_tp_descr_get, CTPY_SLOT(bind_descriptor)},
    {Py_tp_members, attribute_members},
    {Py_tp_methods, object_methods},
    {0, NULL},
};

#define COMMON_FLAGS                                                                                                   \
    (Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION)

PyType_Spec ctpy_measured_function_spec = {
    .name = "codetimer.MeasuredFunction",
    .basicsize = sizeof(measured_object),
    .flags = COMMON_FLAGS | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, /* o.m() makes no method */
    .slots = function_slots,
};

PyType_Spec ctpy_measured_descriptor_spec = {
    .name = "codetimer.MeasuredDescriptor",
    .basicsize = sizeof(measured_object),
    .flags = COMMON_FLAGS | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = descriptor_slots,
};

PyType_Spec ctpy_measured_object_spec = {
    .name = "codetimer.MeasuredObject",
    .basicsize = sizeof(measured_object),
    .flags = COMMON_FLAGS | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = object_slots,
};

PyType_Spec ctpy_measured_attribute_spec = {
    .name = "codetimer.MeasuredAttribute",
    .basicsize = sizeof(measured_object),
    .flags = COMMON_FLAGS,
    .slots = attribute_slots,
};
