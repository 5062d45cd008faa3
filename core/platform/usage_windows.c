/* SPDX-License-Identifier: MIT
 *
 * usage_windows.c: Windows tells switches and faults of a thread to traces only, so nothing is known here.
 */
#include <stdio.h>
#include <string.h>

#include "platform.h"

void ct__os_usage_read(ct__os_usage *usage, int with_migrations) {
    (void)with_migrations;
    memset(usage, 0, sizeof *usage);
    snprintf(usage->reason, sizeof usage->reason, "Windows counts switches and faults of a thread in traces only");
}
