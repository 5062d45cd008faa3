/* SPDX-License-Identifier: MIT
 *
 * memory_posix.c: address space by mmap, and the registry's lock, which a fork must not leave locked in the child.
 */
#define _GNU_SOURCE
#include "platform.h"

#include <pthread.h>
#include <sys/mman.h>

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

void *ct__os_memory_reserve(size_t size) {
    void *address = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return address == MAP_FAILED ? NULL : address;
}

int ct__os_memory_commit(void *address, size_t size) { return mprotect(address, size, PROT_READ | PROT_WRITE) == 0; }

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Taken over the fork, so that the registry is whole in the child. */
static void register_fork(void) { pthread_atfork(ct__os_lock, ct__os_unlock, ct__os_unlock); }

void ct__os_lock(void) {
    pthread_once(&once, register_fork);
    pthread_mutex_lock(&lock);
}

void ct__os_unlock(void) { pthread_mutex_unlock(&lock); }
