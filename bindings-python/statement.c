/* SPDX-License-Identifier: MIT
 *
 * statement.c: the type _Statement: code that is no function, for the command line: the loop runs it in a loop of its
 * own, so that nothing is called in between.
 *
 * It is made of a generator function, whose code the command line compiles: it runs the setup, yields, and from then
 * on, each time that it is resumed, runs the statement once for each turn of "for _ in statement", and yields. So the
 * names that the setup binds are local variables to the statement, as with timeit. The Statement gives the turns, and
 * counts them: after an exception it is known which one was under way.
 *
 * It can be called as well, which makes one turn.
 */
#include "running.h"

#include <stddef.h>
#include <structmember.h> /* expects Python.h before it */

typedef struct statement_object {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject *function;
    PyObject *generator; /* has run the setup, */
    uint64_t setup_ns;   /* which took this */
    uint64_t left;       /* turns still to make */
    int knows_empty;
    ct_overhead empty; /* a turn without anything in it */
} statement_object;

static const char empty_label[] = "empty statement";
static const uint64_t quick_ns = 2000000;

/* ---- turns ---- */

static PyObject *get_self(PyObject *self) { return Py_NewRef(self); }

/* The turns of the loop in the generator. */
static PyObject *take_turn(PyObject *self) {
    statement_object *statement = (statement_object *)self;
    if (statement->left == 0) return NULL;
    statement->left--;
    return Py_NewRef(Py_None);
}

/* A generator turns StopIteration into RuntimeError: the one that the statement raised comes back. */
static void undo_conversion(void) {
    PyObject *type, *value, *traceback;
    if (!PyErr_ExceptionMatches(PyExc_RuntimeError)) return;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *cause = value != NULL ? PyException_GetCause(value) : NULL;
    if (cause == NULL || !PyErr_GivenExceptionMatches(cause, PyExc_StopIteration)) {
        Py_XDECREF(cause);
        PyErr_Restore(type, value, traceback);
        return;
    }
    Py_DECREF(type);
    Py_DECREF(value);
    Py_XDECREF(traceback);
    PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(cause)), cause, PyException_GetTraceback(cause));
}

/* Resumes the generator. Returns 0, or -1 with the exception that ended it. */
static int resume(statement_object *statement) {
    PyObject *generator = Py_NewRef(statement->generator);
    PyObject *done = Py_TYPE(generator)->tp_iternext(generator);
    Py_DECREF(generator);
    Py_XDECREF(done);
    if (done != NULL) return 0;
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "the statement has ended before");
    undo_conversion();
    return -1;
}

uint64_t ctpy_statement_run(PyObject *self, uint64_t k, int *failed) {
    statement_object *statement = (statement_object *)self;
    statement->left = k;
    *failed = resume(statement) < 0;
    const uint64_t begun = k - statement->left;
    return *failed && begun > 0 ? begun - 1 : begun;
}

static PyObject *call_statement(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    int failed;
    (void)args;
    if (PyVectorcall_NARGS(nargsf) > 0 || kwnames != NULL) {
        PyErr_SetString(PyExc_TypeError, "a Statement is called without arguments");
        return NULL;
    }
    (void)ctpy_statement_run(self, 1, &failed);
    return failed ? NULL : Py_NewRef(Py_None);
}

/* ---- what it costs ---- */

int ctpy_statement_check(const ctpy_state *state, PyObject *fn) { return Py_IS_TYPE(fn, state->statement_type); }

void ctpy_statement_overhead(PyObject *self, ct_overhead *overheads, size_t *count) {
    const statement_object *statement = (const statement_object *)self;
    *count = statement->knows_empty ? 1 : 0;
    overheads[0] = statement->empty;
}

/* ---- the object ---- */

static int begin(statement_object *self) {
    PyObject *function = self->function;
    self->generator = PyObject_CallOneArg(function, (PyObject *)self);
    if (self->generator == NULL) return -1;
    if (!PyGen_CheckExact(self->generator))
        return ctpy_refuse(PyExc_TypeError, "function must be a generator function", function);
    const uint64_t start_ns = ct_now_ns();
    const int status = resume(self);
    self->setup_ns = ct_now_ns() - start_ns;
    return status;
}

static statement_object *new_statement(PyTypeObject *type, PyObject *function) {
    statement_object *self = (statement_object *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->vectorcall = call_statement;
    self->function = Py_NewRef(function);
    return self;
}

PyObject *ctpy_statement_copy(PyObject *self, PyObject *function) {
    const statement_object *statement = (const statement_object *)self;
    statement_object *copy = new_statement(Py_TYPE(self), function);
    if (copy == NULL) return NULL;
    copy->knows_empty = statement->knows_empty;
    copy->empty = statement->empty;
    if (begin(copy) < 0) Py_CLEAR(copy);
    return (PyObject *)copy;
}

PyObject *ctpy_statement_function(PyObject *self) { return ((statement_object *)self)->function; }

int ctpy_statement_is_quick(PyObject *self) { return ((statement_object *)self)->setup_ns < quick_ns; }

static PyObject *make_statement(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static const char *const keywords[] = {"function", "empty", NULL};
    PyObject *function, *empty = Py_None;
    ct_overhead known = {empty_label, 0, 0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:_Statement", CTPY_MUTABLE(char **, keywords), &function,
                                     &empty))
        return NULL;
    if (empty != Py_None && !PyArg_Parse(empty, "(dd)", &known.low_ns, &known.high_ns)) return NULL;
    statement_object *self = new_statement(type, function);
    if (self == NULL) return NULL;
    self->knows_empty = empty != Py_None;
    self->empty = known;
    if (begin(self) < 0) Py_CLEAR(self);
    return (PyObject *)self;
}

static int traverse_statement(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((statement_object *)self)->function);
    Py_VISIT(((statement_object *)self)->generator);
    return 0;
}

static int clear_statement(PyObject *self) {
    Py_CLEAR(((statement_object *)self)->function);
    Py_CLEAR(((statement_object *)self)->generator);
    return 0;
}

static void free_statement(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    (void)clear_statement(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(statement_object, vectorcall), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, CTPY_SLOT(make_statement)},
    {Py_tp_call, CTPY_SLOT(PyVectorcall_Call)},
    {Py_tp_iter, CTPY_SLOT(get_self)},
    {Py_tp_iternext, CTPY_SLOT(take_turn)},
    {Py_tp_traverse, CTPY_SLOT(traverse_statement)},
    {Py_tp_clear, CTPY_SLOT(clear_statement)},
    {Py_tp_dealloc, CTPY_SLOT(free_statement)},
    {Py_tp_members, members},
    {0, NULL},
};

PyType_Spec ctpy_statement_spec = {
    .name = "codetimer._codetimer._Statement",
    .basicsize = sizeof(statement_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
