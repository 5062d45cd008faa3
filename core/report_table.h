/* SPDX-License-Identifier: MIT
 *
 * report_table.h: floor 3, a table of results.
 */
#ifndef CT_REPORT_TABLE_H
#define CT_REPORT_TABLE_H

#include "codetimer.h"
#include "format.h"
#include "table.h"

/* Starts "table" and fills it with a row for each result; of a comparison with their ratios too, else NULL. Returns 0
 * without memory; then there is no table to free. */
int ct__report_table(ct__table *table, const ct_result *const *results, size_t count, const ct_comparison *comparison,
                     const ct_report_options *options);

/* What the columns of that table mean, and why there are no more; a line each. */
void ct__report_legend(ct__text *text, const ct_result *const *results, size_t count);

/* "0.746 (0.731–0.763)" of a ratio that is known. */
void ct__report_ratio(ct__text *text, const ct_ratio *ratio, int ascii);

#endif
