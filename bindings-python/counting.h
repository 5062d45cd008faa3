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

/* Opens the counter of a member through the interpreter's writer and logs that it did. "category" and "help" may be NULL,
 * all three are str. Returns 0; 1 where the core refused it for want of room or memory (logged once: the caller goes on
 * unmeasured, *counter is NULL); -1 with TypeError or ValueError where a name is wrong. */
int ctpy_open_counter(ctpy_state *state, PyObject *category, PyObject *member, PyObject *help, ct_counter **counter);

/* Accepts NULL. */
void ctpy_close_counter(ct_counter *counter);

#endif
