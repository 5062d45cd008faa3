/* SPDX-License-Identifier: MIT
 *
 * live.h: real segments for the tests over the real platform: a folder of their own in shared memory, and what lies in
 * it.
 */
#ifndef LIVE_H
#define LIVE_H

#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include "child.h"
#include "codetimer.h"

static char live_folder[64];

static inline void live_make_folder(void) {
    strcpy(live_folder,
           access("/dev/shm", W_OK) == 0 ? "/dev/shm/codetimer-test-XXXXXX" : "/tmp/codetimer-test-XXXXXX");
    CHECK(mkdtemp(live_folder) != NULL);
    setenv("CODETIMER_DIR", live_folder, 1);
}

static inline void live_remove_folder(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", live_folder);
    CHECK(system(command) == 0);
}

/* How many segments there are in that state; "last" is one of them. */
static inline int live_count(int state, ct_process *last) {
    ct_listing *listing;
    ct_process process;
    int count = 0;
    CHECK(ct_listing_open(live_folder, &listing) == CT_OK);
    while (ct_listing_next(listing, &process)) {
        if (process.state != state) continue;
        count++;
        if (last != NULL) *last = process;
    }
    ct_listing_close(listing);
    return count;
}

/* Between two scenarios: everything in the folder is dead, and goes. */
static inline int live_reap_all(void) {
    ct_process process;
    int reaped = 0;
    while (live_count(CT_SEGMENT_DEAD, &process) > 0) {
        CHECK(ct_segment_reap(process.path) == CT_OK);
        reaped++;
    }
    return reaped;
}

static inline void live_rest_ms(long ms) {
    struct timespec rest = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&rest, NULL);
}

/* The counter under that key in a view; -1: it is not there. */
static inline int64_t live_find(ct_view *view, const char *key) {
    ct_view_counter one;
    for (uint32_t i = 0; i < ct_view_end(view); i++) {
        if (ct_view_counter_at(view, i, &one) != CT_OK || !one.listed || one.key_length != strlen(key)) continue;
        if (memcmp(one.key, key, one.key_length) == 0) return i;
    }
    return -1;
}

static inline int64_t live_calls(const char *path, const char *key) {
    ct_view *view;
    ct_sample sample;
    if (ct_view_open(path, &view, NULL) != CT_OK) return -2;
    int64_t index = live_find(view, key);
    int64_t calls = index;
    if (index >= 0) calls = ct_view_sample(view, (uint32_t)index, 1, &sample) >= 0 ? (int64_t)sample.calls : -3;
    ct_view_close(view);
    return calls;
}

static inline ct_counter *live_counter(const char *member) {
    static ct_writer *writer;
    ct_counter *counter;
    if (writer == NULL) CHECK(ct_writer_open("script", &writer) == CT_OK);
    CHECK(ct_counter_open(writer, NULL, member, "a sentence", &counter) >= 0);
    return counter;
}

static inline void live_call(ct_counter *counter) {
    ct_token token;
    ct_enter(counter, &token);
    ct_leave(counter, &token, CT_RETURNED);
}

static inline ct_segment segment_now(void) {
    ct_segment segment;
    ct_segment_info(&segment);
    return segment;
}

static inline uint64_t calls_of(const ct_counter *counter) {
    ct_sample sample;
    ct_counter_sample(counter, &sample);
    return sample.calls;
}

/* The first measured calls of a process, which publish it or say why not. */
static inline void call_twice(void) {
    ct_counter *counter = live_counter("shop.handle");
    live_call(counter);
    live_call(counter);
    CHECK(calls_of(counter) == 2);
}

/* A child that runs the function; it is given a pipe to say that it is ready, and then another to be told to end. */
typedef struct live_child {
    pid_t pid;
    int from, to;
} live_child;

static inline live_child live_start(void (*function)(void)) {
    int up[2], down[2];
    live_child child;
    fflush(NULL);
    CHECK(pipe(up) == 0 && pipe(down) == 0);
    child.pid = fork();
    if (child.pid == 0) {
        char byte;
        close(up[0]);
        close(down[1]);
        child_may_leak();
        function();
        CHECK(write(up[1], "r", 1) == 1);
        if (read(down[0], &byte, 1) < 0) exit(1);
        exit(0);
    }
    close(up[1]);
    close(down[0]);
    child.from = up[0];
    child.to = down[1];
    char byte;
    CHECK(read(child.from, &byte, 1) == 1);
    return child;
}

static inline int live_end(live_child child, int signal) {
    int status = -1;
    if (signal != 0) kill(child.pid, signal);
    close(child.to);
    close(child.from);
    waitpid(child.pid, &status, 0);
    return status;
}

#endif
