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

/* The one lock of the registry of counters: held for short stretches, never while the system or a host is called. A fork
 * by another thread leaves it free in the child. */
void ct__os_lock(void);
void ct__os_unlock(void);

#endif
