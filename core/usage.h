/* SPDX-License-Identifier: MIT
 *
 * usage.h: floor 1, what the system did to the calling thread between two moments.
 */
#ifndef CT_USAGE_H
#define CT_USAGE_H

#include "codetimer.h"
#include "platform/platform.h"

typedef struct ct__usage {
    ct__os_usage os;
    int parts;     /* of a sum: how many differences are in it */
    int went_down; /* of a sum: some count did */
} ct__usage;

/* Migrations cost a file to read: only "with_migrations". */
void ct__usage_read(ct__usage *usage, int with_migrations);

/* Adds what happened between two readings. What is not known in one part is not known of the sum; neither is anything
 * that went down. */
void ct__usage_add(ct__usage *sum, const ct__usage *start, const ct__usage *end);

void ct__usage_tell(const ct__usage *sum, ct_usage *usage);

#endif
