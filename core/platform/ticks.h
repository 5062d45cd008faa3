/* SPDX-License-Identifier: MIT
 *
 * ticks.h: the hardware counter, inline, because it sits in the hot path.
 *
 * Every choice of processor is in this one block. Runs read fenced (code of a few ns must not leak out of the window;
 * Intel SDM vol. 3 "RDTSC", abseil nanobenchmark), counters read plain. rdtscp is not used: its CPUID bit can be
 * missing in a virtual machine that executes it. Tests link a scripted counter (CT_FAKE_TICKS).
 */
#ifndef CT_TICKS_H
#define CT_TICKS_H

#include <stdint.h>

#if defined(CT_FAKE_TICKS) /* { */
uint64_t ct__fake_ticks(void);
static inline uint64_t ct__ticks(void) { return ct__fake_ticks(); }
static inline uint64_t ct__ticks_fenced(void) { return ct__fake_ticks(); }

#elif defined(__x86_64__) || defined(__i386__) /* }{ */
static inline uint64_t ct__ticks(void) {
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high)::"memory");
    return (uint64_t)high << 32 | low;
}
static inline uint64_t ct__ticks_fenced(void) {
    uint32_t low, high;
    __asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high)::"memory");
    return (uint64_t)high << 32 | low;
}

#elif defined(__aarch64__) /* }{ */
static inline uint64_t ct__ticks(void) {
    uint64_t value;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value)::"memory");
    return value;
}
static inline uint64_t ct__ticks_fenced(void) {
    uint64_t value;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(value)::"memory");
    return value;
}

#else /* }{ no counter: the probe says so and these are never reached */
static inline uint64_t ct__ticks(void) { return 0; }
static inline uint64_t ct__ticks_fenced(void) { return 0; }
#endif /* } */

#endif
