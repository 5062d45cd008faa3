/* SPDX-License-Identifier: MIT
 *
 * sweep.h: floor 2, an end to what ended processes leave behind.
 */
#ifndef CT_SWEEP_H
#define CT_SWEEP_H

/* So many files may lie in the folder before the segments of ended processes are deleted. */
enum { CT__FILES_KEPT = 128 };

void ct__sweep(const char *directory);

#endif
