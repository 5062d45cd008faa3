/* SPDX-License-Identifier: MIT
 *
 * export_csv.c: RFC 4180, a line of titles and a line for each result with all its numbers; a number that is not known
 * is an empty field.
 */
#include <string.h>

#include "export.h"
#include "json.h"

static const char titles[] =
    "name,n,calls,elapsed_ns,per_call_ns,interval_low_ns,interval_high_ns,min_ns,q1_ns,q3_ns,max_ns,mad_ns,"
    "outliers_mild,outliers_severe,net_low_ns,net_high_ns,batches,cycles,cycles_kind,cpu_ns,switches,preemptions,"
    "minor_faults,major_faults,migrations,gc_collections_0,gc_collections_1,gc_collections_2,gc_collections_3,"
    "gc_pauses,gc_total_ns,gc_longest_ns,memory_calls,allocations,reallocations,frees,allocated_bytes,peak_bytes,"
    "interrupted,notes";
static const char titles_of_ratios[] = ",ratio,ratio_low,ratio_high,different";

/* ---- fields ---- */

/* Inside quotes a quote is doubled. */
static void put_doubled(ct__text *text, const char *bytes, size_t count) {
    while (count > 0) {
        const char *quote = memchr(bytes, '"', count);
        size_t before = quote != NULL ? (size_t)(quote - bytes) : count;
        ct__text_put_escaped(text, bytes, before);
        if (quote == NULL) return;
        ct__text_put(text, "\"\"");
        bytes = quote + 1;
        count -= before + 1;
    }
}

static void put_text(ct__text *text, const char *bytes, size_t count) {
    ct__text_put(text, "\"");
    put_doubled(text, bytes, count);
    ct__text_put(text, "\"");
}

static void put_numbers(ct__text *text, int known, const double *numbers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        ct__text_put(text, ",");
        if (known) ct__text_put_number(text, numbers[i]);
    }
}

static void put_counts(ct__text *text, int known, const uint64_t *counts, size_t count) {
    for (size_t i = 0; i < count; i++) {
        ct__text_put(text, ",");
        if (known) ct__text_put_integer(text, counts[i]);
    }
}

/* ---- a line ---- */

static void put_times(ct__text *text, const ct_result *result) {
    const uint64_t counts[] = {result->n, result->calls, result->elapsed_ns};
    const double spread[] = {result->interval_low_ns, result->interval_high_ns, result->min_ns, result->q1_ns,
                             result->q3_ns,           result->max_ns,           result->mad_ns};
    const uint64_t outliers[] = {result->outliers_mild, result->outliers_severe};
    const double net[] = {result->net_low_ns, result->net_high_ns};
    const uint64_t batches = result->batches;
    put_counts(text, 1, counts, 3);
    put_numbers(text, result->per_call_known, &result->per_call_ns, 1);
    put_numbers(text, result->interval_known, spread, 7);
    put_counts(text, result->interval_known, outliers, 2);
    put_numbers(text, result->net_known, net, 2);
    put_counts(text, 1, &batches, 1);
}

static void put_system(ct__text *text, const ct_result *result) {
    const ct_usage *usage = &result->usage;
    const uint64_t counts[] = {usage->cpu_ns, usage->switches, usage->preemptions, usage->minor_faults,
                               usage->major_faults};
    put_counts(text, result->cycles_kind != CT_CYCLES_NONE, &result->cycles, 1);
    ct__text_put(text, ",");
    ct__text_put(text, ct_cycles_kind_name(result->cycles_kind));
    put_counts(text, usage->known, counts, 5);
    put_counts(text, usage->migrations_known, &usage->migrations, 1);
}

static void put_gc(ct__text *text, const ct_result *result) {
    const ct_gc_time *gc = &result->gc_time;
    const uint64_t times[] = {gc->pauses, gc->total_ns, gc->longest_ns};
    for (size_t i = 0; i < CT_GC_GENERATIONS_MAX; i++) {
        ct__text_put(text, ",");
        if (i < result->gc_generations) ct__text_put_integer(text, result->gc_collections[i]);
    }
    put_counts(text, result->gc_time_known, times, 3);
}

static void put_memory(ct__text *text, const ct_result *result) {
    const ct_memory *memory = &result->memory;
    const uint64_t counts[] = {memory->calls, memory->allocations,     memory->reallocations,
                               memory->frees, memory->allocated_bytes, memory->peak_bytes};
    put_counts(text, memory->calls > 0, counts, 6);
}

static void put_words(ct__text *text, const ct_result *result) {
    ct__text_put(text, ",");
    if (result->interrupted != NULL) put_text(text, result->interrupted, strlen(result->interrupted));
    ct__text_put(text, ",");
    if (result->notes_count == 0) return;
    ct__text_put(text, "\"");
    for (size_t i = 0; i < result->notes_count; i++) {
        if (i > 0) ct__text_put(text, "; ");
        put_doubled(text, result->notes[i], strlen(result->notes[i]));
    }
    ct__text_put(text, "\"");
}

static void put_ratio(ct__text *text, const ct_ratio *ratio) {
    const double numbers[] = {ratio->ratio, ratio->low, ratio->high};
    const uint64_t different = ratio->different != 0;
    put_numbers(text, ratio->known, numbers, 3);
    put_counts(text, ratio->known, &different, 1);
}

void ct__export_csv(ct__text *text, const ct__export *what) {
    ct__text_put(text, titles);
    if (what->comparison != NULL) ct__text_put(text, titles_of_ratios);
    ct__text_put(text, "\r\n");
    for (size_t i = 0; i < what->count; i++) {
        const ct_result *result = what->results[i];
        put_text(text, result->name, result->name_length);
        put_times(text, result);
        put_system(text, result);
        put_gc(text, result);
        put_memory(text, result);
        put_words(text, result);
        if (what->comparison != NULL) put_ratio(text, &what->comparison->ratios[i]);
        ct__text_put(text, "\r\n");
    }
}
