/* SPDX-License-Identifier: MIT
 *
 * export_pyperf.c: a benchmark suite of pyperf's format 1.0, for its show, compare_to and hist.
 *
 * A result is a benchmark of one run, whose values are the seconds per call of the batches. pyperf accepts no value of
 * 0, no empty name, no two benchmarks of one name, no empty text; a result without a value is left out. Its compare_to
 * tests only as many values against as many. Hence the batches are put together, neighbours with neighbours, into as
 * many values as pyperf's own files have; where there are fewer batches, each is a value.
 */
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "json.h"

/* pyperf accepts one line with something on it. */
static int is_line(const char *text) {
    return text != NULL && strpbrk(text, "\n\r") == NULL && text[strspn(text, " \t\v\f")] != '\0';
}

static void put_text(ct__json *json, const char *key, const char *text) {
    if (!is_line(text)) return;
    ct__json_key(json, key);
    ct__json_text(json, text);
}

static void put_count(ct__json *json, const char *key, uint64_t count) {
    ct__json_key(json, key);
    ct__json_count(json, count);
}

enum { VALUES_MAX = 60 }; /* 20 processes with 3 each */

static size_t count_values(const ct_result *result) {
    return result->batches < VALUES_MAX ? result->batches : VALUES_MAX;
}

static double value_of(const ct_result *result, size_t at) {
    size_t values = count_values(result);
    double ns = 0, calls = 0;
    for (size_t i = at * result->batches / values; i < (at + 1) * result->batches / values; i++) {
        ns += (double)result->batches_ns[i];
        calls += (double)result->batches_calls[i];
    }
    return ns / calls / 1e9;
}

static int has_value(const ct_result *result) {
    for (size_t i = 0; i < result->batches; i++)
        if (result->batches_ns[i] > 0) return 1;
    return 0;
}

/* ---- names ---- */

/* pyperf does not keep blanks at the ends, of whatever kind. */
static size_t blank_length(const char *at, size_t length) {
    static const char *const blanks[] = {
        " ",
        "\xc2\x85",
        "\xc2\xa0",
        "\xe1\x9a\x80",
        "\xe2\x80\x80",
        "\xe2\x80\x81",
        "\xe2\x80\x82",
        "\xe2\x80\x83",
        "\xe2\x80\x84",
        "\xe2\x80\x85",
        "\xe2\x80\x86",
        "\xe2\x80\x87",
        "\xe2\x80\x88",
        "\xe2\x80\x89",
        "\xe2\x80\x8a",
        "\xe2\x80\xa8",
        "\xe2\x80\xa9",
        "\xe2\x80\xaf",
        "\xe2\x81\x9f",
        "\xe3\x80\x80",
    };
    for (size_t i = 0; i < sizeof blanks / sizeof blanks[0]; i++) {
        size_t size = strlen(blanks[i]);
        if (size <= length && memcmp(at, blanks[i], size) == 0) return size;
    }
    return 0;
}

static size_t trim(const ct_result *result, const char **name) {
    size_t length = result->name_length, size;
    const char *at = result->name;
    for (; (size = blank_length(at, length)) > 0; length -= size) at += size;
    for (size = 1; size <= 3 && size <= length; size++) /* a blank has 1 to 3 bytes */
        if (blank_length(at + length - size, size) == size) length -= size, size = 0;
    *name = at;
    return length;
}

/* As a report has it, followed so many times by its place in the list. */
static void write_name(ct__text *text, const ct__export *what, size_t at, size_t times) {
    const char *name;
    size_t length = trim(what->results[at], &name);
    ct__text_put_escaped(text, name, length);
    if (length == 0) ct__text_put(text, "unnamed");
    for (size_t i = 0; i < times; i++) {
        ct__text_put(text, " #");
        ct__text_put_integer(text, at + 1);
    }
}

static char *make_name(const ct__export *what, size_t at, size_t times) {
    ct__text text;
    ct__text_start(&text, NULL, 0);
    write_name(&text, what, at, times);
    size_t size = text.length + 1;
    char *name = malloc(size);
    if (name == NULL) return NULL;
    ct__text_start(&text, name, size);
    write_name(&text, what, at, times);
    return name;
}

static int is_alike(const ct__export *what, size_t a, size_t b) {
    const char *name, *other;
    size_t length = trim(what->results[a], &name);
    return trim(what->results[b], &other) == length && (length == 0 || memcmp(name, other, length) == 0);
}

/* Whether one of the first "count" results has this name. It is "at" with its place behind it, if that says anything:
 * then those that are called like "at" itself have another. */
static int is_taken(const ct__export *what, const char *name, size_t count, size_t at, size_t times) {
    int taken = 0;
    for (size_t i = 0; i < count && !taken; i++) {
        if (is_alike(what, i, at)) {
            taken = times == 0;
            continue;
        }
        char *other = make_name(what, i, 0);
        taken = other != NULL && strcmp(name, other) == 0;
        free(other);
    }
    return taken;
}

/* With its place where it is empty or the name of one before it; again, where a result is called just that. So no two
 * are alike: what ends in different places differs. NULL: no memory. */
static char *find_name(const ct__export *what, size_t at) {
    const char *trimmed;
    for (size_t times = trim(what->results[at], &trimmed) == 0;; times++) {
        char *name = make_name(what, at, times);
        if (name == NULL || !is_taken(what, name, times == 0 ? at : what->count, at, times)) return name;
        free(name);
    }
}

static void put_name(ct__json *json, const ct__export *what, size_t at) {
    char *name = find_name(what, at);
    ct__json_key(json, "name");
    ct__json_text(json, name != NULL ? name : "out of memory"); /* better than no file */
    free(name);
}

/* ---- metadata ---- */

/* Its readers do not know every form of ISO 8601, but "2026-01-31 23:59:59". */
static void put_date(ct__json *json, const char *date) {
    static const char form[] = "0000-00-00 00:00:00";
    char known[sizeof form];
    if (date == NULL) return;
    for (size_t i = 0; i < sizeof form - 1; i++) {
        int digit = date[i] >= '0' && date[i] <= '9';
        int separator = date[i] == form[i] || (form[i] == ' ' && date[i] == 'T');
        if (form[i] == '0' ? !digit : !separator) return;
        known[i] = date[i];
        if (form[i] == ' ') known[i] = ' ';
    }
    known[sizeof form - 1] = '\0';
    put_text(json, "date", known);
}

static void put_metadata(ct__json *json, const ct__export *what, size_t at) {
    const ct_result *result = what->results[at];
    ct__json_key(json, "metadata");
    ct__json_open(json, "{");
    put_name(json, what, at);
    put_text(json, "unit", "second");
    put_text(json, "timer", result->clock);
    put_count(json, "codetimer_calls", result->calls);
    put_text(json, "codetimer_cycles_kind", ct_cycles_kind_name(result->cycles_kind));
    if (result->cycles_kind != CT_CYCLES_NONE) put_count(json, "codetimer_cycles", result->cycles);
    for (size_t i = 0; i < result->gc_generations; i++) {
        char key[] = "codetimer_gc_collections_0";
        key[sizeof key - 2] = (char)('0' + i);
        put_count(json, key, result->gc_collections[i]);
    }
    put_text(json, "codetimer_interrupted", result->interrupted);
    ct__json_close(json, "}");
}

/* ---- runs ---- */

/* One, as of one process; loops: of an average value. */
static void put_run(ct__json *json, const ct__export *what, const ct_result *result) {
    uint64_t calls = 0;
    const size_t values = count_values(result);
    for (size_t i = 0; i < result->batches; i++) calls += result->batches_calls[i];
    ct__json_open(json, "{");
    ct__json_key(json, "metadata");
    ct__json_open(json, "{");
    put_count(json, "loops", calls / values > 0 ? calls / values : 1);
    ct__json_key(json, "duration");
    ct__json_number(json, (double)result->elapsed_ns / 1e9);
    put_date(json, what->options->date);
    ct__json_close(json, "}");
    ct__json_key(json, "values");
    ct__json_open(json, "[");
    for (size_t i = 0; i < values; i++)
        if (value_of(result, i) > 0) ct__json_number(json, value_of(result, i));
    ct__json_close(json, "]");
    ct__json_close(json, "}");
}

void ct__export_pyperf(ct__text *text, const ct__export *what) {
    ct__json json;
    ct__json_start(&json, text);
    ct__json_open(&json, "{");
    put_text(&json, "version", "1.0");
    ct__json_key(&json, "metadata");
    ct__json_open(&json, "{");
    put_text(&json, "codetimer_version", ct_version());
    put_text(&json, "codetimer_host", what->options->host != NULL ? what->options->host : "C");
    put_text(&json, "platform", what->options->machine);
    ct__json_close(&json, "}");
    ct__json_key(&json, "benchmarks");
    ct__json_open(&json, "[");
    for (size_t i = 0; i < what->count; i++) {
        if (!has_value(what->results[i])) continue;
        ct__json_open(&json, "{");
        put_metadata(&json, what, i);
        ct__json_key(&json, "runs");
        ct__json_open(&json, "[");
        put_run(&json, what, what->results[i]);
        ct__json_close(&json, "]");
        ct__json_close(&json, "}");
    }
    ct__json_close(&json, "]");
    ct__json_close(&json, "}");
    ct__text_put(text, "\n");
}
