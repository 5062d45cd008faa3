/* SPDX-License-Identifier: MIT
 *
 * codetimer_run.h: the part of the manual about a run: n calls measured as a whole, and what is known of them
 * afterwards. Included by codetimer.h; include that.
 */
#ifndef CODETIMER_RUN_H
#define CODETIMER_RUN_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ct_run ct_run;

/* What the system did to the thread during a run. A fact that the system does not tell is absent: see the flags. */
typedef struct ct_usage {
    int known;             /* 0: cpu_ns, switches and faults have no meaning, see reason */
    uint64_t cpu_ns;       /* CPU time of the thread, in user and kernel mode */
    uint64_t switches;     /* it gave up the CPU: it waited */
    uint64_t preemptions;  /* it was put off the CPU for another thread */
    uint64_t minor_faults; /* pages that had to be mapped */
    uint64_t major_faults; /* pages that had to be read in */
    int migrations_known;  /* 0: see reason */
    uint64_t migrations;   /* it went on on another CPU */
    char reason[120];      /* what is not known, and why; empty when all is */
} ct_usage;

/* Time that the host's collector took, as the host has measured it. */
typedef struct ct_gc_time {
    uint64_t pauses;
    uint64_t total_ns;
    uint64_t longest_ns;
} ct_gc_time;

/* Objects that the host's allocator was asked for, where it is told what for. */
typedef struct ct_memory_kind {
    const char *label; /* "tables", "strings", ... */
    uint64_t count;    /* in the whole pass */
} ct_memory_kind;

/* What a separate pass over some calls has counted at the host's allocator. */
typedef struct ct_memory {
    uint64_t calls;           /* of the pass; 0: there was none, see reason */
    uint64_t allocations;     /* allocator calls for a new block, in the whole pass; so is all below */
    uint64_t reallocations;   /* for another size of a block */
    uint64_t frees;           /* that gave one back */
    uint64_t allocated_bytes; /* of new blocks, and by which others grew */
    uint64_t peak_bytes;      /* the most that was in use at a time beyond what was at the start */
    size_t kinds_count;       /* at most CT_MEMORY_KINDS_MAX; 0: the host does not tell */
    const ct_memory_kind *kinds;
    const char *reason; /* NULL, or why nothing was counted */
} ct_memory;

/* The time of one empty call, to compare with: what it takes at least and at most, wherever its code lies. */
typedef struct ct_overhead {
    const char *label; /* "empty C function", ... */
    double low_ns, high_ns;
} ct_overhead;

#define CT_BATCHES_MAX        1024
#define CT_GC_GENERATIONS_MAX 4
#define CT_OVERHEADS_MAX      4
#define CT_MEMORY_KINDS_MAX   8

/* The result of a run. Made by ct_time_end or ct_time, freed by ct_result_free; its size does not depend on n. */
typedef struct ct_result {
    const char *name; /* as given, not escaped; name_length bytes, then a NUL */
    size_t name_length;
    uint64_t n;          /* calls asked for; of an automatic run: calls measured */
    uint64_t calls;      /* calls completed, without those to warm up */
    uint64_t elapsed_ns; /* time inside the calls (sum of all chunks, also of one that an error cut short) */
    int automatic;       /* 1: n was found by the library, within budget_ns */
    uint64_t budget_ns;
    uint64_t warmup_calls; /* made before the measured ones to find n; 0 also where they are among them */
    uint64_t warmup_ns;
    int per_call_known;     /* 0: no whole batch, per_call_ns has no meaning */
    double per_call_ns;     /* median of the batches; of fewer than 6 the mean */
    int interval_known;     /* 1 with at least 6 batches; goes for all up to outliers_severe */
    double interval_low_ns; /* order-statistic 95 % interval of that median */
    double interval_high_ns;
    double min_ns, q1_ns, q3_ns, max_ns; /* of the batches' time per call: least, quartiles, most */
    double mad_ns;                       /* median of the distances from the median (not scaled) */
    uint64_t outliers_mild;              /* batches beyond 1.5, and */
    uint64_t outliers_severe;            /* beyond 3 times (q3 - q1) from the quartiles (Tukey); none is left out */
    int net_known;                       /* 1: an overhead and the interval are known */
    double net_low_ns, net_high_ns;      /* time per call less an empty call, clamped at 0 */
    size_t batches;                      /* consecutive calls whose time is recorded together; at most CT_BATCHES_MAX */
    const uint64_t *batches_ns;          /* [batches] */
    const uint64_t *batches_calls;       /* [batches]; a chunk cut short by an error is in no batch */
    int cycles_kind;                     /* CT_CYCLES_*; NONE: cycles has no meaning, see cycles_reason */
    uint64_t cycles;                     /* of this thread over the whole run */
    const char *cycles_source;
    const char *cycles_reason;
    ct_usage usage;
    size_t gc_generations;          /* as told by the host; 0: it has no collector */
    const char *const *gc_labels;   /* [gc_generations] "Gen 0", "GC Minor", ... */
    const uint64_t *gc_collections; /* [gc_generations] collections during the run */
    int gc_time_known;
    ct_gc_time gc_time;
    ct_memory memory;
    size_t overheads_count;
    const ct_overhead *overheads; /* [overheads_count]; the first is the one that net is made with */
    const char *interrupted;      /* NULL, or what ended the run early: "interrupted", "ValueError", ... */
    size_t notes_count;           /* one plain sentence each */
    const char *const *notes;
    const char *clock;    /* source of the clock during the run */
    double resolution_ns; /* its least step; 0: it did not move */
    const char *priority; /* of the thread at the start of the run, e.g. "nice 0" */
} ct_result;

/* For "n": as many calls as fit into the budget. */
#define CT_N_AUTOMATIC (-1)

typedef struct ct_time_options {
    size_t size;        /* sizeof(ct_time_options) */
    size_t name_length; /* bytes in "name"; 0: up to its NUL */
    uint64_t budget_ns; /* of an automatic run, all in all; 0: 200 ms */
} ct_time_options;

/* How a run came to its end, and what the host knows of it. All is copied. */
typedef struct ct_time_finish {
    size_t size;                  /* sizeof(ct_time_finish) */
    const char *interrupted;      /* NULL, or a word for what ended it early */
    size_t gc_generations;        /* at most CT_GC_GENERATIONS_MAX */
    const char *const *gc_labels; /* [gc_generations] */
    const uint64_t *gc_before;    /* [gc_generations] the host's collection counts just before the first chunk */
    const uint64_t *gc_after;     /* [gc_generations] and just after the last */
    const ct_gc_time *gc_time;    /* NULL: not asked for */
    const ct_memory *memory;      /* NULL: not asked for */
    size_t overheads_count;       /* at most CT_OVERHEADS_MAX */
    const ct_overhead
        *overheads; /* [overheads_count] what empty calls take in this process; the best to compare first */
} ct_time_finish;

/* A run in pull style: the host owns the loop, the library says how much of it to do.
 *
 *     ct_time_begin(name, n, NULL, &run);
 *     ... full collection, gc_before ...
 *     while ((what = ct_time_next(run, &k)) != 0) {
 *         if (what == CT_WARM) { ... full collection, gc_before anew ...; continue; }
 *                                            the clock runs from here
 *         made = ... up to k calls, stopping at an error ...
 *         pause = ct_time_done(run, made);   to here
 *         ... if (pause) let other threads in ...
 *     }
 *     ... gc_after ...
 *     ct_time_end(run, &finish, &result);
 *
 * Nothing is allocated between begin and end. "name": any bytes, NULL means empty. "n": 0 .. 2^63 - 1, or
 * CT_N_AUTOMATIC: some calls are made to see how long one takes (growing at most tenfold at a time) and forgotten, then
 * batches are measured until the budget is used up. Where the first calls alone take more than half of the budget they
 * are the result, and a note says that there was no warm-up.
 * "options" may be NULL. Returns CT_OK, CT_EINVAL, CT_ENOMEM. The run must be ended (or dropped by ct_run_free). */
CT_API int ct_time_begin(const char *name, int64_t n, const ct_time_options *options, ct_run **run);

/* Gives the size of the next chunk in *k (>= 1) and starts the clock; returns 1. Returns 0 when all calls are made or
 * when the last chunk ended early. Returns CT_WARM (once, of an automatic run) when the calls so far are forgotten:
 * collect, and take the host's counts anew. */
#define CT_WARM 2
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

/* Adds a sentence to the notes of the run; copied (at most 12 notes of 200 bytes). Outside chunks only. */
CT_API void ct_time_note(ct_run *run, const char *text);

/* How far an automatic run, or one of known n, has come: 0 to 1. Between chunks. */
CT_API double ct_time_progress(const ct_run *run);

/* The mean time of the calls so far, to tell who waits; 0: nothing is known yet. Between chunks. */
CT_API double ct_time_per_call_ns(const ct_run *run);

/* Ends the run, frees it, and makes the result. "finish" may be NULL (complete, no collector).
 * Returns CT_OK, CT_EINVAL, CT_ENOMEM (the run is freed in every case). */
CT_API int ct_time_end(ct_run *run, const ct_time_finish *finish, ct_result **result);

/* Adds what empty calls take to a result that was made without, and the net cost with it. "overheads" is copied.
 * CT_OK, CT_EINVAL (more than CT_OVERHEADS_MAX). */
CT_API int ct_result_set_overheads(ct_result *result, size_t count, const ct_overhead *overheads);

/* Adds what a memory pass has counted, for hosts that make it after the run, when the time of a call is known. Copied.
 * CT_OK, CT_EINVAL. */
CT_API int ct_result_set_memory(ct_result *result, const ct_memory *memory);

/* How many calls a memory pass is to make of what this is the result of: 1 to 100, that take some 50 ms together; 0:
 * the run made none. */
CT_API uint64_t ct_result_memory_calls(const ct_result *result);

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
    int verbose; /* 1: spread, outliers, usage, overheads and net cost as well */
    int unit;    /* CT_UNIT_*: of times per call */
    int process; /* 1: the CPU time per call as well */
} ct_report_options;

/* AUTOMATIC: the one in which it is 1 to 999.999. */
enum { CT_UNIT_AUTOMATIC, CT_UNIT_NS, CT_UNIT_US, CT_UNIT_MS, CT_UNIT_S };

/* The unit that timeit calls so: "nsec", "usec", "msec" or "sec"; else CT_EINVAL. */
CT_API int ct_unit(const char *name);

/* Formats a result: the block that every language prints, ending in an empty line. Numbers are written alike in every
 * locale; control characters and invalid UTF-8 in the name are escaped. Returns as snprintf does (see
 * ct_environment_format). "options" may be NULL (plain UTF-8 block). */
CT_API size_t ct_report_format(const ct_result *result, const ct_report_options *options, char *buffer, size_t size);

/* One sentence on several runs of the same, with a newline and an empty line: the least, the median and the most of
 * their times per call. "" where fewer than two have one. Returns as snprintf does. */
CT_API size_t ct_runs_format(const ct_result *const *results, size_t count, const ct_report_options *options,
                             char *buffer, size_t size);

/* What there is to say of a run under way, on one line without a newline: how far it has come ("part", 0 to 1, in
 * "elapsed_ns"), the time per call so far (0: not known), and how long it will still take. Returns as snprintf does. */
CT_API size_t ct_progress_format(double part, uint64_t elapsed_ns, double per_call_ns, const ct_report_options *options,
                                 char *buffer, size_t size);

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
#endif
