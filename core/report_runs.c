/* SPDX-License-Identifier: MIT
 *
 * report_runs.c: the words for several runs of one thing, and for one that is under way.
 */
#include <stdlib.h>

#include "report.h"
#include "stats.h"

static const ct_report_options plain = {.size = sizeof(ct_report_options)};

/* ---- several ---- */

static void put_runs(ct__text *text, double *per_call_ns, size_t count, const ct_report_options *options) {
    ct__stats_sort(per_call_ns, count);
    ct__text_put_count(text, count);
    ct__text_put(text, " runs: best ");
    ct__report_duration(text, per_call_ns[0], options);
    ct__text_put(text, ", median ");
    ct__report_duration(text, ct__stats_median(per_call_ns, count), options);
    ct__text_put(text, ", worst ");
    ct__report_duration(text, per_call_ns[count - 1], options);
    ct__text_put(text, " per call\n\n");
}

size_t ct_runs_format(const ct_result *const *results, size_t count, const ct_report_options *options, char *buffer,
                      size_t size) {
    ct__text text;
    size_t known = 0;
    double *per_call_ns = malloc((count > 0 ? count : 1) * sizeof *per_call_ns);
    ct__text_start(&text, buffer, size);
    for (size_t i = 0; i < count && per_call_ns != NULL; i++)
        if (results[i]->per_call_known) per_call_ns[known++] = results[i]->per_call_ns;
    if (known > 1) put_runs(&text, per_call_ns, known, options != NULL ? options : &plain);
    free(per_call_ns);
    return text.length;
}

/* ---- under way ---- */

size_t ct_progress_format(double part, uint64_t elapsed_ns, double per_call_ns, const ct_report_options *options,
                          char *buffer, size_t size) {
    ct__text text;
    ct__text_start(&text, buffer, size);
    if (options == NULL) options = &plain;
    ct__text_put_percent(&text, part, 0);
    if (per_call_ns > 0) {
        ct__text_put(&text, ", ");
        ct__report_duration(&text, per_call_ns, options);
        ct__text_put(&text, " per call");
    }
    if (part <= 0) return text.length;
    ct__text_put(&text, ", ");
    ct__text_put_decimal(&text, (double)elapsed_ns * (1 - part) / part / 1e9, 0);
    ct__text_put(&text, " s left");
    return text.length;
}
