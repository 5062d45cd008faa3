/* SPDX-License-Identifier: MIT
 *
 * clock_linux.c: CLOCK_MONOTONIC, and whether the kernel trusts the hardware counter.
 *
 * The kernel's verdict on the TSC is its own choice of clock source: tsc, kvm-clock and hyperv_clocksource_tsc_page are
 * built on it; hpet or acpi_pm mean that it was found wanting (Documentation/virt/kvm/x86/timekeeping.rst). PR_GET_TSC
 * says whether rdtsc faults in this process (prctl(2)); then the vDSO, which executes it too, must not be used either.
 */
#define _GNU_SOURCE
#include "platform.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#ifndef PR_GET_TSC
#define PR_GET_TSC 25
#endif

enum { TSC_SIGSEGV = 2 };

enum { UNKNOWN, BY_VDSO, BY_SYSTEM_CALL };

static _Atomic int way;

static int counter_faults(void) {
    int mode = 0;
    return prctl(PR_GET_TSC, &mode, 0, 0, 0) == 0 && mode == TSC_SIGSEGV;
}

static int choose_way(void) {
    int chosen = counter_faults() ? BY_SYSTEM_CALL : BY_VDSO;
    atomic_store_explicit(&way, chosen, memory_order_relaxed);
    return chosen;
}

static inline int current_way(void) {
    int chosen = atomic_load_explicit(&way, memory_order_relaxed);
    return chosen != UNKNOWN ? chosen : choose_way();
}

static uint64_t read_ns(clockid_t clock) {
    struct timespec now = {0, 0};
    if (current_way() == BY_VDSO) {
        clock_gettime(clock, &now);
    } else {
        syscall(SYS_clock_gettime, clock, &now);
    }
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t ct__os_clock_ns(void) { return read_ns(CLOCK_MONOTONIC); }
uint64_t ct__os_clock_raw_ns(void) { return read_ns(CLOCK_MONOTONIC_RAW); }

const char *ct__os_clock_name(void) { return current_way() == BY_VDSO ? "monotonic" : "monotonic (system call)"; }

/* The first line of a small file, without its newline. Returns 0 if it cannot be read. */
static int read_line(const char *path, char *line, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t got = read(fd, line, size - 1);
    close(fd);
    if (got <= 0) return 0;
    line[got] = '\0';
    line[strcspn(line, "\n")] = '\0';
    return 1;
}

static int is_built_on_counter(const char *clocksource) {
    static const char *const good[] = {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        if (strcmp(clocksource, good[i]) == 0) return 1;
    return 0;
}

static void ask_kernel(ct__os_counter *counter) {
    char clocksource[64];
    const char *path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    if (!read_line(path, clocksource, sizeof clocksource)) {
        snprintf(counter->reason, sizeof counter->reason,
                 "the kernel's clock source cannot be read (/sys), so the %s is not trusted", counter->name);
        return;
    }
    counter->trusted = is_built_on_counter(clocksource);
    snprintf(counter->reason, sizeof counter->reason,
             counter->trusted ? "%s: constant rate, trusted by the kernel (clock source %s)"
                              : "the kernel does not trust the %s (its clock source is %s)",
             counter->name, clocksource);
}

#if defined(__x86_64__) || defined(__i386__)
/* CPUID 0x80000007 EDX bit 8: invariant TSC (AMD APM vol. 3 appendix E; Intel SDM vol. 3 "Invariant TSC"). */
static void probe_processor(ct__os_counter *counter) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    counter->name = "tsc";
    counter->present = 1;
    if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & 1u << 8)) {
        snprintf(counter->reason, sizeof counter->reason, "the CPU does not call its tsc invariant (CPUID 0x80000007)");
        return;
    }
    ask_kernel(counter);
}
#elif defined(__aarch64__)
static void probe_processor(ct__os_counter *counter) {
    uint64_t frequency = 0;
    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(frequency));
    counter->name = "cntvct";
    counter->present = 1;
    counter->frequency_hz = (double)frequency;
    ask_kernel(counter);
}
#else
static void probe_processor(ct__os_counter *counter) {
    counter->name = "counter";
    snprintf(counter->reason, sizeof counter->reason, "no hardware counter is known for this processor");
}
#endif

void ct__os_counter_probe(ct__os_counter *counter) {
    memset(counter, 0, sizeof *counter);
    counter->name = "counter";
    if (choose_way() == BY_SYSTEM_CALL) {
        snprintf(counter->reason, sizeof counter->reason,
                 "reading the hardware counter is forbidden in this process (prctl PR_SET_TSC)");
        return;
    }
    probe_processor(counter);
}

void ct__os_rest(void) {
    struct timespec tenth_of_ms = {0, 100000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &tenth_of_ms, NULL);
}

uint64_t ct__os_thread_number(void) {
    static _Atomic uint64_t given;
    static _Thread_local uint64_t mine;
    if (mine == 0) mine = atomic_fetch_add(&given, 1) + 1;
    return mine;
}

uint64_t ct__os_process_number(void) { return (uint64_t)getpid(); }

int ct__os_is_terminal(int fd) { return isatty(fd) == 1; }
