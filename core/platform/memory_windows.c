/* SPDX-License-Identifier: MIT
 *
 * memory_windows.c: address space by VirtualAlloc, and the registry's lock. There is no fork to guard it against.
 */
#include "platform.h"

#include <stdlib.h>
#include <string.h>

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

void *ct__os_memory_reserve(size_t size) { return VirtualAlloc(NULL, size, MEM_RESERVE, PAGE_NOACCESS); }

int ct__os_memory_commit(void *address, size_t size) {
    return VirtualAlloc(address, size, MEM_COMMIT, PAGE_READWRITE) != NULL;
}

int ct__os_memory_clear(void *address, size_t size) {
    memset(address, 0, size);
    return 1;
}

static SRWLOCK lock = SRWLOCK_INIT;

void ct__os_lock(void) { AcquireSRWLockExclusive(&lock); }
void ct__os_unlock(void) { ReleaseSRWLockExclusive(&lock); }

void ct__os_at_fork(void (*in_child)(void)) { (void)in_child; }
void ct__os_at_exit(void (*at_exit)(void)) { atexit(at_exit); }
