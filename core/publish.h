/* SPDX-License-Identifier: MIT
 *
 * publish.h: floor 2, making the memory of the counters a file that others can read.
 *
 * All functions need the registry's lock.
 */
#ifndef CT_PUBLISH_H
#define CT_PUBLISH_H

#include <stdint.h>

#include "segment.h"

/* Called with the first measured call, before any slot is handed out: publishes, unless it was tried already. */
void ct__publish_first(void);

/* The members area, made if need be; NULL without memory. */
ct__members_area *ct__publish_members(void);

/* Housekeeping: heartbeat; a file that a cleaner took away is replaced if nobody can be writing meanwhile. "writer":
 * called by one, between two of its calls. */
void ct__publish_tend(int writer);

/* Counts for readers. */
void ct__publish_counts(uint64_t listed, uint64_t refused, const char *last_refused);

#endif
