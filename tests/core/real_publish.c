/* SPDX-License-Identifier: MIT
 *
 * Guards publishing over the real system: what becomes of the file at exit, kill, fork and exec; that the death of a
 * parent is not hidden by a child; programs that close
 * all descriptors, change their folder or have an odd umask; a cleaner. Fails if a descriptor stays open, or a child
 * keeps its parent's file.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <sys/prctl.h>

#include "live.h"

static const char *own_path;

/* ---- the end ---- */

static void test_exit(void **unused) {
    (void)unused;
    ct_process process;
    live_child child = live_start(call_twice);
    assert_int_equal(live_count(CT_SEGMENT_LIVE, &process), 1);
    assert_true(process.pid == child.pid && process.start_time != 0 && process.uid == geteuid());
    assert_true(live_calls(process.path, "shop/shop.handle") == 2);
    assert_int_equal(ct_segment_reap(process.path), CT_EPERM);
    assert_int_equal(live_end(child, 0), 0);
    assert_true(live_count(CT_SEGMENT_LIVE, NULL) == 0 && live_count(CT_SEGMENT_DEAD, NULL) == 0);
}

static void test_kept(void **unused) {
    (void)unused;
    ct_process process;
    setenv("CODETIMER_KEEP", "1", 1);
    live_child child = live_start(call_twice);
    assert_int_equal(live_end(child, 0), 0);
    unsetenv("CODETIMER_KEEP");
    assert_int_equal(live_count(CT_SEGMENT_DEAD, &process), 1);
    assert_true(live_calls(process.path, "shop/shop.handle") == 2);
    assert_int_equal(live_reap_all(), 1);
}

static void test_switched_off(void **unused) {
    (void)unused;
    setenv("CODETIMER_PUBLISH", "0", 1);
    live_child child = live_start(call_twice);
    unsetenv("CODETIMER_PUBLISH");
    assert_int_equal(live_count(CT_SEGMENT_LIVE, NULL), 0);
    assert_int_equal(live_end(child, 0), 0);
}

static void test_killed(void **unused) {
    (void)unused;
    ct_process process;
    live_child child = live_start(call_twice);
    live_end(child, SIGKILL);
    assert_int_equal(live_count(CT_SEGMENT_DEAD, &process), 1);
    assert_true(live_calls(process.path, "shop/shop.handle") == 2);
    assert_int_equal(live_reap_all(), 1);
}

/* Killed in a fast loop, at any moment. */
static void run_and_kill(long us, int *unclean) {
    ct_process process;
    ct_view *view;
    ct_sample sample;
    int up[2];
    char byte;
    assert_int_equal(pipe(up), 0);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        ct_counter *counter = live_counter("loop");
        ct_counter_record(counter, 7, CT_FAILED);
        if (write(up[1], "r", 1) != 1) _exit(1);
        for (;;) ct_counter_record(counter, 7, CT_FAILED);
    }
    close(up[1]);
    assert_int_equal(read(up[0], &byte, 1), 1);
    close(up[0]);
    struct timespec rest = {0, us * 1000};
    nanosleep(&rest, NULL);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(live_count(CT_SEGMENT_DEAD, &process), 1);
    assert_int_equal(ct_view_open(process.path, &view, NULL), CT_OK);
    assert_int_equal(ct_view_sample(view, 0, 1, &sample), CT_OK);
    *unclean += sample.unclean;
    uint64_t sum = 0;
    for (size_t i = 0; i < CT_BUCKETS; i++) sum += sample.buckets[i];
    if (!sample.unclean) assert_true(sample.total_ns == 7 * sample.calls && sample.errors == sample.calls);
    assert_true(sample.total_ns <= 7 * sample.calls && sample.total_ns + 7 >= 7 * sample.calls);
    assert_true(sum <= sample.calls && sum + 1 >= sample.calls && sample.min_ns == 7);
    ct_view_close(view);
    assert_int_equal(ct_segment_reap(process.path), CT_OK);
}

static void test_killed_at_any_moment(void **unused) {
    (void)unused;
    const char *wish = getenv("CODETIMER_TEST_KILLS");
    int kills = wish != NULL ? atoi(wish) : 100, unclean = 0;
    srand(4711);
    for (int i = 0; i < kills; i++) run_and_kill(rand() % 400, &unclean);
    printf("%d killed (seed 4711), %d of them inside an update\n", kills, unclean);
}

/* ---- forks ---- */

static void become_parent_of_a_living_child(void) {
    int up[2];
    char byte;
    call_twice();
    fflush(NULL);
    CHECK(pipe(up) == 0);
    if (fork() == 0) {
        if (write(up[1], "r", 1) != 1) _exit(1);
        live_rest_ms(300); /* measures nothing, but holds what it inherited */
        _exit(0);
    }
    CHECK(read(up[0], &byte, 1) == 1);
}

static void test_dead_parent_of_a_living_child(void **unused) {
    (void)unused;
    ct_process process;
    live_child child = live_start(become_parent_of_a_living_child);
    assert_int_equal(live_count(CT_SEGMENT_LIVE, NULL), 1);
    live_end(child, SIGKILL);
    assert_int_equal(live_count(CT_SEGMENT_DEAD, &process), 1);
    assert_int_equal(live_reap_all(), 1);
    live_rest_ms(350);
}

enum { CHILDREN = 16, EACH = 1000 };

/* Sixteen children count, each for itself; the parent's counts stay. */
static void fork_many(void) {
    ct_counter *counter = live_counter("shop.handle");
    for (int i = 0; i < 5; i++) live_call(counter);
    for (int i = 0; i < CHILDREN; i++) {
        if (fork() != 0) continue;
        for (int j = 0; j < EACH; j++) live_call(counter);
        CHECK(calls_of(counter) == EACH);
        live_call(live_counter("made.later"));
        kill(getpid(), SIGKILL);
    }
    for (int i = 0; i < CHILDREN; i++) wait(NULL);
    CHECK(calls_of(counter) == 5);
}

static void test_children(void **unused) {
    (void)unused;
    ct_listing *listing;
    ct_process process;
    int64_t sum = 0, files = 0;
    live_child child = live_start(fork_many);
    assert_int_equal(ct_listing_open(live_folder, &listing), CT_OK);
    while (ct_listing_next(listing, &process)) {
        files++;
        sum += live_calls(process.path, "shop/shop.handle");
        assert_true(process.pid == child.pid || live_calls(process.path, "made/made.later") == 1);
    }
    ct_listing_close(listing);
    assert_true(files == CHILDREN + 1 && sum == CHILDREN * EACH + 5);
    assert_int_equal(live_end(child, 0), 0);
    assert_int_equal(live_reap_all(), CHILDREN);
}

/* The program that takes this one's place keeps its pid and start time, and publishes again. */
static void exec_self(void) {
    call_twice();
    execl(own_path, own_path, "again", (char *)NULL);
    exit(1);
}

static void be_again(void) {
    child_may_leak();
    call_twice();
    CHECK(live_count(CT_SEGMENT_LIVE, NULL) == 1 && live_count(CT_SEGMENT_DEAD, NULL) == 0);
    CHECK(segment_now().published && strcmp(strrchr(segment_now().path, '-'), "-0") == 0);
}

static void test_exec(void **unused) {
    (void)unused;
    assert_int_equal(run_in_child(exec_self), 0);
    assert_true(live_count(CT_SEGMENT_LIVE, NULL) == 0 && live_count(CT_SEGMENT_DEAD, NULL) == 0);
}

/* ---- programs ---- */

static int open_descriptors(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder) != NULL) count++;
    closedir(folder);
    return count;
}

/* A daemon: it closes everything, opens something else under the numbers, changes its folder and umask, and counts on.
 */
static void be_daemon(void) {
    char name[300], note[80];
    snprintf(note, sizeof note, "%s-note", live_folder);
    CHECK(chdir(live_folder) == 0 && chdir("..") == 0);
    setenv("CODETIMER_DIR", strrchr(live_folder, '/') + 1, 1);
    umask(0777);
    int before = open_descriptors();
    call_twice();
    CHECK(open_descriptors() == before);
    for (int fd = 3; fd < 100; fd++) close(fd);
    FILE *file = fopen(note, "w+");
    CHECK(file != NULL && chmod(note, 0600) == 0 && chdir("/") == 0);
    memset(name, 'x', sizeof name - 1);
    for (int i = 0; i < 5000; i++) {
        snprintf(name + 280, 20, "%d", i);
        ct_counter *counter = live_counter(name);
        live_call(counter);
    }
    CHECK(segment_now().published && segment_now().reason[0] == '\0');
    char key[400];
    snprintf(key, sizeof key, "script/%s", name);
    CHECK(live_calls(segment_now().path, key) == 1);
    fseek(file, 0, SEEK_END);
    CHECK(ftell(file) == 0);
    unlink(note);
}

static void test_daemon(void **unused) {
    (void)unused;
    assert_int_equal(run_in_child(be_daemon), 0);
}

static void wait_for_replacement(void) {
    ct_counter *counter = live_counter("shop.handle");
    call_twice();
    CHECK(unlink(segment_now().path) == 0);
    int ms = 0;
    for (; ms < 3000 && live_count(CT_SEGMENT_LIVE, NULL) == 0; ms++) {
        live_call(counter);
        live_rest_ms(1);
    }
    live_call(counter);
    CHECK(ms < 3000 && live_calls(segment_now().path, "shop/shop.handle") == (int64_t)calls_of(counter));
}

static void test_cleaner(void **unused) {
    (void)unused;
    assert_int_equal(run_in_child(wait_for_replacement), 0);
}

/* A process of another start time under the same pid. */
static void test_pid_used_again(void **unused) {
    (void)unused;
    ct_process process;
    char other[300];
    live_child child = live_start(call_twice);
    assert_int_equal(live_count(CT_SEGMENT_LIVE, &process), 1);
    snprintf(other, sizeof other, "%s/%d-1-0", live_folder, (int)child.pid);
    FILE *from = fopen(process.path, "r"), *to = fopen(other, "w");
    char buffer[4096];
    for (size_t got; (got = fread(buffer, 1, sizeof buffer, from)) > 0;) fwrite(buffer, 1, got, to);
    fclose(from);
    fclose(to);
    assert_true(live_count(CT_SEGMENT_LIVE, NULL) == 1 && live_count(CT_SEGMENT_DEAD, NULL) == 1);
    assert_int_equal(live_end(child, 0), 0);
    assert_int_equal(live_reap_all(), 1);
}

int main(int count, char **arguments) {
    own_path = arguments[0];
    if (count > 1) {
        strcpy(live_folder, getenv("CODETIMER_DIR"));
        be_again();
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exit),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_switched_off),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_killed_at_any_moment),
        cmocka_unit_test(test_dead_parent_of_a_living_child),
        cmocka_unit_test(test_children),
        cmocka_unit_test(test_exec),
        cmocka_unit_test(test_pid_used_again),
        cmocka_unit_test(test_cleaner),
        cmocka_unit_test(test_daemon),
    };
    const char *const unwanted[] = {"CODETIMER_KEEP", "CODETIMER_PUBLISH", "CODETIMER_MEASURE"};
    for (size_t i = 0; i < 3; i++) unsetenv(unwanted[i]);
    live_make_folder();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    live_remove_folder();
    return failed;
}
