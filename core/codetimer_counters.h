/* SPDX-License-Identifier: MIT
 *
 * codetimer_counters.h: the part of the manual about counters. Included by codetimer.h; include that.
 *
 * A counter is the running statistics of one member (a function): how often it was called, how long it took. It lives
 * as long as the process, unless it is removed; it is found by its key "category/member".
 */
#ifndef CODETIMER_COUNTERS_H
#define CODETIMER_COUNTERS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Whoever measures and whose calls the host serialises: one per interpreter with a global lock, per lua_State, else per
 * thread. Counters belong to the writer they were opened with, and one writer is used by one thread at a time. */
typedef struct ct_writer ct_writer;

/* "script": the category of members without a dot, NULL: "main". Returns CT_OK, CT_EINVAL ("/", longer than 65,535
 * bytes), CT_ENOMEM. */
CT_API int ct_writer_open(const char *script, ct_writer **writer);

/* Its counts stay; its memory passes to the next writer when the last of its counters is closed too. Accepts NULL. */
CT_API void ct_writer_close(ct_writer *writer);

/* A handle: one writer's way to one counter. */
typedef struct ct_counter ct_counter;

/* Creates or gets a counter. "category": NULL means the part of "member" before its first dot, else the writer's
 * script. "help": a sentence for readers, or NULL. Returns CT_OK (created), CT_EXISTS (was there), CT_EINVAL (an empty
 * name, one over 65,535 bytes, "/" in the category), CT_EFULL, CT_ENOMEM. */
CT_API int ct_counter_open(ct_writer *writer, const char *category, const char *member, const char *help,
                           ct_counter **counter);

/* Gets a listed counter by its key. Returns CT_OK, CT_EINVAL, CT_ENOENT, CT_ENOMEM. */
CT_API int ct_counter_find(ct_writer *writer, const char *key, ct_counter **counter);

/* Closes the handle; the counter stays. */
CT_API void ct_counter_close(ct_counter *counter);

/* A call under way. Filled by ct_enter; belongs to the caller, usually on its stack. */
typedef struct ct_token {
    uint64_t state; /* even: this call is not counted, and ct_leave may be left out */
    uint64_t start;
    int source;
} ct_token;

enum { CT_RETURNED, CT_FAILED, CT_CANCELLED };

/* Around a measured call. It counts if the counter is enabled at both ends under the same generation. ct_leave must
 * follow in every outcome (CT_RETURNED, CT_FAILED, CT_CANCELLED), from the same writer. No lock, no allocation, no
 * system call but in the first call of a generation. Not async-signal-safe. ct_leave returns the nanoseconds that it
 * counted, -1 if none. */
CT_API void ct_enter(ct_counter *counter, ct_token *token);
CT_API int64_t ct_leave(ct_counter *counter, const ct_token *token, int outcome);

/* In place of ct_leave where nobody will see the end of the call: it is no longer in flight, and not counted. */
CT_API void ct_abandon(ct_counter *counter, const ct_token *token);

/* A call that can be suspended (a coroutine, a generator) has two durations: elapsed, from its begin to its end, and
 * active, while it ran. Begins as {0}; the call is resumed and suspended between ct_enter and ct_leave_active, which
 * replaces ct_leave and counts both. "active" NULL: nobody can tell how much of the call was active. The call may be
 * resumed by another thread each time, as long as these have the same writer. */
typedef struct ct_active {
    uint64_t ticks, since;
} ct_active;

CT_API void ct_active_resume(const ct_token *token, ct_active *active);
CT_API void ct_active_suspend(const ct_token *token, ct_active *active);
CT_API int64_t ct_leave_active(ct_counter *counter, const ct_token *token, const ct_active *active, int outcome);

/* 1 if a call that begins now would count, 0 if the counter is disabled or removed. */
CT_API int ct_counter_enabled(const ct_counter *counter);

/* Counts one call that was timed elsewhere. Returns 1; or 0 if it does not count, because the counter is disabled or
 * removed, or because the total cannot hold the duration, which is an anomaly. */
CT_API int ct_counter_record(ct_counter *counter, uint64_t duration_ns, int outcome);

/* Starts a new generation: all values begin again; a call under way does not count. CT_OK, CT_ENOENT (it was removed).
 * */
CT_API int ct_counter_reset(ct_counter *counter);

/* Unlists the counter. Its handles stay valid and count nothing until it is opened again. CT_OK, CT_ENOENT. */
CT_API int ct_counter_remove(ct_counter *counter);

#define CT_BUCKETS 338

/* The values of a counter at one moment, summed over its writers. Averages and percentiles of a stretch of time come
 * from the difference of two samples. */
typedef struct ct_sample {
    uint64_t time_ns; /* ct_now_ns when it was taken */
    uint64_t generation;
    int listed, enabled;
    int unclean;             /* a writer went away, or hangs, in the middle of an update: one call may be half in */
    uint64_t calls;          /* finished */
    uint64_t total_ns;       /* elapsed, of all calls */
    uint64_t active_ns;      /* of which the calls ran; differs for what can be suspended */
    uint64_t active_unknown; /* calls whose active time is not known, and not in active_ns */
    uint64_t errors, cancelled;
    uint64_t min_ns, max_ns;      /* mean nothing while calls is 0 */
    uint64_t in_flight;           /* entered and not finished */
    uint64_t anomalies;           /* calls whose clock stepped back (counted as 0 ns) or was replaced (not counted) */
    uint64_t buckets[CT_BUCKETS]; /* 0 ns, 1 ns, then eight to the octave up to 2^42 ns, then longer */
} ct_sample;

/* Threads: any. Waits for a writer that is in the middle of an update, half a second at most. */
CT_API void ct_counter_sample(const ct_counter *counter, ct_sample *sample);

/* What happened between two samples. Its min_ns and max_ns are bounds: the lower bound of the lowest bucket that grew,
 * the upper bound of the highest, within the lifetime's. CT_OK, CT_ECHANGED (another generation: nothing to subtract).
 * */
CT_API int ct_sample_difference(const ct_sample *now, const ct_sample *before, ct_sample *window);

/* Adds the values of "more" to "sum": those of one key in two segments of a process. Take both "buckets" or neither.
 * The generation of a sum is that of its parts together, so it changes with each. */
CT_API void ct_sample_add(ct_sample *sum, const ct_sample *more);

/* Mean and percentile ("percent" 0 to 100, within one bucket: 9 %) of the calls in a sample. CT_OK, CT_EINVAL,
 * CT_ENOENT (no call). */
CT_API int ct_sample_average_ns(const ct_sample *sample, double *average_ns);
CT_API int ct_sample_percentile_ns(const ct_sample *sample, double percent, double *percentile_ns);

/* The mean active time of the calls in a sample, and 1 where it may be another than the mean, so that readers want to
 * see both. CT_OK, CT_ENOENT (no call, or calls whose active time is not known). */
CT_API int ct_sample_active_average_ns(const ct_sample *sample, double *average_ns);
CT_API int ct_sample_waits(const ct_sample *sample);

/* Keys by index: 0 up to ct_counters_end(). Returns the length of the key, 0 if none is listed there; it is written,
 * with a NUL, only if length < size. */
CT_API uint32_t ct_counters_end(void);
CT_API size_t ct_counters_key(uint32_t index, char *buffer, size_t size);

/* The key of a handle's counter, in the same way. */
CT_API size_t ct_counter_key(const ct_counter *counter, char *buffer, size_t size);

/* "capacity": CODETIMER_MAX_COUNTERS of the environment, a decimal number of at least 1; more than 65,536 is 65,536.
 * Without it, or with anything else in it, it is 16,384. */
typedef struct ct_counters {
    uint64_t listed, capacity;
    uint64_t refused;       /* how often a counter could not be made */
    char last_refused[256]; /* its key, cut to fit */
} ct_counters;

CT_API void ct_counters_info(ct_counters *counters);

/* The table of all listed counters, longest total first; averages, percentiles and extremes over their lifetime. The
 * mean active time has a column where some of the calls waited.
 * Returns as snprintf does; on lack of memory 0. */
CT_API size_t ct_report_counters(const ct_report_options *options, char *buffer, size_t size);

#ifdef __cplusplus
}
#endif
#endif
