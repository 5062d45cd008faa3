/* SPDX-License-Identifier: MIT
 *
 * table.h: floor 3, a table of text: names on the left, cells standing right-aligned below their titles.
 */
#ifndef CT_TABLE_H
#define CT_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "format.h"

enum { CT__TABLE_COLUMNS_MAX = 12, CT__CELL_SIZE = 64 };

typedef struct ct__table_row {
    char *name;     /* escaped; owned by the table */
    uint64_t order; /* for ct__table_sort */
    char cells[CT__TABLE_COLUMNS_MAX][CT__CELL_SIZE];
} ct__table_row;

typedef struct ct__table {
    const char *name_title;
    size_t columns;
    const char *titles[CT__TABLE_COLUMNS_MAX];
    ct__table_row *rows;
    size_t count, room;
    unsigned hidden; /* bit c: the column c is not shown */
    size_t name_width, widths[CT__TABLE_COLUMNS_MAX];
} ct__table;

/* Starts an empty table with the given name column; titles are added one by one. */
void ct__table_start(ct__table *table, const char *name_title);

/* "title" must outlive the table. At most CT__TABLE_COLUMNS_MAX; more are not added. */
void ct__table_column(ct__table *table, const char *title);

/* A row with an escaped copy of "name" and empty cells, valid until the next one is added; NULL without memory. */
ct__table_row *ct__table_add(ct__table *table, const char *name, size_t length);

/* The highest order first; equal ones by name. */
void ct__table_sort(ct__table *table);

/* The titles, then a line for each row; names in yellow where "color". */
void ct__table_put(ct__text *text, ct__table *table, int color);

void ct__table_free(ct__table *table);

#endif
