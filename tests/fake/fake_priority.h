/* SPDX-License-Identifier: MIT
 *
 * fake_priority.h: a script in place of core/platform/priority_<os>.c. A thread's priority is the number "level", its
 * affinity the number "cpu" (-1: any); tests say what is refused and change both behind the library's back.
 */
#ifndef FAKE_PRIORITY_H
#define FAKE_PRIORITY_H

typedef struct fake_priority_state {
    int level, cpu;
    int raise_status, restore_status; /* CT_OK, or the refusal to give */
    int pin_status, unpin_status;
    int calls; /* of raise, restore, pin and unpin that got as far as a change */
} fake_priority_state;

extern fake_priority_state fake_priority;

/* Level 0, any CPU, everything allowed. */
void fake_priority_reset(void);

#endif
