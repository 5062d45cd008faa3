/* SPDX-License-Identifier: MIT
 *
 * export_markdown.c: the table of a report as GitHub's Markdown has it, and what stands below it as a list.
 */
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "report.h"
#include "report_table.h"

static const ct_report_options unadorned = {.size = sizeof(ct_report_options)};

/* Names are text and not markup: what Markdown would read as such gets a backslash. */
static void put_unmarked(ct__text *text, const char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != '\0' && strchr("\\|`*_~<>[]#&", bytes[i]) != NULL) ct__text_put(text, "\\");
        ct__text_put_bytes(text, bytes + i, 1);
    }
}

static void put_cell(ct__text *text, const char *cell) {
    ct__text_put(text, " ");
    put_unmarked(text, cell, strlen(cell));
    ct__text_put(text, " |");
}

static void put_table(ct__text *text, const ct__table *table) {
    ct__text_put(text, "|");
    put_cell(text, table->name_title);
    for (size_t c = 0; c < table->columns; c++) put_cell(text, table->titles[c]);
    ct__text_put(text, "\n|---|");
    for (size_t c = 0; c < table->columns; c++) ct__text_put(text, "---:|");
    ct__text_put(text, "\n");
    for (size_t i = 0; i < table->count; i++) {
        ct__text_put(text, "|");
        put_cell(text, table->rows[i].name);
        for (size_t c = 0; c < table->columns; c++) put_cell(text, table->rows[i].cells[c]);
        ct__text_put(text, "\n");
    }
}

static void put_list(ct__text *text, const char *lines) {
    while (*lines != '\0') {
        size_t length = strcspn(lines, "\n");
        ct__text_put(text, "- ");
        put_unmarked(text, lines, length);
        ct__text_put(text, "\n");
        lines += length + (lines[length] == '\n');
    }
}

static void put_below(ct__text *text, const ct__export *what) {
    ct__text below;
    ct__text_start(&below, NULL, 0);
    ct__report_below(&below, what->results, what->count, what->comparison, &unadorned);
    size_t size = below.length + 1;
    char *lines = malloc(size);
    if (lines == NULL) return;
    ct__text_start(&below, lines, size);
    ct__report_below(&below, what->results, what->count, what->comparison, &unadorned);
    ct__text_put(text, "\n");
    put_list(text, lines);
    free(lines);
}

void ct__export_markdown(ct__text *text, const ct__export *what) {
    ct__table table;
    if (!ct__report_table(&table, what->results, what->count, what->comparison, &unadorned)) return;
    put_table(text, &table);
    ct__table_free(&table);
    put_below(text, what);
}
