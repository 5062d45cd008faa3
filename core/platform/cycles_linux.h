/* SPDX-License-Identifier: MIT
 *
 * cycles_linux.h: the perf_event path of cycles_linux.c, with its system calls in a table and its state in the caller's
 * hands, so that tests can feed errors and values.
 */
#ifndef CT_CYCLES_LINUX_H
#define CT_CYCLES_LINUX_H

#include <stdatomic.h>
#include <stdint.h>
#include "platform.h"

struct perf_event_attr;

/* One counter of one thread. All zero: none is open. */
typedef struct ct__perf_thread {
    int opened;
    int descriptor;
    uint64_t id;         /* of the kernel: tells our event from whatever else may sit behind the number later */
    unsigned generation; /* of the process when it was opened */
    unsigned openings;   /* how many counters this thread has had */
    int user_only;       /* the kernel's part is not counted */
    uint64_t total;      /* cycles, scaled; what callers see */
    uint64_t last[3];    /* value, enabled ns, running ns at the last reading */
} ct__perf_thread;

/* What a process has learned. All zero: nothing yet. */
typedef struct ct__perf_process {
    atomic_uint generation; /* number of forks behind this process */
    atomic_int refused;     /* errno of a refusal that will not change; 0: none */
    atomic_int paranoid;    /* kernel.perf_event_paranoid at that moment */
    atomic_int core_types;  /* kinds of core with counters of their own; 0: not looked at yet */
} ct__perf_process;

/* Each returns 0 or more, or minus the errno. */
typedef struct ct__perf_calls {
    int (*open)(struct perf_event_attr *attributes, unsigned long flags); /* for the calling thread; the descriptor */
    int (*read)(int descriptor, uint64_t values[3]);                      /* value, enabled ns, running ns */
    int (*id)(int descriptor, uint64_t *id);
    int (*close)(int descriptor);
    int (*close_at_exit)(ct__perf_thread *thread); /* arranges that the end of the thread closes its counter */
    int (*paranoid)(void);                         /* kernel.perf_event_paranoid, CT__PERF_PARANOID_UNKNOWN if hidden */
    int (*core_types)(void);                       /* at least 1 */
    int (*thread_clock)(uint64_t *ns);
} ct__perf_calls;

#define CT__PERF_PARANOID_UNKNOWN (-100)

/* Reads the counter, opening it where needed, else the thread's CPU time with the reason why. */
void ct__perf_read(const ct__perf_calls *calls, ct__perf_process *process, ct__perf_thread *thread,
                   ct__os_cycles *cycles);

/* Closes the counter if it is still ours, and forgets it. */
void ct__perf_close(const ct__perf_calls *calls, ct__perf_thread *thread);

#endif
