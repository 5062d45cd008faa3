/* SPDX-License-Identifier: MIT
 *
 * calibrate.c: see calibrate.h. All loops are bounded by counts as well as by time: a clock may stand still.
 */
#include "calibrate.h"

#include "platform/platform.h"
#include "platform/ticks.h"
#include "scale.h"

enum { BRACKETS = 10, SPIN_MAX = 200000 };

static const uint64_t window_ns = 400000;
static const uint64_t window_max_ns = 900000;
static const double wanted_ppm = 100;

/* Two halves of one calibration may differ by this beyond their own error. A counter that fails here does not run at a
 * constant rate at all; the finer check comes later, over seconds. */
static const double halves_ppm = 1000;

/* A bracket wider than this says nothing about drift. */
static const uint64_t wide_ns = 20000;

static ct__bracket take_one(void) {
    uint64_t before = ct__ticks_fenced();
    uint64_t ns = ct__os_clock_raw_ns();
    uint64_t after = ct__ticks_fenced();
    ct__bracket bracket = {before, ns, UINT64_MAX};
    if (after < before) return bracket;
    bracket.width = after - before;
    bracket.ticks = before + bracket.width / 2;
    return bracket;
}

ct__bracket ct__bracket_take(void) {
    ct__bracket best = take_one();
    for (int i = 1; i < BRACKETS; i++) {
        ct__bracket next = take_one();
        if (next.width < best.width) best = next;
    }
    return best;
}

static void spin_until(uint64_t raw_ns) {
    for (int i = 0; i < SPIN_MAX && ct__os_clock_raw_ns() < raw_ns; i++) {}
}

static uint64_t rate_between(const ct__bracket *a, const ct__bracket *b) {
    if (a->width == UINT64_MAX || b->width == UINT64_MAX || b->ticks <= a->ticks || b->ns <= a->ns) return 0;
    return ct__scale_rate(b->ns - a->ns, b->ticks - a->ticks);
}

/* Half of each width over the distance. */
static double error_ppm_between(const ct__bracket *a, const ct__bracket *b) {
    return ((double)a->width + (double)b->width) / 2 / (double)(b->ticks - a->ticks) * 1e6;
}

static double difference_ppm(uint64_t rate, uint64_t other) {
    double difference = rate > other ? (double)(rate - other) : (double)(other - rate);
    return difference / (double)other * 1e6;
}

static int halves_agree(const ct__bracket *first, const ct__bracket *middle, const ct__bracket *last) {
    uint64_t one = rate_between(first, middle);
    uint64_t two = rate_between(middle, last);
    if (one == 0 || two == 0) return 0;
    double allowed = halves_ppm + error_ppm_between(first, middle) + error_ppm_between(middle, last);
    return difference_ppm(one, two) <= allowed;
}

void ct__calibrate(ct__calibration *calibration) {
    ct__bracket first = ct__bracket_take();
    spin_until(first.ns + window_ns / 2);
    ct__bracket middle = ct__bracket_take();
    spin_until(first.ns + window_ns);
    ct__bracket last = ct__bracket_take();
    uint64_t rate = rate_between(&first, &last);
    if (rate != 0 && error_ppm_between(&first, &last) > wanted_ppm) {
        spin_until(first.ns + window_max_ns);
        last = ct__bracket_take();
        rate = rate_between(&first, &last);
    }
    calibration->first = first;
    calibration->last = last;
    calibration->rate = rate;
    calibration->agrees = rate != 0 && halves_agree(&first, &middle, &last);
    calibration->error_ppm = rate != 0 ? error_ppm_between(&first, &last) : 0;
}

int ct__calibration_holds(const ct__bracket *from, uint64_t rate, double tolerance_ppm, ct__bracket *now) {
    *now = ct__bracket_take();
    if (now->width == UINT64_MAX) return 0; /* ten brackets in a row went backwards */
    uint64_t width_ns = ct__scale(now->width + from->width, rate);
    if (width_ns > wide_ns) return -1;
    if (now->ticks < from->ticks || now->ns < from->ns) return 0;
    uint64_t elapsed = now->ns - from->ns;
    uint64_t predicted = ct__scale(now->ticks - from->ticks, rate);
    uint64_t off = predicted > elapsed ? predicted - elapsed : elapsed - predicted;
    return (double)off <= (double)width_ns + (double)elapsed * tolerance_ppm / 1e6;
}
