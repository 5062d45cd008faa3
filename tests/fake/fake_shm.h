/* SPDX-License-Identifier: MIT
 *
 * fake_shm.h: files in shared memory, forks and exits as a test scripts them.
 *
 * The files live in this process and have no folder: a name is all there is. A reader in the same process maps them, or
 * reads by copies, with a hook before each copy: what a writer does at that very moment can be scripted without
 * threads.
 */
#ifndef FAKE_SHM_H
#define FAKE_SHM_H

#include <stddef.h>
#include <stdint.h>

typedef struct fake_shm_state {
    int directory_status; /* CT_OK, or the refusal to give */
    int publish_status;
    int control_status;
    int folder_status;
    size_t room;     /* bytes that may still be reserved in files */
    int clear_fails; /* no memory after a fork */
    int dead;        /* owners do not hold their locks */
    int by_copies;   /* views are not mapped */
    void (*before_copy)(size_t offset, size_t size);
    uint64_t pid, start_time;
    int publications, growths, controls, reaps;
} fake_shm_state;

extern fake_shm_state fake_shm;

/* Everything is allowed, 1 GiB of room, pid 77. Files stay. */
void fake_shm_reset(void);

/* The bytes of a file, for reading and writing, and their number; NULL if there is none of that name. */
unsigned char *fake_shm_bytes(const char *path, size_t *size);

/* A file with these bytes; one of that name gets them instead of its own. */
void fake_shm_put(const char *path, const void *bytes, size_t size);

/* A cleaner takes the name away. */
void fake_shm_remove(const char *path);

/* How many names there are. */
int fake_shm_count(void);

/* What happens in the child of a fork, and at a clean exit. */
void fake_shm_fork(void);
void fake_shm_exit(void);

#endif
