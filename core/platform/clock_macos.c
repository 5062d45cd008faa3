/* SPDX-License-Identifier: MIT
 *
 * clock_macos.c: mach_absolute_time, which macOS builds on the processor's counter.
 *
 * It stands still during sleep and is not slewed. CLOCK_MONOTONIC is not used: it moves in microseconds. Under Rosetta
 * the translated program sees a TSC that is computed for it, so that there the system's clock is the only one to trust.
 */
#include "platform.h"

#include <mach/mach_time.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysctl.h>
#include <time.h>
#include <unistd.h>

#include "../scale.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

/* Nanoseconds per tick as numerator << 32 | denominator; constant. */
static uint64_t get_timebase(void) {
    static _Atomic uint64_t known;
    uint64_t base = atomic_load_explicit(&known, memory_order_relaxed);
    if (base != 0) return base;
    mach_timebase_info_data_t info = {1, 1};
    (void)mach_timebase_info(&info);
    base = (uint64_t)info.numer << 32 | info.denom;
    atomic_store_explicit(&known, base, memory_order_relaxed);
    return base;
}

uint64_t ct__os_clock_ns(void) {
    uint64_t base = get_timebase();
    return ct__scale_ratio(mach_absolute_time(), base >> 32, base & UINT32_MAX);
}

uint64_t ct__os_clock_raw_ns(void) { return ct__os_clock_ns(); }

const char *ct__os_clock_name(void) { return "mach"; }

#if defined(__x86_64__) || defined(__i386__)
static int is_translated(void) {
    int translated = 0;
    size_t size = sizeof translated;
    return sysctlbyname("sysctl.proc_translated", &translated, &size, NULL, 0) == 0 && translated == 1;
}

static int is_invariant(void) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8) != 0;
}

static void judge(ct__os_counter *counter) {
    const char *why = "macOS builds its own clock on it";
    counter->name = "tsc";
    counter->present = 1;
    if (is_translated()) {
        why = "computed by Rosetta for this translated program";
    } else if (!is_invariant()) {
        why = "the processor does not promise a constant rate";
    } else {
        counter->trusted = 1;
    }
    snprintf(counter->reason, sizeof counter->reason, "tsc: %s", why);
}
#elif defined(__aarch64__)
static void judge(ct__os_counter *counter) {
    uint64_t frequency = 0;
    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(frequency));
    counter->name = "cntvct";
    counter->present = 1;
    counter->trusted = 1;
    counter->frequency_hz = (double)frequency;
    snprintf(counter->reason, sizeof counter->reason, "cntvct: macOS builds its own clock on it");
}
#else
static void judge(ct__os_counter *counter) {
    counter->name = "none";
    snprintf(counter->reason, sizeof counter->reason, "no counter known for this kind of processor");
}
#endif

void ct__os_counter_probe(ct__os_counter *counter) {
    memset(counter, 0, sizeof *counter);
    judge(counter);
}

void ct__os_rest(void) {
    const struct timespec tenth_of_ms = {0, 100000};
    nanosleep(&tenth_of_ms, NULL);
}

uint64_t ct__os_thread_number(void) {
    static _Atomic uint64_t given;
    static _Thread_local uint64_t mine;
    if (mine == 0) mine = atomic_fetch_add(&given, 1) + 1;
    return mine;
}

uint64_t ct__os_process_number(void) { return (uint64_t)getpid(); }

int ct__os_is_terminal(int fd) { return isatty(fd) == 1; }
