/* SPDX-License-Identifier: MIT
 *
 * memory_windows.c: address space by VirtualAlloc, and the registry's lock. There is no fork to guard it against.
 */
#include "platform.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

void *ct__os_memory_reserve(size_t size) { return VirtualAlloc(NULL, size, MEM_RESERVE, PAGE_NOACCESS); }

int ct__os_memory_commit(void *address, size_t size) {
    return VirtualAlloc(address, size, MEM_COMMIT, PAGE_READWRITE) != NULL;
}

static SRWLOCK lock = SRWLOCK_INIT;

void ct__os_lock(void) { AcquireSRWLockExclusive(&lock); }
void ct__os_unlock(void) { ReleaseSRWLockExclusive(&lock); }
