/* SPDX-License-Identifier: MIT
 *
 * identity_macos.c: which process this is: its number and its start time (sysctl(3), KERN_PROC_PID), in microseconds
 * since 1970, and the id of the session since the last boot (kern.bootsessionuuid).
 */
#include "platform.h"

#include <string.h>
#include <sys/sysctl.h>
#include <sys/types.h>
#include <unistd.h>

static uint64_t read_start_time(void) {
    int name[] = {CTL_KERN, KERN_PROC, KERN_PROC_PID, getpid()};
    struct kinfo_proc facts;
    size_t size = sizeof facts;
    if (sysctl(name, 4, &facts, &size, NULL, 0) != 0 || size != sizeof facts) return 0;
    struct timeval started = facts.kp_proc.p_starttime;
    return (uint64_t)started.tv_sec * 1000000 + (uint64_t)started.tv_usec;
}

void ct__os_identity(uint64_t *pid, uint64_t *start_time, uint64_t *uid, char *boot_id, size_t boot_id_size) {
    size_t size = boot_id_size;
    *pid = (uint64_t)getpid();
    *start_time = read_start_time();
    *uid = (uint64_t)geteuid();
    memset(boot_id, 0, boot_id_size);
    if (sysctlbyname("kern.bootsessionuuid", boot_id, &size, NULL, 0) != 0) memset(boot_id, 0, boot_id_size);
    if (boot_id_size > 0) boot_id[boot_id_size - 1] = '\0';
}
