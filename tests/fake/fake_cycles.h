/* SPDX-License-Identifier: MIT
 *
 * fake_cycles.h: a script in place of core/platform/cycles_<os>.c. Every reading gives the fields below; afterwards
 * "value" moves on by "step".
 */
#ifndef FAKE_CYCLES_H
#define FAKE_CYCLES_H

#include <stdint.h>

typedef struct fake_cycles_state {
    int kind; /* CT__CYCLES_* */
    uint64_t value, step;
    const char *source, *reason;
    uint64_t reads;
} fake_cycles_state;

extern fake_cycles_state fake_cycles;

/* Thread CPU time: 1 ms so far, 1 us per reading. */
void fake_cycles_reset(void);

#endif
