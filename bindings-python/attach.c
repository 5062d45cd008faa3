/* SPDX-License-Identifier: MIT
 *
 * attach.c: codetimer.attach: which segments a process has.
 *
 * A process has a segment for each core in it, that is for each language that measures. A pid alone may name several
 * processes: one that lives and others that are dead, or, in a folder that containers share, two that live. The living
 * one is meant, else the one that began last. Dead segments of a process that lives are of before an exec.
 */
#include "live.h"

#include <errno.h>
#include <string.h>

typedef struct wanted {
    int64_t pid;
    uint64_t start_time;
    int exactly; /* the start time is given */
} wanted;

typedef struct candidates {
    ct_process *found;
    size_t count, room;
    char path[256]; /* of an unusable segment under this pid, or empty */
} candidates;

void ctpy_close_views(ctpy_views *views) {
    for (size_t i = 0; i < views->count; i++) ct_view_close(views->views[i]);
    PyMem_Free(views->views);
    views->views = NULL;
    views->count = 0;
}

/* ---- the argument ---- */

static int parse_process(PyObject *process, wanted *who) {
    PyObject *pid = PyStructSequence_GetItem(process, 2), *start_time = PyStructSequence_GetItem(process, 3);
    if (pid == Py_None) {
        PyErr_Format(PyExc_ValueError, "%U cannot be attached to: %U", PyStructSequence_GetItem(process, 0),
                     PyStructSequence_GetItem(process, 12));
        return -1;
    }
    who->pid = PyLong_AsLongLong(pid);
    who->start_time = PyLong_AsUnsignedLongLong(start_time);
    who->exactly = 1;
    return PyErr_Occurred() ? -1 : 0;
}

static int parse_pid(ctpy_state *state, PyObject *value, wanted *who) {
    static const char message[] = "pid must be a process id (int) or a Process";
    *who = (wanted){0};
    if (Py_IS_TYPE(value, state->process_type)) return parse_process(value, who);
    if (!PyIndex_Check(value) || PyBool_Check(value)) return ctpy_refuse(PyExc_TypeError, message, value);
    PyObject *index = PyNumber_Index(value);
    if (index == NULL) return -1;
    int overflow = 0;
    who->pid = PyLong_AsLongLongAndOverflow(index, &overflow);
    Py_DECREF(index);
    if (overflow != 0 || who->pid <= 0) return ctpy_refuse(PyExc_ValueError, message, value);
    return 0;
}

/* ---- the search ---- */

/* Whether a file is named after the pid: all that is known of a segment that cannot be read. */
static int is_named_after(const char *path, int64_t pid) {
    char start[32];
    const char *slash = strrchr(path, '/');
    int length = snprintf(start, sizeof start, "%lld-", (long long)pid);
    return slash != NULL && strncmp(slash + 1, start, (size_t)length) == 0;
}

static int keep(candidates *all, const ct_process *process) {
    if (all->count == all->room) {
        size_t room = all->room * 2 + 4;
        ct_process *more = PyMem_Realloc(all->found, room * sizeof *more);
        if (more == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        all->found = more;
        all->room = room;
    }
    all->found[all->count++] = *process;
    return 0;
}

static int search(ct_listing *listing, const wanted *who, candidates *all) {
    ct_process process;
    while (ct_listing_next(listing, &process)) {
        if (process.state == CT_SEGMENT_UNUSABLE) {
            if (is_named_after(process.path, who->pid)) memcpy(all->path, process.path, sizeof all->path);
            continue;
        }
        if (process.pid != who->pid || (who->exactly && process.start_time != who->start_time)) continue;
        if (keep(all, &process) < 0) return -1;
    }
    return 0;
}

/* The candidate whose process is meant; NULL with ValueError where two are alive. */
static const ct_process *choose(const candidates *all) {
    const ct_process *best = &all->found[0];
    for (size_t i = 1; i < all->count; i++) {
        const ct_process *other = &all->found[i];
        int both_live = other->state == CT_SEGMENT_LIVE && best->state == CT_SEGMENT_LIVE;
        if (both_live && other->start_time != best->start_time) {
            PyErr_Format(PyExc_ValueError,
                         "two processes with pid %lld are alive (%s and %s): give the Process of the one you mean",
                         (long long)best->pid, best->path, other->path);
            return NULL;
        }
        int better =
            other->state == best->state ? other->start_time > best->start_time : other->state == CT_SEGMENT_LIVE;
        if (better) best = other;
    }
    return best;
}

/* ---- opening ---- */

static int is_own(int64_t pid) {
    PyObject *os = PyImport_ImportModule("os");
    PyObject *own = os != NULL ? PyObject_CallMethod(os, "getpid", NULL) : NULL;
    int is = own != NULL && PyLong_AsLongLong(own) == pid;
    Py_XDECREF(own);
    Py_XDECREF(os);
    PyErr_Clear();
    return is;
}

/* Of itself a process knows why; another one has to be asked. */
static PyObject *raise_ended(int64_t pid) {
    char message[512];
    ct_segment own = {.published = 0};
    if (is_own(pid)) ct_segment_info(&own);
    if (own.published) {
        snprintf(message, sizeof message, "process %lld publishes no counters here: it does so in %s", (long long)pid,
                 own.path);
    } else {
        snprintf(message, sizeof message, "process %lld publishes no counters: %s", (long long)pid,
                 own.reason[0] != '\0' ? own.reason
                                       : "it has ended, has measured nothing yet, or could not publish them, and then "
                                         "knows why: codetimer.segment_info()");
    }
    PyObject *error = PyObject_CallFunction(PyExc_ProcessLookupError, "is", ESRCH, message);
    if (error != NULL) PyErr_SetObject(PyExc_ProcessLookupError, error);
    Py_XDECREF(error);
    return NULL;
}

/* Opens what was found unusable once more, to learn why. */
static PyObject *raise_unusable(const char *path, int64_t pid) {
    ct_process process;
    ct_view *view;
    int status = ct_view_open(path, &view, &process);
    if (status == CT_OK) ct_view_close(view);
    if (status == CT_OK || status == CT_ENOENT) return raise_ended(pid);
    return ctpy_raise(status, process.reason, path);
}

static int open_views(const candidates *all, const ct_process *chosen, ctpy_views *views) {
    views->views = PyMem_Calloc(all->count, sizeof *views->views);
    if (views->views == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < all->count; i++) {
        ct_process process;
        if (all->found[i].start_time != chosen->start_time || all->found[i].state != chosen->state) continue;
        int status = ct_view_open(all->found[i].path, &views->views[views->count], &process);
        if (status == CT_OK) views->count++;
        if (status == CT_OK || status == CT_ENOENT) continue;
        (void)ctpy_raise(status, process.reason, all->found[i].path);
        return -1;
    }
    if (views->count == 0) (void)raise_ended(chosen->pid);
    return views->count > 0 ? 0 : -1;
}

static PyObject *attach_to(ctpy_state *state, const wanted *who, const candidates *all) {
    ctpy_views views = {NULL, 0};
    if (all->count == 0) return all->path[0] != '\0' ? raise_unusable(all->path, who->pid) : raise_ended(who->pid);
    const ct_process *chosen = choose(all);
    if (chosen == NULL) return NULL;
    if (open_views(all, chosen, &views) == 0) return ctpy_view_new(state, &views);
    ctpy_close_views(&views);
    return NULL;
}

PyObject *ctpy_attach(PyObject *module, PyObject *args, PyObject *kwargs) {
    static const char *const keywords[] = {"pid", "directory", NULL};
    PyObject *pid, *directory = Py_None;
    wanted who;
    candidates all = {NULL, 0, 0, ""};
    ct_listing *listing;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$O:attach", CTPY_MUTABLE(char **, keywords), &pid, &directory))
        return NULL;
    if (parse_pid(ctpy_get_state(module), pid, &who) < 0) return NULL;
    if (ctpy_open_listing(directory, &listing) < 0) return NULL;
    int searched = search(listing, &who, &all);
    ct_listing_close(listing);
    PyObject *view = searched == 0 ? attach_to(ctpy_get_state(module), &who, &all) : NULL;
    PyMem_Free(all.found);
    return view;
}
