/* SPDX-License-Identifier: MIT
 *
 * allocations.h: counting what calls ask of CPython's allocators.
 */
#ifndef CTPY_ALLOCATIONS_H
#define CTPY_ALLOCATIONS_H

#include "common.h"

/* Calls "fn" up to "calls" times and counts what this thread asks of the allocators for memory and objects
 * (PYMEM_DOMAIN_MEM and _OBJ) meanwhile. Where that is not possible nothing is called, and counted->reason says why.
 * Nothing of it is left afterwards. Returns 0, or -1 with the exception of a call; counted->calls are then those that
 * were completed. */
int ctpy_count_allocations(PyObject *fn, uint64_t calls, ct_memory *counted);

#endif
