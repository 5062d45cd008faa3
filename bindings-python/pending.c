/* SPDX-License-Identifier: MIT
 *
 * pending.c: the exception that ends a run, put aside while the result is made and printed. It comes out as the object
 * that it was, and no failure on the way takes its place.
 */
#include "running.h"

/* NULL where there is no such text. */
static const char *name_type(ctpy_pending *pending) {
    pending->kept = PyObject_GetAttrString(pending->type, "__name__");
    const char *word =
        pending->kept != NULL && PyUnicode_Check(pending->kept) ? PyUnicode_AsUTF8(pending->kept) : NULL;
    if (word == NULL) PyErr_Clear();
    return word;
}

void ctpy_pending_take(ctpy_pending *pending) {
    *pending = (ctpy_pending){NULL, NULL, NULL, NULL, NULL};
    PyErr_Fetch(&pending->type, &pending->value, &pending->traceback);
    if (pending->type == NULL) return;
    if (PyErr_GivenExceptionMatches(pending->type, PyExc_KeyboardInterrupt)) {
        pending->word = "interrupted";
        return;
    }
    pending->word = name_type(pending);
    if (pending->word == NULL) pending->word = "error";
}

void ctpy_pending_add(ctpy_pending *pending) {
    if (pending->type == NULL) PyErr_Fetch(&pending->type, &pending->value, &pending->traceback);
    PyErr_Clear();
}

PyObject *ctpy_pending_raise(ctpy_pending *pending, PyObject *result) {
    Py_CLEAR(pending->kept);
    if (pending->type == NULL) return result;
    PyErr_Restore(pending->type, pending->value, pending->traceback);
    Py_XDECREF(result);
    return NULL;
}

PyObject *ctpy_report_status(int status) {
    if (status == CT_ENOMEM) return PyErr_NoMemory();
    return PyErr_Format(PyExc_SystemError, "codetimer: %s (%s)", ct_status_text(status), ct_status_name(status));
}
