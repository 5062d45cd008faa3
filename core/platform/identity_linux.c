/* SPDX-License-Identifier: MIT
 *
 * identity_linux.c: which process this is. The number alone is used again; with its start time (proc(5), field 22 of
 * /proc/self/stat, in clock ticks since the boot) it is unique until the next boot, which has an id of its own.
 */
#define _GNU_SOURCE
#include "platform.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t read_file(const char *path, char *text, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t got = read(fd, text, size - 1);
    close(fd);
    if (got < 0) got = 0;
    text[got] = '\0';
    return (size_t)got;
}

/* Field 2 is the program's name in brackets and may contain anything, so the count starts behind the last ")". */
static uint64_t read_start_time(void) {
    char text[1024];
    if (read_file("/proc/self/stat", text, sizeof text) == 0) return 0;
    char *at = strrchr(text, ')');
    for (int field = 2; at != NULL && field < 22; field++) at = strchr(at + 1, ' ');
    return at != NULL ? strtoull(at + 1, NULL, 10) : 0;
}

void ct__os_identity(uint64_t *pid, uint64_t *start_time, uint64_t *uid, char *boot_id, size_t boot_id_size) {
    *pid = (uint64_t)getpid();
    *start_time = read_start_time();
    *uid = (uint64_t)geteuid();
    read_file("/proc/sys/kernel/random/boot_id", boot_id, boot_id_size);
    boot_id[strcspn(boot_id, "\n")] = '\0';
}
