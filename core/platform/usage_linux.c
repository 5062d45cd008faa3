/* SPDX-License-Identifier: MIT
 *
 * usage_linux.c: getrusage(RUSAGE_THREAD), and the thread's scheduler statistics for its migrations (proc(5):
 * /proc/thread-self/sched, there where the kernel was built with CONFIG_SCHED_DEBUG).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "platform.h"

static uint64_t thread_time_ns(void) {
    struct timespec time;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0) return 0;
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* The file's text; 0 if there is none. */
static int read_text(const char *path, char *text, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t length = read(fd, text, size - 1);
    close(fd);
    if (length <= 0) return 0;
    text[length] = '\0';
    return 1;
}

static int read_migrations(uint64_t *migrations) {
    static const char label[] = "nr_migrations";
    char text[4096];
    if (!read_text("/proc/thread-self/sched", text, sizeof text)) return 0;
    const char *at = strstr(text, label);
    const char *colon = at != NULL ? strchr(at, ':') : NULL;
    if (colon == NULL) return 0;
    char *end;
    *migrations = strtoull(colon + 1, &end, 10);
    return end != colon + 1;
}

void ct__os_usage_read(ct__os_usage *usage, int with_migrations) {
    struct rusage counts;
    memset(usage, 0, sizeof *usage);
    usage->migrations_known = with_migrations && read_migrations(&usage->migrations);
    if (!usage->migrations_known)
        snprintf(usage->reason, sizeof usage->reason, "%s",
                 with_migrations ? "migrations: this kernel has no /proc/thread-self/sched (CONFIG_SCHED_DEBUG)"
                                 : "migrations are not counted in turns");
    usage->known = getrusage(RUSAGE_THREAD, &counts) == 0;
    if (!usage->known) {
        snprintf(usage->reason, sizeof usage->reason, "getrusage(RUSAGE_THREAD) was refused");
        return;
    }
    usage->cpu_ns = thread_time_ns();
    usage->switches = (uint64_t)counts.ru_nvcsw;
    usage->preemptions = (uint64_t)counts.ru_nivcsw;
    usage->minor_faults = (uint64_t)counts.ru_minflt;
    usage->major_faults = (uint64_t)counts.ru_majflt;
}
