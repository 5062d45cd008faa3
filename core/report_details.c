/* SPDX-License-Identifier: MIT
 *
 * report_details.c: the lines of a report that were asked for: time of the collector, memory, and for -v the spread,
 * what the system did, and the cost of an empty call.
 */
#include "report.h"

static void put_duration(ct__text *text, double ns, const ct_report_options *options) {
    ct__text_put_duration(text, ns, options->ascii);
}

/* Of times per call. */
static void put_range(ct__text *text, double low_ns, double high_ns, const ct_report_options *options) {
    ct__report_duration(text, low_ns, options);
    ct__text_put(text, " to ");
    ct__report_duration(text, high_ns, options);
}

static void put_counted(ct__text *text, uint64_t count, const char *one, const char *many) {
    ct__text_put_count(text, count);
    ct__text_put(text, count == 1 ? one : many);
}

/* ---- asked for ---- */

static void put_gc_time(ct__text *text, const ct_result *result, const ct_report_options *options) {
    const ct_gc_time *gc = &result->gc_time;
    if (!result->gc_time_known) return;
    ct__report_label(text, "GC Time");
    put_duration(text, (double)gc->total_ns, options);
    ct__text_put(text, " (");
    if (result->elapsed_ns > 0) {
        ct__text_put_percent(text, (double)gc->total_ns / (double)result->elapsed_ns, 1);
        ct__text_put(text, ", ");
    }
    put_counted(text, gc->pauses, " pause", " pauses");
    if (gc->pauses > 0) {
        ct__text_put(text, ", longest ");
        put_duration(text, (double)gc->longest_ns, options);
    }
    ct__text_put(text, ")\n");
}

/* Only those that there are. */
static void put_kinds(ct__text *text, const ct_memory *memory) {
    int put = 0;
    for (size_t i = 0; i < memory->kinds_count; i++) {
        if (memory->kinds[i].count == 0) continue;
        if (put++ > 0) {
            ct__text_put(text, ", ");
        } else {
            ct__report_label(text, "Objects");
        }
        ct__text_put_decimal(text, (double)memory->kinds[i].count / (double)memory->calls, 2);
        ct__text_put(text, " ");
        ct__text_put(text, memory->kinds[i].label);
    }
    if (put > 0) ct__text_put(text, " per call\n");
}

static void put_memory(ct__text *text, const ct_result *result) {
    const ct_memory *memory = &result->memory;
    if (memory->calls == 0 && memory->reason == NULL) return;
    ct__report_label(text, "Memory");
    if (memory->calls == 0) {
        ct__text_put(text, "unavailable (");
        ct__text_put(text, memory->reason);
        ct__text_put(text, ")\n");
        return;
    }
    ct__text_put_decimal(text, (double)memory->allocations / (double)memory->calls, 2);
    ct__text_put(text, " allocator calls and ");
    ct__text_put_decimal(text, (double)memory->allocated_bytes / (double)memory->calls, 1);
    ct__text_put(text, " bytes per call, peak ");
    ct__text_put_count(text, memory->peak_bytes);
    ct__text_put(text, " bytes\n");
    put_kinds(text, memory);
}

static void put_process(ct__text *text, const ct_result *result, const ct_report_options *options) {
    const ct_usage *usage = &result->usage;
    ct__report_label(text, "CPU Time");
    if (!usage->known) {
        ct__text_put(text, "unavailable (");
        ct__text_put(text, usage->reason);
        ct__text_put(text, ")\n");
        return;
    }
    if (result->calls > 0) {
        ct__report_duration(text, (double)usage->cpu_ns / (double)result->calls, options);
        ct__text_put(text, " per call");
    } else {
        ct__text_put(text, options->ascii ? "-" : "\xe2\x80\x94");
    }
    ct__text_put(text, "\n");
}

/* ---- verbose ---- */

static void put_spread(ct__text *text, const ct_result *result, const ct_report_options *options) {
    if (!result->interval_known) return;
    ct__report_label(text, "Median");
    put_range(text, result->interval_low_ns, result->interval_high_ns, options);
    ct__text_put(text, " (95 %)\n");
    ct__report_label(text, "Batches");
    ct__text_put_count(text, result->batches);
    ct__text_put(text, ": least ");
    ct__report_duration(text, result->min_ns, options);
    ct__text_put(text, ", half within ");
    put_range(text, result->q1_ns, result->q3_ns, options);
    ct__text_put(text, ", most ");
    ct__report_duration(text, result->max_ns, options);
    ct__text_put(text, ", MAD ");
    ct__report_duration(text, result->mad_ns, options);
    ct__text_put(text, "\n");
    ct__report_label(text, "Outliers");
    ct__text_put_count(text, result->outliers_mild);
    ct__text_put(text, " mild, ");
    ct__text_put_count(text, result->outliers_severe);
    ct__text_put(text, " severe\n");
}

static void put_overheads(ct__text *text, const ct_result *result, const ct_report_options *options) {
    for (size_t i = 0; i < result->overheads_count; i++) {
        ct__report_label(text, i == 0 ? "Empty Call" : "");
        put_range(text, result->overheads[i].low_ns, result->overheads[i].high_ns, options);
        ct__text_put(text, " (");
        ct__text_put(text, result->overheads[i].label);
        ct__text_put(text, ")\n");
    }
    if (!result->net_known) return;
    ct__report_label(text, "Net");
    put_range(text, result->net_low_ns, result->net_high_ns, options);
    ct__text_put(text, " per call\n");
}

static void put_usage(ct__text *text, const ct_result *result, const ct_report_options *options) {
    const ct_usage *usage = &result->usage;
    ct__report_label(text, "System");
    if (usage->known) {
        ct__text_put(text, "CPU time ");
        put_duration(text, (double)usage->cpu_ns, options);
        ct__text_put(text, ", ");
        put_counted(text, usage->switches, " wait, ", " waits, ");
        put_counted(text, usage->preemptions, " preemption, ", " preemptions, ");
        put_counted(text, usage->minor_faults, " minor fault, ", " minor faults, ");
        put_counted(text, usage->major_faults, " major fault", " major faults");
    }
    if (usage->migrations_known) {
        ct__text_put(text, usage->known ? ", " : "");
        put_counted(text, usage->migrations, " migration", " migrations");
    }
    if (usage->reason[0] != '\0') {
        ct__text_put(text, usage->known ? "; not known: " : "unavailable (");
        ct__text_put(text, usage->reason);
        if (!usage->known) ct__text_put(text, ")");
    }
    ct__text_put(text, "\n");
}

static void put_clock(ct__text *text, const ct_result *result, const ct_report_options *options) {
    ct__report_label(text, "Clock");
    ct__text_put(text, result->clock);
    if (result->resolution_ns > 0) {
        ct__text_put(text, ", step ");
        put_duration(text, result->resolution_ns, options);
    }
    ct__text_put(text, "\n");
}

static void put_warmup(ct__text *text, const ct_result *result, const ct_report_options *options) {
    if (result->warmup_calls == 0) return;
    ct__report_label(text, "Warm-up");
    put_counted(text, result->warmup_calls, " call, ", " calls, ");
    put_duration(text, (double)result->warmup_ns, options);
    ct__text_put(text, "\n");
}

void ct__report_details(ct__text *text, const ct_result *result, const ct_report_options *options) {
    if (options->process) put_process(text, result, options);
    put_gc_time(text, result, options);
    put_memory(text, result);
    if (!options->verbose) return;
    put_spread(text, result, options);
    put_overheads(text, result, options);
    put_usage(text, result, options);
    put_warmup(text, result, options);
    put_clock(text, result, options);
}
