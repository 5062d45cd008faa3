/* SPDX-License-Identifier: MIT
 *
 * fake_usage.c: see fake_usage.h.
 */
#include "fake_usage.h"

#include <string.h>

#include "fake_clock.h"

ct__os_usage fake_usage = {.known = 1, .migrations_known = 1};
double fake_usage_cpu_share = 1;

void fake_usage_reset(void) {
    memset(&fake_usage, 0, sizeof fake_usage);
    fake_usage.known = fake_usage.migrations_known = 1;
    fake_usage_cpu_share = 1;
}

void ct__os_usage_read(ct__os_usage *usage, int with_migrations) {
    *usage = fake_usage;
    usage->cpu_ns += (uint64_t)((double)fake_clock.ns * fake_usage_cpu_share);
    if (!with_migrations) usage->migrations_known = 0;
    int silent = (!usage->known || !usage->migrations_known) && usage->reason[0] == '\0';
    if (silent) strcpy(usage->reason, "not told by the script");
}
