/* SPDX-License-Identifier: MIT
 *
 * fake_clock.c: see fake_clock.h.
 */
#include "fake_clock.h"

#include <string.h>
#include <unistd.h>

#include "platform/platform.h"
#include "platform/ticks.h"

fake_clock_state fake_clock = {1000000000, 10, 1, 0, 0, 0, 1, 1, 2e9, 0, 0, 0};

void fake_clock_reset(void) {
    fake_clock_state fresh = {1000000000, 10, 1, 0, 0, 0, 1, 1, 2e9, 0, 0, 0};
    fake_clock = fresh;
}

static uint64_t read_true_ns(void) {
    fake_clock.reads++;
    fake_clock.ns += fake_clock.step_ns;
    return fake_clock.ns;
}

uint64_t ct__fake_ticks(void) {
    static uint64_t last;
    uint64_t ns = read_true_ns();
    if (fake_clock.counter_frozen) return last;
    last = (uint64_t)((double)ns * (fake_clock.counter_hz / 1e9)) + (uint64_t)fake_clock.counter_jump;
    return last;
}

static uint64_t read_system_ns(void) {
    uint64_t ns = read_true_ns();
    if (fake_clock.frozen) return fake_clock.frozen_ns;
    return (ns + (uint64_t)fake_clock.system_jump_ns) / fake_clock.grain_ns * fake_clock.grain_ns;
}

uint64_t ct__os_clock_ns(void) { return read_system_ns(); }
uint64_t ct__os_clock_raw_ns(void) { return read_system_ns(); }
const char *ct__os_clock_name(void) { return "fake"; }

void ct__os_counter_probe(ct__os_counter *counter) {
    memset(counter, 0, sizeof *counter);
    counter->name = "counter";
    counter->present = fake_clock.present;
    counter->trusted = fake_clock.trusted;
    strcpy(counter->reason, fake_clock.trusted ? "trusted by the script" : "not trusted by the script");
}

void ct__os_rest(void) { fake_clock.ns += 100000; }
uint64_t ct__os_thread_number(void) {
    static _Thread_local uint64_t mine;
    static uint64_t given;
    if (mine == 0) mine = ++given;
    return mine;
}
uint64_t ct__os_process_number(void) { return (uint64_t)getpid(); }
int ct__os_is_terminal(int fd) { return isatty(fd) == 1; }
