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

/* A time per call, in the unit that is wanted. */
void ct__report_duration(ct__text *text, double ns, const ct_report_options *options);

/* "123.457 ns ± 1.2 %", or a dash. */
void ct__report_per_call(ct__text *text, const ct_result *result, const ct_report_options *options);

/* "100", "37 of 100 (ValueError)" */
void ct__report_calls(ct__text *text, const ct_result *result);

/* What stands below a table of results, a line each: of a comparison the verdicts, notes, and what the columns mean. */
void ct__report_below(ct__text *text, const ct_result *const *results, size_t count, const ct_comparison *comparison,
                      const ct_report_options *options);

/* A name, escaped, in yellow where "color". */
void ct__report_name(ct__text *text, const char *name, size_t length, int color);

#endif
