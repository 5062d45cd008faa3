/* SPDX-License-Identifier: MIT
 *
 * cycles_macos.c: thread_selfcounts, else the thread's CPU time.
 *
 * thread_selfcounts (macOS 12.4 and later) gives the calling thread's own core cycles without any right, but no public
 * header declares it: it is looked up when first needed, so that the library loads where it is missing. In virtual
 * machines it fails or leaves the cycles 0; a thread that calls it has spent some, so that 0 means "not counted".
 */
#include "platform.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* As in the kernel's bsd/sys/resource_private.h: kind 1 fills in these two. */
enum { CYCLES_AND_INSTRUCTIONS = 1 };
typedef struct self_counts {
    uint64_t instructions, cycles;
} self_counts;

typedef int (*selfcounts_function)(uint32_t kind, void *counts, size_t size);

/* An object pointer becomes a function pointer byte by byte: C has no conversion between them. */
static selfcounts_function find_selfcounts(void) {
    static _Atomic(uintptr_t) known; /* 0: not looked up yet, 1: missing */
    uintptr_t address = atomic_load_explicit(&known, memory_order_relaxed);
    if (address == 0) {
        void *symbol = dlsym(RTLD_DEFAULT, "thread_selfcounts");
        address = symbol != NULL ? (uintptr_t)symbol : 1;
        atomic_store_explicit(&known, address, memory_order_relaxed);
    }
    selfcounts_function function = NULL;
    if (address != 1) memcpy(&function, &address, sizeof function);
    return function;
}

/* Returns 0 with the reason if there are none. */
static int read_core_cycles(ct__os_cycles *cycles) {
    selfcounts_function read = find_selfcounts();
    self_counts counts = {0, 0};
    if (read == NULL) {
        snprintf(cycles->reason, sizeof cycles->reason, "thread_selfcounts is missing: macOS 12.4 or later has it");
        return 0;
    }
    if (read(CYCLES_AND_INSTRUCTIONS, &counts, sizeof counts) != 0) {
        snprintf(cycles->reason, sizeof cycles->reason,
                 "thread_selfcounts failed (errno %d): no cycle counter in this (virtual) machine", errno);
        return 0;
    }
    if (counts.cycles == 0) {
        snprintf(cycles->reason, sizeof cycles->reason,
                 "thread_selfcounts counts nothing here: no cycle counter in this (virtual) machine");
        return 0;
    }
    cycles->kind = CT__CYCLES_CORE;
    cycles->value = counts.cycles;
    snprintf(cycles->source, sizeof cycles->source, "thread_selfcounts");
    return 1;
}

static void give_thread_time(ct__os_cycles *cycles) {
    struct timespec used;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) != 0) {
        size_t length = strlen(cycles->reason);
        cycles->kind = CT__CYCLES_NONE;
        snprintf(cycles->reason + length, sizeof cycles->reason - length, "; no thread CPU time either (errno %d)",
                 errno);
        return;
    }
    cycles->kind = CT__CYCLES_THREAD_NS;
    cycles->value = (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
    snprintf(cycles->source, sizeof cycles->source, "thread CPU time");
}

void ct__os_cycles_read(ct__os_cycles *cycles) {
    int error = errno;
    memset(cycles, 0, sizeof *cycles);
    if (!read_core_cycles(cycles)) give_thread_time(cycles);
    errno = error;
}
