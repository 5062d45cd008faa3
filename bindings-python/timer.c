/* SPDX-License-Identifier: MIT
 *
 * timer.c: codetimer.timer, a counter for a stretch of code: with codetimer.timer("name"): ...
 *
 * One timer may be in many with blocks at once: nested, in other threads, in generators and coroutines that take turns.
 * So each block has its own entry, found at its end by the frame that it is in: within a frame, blocks end in the
 * reverse order of their beginning. Where the frame says nothing (contextlib.ExitStack), the last entry of the thread
 * is taken.
 */
#include <stddef.h>

#include "counting.h"

typedef struct entry {
    const void *frame;
    unsigned long thread;
    ct_token token;
} entry;

typedef struct timer_object {
    PyObject_HEAD PyObject *name; /* a plain str, even if a subclass was given: that could refer back to the timer */
    PyObject *counter;            /* Counter; NULL: the core refused it */
    ct_counter *handle;           /* its own, borrowed */
    entry *entries;
    size_t used, room;
    size_t lost; /* blocks without an entry, for want of memory */
} timer_object;

static ctpy_state *get_state(PyObject *self) { return (ctpy_state *)PyType_GetModuleState(Py_TYPE(self)); }

/* ---- making ---- */

static PyObject *make_timer(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static const char *const keywords[] = {"name", "category", "help", NULL};
    PyObject *name, *category = NULL, *help = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OO:timer", CTPY_MUTABLE(char **, keywords), &name, &category,
                                     &help))
        return NULL;
    ctpy_state *state = (ctpy_state *)PyType_GetModuleState(type);
    ct_counter *handle;
    if (ctpy_open_counter(state, category, name, help, &handle) < 0) return NULL;
    PyObject *counter = handle != NULL ? ctpy_counter_new(state, handle) : NULL;
    PyObject *plain = PyErr_Occurred() ? NULL : PyUnicode_FromObject(name);
    timer_object *self = plain != NULL ? (timer_object *)type->tp_alloc(type, 0) : NULL;
    if (self == NULL) {
        Py_XDECREF(plain);
        Py_XDECREF(counter);
        return NULL;
    }
    self->name = plain;
    self->counter = counter;
    self->handle = handle;
    return (PyObject *)self;
}

static void free_timer(PyObject *object) {
    timer_object *self = (timer_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF(self->counter);
    PyMem_Free(self->entries);
    Py_DECREF(self->name);
    type->tp_free(object);
    Py_DECREF(type);
}

/* ---- entries ---- */

static entry *add_entry(timer_object *self) {
    if (self->used == self->room) {
        size_t room = self->room == 0 ? 2 : self->room * 2;
        entry *more = PyMem_Realloc(self->entries, room * sizeof *more);
        if (more == NULL) return NULL;
        self->entries = more;
        self->room = room;
    }
    return &self->entries[self->used++];
}

/* The last entry of this frame, else of this thread; NULL where there is neither. */
static entry *find_entry(timer_object *self) {
    const void *frame = PyEval_GetFrame();
    const unsigned long thread = PyThread_get_thread_ident();
    entry *found = NULL;
    for (size_t i = self->used; i-- > 0;) {
        entry *one = &self->entries[i];
        if (one->frame == frame) return one;
        if (found == NULL && one->thread == thread) found = one;
    }
    return self->lost == 0 ? found : NULL;
}

static void remove_entry(timer_object *self, entry *one) {
    const size_t after = (size_t)(self->entries + self->used - (one + 1));
    memmove(one, one + 1, after * sizeof *one);
    self->used--;
}

/* ---- the block ---- */

static PyObject *enter(PyObject *object, PyObject *ignored) {
    (void)ignored;
    timer_object *self = (timer_object *)object;
    if (self->counter == NULL) return Py_NewRef(object);
    entry *one = add_entry(self);
    if (one == NULL) self->lost++;
    if (one == NULL) return Py_NewRef(object);
    one->frame = PyEval_GetFrame();
    one->thread = PyThread_get_thread_ident();
    ct_enter(self->handle, &one->token); /* last, so that the clock runs from here */
    return Py_NewRef(object);
}

static void finish(timer_object *self, const ct_token *token, int outcome) {
    ctpy_state *state = get_state((PyObject *)self);
    if (state->trace_increments) {
        ctpy_leave_traced(state, self->handle, token, outcome);
    } else {
        ct_leave(self->handle, token, outcome);
    }
}

static PyObject *leave(PyObject *object, PyObject *const *args, Py_ssize_t count) {
    timer_object *self = (timer_object *)object;
    if (self->counter == NULL) return Py_NewRef(Py_None);
    entry *one = find_entry(self);
    if (one == NULL && self->lost == 0) {
        PyErr_SetString(PyExc_RuntimeError,
                        "timer: __exit__ without __enter__; use it as: with codetimer.timer(name):");
        return NULL;
    }
    if (one == NULL) {
        self->lost--;
        return Py_NewRef(Py_None);
    }
    const ct_token token = one->token;
    remove_entry(self, one); /* before logging, which may use this timer */
    PyObject *raised = count > 1 && args[1] != Py_None ? args[1] : count > 0 ? args[0] : Py_None;
    finish(self, &token, raised != Py_None ? ctpy_judge(raised) : CT_RETURNED);
    return Py_NewRef(Py_None);
}

/* ---- attributes ---- */

static PyObject *get_name(PyObject *self, void *closure) {
    (void)closure;
    return Py_NewRef(((timer_object *)self)->name);
}

static PyObject *get_counter(PyObject *object, void *closure) {
    (void)closure;
    PyObject *counter = ((timer_object *)object)->counter;
    return Py_NewRef(counter != NULL ? counter : Py_None);
}

/* "async with" asks for this and gets the error that says what to write instead; for all others it is not there. */
static PyObject *refuse_async(PyObject *self, void *closure) {
    (void)self, (void)closure;
    PyErr_SetString(PyExc_AttributeError, "codetimer.timer is no asynchronous context manager: write 'with' instead of "
                                          "'async with', also in async code");
    return NULL;
}

static PyObject *make_repr(PyObject *object) {
    const timer_object *self = (timer_object *)object;
    if (self->counter == NULL) return PyUnicode_FromFormat("<codetimer.timer %R, not measured>", self->name);
    PyObject *key = ctpy_counter_key(self->handle);
    PyObject *text = key != NULL ? PyUnicode_FromFormat("<codetimer.timer %R>", key) : NULL;
    Py_XDECREF(key);
    return text;
}

static PyGetSetDef attributes[] = {
    {"name", get_name, NULL, "The name as it was given (str).", NULL},
    {"counter", get_counter, NULL, "What it counts in (Counter); None where there was no room for one.", NULL},
    {"__aenter__", refuse_async, NULL, "Not there: use 'with', also in async code.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(timer_doc,
             "timer(name, *, category=None, help=None)\n--\n\n"
             "A counter for a stretch of code, as a context manager: with codetimer.timer('name'): ...\n\n"
             "name: str, the member. category: str, the group; None: the part of the name before its first dot, else\n"
             "    the name of the script. help: str, a sentence for readers.\n\n"
             "It creates or gets the counter 'category/name'. One timer can be used any number of times, also nested,\n"
             "by several threads, and by coroutines that take turns; in a hot place make it once and keep it. What\n"
             "counts is the time that passes in the block, also while it awaits. A block that an exception leaves\n"
             "counts as an error, or as cancelled for CancelledError and GeneratorExit; the exception goes on.\n\n"
             "Raises TypeError or ValueError for wrong names. Where the core has no room for one more counter, the\n"
             "block runs unmeasured.");

static PyMethodDef methods[] = {
    {"__enter__", enter, METH_NOARGS, "__enter__($self, /)\n--\n\nBegin a block; return the timer."},
    {"__exit__", CTPY_WITH_KEYWORDS(leave), METH_FASTCALL, "__exit__($self, /, *exc_info)\n--\n\nEnd the block."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, CTPY_MUTABLE(void *, timer_doc)},
    {Py_tp_new, CTPY_SLOT(make_timer)},
    {Py_tp_dealloc, CTPY_SLOT(free_timer)},
    {Py_tp_repr, CTPY_SLOT(make_repr)},
    {Py_tp_getset, attributes},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec ctpy_timer_spec = {
    .name = "codetimer.timer",
    .basicsize = sizeof(timer_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
