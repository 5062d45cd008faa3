/* SPDX-License-Identifier: MIT
 *
 * Guards the bytes of the report: the block, each variant of each line, what was asked for, the verbose lines, the
 * one-line form, and the rules for colour and charset. Fails if a column moves or a missing fact is printed as a
 * number.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "codetimer.h"

static const char *const labels[] = {"Gen 0", "Gen 1", "Gen 2"};
static const uint64_t collections[] = {50, 4, 0};
static const char *const notes[] = {"first", "second\nline"};

static ct_result kept_lists(void) {
    ct_result result = {0};
    result.name = "Kept Lists";
    result.name_length = strlen(result.name);
    result.n = result.calls = 100000;
    result.elapsed_ns = 12345678;
    result.per_call_known = result.interval_known = 1;
    result.per_call_ns = 123.4568;
    result.interval_low_ns = 122;
    result.interval_high_ns = 125;
    result.cycles_kind = CT_CYCLES_REFERENCE;
    result.cycles = 25876543;
    result.gc_generations = 3;
    result.gc_labels = labels;
    result.gc_collections = collections;
    return result;
}

static char buffer[4096];

static void check(const ct_result *result, const ct_report_options *options, const char *expected) {
    size_t length = ct_report_format(result, options, buffer, sizeof buffer);
    assert_string_equal(buffer, expected);
    assert_int_equal(length, strlen(expected));
    assert_int_equal(ct_report_format(result, options, NULL, 0), length);
}

static void test_block(void **unused) {
    (void)unused;
    ct_result result = kept_lists();
    check(&result, NULL,
          "Kept Lists\n"
          "    Calls:          100,000\n"
          "    Time Elapsed:   12.346 ms\n"
          "    Per Call:       123.457 ns \xc2\xb1 1.2 %\n"
          "    CPU Cycles:     25,876,543 (reference)\n"
          "    Gen 0:          50\n"
          "    Gen 1:          4\n"
          "    Gen 2:          0\n"
          "\n");
}

static void test_ascii_and_color(void **unused) {
    (void)unused;
    ct_report_options options = {.size = sizeof options, .color = 1, .ascii = 1};
    ct_result result = kept_lists();
    result.per_call_ns = 1234.5678;
    result.gc_generations = 0;
    result.cycles_kind = CT_CYCLES_CORE;
    check(&result, &options,
          "\x1b[33mKept Lists\x1b[0m\n"
          "    Calls:          100,000\n"
          "    Time Elapsed:   12.346 ms\n"
          "    Per Call:       1.235 us +- 0.1 %\n"
          "    CPU Cycles:     25,876,543 (core)\n"
          "\n");
}

static void test_missing_facts(void **unused) {
    (void)unused;
    ct_result result = kept_lists();
    result.name = "x\x1b[31m";
    result.name_length = 6;
    result.calls = 37;
    result.interrupted = "ValueError";
    result.elapsed_ns = 999;
    result.per_call_known = 0;
    result.cycles_kind = CT_CYCLES_NONE;
    result.cycles_reason = "no counter here";
    result.gc_generations = 0;
    result.notes = notes;
    result.notes_count = 2;
    check(&result, NULL,
          "x\\x1b[31m\n"
          "    Calls:          37 of 100,000 (ValueError)\n"
          "    Time Elapsed:   999 ns\n"
          "    Per Call:       \xe2\x80\x94\n"
          "    CPU Cycles:     unavailable (no counter here)\n"
          "    Note:           first\n"
          "    Note:           second\\nline\n"
          "\n");
}

static void test_elapsed_edges(void **unused) {
    (void)unused;
    static const struct {
        uint64_t ns;
        const char *text;
    } cases[] = {{0, "0 ns"},        {1000, "0.001 ms"},          {1499, "0.001 ms"},
                 {1500, "0.002 ms"}, {999999500, "1,000.000 ms"}, {UINT64_MAX, "18,446,744,073,709.552 ms"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ct_result result = kept_lists();
        result.elapsed_ns = cases[i].ns;
        ct_report_format(&result, NULL, buffer, sizeof buffer);
        char *line = strstr(buffer, "Time Elapsed:   ");
        assert_non_null(line);
        line += strlen("Time Elapsed:   ");
        *strchr(line, '\n') = '\0';
        assert_string_equal(line, cases[i].text);
    }
}

static void test_line(void **unused) {
    (void)unused;
    ct_report_options options = {.size = sizeof options, .line = 1};
    ct_result result = kept_lists();
    check(&result, &options, "Kept Lists: 100,000 calls, 12.346 ms, 123.457 ns \xc2\xb1 1.2 % per call");
    result.calls = result.n = 1;
    check(&result, &options, "Kept Lists: 1 call, 12.346 ms, 123.457 ns \xc2\xb1 1.2 % per call");
}

/* ---- what was asked for ---- */

static ct_result asked(void) {
    static const ct_memory_kind kinds[] = {{"tables", 25}, {"strings", 0}};
    ct_result result = {.name = "x", .name_length = 1, .n = 10, .calls = 10, .elapsed_ns = 1000000};
    result.cycles_kind = CT_CYCLES_CORE;
    result.gc_time_known = 1;
    result.gc_time = (ct_gc_time){.pauses = 2, .total_ns = 123456, .longest_ns = 100000};
    result.memory = (ct_memory){.calls = 10,
                                .allocations = 25,
                                .reallocations = 1,
                                .frees = 25,
                                .allocated_bytes = 12345,
                                .peak_bytes = 4096,
                                .kinds_count = 2,
                                .kinds = kinds};
    result.clock = "tsc";
    return result;
}

#define HEAD                                                                                                           \
    "x\n"                                                                                                              \
    "    Calls:          10\n"                                                                                         \
    "    Time Elapsed:   1.000 ms\n"                                                                                   \
    "    Per Call:       \xe2\x80\x94\n"                                                                               \
    "    CPU Cycles:     0 (core)\n"

static void test_gc_time_and_memory(void **unused) {
    (void)unused;
    ct_result result = asked();
    check(&result, NULL,
          HEAD "    GC Time:        123.456 \xc2\xb5s (12.3 %, 2 pauses, longest 100.000 \xc2\xb5s)\n"
               "    Memory:         2.50 allocator calls and 1,234.5 bytes per call, peak 4,096 bytes\n"
               "    Objects:        2.50 tables per call\n"
               "\n");
    result.gc_time = (ct_gc_time){.pauses = 0};
    result.memory = (ct_memory){.reason = "tracemalloc is tracing"};
    check(&result, NULL,
          HEAD "    GC Time:        0.000 ns (0.0 %, 0 pauses)\n"
               "    Memory:         unavailable (tracemalloc is tracing)\n"
               "\n");
    result.gc_time = (ct_gc_time){.pauses = 1, .total_ns = UINT64_MAX, .longest_ns = 1};
    result.memory.reason = NULL;
    check(&result, NULL,
          HEAD "    GC Time:        18,446,744,073.710 s (> 100,000,000 %, 1 pause, longest 1.000 ns)\n"
               "\n");
}

static void test_verbose(void **unused) {
    (void)unused;
    static const ct_overhead overheads[] = {{"empty C function", 20.5, 21}, {"empty function", 40, 42}};
    ct_report_options options = {.size = sizeof options, .verbose = 1};
    ct_result result = asked();
    result.gc_time_known = 0;
    result.memory.calls = 0;
    strcpy(result.usage.reason, "not told");
    check(&result, &options,
          HEAD "    System:         unavailable (not told)\n"
               "    Clock:          tsc\n"
               "\n");
    result.usage = (ct_usage){1, 900000, 1, 2, 1, 0, 0, 0, "migrations: not told"};
    result.per_call_known = result.interval_known = result.net_known = 1;
    result.per_call_ns = 100, result.interval_low_ns = 99, result.interval_high_ns = 101;
    result.min_ns = 98, result.q1_ns = 99, result.q3_ns = 101.5, result.max_ns = 2000, result.mad_ns = 0.75;
    result.batches = 100, result.outliers_mild = 3, result.outliers_severe = 1;
    result.overheads_count = 2, result.overheads = overheads;
    result.net_low_ns = 78, result.net_high_ns = 80.5;
    result.warmup_calls = 1, result.warmup_ns = 5000, result.resolution_ns = 10;
    check(&result, &options,
          "x\n"
          "    Calls:          10\n"
          "    Time Elapsed:   1.000 ms\n"
          "    Per Call:       100.000 ns \xc2\xb1 1.0 %\n"
          "    CPU Cycles:     0 (core)\n"
          "    Median:         99.000 ns to 101.000 ns (95 %)\n"
          "    Batches:        100: least 98.000 ns, half within 99.000 ns to 101.500 ns, most 2.000 \xc2\xb5s, MAD "
          "0.750 ns\n"
          "    Outliers:       3 mild, 1 severe\n"
          "    Empty Call:     20.500 ns to 21.000 ns (empty C function)\n"
          "                    40.000 ns to 42.000 ns (empty function)\n"
          "    Net:            78.000 ns to 80.500 ns per call\n"
          "    System:         CPU time 900.000 \xc2\xb5s, 1 wait, 2 preemptions, 1 minor fault, 0 major faults; not "
          "known: migrations: not told\n"
          "    Warm-up:        1 call, 5.000 \xc2\xb5s\n"
          "    Clock:          tsc, step 10.000 ns\n"
          "\n");
    result.usage.migrations_known = 1;
    result.usage.reason[0] = '\0';
    ct_report_format(&result, &options, buffer, sizeof buffer);
    assert_non_null(strstr(buffer, "0 major faults, 0 migrations\n"));
}

static void test_unit_and_process(void **unused) {
    (void)unused;
    ct_report_options options = {.size = sizeof options, .unit = ct_unit("usec"), .process = 1, .verbose = 1};
    ct_result result = asked();
    result.gc_time_known = 0;
    result.memory.calls = 0;
    result.per_call_known = result.interval_known = 1;
    result.per_call_ns = 1234567, result.interval_low_ns = 0.5, result.interval_high_ns = 2469133.6;
    result.usage = (ct_usage){.known = 1, .cpu_ns = 905, .migrations_known = 1};
    ct_report_format(&result, &options, buffer, sizeof buffer);
    assert_non_null(strstr(buffer, "Per Call:       1,234.567 \xc2\xb5s \xc2\xb1 100.0 %\n"));
    assert_non_null(strstr(buffer, "CPU Time:       0.09050 \xc2\xb5s per call\n"));
    assert_non_null(strstr(buffer, "Median:         0.0005000 \xc2\xb5s to 2,469.134 \xc2\xb5s (95 %)\n"));
    result.calls = 0;
    options.ascii = 1;
    ct_report_format(&result, &options, buffer, sizeof buffer);
    assert_non_null(strstr(buffer, "CPU Time:       -\n"));
    result.usage = (ct_usage){.reason = "not told"};
    ct_report_format(&result, &options, buffer, sizeof buffer);
    assert_non_null(strstr(buffer, "CPU Time:       unavailable (not told)\n"));
    assert_int_equal(ct_unit("nsec"), CT_UNIT_NS);
    assert_int_equal(ct_unit("sec"), CT_UNIT_S);
    assert_int_equal(ct_unit("hours"), CT_EINVAL);
    assert_int_equal(ct_unit(NULL), CT_EINVAL);
}

static void check_runs(const ct_result *const *results, size_t count, const char *expected) {
    size_t length = ct_runs_format(results, count, NULL, buffer, sizeof buffer);
    assert_string_equal(buffer, expected);
    assert_int_equal(length, strlen(expected));
}

static void test_runs(void **unused) {
    (void)unused;
    ct_result a = asked(), b = asked(), c = asked();
    const ct_result *const results[] = {&a, &b, &c};
    a.per_call_known = b.per_call_known = 1;
    a.per_call_ns = 30, b.per_call_ns = 10;
    check_runs(results, 0, "");
    check_runs(results, 1, "");
    check_runs(results + 1, 2, "");
    check_runs(results, 3, "2 runs: best 10.000 ns, median 20.000 ns, worst 30.000 ns per call\n\n");
}

static void test_progress(void **unused) {
    (void)unused;
    static const struct {
        double part, per_call_ns;
        const char *expected;
    } cases[] = {{0, 0, "0 %"},
                 {0.25, 0, "25 %, 3 s left"},
                 {0.5, 12.3456, "50 %, 12.346 ns per call, 1 s left"},
                 {1, 12, "100 %, 12.000 ns per call, 0 s left"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double part = cases[i].part, per_call_ns = cases[i].per_call_ns;
        size_t length = ct_progress_format(part, 1000000000, per_call_ns, NULL, buffer, sizeof buffer);
        assert_string_equal(buffer, cases[i].expected);
        assert_int_equal(length, strlen(cases[i].expected));
    }
}

/* An automatic run that ends early has no number that it was asked for. */
static void test_automatic(void **unused) {
    (void)unused;
    ct_report_options options = {.size = sizeof options, .line = 1};
    ct_result result = kept_lists();
    result.automatic = 1;
    result.calls = result.n = 37;
    result.interrupted = "interrupted";
    check(&result, &options, "Kept Lists: 37 (interrupted) calls, 12.346 ms, 123.457 ns \xc2\xb1 1.2 % per call");
}

static void set(const char *name, const char *value) {
    if (value == NULL) {
        unsetenv(name);
    } else {
        setenv(name, value, 1);
    }
}

static void test_color_rules(void **unused) {
    (void)unused;
    static const struct {
        const char *no_color, *force_color, *term;
        int terminal, color;
    } cases[] = {
        {NULL, NULL, "xterm", 1, 1}, {NULL, NULL, "xterm", 0, 0}, {NULL, NULL, NULL, 1, 1},  {NULL, NULL, "dumb", 1, 0},
        {"1", NULL, "xterm", 1, 0},  {"", NULL, "xterm", 1, 1},   {NULL, "1", "dumb", 0, 1}, {"1", "1", "xterm", 1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        set("NO_COLOR", cases[i].no_color);
        set("FORCE_COLOR", cases[i].force_color);
        set("TERM", cases[i].term);
        assert_int_equal(ct_report_color(cases[i].terminal), cases[i].color);
    }
}

static void test_charset_rules(void **unused) {
    (void)unused;
    static const struct {
        const char *all, *ctype, *lang;
        int ascii;
    } cases[] = {
        {NULL, NULL, NULL, 0},
        {"C", NULL, "de_DE.ISO-8859-1", 0},
        {"POSIX", NULL, NULL, 0},
        {NULL, NULL, "de_DE.UTF-8", 0},
        {NULL, NULL, "de_DE.utf8@euro", 0},
        {NULL, NULL, "de_DE.ISO-8859-1", 1},
        {NULL, "ru_RU.KOI8-R", "de_DE.UTF-8", 1},
        {"de_DE.UTF-8", "ru_RU.KOI8-R", NULL, 0},
        {"", "", "ja_JP.eucJP", 1},
        {NULL, NULL, "de_DE.UTF-16LE", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        set("LC_ALL", cases[i].all);
        set("LC_CTYPE", cases[i].ctype);
        set("LANG", cases[i].lang);
        assert_int_equal(ct_report_ascii(), cases[i].ascii);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block),         cmocka_unit_test(test_ascii_and_color),
        cmocka_unit_test(test_missing_facts), cmocka_unit_test(test_elapsed_edges),
        cmocka_unit_test(test_line),          cmocka_unit_test(test_gc_time_and_memory),
        cmocka_unit_test(test_verbose),       cmocka_unit_test(test_unit_and_process),
        cmocka_unit_test(test_runs),          cmocka_unit_test(test_progress),
        cmocka_unit_test(test_automatic),     cmocka_unit_test(test_color_rules),
        cmocka_unit_test(test_charset_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
