/* SPDX-License-Identifier: MIT
 *
 * shm_macos.c: counters are not published on macOS yet. It has no file system in memory, its locks end with the
 * descriptor and not with the mapping, and it cannot reserve space before use as posix_fallocate does; none of that can
 * be bridged without trying it on the system itself.
 */
#define NOT_HERE "live counters of other processes are not supported on macOS yet: counted in this process only"
#include "shm_none.h"
