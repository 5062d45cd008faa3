/* SPDX-License-Identifier: MIT
 *
 * platform.h: floor 0, the contract that every operating system fulfils.
 *
 * One file per (topic, system): clock_linux.c, cycles_windows.c, ... The build picks the files; no code above asks
 * which system it is on. Tests link tests/fake/ in their place. Rules for all functions here: they may be called from
 * any thread, never print, never abort, and keep no lock while they call the system. Quantities end in their unit.
 */
#ifndef CT_PLATFORM_H
#define CT_PLATFORM_H

#include <stddef.h>
#include <stdint.h>

/* ---- clock_<os>.c ---- */

/* The system's monotonic clock, the one that ct_now_ns falls back to. Nanoseconds; must not fail. */
uint64_t ct__os_clock_ns(void);

/* Its name for ct_clock.source: "monotonic", "qpc", ... Static. */
const char *ct__os_clock_name(void);

/* The clock that the hardware counter is calibrated against: not slewed by NTP where the system has such a one. */
uint64_t ct__os_clock_raw_ns(void);

/* May ct__ticks() be used? What the CPU says (invariant) and what the system says (its own clock source). */
typedef struct ct__os_counter {
    int present;         /* reading it does not fault */
    int trusted;         /* constant rate, synchronised between CPUs, trusted by the system */
    const char *name;    /* "tsc", "cntvct" */
    double frequency_hz; /* if the hardware states it, else 0: calibrate */
    char reason[160];    /* why trusted or not, one phrase */
} ct__os_counter;

void ct__os_counter_probe(ct__os_counter *counter);

/* A short rest (about 0.1 ms or a yield) while another thread finishes the calibration. */
void ct__os_rest(void);

/* A number for this thread, never used again in this process; the forking thread keeps it in the child. */
uint64_t ct__os_thread_number(void);

/* The process: differs between a parent and its forked child. */
uint64_t ct__os_process_number(void);

int ct__os_is_terminal(int fd);

/* ---- cycles_<os>.c ---- */

enum { CT__CYCLES_NONE, CT__CYCLES_CORE, CT__CYCLES_REFERENCE, CT__CYCLES_THREAD_NS };

/* What the system knows of the calling thread: core cycles, reference ticks, or CPU time in ns (floor 1 turns that into
 * reference ticks). "source" names the facility; "reason" says why it is not core cycles and what would help. */
typedef struct ct__os_cycles {
    int kind;
    uint64_t value;
    char source[48];
    char reason[200];
} ct__os_cycles;

void ct__os_cycles_read(ct__os_cycles *cycles);

/* ---- usage_<os>.c ---- */

/* What the system counts of the calling thread since its start. "reason" says in one phrase what it does not tell. */
typedef struct ct__os_usage {
    int known, migrations_known;
    uint64_t cpu_ns, switches, preemptions, minor_faults, major_faults;
    uint64_t migrations; /* only "with_migrations" */
    char reason[120];
} ct__os_usage;

void ct__os_usage_read(ct__os_usage *usage, int with_migrations);

/* ---- priority_<os>.c ---- */

enum { CT__PRIORITY_KEEP, CT__PRIORITY_HIGH, CT__PRIORITY_HIGHEST, CT__PRIORITY_REALTIME };

/* Raw values of the calling thread as the system has them, before (saved) and as we left them (set). */
typedef struct ct__os_priority {
    int64_t saved[8], set[8];
    int changed;     /* the priority was changed and is to be restored */
    int cpu_changed; /* likewise the affinity */
    unsigned char saved_cpus[1024], set_cpus[1024];
} ct__os_priority;

/* Tries; fills "raw" and the texts. Return a CT_ status: CT_OK, CT_EPERM, CT_ENOTSUP, CT_EOS. reason says why less than
 * the request was obtained, scope what it applies to. */
int ct__os_priority_raise(int level, ct__os_priority *raw, char *reason, size_t reason_size);
int ct__os_priority_restore(ct__os_priority *raw); /* CT_OK, CT_ECHANGED, CT_EPERM, CT_EOS */
int ct__os_cpu_pin(int cpu, ct__os_priority *raw, char *reason, size_t reason_size);
int ct__os_cpu_restore(ct__os_priority *raw);

/* The calling thread's priority now, as a phrase: "nice -10", "SCHED_FIFO 1", "HIGH class, HIGHEST thread". */
void ct__os_priority_text(char *buffer, size_t size);

/* What a raised priority applies to here, and what may keep it from having an effect. */
void ct__os_priority_scope(char *buffer, size_t size);

/* ---- memory_<os>.c ---- */

/* Address space without memory behind it; NULL if there is none. Never given back. */
void *ct__os_memory_reserve(size_t size);

/* Zeroed memory behind a part of it (multiples of 64 KiB). Returns 0 if there is none. */
int ct__os_memory_commit(void *address, size_t size);

/* The one lock of the registry of counters: held for short stretches, over system calls only where memory is made or
 * published, never while a host is called. A fork by another thread leaves it free in the child. */
void ct__os_lock(void);
void ct__os_unlock(void);

/* What is done in a forked child before anything else there can use the registry. One function; set before the first
 * lock. */
void ct__os_at_fork(void (*in_child)(void));

/* What is done at a clean exit. */
void ct__os_at_exit(void (*at_exit)(void));

/* Puts zeroed private memory in place of what is mapped there. Returns 0 if there is none: then the memory reads as
 * zeros and must not be written. For a forked child: allocates nothing. */
int ct__os_memory_clear(void *address, size_t size);

/* ---- file_<os>.c ---- */

/* Writes the path as one from the root, without looking at what is there. CT_OK, CT_EINVAL (too long, or there is no
 * current directory). */
int ct__os_path_absolute(const char *path, char *absolute, size_t size);

/* Reads a regular file whole, and never waits for one that is none. CT_OK, its length, and a stamp that another file
 * has not, nor this one after it was written; CT_EFULL (longer than "size": its length, and nothing was read), CT_EBUSY
 * (it was being changed), CT_ENOENT, CT_EPERM, CT_EINVAL (it is no regular file), CT_EOS; of the last three "reason" is
 * a sentence that begins with "it". */
int ct__os_file_read(const char *path, char *buffer, size_t size, uint64_t *length, uint64_t *stamp, char *reason,
                     size_t reason_size);

/* ---- shm_<os>.c ---- */

/* A file in shared memory. Paths end in a NUL; "reason" gets one phrase on failure. */
typedef struct ct__os_file {
    uint64_t device, inode;
} ct__os_file;

/* The folder in which this user's processes publish; makes it (mode 0700) if "create". It is ours, no link, and nobody
 * else's to write. CT_OK, CT_EPERM, CT_ENOENT, CT_ENOTSUP. */
int ct__os_shm_directory(int create, char *path, size_t size, char *reason, size_t reason_size);

/* Makes the file complete with "size" bytes from "address", gives it the name, and maps it over that memory. The
 * process holds the file's lock as long as the mapping lasts; no descriptor stays open. CT_OK, CT_EXISTS (that name is
 * taken: nothing was done), CT_EFULL, CT_EPERM, CT_EOS. */
int ct__os_shm_publish(const char *path, void *address, size_t size, ct__os_file *file, char *reason,
                       size_t reason_size);

/* Lengthens the file by "size" bytes at "offset" and maps them at "address". Checks that the path still leads to
 * "file". */
int ct__os_shm_grow(const char *path, const ct__os_file *file, void *address, size_t offset, size_t size);

/* 1 if there is anything under that name. */
int ct__os_shm_exists(const char *path);

/* 1 if the path still leads to that file. */
int ct__os_shm_is(const char *path, const ct__os_file *file);
void ct__os_shm_unlink(const char *path, const ct__os_file *file);

/* Facts of this process for the header of its segment. */
void ct__os_identity(uint64_t *pid, uint64_t *start_time, uint64_t *uid, char *boot_id, size_t boot_id_size);

/* A file opened for reading: mapped, or read by copies where that is safer (root reading another user's). */
typedef struct ct__os_view {
    int fd;
    const unsigned char *map; /* NULL: by copies */
    size_t size;
    uint64_t uid;
    ct__os_file file;
} ct__os_view;

/* CT_OK, CT_ENOENT, CT_EPERM, CT_EINVAL (no regular file, a link, too short), CT_EOS. */
int ct__os_view_open(const char *path, size_t least, ct__os_view *view, char *reason, size_t reason_size);
void ct__os_view_close(ct__os_view *view);

/* The file's size may have changed: 1 and everything mapped anew if so. */
int ct__os_view_refresh(ct__os_view *view);

/* Copies bytes that lie inside the file. Returns 0 if they could not be had. */
int ct__os_view_copy(const ct__os_view *view, size_t offset, void *to, size_t size);

/* 1: its process holds the lock; 0: it is gone. Root reads another user's by copies ("map" is NULL). */
int ct__os_view_alive(const ct__os_view *view);
int ct__os_view_linked(const ct__os_view *view, const char *path);

/* The same file for a controller: mapped writable, with the controllers' lock held until it is closed. CT_OK, CT_ENOENT
 * (it is gone, or dead), CT_EPERM, CT_EOS. */
typedef struct ct__os_control {
    int fd;
    unsigned char *map;
    size_t size;
} ct__os_control;

int ct__os_control_open(const char *path, const ct__os_file *file, ct__os_control *control);
void ct__os_control_close(ct__os_control *control);

/* Deletes the file if no process holds its lock. "patiently": waits for readers, who hold it for an instant when they
 * ask whether the process lives. CT_OK, CT_ENOENT, CT_EPERM, CT_EOS. */
int ct__os_shm_reap(const char *path, int patiently);

/* The names in a folder, one at a time. */
typedef struct ct__os_folder ct__os_folder;
int ct__os_folder_open(const char *path, ct__os_folder **folder); /* CT_OK, CT_ENOENT, CT_EPERM, CT_ENOMEM, CT_EOS */
int ct__os_folder_next(ct__os_folder *folder, char *name, size_t size); /* 1, or 0 at the end */
void ct__os_folder_close(ct__os_folder *folder);

#endif
