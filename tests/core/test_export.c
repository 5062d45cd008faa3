/* SPDX-License-Identifier: MIT
 *
 * Guards the files: every byte of a full and of an empty result in each format, names of any bytes, what is unknown as
 * null or nothing, sizes as of snprintf. Fails if a key, a column or an escape changes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codetimer.h"
#include "json_check.h"

static const char *const labels[] = {"Gen 0", "Gen 1"};
static const char *const notes[] = {"said \"so\"", "second"};
static const uint64_t collections[] = {50, UINT64_MAX};
static const uint64_t batches_ns[] = {1500, 0, 3000}, batches_calls[] = {3, 1, 6};
static const ct_overhead overheads[] = {{"empty C function", 1.5, 2.25}};
static const ct_memory_kind kinds[] = {{"tables", 7}};
static char text[20000];

static ct_result full(void) {
    ct_result r = {.name = "a|b", .name_length = 3, .n = 10, .calls = 10, .elapsed_ns = 4500};
    r.automatic = 1, r.budget_ns = 200, r.warmup_calls = 4, r.warmup_ns = 5;
    r.per_call_known = r.interval_known = r.net_known = 1;
    r.per_call_ns = 500, r.interval_low_ns = 450.5, r.interval_high_ns = 510;
    r.min_ns = 400, r.q1_ns = 410, r.q3_ns = 505, r.max_ns = 600, r.mad_ns = 0.1;
    r.outliers_mild = 1, r.outliers_severe = 2, r.net_low_ns = 448.25, r.net_high_ns = 508.5;
    r.batches = 3, r.batches_ns = batches_ns, r.batches_calls = batches_calls;
    r.cycles_kind = CT_CYCLES_CORE, r.cycles = UINT64_MAX, r.cycles_source = "perf", r.cycles_reason = "";
    r.usage = (ct_usage){1, 4400, 1, 2, 3, 4, 1, 5, ""};
    r.gc_generations = 2, r.gc_labels = labels, r.gc_collections = collections;
    r.gc_time_known = 1, r.gc_time = (ct_gc_time){3, 200, 100};
    r.memory = (ct_memory){5, 20, 1, 19, 640, 128, 1, kinds, NULL};
    r.overheads_count = 1, r.overheads = overheads;
    r.notes_count = 2, r.notes = notes;
    r.clock = "tsc", r.resolution_ns = 12.5, r.priority = "nice 0";
    return r;
}

static ct_result empty(void) {
    ct_result r = {.name = "\xff\n\"", .name_length = 3, .n = 7, .interrupted = "Error"};
    r.cycles_source = "", r.cycles_reason = "no counter", r.clock = "tsc", r.priority = "nice 0";
    r.memory.reason = "tracing";
    strcpy(r.usage.reason, "no call was made");
    return r;
}

static const char *export_one(ct_result result, int format) {
    const ct_result *one = &result;
    const ct_export_options options = {.size = sizeof options, .host = "Lua 5.4", .date = "2026-01-31T23:59:58.1Z"};
    size_t length = ct_export_results(&one, 1, format, &options, text, sizeof text);
    assert_int_equal(length, strlen(text));
    assert_int_equal(ct_export_results(&one, 1, format, &options, NULL, 0), length);
    return text;
}

static void test_formats(void **unused) {
    (void)unused;
    assert_int_equal(ct_export_format("json"), CT_EXPORT_JSON);
    assert_int_equal(ct_export_format("csv"), CT_EXPORT_CSV);
    assert_int_equal(ct_export_format("markdown"), CT_EXPORT_MARKDOWN);
    assert_int_equal(ct_export_format("pyperf"), CT_EXPORT_PYPERF);
    assert_int_equal(ct_export_format("JSON"), CT_EINVAL);
    assert_int_equal(ct_export_format(NULL), CT_EINVAL);
    assert_string_equal((export_one)(full(), 99), "");
}

#define HEAD                                                                                                           \
    "{\"codetimer\": 1, \"version\": \"" CT_VERSION "\", \"host\": \"Lua 5.4\", \"machine\": null, "                   \
    "\"date\": \"2026-01-31T23:59:58.1Z\", \"results\": ["

static void test_json(void **unused) {
    (void)unused;
    assert_string_equal(
        export_one(full(), CT_EXPORT_JSON),
        HEAD "{\"name\": \"a|b\", \"n\": 10, \"calls\": 10, \"elapsed_ns\": 4500, \"automatic\": true, "
             "\"budget_ns\": 200, \"warmup_calls\": 4, \"warmup_ns\": 5, \"per_call_ns\": 500.0, "
             "\"interval_low_ns\": 450.5, \"interval_high_ns\": 510.0, \"min_ns\": 400.0, \"q1_ns\": 410.0, "
             "\"q3_ns\": 505.0, \"max_ns\": 600.0, \"mad_ns\": 0.1, \"outliers_mild\": 1, \"outliers_severe\": 2, "
             "\"net_low_ns\": 448.25, \"net_high_ns\": 508.5, "
             "\"overheads\": [{\"label\": \"empty C function\", \"low_ns\": 1.5, \"high_ns\": 2.25}], "
             "\"batches_ns\": [1500, 0, 3000], "
             "\"batches_calls\": [3, 1, 6], \"cycles\": 18446744073709551615, \"cycles_kind\": \"core\", "
             "\"cycles_source\": \"perf\", \"cycles_reason\": \"\", \"usage\": {\"cpu_ns\": 4400, \"switches\": 1, "
             "\"preemptions\": 2, \"minor_faults\": 3, \"major_faults\": 4, \"migrations\": 5, \"reason\": \"\"}, "
             "\"gc_collections\": [50, 18446744073709551615], \"gc_labels\": [\"Gen 0\", \"Gen 1\"], "
             "\"gc_time\": {\"pauses\": 3, \"total_ns\": 200, \"longest_ns\": 100}, "
             "\"memory\": {\"calls\": 5, \"allocations\": 20, \"reallocations\": 1, \"frees\": 19, "
             "\"allocated_bytes\": 640, \"peak_bytes\": 128, \"reason\": null, \"kinds\": {\"tables\": 7}}, "
             "\"interrupted\": null, \"notes\": [\"said \\\"so\\\"\", \"second\"], \"priority\": \"nice 0\", "
             "\"clock\": \"tsc\", \"resolution_ns\": 12.5}], \"comparison\": null}\n");
    assert_true(is_json(text));
    assert_string_equal(
        export_one(empty(), CT_EXPORT_JSON),
        HEAD "{\"name\": \"\\\\xff\\u000a\\\"\", \"n\": 7, \"calls\": 0, \"elapsed_ns\": 0, \"automatic\": false, "
             "\"budget_ns\": null, \"warmup_calls\": 0, \"warmup_ns\": 0, \"per_call_ns\": null, "
             "\"interval_low_ns\": null, \"interval_high_ns\": null, \"min_ns\": null, \"q1_ns\": null, "
             "\"q3_ns\": null, \"max_ns\": null, \"mad_ns\": null, \"outliers_mild\": null, "
             "\"outliers_severe\": null, \"net_low_ns\": null, \"net_high_ns\": null, \"overheads\": [], "
             "\"batches_ns\": [], \"batches_calls\": [], \"cycles\": null, \"cycles_kind\": \"none\", "
             "\"cycles_source\": \"\", \"cycles_reason\": \"no counter\", \"usage\": {\"cpu_ns\": null, "
             "\"switches\": null, \"preemptions\": null, \"minor_faults\": null, \"major_faults\": null, "
             "\"migrations\": null, \"reason\": \"no call was made\"}, \"gc_collections\": [], \"gc_labels\": [], "
             "\"gc_time\": null, \"memory\": {\"calls\": 0, \"allocations\": null, \"reallocations\": null, "
             "\"frees\": null, \"allocated_bytes\": null, \"peak_bytes\": null, \"reason\": \"tracing\", "
             "\"kinds\": {}}, \"interrupted\": \"Error\", \"notes\": [], \"priority\": \"nice 0\", "
             "\"clock\": \"tsc\", \"resolution_ns\": null}], \"comparison\": null}\n");
}

static void test_csv(void **unused) {
    (void)unused;
    const char *lines = strstr(export_one(full(), CT_EXPORT_CSV), "\r\n") + 2;
    assert_string_equal(lines, "\"a|b\",10,10,4500,500.0,450.5,510.0,400.0,410.0,505.0,600.0,0.1,1,2,448.25,508.5,3,"
                               "18446744073709551615,core,4400,1,2,3,4,5,50,18446744073709551615,,,3,200,100,"
                               "5,20,1,19,640,128,,\"said \"\"so\"\"; second\"\r\n");
    lines = strstr(export_one(empty(), CT_EXPORT_CSV), "\r\n") + 2;
    assert_string_equal(lines, "\"\\xff\\n\"\"\",7,0,0,,,,,,,,,,,,,0,,none,,,,,,,,,,,,,,,,,,,,\"Error\",\r\n");
    size_t titles = 1, fields = 1;
    for (const char *at = text; *at != '\r'; at++) titles += *at == ',';
    for (const char *at = lines; *at != '\r'; at++) fields += *at == ',';
    assert_int_equal(titles, fields);
}

static void test_markdown(void **unused) {
    (void)unused;
    assert_string_equal(
        export_one(full(), CT_EXPORT_MARKDOWN),
        "| Name | Calls | Per Call | Cycles | Gen 0 | Gen 1 | GC Time | Allocations | Bytes |\n"
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
        "| a\\|b | 10 | 500.000 ns \xc2\xb1 5.9 % | 1,844,674,407,370,955,264.00 | 50 | 18,446,744,073,709,551,615 | "
        "200.000 ns | 4.00 | 128.00 |\n"
        "\n"
        "- Note: a\\|b: said \"so\"\n"
        "- Note: a\\|b: second\n"
        "- Cycles: CPU cycles per call (core)\n"
        "- Allocations, Bytes: per call, counted in a pass of their own\n");
    assert_string_equal(export_one(empty(), CT_EXPORT_MARKDOWN), "| Name | Calls | Per Call |\n"
                                                                 "|---|---:|---:|\n"
                                                                 "| \\\\xff\\\\n\" | 0 of 7 (Error) | \xe2\x80\x94 |\n"
                                                                 "\n"
                                                                 "- Cycles: unavailable (no counter)\n"
                                                                 "- Memory: unavailable (tracing)\n");
}

/* No value of 0, no empty name, none twice; a result without values is left out. */
static void test_pyperf(void **unused) {
    (void)unused;
    ct_result a = full(), nothing = empty(), again = full(), nameless = full();
    const ct_result *all[] = {&a, &nothing, &again, &nameless};
    again.name = " a|b ", again.name_length = 5;
    nameless.name = "  ", nameless.name_length = 2;
    assert_string_equal(
        export_one(a, CT_EXPORT_PYPERF),
        "{\"version\": \"1.0\", \"metadata\": {\"codetimer_version\": \"" CT_VERSION
        "\", \"codetimer_host\": \"Lua 5.4\"}, \"benchmarks\": [{\"metadata\": {\"name\": \"a|b\", "
        "\"unit\": \"second\", \"timer\": \"tsc\", \"codetimer_calls\": 10, \"codetimer_cycles_kind\": \"core\", "
        "\"codetimer_cycles\": 18446744073709551615, \"codetimer_gc_collections_0\": 50, "
        "\"codetimer_gc_collections_1\": 18446744073709551615}, \"runs\": [{\"metadata\": {\"loops\": 3, "
        "\"duration\": 4.5e-6, \"date\": \"2026-01-31 23:59:58\"}, \"values\": [5e-7, 5e-7]}]}]}\n");
    ct_export_results(all, 4, CT_EXPORT_PYPERF, NULL, text, sizeof text);
    assert_true(is_json(text));
    assert_non_null(strstr(text, "\"name\": \"a|b #3\""));
    assert_non_null(strstr(text, "\"name\": \"unnamed #4\""));
    assert_null(strstr(text, "xff"));
    assert_null(strstr(text, "date"));
}

/* pyperf refuses a file with two benchmarks of one name: also of names that look like those that are given out, differ
 * in what it does not keep, or are alike when they are escaped. */
static void test_pyperf_names(void **unused) {
    (void)unused;
    static const char *const names[] = {"x",         "x ",  "x #2",    "x #2 #2", "\xc2\xa0x\xe3\x80\x80\xe2\x80\x83",
                                        "\n",        "\\n", "unnamed", "",        "x",
                                        "unnamed #9"};
    static const char *const given[] = {"x",        "x #2 #2 #2", "x #2",          "x #2 #2", "x #5",      "\\\\n",
                                        "\\\\n #7", "unnamed",    "unnamed #9 #9", "x #10",   "unnamed #9"};
    enum { COUNT = sizeof names / sizeof names[0] };
    ct_result results[COUNT];
    const ct_result *all[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        results[i] = full();
        results[i].name = names[i], results[i].name_length = strlen(names[i]);
        all[i] = &results[i];
    }
    ct_export_results(all, COUNT, CT_EXPORT_PYPERF, NULL, text, sizeof text);
    assert_true(is_json(text));
    const char *at = text;
    for (size_t i = 0; i < COUNT; i++) {
        char wanted[64];
        snprintf(wanted, sizeof wanted, "\"name\": \"%s\"", given[i]);
        at = strstr(at, "\"name\": ");
        assert_non_null(at);
        assert_memory_equal(at, wanted, strlen(wanted));
        at++;
    }
}

/* compare_to tests as many values against as many: of 60 batches and more there are 60 values, each of neighbours. */
static void test_pyperf_values(void **unused) {
    (void)unused;
    uint64_t ns[150], calls[150];
    ct_result a = full();
    a.batches_ns = ns, a.batches_calls = calls;
    for (size_t i = 0; i < 150; i++) ns[i] = i == 0 ? 0 : 1000, calls[i] = 2;
    for (size_t batches = 59; batches <= 150; batches += 91) {
        a.batches = batches;
        export_one(a, CT_EXPORT_PYPERF);
        size_t values = 1;
        for (const char *at = strstr(text, "\"values\": ["); (at = strchr(at, ',')) != NULL; at++) values++;
        assert_int_equal(values, batches == 59 ? 58 : 60); /* a value of 0 is left out */
        assert_non_null(strstr(text, batches == 59 ? "\"loops\": 2," : "\"loops\": 5,"));
        assert_non_null(strstr(text, batches == 59 ? "\"values\": [5e-7," : "\"values\": [2.5e-7, 5e-7,"));
    }
}

/* Dates that pyperf cannot read are left out, whatever they are. */
static void test_dates(void **unused) {
    (void)unused;
    static const char *const dates[] = {"", "2026", "2026-01-31", "31.01.2026 23:59:58", "2026-01-31x23:59:58"};
    ct_result a = full();
    const ct_result *one = &a;
    a.interrupted = "two\nlines", a.clock = " ";
    for (size_t i = 0; i < sizeof dates / sizeof dates[0]; i++) {
        const ct_export_options options = {.size = sizeof options, .date = dates[i], .machine = "x86_64"};
        ct_export_results(&one, 1, CT_EXPORT_PYPERF, &options, text, sizeof text);
        assert_true(is_json(text) && strstr(text, "\"date\"") == NULL);
        assert_non_null(strstr(text, "\"platform\": \"x86_64\""));
        assert_true(strstr(text, "lines") == NULL && strstr(text, "\"timer\"") == NULL); /* nor what is not one line */
    }
}

static void test_comparison(void **unused) {
    (void)unused;
    ct_result a = full(), b = empty();
    const ct_result *const results[] = {&a, &b};
    ct_ratio ratios[] = {{.known = 1, .ratio = 1, .low = 1, .high = 1, .confidence = 1, .in_turns = 1},
                         {.known = 1,
                          .ratio = 1.5,
                          .low = 1.25,
                          .high = 1.75,
                          .confidence = 0.99,
                          .different = 1,
                          .resolved = 0.01,
                          .in_turns = 1}};
    ct_comparison both = {.count = 2, .results = results, .ratios = ratios, .rounds = 9, .interrupted = "Error"};
    both.twin = (ct_ratio){.confidence = 0.99, .reason = "few rounds"};
    assert_true(ct_export_comparison(&both, CT_EXPORT_JSON, NULL, text, sizeof text) == strlen(text) && is_json(text));
    assert_non_null(strstr(
        text, "\"comparison\": {\"baseline\": 0, \"ratios\": [{\"ratio\": 1.0, \"low\": 1.0, \"high\": 1.0, "
              "\"confidence\": 1.0, \"different\": false, \"resolved\": 0.0, \"in_turns\": true, \"reason\": null}, "
              "{\"ratio\": 1.5, \"low\": 1.25, \"high\": 1.75, \"confidence\": 0.99, \"different\": true, "
              "\"resolved\": 0.01, \"in_turns\": true, \"reason\": null}], \"twin\": {\"ratio\": null, \"low\": null, "
              "\"high\": null, \"confidence\": 0.99, \"different\": null, \"resolved\": null, \"in_turns\": false, "
              "\"reason\": \"few rounds\"}, \"rounds\": 9, \"rounds_tied\": 0, \"rounds_disturbed\": 0, "
              "\"budget_ns\": 0, \"elapsed_ns\": 0, "
              "\"interrupted\": \"Error\", \"notes\": []}}"));
    ct_export_comparison(&both, CT_EXPORT_CSV, NULL, text, sizeof text);
    assert_non_null(strstr(text, ",interrupted,notes,ratio,ratio_low,ratio_high,different\r\n"));
    assert_non_null(strstr(text, ",\"Error\",,1.5,1.25,1.75,1\r\n"));
    ct_export_comparison(&both, CT_EXPORT_MARKDOWN, NULL, text, sizeof text);
    assert_non_null(strstr(text, "| \xe2\x80\x94 | 1.500 (1.250\xe2\x80\x93"
                                 "1.750) | "));
    assert_non_null(strstr(text, "\n- \\\\xff\\\\n\" is 1.50\xc3\x97 slower than a\\|b, 1.25\xe2\x80\x93"
                                 "1.75\n"));
    assert_non_null(strstr(text, "\n- Ended early after 9 rounds (Error)\n"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),       cmocka_unit_test(test_json),       cmocka_unit_test(test_csv),
        cmocka_unit_test(test_markdown),      cmocka_unit_test(test_pyperf),     cmocka_unit_test(test_dates),
        cmocka_unit_test(test_pyperf_values), cmocka_unit_test(test_comparison), cmocka_unit_test(test_pyperf_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
