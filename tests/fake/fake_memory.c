/* SPDX-License-Identifier: MIT
 *
 * fake_memory.c: see fake_memory.h. Single-threaded: the lock only counts, and never nests.
 */
#include "fake_memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "platform/platform.h"

fake_memory_state fake_memory = {(size_t)1 << 30, (size_t)1 << 30, 0, 0};

void *ct__os_memory_reserve(size_t size) {
    if (size > fake_memory.reserve_most) return NULL;
    void *address = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return address == MAP_FAILED ? NULL : address;
}

int ct__os_memory_commit(void *address, size_t size) {
    if (size > fake_memory.commit_left) return 0;
    fake_memory.commit_left -= size;
    return mprotect(address, size, PROT_READ | PROT_WRITE) == 0;
}

void ct__os_lock(void) {
    if (fake_memory.locks++ != 0) abort(); /* a real lock would never return */
    fake_memory.locked_ever = 1;
}

void ct__os_unlock(void) {
    if (--fake_memory.locks != 0) abort();
}
