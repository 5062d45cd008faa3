/* SPDX-License-Identifier: MIT
 *
 * cycles.h: floor 1, what the rest of the core knows of thread cycles beyond the public header.
 */
#ifndef CT_CYCLES_H
#define CT_CYCLES_H

#include "codetimer.h"

/* What the thread spent between two of its readings: their difference, with kind, source and reason. Kind
 * CT_CYCLES_NONE with a reason where they cannot be subtracted: one is missing, they are of different kinds, the
 * counter was replaced in between (fork, a program that closes all descriptors), or the later is less than the earlier.
 * "between" is neither of the two. */
void ct__cycles_between(const ct_cycles *start, const ct_cycles *end, ct_cycles *between);

#endif
