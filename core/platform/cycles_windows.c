/* SPDX-License-Identifier: MIT
 *
 * cycles_windows.c: QueryThreadCycleTime.
 *
 * What it counts depends on the processor: on x86 the ticks of the constant-rate TSC while the thread was on a CPU, on
 * ARM64 cycles of the core. Both hold the thread's time in the kernel, none of interrupts. Where it fails (Wine has a
 * stub) the thread's CPU time remains, in steps of the timer: about 15.6 ms.
 */
#include "common_windows.h"

#include <stdio.h>
#include <string.h>

#if defined(__aarch64__)
#define KIND   CT__CYCLES_CORE
#define REASON ""
#else
#define KIND   CT__CYCLES_REFERENCE
#define REASON "Windows counts ticks of the constant-rate TSC on x86; cycles of the core need a profiler's driver"
#endif

static uint64_t to_ns(FILETIME time) {
    return ((uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime) * 100; /* 100 ns each: 5,800 years fit */
}

static void give_thread_time(ct__os_cycles *cycles, DWORD error) {
    FILETIME created, ended, kernel, user;
    if (!GetThreadTimes(GetCurrentThread(), &created, &ended, &kernel, &user)) {
        cycles->kind = CT__CYCLES_NONE;
        snprintf(cycles->reason, sizeof cycles->reason,
                 "QueryThreadCycleTime failed (error %lu), and so did GetThreadTimes (error %lu)", error,
                 GetLastError());
        return;
    }
    cycles->kind = CT__CYCLES_THREAD_NS;
    cycles->value = to_ns(kernel) + to_ns(user);
    snprintf(cycles->source, sizeof cycles->source, "thread CPU time");
    snprintf(cycles->reason, sizeof cycles->reason,
             "QueryThreadCycleTime failed (error %lu%s); thread CPU time moves in steps of about 15.6 ms", error,
             ct__os_is_wine() ? ", under Wine" : "");
}

void ct__os_cycles_read(ct__os_cycles *cycles) {
    DWORD last_error = GetLastError();
    ULONG64 count = 0;
    memset(cycles, 0, sizeof *cycles);
    if (QueryThreadCycleTime(GetCurrentThread(), &count)) {
        cycles->kind = KIND;
        cycles->value = count;
        snprintf(cycles->source, sizeof cycles->source, "QueryThreadCycleTime");
        snprintf(cycles->reason, sizeof cycles->reason, "%s", REASON);
    } else {
        give_thread_time(cycles, GetLastError());
    }
    SetLastError(last_error);
}
