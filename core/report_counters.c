/* SPDX-License-Identifier: MIT
 *
 * report_counters.c: the table of all counters of this process, as every language prints it.
 *
 * Rows are taken one by one, so that the registry is never locked for long; the longest total comes first. A disabled
 * counter and one without a call have no row. How long calls were active has a column only where some of them waited.
 */
#include <string.h>

#include "codetimer.h"
#include "format.h"
#include "platform/platform.h"
#include "registry.h"
#include "table.h"

static const char *const titles[] = {"Calls", "Average", "Active", "P50",    "P99",
                                     "Min",   "Max",     "Total",  "Errors", "In Flight"};

enum { COLUMNS = sizeof titles / sizeof titles[0], ACTIVE = 2 };

/* The member, or the whole key where the category is not its beginning. */
static const char *shown_name(const char *key) {
    const char *member = strchr(key, '/') + 1;
    size_t category_length = (size_t)(member - key) - 1;
    int implied = strncmp(key, member, category_length) == 0 && member[category_length] == '.';
    return implied ? member : key;
}

static void put_count_cell(char *cell, uint64_t count) {
    ct__text text;
    ct__text_start(&text, cell, CT__CELL_SIZE);
    ct__text_put_count(&text, count);
}

/* A dash for what is not known: without a call, or because nobody can tell. */
static void put_duration_cell(char *cell, int status, double duration_ns, int ascii) {
    ct__text text;
    ct__text_start(&text, cell, CT__CELL_SIZE);
    if (status == CT_OK) ct__text_put_duration(&text, duration_ns, ascii);
    if (status != CT_OK) ct__text_put(&text, ascii ? "-" : "\xe2\x80\x94");
}

static void fill_row(ct__table_row *row, const ct_sample *sample, int ascii) {
    double average = 0, active = 0, p50 = 0, p99 = 0;
    const int called = sample->calls > 0 ? CT_OK : CT_ENOENT, ran = ct_sample_active_average_ns(sample, &active);
    (void)ct_sample_average_ns(sample, &average);
    const int spread = ct_sample_percentile_ns(sample, 50, &p50);
    (void)ct_sample_percentile_ns(sample, 99, &p99);
    row->order = sample->total_ns;
    put_count_cell(row->cells[0], sample->calls);
    put_duration_cell(row->cells[1], called, average, ascii);
    put_duration_cell(row->cells[ACTIVE], ran, active, ascii);
    put_duration_cell(row->cells[3], spread, p50, ascii);
    put_duration_cell(row->cells[4], spread, p99, ascii);
    put_duration_cell(row->cells[5], called, (double)sample->min_ns, ascii);
    put_duration_cell(row->cells[6], called, (double)sample->max_ns, ascii);
    put_duration_cell(row->cells[7], CT_OK, (double)sample->total_ns, ascii);
    put_count_cell(row->cells[8], sample->errors);
    put_count_cell(row->cells[9], sample->in_flight);
}

/* Adds the row of one record, if there is one to show. Returns 0 without memory. */
static int take_row(ct__table *table, uint32_t index, int ascii, uint64_t *silent) {
    ct_sample sample;
    ct__table_row *row = NULL;
    int shown = 0;
    ct__os_lock();
    ct__definition *definition = ct__definition_at(index);
    if (definition != NULL) {
        ct__record_sample(definition->record, &sample);
        shown = sample.enabled && (sample.calls > 0 || sample.in_flight > 0);
        *silent += !shown;
        const char *name = shown_name(definition->key);
        if (shown) row = ct__table_add(table, name, strlen(name));
    }
    ct__os_unlock();
    if (row != NULL) fill_row(row, &sample, ascii);
    if (row != NULL && ct_sample_waits(&sample)) table->hidden = 0;
    return row != NULL || !shown;
}

static int collect(ct__table *table, int ascii, uint64_t *silent) {
    uint32_t end = ct_counters_end();
    for (uint32_t i = 0; i < end; i++)
        if (!take_row(table, i, ascii, silent)) return 0;
    return 1;
}

static void put_remarks(ct__text *text, uint64_t silent) {
    ct_counters counters;
    ct_counters_info(&counters);
    if (silent > 0) {
        ct__text_put_count(text, silent);
        ct__text_put(text, silent == 1 ? " counter without calls\n" : " counters without calls\n");
    }
    if (counters.refused == 0) return;
    ct__text_put_count(text, counters.refused);
    ct__text_put(text, " refused (limit ");
    ct__text_put_count(text, counters.capacity);
    ct__text_put(text, ", CODETIMER_MAX_COUNTERS), the last: ");
    ct__text_put_escaped(text, counters.last_refused, strlen(counters.last_refused));
    ct__text_put(text, "\n");
}

size_t ct_report_counters(const ct_report_options *options, char *buffer, size_t size) {
    ct__table table;
    ct__text text;
    uint64_t silent = 0;
    ct__text_start(&text, buffer, size);
    ct__table_start(&table, "Member");
    for (size_t c = 0; c < COLUMNS; c++) ct__table_column(&table, titles[c]);
    table.hidden = 1u << ACTIVE; /* until some row waits */
    if (collect(&table, options != NULL && options->ascii, &silent)) {
        ct__table_sort(&table);
        ct__table_put(&text, &table, options != NULL && options->color);
        put_remarks(&text, silent);
    }
    ct__table_free(&table);
    return text.length;
}
