/* SPDX-License-Identifier: MIT
 *
 * Guards core/platform/priority_linux.c on the real system: raw values (policy, real-time priority, nice, affinity)
 * before and after, what unprivileged users get, other threads, changes by others, nesting. Fails if the wrong thread
 * or process is changed, if a priority is lowered, if defaults are restored in place of what was found, or if someone
 * else's change is overwritten. Every scenario runs in a child of its own, so that nothing of this program is left
 * changed.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "../fake/child.h"
#include "codetimer.h"

/* ---- raw values, asked for without the library ---- */

typedef struct raw_values {
    long policy;
    int rt_priority, nice;
    unsigned char cpus[1024];
} raw_values;

static raw_values read_values(void) {
    raw_values values;
    memset(&values, 0, sizeof values);
    values.policy = syscall(SYS_sched_getscheduler, 0);
    CHECK(syscall(SYS_sched_getparam, 0, &values.rt_priority) == 0);
    values.nice = getpriority(PRIO_PROCESS, 0);
    CHECK(syscall(SYS_sched_getaffinity, 0, sizeof values.cpus, values.cpus) > 0);
    return values;
}

static int are_same(const raw_values *a, const raw_values *b) { return memcmp(a, b, sizeof *a) == 0; }

static int find_allowed_cpu(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CHECK(syscall(SYS_sched_getaffinity, 0, sizeof set, &set) > 0);
    for (size_t cpu = CPU_SETSIZE; cpu > 0; cpu--) {
        if (CPU_ISSET(cpu - 1, &set)) return (int)cpu - 1;
    }
    return -1;
}

static void set_policy(int policy, int priority) { CHECK(syscall(SYS_sched_setscheduler, 0, policy, &priority) == 0); }

static ct_priority *raise_to(const char *level, int cpu) {
    ct_priority *priority = NULL;
    CHECK(ct_priority_raise(level, cpu, &priority) == CT_OK);
    return priority;
}

static void restore_and_free(ct_priority *priority) {
    CHECK(ct_priority_restore(priority) == CT_OK);
    CHECK(priority->restored == 1);
    ct_priority_free(priority);
}

/* Ends a scenario that this system cannot show. */
enum { NOT_HERE = 77 };

/* ---- with the privilege ---- */

static void check_high(void) {
    raw_values before = read_values();
    ct_priority *priority = raise_to("high", -1);
    CHECK(priority->status == CT_OK && priority->reason[0] == '\0');
    CHECK(getpriority(PRIO_PROCESS, 0) == -10);
    CHECK(strcmp(priority->previous, "nice 0") == 0);
    CHECK(strcmp(priority->effective, "nice -10") == 0);
    CHECK(strncmp(priority->scope, "this thread", 11) == 0);
    restore_and_free(priority);
    raw_values after = read_values();
    CHECK(are_same(&before, &after));
}

static void check_highest(void) {
    setpriority(PRIO_PROCESS, 0, 7); /* what was found is not the default */
    raw_values before = read_values();
    ct_priority *priority = raise_to("highest", -1);
    CHECK(getpriority(PRIO_PROCESS, 0) == -20);
    CHECK(strcmp(priority->previous, "nice 7") == 0);
    restore_and_free(priority);
    raw_values after = read_values();
    CHECK(are_same(&before, &after));
    CHECK(after.nice == 7);
}

static void check_realtime(void) {
    setpriority(PRIO_PROCESS, 0, 5);
    set_policy(SCHED_BATCH | SCHED_RESET_ON_FORK, 0);
    raw_values before = read_values();
    ct_priority *priority = raise_to("realtime", -1);
    if (priority->status == CT_EPERM) exit(NOT_HERE); /* a control group without real-time runtime */
    CHECK(priority->status == CT_OK);
    CHECK(strcmp(priority->previous, "SCHED_BATCH, nice 5") == 0);
    CHECK(strcmp(priority->effective, "SCHED_FIFO 1") == 0);
    raw_values raised = read_values();
    CHECK(raised.policy == (SCHED_FIFO | SCHED_RESET_ON_FORK) && raised.rt_priority == 1);
    restore_and_free(priority);
    raw_values after = read_values();
    CHECK(are_same(&before, &after));
}

static void check_idle(void) {
    setpriority(PRIO_PROCESS, 0, 3);
    set_policy(SCHED_IDLE, 0);
    raw_values before = read_values();
    ct_priority *priority = raise_to("high", -1);
    CHECK(priority->status == CT_OK);
    CHECK(strcmp(priority->previous, "SCHED_IDLE, nice 3") == 0);
    CHECK(strcmp(priority->effective, "nice -10") == 0);
    restore_and_free(priority);
    raw_values after = read_values();
    CHECK(are_same(&before, &after));
}

static void check_never_lowered(void) {
    setpriority(PRIO_PROCESS, 0, -15);
    raw_values before = read_values();
    ct_priority *priority = raise_to("high", -1);
    CHECK(priority->status == CT_OK);
    CHECK(strcmp(priority->effective, "nice -15") == 0);
    restore_and_free(priority);
    raw_values after = read_values();
    CHECK(are_same(&before, &after));

    set_policy(SCHED_RR, 9);
    before = read_values();
    static const char *const levels[] = {"high", "highest", "realtime"};
    for (int i = 0; i < 3; i++) {
        priority = raise_to(levels[i], -1);
        CHECK(priority->status == CT_OK);
        CHECK(strcmp(priority->effective, "SCHED_RR 9") == 0);
        restore_and_free(priority);
        after = read_values();
        CHECK(are_same(&before, &after));
    }
}

static void *read_nice(void *nice) {
    *(int *)nice = getpriority(PRIO_PROCESS, 0);
    return NULL;
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *wait_and_read_nice(void *nice) {
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    return read_nice(nice);
}

/* A thread that was there before keeps its own. */
static void check_this_thread_alone(void) {
    pthread_t other;
    int nice = 99;
    pthread_mutex_lock(&gate);
    CHECK(pthread_create(&other, NULL, wait_and_read_nice, &nice) == 0);
    ct_priority *priority = raise_to("high", find_allowed_cpu());
    pthread_mutex_unlock(&gate);
    pthread_join(other, NULL);
    CHECK(nice == 0);
    restore_and_free(priority);
}

static void *restore_elsewhere(void *priority) {
    raw_values before = read_values();
    CHECK(ct_priority_restore(priority) == CT_ETHREAD);
    raw_values after = read_values();
    CHECK(are_same(&before, &after));
    return NULL;
}

static void check_other_thread_refused(void) {
    pthread_t other;
    ct_priority *priority = raise_to("high", -1);
    CHECK(pthread_create(&other, NULL, restore_elsewhere, priority) == 0);
    pthread_join(other, NULL);
    CHECK(getpriority(PRIO_PROCESS, 0) == -10);
    restore_and_free(priority);
    CHECK(getpriority(PRIO_PROCESS, 0) == 0);
}

static void check_changed_by_someone_else(void) {
    ct_priority *priority = raise_to("high", -1);
    setpriority(PRIO_PROCESS, 0, -7);
    CHECK(ct_priority_restore(priority) == CT_ECHANGED);
    CHECK(getpriority(PRIO_PROCESS, 0) == -7);
    CHECK(priority->restored == 0);
    setpriority(PRIO_PROCESS, 0, 0); /* someone has put it back: nothing is left to do */
    restore_and_free(priority);
    CHECK(getpriority(PRIO_PROCESS, 0) == 0);
}

static void check_nesting(void) {
    raw_values before = read_values();
    ct_priority *outer = raise_to("high", -1), *inner = raise_to("highest", find_allowed_cpu());
    CHECK(strcmp(inner->previous, "nice -10") == 0);
    CHECK(ct_priority_restore(outer) == CT_ECHANGED); /* the wrong order is noticed and does nothing */
    CHECK(getpriority(PRIO_PROCESS, 0) == -20);
    restore_and_free(inner);
    CHECK(getpriority(PRIO_PROCESS, 0) == -10);
    restore_and_free(outer);
    raw_values after = read_values();
    CHECK(are_same(&before, &after));
}

/* ---- affinity ---- */

static void check_pin(void) {
    raw_values before = read_values();
    int cpu = find_allowed_cpu();
    ct_priority *priority = raise_to(NULL, cpu);
    CHECK(priority->cpu == cpu && priority->cpu_status == CT_OK && priority->reason[0] == '\0');
    raw_values pinned = read_values();
    unsigned bits = 0;
    for (size_t i = 0; i < sizeof pinned.cpus; i++) bits += (unsigned)__builtin_popcount(pinned.cpus[i]);
    CHECK(bits == 1 && find_allowed_cpu() == cpu);
    CHECK(pinned.nice == before.nice);
    CHECK(ct_priority_restore(priority) == CT_OK);
    raw_values after = read_values();
    CHECK(are_same(&before, &after));
    ct_priority_free(priority);
}

static void check_absent_cpu(void) {
    raw_values before = read_values();
    static const int absent[] = {8000, 8191, 8192, 2147483647};
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        ct_priority *priority = raise_to(NULL, absent[i]);
        CHECK(priority->cpu_status == CT_ENOTSUP);
        CHECK(strstr(priority->reason, "does not exist or is closed to this thread") != NULL);
        restore_and_free(priority);
    }
    raw_values after = read_values();
    CHECK(are_same(&before, &after));
}

/* Needs a second CPU for someone else to change to. */
static void check_pin_changed_by_someone_else(void) {
    raw_values before = read_values();
    int cpu = find_allowed_cpu();
    ct_priority *priority = raise_to(NULL, cpu);
    raw_values pinned = read_values();
    if (memcmp(before.cpus, pinned.cpus, sizeof pinned.cpus) == 0) exit(NOT_HERE);
    for (size_t i = 0; i < sizeof pinned.cpus; i++) pinned.cpus[i] ^= before.cpus[i];
    CHECK(syscall(SYS_sched_setaffinity, 0, sizeof pinned.cpus, pinned.cpus) == 0);
    CHECK(ct_priority_restore(priority) == CT_ECHANGED);
    raw_values after = read_values();
    CHECK(memcmp(after.cpus, pinned.cpus, sizeof pinned.cpus) == 0);
    ct_priority_free(priority);
}

/* ---- without the privilege ---- */

static void become_nobody(void) {
    if (geteuid() == 0) CHECK(setgid(65534) == 0 && setuid(65534) == 0);
}

static void check_denied(void) {
    become_nobody();
    raw_values before = read_values();
    static const char *const levels[] = {"high", "highest", "realtime"};
    static const char *const reasons[] = {"nice -10 refused: best allowed nice is 0", "RLIMIT_NICE", "RLIMIT_RTPRIO"};
    for (int i = 0; i < 3; i++) {
        ct_priority *priority = raise_to(levels[i], -1);
        CHECK(priority->status == CT_EPERM);
        CHECK(strstr(priority->reason, reasons[i]) != NULL);
        CHECK(strcmp(priority->effective, "nice 0") == 0);
        restore_and_free(priority);
    }
    raw_values after = read_values();
    CHECK(are_same(&before, &after));
}

static void check_denied_but_pinned(void) {
    become_nobody();
    ct_priority *priority = raise_to("high", find_allowed_cpu());
    CHECK(priority->status == CT_EPERM && priority->cpu_status == CT_OK);
    restore_and_free(priority);
}

/* Raised with the privilege, put back without: lowering is always allowed. */
static void check_privilege_lost(void) {
    raw_values before = read_values();
    ct_priority *priority = raise_to("highest", -1);
    become_nobody();
    restore_and_free(priority);
    raw_values after = read_values();
    CHECK(are_same(&before, &after));
}

/* RLIMIT_NICE 25 allows nice -5: less than asked for, more than nothing. */
static void check_best_allowed(void) {
    const struct rlimit limit = {25, 25};
    if (setrlimit(RLIMIT_NICE, &limit) != 0) exit(NOT_HERE); /* root without CAP_SYS_RESOURCE */
    become_nobody();
    ct_priority *priority = raise_to("high", -1);
    CHECK(priority->status == CT_EPERM);
    CHECK(strcmp(priority->effective, "nice -5") == 0);
    CHECK(strstr(priority->reason, "best allowed nice is -5") != NULL);
    restore_and_free(priority);
    CHECK(getpriority(PRIO_PROCESS, 0) == 0);
}

/* ---- */

static int may_raise(void) {
    int nice = getpriority(PRIO_PROCESS, 0);
    if (nice == 0 && setpriority(PRIO_PROCESS, 0, -10) == 0) return setpriority(PRIO_PROCESS, 0, 0) == 0;
    return 0;
}

static void run(void (*scenario)(void)) {
    raw_values before = read_values();
    int status = run_in_child(scenario);
    raw_values after = read_values();
    assert_memory_equal(&after, &before, sizeof after); /* no other process is touched */
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_HERE) {
        print_message("skipped: this system cannot show it (see the scenario)\n");
        skip();
    }
    assert_int_equal(status, 0);
}

static void run_privileged(void (*scenario)(void)) {
    if (!may_raise()) {
        print_message("skipped: needs root (CAP_SYS_NICE) at nice 0\n");
        skip();
    }
    run(scenario);
}

/* Shows the refusal also to those who run the tests without the privilege, unless their limits allow more. */
static void run_unprivileged(void (*scenario)(void)) {
    struct rlimit nice = {1, 1}, realtime = {1, 1};
    getrlimit(RLIMIT_NICE, &nice);
    getrlimit(RLIMIT_RTPRIO, &realtime);
    if (nice.rlim_cur > 0 || realtime.rlim_cur > 0 || getpriority(PRIO_PROCESS, 0) != 0) {
        print_message("skipped: needs nice 0, RLIMIT_NICE 0 and RLIMIT_RTPRIO 0\n");
        skip();
    }
    run(scenario);
}

static void test_high(void **state) { (void)state, run_privileged(check_high); }
static void test_highest(void **state) { (void)state, run_privileged(check_highest); }
static void test_realtime(void **state) { (void)state, run_privileged(check_realtime); }
static void test_idle(void **state) { (void)state, run_privileged(check_idle); }
static void test_never_lowered(void **state) { (void)state, run_privileged(check_never_lowered); }
static void test_this_thread_alone(void **state) { (void)state, run_privileged(check_this_thread_alone); }
static void test_other_thread_refused(void **state) { (void)state, run_privileged(check_other_thread_refused); }
static void test_changed_by_someone_else(void **state) { (void)state, run_privileged(check_changed_by_someone_else); }
static void test_nesting(void **state) { (void)state, run_privileged(check_nesting); }
static void test_denied(void **state) { (void)state, run_unprivileged(check_denied); }
static void test_denied_but_pinned(void **state) { (void)state, run_unprivileged(check_denied_but_pinned); }
static void test_privilege_lost(void **state) { (void)state, run_privileged(check_privilege_lost); }
static void test_best_allowed(void **state) { (void)state, run_privileged(check_best_allowed); }
static void test_pin(void **state) { (void)state, run(check_pin); }
static void test_absent_cpu(void **state) { (void)state, run(check_absent_cpu); }
static void test_pin_changed(void **state) { (void)state, run(check_pin_changed_by_someone_else); }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_high),
        cmocka_unit_test(test_highest),
        cmocka_unit_test(test_realtime),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_never_lowered),
        cmocka_unit_test(test_this_thread_alone),
        cmocka_unit_test(test_other_thread_refused),
        cmocka_unit_test(test_changed_by_someone_else),
        cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_denied),
        cmocka_unit_test(test_denied_but_pinned),
        cmocka_unit_test(test_privilege_lost),
        cmocka_unit_test(test_best_allowed),
        cmocka_unit_test(test_pin),
        cmocka_unit_test(test_absent_cpu),
        cmocka_unit_test(test_pin_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
