/* SPDX-License-Identifier: MIT
 *
 * environment.c: codetimer.initialize and the type codetimer.Environment.
 *
 * An Environment remembers what the core found, so that exactly that can be put back, by the same thread. Dropping the
 * object puts nothing back: initialize() at the top of a program is meant to last.
 */
#include "common.h"

typedef struct environment_object {
    PyObject_HEAD ct_environment *environment;
} environment_object;

static ct_environment *get_environment(PyObject *self) { return ((environment_object *)self)->environment; }

static ctpy_state *get_state(PyObject *self) { return (ctpy_state *)PyType_GetModuleState(Py_TYPE(self)); }

static void free_environment(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    ct_environment_free(get_environment(self));
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- attributes ---- */

static PyObject *get_priority(PyObject *self, void *closure) {
    (void)closure;
    return ctpy_priority_new(get_state(self), get_environment(self)->priority);
}

static PyObject *get_clock(PyObject *self, void *closure) {
    (void)closure;
    return ctpy_clock_new(get_state(self), &get_environment(self)->clock);
}

static PyObject *get_cycles(PyObject *self, void *closure) {
    (void)closure;
    return ctpy_cycles_new(get_state(self), &get_environment(self)->cycles);
}

static PyGetSetDef attributes[] = {
    {"priority", get_priority, NULL, "What was asked for and obtained (Priority).", NULL},
    {"clock", get_clock, NULL, "The clock, as clock_info() tells it (ClockInfo).", NULL},
    {"cycles", get_cycles, NULL, "The cycles of this thread at that moment (ThreadCycles).", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyObject *make_str(PyObject *self) {
    const ct_environment *environment = get_environment(self);
    size_t length = ct_environment_format(environment, NULL, 0);
    char *buffer = PyMem_Malloc(length + 1);
    if (buffer == NULL) return PyErr_NoMemory();
    (void)ct_environment_format(environment, buffer, length + 1);
    PyObject *text = PyUnicode_DecodeUTF8(buffer, (Py_ssize_t)length, "replace");
    PyMem_Free(buffer);
    return text;
}

static PyObject *make_repr(PyObject *self) {
    const ct_environment *environment = get_environment(self);
    return PyUnicode_FromFormat("<codetimer.Environment: %s, clock %s, cycles %s>", environment->priority->effective,
                                environment->clock.source, ct_cycles_kind_name(environment->cycles.kind));
}

/* ---- methods ---- */

static PyObject *refuse_restore(int status) {
    if (status == CT_ETHREAD) {
        PyErr_SetString(PyExc_RuntimeError,
                        "restore: called from another thread than the one that called initialize; nothing was changed, "
                        "call it from that thread");
        return NULL;
    }
    PyObject *type = status == CT_EPERM ? PyExc_PermissionError : PyExc_OSError;
    return PyErr_Format(type, "restore: %s (%s)", ct_status_text(status), ct_status_name(status));
}

/* True: as before. False: someone else has changed it since, so it is left alone. */
static PyObject *restore(PyObject *self, PyObject *ignored) {
    (void)ignored;
    int status = ct_environment_restore(get_environment(self));
    if (status == CT_OK || status == CT_ECHANGED) return PyBool_FromLong(status == CT_OK);
    return refuse_restore(status);
}

static PyObject *enter(PyObject *self, PyObject *ignored) {
    (void)ignored;
    return Py_NewRef(self);
}

/* An exception that is on its way out is not replaced by a failure to restore. */
static PyObject *leave(PyObject *self, PyObject *args) {
    PyObject *restored = restore(self, NULL);
    int raised = PyTuple_GET_SIZE(args) > 0 && PyTuple_GET_ITEM(args, 0) != Py_None;
    Py_XDECREF(restored);
    if (restored == NULL && !raised) return NULL;
    PyErr_Clear();
    return Py_NewRef(Py_None);
}

PyDoc_STRVAR(environment_doc,
             "What initialize prepared: attributes priority, clock, cycles; str() tells them in a few lines.\n\n"
             "Leaving it as a context manager restores what initialize found. Dropping it restores nothing.");
PyDoc_STRVAR(restore_doc,
             "restore($self, /)\n--\n\n"
             "Put back exactly what initialize found. A second call does nothing.\n\n"
             "Returns True, or False where someone else has changed the priority since: it is left alone.\n"
             "Raises RuntimeError on another thread than the one that called initialize, PermissionError or\n"
             "OSError where the system refuses.");

static PyMethodDef methods[] = {
    {"restore", restore, METH_NOARGS, restore_doc},
    {"__enter__", enter, METH_NOARGS, "__enter__($self, /)\n--\n\nReturn the Environment."},
    {"__exit__", leave, METH_VARARGS, "__exit__($self, /, *exc_info)\n--\n\nCall restore()."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, CTPY_MUTABLE(void *, environment_doc)},
    {Py_tp_dealloc, CTPY_SLOT(free_environment)},
    {Py_tp_str, CTPY_SLOT(make_str)},
    {Py_tp_repr, CTPY_SLOT(make_repr)},
    {Py_tp_getset, attributes},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec ctpy_environment_spec = {
    .name = "codetimer.Environment",
    .basicsize = sizeof(environment_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

/* ---- initialize ---- */

static PyObject *make_environment(PyTypeObject *type, ct_environment *environment) {
    environment_object *self = (environment_object *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->environment = environment;
        return (PyObject *)self;
    }
    (void)ct_environment_restore(environment); /* nobody could do it later */
    ct_environment_free(environment);
    return NULL;
}

PyObject *ctpy_initialize(PyObject *module, PyObject *args, PyObject *kwargs) {
    static const char *const keywords[] = {"priority", "cpu", NULL};
    PyObject *priority = NULL, *cpu = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:initialize", CTPY_MUTABLE(char **, keywords), &priority, &cpu))
        return NULL;
    const char *level;
    int number;
    Py_XINCREF(priority); /* kwargs may be a dict of the caller, which an __index__ or a __repr__ may empty */
    Py_XINCREF(cpu);
    const int parsed = ctpy_parse_priority(priority, &level) == 0 && ctpy_parse_cpu(cpu, &number) == 0;
    Py_XDECREF(priority);
    Py_XDECREF(cpu);
    if (!parsed) return NULL;
    ct_environment *environment;
    int status = ct_initialize(level, number, &environment);
    if (status == CT_OK) return make_environment(ctpy_get_state(module)->environment_type, environment);
    if (status == CT_ENOMEM) return PyErr_NoMemory();
    return PyErr_Format(PyExc_SystemError, "initialize: %s (%s)", ct_status_text(status), ct_status_name(status));
}
