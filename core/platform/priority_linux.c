/* SPDX-License-Identifier: MIT
 *
 * priority_linux.c: nice, SCHED_FIFO and the CPU affinity of the calling thread.
 *
 * On Linux all three belong to a thread. They are only ever raised: giving a raised priority back is always
 * allowed, while the other way round may need a privilege that is gone by then (sched(7)). What is restored is what was
 * found, and only while the thread still has what was set here. After every change the values are read back: some
 * sandboxes accept a change and ignore it.
 *
 * The scheduler calls are made directly: musl's wrappers refuse them by design (ENOSYS). The policy is changed by
 * sched_setscheduler, which leaves nice and the time slice as they are; sched_setattr would rewrite them.
 */
#define _GNU_SOURCE
#include "platform.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../codetimer.h"

#ifndef SCHED_DEADLINE
#define SCHED_DEADLINE 6
#endif
#ifndef SCHED_RESET_ON_FORK
#define SCHED_RESET_ON_FORK 0x40000000
#endif

/* ---- raw values ---- */

/* Places in ct__os_priority.saved and .set. */
enum { POLICY, RT_PRIORITY, NICE, RAW_COUNT };

/* The first word is what the kernel reads and writes; musl's struct sched_param is larger. */
typedef struct rt_param {
    int priority;
} rt_param;

static int policy_of(const int64_t raw[RAW_COUNT]) { return (int)raw[POLICY] & ~SCHED_RESET_ON_FORK; }

/* 0 or the errno; "raw" is written in any case. */
static int read_raw(int64_t raw[RAW_COUNT]) {
    rt_param param = {0};
    memset(raw, 0, RAW_COUNT * sizeof raw[0]);
    long policy = syscall(SYS_sched_getscheduler, 0);
    if (policy < 0 || syscall(SYS_sched_getparam, 0, &param) != 0) return errno;
    errno = 0;
    int nice = getpriority(PRIO_PROCESS, 0);
    if (nice == -1 && errno != 0) return errno;
    raw[POLICY] = policy;
    raw[RT_PRIORITY] = param.priority;
    raw[NICE] = nice;
    return 0;
}

static int set_nice(int64_t nice) { return setpriority(PRIO_PROCESS, 0, (int)nice) == 0 ? 0 : errno; }

static int set_policy(int64_t policy, int64_t priority) {
    rt_param param = {(int)priority};
    return syscall(SYS_sched_setscheduler, 0, (int)policy, &param) == 0 ? 0 : errno;
}

static int are_equal(const int64_t a[RAW_COUNT], const int64_t b[RAW_COUNT]) {
    return memcmp(a, b, RAW_COUNT * sizeof a[0]) == 0;
}

static int to_status(int error) {
    if (error == 0) return CT_OK;
    if (error == EPERM || error == EACCES) return CT_EPERM;
    return error == ENOSYS ? CT_ENOTSUP : CT_EOS;
}

/* ---- raising ---- */

static int is_realtime(const int64_t raw[RAW_COUNT]) {
    int policy = policy_of(raw);
    return policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE;
}

/* The least nice value that the limits allow without a privilege: RLIMIT_NICE counts from 20 downwards. */
static int64_t find_best_nice(int64_t present) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NICE, &limit) != 0 || limit.rlim_cur < 1) return present;
    int64_t best = limit.rlim_cur >= 40 ? -20 : 20 - (int64_t)limit.rlim_cur;
    return best < present ? best : present;
}

static int raise_nice(int64_t wanted, const int64_t present[RAW_COUNT], char *reason, size_t size) {
    int error = set_nice(wanted);
    if (error == 0) return CT_OK;
    if (to_status(error) != CT_EPERM) {
        snprintf(reason, size, "nice %d failed (errno %d)", (int)wanted, error);
        return to_status(error);
    }
    int64_t best = find_best_nice(present[NICE]);
    if (best < present[NICE]) (void)set_nice(best);
    snprintf(reason, size,
             "nice %d refused: best allowed nice is %d; needs CAP_SYS_NICE or a higher RLIMIT_NICE (ulimit -e)",
             (int)wanted, (int)best);
    return CT_EPERM;
}

/* A thread that runs only when a CPU is idle stays so whatever its nice. */
static int raise_fair(int64_t wanted, const int64_t present[RAW_COUNT], char *reason, size_t size) {
    if (policy_of(present) == SCHED_IDLE) {
        int error = set_policy(SCHED_OTHER | (present[POLICY] & SCHED_RESET_ON_FORK), 0);
        if (error != 0) {
            snprintf(reason, size, "leaving SCHED_IDLE refused (errno %d); needs CAP_SYS_NICE", error);
            return to_status(error);
        }
    }
    return present[NICE] <= wanted ? CT_OK : raise_nice(wanted, present, reason, size);
}

static int raise_to_realtime(const int64_t present[RAW_COUNT], char *reason, size_t size) {
    int error = set_policy(SCHED_FIFO | (present[POLICY] & SCHED_RESET_ON_FORK), 1);
    if (error == 0) return CT_OK;
    if (to_status(error) == CT_EPERM) {
        snprintf(reason, size,
                 "SCHED_FIFO 1 refused: needs CAP_SYS_NICE or RLIMIT_RTPRIO of 1 or more (ulimit -r), and real-time "
                 "runtime in its control group");
    } else {
        snprintf(reason, size, "SCHED_FIFO 1 failed (errno %d)", error);
    }
    return to_status(error);
}

static int is_reached(int level, int64_t nice, const int64_t raw[RAW_COUNT]) {
    if (is_realtime(raw)) return 1;
    return level != CT__PRIORITY_REALTIME && policy_of(raw) != SCHED_IDLE && raw[NICE] <= nice;
}

int ct__os_priority_raise(int level, ct__os_priority *raw, char *reason, size_t reason_size) {
    int64_t nice = level == CT__PRIORITY_HIGH ? -10 : -20;
    if (reason_size > 0) reason[0] = '\0';
    raw->changed = 0;
    int error = read_raw(raw->saved);
    if (error != 0) {
        snprintf(reason, reason_size, "the priority cannot be read (errno %d): left alone", error);
        return to_status(error);
    }
    memcpy(raw->set, raw->saved, sizeof raw->set);
    if (level == CT__PRIORITY_KEEP || is_reached(level, nice, raw->saved)) return CT_OK;
    int status = level == CT__PRIORITY_REALTIME ? raise_to_realtime(raw->saved, reason, reason_size)
                                                : raise_fair(nice, raw->saved, reason, reason_size);
    error = read_raw(raw->set);
    if (error != 0) return to_status(error);
    raw->changed = !are_equal(raw->set, raw->saved);
    if (status == CT_OK && !is_reached(level, nice, raw->set)) {
        snprintf(reason, reason_size, "the system accepted the change but did not make it");
        return CT_ENOTSUP;
    }
    return status;
}

/* Both steps lower the priority, so that no privilege is needed. */
int ct__os_priority_restore(ct__os_priority *raw) {
    int64_t present[RAW_COUNT];
    if (!raw->changed) return CT_OK;
    int error = read_raw(present);
    if (error != 0) return to_status(error);
    if (!are_equal(present, raw->saved)) {
        if (!are_equal(present, raw->set)) return CT_ECHANGED;
        if (present[NICE] != raw->saved[NICE]) error = set_nice(raw->saved[NICE]);
        if (error != 0) return to_status(error);
        if (present[POLICY] != raw->saved[POLICY]) error = set_policy(raw->saved[POLICY], raw->saved[RT_PRIORITY]);
        if (error != 0) return to_status(error);
    }
    raw->changed = 0;
    return CT_OK;
}

/* ---- affinity ---- */

/* A mask is what the kernel gives, zero-filled; ct__os_priority has room for this much. */
enum { CPU_BYTES = 1024, CPUS_MAX = 8 * CPU_BYTES };

static int read_cpus(unsigned char cpus[CPU_BYTES]) {
    memset(cpus, 0, CPU_BYTES);
    return syscall(SYS_sched_getaffinity, 0, (size_t)CPU_BYTES, cpus) < 0 ? errno : 0;
}

static int set_cpus(const unsigned char cpus[CPU_BYTES]) {
    return syscall(SYS_sched_setaffinity, 0, (size_t)CPU_BYTES, cpus) < 0 ? errno : 0;
}

/* The kernel's mask consists of longs in the machine's byte order: seen as bytes, bit n is elsewhere on big-endian. */
static void set_cpu(unsigned char cpus[CPU_BYTES], int cpu) {
    size_t bits = 8 * sizeof(unsigned long), word = (size_t)cpu / bits;
    unsigned long value = 1ul << (size_t)cpu % bits;
    memset(cpus, 0, CPU_BYTES);
    memcpy(cpus + word * sizeof value, &value, sizeof value);
}

static int has_cpu(const unsigned char cpus[CPU_BYTES], int cpu) {
    unsigned long value;
    size_t bits = 8 * sizeof value;
    memcpy(&value, cpus + (size_t)cpu / bits * sizeof value, sizeof value);
    return (int)(value >> (size_t)cpu % bits & 1);
}

/* "0-3,8" as far as it fits. */
static void put_cpus(const unsigned char cpus[CPU_BYTES], char *text, size_t size) {
    size_t length = 0;
    text[0] = '\0';
    for (int cpu = 0; cpu < CPUS_MAX && length + 16 < size; cpu++) {
        if (!has_cpu(cpus, cpu)) continue;
        int last = cpu;
        while (last + 1 < CPUS_MAX && has_cpu(cpus, last + 1)) last++;
        const char *comma = length > 0 ? "," : "";
        int put = last > cpu ? snprintf(text + length, size - length, "%s%d-%d", comma, cpu, last)
                             : snprintf(text + length, size - length, "%s%d", comma, cpu);
        length += put > 0 ? (size_t)put : 0;
        cpu = last;
    }
}

static int refuse_cpu(int cpu, int error, const unsigned char allowed[CPU_BYTES], char *reason, size_t size) {
    char cpus[64];
    put_cpus(allowed, cpus, sizeof cpus);
    if (error == EINVAL) {
        snprintf(reason, size, "CPU %d does not exist or is closed to this thread, which may use %s", cpu, cpus);
        return CT_ENOTSUP;
    }
    snprintf(reason, size, "pinning to CPU %d refused (errno %d); this thread may use %s", cpu, error, cpus);
    return to_status(error);
}

int ct__os_cpu_pin(int cpu, ct__os_priority *raw, char *reason, size_t reason_size) {
    if (reason_size > 0) reason[0] = '\0';
    raw->cpu_changed = 0;
    int error = read_cpus(raw->saved_cpus);
    if (error != 0) {
        snprintf(reason, reason_size, "the CPU affinity cannot be read (errno %d): left alone", error);
        return to_status(error);
    }
    memcpy(raw->set_cpus, raw->saved_cpus, sizeof raw->set_cpus);
    if (cpu < 0 || cpu >= CPUS_MAX) return refuse_cpu(cpu, EINVAL, raw->saved_cpus, reason, reason_size);
    unsigned char wanted[CPU_BYTES];
    set_cpu(wanted, cpu);
    error = set_cpus(wanted);
    if (error != 0) return refuse_cpu(cpu, error, raw->saved_cpus, reason, reason_size);
    error = read_cpus(raw->set_cpus);
    if (error != 0) return to_status(error);
    raw->cpu_changed = memcmp(raw->set_cpus, raw->saved_cpus, sizeof raw->set_cpus) != 0;
    if (memcmp(raw->set_cpus, wanted, sizeof wanted) == 0) return CT_OK;
    snprintf(reason, reason_size, "the system accepted the pin to CPU %d but did not make it", cpu);
    return CT_ENOTSUP;
}

int ct__os_cpu_restore(ct__os_priority *raw) {
    unsigned char present[CPU_BYTES];
    if (!raw->cpu_changed) return CT_OK;
    int error = read_cpus(present);
    if (error != 0) return to_status(error);
    if (memcmp(present, raw->saved_cpus, sizeof present) != 0) {
        if (memcmp(present, raw->set_cpus, sizeof present) != 0) return CT_ECHANGED;
        error = set_cpus(raw->saved_cpus);
        if (error != 0) return error == EINVAL ? CT_ECHANGED : to_status(error); /* EINVAL: the cpuset has changed */
    }
    raw->cpu_changed = 0;
    return CT_OK;
}

/* ---- texts ---- */

void ct__os_priority_text(char *buffer, size_t size) {
    int64_t raw[RAW_COUNT];
    if (read_raw(raw) != 0) {
        snprintf(buffer, size, "unknown");
        return;
    }
    int nice = (int)raw[NICE], priority = (int)raw[RT_PRIORITY];
    switch (policy_of(raw)) {
    case SCHED_OTHER:
        snprintf(buffer, size, "nice %d", nice);
        return;
    case SCHED_FIFO:
        snprintf(buffer, size, "SCHED_FIFO %d", priority);
        return;
    case SCHED_RR:
        snprintf(buffer, size, "SCHED_RR %d", priority);
        return;
    case SCHED_BATCH:
        snprintf(buffer, size, "SCHED_BATCH, nice %d", nice);
        return;
    case SCHED_IDLE:
        snprintf(buffer, size, "SCHED_IDLE, nice %d", nice);
        return;
    case SCHED_DEADLINE:
        snprintf(buffer, size, "SCHED_DEADLINE");
        return;
    default:
        snprintf(buffer, size, "policy %d, nice %d", policy_of(raw), nice);
    }
}

static int read_file(const char *path, char *text, size_t size) {
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return 0;
    ssize_t got = read(descriptor, text, size - 1);
    close(descriptor);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

/* Lines are "id:controllers:path"; the line without controllers is the unified hierarchy. */
static int is_in_group(const char *lines) {
    for (const char *line = lines; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        const char *names = memchr(line, ':', length);
        const char *path = names != NULL ? memchr(names + 1, ':', length - (size_t)(names + 1 - line)) : NULL;
        if (path != NULL) {
            int on_cpu = names + 1 == path || strncmp(names, ":cpu:", 5) == 0 || strncmp(names, ":cpu,", 5) == 0;
            size_t path_length = length - (size_t)(path + 1 - line);
            if (on_cpu && path_length > 1) return 1;
        }
        line += length + (line[length] == '\n');
    }
    return 0;
}

/* Nice weighs a thread against those of its own group only: the control group, else the session where autogroup is on
 * (sched(7)). Real-time policies know no groups here. */
void ct__os_priority_scope(char *buffer, size_t size) {
    int64_t raw[RAW_COUNT];
    char groups[2048], autogroup[8];
    const char *limit = "";
    if (read_raw(raw) == 0 && is_realtime(raw)) {
        limit = "";
    } else if (read_file("/proc/self/cgroup", groups, sizeof groups) && is_in_group(groups)) {
        limit = "; nice may count only within its control group";
    } else if (read_file("/proc/sys/kernel/sched_autogroup_enabled", autogroup, sizeof autogroup) &&
               autogroup[0] == '1') {
        limit = "; nice counts only within its session (autogroup)";
    }
    snprintf(buffer, size, "this thread%s", limit);
}
