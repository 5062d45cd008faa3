/* SPDX-License-Identifier: MIT
 *
 * usage_macos.c: the system tells switches and faults of a whole process only (getrusage(2)), so of a thread nothing is
 * known here but its CPU time, which the cycles show already.
 */
#include <stdio.h>
#include <string.h>

#include "platform.h"

void ct__os_usage_read(ct__os_usage *usage, int with_migrations) {
    (void)with_migrations;
    memset(usage, 0, sizeof *usage);
    snprintf(usage->reason, sizeof usage->reason, "macOS counts switches and faults of whole processes only");
}
