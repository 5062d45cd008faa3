/* SPDX-License-Identifier: MIT
 *
 * common.h: what the files of the Python binding share.
 *
 * The binding converts, loops and calls; what a run means, how a report looks and what the system allows is decided by
 * the core behind codetimer.h. Everything that lives longer than a call sits in the module state, so that each
 * interpreter of a process (each with its own GIL, since 3.12) has its own. There is no global variable here.
 */
#ifndef CTPY_COMMON_H
#define CTPY_COMMON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "codetimer.h"

/* CPython keeps functions in void pointers, which ISO C does not convert to; every system that it runs on does. */
#if defined(__GNUC__)
#define CTPY_SLOT(function) __extension__(void *)(function)
#else
#define CTPY_SLOT(function) (void *)(function)
#endif

/* It also takes lists of keywords and docstrings as not const, though it only reads them. */
#define CTPY_MUTABLE(type, text) ((type)(uintptr_t)(text))

/* Through void (*)(void), the one function type that every other may pass by way of. */
#define CTPY_WITH_KEYWORDS(function) ((PyCFunction)(void (*)(void))(function))

/* What measured makes, by how it behaves in a class (measured.c). */
enum { CTPY_FUNCTION, CTPY_DESCRIPTOR, CTPY_OBJECT, CTPY_ATTRIBUTE, CTPY_MEASURED_TYPES };

/* What stands in for what a call returns that can be suspended (underway.h). */
enum {
    CTPY_COROUTINE,
    CTPY_GENERATOR,
    CTPY_GENERATOR_COROUTINE,
    CTPY_ASYNC_GENERATOR,
    CTPY_STEP,
    CTPY_UNDERWAY_TYPES
};

/* Functions of 64, 16, 4 calls and one (block.c). */
enum { CTPY_BLOCK_SIZES = 4, CTPY_BLOCK_CALLS = 64 };

typedef struct ctpy_state {
    PyTypeObject *result_type;
    PyTypeObject *environment_type;
    PyTypeObject *clock_type;
    PyTypeObject *cycles_type;
    PyTypeObject *priority_type;
    PyObject *gc_collect;       /* gc.collect and gc.get_stats as they were at import: */
    PyObject *gc_get_stats;     /* the C API can neither collect while gc is disabled nor tell the counts, */
    PyObject *gc_get_threshold; /* nor the thresholds */
    PyObject *safe_point;       /* an empty Python function */
    PyObject *block_codes[CTPY_BLOCK_SIZES]; /* see block.c; NULL until they are needed */
    int call_first;             /* where the first call stands in them, and */
    int call_step;              /* how far the next one is, in bytes */
    PyObject *gc_callbacks;     /* the list gc.callbacks */
    PyObject *last_result;      /* of this interpreter, NULL before the first run */
    PyObject *last_comparison;  /* likewise */
    PyTypeObject *comparison_type;
    PyTypeObject *statement_type;
    PyTypeObject *usage_type; /* these belong to facts.c */
    PyTypeObject *gc_time_type;
    PyTypeObject *memory_type;
    PyTypeObject *overhead_type;
    PyTypeObject *ratio_type;
    int overheads_known;
    ct_overhead overheads[2]; /* see overheads.c */
    PyTypeObject *counter_type; /* these belong to counting.h */
    PyTypeObject *sample_type;
    PyTypeObject *counters_type;
    PyTypeObject *timer_type;
    PyObject *logger;     /* logging.getLogger("codetimer"), NULL until something is told there */
    ct_writer *writer;    /* of this interpreter, NULL before the first counter */
    int told_refusal;     /* that counters are refused is logged once; -1: there was no memory to log it with yet */
    int trace_increments; /* see trace.c */
    PyTypeObject *process_type; /* these belong to live.h */
    PyTypeObject *info_type;
    PyTypeObject *segment_type;
    PyTypeObject *view_type;
    PyTypeObject *members_type;
    PyTypeObject *pattern_type;
    PyTypeObject *settings_type;
    uint64_t told_events, told_lists, told_changes;    /* see following.c */
    int told_environment;                              /* what is skipped of CODETIMER_MEASURE has been logged */
    PyTypeObject *measured_types[CTPY_MEASURED_TYPES]; /* see measured.h */
    PyTypeObject *underway_types[CTPY_UNDERWAY_TYPES]; /* see underway.h */
    int told_uncounted;                                /* what returned something else to await has been logged */
    PyObject *special_types;                           /* {number: type}, see special.c; NULL before the first */
    struct ctpy_monitoring *monitoring;                /* see monitoring.h; NULL before Python 3.12 */
} ctpy_state;

static inline ctpy_state *ctpy_get_state(PyObject *module) { return (ctpy_state *)PyModule_GetState(module); }

/* ---- arguments.c: each sets TypeError or ValueError, with the value and what is accepted, and returns -1 ---- */

typedef struct ctpy_call {
    PyObject *name;    /* str */
    PyObject *encoded; /* bytes: the name as UTF-8, lone surrogates as \udc80 */
    int64_t n;         /* CT_N_AUTOMATIC: None was given */
    uint64_t budget_ns;
    PyObject *fn;
    int is_generator;
    int gc_time, memory, verbose;
    PyObject *file;     /* NULL: sys.stdout when the run has ended */
    PyObject *progress; /* NULL: nobody wants to know */
} ctpy_call;

/* The objects of "call" are owned: kwargs may be a dict of the caller, and what runs meanwhile (fn, an __index__, a
 * __repr__) may empty it. ctpy_call_clear drops them, also after a refusal. */
int ctpy_parse_call(PyObject *args, PyObject *kwargs, ctpy_call *call);
void ctpy_call_clear(ctpy_call *call);

/* Whether calls of "fn" can be timed. "who" is what a refusal calls it. */
int ctpy_check_fn(const char *who, PyObject *fn, int *is_generator);

/* The name as the core takes it: bytes in UTF-8, lone surrogates as \udc80. */
PyObject *ctpy_encode(PyObject *name);

/* Seconds; NULL and None are 0: the default. */
int ctpy_parse_budget(PyObject *value, uint64_t *budget_ns);
int ctpy_parse_priority(PyObject *value, const char **level);
int ctpy_parse_cpu(PyObject *value, int *cpu);

/* Refuses "value": raises "type" with "message", the value's repr and its type. Returns -1. */
int ctpy_refuse(PyObject *type, const char *message, PyObject *value);

/* After asking an object for something: clears an exception that only says that the object does not have it. Returns 0;
 * -1 where the exception stays, as it is none of the object's answers (KeyboardInterrupt, MemoryError). */
int ctpy_forgive(void);

/* The co_flags of the code that a call of "fn" runs; 0 if it is not Python code; -1 for an exception. */
int ctpy_code_flags(PyObject *fn);

/* ---- run.c, compare.c; what they share is in running.h ---- */

PyObject *ctpy_time(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ctpy_compare(PyObject *module, PyObject *args, PyObject *kwargs);
extern const char ctpy_compare_doc[];
PyObject *ctpy_last_comparison(PyObject *module, PyObject *ignored);
extern const char ctpy_last_comparison_doc[];

/* ---- block.c ---- */

/* Makes the empty function of ctpy_safe_point, when the module is made. Returns 0, or -1 with an exception. */
int ctpy_block_open(ctpy_state *state);

/* ---- print.c ---- */

/* Makes a text from "what" for a stream. A new str, or NULL with an exception. */
typedef PyObject *(*ctpy_formatter)(const void *what, const ct_report_options *options);

/* Writes what "format" makes of "what", as the stream can take it, to "file" (NULL: sys.stdout, looked up now). Returns
 * 0, or -1 with an exception. */
int ctpy_write(PyObject *file, ctpy_formatter format, const void *what);

/* Writes the report of "result" to "file", unless its name is empty. */
int ctpy_print(const ct_result *result, PyObject *file, int verbose);

/* What a function of the core puts into a buffer, in the way of snprintf, as a new str. */
typedef size_t (*ctpy_put)(const void *what, const void *options, char *buffer, size_t size);
PyObject *ctpy_put_text(ctpy_put put, const void *what, const void *options);

/* The same with the options of a file, which names this Python. */
PyObject *ctpy_json(ctpy_put put, const void *what);

/* Whether report() and time() can write to "file"; sets TypeError and returns -1 if not. */
int ctpy_check_file(PyObject *file);

/* The report as a new str; "options" may be NULL. */
PyObject *ctpy_format(const ct_result *result, const ct_report_options *options);

/* ---- result.c: the type codetimer.Result ---- */

extern PyType_Spec ctpy_result_spec;
extern PyType_Spec ctpy_comparison_spec; /* comparison.c */
extern PyType_Spec ctpy_statement_spec;  /* statement.c */

/* A new Comparison of what "names" (a tuple of str) calls its candidates; it owns "comparison" (also on failure).
 * "python": which of them are Python functions, one bit each. */
PyObject *ctpy_comparison_new(ctpy_state *state, PyObject *names, ct_comparison *comparison, uint32_t python);
ct_comparison *ctpy_comparison_get(PyObject *self);

/* The table as a new str, of a ct_comparison; "options" may be NULL. */
PyObject *ctpy_comparison_format(const void *comparison, const ct_report_options *options);

/* A new Result that owns "result" (also on failure), unless it is part of "owner" (NULL: it is not). "is_python": its
 * calls were made as those of a Python function; -1: as those of neither kind, so that nothing is known of empty ones.
 */
PyObject *ctpy_result_new(ctpy_state *state, PyObject *name, ct_result *result, int is_python, PyObject *owner);
const ct_result *ctpy_result_get(PyObject *self);

/* ---- files.c: for the command line ---- */

/* Adds its functions to the module. */
int ctpy_files_add(PyObject *module);

/* ---- environment.c: the type codetimer.Environment ---- */

extern PyType_Spec ctpy_environment_spec;
PyObject *ctpy_initialize(PyObject *module, PyObject *args, PyObject *kwargs);

/* ---- info.c: small named tuples ---- */

int ctpy_info_add_types(PyObject *module, ctpy_state *state);
PyObject *ctpy_clock_new(ctpy_state *state, const ct_clock *clock);
PyObject *ctpy_cycles_new(ctpy_state *state, const ct_cycles *cycles);
PyObject *ctpy_priority_new(ctpy_state *state, const ct_priority *priority);

/* ---- facts.c: more of them, which results have ---- */

int ctpy_facts_add_types(PyObject *module, ctpy_state *state);
PyObject *ctpy_usage_new(ctpy_state *state, const ct_usage *usage);
PyObject *ctpy_gc_time_new(ctpy_state *state, const ct_gc_time *gc_time);
PyObject *ctpy_memory_new(ctpy_state *state, const ct_memory *memory);
PyObject *ctpy_overhead_new(ctpy_state *state, const ct_overhead *overhead);
PyObject *ctpy_ratio_new(ctpy_state *state, const ct_ratio *ratio);

/* "value" (given away) as JSON knows it: tuples as lists, named tuples as dicts, and so on inside. */
PyObject *ctpy_plain(PyObject *value);

/* Adds a type of named tuples to the module; all its fields are in the sequence. */
int ctpy_add_fields_type(PyObject *module, PyStructSequence_Desc *description, PyTypeObject **type);

/* A new named tuple of "values", which are given away; NULL if one of them could not be made. */
PyObject *ctpy_fill(PyTypeObject *type, PyObject **values, Py_ssize_t count);
#define CTPY_FILL(type, values) ctpy_fill(type, values, (Py_ssize_t)(sizeof(values) / sizeof *(values)))

/* UTF-8 text of the core as a str; what is not UTF-8 is replaced, NULL is None. */
PyObject *ctpy_text(const char *text);

#endif
