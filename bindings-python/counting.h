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

/* Opens the counter of a member through the interpreter's writer and logs that it did. "category" and "help" may be NULL,
 * all three are str. Returns 0; 1 where the core refused it for want of room or memory (logged once: the caller goes on
 * unmeasured, *counter is NULL); -1 with TypeError or ValueError where a name is wrong. */
int ctpy_open_counter(ctpy_state *state, PyObject *category, PyObject *member, PyObject *help, ct_counter **counter);

/* Accepts NULL. */
void ctpy_close_counter(ct_counter *counter);

/* The interpreter's writer, opened if need be; NULL with an exception. */
ct_writer *ctpy_get_writer(ctpy_state *state);

/* The name that __main__ goes by: that of its __spec__ without .__main__, else the stem of its __file__, else
 * "otherwise". A new str. */
PyObject *ctpy_script_name(const char *otherwise);

/* "category/member", a new str. */
PyObject *ctpy_counter_key(const ct_counter *counter);

/* ---- trace.c: what the logger "codetimer" is told. Nothing here fails or leaves an exception ---- */

enum { CTPY_DEBUG = 10, CTPY_INFO = 20, CTPY_WARNING = 30 };

/* "format" has one %s, for "key". Below CTPY_WARNING nothing is imported: who has not imported logging does not listen. */
void ctpy_trace(ctpy_state *state, int level, const char *format, PyObject *key);

/* What a measured call does in place of ct_leave while state->trace_increments is set: also logs by how much the counter
 * grew. An exception that is set stays set. */
void ctpy_leave_traced(ctpy_state *state, ct_counter *counter, const ct_token *token, int outcome);

#endif
