/* SPDX-License-Identifier: MIT
 *
 * memory_posix.c: address space by mmap, and the registry's lock, which a fork must not leave locked in the child.
 */
#define _GNU_SOURCE
#include "platform.h"

#include <pthread.h>
#include <stdlib.h>
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

static void (*in_child)(void);

static void leave_child(void) {
    if (in_child != NULL) in_child();
    ct__os_unlock();
}

/* Taken over the fork, so that the registry is whole in the child. */
static void register_fork(void) { pthread_atfork(ct__os_lock, ct__os_unlock, leave_child); }

void ct__os_at_fork(void (*function)(void)) { in_child = function; }
void ct__os_at_exit(void (*function)(void)) { atexit(function); }

/* Memory that cannot be written is not charged, so that is to be had even where the system promises no more of it. */
int ct__os_memory_clear(void *address, size_t size) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    if (mmap(address, size, PROT_READ | PROT_WRITE, flags, -1, 0) != MAP_FAILED) return 1;
    (void)mmap(address, size, PROT_READ, flags, -1, 0);
    return 0;
}

void ct__os_lock(void) {
    pthread_once(&once, register_fork);
    pthread_mutex_lock(&lock);
}

void ct__os_unlock(void) { pthread_mutex_unlock(&lock); }
