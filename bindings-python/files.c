/* SPDX-License-Identifier: MIT
 *
 * files.c: what the command line needs of the core and nobody else: files of results, reports with options, results of
 * two files beside each other. Not public; the command line checks what it gives.
 */
#include "common.h"

/* ---- several results ---- */

/* Those of a sequence of Results; freed by PyMem_Free. NULL with an exception. */
static const ct_result **list_results(const ctpy_state *state, PyObject *sequence, size_t *count) {
    const Py_ssize_t size = PySequence_Fast_GET_SIZE(sequence);
    const ct_result **results = PyMem_New(const ct_result *, size > 0 ? size : 1);
    *count = (size_t)size;
    if (results == NULL) PyErr_NoMemory();
    for (Py_ssize_t i = 0; results != NULL && i < size; i++) {
        PyObject *result = PySequence_Fast_GET_ITEM(sequence, i);
        if (Py_IS_TYPE(result, state->result_type)) {
            results[i] = ctpy_result_get(result);
            continue;
        }
        (void)ctpy_refuse(PyExc_TypeError, "results must be of type Result", result);
        PyMem_Free(results);
        results = NULL;
    }
    return results;
}

typedef struct several {
    const ct_result **results;
    size_t count;
    const ct_comparison *comparison; /* in place of them */
    int format;
    ct_report_options report;
} several;

/* ---- _export(what, format, host, machine, date) ---- */

static size_t put_export(const void *what, const void *options, char *buffer, size_t size) {
    const several *all = what;
    if (all->comparison != NULL) return ct_export_comparison(all->comparison, all->format, options, buffer, size);
    return ct_export_results(all->results, all->count, all->format, options, buffer, size);
}

/* A Comparison, or a sequence of Results. "keep": to be dropped when all is done. */
static int take(const ctpy_state *state, PyObject *what, several *all, PyObject **keep) {
    *keep = NULL;
    if (Py_IS_TYPE(what, state->comparison_type)) {
        all->comparison = ctpy_comparison_get(what);
        return 0;
    }
    *keep = PySequence_Fast(what, "give a Comparison or a sequence of Results");
    if (*keep != NULL) all->results = list_results(state, *keep, &all->count);
    return all->results != NULL ? 0 : -1;
}

static PyObject *export_text(PyObject *module, PyObject *args, PyObject *kwargs) {
    static const char *const keywords[] = {"what", "format", "host", "machine", "date", NULL};
    ct_export_options options = {.size = sizeof options};
    several all = {NULL, 0, NULL, 0, {0}};
    const char *format;
    PyObject *what, *keep, *text = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Osz|zz:_export", CTPY_MUTABLE(char **, keywords), &what, &format,
                                     &options.host, &options.machine, &options.date))
        return NULL;
    all.format = ct_export_format(format);
    if (all.format < 0) return PyErr_Format(PyExc_ValueError, "there is no format '%s'", format);
    if (take(ctpy_get_state(module), what, &all, &keep) == 0) text = ctpy_put_text(put_export, &all, &options);
    PyMem_Free((void *)(uintptr_t)all.results);
    Py_XDECREF(keep);
    return text;
}

/* ---- _print(what, file, *, verbose, unit, process) ---- */

static size_t put_one(const several *all, const ct_report_options *options, char *buffer, size_t size) {
    if (all->comparison != NULL) return ct_comparison_format(all->comparison, options, buffer, size);
    if (all->count == 1) return ct_report_format(all->results[0], options, buffer, size);
    return ct_runs_format(all->results, all->count, options, buffer, size);
}

static size_t put_report(const void *what, const void *options, char *buffer, size_t size) {
    return put_one(what, options, buffer, size);
}

/* What the stream can take joins what was asked for. */
static PyObject *format_report(const void *what, const ct_report_options *stream) {
    const several *all = what;
    ct_report_options options = all->report;
    options.color = stream->color;
    options.ascii = stream->ascii;
    return ctpy_put_text(put_report, what, &options);
}

/* One Result: its report; several: the sentence on them. */
static PyObject *print_report(PyObject *module, PyObject *args, PyObject *kwargs) {
    static const char *const keywords[] = {"what", "file", "verbose", "unit", "process", NULL};
    several all = {NULL, 0, NULL, 0, {.size = sizeof all.report}};
    const char *unit = NULL;
    PyObject *what, *file, *keep;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|$pzp:_print", CTPY_MUTABLE(char **, keywords), &what, &file,
                                     &all.report.verbose, &unit, &all.report.process))
        return NULL;
    if (unit != NULL) all.report.unit = ct_unit(unit);
    if (all.report.unit < 0) return PyErr_Format(PyExc_ValueError, "there is no unit '%s'", unit);
    int status = take(ctpy_get_state(module), what, &all, &keep);
    if (status == 0) status = ctpy_write(file, format_report, &all);
    PyMem_Free((void *)(uintptr_t)all.results);
    Py_XDECREF(keep);
    return status == 0 ? Py_NewRef(Py_None) : NULL;
}

/* ---- _progress_line(part, elapsed_ns, per_call_ns, unit, ascii) ---- */

typedef struct progress {
    double part, per_call_ns;
    unsigned long long elapsed_ns;
} progress;

static size_t put_progress(const void *what, const void *options, char *buffer, size_t size) {
    const progress *progress = what;
    return ct_progress_format(progress->part, progress->elapsed_ns, progress->per_call_ns, options, buffer, size);
}

static PyObject *make_progress_line(PyObject *module, PyObject *args) {
    ct_report_options options = {.size = sizeof options};
    progress progress;
    const char *unit;
    (void)module;
    if (!PyArg_ParseTuple(args, "dKdzp:_progress_line", &progress.part, &progress.elapsed_ns, &progress.per_call_ns,
                          &unit, &options.ascii))
        return NULL;
    options.unit = unit != NULL ? ct_unit(unit) : CT_UNIT_AUTOMATIC;
    return ctpy_put_text(put_progress, &progress, &options);
}

/* ---- _result_ratio(a, b, net, name, baseline, ascii) ---- */

/* The numbers of a result in a file: (per_call, low, high, net_low, net_high), each None where it is not known. */
static int take_numbers(PyObject *numbers, ct_result *result) {
    double values[5] = {0};
    int known[5];
    for (Py_ssize_t i = 0; i < 5; i++) {
        PyObject *number = PyTuple_GetItem(numbers, i);
        if (number == NULL) return -1;
        known[i] = number != Py_None;
        if (known[i]) values[i] = PyFloat_AsDouble(number);
        if (PyErr_Occurred()) return -1;
    }
    result->per_call_known = known[0];
    result->interval_known = known[0] && known[1] && known[2];
    result->net_known = known[3] && known[4];
    result->per_call_ns = values[0];
    result->interval_low_ns = values[1], result->interval_high_ns = values[2];
    result->net_low_ns = values[3], result->net_high_ns = values[4];
    return 0;
}

typedef struct claim {
    ct_ratio ratio;
    const char *name, *baseline;
} claim;

static size_t put_claim(const void *what, const void *options, char *buffer, size_t size) {
    const claim *claim = what;
    return ct_ratio_verdict(&claim->ratio, claim->name, claim->baseline, options, buffer, size);
}

/* (Ratio, sentence); None where the core does not compare them. */
static PyObject *make_ratio(PyObject *module, PyObject *args) {
    ct_report_options options = {.size = sizeof options};
    ct_result a = {0}, b = {0};
    claim claim;
    PyObject *numbers_a, *numbers_b;
    int net;
    if (!PyArg_ParseTuple(args, "O!O!psspp:_result_ratio", &PyTuple_Type, &numbers_a, &PyTuple_Type, &numbers_b, &net,
                          &claim.name, &claim.baseline, &options.ascii, &options.color))
        return NULL;
    if (take_numbers(numbers_a, &a) < 0 || take_numbers(numbers_b, &b) < 0) return NULL;
    if (ct_result_ratio(&a, &b, net, &claim.ratio) != CT_OK) Py_RETURN_NONE;
    PyObject *ratio = ctpy_ratio_new(ctpy_get_state(module), &claim.ratio);
    PyObject *sentence = ratio != NULL ? ctpy_put_text(put_claim, &claim, &options) : NULL;
    if (sentence == NULL) Py_CLEAR(ratio);
    return ratio != NULL ? Py_BuildValue("(NN)", ratio, sentence) : NULL;
}

static PyMethodDef functions[] = {
    {"_export", CTPY_WITH_KEYWORDS(export_text), METH_VARARGS | METH_KEYWORDS, NULL},
    {"_print", CTPY_WITH_KEYWORDS(print_report), METH_VARARGS | METH_KEYWORDS, NULL},
    {"_progress_line", make_progress_line, METH_VARARGS, NULL},
    {"_result_ratio", make_ratio, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int ctpy_files_add(PyObject *module) { return PyModule_AddFunctions(module, functions); }
