/* SPDX-License-Identifier: MIT
 *
 * report.h: floor 3, what the files that make reports share.
 */
#ifndef CT_REPORT_H
#define CT_REPORT_H

#include "codetimer.h"
#include "format.h"

/* "    Label:         ", the values of a block standing below each other. */
void ct__report_label(ct__text *text, const char *label);

/* The lines that only some runs have: GC time and memory, where they were asked for; and if "verbose" the rest. */
void ct__report_details(ct__text *text, const ct_result *result, const ct_report_options *options);

#endif
