/* SPDX-License-Identifier: MIT
 *
 * codetimer.h: the public header of codetimer, and its manual; it includes the chapters on counters
 * (codetimer_counters.h) and on reading them from outside (codetimer_live.h).
 *
 * codetimer measures how long code takes, how many CPU cycles the calling thread spent on it, and (told by the host
 * language) what its garbage collector did meanwhile. What is not declared in these three is not public.
 *
 * Conventions
 *   Names       ct_<object>_<verb>; a quantity ends in its unit (_ns, _hz). Python and Lua: the same without ct_.
 *   Status      int: CT_OK is 0, failures are negative (CT_STATUS_LIST). Outputs come last, written only on success.
 *   Ownership   what a function hands out through a ** is freed by the matching _free; every _free accepts NULL.
 *   Text        UTF-8. Texts inside a struct live as long as the struct; texts from ct_*_text/_name are static.
 *   Structs     results and reports are allocated by the library and only read by the caller: later versions append
 *               fields. Options are filled by the caller and begin with their own size.
 *   Missing     a fact that cannot be known is absent and its reason is given; it is never reported as 0.
 *   Threads     any function may be called from any thread; one ct_run, ct_priority or ct_environment belongs to the
 *               thread that made it. No function here is async-signal-safe.
 */
#ifndef CODETIMER_H
#define CODETIMER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library; every build file reads it from here. */
#define CT_VERSION "0.1.0"

#if defined(CT_SHARED) && defined(__GNUC__)
#define CT_API __attribute__((visibility("default")))
#else
#define CT_API
#endif

/* ---- status ------------------------------------------------------------------------------------------------- */

/* One line per status: name, value, text. The enum, ct_status_name and ct_status_text are made from this list. */
#define CT_STATUS_LIST(X)                                                  \
    X(CT_OK, 0, "success")                                                 \
    X(CT_EXISTS, 1, "success; it was there already")                       \
    X(CT_EINVAL, -1, "invalid argument")                                   \
    X(CT_ENOMEM, -2, "out of memory")                                      \
    X(CT_EPERM, -3, "refused by the operating system: no permission")      \
    X(CT_ENOTSUP, -4, "not supported on this system")                      \
    X(CT_ETHREAD, -5, "called from another thread than the one it concerns") \
    X(CT_ECHANGED, -6, "changed by someone else in the meantime")          \
    X(CT_EOS, -7, "the operating system reported an unexpected error")     \
    X(CT_ENOENT, -8, "there is no such thing")                             \
    X(CT_EFULL, -9, "the limit is reached (CODETIMER_MAX_COUNTERS)")       \
    X(CT_EBUSY, -10, "another controller of that process is in the way: try again")

enum {
#define CT_STATUS_ENUM(name, value, text) name = value,
    CT_STATUS_LIST(CT_STATUS_ENUM)
#undef CT_STATUS_ENUM
};

/* The name ("CT_EPERM") and the sentence of a status. Unknown values give "CT_E?" and "unknown status". */
CT_API const char *ct_status_name(int status);
CT_API const char *ct_status_text(int status);

/* CT_VERSION of the library that is linked (the header's may differ). */
CT_API const char *ct_version(void);

/* ---- clock -------------------------------------------------------------------------------------------------- */

/* Monotonic nanoseconds since an arbitrary moment. Never steps back within a process, on any thread. The source is
 * chosen at the first use (at most 1 ms) and explained by ct_clock_info. The unit is nanoseconds whatever the
 * resolution. Whether time asleep (suspend) counts is the system's choice. */
CT_API uint64_t ct_now_ns(void);

typedef struct ct_clock {
    char source[24];      /* "tsc", "cntvct", "monotonic", "monotonic (system call)", "qpc", "mach" */
    double resolution_ns; /* the least step seen between two readings */
    double read_cost_ns;  /* the least time that one reading takes */
    double frequency_hz;  /* of the reference counter (TSC, cntvct); 0 when there is none */
    char reason[200];     /* why this source and not a faster one, or what has changed since */
} ct_clock;

/* Describes the clock behind ct_now_ns and the runs. Measures resolution and cost anew at each call (about 0.1 ms).
 * CODETIMER_CLOCK=tsc|monotonic in the environment overrides the choice. */
CT_API void ct_clock_info(ct_clock *clock);

/* ---- thread cycles ------------------------------------------------------------------------------------------ */

enum {
    CT_CYCLES_NONE = 0,     /* unknown: see reason */
    CT_CYCLES_CORE = 1,     /* real cycles of the core, charged to this thread */
    CT_CYCLES_REFERENCE = 2 /* ticks of the constant-rate counter while this thread was on a CPU */
};

typedef struct ct_cycles {
    uint64_t value;   /* since an arbitrary moment of this thread; only a difference of one kind and source counts */
    int kind;         /* CT_CYCLES_* */
    char source[48];  /* e.g. "perf_event cpu-cycles (user)", "thread CPU time x 2,096.0 MHz" */
    char reason[200]; /* why not CT_CYCLES_CORE, and what would help; empty for CT_CYCLES_CORE */
} ct_cycles;

/* CPU cycles charged to the calling thread so far. Costs a system call (about 1 us): read it at the two ends of a run,
 * not per call. Returns CT_OK, or CT_ENOTSUP with kind CT_CYCLES_NONE and a reason (the struct is written then too). */
CT_API int ct_thread_cycles(ct_cycles *cycles);

/* "core", "reference" or "none". */
CT_API const char *ct_cycles_kind_name(int kind);

/* ---- priority ----------------------------------------------------------------------------------------------- */

/* What was asked for and what was obtained. Texts are complete phrases such as "nice -10". */
typedef struct ct_priority {
    const char *requested; /* "high", "highest", "realtime", or NULL: priority left alone */
    int status;            /* CT_OK, or why the priority was not obtained (CT_EPERM, CT_ENOTSUP, ...) */
    int cpu;               /* the CPU asked for, or -1 */
    int cpu_status;        /* CT_OK, or why the pin was not obtained */
    int restored;          /* 1 after ct_priority_restore has put everything back */
    char previous[64];     /* before */
    char effective[64];    /* read back afterwards */
    char scope[96];        /* what it applies to: "this thread", ... and where it may have no effect */
    char reason[200];      /* why less than the request was obtained; empty otherwise */
} ct_priority;

/* Raises the calling thread's priority (and pins it to "cpu", unless -1), remembering the raw values.
 * "level": "high" (Linux nice -10), "highest" (nice -20), "realtime" (SCHED_FIFO 1), NULL: leave it. A priority that is
 * already higher is left. A refusal by the system is not a failure: it is a fact in the report.
 * Returns CT_OK, CT_EINVAL (unknown level, cpu < -1), CT_ENOMEM. */
CT_API int ct_priority_raise(const char *level, int cpu, ct_priority **priority);

/* Puts back exactly what ct_priority_raise found, provided that it is still what that call set. Idempotent.
 * Returns CT_OK, CT_ETHREAD (another thread: nothing done), CT_ECHANGED (someone else changed it: left alone),
 * CT_EPERM or CT_EOS (the system refused). */
CT_API int ct_priority_restore(ct_priority *priority);

/* Frees the report. Does not restore. */
CT_API void ct_priority_free(ct_priority *priority);

/* ---- initialize --------------------------------------------------------------------------------------------- */

/* What a measuring program starts from. */
typedef struct ct_environment {
    ct_priority *priority;
    ct_clock clock;
    ct_cycles cycles;
} ct_environment;

/* Raises the priority as ct_priority_raise does, chooses and calibrates the clock, and warms the measuring path.
 * Calls nest: the last one is restored first. Returns as ct_priority_raise. */
CT_API int ct_initialize(const char *level, int cpu, ct_environment **environment);
CT_API int ct_environment_restore(ct_environment *environment);
CT_API void ct_environment_free(ct_environment *environment);

/* Writes a few lines of text: priority, clock, cycles. Like snprintf: returns the length that the whole text has
 * (without the final NUL); writes at most size - 1 characters and a NUL if size > 0. */
CT_API size_t ct_environment_format(const ct_environment *environment, char *buffer, size_t size);

/* ---- a run -------------------------------------------------------------------------------------------------- */

typedef struct ct_run ct_run;

/* The result of a run. Made by ct_time_end or ct_time, freed by ct_result_free; its size does not depend on n. */
typedef struct ct_result {
    const char *name; /* as given, not escaped; name_length bytes, then a NUL */
    size_t name_length;
    uint64_t n;                     /* calls asked for */
    uint64_t calls;                 /* calls completed */
    uint64_t elapsed_ns;            /* time inside the calls (sum of all chunks, also of one that an error cut short) */
    int per_call_known;             /* 0: no whole batch, per_call_ns has no meaning */
    double per_call_ns;             /* median of the batches; of fewer than 6 the mean */
    int interval_known;             /* 1 with at least 6 batches */
    double interval_low_ns;         /* order-statistic 95 % interval of that median */
    double interval_high_ns;
    size_t batches;                 /* consecutive calls whose time is recorded together; at most CT_BATCHES_MAX */
    const uint64_t *batches_ns;     /* [batches] */
    const uint64_t *batches_calls;  /* [batches]; a chunk cut short by an error is in no batch */
    int cycles_kind;                /* CT_CYCLES_*; NONE: cycles has no meaning, see cycles_reason */
    uint64_t cycles;                /* of this thread over the whole run */
    const char *cycles_source;
    const char *cycles_reason;
    size_t gc_generations;          /* as told by the host; 0: it has no collector */
    const char *const *gc_labels;   /* [gc_generations] "Gen 0", "GC Minor", ... */
    const uint64_t *gc_collections; /* [gc_generations] collections during the run */
    const char *interrupted;        /* NULL, or what ended the run early: "interrupted", "ValueError", ... */
    size_t notes_count;             /* one plain sentence each */
    const char *const *notes;
    const char *clock;              /* source of the clock during the run */
    const char *priority;           /* of the thread at the start of the run, e.g. "nice 0" */
} ct_result;

#define CT_BATCHES_MAX 128
#define CT_GC_GENERATIONS_MAX 4

typedef struct ct_time_options {
    size_t size;        /* sizeof(ct_time_options) */
    size_t name_length; /* bytes in "name"; 0: up to its NUL */
} ct_time_options;

/* How a run came to its end. */
typedef struct ct_time_finish {
    size_t size;                  /* sizeof(ct_time_finish) */
    const char *interrupted;      /* NULL, or a word for what ended it early; copied */
    size_t gc_generations;        /* at most CT_GC_GENERATIONS_MAX */
    const char *const *gc_labels; /* [gc_generations]; copied */
    const uint64_t *gc_before;    /* [gc_generations] the host's collection counts just before the first chunk */
    const uint64_t *gc_after;     /* [gc_generations] and just after the last */
} ct_time_finish;

/* A run in pull style: the host owns the loop, the library says how much of it to do.
 *
 *     ct_time_begin(name, n, NULL, &run);
 *     ... full collection, gc_before ...
 *     while (ct_time_next(run, &k)) {        the clock runs from here
 *         made = ... up to k calls, stopping at an error ...
 *         pause = ct_time_done(run, made);   to here
 *         ... if (pause) let other threads in ...
 *     }
 *     ... gc_after ...
 *     ct_time_end(run, &finish, &result);
 *
 * Nothing is allocated between begin and end. "name": any bytes, NULL means empty. "n": 0 .. 2^63 - 1.
 * "options" may be NULL. Returns CT_OK, CT_EINVAL, CT_ENOMEM. The run must be ended (or dropped by ct_run_free). */
CT_API int ct_time_begin(const char *name, int64_t n, const ct_time_options *options, ct_run **run);

/* Gives the size of the next chunk in *k (>= 1) and starts the clock; returns 1. Returns 0 when n calls are made or
 * when the last chunk ended early. */
CT_API int ct_time_next(ct_run *run, uint64_t *k);

/* Ends the chunk: "made" calls were completed. Fewer than k means that an error stopped it, unless ct_time_due had said
 * so (or ct_time_cut was called). Returns 1 when at least 5 ms have passed since the last such answer: time to let
 * other threads in. */
CT_API int ct_time_done(ct_run *run, uint64_t made);

/* 1 when the current chunk has lasted long enough (5 ms) to be ended with fewer than k calls. Hosts whose loop can stop
 * anywhere ask this now and then. */
CT_API int ct_time_due(ct_run *run);

/* The same as if ct_time_due had said 1: for hosts that have a reason of their own to end the chunk, and no error. */
CT_API void ct_time_cut(ct_run *run);

/* Adds a sentence to the notes of the run; copied (at most 8 notes of 160 bytes). Outside chunks only. */
CT_API void ct_time_note(ct_run *run, const char *text);

/* Ends the run, frees it, and makes the result. "finish" may be NULL (complete, no collector).
 * Returns CT_OK, CT_EINVAL, CT_ENOMEM (the run is freed in every case). */
CT_API int ct_time_end(ct_run *run, const ct_time_finish *finish, ct_result **result);

/* Drops a run without a result. */
CT_API void ct_run_free(ct_run *run);
CT_API void ct_result_free(ct_result *result);

/* The whole run for a C function: calls fn(arg) n times, prints the report on standard output (nothing if the name is
 * empty), and hands out the result unless "result" is NULL. "fn" returns 0 to go on; any other value ends the run early
 * as an error. Returns CT_OK (also after an early end: see result->interrupted), CT_EINVAL, CT_ENOMEM, CT_EOS (standard
 * output could not be written; the result is handed out all the same). "fn" must return: leaving it by longjmp loses
 * the memory of the run. */
CT_API int ct_time(const char *name, int64_t n, int (*fn)(void *arg), void *arg, const ct_time_options *options,
                   ct_result **result);

/* ---- report ------------------------------------------------------------------------------------------------- */

typedef struct ct_report_options {
    size_t size; /* sizeof(ct_report_options) */
    int color;   /* 1: the name in yellow */
    int ascii;   /* 1: us +- - in place of the micro, plus-minus and dash signs */
    int line;    /* 1: one line instead of the block */
} ct_report_options;

/* Formats a result: the block that every language prints, ending in an empty line. Numbers are written alike in every
 * locale; control characters and invalid UTF-8 in the name are escaped. Returns as snprintf does (see
 * ct_environment_format). "options" may be NULL (plain UTF-8 block). */
CT_API size_t ct_report_format(const ct_result *result, const ct_report_options *options, char *buffer, size_t size);

/* Whether to colour: NO_COLOR, FORCE_COLOR and TERM=dumb obeyed, else "is_terminal". */
CT_API int ct_report_color(int is_terminal);

/* 1 where LC_ALL, LC_CTYPE or LANG (the first that is set) names a charset other than UTF-8. C and POSIX count as
 * UTF-8. */
CT_API int ct_report_ascii(void);

/* 1 if the file descriptor is a terminal. */
CT_API int ct_is_terminal(int fd);

#ifdef __cplusplus
}
#endif

#include "codetimer_counters.h"
#include "codetimer_live.h"

#endif
