/* SPDX-License-Identifier: MIT
 *
 * compare.c: codetimer.compare: from its arguments to its printed table.
 *
 * As in a run, what ends it early is put aside until the Comparison is made, kept and printed.
 */
#include "allocations.h"
#include "running.h"

const char ctpy_compare_doc[] =
    "compare($module, /, candidates, *, baseline=None, budget=None, file=None, gc_time=False, memory=False, "
    "verbose=False)\n--\n\n"
    "Find out which of several functions is faster, print a table, and return the Comparison.\n\n"
    "candidates: a dict {name: function} of 2 to 32; functions as time takes them. They are called in\n"
    "    turns, all in each round, so that what changes on the machine falls on all alike; Python functions\n"
    "    as copies of them at several places in memory, so that where they lie does not count.\n"
    "baseline: the name of the one that the others are compared with; None: the first. It takes part once\n"
    "    more as its own twin: what the twin seems to differ is what this machine cannot resolve now.\n"
    "budget: seconds all in all, above 0; None: 0.25 for each candidate.\n"
    "file, gc_time, memory, verbose: as for time.\n\n"
    "An exception that a candidate raises, or Ctrl-C, ends the comparison: the partial table is printed,\n"
    "last_comparison() holds the partial Comparison, and the exception goes on unchanged.\n"
    "Raises TypeError or ValueError for wrong arguments, before anything runs.";

const char ctpy_last_comparison_doc[] =
    "last_comparison($module, /)\n--\n\n"
    "The Comparison that ended last in this interpreter, also one that an exception ended early. None\n"
    "before the first.";

typedef struct request {
    PyObject *given; /* {name: fn}, a list of its pairs */
    PyObject *names; /* tuple */
    uint64_t budget_ns;
    int gc_time, memory, verbose;
    PyObject *file;     /* NULL: sys.stdout */
    PyObject *progress; /* NULL: nobody wants to know */
    size_t count, baseline;
    ctpy_candidate candidates[CT_CANDIDATES_MAX];
} request;

/* ---- arguments ---- */

static int check_name(PyObject *name) {
    if (!PyUnicode_Check(name)) return ctpy_refuse(PyExc_TypeError, "the name of a candidate must be a str", name);
    if (PyUnicode_GetLength(name) > 0) return 0;
    return ctpy_refuse(PyExc_ValueError, "the name of a candidate must not be empty", name);
}

/* "pair" is (name, fn). */
static int add_candidate(request *request, PyObject *pair) {
    ctpy_candidate *candidate = &request->candidates[request->count++];
    char who[150];
    PyObject *name = PyTuple_GET_ITEM(pair, 0);
    if (check_name(name) < 0) return -1;
    candidate->name = Py_NewRef(name);
    candidate->fn = Py_NewRef(PyTuple_GET_ITEM(pair, 1));
    candidate->encoded = ctpy_encode(name);
    if (candidate->encoded == NULL) return -1;
    (void)PyOS_snprintf(who, sizeof who, "the candidate '%.100s'", PyBytes_AS_STRING(candidate->encoded));
    return ctpy_check_fn(who, candidate->fn, &candidate->is_generator);
}

static int refuse_count(Py_ssize_t count) {
    PyErr_Format(PyExc_ValueError, "candidates must be 2 to %d, not %zd", CT_CANDIDATES_MAX, count);
    return -1;
}

/* The pairs of a mapping as a list. */
static PyObject *list_pairs(PyObject *candidates) {
    static const char message[] = "candidates must be a dict {name: function} of at least 2";
    PyObject *pairs = NULL;
    if (PyDict_Check(candidates) || PyObject_HasAttrString(candidates, "items")) pairs = PyMapping_Items(candidates);
    if (pairs == NULL && !PyErr_Occurred()) (void)ctpy_refuse(PyExc_TypeError, message, candidates);
    for (Py_ssize_t i = 0; pairs != NULL && i < PyList_GET_SIZE(pairs); i++) {
        PyObject *pair = PyList_GET_ITEM(pairs, i);
        if (PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) == 2) continue;
        (void)ctpy_refuse(PyExc_TypeError, message, candidates);
        Py_CLEAR(pairs);
    }
    return pairs;
}

static int take_candidates(request *request, PyObject *candidates) {
    request->given = list_pairs(candidates);
    if (request->given == NULL) return -1;
    const Py_ssize_t count = PyList_GET_SIZE(request->given);
    if (count < 2 || count > CT_CANDIDATES_MAX) return refuse_count(count);
    request->names = PyTuple_New(count);
    if (request->names == NULL) return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (add_candidate(request, PyList_GET_ITEM(request->given, i)) < 0) return -1;
        PyTuple_SET_ITEM(request->names, i, Py_NewRef(request->candidates[i].name));
    }
    return 0;
}

static int take_baseline(request *request, PyObject *baseline) {
    if (baseline == NULL || baseline == Py_None) return 0;
    for (size_t i = 0; i < request->count; i++) {
        int equal = PyObject_RichCompareBool(request->candidates[i].name, baseline, Py_EQ);
        request->baseline = i;
        if (equal != 0) return equal > 0 ? 0 : -1;
    }
    PyErr_Format(PyExc_ValueError, "baseline must be the name of a candidate or None, not %.100R: there are %.400R",
                 baseline, request->names);
    return -1;
}

static PyObject *given(PyObject *value) { return value == NULL || value == Py_None ? NULL : Py_NewRef(value); }

static int parse(PyObject *args, PyObject *kwargs, request *request) {
    static const char *const keywords[] = {"candidates", "baseline", "budget",    "file", "gc_time",
                                           "memory",     "verbose",  "_progress", NULL};
    PyObject *candidates, *baseline = NULL, *budget = NULL, *file = NULL, *progress = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OOOpppO:compare", CTPY_MUTABLE(char **, keywords), &candidates,
                                     &baseline, &budget, &file, &request->gc_time, &request->memory,
                                     &request->verbose, &progress))
        return -1;
    request->file = given(file);
    request->progress = given(progress);
    Py_XINCREF(baseline);
    int status = ctpy_parse_budget(budget, &request->budget_ns);
    if (status == 0 && request->file != NULL) status = ctpy_check_file(request->file);
    if (status == 0) status = take_candidates(request, candidates);
    if (status == 0) status = take_baseline(request, baseline);
    Py_XDECREF(baseline);
    return status;
}

static void clear(request *request) {
    for (size_t i = 0; i < request->count; i++) {
        Py_CLEAR(request->candidates[i].name);
        Py_CLEAR(request->candidates[i].encoded);
        Py_CLEAR(request->candidates[i].fn);
    }
    Py_CLEAR(request->given);
    Py_CLEAR(request->names);
    Py_CLEAR(request->file);
    Py_CLEAR(request->progress);
}

/* ---- what the host knows ---- */

static void note(ctpy_rounds *rounds, size_t at, const char *what) {
    char sentence[200];
    (void)PyOS_snprintf(sentence, sizeof sentence, "%.90s %.100s", PyBytes_AS_STRING(rounds->candidates[at].encoded),
                        what);
    ct_compare_note(rounds->compare, sentence);
}

static void note_end(ctpy_rounds *rounds, const ctpy_pending *raised) {
    char words[100];
    if (rounds->ended_by == rounds->count || raised->word == NULL) return;
    (void)PyOS_snprintf(words, sizeof words, "was running when it ended (%.60s)", raised->word);
    note(rounds, rounds->ended_by, words);
}

static void note_candidates(ctpy_rounds *rounds) {
    for (size_t i = 0; i < rounds->count; i++)
        if (rounds->candidates[i].is_generator)
            note(rounds, i, "is a generator function: only the creation of its generators was timed");
    for (size_t i = 0; i < rounds->count; i++)
        if (ctpy_statement_check(rounds->state, rounds->candidates[i].fn) &&
            !ctpy_statement_is_quick(rounds->candidates[i].fn))
            note(rounds, i, "has a long setup, run once: where its code lies can make a few %");
}

static void note_gc(const ctpy_rounds *rounds) {
    const int collects = PyGC_IsEnabled();
    if (rounds->collected && !collects)
        ct_compare_note(rounds->compare, "the garbage collector was switched off during the comparison");
    if (!rounds->collected && collects)
        ct_compare_note(rounds->compare, "the garbage collector was switched on during the comparison");
    if (ctpy_thresholds_changed(rounds->state, &rounds->thresholds))
        ct_compare_note(rounds->compare, "the thresholds of the garbage collector were changed during the comparison");
}

/* Of a candidate; "overheads" has room for what is known of empty calls. */
static int describe(const ctpy_rounds *rounds, size_t at, int timed, ct_overhead *overheads, ct_time_finish *finish) {
    static const uint64_t none[CT_GC_GENERATIONS_MAX];
    const ctpy_candidate *candidate = &rounds->candidates[at];
    *finish = (ct_time_finish){.size = sizeof *finish,
                               .gc_generations = candidate->generations,
                               .gc_labels = ctpy_gc_labels,
                               .gc_before = none,
                               .gc_after = candidate->collections,
                               .gc_time = timed ? &candidate->gc_time : NULL,
                               .overheads = overheads};
    return ctpy_overheads_of(rounds->state, candidate->fn, overheads, &finish->overheads_count);
}

/* ---- the end ---- */

static int end_pauses(ctpy_rounds *rounds) {
    if (rounds->pauses == NULL) return 0;
    const int whole = ctpy_pauses_end(rounds->state, rounds->pauses);
    rounds->pauses = NULL;
    if (!whole) ct_compare_note(rounds->compare, "GC time is unknown: gc.callbacks was emptied during the comparison");
    return whole;
}

static int end_rounds(ctpy_rounds *rounds, const ctpy_pending *raised, ct_comparison **comparison) {
    ct_time_finish finishes[CT_CANDIDATES_MAX];
    ct_overhead overheads[CT_CANDIDATES_MAX][CTPY_OVERHEADS];
    const int timed = end_pauses(rounds);
    note_end(rounds, raised);
    note_candidates(rounds);
    note_gc(rounds);
    for (size_t i = 0; i < rounds->count; i++)
        if (describe(rounds, i, timed, overheads[i], &finishes[i]) < 0) PyErr_Clear(); /* they were known before */
    int status = ct_compare_end(rounds->compare, finishes, raised->word, comparison);
    rounds->compare = NULL;
    return status;
}

/* Only after a whole comparison. */
static void count_memory(const request *request, ct_comparison *comparison, ctpy_pending *raised) {
    for (size_t i = 0; request->memory && i < request->count; i++) {
        ct_result *result = (ct_result *)(uintptr_t)comparison->results[i];
        ct_memory memory = {.reason = "the comparison did not come to its end"};
        const uint64_t calls = ct_result_memory_calls(result);
        if (raised->type == NULL && ctpy_count_allocations(request->candidates[i].fn, calls, &memory) < 0)
            ctpy_pending_add(raised);
        (void)ct_result_set_memory(result, &memory);
    }
}

static PyObject *keep(ctpy_state *state, const request *request, ct_comparison *made) {
    uint32_t python = 0;
    for (size_t i = 0; i < request->count; i++)
        if (PyFunction_Check(request->candidates[i].fn)) python |= (uint32_t)1 << i;
    PyObject *comparison = ctpy_comparison_new(state, request->names, made, python);
    if (comparison != NULL) Py_XSETREF(state->last_comparison, Py_NewRef(comparison));
    return comparison;
}

static PyObject *format_verbose(const void *comparison, const ct_report_options *options) {
    ct_report_options verbose = *options;
    verbose.verbose = 1;
    return ctpy_comparison_format(comparison, &verbose);
}

static PyObject *conclude(ctpy_rounds *rounds, const request *request) {
    ctpy_pending raised;
    ct_comparison *made;
    ctpy_pending_take(&raised);
    int status = end_rounds(rounds, &raised, &made);
    if (status != CT_OK) return ctpy_pending_raise(&raised, ctpy_report_status(status));
    count_memory(request, made, &raised);
    PyObject *comparison = keep(rounds->state, request, made);
    ctpy_formatter format = request->verbose ? format_verbose : ctpy_comparison_format;
    if (comparison != NULL && ctpy_write(request->file, format, made) < 0) Py_CLEAR(comparison);
    return ctpy_pending_raise(&raised, comparison);
}

/* ---- the whole ---- */

static PyObject *run(ctpy_state *state, request *request) {
    ct_overhead overheads[CTPY_OVERHEADS];
    size_t known;
    ctpy_progress progress = {.callback = request->progress};
    ctpy_rounds rounds = {.state = state,
                          .candidates = request->candidates,
                          .count = request->count,
                          .baseline = request->baseline,
                          .collected = PyGC_IsEnabled(),
                          .progress = &progress};
    PyObject *comparison = NULL;
    ctpy_thresholds_read(state, &rounds.thresholds);
    if (ctpy_overheads(state, 1, overheads, &known) < 0) return NULL;
    if (ctpy_rounds_begin(&rounds, request->budget_ns) == 0 &&
        (!request->gc_time || (rounds.pauses = ctpy_pauses_begin(state)) != NULL)) {
        (void)ctpy_rounds_run(&rounds);
        comparison = conclude(&rounds, request); /* the exception is still set */
    }
    ctpy_rounds_clear(&rounds);
    return comparison;
}

PyObject *ctpy_compare(PyObject *module, PyObject *args, PyObject *kwargs) {
    request request = {0};
    PyObject *comparison = NULL;
    if (parse(args, kwargs, &request) == 0) comparison = run(ctpy_get_state(module), &request);
    clear(&request);
    return comparison;
}

PyObject *ctpy_last_comparison(PyObject *module, PyObject *ignored) {
    (void)ignored;
    PyObject *last = ctpy_get_state(module)->last_comparison;
    return Py_NewRef(last != NULL ? last : Py_None);
}
