/* SPDX-License-Identifier: MIT
 *
 * calibrate.h: what rate does the hardware counter have? (Part of floor 1, used by clock.c only.)
 *
 * A bracket is one reading of the system's raw clock between two readings of the counter; of several, the narrowest is
 * kept, so that a preemption in between is not taken for drift. The error of a rate is at most the two half widths over
 * the distance: with brackets of 20 to 50 ns, 100 ppm after 0.4 ms and below 1 ppm after 100 ms.
 */
#ifndef CT_CALIBRATE_H
#define CT_CALIBRATE_H

#include <stdint.h>

typedef struct ct__bracket {
    uint64_t ticks; /* the counter at the middle */
    uint64_t ns;    /* the raw clock */
    uint64_t width; /* in ticks; UINT64_MAX: unusable */
} ct__bracket;

ct__bracket ct__bracket_take(void);

typedef struct ct__calibration {
    int agrees;        /* the counter runs at one rate, as the raw clock sees it */
    ct__bracket first; /* where it began */
    ct__bracket last;
    uint64_t rate; /* see scale.h */
    double error_ppm;
} ct__calibration;

/* Takes 0.4 ms, at most 1 ms where the brackets are wide. */
void ct__calibrate(ct__calibration *calibration);

/* Does the counter still go at "rate" since "from"? Compares with a new bracket, given out in *now.
 * 1: yes, 0: no, -1: this bracket is too wide to tell. */
int ct__calibration_holds(const ct__bracket *from, uint64_t rate, double tolerance_ppm, ct__bracket *now);

#endif
