/* SPDX-License-Identifier: MIT
 *
 * report.c: the words in which every language prints a result. All text of a run is made here, and nowhere else.
 */
#include <stdlib.h>
#include <string.h>

#include "codetimer.h"
#include "format.h"
#include "platform/platform.h"
#include "report.h"

static const char *const indent = "    ";
enum { VALUE_COLUMN = 16 }; /* after the indent */

static const ct_report_options plain = {.size = sizeof(ct_report_options)};

void ct__report_label(ct__text *text, const char *label) {
    size_t width = strlen(label) + 1;
    ct__text_put(text, indent);
    ct__text_put(text, label);
    ct__text_put(text, *label != '\0' ? ":" : " ");
    do {
        ct__text_put(text, " ");
        width++;
    } while (width < VALUE_COLUMN);
}

void ct__report_name(ct__text *text, const char *name, size_t length, int color) {
    if (color) ct__text_put(text, "\x1b[33m");
    ct__text_put_escaped(text, name, length);
    if (color) ct__text_put(text, "\x1b[0m");
}

void ct__report_calls(ct__text *text, const ct_result *result) {
    ct__text_put_count(text, result->calls);
    if (result->interrupted == NULL) return;
    if (!result->automatic) {
        ct__text_put(text, " of ");
        ct__text_put_count(text, result->n);
    }
    ct__text_put(text, " (");
    ct__text_put_escaped(text, result->interrupted, strlen(result->interrupted));
    ct__text_put(text, ")");
}

static void put_elapsed(ct__text *text, const ct_result *result) {
    if (result->elapsed_ns < 1000) {
        ct__text_put_count(text, result->elapsed_ns);
        ct__text_put(text, " ns");
        return;
    }
    uint64_t us = result->elapsed_ns / 1000 + (result->elapsed_ns % 1000 >= 500);
    char decimals[] = {'.', (char)('0' + us / 100 % 10), (char)('0' + us / 10 % 10), (char)('0' + us % 10)};
    ct__text_put_count(text, us / 1000);
    ct__text_put_bytes(text, decimals, sizeof decimals);
    ct__text_put(text, " ms");
}

void ct__report_duration(ct__text *text, double ns, const ct_report_options *options) {
    if (options->unit == CT_UNIT_AUTOMATIC) {
        ct__text_put_duration(text, ns, options->ascii);
    } else {
        ct__text_put_in_unit(text, ns, options->unit - CT_UNIT_NS, options->ascii);
    }
}

int ct_unit(const char *name) {
    static const char *const names[] = {"nsec", "usec", "msec", "sec"}; /* from CT_UNIT_NS on */
    for (int i = 0; name != NULL && i < 4; i++)
        if (strcmp(name, names[i]) == 0) return CT_UNIT_NS + i;
    return CT_EINVAL;
}

void ct__report_per_call(ct__text *text, const ct_result *result, const ct_report_options *options) {
    int ascii = options->ascii;
    if (!result->per_call_known) {
        ct__text_put(text, ascii ? "-" : "\xe2\x80\x94");
        return;
    }
    ct__report_duration(text, result->per_call_ns, options);
    if (!result->interval_known || result->per_call_ns <= 0) return;
    double half = (result->interval_high_ns - result->interval_low_ns) / 2;
    ct__text_put(text, ascii ? " +- " : " \xc2\xb1 ");
    ct__text_put_percent(text, half / result->per_call_ns, 1);
}

static void put_cycles(ct__text *text, const ct_result *result) {
    if (result->cycles_kind == CT_CYCLES_NONE) {
        ct__text_put(text, "unavailable (");
        ct__text_put(text, result->cycles_reason);
    } else {
        ct__text_put_count(text, result->cycles);
        ct__text_put(text, " (");
        ct__text_put(text, ct_cycles_kind_name(result->cycles_kind));
    }
    ct__text_put(text, ")");
}

static void put_block(ct__text *text, const ct_result *result, const ct_report_options *options) {
    ct__report_name(text, result->name, result->name_length, options->color);
    ct__text_put(text, "\n");
    ct__report_label(text, "Calls");
    ct__report_calls(text, result);
    ct__text_put(text, "\n");
    ct__report_label(text, "Time Elapsed");
    put_elapsed(text, result);
    ct__text_put(text, "\n");
    ct__report_label(text, "Per Call");
    ct__report_per_call(text, result, options);
    ct__text_put(text, "\n");
    ct__report_label(text, "CPU Cycles");
    put_cycles(text, result);
    ct__text_put(text, "\n");
    for (size_t i = 0; i < result->gc_generations; i++) {
        ct__report_label(text, result->gc_labels[i]);
        ct__text_put_count(text, result->gc_collections[i]);
        ct__text_put(text, "\n");
    }
    ct__report_details(text, result, options);
    for (size_t i = 0; i < result->notes_count; i++) {
        ct__report_label(text, "Note");
        ct__text_put_escaped(text, result->notes[i], strlen(result->notes[i]));
        ct__text_put(text, "\n");
    }
    ct__text_put(text, "\n");
}

static void put_line(ct__text *text, const ct_result *result, const ct_report_options *options) {
    ct__text_put_escaped(text, result->name, result->name_length);
    ct__text_put(text, ": ");
    ct__report_calls(text, result);
    ct__text_put(text, result->calls == 1 && result->interrupted == NULL ? " call, " : " calls, ");
    put_elapsed(text, result);
    ct__text_put(text, ", ");
    ct__report_per_call(text, result, options);
    ct__text_put(text, " per call");
}

size_t ct_report_format(const ct_result *result, const ct_report_options *options, char *buffer, size_t size) {
    ct__text text;
    ct__text_start(&text, buffer, size);
    if (options == NULL) options = &plain;
    if (options->line) {
        put_line(&text, result, options);
    } else {
        put_block(&text, result, options);
    }
    return text.length;
}

/* ---- where it is printed ---- */

static int is_set(const char *name) {
    const char *value = getenv(name);
    return value != NULL && *value != '\0';
}

/* no-color.org and force-color.org: set and not empty; the wish for no colour is the stronger one. */
int ct_report_color(int is_terminal) {
    const char *term = getenv("TERM");
    if (is_set("NO_COLOR")) return 0;
    if (is_set("FORCE_COLOR")) return 1;
    return is_terminal && !(term != NULL && strcmp(term, "dumb") == 0);
}

static int names_utf8(const char *charset) {
    char folded[8];
    size_t length = 0;
    for (; *charset != '\0' && *charset != '@' && length < sizeof folded - 1; charset++)
        if (*charset != '-' && *charset != '_') folded[length++] = (char)(*charset | 0x20); /* lower case */
    folded[length] = '\0';
    return strcmp(folded, "utf8") == 0;
}

int ct_report_ascii(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value == NULL || *value == '\0') continue;
        const char *charset = strchr(value, '.');
        return charset != NULL && !names_utf8(charset + 1);
    }
    return 0;
}

int ct_is_terminal(int fd) { return ct__os_is_terminal(fd); }
