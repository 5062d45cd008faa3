/* SPDX-License-Identifier: MIT
 *
 * memory_posix.c: address space by mmap, and the registry's lock, which a fork must not leave locked in the child.
 */
#define _GNU_SOURCE
#include "platform.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
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

/* Copied aside and laid over: the old mapping ends in any case, and with it the lock that it held. */
int ct__os_memory_detach(void *address, size_t size) {
    void *copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (copy != MAP_FAILED) memcpy(copy, address, size);
    void *over = mmap(address, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    if (over != MAP_FAILED && copy != MAP_FAILED) memcpy(address, copy, size);
    if (copy != MAP_FAILED) munmap(copy, size);
    return over != MAP_FAILED && copy != MAP_FAILED;
}

void ct__os_lock(void) {
    pthread_once(&once, register_fork);
    pthread_mutex_lock(&lock);
}

void ct__os_unlock(void) { pthread_mutex_unlock(&lock); }
