/* SPDX-License-Identifier: MIT
 *
 * clock_windows.c: the performance counter (QPC), and whether Windows itself builds on the processor's counter.
 *
 * Windows does not say what QPC is made of, but its rate does: 10 MHz is the scaled invariant TSC (or the hypervisor's
 * TSC page); 3.58, 14.3 or 24 MHz are timers outside the processor, chosen where the TSC was found wanting ("Acquiring
 * high-resolution time stamps"). Wine always answers 10 MHz, so that there the rate says nothing. QPC goes on during
 * sleep.
 */
#include "common_windows.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "../scale.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#define SCALED_TSC_HZ 10000000u

/* Constant since the system's start. */
static uint64_t get_rate(void) {
    static _Atomic uint64_t known;
    uint64_t rate = atomic_load_explicit(&known, memory_order_relaxed);
    if (rate != 0) return rate;
    LARGE_INTEGER asked;
    QueryPerformanceFrequency(&asked); /* cannot fail since Windows XP */
    atomic_store_explicit(&known, (uint64_t)asked.QuadPart, memory_order_relaxed);
    return (uint64_t)asked.QuadPart;
}

uint64_t ct__os_clock_ns(void) {
    LARGE_INTEGER now;
    QueryPerformanceCounter(&now);
    return ct__scale_ratio((uint64_t)now.QuadPart, 1000000000u, get_rate());
}

/* QPC is not slewed. */
uint64_t ct__os_clock_raw_ns(void) { return ct__os_clock_ns(); }

const char *ct__os_clock_name(void) { return "qpc"; }

int ct__os_is_wine(void) {
    HMODULE ntdll = GetModuleHandleA("ntdll.dll");
    return ntdll != NULL && GetProcAddress(ntdll, "wine_get_version") != NULL;
}

#if defined(__x86_64__) || defined(__i386__)
static int is_invariant(void) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8) != 0;
}

static void judge(ct__os_counter *counter) {
    const char *why = "Windows builds its own clock on it";
    counter->name = "tsc";
    counter->present = 1;
    counter->trusted = 0;
    if (!is_invariant()) {
        why = "the processor does not promise a constant rate";
    } else if (ct__os_is_wine()) {
        why = "Wine does not tell whether its system trusts it";
    } else if (get_rate() != SCALED_TSC_HZ) {
        why = "Windows builds its own clock on another timer";
    } else {
        counter->trusted = 1;
    }
    snprintf(counter->reason, sizeof counter->reason, "tsc: %s", why);
}
#elif defined(__aarch64__)
static void judge(ct__os_counter *counter) {
    counter->name = "cntvct";
    counter->present = 1;
    counter->trusted = 1;
    snprintf(counter->reason, sizeof counter->reason, "cntvct: one constant rate for all CPUs by its architecture");
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

/* Sleep would last up to 15.6 ms. */
void ct__os_rest(void) { SwitchToThread(); }

uint64_t ct__os_thread_number(void) {
    static _Atomic uint64_t given;
    static _Thread_local uint64_t mine;
    if (mine == 0) mine = atomic_fetch_add(&given, 1) + 1;
    return mine;
}

uint64_t ct__os_process_number(void) { return GetCurrentProcessId(); }

/* _isatty ends the process where the number is not that of an open file, and takes NUL for a terminal; the three
 * standard descriptors are the only ones worth asking. */
int ct__os_is_terminal(int fd) {
    static const DWORD names[] = {STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE};
    DWORD mode;
    if (fd < 0 || fd > 2) return 0;
    HANDLE handle = GetStdHandle(names[fd]);
    return handle != NULL && handle != INVALID_HANDLE_VALUE && GetConsoleMode(handle, &mode) != 0;
}
