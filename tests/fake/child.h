/* SPDX-License-Identifier: MIT
 *
 * child.h: runs one scenario in a forked child, for state that a process has only once, and checks there.
 */
#ifndef CHILD_H
#define CHILD_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Like cmocka's asserts, but they end the child instead of jumping into the runner's copy. */
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                    \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#define CHECK_BETWEEN(value, low, high)                                                                                \
    do {                                                                                                               \
        double seen_ = (double)(value);                                                                                \
        if (!(seen_ >= (double)(low) && seen_ <= (double)(high))) {                                                    \
            fprintf(stderr, "%s:%d: %s is %.3f, not in %.3f .. %.3f\n", __FILE__, __LINE__, #value, seen_,             \
                    (double)(low), (double)(high));                                                                    \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* A scenario leaves its counters open on purpose; that is no leak. Only there under LeakSanitizer. */
void __lsan_disable(void) __attribute__((weak));

static inline void child_may_leak(void) {
    if (__lsan_disable != NULL) __lsan_disable();
}

/* 0 if the scenario ran through. */
static inline int run_in_child(void (*scenario)(void)) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        child_may_leak();
        scenario();
        exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

/* A test of cmocka that is a scenario; for files that include cmocka.h first. */
typedef struct child_scenario {
    void (*run)(void);
} child_scenario;

#define IN_CHILD(scenario)                                                                                             \
    {                                                                                                                  \
#scenario, run_scenario, NULL, NULL, &(child_scenario) { scenario }                                            \
    }

#ifdef CMOCKA_H_
static inline void run_scenario(void **state) {
    const child_scenario *scenario = *state;
    assert_int_equal(run_in_child(scenario->run), 0);
}
#endif

#endif
