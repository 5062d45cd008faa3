/* SPDX-License-Identifier: MIT
 *
 * sane.c: see sane.h.
 */
#include "sane.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "json_check.h"
#include "stats.h"

#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) return #condition;                                                                           \
    } while (0)

static int is_amount(double value) { return isfinite(value) && value >= 0; }

/* ---- fields ---- */

static const char *sane_spread(const ct_result *r) {
    MUST(is_amount(r->per_call_ns) && is_amount(r->resolution_ns));
    MUST(!r->per_call_known || (r->per_call_ns > 0 && r->batches > 0));
    MUST(!r->interval_known || (r->per_call_known && r->batches >= 6));
    MUST(is_amount(r->interval_low_ns) && is_amount(r->interval_high_ns) && is_amount(r->mad_ns));
    MUST(is_amount(r->min_ns) && is_amount(r->q1_ns) && is_amount(r->q3_ns) && is_amount(r->max_ns));
    MUST(r->min_ns <= r->q1_ns && r->q1_ns <= r->q3_ns && r->q3_ns <= r->max_ns);
    MUST(r->min_ns <= r->interval_low_ns && r->interval_high_ns <= r->max_ns);
    MUST(!r->interval_known || (r->interval_low_ns <= r->per_call_ns && r->per_call_ns <= r->interval_high_ns));
    MUST(r->outliers_mild + r->outliers_severe <= r->batches);
    MUST(is_amount(r->net_low_ns) && is_amount(r->net_high_ns) && r->net_low_ns <= r->net_high_ns);
    return NULL;
}

/* How many batches took less than this per call; or as much, if "too". */
static size_t count_below(const ct_result *r, double value, int too) {
    size_t count = 0;
    for (size_t i = 0; i < r->batches; i++) {
        double per_call = (double)r->batches_ns[i] / (double)r->batches_calls[i];
        count += per_call < value || (too && per_call <= value);
    }
    return count;
}

/* The median and its interval are those of the batches. */
static const char *sane_ranks(const ct_result *r) {
    size_t rank;
    if (!r->interval_known) return NULL;
    MUST(ct__stats_median_rank(r->batches, 0.95, &rank));
    MUST(count_below(r, r->interval_low_ns, 0) <= rank && count_below(r, r->interval_low_ns, 1) > rank);
    MUST(count_below(r, r->interval_high_ns, 0) < r->batches - rank);
    MUST(count_below(r, r->interval_high_ns, 1) >= r->batches - rank);
    MUST(count_below(r, r->per_call_ns, 0) <= r->batches / 2);
    MUST(count_below(r, r->per_call_ns, 1) >= r->batches / 2);
    MUST(count_below(r, r->min_ns, 0) == 0 && count_below(r, r->max_ns, 1) == r->batches);
    return NULL;
}

static const char *sane_batches(const ct_result *r) {
    uint64_t ns = 0, calls = 0;
    MUST(r->batches <= CT_BATCHES_MAX);
    for (size_t i = 0; i < r->batches; i++) {
        MUST(r->batches_calls[i] > 0);
        ns += r->batches_ns[i];
        calls += r->batches_calls[i];
    }
    MUST(ns <= r->elapsed_ns && calls <= r->calls && r->calls <= r->n);
    MUST(r->interrupted != NULL || (ns == r->elapsed_ns && calls == r->calls));
    MUST(!r->automatic || r->n == r->calls);
    return NULL;
}

static const char *sane_words(const ct_result *r) {
    MUST(r->notes_count <= 12 && r->clock != NULL && r->priority != NULL);
    for (size_t i = 0; i < r->notes_count; i++) MUST(r->notes[i] != NULL && r->notes[i][0] != '\0');
    MUST(r->cycles_kind != CT_CYCLES_NONE || r->cycles_reason[0] != '\0');
    MUST((r->usage.known && r->usage.migrations_known) == (r->usage.reason[0] == '\0'));
    MUST(r->usage.known || (r->usage.cpu_ns == 0 && r->usage.switches == 0));
    for (size_t i = 0; i < r->overheads_count; i++) MUST(r->overheads[i].label != NULL);
    return NULL;
}

const char *sane_result(const ct_result *result) {
    const char *wrong = sane_batches(result);
    if (wrong == NULL) wrong = sane_spread(result);
    if (wrong == NULL) wrong = sane_ranks(result);
    return wrong != NULL ? wrong : sane_words(result);
}

static const char *sane_ratio(const ct_ratio *ratio) {
    MUST(ratio->known == (ratio->reason == NULL));
    MUST(is_amount(ratio->ratio) && is_amount(ratio->low) && is_amount(ratio->high) && is_amount(ratio->resolved));
    MUST(ratio->confidence > 0 && ratio->confidence <= 1);
    MUST(!ratio->known || (ratio->ratio > 0 && ratio->low > 0));
    MUST(ratio->low <= ratio->ratio && ratio->ratio <= ratio->high);
    MUST(!ratio->different || (ratio->known && (ratio->low > 1 || ratio->high < 1)));
    return NULL;
}

const char *sane_comparison(const ct_comparison *comparison) {
    const char *wrong = sane_ratio(&comparison->twin);
    MUST(comparison->rounds_disturbed <= comparison->rounds);
    MUST(comparison->rounds_tied <= comparison->rounds && !comparison->twin.different);
    for (size_t i = 0; i < comparison->count && wrong == NULL; i++) {
        ct_ratio any;
        wrong = sane_result(comparison->results[i]);
        if (wrong == NULL) wrong = sane_ratio(&comparison->ratios[i]);
        MUST(ct_comparison_ratio(comparison, i, (i + 1) % comparison->count, &any) == CT_OK);
        if (wrong == NULL) wrong = sane_ratio(&any);
    }
    return wrong;
}

/* ---- texts ---- */

static char text[400000];

static int is_digit(char c) { return c >= '0' && c <= '9'; }

/* A minus stands before a number only in a range (1.3-1.4) and in an exponent (1e-9). */
static int has_negative(void) {
    for (const char *at = strchr(text, '-'); at != NULL; at = strchr(at + 1, '-'))
        if (is_digit(at[1]) && !(at > text && (is_digit(at[-1]) || at[-1] == 'e'))) return 1;
    return 0;
}

static const char *look_at(size_t length, int json) {
    MUST(length < sizeof text && length == strlen(text) && length > 0);
    MUST(strstr(text, "nan") == NULL && strstr(text, "inf") == NULL && strchr(text, '?') == NULL);
    MUST(!has_negative());
    MUST(!json || is_json(text));
    return NULL;
}

static const char *sane_text(size_t length, int json) {
    const char *wrong = look_at(length, json);
    if (wrong != NULL) fprintf(stderr, "%.4000s\n", text);
    return wrong;
}

static const ct_report_options styles[] = {{.size = sizeof styles[0]},
                                           {.size = sizeof styles[0], .line = 1},
                                           {.size = sizeof styles[0], .verbose = 1, .ascii = 1},
                                           {.size = sizeof styles[0], .verbose = 1, .color = 1}};

enum { STYLES = sizeof styles / sizeof styles[0], FORMATS = 4 };

static int is_json_format(int format) { return format == CT_EXPORT_JSON || format == CT_EXPORT_PYPERF; }

const char *sane_texts_of_result(const ct_result *result) {
    const char *wrong = NULL;
    for (int i = 0; i < STYLES && wrong == NULL; i++)
        wrong = sane_text(ct_report_format(result, &styles[i], text, sizeof text), 0);
    for (int i = 0; i < FORMATS && wrong == NULL; i++)
        wrong = sane_text(ct_export_results(&result, 1, i, NULL, text, sizeof text), is_json_format(i));
    return wrong;
}

const char *sane_texts_of_comparison(const ct_comparison *comparison) {
    const char *wrong = NULL;
    for (int i = 0; i < STYLES && wrong == NULL; i++)
        wrong = sane_text(ct_comparison_format(comparison, &styles[i], text, sizeof text), 0);
    for (int i = 0; i < FORMATS && wrong == NULL; i++)
        wrong = sane_text(ct_export_comparison(comparison, i, NULL, text, sizeof text), is_json_format(i));
    return wrong;
}
