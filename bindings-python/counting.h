/* SPDX-License-Identifier: MIT
 *
 * counting.h: how the binding gets at the counters of the core.
 *
 * An interpreter is one writer: its global lock serialises all that it measures. The writer is opened with the first
 * counter, because its script name is that of __main__, which is not known when the module is imported.
 */
#ifndef CTPY_COUNTING_H
#define CTPY_COUNTING_H

#include "common.h"

/* ---- counting.c ---- */

/* Opens the counter of a member through the interpreter's writer and logs that it did. "category" and "help" may be
 * NULL, all three are str. Returns 0; 1 where there is no room or memory for it (logged once: the caller goes on
 * unmeasured, *counter is NULL); -1 with TypeError or ValueError where a name is wrong. */
int ctpy_open_counter(ctpy_state *state, PyObject *category, PyObject *member, PyObject *help, ct_counter **counter);

/* The same in two steps, for who is in the middle of the program, where no handler of a log may run: opens the counter
 * of "member" and returns what the core says (with an exception perhaps); tells what it said. */
int ctpy_open_untold(ctpy_state *state, PyObject *member, ct_counter **counter);
void ctpy_tell_counter(ctpy_state *state, int status, const ct_counter *counter);

/* After a failure: if it was a lack of memory, clears the exception, logs once that "what" is not measured, and returns
 * 0: the caller goes on unmeasured. Otherwise the exception stays: -1. */
int ctpy_go_unmeasured(ctpy_state *state, PyObject *what);

/* Accepts NULL. */
void ctpy_close_counter(ct_counter *counter);

/* The interpreter's writer, opened if need be; NULL with an exception. */
ct_writer *ctpy_get_writer(ctpy_state *state);

/* The name that __main__ goes by: that of its __spec__ without .__main__, else the stem of its __file__, else
 * "otherwise". A new str; NULL with an exception. */
PyObject *ctpy_script_name(const char *otherwise);

/* "category/member", a new str. */
PyObject *ctpy_counter_key(const ct_counter *counter);

/* How a call ended that raised "raised" (a type or, better, an instance): CT_FAILED, or CT_CANCELLED for GeneratorExit,
 * asyncio.CancelledError, trio.Cancelled, and groups of nothing else. An exception that is set stays set. */
int ctpy_judge(PyObject *raised);

/* The same of the exception that is set. */
int ctpy_judge_raised(void);

/* A key as the core has it, as bytes; NULL with TypeError, or with KeyError where no counter can have it. */
PyObject *ctpy_encode_key(PyObject *key);

/* ---- trace.c: what the logger "codetimer" is told. Nothing here fails or leaves an exception ---- */

enum { CTPY_DEBUG = 10, CTPY_INFO = 20, CTPY_WARNING = 30 };

/* "format" has one %s, for "key". Below CTPY_WARNING nothing is imported: who has not imported logging does not listen.
 * Returns whether the logger was told. */
int ctpy_trace(ctpy_state *state, int level, const char *format, PyObject *key);

/* What a measured call does in place of ct_leave while state->trace_increments is set: also logs by how much the
 * counter grew. An exception that is set stays set. */
void ctpy_leave_traced(ctpy_state *state, ct_counter *counter, const ct_token *token, int outcome);
void ctpy_leave_active_traced(ctpy_state *state, ct_counter *counter, const ct_token *token, const ct_active *active,
                              int outcome);
void ctpy_record_traced(ctpy_state *state, ct_counter *counter, uint64_t duration_ns, int outcome);

/* trace_increments() */
PyObject *ctpy_trace_increments(PyObject *module, PyObject *on);

/* ---- sample.c: the type codetimer.Sample, and the values that a Counter has too ---- */

#define CTPY_SAMPLE_FIELDS(X)                                                                                          \
    X(listed, "Whether the counter is there (bool): not removed.")                                                     \
    X(enabled, "Whether it counts (bool).")                                                                            \
    X(generation, "Grows with each reset and remove (int).")                                                           \
    X(calls, "Finished calls (int).")                                                                                  \
    X(errors, "Calls that an exception ended (int).")                                                                  \
    X(cancelled, "Calls that were cancelled (int).")                                                                   \
    X(total_ns, "Nanoseconds in all calls (int).")                                                                     \
    X(active_ns, "Nanoseconds of these in which the calls ran: not while a coroutine or generator was suspended "      \
                 "(int); None where that is not known, see active_reason.")                                            \
    X(active_unknown, "Calls of which it is not known for how long they ran (int).")                                   \
    X(active_reason, "Why there is no active_ns (str); None where there is.")                                          \
    X(average_ns, "Nanoseconds per call (float); None without calls.")                                                 \
    X(active_average_ns, "Nanoseconds that a call ran (float); None without calls and where that is not known.")       \
    X(min_ns, "The shortest call in nanoseconds (int); None without calls.")                                           \
    X(max_ns, "The longest call in nanoseconds (int); None without calls.")                                            \
    X(in_flight, "Calls that have begun and not ended (int).")                                                         \
    X(anomalies, "Calls during which the clock stepped back (counted as 0 ns) or was replaced (not counted) (int).")   \
    X(unclean, "Whether one call may be half in, as its interpreter ended in the middle (bool).")

#define CTPY_DECLARE_FIELD(field, doc) PyObject *ctpy_sample_##field(const ct_sample *sample);
CTPY_SAMPLE_FIELDS(CTPY_DECLARE_FIELD)

/* percentile(q): float, or None without calls; NULL with TypeError or ValueError. */
PyObject *ctpy_sample_percentile(const ct_sample *sample, PyObject *q);

extern PyType_Spec ctpy_sample_spec;
PyObject *ctpy_sample_new(ctpy_state *state, PyObject *key, const ct_sample *sample);
const ct_sample *ctpy_sample_values(PyObject *sample);

/* The parts of a key: new str. */
PyObject *ctpy_key_category(PyObject *key);
PyObject *ctpy_key_member(PyObject *key);

/* ---- counter.c: the type codetimer.Counter ---- */

extern PyType_Spec ctpy_counter_spec;

/* A new Counter that owns the handle (also on failure). */
PyObject *ctpy_counter_new(ctpy_state *state, ct_counter *counter);

ct_counter *ctpy_counter_handle(PyObject *counter);

/* ---- counters.c: the type of codetimer.counters, and report() ---- */

extern PyType_Spec ctpy_counters_spec;

/* Adds the one object of that type. */
int ctpy_counters_add(PyObject *module, ctpy_state *state);
PyObject *ctpy_report(PyObject *module, PyObject *args, PyObject *kwargs);

/* ---- timer.c: the type codetimer.timer ---- */

extern PyType_Spec ctpy_timer_spec;

#endif
