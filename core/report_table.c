/* SPDX-License-Identifier: MIT
 *
 * report_table.c: results below each other, with a row for each. A column stands there only if some result has a value
 * for it; a result without shows a dash in it.
 */
#include "report_table.h"

#include "codetimer.h"
#include "report.h"

/* Beyond these a ratio says no more than that. */
static const double ratio_most = 1e9, ratio_least = 1e-6;

static const char *dash(const ct_report_options *options) { return options->ascii ? "-" : "\xe2\x80\x94"; }

/* ---- which columns there are ---- */

typedef struct columns {
    const ct_comparison *comparison;
    const ct_report_options *options;
    int cycles_kind;     /* of the first result that has any */
    const ct_result *gc; /* its generations are the columns; NULL: there are none */
    int gc_time, memory;
} columns;

static columns choose_columns(const ct_result *const *results, size_t count) {
    columns chosen = {.cycles_kind = CT_CYCLES_NONE};
    for (size_t i = 0; i < count; i++) {
        const ct_result *result = results[i];
        if (chosen.cycles_kind == CT_CYCLES_NONE) chosen.cycles_kind = result->cycles_kind;
        if (chosen.gc == NULL && result->gc_generations > 0) chosen.gc = result;
        chosen.gc_time |= result->gc_time_known;
        chosen.memory |= result->memory.calls > 0;
    }
    return chosen;
}

static void add_titles(ct__table *table, const columns *chosen) {
    ct__table_start(table, chosen->comparison != NULL ? "Candidate" : "Name");
    if (chosen->comparison == NULL) ct__table_column(table, "Calls");
    ct__table_column(table, "Per Call");
    if (chosen->comparison != NULL) ct__table_column(table, "Ratio");
    if (chosen->cycles_kind != CT_CYCLES_NONE) ct__table_column(table, "Cycles");
    for (size_t i = 0; chosen->gc != NULL && i < chosen->gc->gc_generations; i++)
        ct__table_column(table, chosen->gc->gc_labels[i]);
    if (chosen->gc_time) ct__table_column(table, "GC Time");
    if (!chosen->memory) return;
    ct__table_column(table, "Allocations");
    ct__table_column(table, "Bytes");
}

/* ---- cells ---- */

static void put_part(ct__text *text, double part) {
    if (part < ratio_least) {
        ct__text_put(text, "< 0.000001");
    } else if (part > ratio_most) {
        ct__text_put(text, "> 1,000,000,000");
    } else {
        ct__text_put_decimal(text, part, part < 0.01 ? 6 : part < 100 ? 3 : 0);
    }
}

void ct__report_ratio(ct__text *text, const ct_ratio *ratio, int ascii) {
    put_part(text, ratio->ratio);
    ct__text_put(text, " (");
    put_part(text, ratio->low);
    ct__text_put(text, ascii ? "-" : "\xe2\x80\x93");
    put_part(text, ratio->high);
    ct__text_put(text, ")");
}

static void put_ratio(ct__text *text, const columns *chosen, size_t at) {
    const ct_ratio *ratio = &chosen->comparison->ratios[at];
    if (at == chosen->comparison->baseline) {
        ct__text_put(text, "baseline");
    } else if (ratio->known) {
        ct__report_ratio(text, ratio, chosen->options->ascii);
    } else {
        ct__text_put(text, dash(chosen->options));
    }
}

/* Of "calls" calls, a value for each; without calls there is none. */
static void put_each(ct__text *text, const columns *chosen, uint64_t value, uint64_t calls) {
    if (calls == 0) {
        ct__text_put(text, dash(chosen->options));
    } else {
        ct__text_put_decimal(text, (double)value / (double)calls, 2);
    }
}

/* A text that fills the next cell. */
static ct__text cell(ct__table_row *row, size_t *column) {
    ct__text text;
    ct__text_start(&text, row->cells[(*column)++], CT__CELL_SIZE);
    return text;
}

static size_t fill_gc(ct__table_row *row, const columns *chosen, const ct_result *result, size_t column) {
    for (size_t i = 0; chosen->gc != NULL && i < chosen->gc->gc_generations; i++) {
        ct__text text = cell(row, &column);
        if (i < result->gc_generations) {
            ct__text_put_count(&text, result->gc_collections[i]);
        } else {
            ct__text_put(&text, dash(chosen->options));
        }
    }
    if (!chosen->gc_time) return column;
    ct__text text = cell(row, &column);
    if (result->gc_time_known) {
        ct__text_put_duration(&text, (double)result->gc_time.total_ns, chosen->options->ascii);
    } else {
        ct__text_put(&text, dash(chosen->options));
    }
    return column;
}

static void fill_row(ct__table_row *row, const columns *chosen, const ct_result *result, size_t at) {
    size_t column = 0;
    ct__text text = cell(row, &column);
    if (chosen->comparison == NULL) {
        ct__report_calls(&text, result);
        text = cell(row, &column);
    }
    ct__report_per_call(&text, result, chosen->options);
    if (chosen->comparison != NULL) {
        text = cell(row, &column);
        put_ratio(&text, chosen, at);
    }
    if (chosen->cycles_kind != CT_CYCLES_NONE) {
        text = cell(row, &column);
        put_each(&text, chosen, result->cycles, result->cycles_kind == chosen->cycles_kind ? result->calls : 0);
    }
    column = fill_gc(row, chosen, result, column);
    if (!chosen->memory) return;
    text = cell(row, &column);
    put_each(&text, chosen, result->memory.allocations, result->memory.calls);
    text = cell(row, &column);
    put_each(&text, chosen, result->memory.allocated_bytes, result->memory.calls);
}

/* ---- as a whole ---- */

int ct__report_table(ct__table *table, const ct_result *const *results, size_t count, const ct_comparison *comparison,
                     const ct_report_options *options) {
    columns chosen = choose_columns(results, count);
    chosen.comparison = comparison;
    chosen.options = options;
    add_titles(table, &chosen);
    for (size_t i = 0; i < count; i++) {
        ct__table_row *row = ct__table_add(table, results[i]->name, results[i]->name_length);
        if (row == NULL) {
            ct__table_free(table);
            return 0;
        }
        fill_row(row, &chosen, results[i], i);
    }
    return 1;
}

static void put_missing(ct__text *text, const char *what, const char *reason) {
    if (reason == NULL) return;
    ct__text_put(text, what);
    ct__text_put(text, ": unavailable (");
    ct__text_put(text, reason);
    ct__text_put(text, ")\n");
}

void ct__report_legend(ct__text *text, const ct_result *const *results, size_t count) {
    columns chosen = choose_columns(results, count);
    if (count == 0) return;
    if (chosen.cycles_kind == CT_CYCLES_NONE) {
        put_missing(text, "Cycles", results[0]->cycles_reason);
    } else {
        ct__text_put(text, "Cycles: CPU cycles per call (");
        ct__text_put(text, ct_cycles_kind_name(chosen.cycles_kind));
        ct__text_put(text, ")\n");
    }
    if (chosen.memory) {
        ct__text_put(text, "Allocations, Bytes: per call, counted in a pass of their own\n");
    } else {
        put_missing(text, "Memory", results[0]->memory.reason);
    }
}
