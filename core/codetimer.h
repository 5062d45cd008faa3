/* SPDX-License-Identifier: MIT
 *
 * codetimer.h: the public header of codetimer, and its manual; it includes the chapters on a run (codetimer_run.h), on
 * comparing runs (codetimer_compare.h), on counters (codetimer_counters.h) and on reading them from outside
 * (codetimer_live.h).
 *
 * codetimer measures how long code takes, how many CPU cycles the calling thread spent on it, and (told by the host
 * language) what its garbage collector did meanwhile. What is not declared in these is not public.
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

#ifdef __cplusplus
}
#endif

#include "codetimer_run.h"
#include "codetimer_compare.h"
#include "codetimer_export.h"
#include "codetimer_counters.h"
#include "codetimer_live.h"

#endif
