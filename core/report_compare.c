/* SPDX-License-Identifier: MIT
 *
 * report_compare.c: the words in which every language prints a comparison: a table with a row for each candidate, and
 * a sentence for each one's ratio to the baseline. A column stands there only if some candidate has a value for it.
 */
#include <string.h>

#include "codetimer.h"
#include "report.h"
#include "table.h"

static const ct_report_options plain = {.size = sizeof(ct_report_options)};

/* Beyond these a number says no more than that. */
static const double factor_most = 1e9, ratio_least = 1e-6;

static const char *dash(const ct_report_options *options) { return options->ascii ? "-" : "\xe2\x80\x94"; }

/* ---- a sentence ---- */

/* Closer to 1 with more decimals, so that 1.004 is not printed as 1.00. */
static void put_factor(ct__text *text, double factor, double beside) {
    if (factor > factor_most) {
        ct__text_put(text, "> 1,000,000,000");
    } else {
        ct__text_put_decimal(text, factor, beside < 1.002 ? 4 : beside < 1.1 ? 3 : beside < 100 ? 2 : 0);
    }
}

/* "1.34× faster than a, 1.31–1.37": the factor is above 1 either way. */
static void put_difference(ct__text *text, const ct_ratio *ratio, const ct_result *baseline,
                           const ct_report_options *options) {
    int faster = ratio->ratio < 1;
    double factor = faster ? 1 / ratio->ratio : ratio->ratio;
    double low = faster ? 1 / ratio->high : ratio->low, high = faster ? 1 / ratio->low : ratio->high;
    put_factor(text, factor, factor);
    ct__text_put(text, options->ascii ? "x" : "\xc3\x97");
    ct__text_put(text, faster ? " faster than " : " slower than ");
    ct__report_name(text, baseline->name, baseline->name_length, options->color);
    ct__text_put(text, ", ");
    put_factor(text, low, factor);
    ct__text_put(text, options->ascii ? "-" : "\xe2\x80\x93");
    put_factor(text, high, factor);
}

static void put_resolved(ct__text *text, const ct_ratio *ratio, const ct_report_options *options) {
    ct__text_put(text, ratio->in_turns ? ": no difference resolved; this machine resolves "
                                       : ": no difference resolved; these results resolve ");
    if (ratio->resolved < 0.0001) {
        ct__text_put(text, "< 0.01 %");
        return;
    }
    ct__text_put(text, options->ascii ? ">= " : "\xe2\x89\xa5 ");
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

/* ---- the table ---- */

/* Which columns there are; the collector's are those of the first candidate that has any. */
typedef struct columns {
    int cycles_kind, gc_time, memory;
    const ct_result *gc;
} columns;

static columns choose_columns(const ct_comparison *comparison) {
    columns chosen = {.cycles_kind = CT_CYCLES_NONE};
    for (size_t i = 0; i < comparison->count; i++) {
        const ct_result *result = comparison->results[i];
        if (chosen.cycles_kind == CT_CYCLES_NONE) chosen.cycles_kind = result->cycles_kind;
        if (chosen.gc == NULL && result->gc_generations > 0) chosen.gc = result;
        chosen.gc_time |= result->gc_time_known;
        chosen.memory |= result->memory.calls > 0;
    }
    return chosen;
}

static void put_titles(ct__table *table, const columns *chosen) {
    ct__table_start(table, "Candidate");
    ct__table_column(table, "Per Call");
    ct__table_column(table, "Ratio");
    if (chosen->cycles_kind != CT_CYCLES_NONE) ct__table_column(table, "Cycles");
    for (size_t i = 0; chosen->gc != NULL && i < chosen->gc->gc_generations; i++)
        ct__table_column(table, chosen->gc->gc_labels[i]);
    if (chosen->gc_time) ct__table_column(table, "GC Time");
    if (!chosen->memory) return;
    ct__table_column(table, "Allocations");
    ct__table_column(table, "Bytes");
}

/* A ratio is below 1 where the candidate is faster. */
static void put_part(ct__text *text, double part) {
    if (part < ratio_least) {
        ct__text_put(text, "< 0.000001");
    } else if (part > factor_most) {
        ct__text_put(text, "> 1,000,000,000");
    } else {
        ct__text_put_decimal(text, part, part < 0.01 ? 6 : part < 100 ? 3 : 0);
    }
}

static void put_ratio(ct__text *text, const ct_comparison *comparison, size_t at, const ct_report_options *options) {
    const ct_ratio *ratio = &comparison->ratios[at];
    if (at == comparison->baseline) {
        ct__text_put(text, "baseline");
        return;
    }
    if (!ratio->known) {
        ct__text_put(text, dash(options));
        return;
    }
    put_part(text, ratio->ratio);
    ct__text_put(text, " (");
    put_part(text, ratio->low);
    ct__text_put(text, options->ascii ? "-" : "\xe2\x80\x93");
    put_part(text, ratio->high);
    ct__text_put(text, ")");
}

static void put_cycles(ct__text *text, const ct_result *result, int kind, const ct_report_options *options) {
    if (result->cycles_kind != kind || result->calls == 0) {
        ct__text_put(text, dash(options));
    } else {
        ct__text_put_decimal(text, (double)result->cycles / (double)result->calls, 1);
    }
}

static void put_memory(ct__text *text, const ct_result *result, uint64_t value, const ct_report_options *options) {
    if (result->memory.calls == 0) {
        ct__text_put(text, dash(options));
    } else {
        ct__text_put_decimal(text, (double)value / (double)result->memory.calls, 2);
    }
}

static ct__text cell(ct__table_row *row, size_t *column) {
    ct__text text;
    ct__text_start(&text, row->cells[(*column)++], CT__CELL_SIZE);
    return text;
}

static void fill_row(ct__table_row *row, const ct_comparison *comparison, size_t at, const columns *chosen,
                     const ct_report_options *options) {
    const ct_result *result = comparison->results[at];
    size_t column = 0;
    ct__text text = cell(row, &column);
    ct__report_per_call(&text, result, options->ascii);
    text = cell(row, &column);
    put_ratio(&text, comparison, at, options);
    if (chosen->cycles_kind != CT_CYCLES_NONE) {
        text = cell(row, &column);
        put_cycles(&text, result, chosen->cycles_kind, options);
    }
    for (size_t i = 0; chosen->gc != NULL && i < chosen->gc->gc_generations; i++) {
        text = cell(row, &column);
        if (i < result->gc_generations) ct__text_put_count(&text, result->gc_collections[i]);
        if (i >= result->gc_generations) ct__text_put(&text, dash(options));
    }
    if (chosen->gc_time) {
        text = cell(row, &column);
        if (result->gc_time_known) ct__text_put_duration(&text, (double)result->gc_time.total_ns, options->ascii);
        if (!result->gc_time_known) ct__text_put(&text, dash(options));
    }
    if (!chosen->memory) return;
    text = cell(row, &column);
    put_memory(&text, result, result->memory.allocations, options);
    text = cell(row, &column);
    put_memory(&text, result, result->memory.allocated_bytes, options);
}

/* Without memory for it there is no table; the sentences below say what counts. */
static void put_table(ct__text *text, const ct_comparison *comparison, const columns *chosen,
                      const ct_report_options *options) {
    ct__table table;
    size_t taken = 0;
    put_titles(&table, chosen);
    for (size_t i = 0; i < comparison->count; i++) {
        const ct_result *result = comparison->results[i];
        ct__table_row *row = ct__table_add(&table, result->name, result->name_length);
        if (row == NULL) break;
        fill_row(row, comparison, i, chosen, options);
        taken++;
    }
    if (taken == comparison->count) ct__table_put(text, &table, options->color);
    ct__table_free(&table);
}

/* ---- below the table ---- */

static void put_remarks(ct__text *text, const ct_comparison *comparison, const columns *chosen) {
    const ct_result *first = comparison->results[0];
    if (chosen->cycles_kind != CT_CYCLES_NONE) {
        ct__text_put(text, "Cycles: CPU cycles per call (");
        ct__text_put(text, ct_cycles_kind_name(chosen->cycles_kind));
        ct__text_put(text, ")\n");
    } else {
        ct__text_put(text, "Cycles: unavailable (");
        ct__text_put(text, first->cycles_reason);
        ct__text_put(text, ")\n");
    }
    if (chosen->memory) ct__text_put(text, "Allocations, Bytes: per call, in a pass of their own\n");
    if (!chosen->memory && first->memory.reason != NULL) {
        ct__text_put(text, "Memory: unavailable (");
        ct__text_put(text, first->memory.reason);
        ct__text_put(text, ")\n");
    }
}

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
    ct__text_put(text, "\n");
    if (!twin->known) return;
    const ct_result *baseline = comparison->results[comparison->baseline];
    ct__report_name(text, baseline->name, baseline->name_length, options->color);
    ct__text_put(text, " against itself: ");
    put_part(text, twin->ratio);
    ct__text_put(text, " (");
    put_part(text, twin->low);
    ct__text_put(text, options->ascii ? "-" : "\xe2\x80\x93");
    put_part(text, twin->high);
    ct__text_put(text, ")\n");
}

static void put_end(ct__text *text, const ct_comparison *comparison) {
    if (comparison->interrupted == NULL) return;
    ct__text_put(text, "Ended early after ");
    ct__text_put_count(text, comparison->rounds);
    ct__text_put(text, comparison->rounds == 1 ? " round (" : " rounds (");
    ct__text_put_escaped(text, comparison->interrupted, strlen(comparison->interrupted));
    ct__text_put(text, ")\n");
}

static void put_note(ct__text *text, const char *note) {
    ct__text_put_escaped(text, note, strlen(note));
    ct__text_put(text, "\n");
}

static void put_notes(ct__text *text, const ct_comparison *comparison, const ct_report_options *options) {
    for (size_t i = 0; i < comparison->notes_count; i++) {
        ct__text_put(text, "Note: ");
        put_note(text, comparison->notes[i]);
    }
    for (size_t i = 0; i < comparison->count; i++) {
        const ct_result *result = comparison->results[i];
        for (size_t n = 0; n < result->notes_count; n++) {
            ct__text_put(text, "Note: ");
            ct__report_name(text, result->name, result->name_length, options->color);
            ct__text_put(text, ": ");
            put_note(text, result->notes[n]);
        }
    }
}

static void put_verdicts(ct__text *text, const ct_comparison *comparison, const char *between,
                         const ct_report_options *options) {
    const ct_result *baseline = comparison->results[comparison->baseline];
    int first = 1;
    for (size_t i = 0; i < comparison->count; i++) {
        if (i == comparison->baseline) continue;
        if (!first) ct__text_put(text, between);
        put_verdict(text, &comparison->ratios[i], comparison->results[i], baseline, options);
        first = 0;
    }
}

size_t ct_comparison_format(const ct_comparison *comparison, const ct_report_options *options, char *buffer,
                            size_t size) {
    ct__text text;
    columns chosen = choose_columns(comparison);
    ct__text_start(&text, buffer, size);
    if (options == NULL) options = &plain;
    if (options->line) {
        put_verdicts(&text, comparison, "; ", options);
        return text.length;
    }
    put_table(&text, comparison, &chosen, options);
    put_remarks(&text, comparison, &chosen);
    ct__text_put(&text, "\n");
    put_verdicts(&text, comparison, "\n", options);
    ct__text_put(&text, "\n");
    if (options->verbose) put_rounds(&text, comparison, options);
    put_end(&text, comparison);
    put_notes(&text, comparison, options);
    ct__text_put(&text, "\n");
    return text.length;
}
