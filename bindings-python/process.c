/* SPDX-License-Identifier: MIT
 *
 * process.c: codetimer.processes and reap: which processes publish counters, and what is left of those that ended.
 *
 * Every file in the folder has a line, also one that cannot be read: that line says why. What such a file does not tell
 * is None.
 */
#include "live.h"

#include <errno.h>

static PyStructSequence_Field process_fields[] = {
    {"path", "of its segment (str)"},
    {"state", "'live'; 'dead': it ended, the values are its last; 'unusable': see reason"},
    {"pid", "process id (int); None of a segment that is unusable, like all that follows but the reason"},
    {"start_time", "as the system counts it (int); with the pid it names one process"},
    {"uid", "whose it is (int)"},
    {"program", "its name (str); None if it did not tell"},
    {"host", "its language (str), as 'Python 3.12'; None if it did not tell"},
    {"clock", "its clock (str): 'tsc', 'monotonic', ..."},
    {"counters", "how many it has (int)"},
    {"refused", "how often a counter could not be made (int)"},
    {"last_refused", "the key of the last one that could not be made, cut to fit (str), or None"},
    {"heartbeat_age_ns", "nanoseconds since its last sign of life (int); a process that measures nothing gives none"},
    {"reason", "why it is unusable, or what is missing in it (str); else empty"},
    {NULL, NULL},
};

static PyStructSequence_Field info_fields[] = {
    {"key", "'category/member' (str)"},
    {"enabled", "whether it counts (bool)"},
    {"help", "a sentence for readers (str); empty if it has none"},
    {NULL, NULL},
};

static PyStructSequence_Field segment_fields[] = {
    {"published", "whether others can see the counters of this process (bool)"},
    {"path", "of its segment (str); None where it is not published"},
    {"reason", "why it is not, or what is missing in it (str); else empty"},
    {NULL, NULL},
};

static PyStructSequence_Desc descriptions[] = {
    {"codetimer.Process", "A process that publishes counters, or what is left of it; see processes().", process_fields,
     13},
    {"codetimer.CounterInfo", "What a process tells of one of its counters; see View.counters.", info_fields, 3},
    {"codetimer.SegmentInfo", "What segment_info tells of the segment of this process.", segment_fields, 3},
};

int ctpy_process_add_types(PyObject *module, ctpy_state *state) {
    PyTypeObject **const types[] = {&state->process_type, &state->info_type, &state->segment_type};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (ctpy_add_fields_type(module, &descriptions[i], types[i]) < 0) return -1;
    return 0;
}

static PyObject *number(int known, uint64_t value) {
    return known ? PyLong_FromUnsignedLongLong(value) : Py_NewRef(Py_None);
}

static PyObject *word(const char *text) { return ctpy_text(*text != '\0' ? text : NULL); }

PyObject *ctpy_process_new(ctpy_state *state, const ct_process *process) {
    static const char *const states[] = {"live", "dead", "unusable"};
    const int known = process->state != CT_SEGMENT_UNUSABLE;
    PyObject *values[] = {
        PyUnicode_DecodeFSDefault(process->path),
        PyUnicode_FromString(states[process->state]),
        known ? PyLong_FromLongLong(process->pid) : Py_NewRef(Py_None),
        number(known, process->start_time),
        number(known, process->uid),
        word(process->program),
        word(process->host),
        word(process->clock),
        number(known, process->counters),
        number(known, process->refused),
        word(process->last_refused),
        number(known, process->heartbeat_age_ns),
        ctpy_text(process->reason),
    };
    return CTPY_FILL(state->process_type, values);
}

PyObject *ctpy_info_new(ctpy_state *state, const ct_view_counter *counter) {
    PyObject *values[] = {
        PyUnicode_DecodeUTF8(counter->key, (Py_ssize_t)counter->key_length, "replace"),
        PyBool_FromLong(counter->enabled),
        PyUnicode_DecodeUTF8(counter->help, (Py_ssize_t)counter->help_length, "replace"),
    };
    return CTPY_FILL(state->info_type, values);
}

/* ---- refusals ---- */

static int errno_of(int status) {
    switch (status) {
    case CT_EPERM:
        return EPERM;
    case CT_EBUSY:
        return EBUSY;
    case CT_ENOENT:
        return ENOENT;
    case CT_ENOTSUP:
        return ENOTSUP;
    default:
        return EIO;
    }
}

PyObject *ctpy_raise(int status, const char *message, const char *filename) {
    if (status == CT_ENOMEM) return PyErr_NoMemory();
    if (status == CT_EINVAL) {
        return filename != NULL ? PyErr_Format(PyExc_ValueError, "%s: %s", filename, message)
                                : PyErr_Format(PyExc_ValueError, "%s", message);
    }
    PyObject *name = filename != NULL ? PyUnicode_DecodeFSDefault(filename) : Py_NewRef(Py_None);
    PyObject *error =
        name != NULL ? PyObject_CallFunction(PyExc_OSError, "isO", errno_of(status), message, name) : NULL;
    if (error != NULL) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    Py_XDECREF(name);
    return NULL;
}

static int raise_for_folder(int status, const char *directory) {
    const char *message = "the folder cannot be read";
    if (status == CT_ENOENT) message = "there is no such folder";
    if (status == CT_EINVAL) message = "its name is too long";
    if (directory == NULL && status == CT_EPERM)
        message =
            "the folder for live counters must be your own and writable by you alone; set CODETIMER_DIR to another";
    if (directory == NULL && status == CT_ENOTSUP)
        message = "there is no folder for live counters: /dev/shm cannot be written; set CODETIMER_DIR";
    (void)ctpy_raise(status, message, directory);
    return -1;
}

int ctpy_open_listing(PyObject *directory, ct_listing **listing) {
    PyObject *bytes = NULL;
    if (directory != NULL && directory != Py_None && !PyUnicode_FSConverter(directory, &bytes)) return -1;
    const char *name = bytes != NULL ? PyBytes_AS_STRING(bytes) : NULL;
    int status = ct_listing_open(name, listing);
    if (status != CT_OK) (void)raise_for_folder(status, name);
    Py_XDECREF(bytes);
    return status == CT_OK ? 0 : -1;
}

/* ---- functions ---- */

static int append_all(ctpy_state *state, PyObject *list, ct_listing *listing) {
    ct_process process;
    while (ct_listing_next(listing, &process)) {
        PyObject *one = ctpy_process_new(state, &process);
        int appended = one != NULL ? PyList_Append(list, one) : -1;
        Py_XDECREF(one);
        if (appended < 0) return -1;
    }
    return 0;
}

PyObject *ctpy_processes(PyObject *module, PyObject *args, PyObject *kwargs) {
    static const char *const keywords[] = {"directory", NULL};
    PyObject *directory = Py_None;
    ct_listing *listing;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:processes", CTPY_MUTABLE(char **, keywords), &directory))
        return NULL;
    if (ctpy_open_listing(directory, &listing) < 0) return NULL;
    PyObject *list = PyList_New(0);
    if (list != NULL && append_all(ctpy_get_state(module), list, listing) < 0) Py_CLEAR(list);
    ct_listing_close(listing);
    return list;
}

PyObject *ctpy_segment_info(PyObject *module, PyObject *ignored) {
    (void)ignored;
    ct_segment segment;
    ct_segment_info(&segment);
    PyObject *values[] = {
        PyBool_FromLong(segment.published),
        segment.path[0] != '\0' ? PyUnicode_DecodeFSDefault(segment.path) : Py_NewRef(Py_None),
        ctpy_text(segment.reason),
    };
    return CTPY_FILL(ctpy_get_state(module)->segment_type, values);
}

PyObject *ctpy_reap(PyObject *module, PyObject *path) {
    (void)module;
    PyObject *bytes;
    if (!PyUnicode_FSConverter(path, &bytes)) return NULL;
    const char *name = PyBytes_AS_STRING(bytes);
    int status = ct_segment_reap(name);
    const char *message = status == CT_EPERM    ? "its process lives, or it is not yours"
                          : status == CT_EINVAL ? "it is not a segment"
                          : status == CT_ENOENT ? "there is no such segment"
                                                : ct_status_text(status);
    PyObject *result = status == CT_OK ? Py_NewRef(Py_None) : ctpy_raise(status, message, name);
    Py_DECREF(bytes);
    return result;
}
