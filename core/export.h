/* SPDX-License-Identifier: MIT
 *
 * export.h: floor 3, what the formats of files share.
 */
#ifndef CT_EXPORT_H
#define CT_EXPORT_H

#include "codetimer.h"
#include "format.h"

/* What goes into a file: results, and where they were compared the comparison, else NULL. */
typedef struct ct__export {
    const ct_result *const *results;
    size_t count;
    const ct_comparison *comparison;
    const ct_export_options *options;
} ct__export;

void ct__export_json(ct__text *text, const ct__export *what);
void ct__export_csv(ct__text *text, const ct__export *what);
void ct__export_markdown(ct__text *text, const ct__export *what);
void ct__export_pyperf(ct__text *text, const ct__export *what);

#endif
