/* SPDX-License-Identifier: MIT
 *
 * export.c: the formats of files, by name.
 */
#include "export.h"

#include <string.h>

/* ---- by name ---- */

static const char *const names[] = {"json", "csv", "markdown", "pyperf"}; /* CT_EXPORT_* */

int ct_export_format(const char *name) {
    for (size_t i = 0; name != NULL && i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0) return (int)i;
    return CT_EINVAL;
}

static size_t export(const ct__export *what, int format, char *buffer, size_t size) {
    ct__text text;
    ct__text_start(&text, buffer, size);
    switch (format) {
    case CT_EXPORT_JSON:
        ct__export_json(&text, what);
        break;
    case CT_EXPORT_CSV:
        ct__export_csv(&text, what);
        break;
    case CT_EXPORT_MARKDOWN:
        ct__export_markdown(&text, what);
        break;
    case CT_EXPORT_PYPERF:
        ct__export_pyperf(&text, what);
        break;
    default:
        break;
    }
    return text.length;
}

static const ct_export_options plain = {.size = sizeof(ct_export_options)};

size_t ct_export_results(const ct_result *const *results, size_t count, int format, const ct_export_options *options,
                         char *buffer, size_t size) {
    const ct__export what = {results, count, NULL, options != NULL ? options : &plain};
    return export(&what, format, buffer, size);
}

size_t ct_export_comparison(const ct_comparison *comparison, int format, const ct_export_options *options, char *buffer,
                            size_t size) {
    const ct__export what = {comparison->results, comparison->count, comparison, options != NULL ? options : &plain};
    return export(&what, format, buffer, size);
}
