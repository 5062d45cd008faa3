/* SPDX-License-Identifier: MIT
 *
 * Guards the perf path of core/platform/cycles_linux.c over a scripted table of system calls: every refusal has its own
 * reason, a foreign descriptor is neither read nor closed, a shared counter is scaled, a forked child opens its own.
 * Fails if the id is not checked, if a final refusal is asked for again, or if time without the hardware counter is
 * taken for zero cycles.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "platform/cycles_linux.h"

/* ---- the script ---- */

static struct {
    int open_error, open_kernel_error; /* the second only where the kernel's part is asked for */
    int read_error, id_error, clock_error, arm_error;
    int paranoid, core_types;
    uint64_t values[3];
    uint64_t given_id;  /* of the event opened last */
    uint64_t id_behind; /* what now sits behind every descriptor */
    unsigned opens, reads, closes;
    struct perf_event_attr attributes;
    unsigned long flags;
} script;

static int open_scripted(struct perf_event_attr *attributes, unsigned long flags) {
    script.opens++;
    script.attributes = *attributes;
    script.flags = flags;
    if (!attributes->exclude_kernel && script.open_kernel_error != 0) return -script.open_kernel_error;
    if (script.open_error != 0) return -script.open_error;
    script.id_behind = ++script.given_id;
    return 40;
}

static int read_scripted(int descriptor, uint64_t values[3]) {
    script.reads++;
    assert_int_equal(descriptor, 40);
    if (script.read_error != 0) return -script.read_error;
    memcpy(values, script.values, sizeof script.values);
    return 0;
}

static int identify_scripted(int descriptor, uint64_t *id) {
    assert_int_equal(descriptor, 40);
    if (script.id_error != 0) return -script.id_error;
    *id = script.id_behind;
    return 0;
}

static int close_scripted(int descriptor) {
    assert_int_equal(descriptor, 40);
    script.closes++;
    return 0;
}

static int arm_scripted(ct__perf_thread *thread) {
    assert_non_null(thread);
    return -script.arm_error;
}

static int read_paranoid_scripted(void) { return script.paranoid; }
static int count_core_types_scripted(void) { return script.core_types; }

static int read_clock_scripted(uint64_t *ns) {
    if (script.clock_error != 0) return -script.clock_error;
    *ns = 123456;
    return 0;
}

static const ct__perf_calls calls = {
    .open = open_scripted,
    .read = read_scripted,
    .id = identify_scripted,
    .close = close_scripted,
    .close_at_exit = arm_scripted,
    .paranoid = read_paranoid_scripted,
    .core_types = count_core_types_scripted,
    .thread_clock = read_clock_scripted,
};

static ct__perf_process process;
static ct__perf_thread thread;

static int start_afresh(void **state) {
    (void)state;
    memset(&script, 0, sizeof script);
    script.paranoid = 2;
    script.core_types = 1;
    memset(&thread, 0, sizeof thread);
    atomic_store(&process.generation, 0);
    atomic_store(&process.refused, 0);
    atomic_store(&process.paranoid, 0);
    atomic_store(&process.core_types, 0);
    return 0;
}

static void set_values(uint64_t value, uint64_t enabled, uint64_t running) {
    script.values[0] = value;
    script.values[1] = enabled;
    script.values[2] = running;
}

static ct__os_cycles read_once(void) {
    ct__os_cycles cycles;
    memset(&cycles, '?', sizeof cycles); /* everything must be written */
    ct__perf_read(&calls, &process, &thread, &cycles);
    return cycles;
}

static void assert_core(uint64_t value, const char *source) {
    ct__os_cycles cycles = read_once();
    assert_int_equal(cycles.kind, CT__CYCLES_CORE);
    assert_true(cycles.value == value);
    assert_string_equal(cycles.source, source);
    assert_string_equal(cycles.reason, "");
}

static void assert_thread_clock(const char *reason_part) {
    ct__os_cycles cycles = read_once();
    assert_int_equal(cycles.kind, CT__CYCLES_THREAD_NS);
    assert_true(cycles.value == 123456);
    assert_string_equal(cycles.source, "thread CPU time");
    if (strstr(cycles.reason, reason_part) == NULL) fail_msg("\"%s\" is not in \"%s\"", reason_part, cycles.reason);
}

/* ---- over the script ---- */

static void test_counts(void **state) {
    (void)state;
    set_values(1000, 500, 500);
    assert_core(1000, "perf_event cpu-cycles");
    set_values(1700, 900, 900);
    assert_core(1700, "perf_event cpu-cycles");
    assert_int_equal(script.opens, 1);
    assert_int_equal(script.attributes.type, PERF_TYPE_HARDWARE);
    assert_int_equal(script.attributes.config, PERF_COUNT_HW_CPU_CYCLES);
    assert_int_equal(script.attributes.inherit, 0);
    assert_true((script.flags & PERF_FLAG_FD_CLOEXEC) != 0);
    ct__perf_close(&calls, &thread);
    ct__perf_close(&calls, &thread);
    assert_int_equal(script.closes, 1);
}

static void test_user_part_alone(void **state) {
    (void)state;
    script.open_kernel_error = EACCES;
    set_values(10, 5, 5);
    assert_core(10, "perf_event cpu-cycles (user)");
    assert_int_equal(script.opens, 2);
    assert_int_equal(script.attributes.exclude_kernel, 1);
}

/* The hardware counter was lent to others for part of the time: each stretch by its own ratio. */
static void test_scaling(void **state) {
    (void)state;
    set_values(1000, 400, 100);
    assert_core(4000, "perf_event cpu-cycles");
    set_values(1500, 500, 200);
    assert_core(4500, "perf_event cpu-cycles"); /* whole again in this stretch */
    const uint64_t big = UINT64_C(1) << 62;
    set_values(1500 + big, 500 + 3 * (big / 4), 200 + big / 2);
    assert_core(4500 + big + big / 2, "perf_event cpu-cycles"); /* needs 128 bits */
}

static void test_never_on_the_hardware(void **state) {
    (void)state;
    set_values(1000, 500, 500);
    assert_core(1000, "perf_event cpu-cycles");
    set_values(1000, 900, 500);
    assert_thread_clock("busy");
    set_values(1600, 1200, 800); /* the next reading covers both stretches: 600 in 300 of 700 ns */
    assert_core(1000 + 600 * 700 / 300, "perf_event cpu-cycles");
    assert_int_equal(script.opens, 1);
}

static void test_stands_still(void **state) {
    (void)state;
    set_values(0, 0, 0);
    assert_core(0, "perf_event cpu-cycles"); /* nothing has run yet */
    set_values(0, 5000, 5000);
    assert_thread_clock("stands still");
    assert_int_equal(script.closes, 1);
    assert_thread_clock("stands still");
    assert_int_equal(script.opens, 1);
}

/* Someone closed all descriptors, and 40 is his file now. */
static void test_foreign_descriptor(void **state) {
    (void)state;
    set_values(1000, 500, 500);
    assert_core(1000, "perf_event cpu-cycles");
    script.id_behind = 999;
    set_values(30, 20, 20);
    assert_core(30, "perf_event cpu-cycles #2"); /* opened anew; other source: not to be subtracted */
    assert_int_equal(script.closes, 0);
    assert_int_equal(script.opens, 2);
    assert_int_equal(script.reads, 2);

    script.id_behind = 999;
    ct__perf_close(&calls, &thread); /* at the thread's end */
    assert_int_equal(script.closes, 0);
}

static void test_closed_descriptor(void **state) {
    (void)state;
    set_values(1000, 500, 500);
    assert_core(1000, "perf_event cpu-cycles");
    script.id_error = EBADF;
    script.open_error = EMFILE;
    assert_thread_clock("EMFILE");
    assert_int_equal(script.reads, 1);
    assert_int_equal(script.closes, 0);
}

static void test_fork(void **state) {
    (void)state;
    set_values(1000, 500, 500);
    assert_core(1000, "perf_event cpu-cycles");
    atomic_fetch_add(&process.generation, 1);
    set_values(20, 10, 10);
    assert_core(20, "perf_event cpu-cycles #2");
    assert_int_equal(script.closes, 1); /* the copy of the parent's */
    assert_core(20, "perf_event cpu-cycles #2");
    assert_int_equal(script.opens, 2);
}

static void assert_refused(int error, int paranoid, const char *reason_part, unsigned opens_after_two) {
    start_afresh(NULL);
    script.open_error = error;
    script.paranoid = paranoid;
    assert_thread_clock(reason_part);
    assert_thread_clock(reason_part);
    if (script.opens != opens_after_two) fail_msg("errno %d: %u tries", error, script.opens);
}

static void test_refusals(void **state) {
    (void)state;
    assert_refused(ENOENT, 2, "no cycle counter in this (virtual) machine", 1);
    assert_refused(ENODEV, 2, "no cycle counter", 1);
    assert_refused(EOPNOTSUPP, 2, "no cycle counter", 1);
    assert_refused(ENOSYS, 2, "ENOSYS", 1);
    assert_refused(EINVAL, 2, "errno 22", 1);
    assert_refused(EACCES, 4, "kernel.perf_event_paranoid=4; set it to 2", 2); /* 2: with and without the kernel */
    assert_refused(EACCES, 3, "CAP_PERFMON", 2);
    assert_refused(EPERM, 2, "seccomp", 2);
    assert_refused(EPERM, CT__PERF_PARANOID_UNKNOWN, "sandbox", 2);
    assert_refused(EMFILE, 2, "ulimit -n", 2); /* may be better next time: asked again */
    assert_refused(ENFILE, 2, "fs.file-max", 2);
    assert_refused(EBUSY, 2, "taken by another program", 2);
}

/* Without permission for the kernel's part the second answer is the true one. */
static void test_no_counter_after_no_permission(void **state) {
    (void)state;
    script.open_kernel_error = EACCES;
    script.open_error = ENOENT;
    assert_thread_clock("no cycle counter");
}

/* A thread that has its counter keeps it, whatever another thread was told. */
static void test_refusal_elsewhere(void **state) {
    (void)state;
    set_values(1000, 500, 500);
    assert_core(1000, "perf_event cpu-cycles");
    atomic_store(&process.refused, EACCES);
    assert_core(1000, "perf_event cpu-cycles");
}

static void test_mixed_cores(void **state) {
    (void)state;
    script.core_types = 2;
    assert_thread_clock("mixes kinds of core");
    assert_thread_clock("mixes kinds of core");
    assert_int_equal(script.opens, 0);
}

static void test_other_failures(void **state) {
    (void)state;
    script.arm_error = ENOMEM; /* it would stay open after the thread's end */
    assert_thread_clock("errno 12");
    assert_int_equal(script.opens, 0);

    start_afresh(state);
    script.id_error = ENOTTY; /* a kernel without ids: our own descriptor is closed again */
    assert_thread_clock("errno 25");
    assert_int_equal(script.closes, 1);

    start_afresh(state);
    script.read_error = EIO;
    assert_thread_clock("errno 5");
    assert_int_equal(script.closes, 1);
    script.read_error = 0;
    assert_core(0, "perf_event cpu-cycles #2");
}

static void test_nothing_at_all(void **state) {
    (void)state;
    script.open_error = ENOENT;
    script.clock_error = EINVAL;
    ct__os_cycles cycles = read_once();
    assert_int_equal(cycles.kind, CT__CYCLES_NONE);
    assert_true(cycles.value == 0);
    assert_non_null(strstr(cycles.reason, "no cycle counter"));
    assert_non_null(strstr(cycles.reason, "no thread CPU time either (errno 22)"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_counts, start_afresh),
        cmocka_unit_test_setup(test_user_part_alone, start_afresh),
        cmocka_unit_test_setup(test_scaling, start_afresh),
        cmocka_unit_test_setup(test_never_on_the_hardware, start_afresh),
        cmocka_unit_test_setup(test_stands_still, start_afresh),
        cmocka_unit_test_setup(test_foreign_descriptor, start_afresh),
        cmocka_unit_test_setup(test_closed_descriptor, start_afresh),
        cmocka_unit_test_setup(test_fork, start_afresh),
        cmocka_unit_test_setup(test_refusals, start_afresh),
        cmocka_unit_test_setup(test_no_counter_after_no_permission, start_afresh),
        cmocka_unit_test_setup(test_refusal_elsewhere, start_afresh),
        cmocka_unit_test_setup(test_mixed_cores, start_afresh),
        cmocka_unit_test_setup(test_other_failures, start_afresh),
        cmocka_unit_test_setup(test_nothing_at_all, start_afresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
