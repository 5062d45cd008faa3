/* SPDX-License-Identifier: MIT
 *
 * identity_windows.c: which process this is: its number, and the time at which it was made, in 100 ns.
 */
#include "platform.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

void ct__os_identity(uint64_t *pid, uint64_t *start_time, uint64_t *uid, char *boot_id, size_t boot_id_size) {
    FILETIME made, ended, kernel, user;
    *pid = GetCurrentProcessId();
    *start_time = 0;
    *uid = 0;
    if (boot_id_size > 0) boot_id[0] = '\0';
    if (GetProcessTimes(GetCurrentProcess(), &made, &ended, &kernel, &user))
        *start_time = (uint64_t)made.dwHighDateTime << 32 | made.dwLowDateTime;
}
