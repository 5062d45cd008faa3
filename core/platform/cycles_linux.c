/* SPDX-License-Identifier: MIT
 *
 * cycles_linux.c: the cycles of the calling thread by perf_event, else its CPU time.
 *
 * Each thread owns one perf event that counts its core cycles; the end of the thread closes it. Before every use the
 * kernel is asked for the event's id: a program that turns into a daemon closes all descriptors, and the number may
 * stand for its own file by now, which must be neither read nor closed. A forked child inherits the parent's event and
 * opens its own instead. A counter opened anew has another source text, because its values must not be subtracted from
 * those of an earlier one.
 *
 * Invariant: "total" never falls. When the kernel had to share the hardware counter (running < enabled), each stretch
 * between two readings is scaled by its own ratio.
 *
 * The cost of asking in vain is paid once: a refusal that cannot change is remembered for the process.
 */
#define _GNU_SOURCE
#include "cycles_linux.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../scale.h"

enum { VALUE, ENABLED, RUNNING };

/* Within this time of counting, a counter that works has counted something. */
#define STANDS_STILL_NS 1000

/* ---- why not ---- */

static int is_final(int error) {
    return error == ENOENT || error == ENODEV || error == EOPNOTSUPP || error == ENOSYS || error == EACCES ||
           error == EPERM || error == EINVAL || error == ENODATA || error == EXDEV;
}

static void explain_permission(int level, char *reason, size_t size) {
    if (level == CT__PERF_PARANOID_UNKNOWN) {
        snprintf(reason, size, "perf events refused, probably by a container's or sandbox's filter; add CAP_PERFMON");
        return;
    }
    if (level <= 2) {
        snprintf(reason, size,
                 "perf events refused although kernel.perf_event_paranoid=%d: probably a container's seccomp filter; "
                 "add CAP_PERFMON or relax the filter",
                 level);
        return;
    }
    snprintf(reason, size,
             "perf events refused: kernel.perf_event_paranoid=%d; set it to 2 (sysctl), or add CAP_PERFMON", level);
}

static void explain(int error, int level, char *reason, size_t size) {
    switch (error) {
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
        snprintf(reason, size, "no cycle counter in this (virtual) machine; a virtual PMU or bare metal would help");
        return;
    case EACCES:
    case EPERM:
        explain_permission(level, reason, size);
        return;
    case ENOSYS:
        snprintf(reason, size, "no perf_event_open in this kernel, emulator or container (ENOSYS); run outside of it");
        return;
    case EMFILE:
        snprintf(reason, size, "no file descriptor left for the counter (EMFILE); raise the limit: ulimit -n");
        return;
    case ENFILE:
        snprintf(reason, size, "no file descriptor left in the whole system (ENFILE); raise fs.file-max");
        return;
    case EBUSY:
        snprintf(reason, size, "the cycle counter is taken by another program (EBUSY); stop that profiler");
        return;
    case ENODATA:
        snprintf(reason, size, "this machine has a cycle counter that stands still; a proper virtual PMU would help");
        return;
    case EXDEV:
        snprintf(reason, size,
                 "this machine mixes kinds of core and one counter covers one kind only; no total can be given");
        return;
    default:
        snprintf(reason, size, "perf events do not work here (errno %d)", error);
    }
}

/* Remembers what cannot change. The level is stored first: whoever sees "refused" sees its level too. */
static void note_refusal(const ct__perf_calls *calls, ct__perf_process *process, int error, char *reason, size_t size) {
    int level = CT__PERF_PARANOID_UNKNOWN;
    if (error == EACCES || error == EPERM) level = calls->paranoid();
    explain(error, level, reason, size);
    if (!is_final(error)) return;
    atomic_store_explicit(&process->paranoid, level, memory_order_relaxed);
    atomic_store_explicit(&process->refused, error, memory_order_release);
}

/* ---- one counter ---- */

static int is_ours(const ct__perf_calls *calls, const ct__perf_thread *thread) {
    uint64_t id = 0;
    return calls->id(thread->descriptor, &id) >= 0 && id == thread->id;
}

void ct__perf_close(const ct__perf_calls *calls, ct__perf_thread *thread) {
    if (!thread->opened) return;
    if (is_ours(calls, thread)) (void)calls->close(thread->descriptor);
    thread->opened = 0;
}

static int open_event(const ct__perf_calls *calls, int user_only) {
    struct perf_event_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.size = sizeof attributes;
    attributes.type = PERF_TYPE_HARDWARE;
    attributes.config = PERF_COUNT_HW_CPU_CYCLES;
    attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    attributes.exclude_kernel = user_only != 0;
    attributes.exclude_hv = 1;
    return calls->open(&attributes, PERF_FLAG_FD_CLOEXEC);
}

/* A generic event counts on one kind of core only: a thread that moves to another kind would be counted in part. */
static int has_one_core_type(const ct__perf_calls *calls, ct__perf_process *process) {
    int types = atomic_load_explicit(&process->core_types, memory_order_relaxed);
    if (types == 0) {
        types = calls->core_types();
        atomic_store_explicit(&process->core_types, types < 1 ? 1 : types, memory_order_relaxed);
    }
    return types <= 1;
}

/* Returns 0 or minus the errno. Without permission for the kernel's part the user's part is counted alone: the
 * permission is checked before the hardware, so that only the second answer tells whether there is a counter. */
static int open_counter(const ct__perf_calls *calls, ct__perf_process *process, ct__perf_thread *thread) {
    if (!has_one_core_type(calls, process)) return -EXDEV;
    int armed = calls->close_at_exit(thread);
    if (armed < 0) return armed;
    int user_only = 0;
    int descriptor = open_event(calls, user_only);
    if (descriptor == -EACCES || descriptor == -EPERM) {
        user_only = 1;
        descriptor = open_event(calls, user_only);
    }
    if (descriptor < 0) return descriptor;
    uint64_t id = 0;
    int told = calls->id(descriptor, &id);
    if (told < 0) {
        (void)calls->close(descriptor); /* opened just now, so it is ours */
        return told;
    }
    thread->opened = 1;
    thread->descriptor = descriptor;
    thread->id = id;
    thread->generation = atomic_load_explicit(&process->generation, memory_order_relaxed);
    thread->openings++;
    thread->user_only = user_only;
    thread->total = 0;
    memset(thread->last, 0, sizeof thread->last);
    return 0;
}

/* Adds what was counted since the last reading. Returns 0, or -EAGAIN when the hardware counter was never ours in the
 * meantime: then there is no value now, and the next reading covers this stretch too. */
static int add_counted(ct__perf_thread *thread, const uint64_t now[3]) {
    uint64_t counted = now[VALUE] - thread->last[VALUE];
    uint64_t enabled = now[ENABLED] - thread->last[ENABLED];
    uint64_t running = now[RUNNING] - thread->last[RUNNING];
    if (running == 0 && enabled > 0) return -EAGAIN;
    if (enabled > running) counted = ct__scale_ratio(counted, enabled, running);
    thread->total += counted;
    memcpy(thread->last, now, sizeof thread->last);
    return 0;
}

static int read_counter(const ct__perf_calls *calls, ct__perf_thread *thread) {
    uint64_t now[3] = {0, 0, 0};
    int got = calls->read(thread->descriptor, now);
    if (got < 0) return got;
    if (now[VALUE] == 0 && now[RUNNING] >= STANDS_STILL_NS) return -ENODATA;
    return add_counted(thread, now);
}

/* ---- a reading ---- */

/* The calling thread's own counter of this process, opened if need be. Returns 0 or minus the errno. */
static int have_counter(const ct__perf_calls *calls, ct__perf_process *process, ct__perf_thread *thread) {
    if (thread->opened) {
        unsigned generation = atomic_load_explicit(&process->generation, memory_order_relaxed);
        if (thread->generation != generation) {
            ct__perf_close(calls, thread);
        } else if (!is_ours(calls, thread)) {
            thread->opened = 0;
        }
    }
    return thread->opened ? 0 : open_counter(calls, process, thread);
}

static void give_counter(const ct__perf_thread *thread, ct__os_cycles *cycles) {
    const char *part = thread->user_only ? " (user)" : "";
    cycles->kind = CT__CYCLES_CORE;
    cycles->value = thread->total;
    cycles->reason[0] = '\0';
    if (thread->openings > 1) {
        snprintf(cycles->source, sizeof cycles->source, "perf_event cpu-cycles%s #%u", part, thread->openings);
    } else {
        snprintf(cycles->source, sizeof cycles->source, "perf_event cpu-cycles%s", part);
    }
}

/* The reason why there is no counter is in place already. */
static void give_thread_clock(const ct__perf_calls *calls, ct__os_cycles *cycles) {
    uint64_t ns = 0;
    int got = calls->thread_clock(&ns);
    if (got >= 0) {
        cycles->kind = CT__CYCLES_THREAD_NS;
        cycles->value = ns;
        snprintf(cycles->source, sizeof cycles->source, "thread CPU time");
        return;
    }
    size_t length = strlen(cycles->reason);
    cycles->kind = CT__CYCLES_NONE;
    cycles->value = 0;
    cycles->source[0] = '\0';
    snprintf(cycles->reason + length, sizeof cycles->reason - length, "; no thread CPU time either (errno %d)", -got);
}

void ct__perf_read(const ct__perf_calls *calls, ct__perf_process *process, ct__perf_thread *thread,
                   ct__os_cycles *cycles) {
    int refused = atomic_load_explicit(&process->refused, memory_order_acquire);
    if (refused != 0 && !thread->opened) {
        explain(refused, atomic_load_explicit(&process->paranoid, memory_order_relaxed), cycles->reason,
                sizeof cycles->reason);
        give_thread_clock(calls, cycles);
        return;
    }
    int got = have_counter(calls, process, thread);
    if (got == 0) got = read_counter(calls, thread);
    if (got == 0) {
        give_counter(thread, cycles);
        return;
    }
    if (got == -EAGAIN) {
        snprintf(cycles->reason, sizeof cycles->reason,
                 "other perf events kept the cycle counter busy all the time; stop that profiler");
    } else {
        ct__perf_close(calls, thread);
        note_refusal(calls, process, -got, cycles->reason, sizeof cycles->reason);
    }
    give_thread_clock(calls, cycles);
}

/* ---- the system calls ---- */

static ct__perf_process process_state;
static _Thread_local ct__perf_thread thread_state;

static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static pthread_key_t exit_key;
static int prepare_error;

static int open_perf(struct perf_event_attr *attributes, unsigned long flags) {
    long descriptor = syscall(SYS_perf_event_open, attributes, 0, -1, -1, flags);
    return descriptor < 0 ? -errno : (int)descriptor;
}

static int read_perf(int descriptor, uint64_t values[3]) {
    size_t wanted = 3 * sizeof values[0];
    ssize_t got = read(descriptor, values, wanted);
    if (got < 0) return -errno;
    return got == (ssize_t)wanted ? 0 : -EIO;
}

static int identify_perf(int descriptor, uint64_t *id) {
    return ioctl(descriptor, PERF_EVENT_IOC_ID, id) < 0 ? -errno : 0;
}

static int close_perf(int descriptor) { return close(descriptor) < 0 ? -errno : 0; }

static int read_paranoid(void) {
    char text[16] = "";
    int descriptor = open("/proc/sys/kernel/perf_event_paranoid", O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return CT__PERF_PARANOID_UNKNOWN;
    ssize_t got = read(descriptor, text, sizeof text - 1);
    close(descriptor);
    return got > 0 ? (int)strtol(text, NULL, 10) : CT__PERF_PARANOID_UNKNOWN;
}

/* Event sources that are cores have a file "cpus": one source on most machines, cpu_core and cpu_atom or one for each
 * ARM core where kinds are mixed. */
static int count_core_types(void) {
    DIR *sources = opendir("/sys/bus/event_source/devices");
    if (sources == NULL) return 1;
    int types = 0;
    for (struct dirent *entry = readdir(sources); entry != NULL; entry = readdir(sources)) {
        char path[300];
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/cpus", entry->d_name);
        types += faccessat(dirfd(sources), path, F_OK, 0) == 0;
    }
    closedir(sources);
    return types < 1 ? 1 : types;
}

static int read_thread_clock(uint64_t *ns) {
    struct timespec used;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) != 0) return -errno;
    *ns = (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
    return 0;
}

static int arrange_close(ct__perf_thread *thread);

static const ct__perf_calls system_calls = {
    .open = open_perf,
    .read = read_perf,
    .id = identify_perf,
    .close = close_perf,
    .close_at_exit = arrange_close,
    .paranoid = read_paranoid,
    .core_types = count_core_types,
    .thread_clock = read_thread_clock,
};

static void close_at_thread_exit(void *thread) { ct__perf_close(&system_calls, thread); }

static void count_fork(void) { atomic_fetch_add_explicit(&process_state.generation, 1, memory_order_relaxed); }

static void prepare(void) {
    prepare_error = pthread_key_create(&exit_key, close_at_thread_exit);
    if (prepare_error == 0) prepare_error = pthread_atfork(NULL, NULL, count_fork);
}

/* Called before a thread's counter is opened: without this it would stay open after the thread's end. */
static int arrange_close(ct__perf_thread *thread) {
    if (pthread_once(&prepared, prepare) != 0 || prepare_error != 0) return -ENOMEM;
    return -pthread_setspecific(exit_key, thread);
}

void ct__os_cycles_read(ct__os_cycles *cycles) {
    int error = errno;
    ct__perf_read(&system_calls, &process_state, &thread_state, cycles);
    errno = error;
}
