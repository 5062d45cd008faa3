/* SPDX-License-Identifier: MIT
 *
 * fake_usage.h: a script in place of core/platform/usage_<os>.c. Every reading gives "now" as it stands; tests change
 * it.
 */
#ifndef FAKE_USAGE_H
#define FAKE_USAGE_H

#include "platform/platform.h"

extern ct__os_usage fake_usage;

/* All known, nothing counted, CPU time that goes with the fake clock. */
void fake_usage_reset(void);

/* CPU time per elapsed time of the fake clock; 1 after a reset. */
extern double fake_usage_cpu_share;

#endif
