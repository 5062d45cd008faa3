/* SPDX-License-Identifier: MIT
 *
 * report_counters.c: the table of all counters of this process, as every language prints it.
 *
 * Rows are taken one by one, so that the registry is never locked for long; the longest total comes first. A disabled
 * counter and one without a call have no row. How long calls were active has a column only where some of them waited.
 */
#include <stdlib.h>
#include <string.h>

#include "codetimer.h"
#include "format.h"
#include "platform/platform.h"
#include "registry.h"

/* A longer name takes its row out of line, not all the others. */
enum { COLUMNS = 10, ACTIVE = 2, CELL_SIZE = 48, NAME_WIDTH_MOST = 80 };

static const char *const titles[COLUMNS] = {"Calls", "Average", "Active", "P50",    "P99",
                                             "Min",   "Max",     "Total",  "Errors", "In Flight"};

typedef struct row {
    char *name; /* escaped */
    uint64_t total_ns;
    int waits;
    char cells[COLUMNS][CELL_SIZE];
} row;

typedef struct table {
    row *rows;
    size_t count, room;
    size_t name_width, widths[COLUMNS];
    uint64_t silent;
    int waits; /* the column ACTIVE is shown */
} table;

/* Columns on a terminal: characters, not bytes. */
static size_t width_of(const char *text) {
    size_t width = 0;
    for (; *text != '\0'; text++) width += ((unsigned char)*text >> 6) != 2;
    return width;
}

/* The member, or the whole key where the category is not its beginning. */
static const char *shown_name(const char *key) {
    const char *member = strchr(key, '/') + 1;
    size_t category_length = (size_t)(member - key) - 1;
    int implied = strncmp(key, member, category_length) == 0 && member[category_length] == '.';
    return implied ? member : key;
}

static char *escape_name(const char *key) {
    ct__text text;
    const char *name = shown_name(key);
    ct__text_start(&text, NULL, 0);
    ct__text_put_escaped(&text, name, strlen(name));
    size_t size = text.length + 1;
    char *escaped = malloc(size);
    if (escaped == NULL) return NULL;
    ct__text_start(&text, escaped, size);
    ct__text_put_escaped(&text, name, strlen(name));
    return escaped;
}

static void put_count_cell(char *cell, uint64_t count) {
    ct__text text;
    ct__text_start(&text, cell, CELL_SIZE);
    ct__text_put_count(&text, count);
}

/* A dash for what is not known: without a call, or because nobody can tell. */
static void put_duration_cell(char *cell, int status, double duration_ns, int ascii) {
    ct__text text;
    ct__text_start(&text, cell, CELL_SIZE);
    if (status == CT_OK) ct__text_put_duration(&text, duration_ns, ascii);
    if (status != CT_OK) ct__text_put(&text, ascii ? "-" : "\xe2\x80\x94");
}

static void fill_row(row *one, const ct_sample *sample, int ascii) {
    double average = 0, active = 0, p50 = 0, p99 = 0;
    const int called = sample->calls > 0 ? CT_OK : CT_ENOENT, ran = ct_sample_active_average_ns(sample, &active);
    (void)ct_sample_average_ns(sample, &average);
    const int spread = ct_sample_percentile_ns(sample, 50, &p50);
    (void)ct_sample_percentile_ns(sample, 99, &p99);
    one->total_ns = sample->total_ns;
    one->waits = ct_sample_waits(sample);
    put_count_cell(one->cells[0], sample->calls);
    put_duration_cell(one->cells[1], called, average, ascii);
    put_duration_cell(one->cells[ACTIVE], ran, active, ascii);
    put_duration_cell(one->cells[3], spread, p50, ascii);
    put_duration_cell(one->cells[4], spread, p99, ascii);
    put_duration_cell(one->cells[5], called, (double)sample->min_ns, ascii);
    put_duration_cell(one->cells[6], called, (double)sample->max_ns, ascii);
    put_duration_cell(one->cells[7], CT_OK, (double)sample->total_ns, ascii);
    put_count_cell(one->cells[8], sample->errors);
    put_count_cell(one->cells[9], sample->in_flight);
}

/* The row of one record, with its name; 0 where there is none to show, -1 without memory. */
static int take_row(uint32_t index, int ascii, row *one, table *rows) {
    ct_sample sample;
    int taken = 0;
    ct__os_lock();
    ct__definition *definition = ct__definition_at(index);
    if (definition != NULL) {
        ct__record_sample(definition->record, &sample);
        int shown = sample.enabled && (sample.calls > 0 || sample.in_flight > 0);
        one->name = shown ? escape_name(definition->key) : NULL;
        taken = !shown ? 0 : one->name != NULL ? 1 : -1;
        rows->silent += !shown;
    }
    ct__os_unlock();
    if (taken == 1) fill_row(one, &sample, ascii);
    return taken;
}

static int add_row(table *rows, const row *one) {
    if (rows->count == rows->room) {
        size_t room = rows->room == 0 ? 64 : rows->room * 2;
        row *more = realloc(rows->rows, room * sizeof *more);
        if (more == NULL) return 0;
        rows->rows = more;
        rows->room = room;
    }
    rows->rows[rows->count++] = *one;
    rows->waits |= one->waits;
    return 1;
}

static int collect(table *rows, int ascii) {
    uint32_t end = ct_counters_end();
    for (uint32_t i = 0; i < end; i++) {
        row one;
        int taken = take_row(i, ascii, &one, rows);
        if (taken == 0) continue;
        if (taken < 0) return 0;
        if (!add_row(rows, &one)) {
            free(one.name);
            return 0;
        }
    }
    return 1;
}

static int compare_rows(const void *a, const void *b) {
    const row *x = a, *y = b;
    if (x->total_ns != y->total_ns) return x->total_ns < y->total_ns ? 1 : -1;
    return strcmp(x->name, y->name);
}

static void measure_widths(table *rows) {
    rows->name_width = width_of("Member");
    const size_t most = NAME_WIDTH_MOST;
    for (size_t c = 0; c < COLUMNS; c++) rows->widths[c] = width_of(titles[c]);
    for (size_t i = 0; i < rows->count; i++) {
        size_t width = width_of(rows->rows[i].name);
        if (width > rows->name_width) rows->name_width = width < most ? width : most;
        for (size_t c = 0; c < COLUMNS; c++)
            if (width_of(rows->rows[i].cells[c]) > rows->widths[c]) rows->widths[c] = width_of(rows->rows[i].cells[c]);
    }
}

static void put_spaces(ct__text *text, size_t count) {
    while (count-- > 0) ct__text_put(text, " ");
}

static void put_name_cell(ct__text *text, const table *rows, const char *name, int color) {
    if (color) ct__text_put(text, "\x1b[33m");
    ct__text_put(text, name);
    if (color) ct__text_put(text, "\x1b[0m");
    size_t width = width_of(name);
    if (width < rows->name_width) put_spaces(text, rows->name_width - width);
}

static void put_cell(ct__text *text, const table *rows, size_t column, const char *cell) {
    if (column == ACTIVE && !rows->waits) return;
    put_spaces(text, 2 + rows->widths[column] - width_of(cell));
    ct__text_put(text, cell);
}

static void put_table(ct__text *text, const table *rows, int color) {
    put_name_cell(text, rows, "Member", 0);
    for (size_t c = 0; c < COLUMNS; c++) put_cell(text, rows, c, titles[c]);
    ct__text_put(text, "\n");
    for (size_t i = 0; i < rows->count; i++) {
        put_name_cell(text, rows, rows->rows[i].name, color);
        for (size_t c = 0; c < COLUMNS; c++) put_cell(text, rows, c, rows->rows[i].cells[c]);
        ct__text_put(text, "\n");
    }
}

static void put_remarks(ct__text *text, const table *rows) {
    ct_counters counters;
    ct_counters_info(&counters);
    if (rows->silent > 0) {
        ct__text_put_count(text, rows->silent);
        ct__text_put(text, rows->silent == 1 ? " counter without calls\n" : " counters without calls\n");
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
    table rows = {0};
    ct__text text;
    ct__text_start(&text, buffer, size);
    int color = options != NULL && options->color, ascii = options != NULL && options->ascii;
    if (collect(&rows, ascii)) {
        if (rows.count > 0) qsort(rows.rows, rows.count, sizeof *rows.rows, compare_rows);
        measure_widths(&rows);
        put_table(&text, &rows, color);
        put_remarks(&text, &rows);
    }
    for (size_t i = 0; i < rows.count; i++) free(rows.rows[i].name);
    free(rows.rows);
    return text.length;
}
