/* SPDX-License-Identifier: MIT
 *
 * report_compare.c: the words in which every language prints a comparison: a table with a row for each candidate, and
 * a sentence for each one's ratio to the baseline.
 */
#include <string.h>

#include "codetimer.h"
#include "report.h"
#include "report_table.h"
#include "table.h"

static const ct_report_options plain = {.size = sizeof(ct_report_options)};

/* Beyond this a factor says no more than that. */
static const double factor_most = 1e9;

/* ---- a sentence ---- */

static void put_factor(ct__text *text, double factor, int decimals) {
    if (factor > factor_most) {
        ct__text_put(text, "> 1,000,000,000");
    } else {
        ct__text_put_decimal(text, factor, decimals);
    }
}

/* Close to 1 there are more, and still more where the interval is narrow. */
static int decimals_of(double factor, double low, double high) {
    if (factor >= 100) return 0;
    if (factor >= 1.1) return 2;
    return high - low < 0.002 ? 4 : 3;
}

/* "1.34× faster than a, 1.31–1.37": the factor is above 1 either way. */
static void put_difference(ct__text *text, const ct_ratio *ratio, const ct_result *baseline,
                           const ct_report_options *options) {
    int faster = ratio->ratio < 1;
    double factor = faster ? 1 / ratio->ratio : ratio->ratio;
    double low = faster ? 1 / ratio->high : ratio->low, high = faster ? 1 / ratio->low : ratio->high;
    int decimals = decimals_of(factor, low, high);
    put_factor(text, factor, decimals);
    ct__text_put(text, options->ascii ? "x" : "\xc3\x97");
    ct__text_put(text, faster ? " faster than " : " slower than ");
    ct__report_name(text, baseline->name, baseline->name_length, options->color);
    ct__text_put(text, ", ");
    put_factor(text, low, decimals);
    ct__text_put(text, options->ascii ? "-" : "\xe2\x80\x93");
    put_factor(text, high, decimals);
}

static void put_resolved(ct__text *text, const ct_ratio *ratio, const ct_report_options *options) {
    ct__text_put(text, ratio->in_turns ? ": no difference resolved; this machine resolves "
                                       : ": no difference resolved; these results resolve ");
    if (ratio->resolved < 0.0001) {
        ct__text_put(text, "< 0.01 %");
        return;
    }
    if (ratio->resolved <= CT__PERCENT_MAX) ct__text_put(text, options->ascii ? ">= " : "\xe2\x89\xa5 ");
    ct__text_put_percent(text, ratio->resolved, ratio->resolved < 0.001 ? 2 : 1);
}

/* Of the results only the names are looked at. */
static void put_verdict(ct__text *text, const ct_ratio *ratio, const ct_result *candidate, const ct_result *baseline,
                        const ct_report_options *options) {
    ct__report_name(text, candidate->name, candidate->name_length, options->color);
    if (ratio->known && ratio->different) {
        ct__text_put(text, " is ");
        put_difference(text, ratio, baseline, options);
    } else {
        ct__text_put(text, " and ");
        ct__report_name(text, baseline->name, baseline->name_length, options->color);
    }
    if (!ratio->known) {
        ct__text_put(text, ": not compared (");
        ct__text_put(text, ratio->reason != NULL ? ratio->reason : "no reason given");
        ct__text_put(text, ")");
        return;
    }
    if (!ratio->different) put_resolved(text, ratio, options);
    if (!ratio->in_turns) ct__text_put(text, " (not measured in turns)");
}

size_t ct_ratio_verdict(const ct_ratio *ratio, const char *name, const char *baseline, const ct_report_options *options,
                        char *buffer, size_t size) {
    const ct_result candidate = {.name = name, .name_length = strlen(name)};
    const ct_result other = {.name = baseline, .name_length = strlen(baseline)};
    ct__text text;
    ct__text_start(&text, buffer, size);
    put_verdict(&text, ratio, &candidate, &other, options != NULL ? options : &plain);
    return text.length;
}

/* ---- below the table ---- */

static void put_rounds(ct__text *text, const ct_comparison *comparison, const ct_report_options *options) {
    const ct_ratio *twin = &comparison->twin;
    ct__text_put(text, "Rounds: ");
    ct__text_put_count(text, comparison->rounds);
    ct__text_put(text, " in ");
    ct__text_put_duration(text, (double)comparison->elapsed_ns, options->ascii);
    if (comparison->rounds_tied > 0) {
        ct__text_put(text, ", of ");
        ct__text_put_count(text, comparison->rounds_tied);
        ct__text_put(text, " the clock saw nothing");
    }
    if (comparison->rounds_disturbed > 0) {
        ct__text_put(text, ", in ");
        ct__text_put_count(text, comparison->rounds_disturbed);
        ct__text_put(text, " other threads had the CPU");
    }
    ct__text_put(text, "\n");
    if (!twin->known) return;
    const ct_result *baseline = comparison->results[comparison->baseline];
    ct__report_name(text, baseline->name, baseline->name_length, options->color);
    ct__text_put(text, " against itself: ");
    ct__report_ratio(text, twin, options->ascii);
    ct__text_put(text, "\n");
}

static void put_end(ct__text *text, const ct_comparison *comparison) {
    if (comparison->interrupted == NULL) return;
    ct__text_put(text, "Ended early after ");
    ct__text_put_count(text, comparison->rounds);
    ct__text_put(text, comparison->rounds == 1 ? " round (" : " rounds (");
    ct__text_put_escaped(text, comparison->interrupted, strlen(comparison->interrupted));
    ct__text_put(text, ")\n");
}

static void put_notes(ct__text *text, const char *const *notes, size_t count, const ct_result *of,
                      const ct_report_options *options) {
    for (size_t i = 0; i < count; i++) {
        ct__text_put(text, "Note: ");
        if (of != NULL) {
            ct__report_name(text, of->name, of->name_length, options->color);
            ct__text_put(text, ": ");
        }
        ct__text_put_escaped(text, notes[i], strlen(notes[i]));
        ct__text_put(text, "\n");
    }
}

static void put_verdicts(ct__text *text, const ct_comparison *comparison, const char *between, const char *end,
                         const ct_report_options *options) {
    const ct_result *baseline = comparison->results[comparison->baseline];
    const char *before = "";
    for (size_t i = 0; i < comparison->count; i++) {
        if (i == comparison->baseline) continue;
        ct__text_put(text, before);
        put_verdict(text, &comparison->ratios[i], comparison->results[i], baseline, options);
        before = between;
    }
    ct__text_put(text, end);
}

void ct__report_below(ct__text *text, const ct_result *const *results, size_t count, const ct_comparison *comparison,
                      const ct_report_options *options) {
    if (comparison != NULL) {
        put_verdicts(text, comparison, "\n", "\n", options);
        if (options->verbose) put_rounds(text, comparison, options);
        put_end(text, comparison);
        put_notes(text, comparison->notes, comparison->notes_count, NULL, options);
    }
    for (size_t i = 0; i < count; i++) put_notes(text, results[i]->notes, results[i]->notes_count, results[i], options);
    ct__report_legend(text, results, count);
}

/* Without memory for it there is no table; the sentences below it say what counts. */
static void put_table(ct__text *text, const ct_comparison *comparison, const ct_report_options *options) {
    ct__table table;
    if (!ct__report_table(&table, comparison->results, comparison->count, comparison, options)) return;
    ct__table_put(text, &table, options->color);
    ct__table_free(&table);
}

size_t ct_comparison_format(const ct_comparison *comparison, const ct_report_options *options, char *buffer,
                            size_t size) {
    ct__text text;
    ct__text_start(&text, buffer, size);
    if (options == NULL) options = &plain;
    if (options->line) {
        put_verdicts(&text, comparison, "; ", "", options);
        return text.length;
    }
    put_table(&text, comparison, options);
    ct__text_put(&text, "\n");
    ct__report_below(&text, comparison->results, comparison->count, comparison, options);
    ct__text_put(&text, "\n");
    return text.length;
}
