/* SPDX-License-Identifier: MIT
 *
 * fake_memory.h: memory for the counters that a test can make scarce.
 */
#ifndef FAKE_MEMORY_H
#define FAKE_MEMORY_H

#include <stddef.h>

typedef struct fake_memory_state {
    size_t reserve_most; /* larger reservations are refused */
    size_t commit_left;  /* bytes that may still be committed */
    int locks;           /* held now */
    int locked_ever;
} fake_memory_state;

extern fake_memory_state fake_memory;

#endif
