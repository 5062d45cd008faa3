/* SPDX-License-Identifier: MIT
 *
 * codetimer_export.h: the part of the manual about files of results. Included by codetimer.h; include that.
 *
 * The text is made here, so that all languages write the same bytes; writing it into a file is the host's.
 */
#ifndef CODETIMER_EXPORT_H
#define CODETIMER_EXPORT_H

#ifdef __cplusplus
extern "C" {
#endif

/* JSON: all that is known, by a versioned schema ("codetimer": 1) described in the README; what is not known is null
 * with its reason beside it. CSV: a line of titles and a line for each result. MARKDOWN: a table. PYPERF: the JSON of
 * pyperf's benchmark suites, readable by its show, compare_to and hist. */
enum { CT_EXPORT_JSON, CT_EXPORT_CSV, CT_EXPORT_MARKDOWN, CT_EXPORT_PYPERF };

/* "json", "csv", "markdown" or "pyperf": the format, else CT_EINVAL. */
CT_API int ct_export_format(const char *name);

typedef struct ct_export_options {
    size_t size;         /* sizeof(ct_export_options) */
    const char *host;    /* "Python 3.12.1", "Lua 5.4"; NULL: C */
    const char *machine; /* "x86_64 Linux 6.1"; NULL: not told */
    const char *date;    /* of now, ISO 8601; NULL: not told */
} ct_export_options;

/* Results, and of a comparison its ratios too. Return as snprintf does. "options" may be NULL. Names that are not valid
 * UTF-8 are escaped. */
CT_API size_t ct_export_results(const ct_result *const *results, size_t count, int format,
                                const ct_export_options *options, char *buffer, size_t size);
CT_API size_t ct_export_comparison(const ct_comparison *comparison, int format, const ct_export_options *options,
                                   char *buffer, size_t size);

#ifdef __cplusplus
}
#endif
#endif
