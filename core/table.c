/* SPDX-License-Identifier: MIT
 *
 * table.c: see table.h. A name longer than NAME_WIDTH_MOST takes its own row out of line, not all the others.
 */
#include "table.h"

#include <stdlib.h>
#include <string.h>

enum { NAME_WIDTH_MOST = 80 };

void ct__table_start(ct__table *table, const char *name_title) {
    memset(table, 0, sizeof *table);
    table->name_title = name_title;
}

void ct__table_column(ct__table *table, const char *title) {
    if (table->columns < CT__TABLE_COLUMNS_MAX) table->titles[table->columns++] = title;
}

static char *copy_escaped(const char *name, size_t length) {
    ct__text text;
    ct__text_start(&text, NULL, 0);
    ct__text_put_escaped(&text, name, length);
    size_t size = text.length + 1;
    char *escaped = malloc(size);
    if (escaped == NULL) return NULL;
    ct__text_start(&text, escaped, size);
    ct__text_put_escaped(&text, name, length);
    return escaped;
}

static int make_room(ct__table *table) {
    if (table->count < table->room) return 1;
    size_t room = table->room == 0 ? 32 : table->room * 2;
    ct__table_row *more = realloc(table->rows, room * sizeof *more);
    if (more == NULL) return 0;
    table->rows = more;
    table->room = room;
    return 1;
}

ct__table_row *ct__table_add(ct__table *table, const char *name, size_t length) {
    if (!make_room(table)) return NULL;
    ct__table_row *row = &table->rows[table->count];
    memset(row, 0, sizeof *row);
    row->name = copy_escaped(name, length);
    if (row->name == NULL) return NULL;
    table->count++;
    return row;
}

static int compare_rows(const void *a, const void *b) {
    const ct__table_row *x = a, *y = b;
    if (x->order != y->order) return x->order < y->order ? 1 : -1;
    return strcmp(x->name, y->name);
}

void ct__table_sort(ct__table *table) {
    if (table->count > 0) qsort(table->rows, table->count, sizeof *table->rows, compare_rows);
}

/* ---- as text ---- */

/* Columns on a terminal: characters, not bytes. */
static size_t width_of(const char *text) {
    size_t width = 0;
    for (; *text != '\0'; text++) width += ((unsigned char)*text >> 6) != 2;
    return width;
}

static void measure_widths(ct__table *table) {
    const size_t most = NAME_WIDTH_MOST;
    table->name_width = width_of(table->name_title);
    for (size_t c = 0; c < table->columns; c++) table->widths[c] = width_of(table->titles[c]);
    for (size_t i = 0; i < table->count; i++) {
        const ct__table_row *row = &table->rows[i];
        size_t width = width_of(row->name);
        if (width > table->name_width) table->name_width = width < most ? width : most;
        for (size_t c = 0; c < table->columns; c++)
            if (width_of(row->cells[c]) > table->widths[c]) table->widths[c] = width_of(row->cells[c]);
    }
}

static void put_spaces(ct__text *text, size_t count) {
    while (count-- > 0) ct__text_put(text, " ");
}

static void put_name(ct__text *text, const ct__table *table, const char *name, int color) {
    if (color) ct__text_put(text, "\x1b[33m");
    ct__text_put(text, name);
    if (color) ct__text_put(text, "\x1b[0m");
    size_t width = width_of(name);
    if (width < table->name_width) put_spaces(text, table->name_width - width);
}

static void put_cell(ct__text *text, const ct__table *table, size_t column, const char *cell) {
    if (table->hidden >> column & 1) return;
    put_spaces(text, 2 + table->widths[column] - width_of(cell));
    ct__text_put(text, cell);
}

void ct__table_put(ct__text *text, ct__table *table, int color) {
    measure_widths(table);
    put_name(text, table, table->name_title, 0);
    for (size_t c = 0; c < table->columns; c++) put_cell(text, table, c, table->titles[c]);
    ct__text_put(text, "\n");
    for (size_t i = 0; i < table->count; i++) {
        const ct__table_row *row = &table->rows[i];
        put_name(text, table, row->name, color);
        for (size_t c = 0; c < table->columns; c++) put_cell(text, table, c, row->cells[c]);
        ct__text_put(text, "\n");
    }
}

void ct__table_free(ct__table *table) {
    for (size_t i = 0; i < table->count; i++) free(table->rows[i].name);
    free(table->rows);
    memset(table, 0, sizeof *table);
}
