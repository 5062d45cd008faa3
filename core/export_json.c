/* SPDX-License-Identifier: MIT
 *
 * export_json.c: all that is known of results, by the schema described in the README. Keys are the names that the
 * fields of ct_result and ct_comparison have; what is not known is null. A change that readers could stumble over makes
 * another number of the schema.
 */
#include "export.h"
#include "json.h"

enum { SCHEMA = 1 };

/* ---- pairs of key and value ---- */

static void put_count(ct__json *json, const char *key, int known, uint64_t count) {
    ct__json_key(json, key);
    if (known) {
        ct__json_count(json, count);
    } else {
        ct__json_null(json);
    }
}

static void put_number(ct__json *json, const char *key, int known, double number) {
    ct__json_key(json, key);
    if (known) {
        ct__json_number(json, number);
    } else {
        ct__json_null(json);
    }
}

static void put_text(ct__json *json, const char *key, const char *text) {
    ct__json_key(json, key);
    ct__json_text(json, text);
}

/* Empty where there is nothing to say: null. */
static void put_reason(ct__json *json, const char *key, const char *reason) {
    put_text(json, key, reason != NULL && reason[0] != '\0' ? reason : NULL);
}

static void put_counts(ct__json *json, const char *key, const uint64_t *counts, size_t count) {
    ct__json_key(json, key);
    ct__json_open(json, "[");
    for (size_t i = 0; i < count; i++) ct__json_count(json, counts[i]);
    ct__json_close(json, "]");
}

static void put_texts(ct__json *json, const char *key, const char *const *texts, size_t count) {
    ct__json_key(json, key);
    ct__json_open(json, "[");
    for (size_t i = 0; i < count; i++) ct__json_text(json, texts[i]);
    ct__json_close(json, "]");
}

static int open_object(ct__json *json, const char *key, int known) {
    ct__json_key(json, key);
    if (known) {
        ct__json_open(json, "{");
    } else {
        ct__json_null(json);
    }
    return known;
}

/* ---- a result ---- */

static void put_calls(ct__json *json, const ct_result *result) {
    ct__json_key(json, "name");
    ct__json_string(json, result->name, result->name_length);
    put_count(json, "n", 1, result->n);
    put_count(json, "calls", 1, result->calls);
    put_count(json, "elapsed_ns", 1, result->elapsed_ns);
    ct__json_key(json, "automatic");
    ct__json_bool(json, result->automatic);
    put_count(json, "budget_ns", result->automatic, result->budget_ns);
    put_count(json, "warmup_calls", 1, result->warmup_calls);
    put_count(json, "warmup_ns", 1, result->warmup_ns);
}

static void put_spread(ct__json *json, const ct_result *result) {
    int known = result->interval_known;
    put_number(json, "per_call_ns", result->per_call_known, result->per_call_ns);
    put_number(json, "interval_low_ns", known, result->interval_low_ns);
    put_number(json, "interval_high_ns", known, result->interval_high_ns);
    put_number(json, "min_ns", known, result->min_ns);
    put_number(json, "q1_ns", known, result->q1_ns);
    put_number(json, "q3_ns", known, result->q3_ns);
    put_number(json, "max_ns", known, result->max_ns);
    put_number(json, "mad_ns", known, result->mad_ns);
    put_count(json, "outliers_mild", known, result->outliers_mild);
    put_count(json, "outliers_severe", known, result->outliers_severe);
    put_number(json, "net_low_ns", result->net_known, result->net_low_ns);
    put_number(json, "net_high_ns", result->net_known, result->net_high_ns);
}

static void put_system(ct__json *json, const ct_result *result) {
    const ct_usage *usage = &result->usage;
    put_count(json, "cycles", result->cycles_kind != CT_CYCLES_NONE, result->cycles);
    put_text(json, "cycles_kind", ct_cycles_kind_name(result->cycles_kind));
    put_text(json, "cycles_source", result->cycles_source);
    put_text(json, "cycles_reason", result->cycles_reason);
    (void)open_object(json, "usage", 1);
    put_count(json, "cpu_ns", usage->known, usage->cpu_ns);
    put_count(json, "switches", usage->known, usage->switches);
    put_count(json, "preemptions", usage->known, usage->preemptions);
    put_count(json, "minor_faults", usage->known, usage->minor_faults);
    put_count(json, "major_faults", usage->known, usage->major_faults);
    put_count(json, "migrations", usage->migrations_known, usage->migrations);
    put_text(json, "reason", usage->reason);
    ct__json_close(json, "}");
}

static void put_gc(ct__json *json, const ct_result *result) {
    put_counts(json, "gc_collections", result->gc_collections, result->gc_generations);
    put_texts(json, "gc_labels", result->gc_labels, result->gc_generations);
    if (!open_object(json, "gc_time", result->gc_time_known)) return;
    put_count(json, "pauses", 1, result->gc_time.pauses);
    put_count(json, "total_ns", 1, result->gc_time.total_ns);
    put_count(json, "longest_ns", 1, result->gc_time.longest_ns);
    ct__json_close(json, "}");
}

static void put_memory(ct__json *json, const ct_memory *memory) {
    int known = memory->calls > 0;
    if (!open_object(json, "memory", known || memory->reason != NULL)) return;
    put_count(json, "calls", 1, memory->calls);
    put_count(json, "allocations", known, memory->allocations);
    put_count(json, "reallocations", known, memory->reallocations);
    put_count(json, "frees", known, memory->frees);
    put_count(json, "allocated_bytes", known, memory->allocated_bytes);
    put_count(json, "peak_bytes", known, memory->peak_bytes);
    put_reason(json, "reason", memory->reason);
    (void)open_object(json, "kinds", 1);
    for (size_t i = 0; i < memory->kinds_count; i++) put_count(json, memory->kinds[i].label, 1, memory->kinds[i].count);
    ct__json_close(json, "}");
    ct__json_close(json, "}");
}

static void put_overheads(ct__json *json, const ct_result *result) {
    ct__json_key(json, "overheads");
    ct__json_open(json, "[");
    for (size_t i = 0; i < result->overheads_count; i++) {
        ct__json_open(json, "{");
        put_text(json, "label", result->overheads[i].label);
        put_number(json, "low_ns", 1, result->overheads[i].low_ns);
        put_number(json, "high_ns", 1, result->overheads[i].high_ns);
        ct__json_close(json, "}");
    }
    ct__json_close(json, "]");
}

static void put_result(ct__json *json, const ct_result *result) {
    ct__json_open(json, "{");
    put_calls(json, result);
    put_spread(json, result);
    put_overheads(json, result);
    put_counts(json, "batches_ns", result->batches_ns, result->batches);
    put_counts(json, "batches_calls", result->batches_calls, result->batches);
    put_system(json, result);
    put_gc(json, result);
    put_memory(json, &result->memory);
    put_text(json, "interrupted", result->interrupted);
    put_texts(json, "notes", result->notes, result->notes_count);
    put_text(json, "priority", result->priority);
    put_text(json, "clock", result->clock);
    put_number(json, "resolution_ns", result->resolution_ns > 0, result->resolution_ns);
    ct__json_close(json, "}");
}

/* ---- a comparison ---- */

static void put_ratio(ct__json *json, const ct_ratio *ratio) {
    ct__json_open(json, "{");
    put_number(json, "ratio", ratio->known, ratio->ratio);
    put_number(json, "low", ratio->known, ratio->low);
    put_number(json, "high", ratio->known, ratio->high);
    put_number(json, "confidence", 1, ratio->confidence);
    ct__json_key(json, "different");
    if (ratio->known) {
        ct__json_bool(json, ratio->different);
    } else {
        ct__json_null(json);
    }
    put_number(json, "resolved", ratio->known, ratio->resolved);
    ct__json_key(json, "in_turns");
    ct__json_bool(json, ratio->in_turns);
    put_reason(json, "reason", ratio->reason);
    ct__json_close(json, "}");
}

static void put_comparison(ct__json *json, const ct_comparison *comparison) {
    if (!open_object(json, "comparison", comparison != NULL)) return;
    put_count(json, "baseline", 1, comparison->baseline);
    ct__json_key(json, "ratios");
    ct__json_open(json, "[");
    for (size_t i = 0; i < comparison->count; i++) put_ratio(json, &comparison->ratios[i]);
    ct__json_close(json, "]");
    ct__json_key(json, "twin");
    put_ratio(json, &comparison->twin);
    put_count(json, "rounds", 1, comparison->rounds);
    put_count(json, "rounds_tied", 1, comparison->rounds_tied);
    put_count(json, "rounds_disturbed", 1, comparison->rounds_disturbed);
    put_count(json, "budget_ns", 1, comparison->budget_ns);
    put_count(json, "elapsed_ns", 1, comparison->elapsed_ns);
    put_text(json, "interrupted", comparison->interrupted);
    put_texts(json, "notes", comparison->notes, comparison->notes_count);
    ct__json_close(json, "}");
}

void ct__export_json(ct__text *text, const ct__export *what) {
    ct__json json;
    ct__json_start(&json, text);
    ct__json_open(&json, "{");
    put_count(&json, "codetimer", 1, SCHEMA);
    put_text(&json, "version", ct_version());
    put_text(&json, "host", what->options->host != NULL ? what->options->host : "C");
    put_text(&json, "machine", what->options->machine);
    put_text(&json, "date", what->options->date);
    ct__json_key(&json, "results");
    ct__json_open(&json, "[");
    for (size_t i = 0; i < what->count; i++) put_result(&json, what->results[i]);
    ct__json_close(&json, "]");
    put_comparison(&json, what->comparison);
    ct__json_close(&json, "}");
    ct__text_put(text, "\n");
}
