/* SPDX-License-Identifier: MIT
 *
 * Guards reading a process at full speed from another one: a record is never inconsistent (every call is of 7 ns and an
 * error), buckets only grow, and their sum lies between the calls read before and after; over two seconds, or
 * CODETIMER_TEST_TEAR_SECONDS. And files that are none: links, pipes, folders, other users', shortened under the
 * reader. Fails if the sequence is not checked, a bucket is counted outside of it, or a foreign file is followed.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "live.h"

/* ---- tearing ---- */

static uint64_t sum_of(const ct_sample *sample) {
    uint64_t sum = 0;
    for (size_t i = 0; i < CT_BUCKETS; i++) sum += sample->buckets[i];
    return sum;
}

/* Alternately with and without buckets. Returns how many samples were good. */
static uint64_t read_on(ct_view *view, double seconds) {
    ct_sample before, with, after;
    struct timespec start, now;
    uint64_t good = 0, busy = 0, last_sum = 0;
    /* Until there are last good values: the writer may be taken off its CPU in the middle of its first updates. */
    for (int i = 0; ct_view_sample(view, 0, 1, &with) != CT_OK || with.unclean; i++) {
        assert_true(i < 6000);
        live_rest_ms(1);
    }
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (;;) {
        for (int i = 0; i < 1000; i++) {
            int statuses = ct_view_sample(view, 0, 0, &before);
            statuses += ct_view_sample(view, 0, 1, &with);
            statuses += ct_view_sample(view, 0, 0, &after);
            uint64_t sum = sum_of(&with);
            assert_true(with.total_ns == 7 * with.calls && with.errors == with.calls && !with.unclean);
            assert_true(with.calls == 0 || (with.min_ns == 7 && with.max_ns == 7));
            assert_true(before.calls <= with.calls && with.calls <= after.calls);
            assert_true(sum >= last_sum && sum == with.buckets[23]);
            last_sum = sum;
            busy += statuses != 0;
            if (statuses != 0) continue;
            assert_true(with.calls <= sum && before.calls <= sum && sum <= after.calls);
            good++;
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
        double took = (double)(now.tv_sec - start.tv_sec) + (double)(now.tv_nsec - start.tv_nsec) / 1e9;
        if (took > seconds && (good > 1000 || took > 60)) break; /* the machine may be busy */
    }
    printf("%llu samples of %llu calls, the writer was in the way of %llu\n", (unsigned long long)good,
           (unsigned long long)after.calls, (unsigned long long)busy);
    return good;
}

static pid_t start_writer(void) {
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
    return pid;
}

static void test_tearing(void **unused) {
    (void)unused;
    ct_process process;
    ct_view *view;
    const char *wish = getenv("CODETIMER_TEST_TEAR_SECONDS");
    pid_t pid = start_writer();
    assert_int_equal(live_count(CT_SEGMENT_LIVE, &process), 1);
    assert_int_equal(ct_view_open(process.path, &view, NULL), CT_OK);
    uint64_t good = read_on(view, wish != NULL ? atof(wish) : 2);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    ct_view_close(view);
    assert_true(good > 1000);
    assert_int_equal(live_reap_all(), 1);
}

/* ---- no segments ---- */

static void expect_refusal(const char *name, int status) {
    ct_process process;
    ct_view *view;
    char path[256];
    snprintf(path, sizeof path, "%s/%s", live_folder, name);
    assert_int_equal(ct_view_open(path, &view, &process), status);
    assert_true(process.state == CT_SEGMENT_UNUSABLE && process.reason[0] != '\0');
}

static void publish(void) { live_call(live_counter("shop.handle")); }

static void test_no_segments(void **unused) {
    (void)unused;
    ct_process process;
    char path[256];
    live_child child = live_start(publish);
    assert_int_equal(live_count(CT_SEGMENT_LIVE, &process), 1);
    assert_int_equal(chdir(live_folder), 0);
    assert_true(symlink(process.path, "link") == 0 && symlink("nowhere", "broken") == 0 && mkdir("folder", 0700) == 0);
    assert_int_equal(mkfifo("pipe", 0600), 0);
    close(open("empty", O_CREAT | O_WRONLY, 0600));
    int fd = open("sparse", O_CREAT | O_WRONLY, 0600);
    assert_int_equal(ftruncate(fd, (off_t)5 << 30), 0);
    close(fd);
    struct sockaddr_un address = {AF_UNIX, "socket"};
    int made = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(made, (struct sockaddr *)&address, sizeof address), 0);
    close(made);
    expect_refusal("link", CT_EINVAL);
    expect_refusal("broken", CT_EINVAL);
    expect_refusal("folder", CT_EINVAL);
    expect_refusal("pipe", CT_EINVAL);
    expect_refusal("empty", CT_EINVAL);
    expect_refusal("sparse", CT_EINVAL);
    expect_refusal("socket", CT_EOS);
    expect_refusal("absent", CT_ENOENT);
    assert_int_equal(live_count(CT_SEGMENT_UNUSABLE, NULL), 7);
    snprintf(path, sizeof path, "%s/link", live_folder);
    assert_int_equal(ct_segment_reap(path), CT_EINVAL);
    assert_int_equal(live_end(child, 0), 0);
    assert_int_equal(system("rm -rf link broken folder pipe empty sparse socket"), 0);
}

/* The file is shortened while a view is open; after the next refresh nothing beyond its end is touched. */
static void test_shortened(void **unused) {
    (void)unused;
    ct_process process;
    ct_view *view;
    ct_sample sample;
    live_child child = live_start(publish);
    assert_int_equal(live_count(CT_SEGMENT_LIVE, &process), 1);
    live_end(child, SIGKILL);
    assert_int_equal(ct_view_open(process.path, &view, NULL), CT_OK);
    const off_t lengths[] = {100000, 8192, 4096, 100, 0};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        assert_int_equal(truncate(process.path, lengths[i]), 0);
        int status = ct_view_refresh(view, &process);
        assert_true((status == CT_OK) == (lengths[i] >= 6000) && process.reason[0] != '\0');
        int64_t index = live_find(view, "shop/shop.handle");
        if (index >= 0) ct_view_sample(view, (uint32_t)index, 1, &sample);
    }
    ct_view_close(view);
    unlink(process.path);
}

/* ---- other users ---- */

static void publish_as_nobody(void) {
    CHECK(setgid(65534) == 0 && setuid(65534) == 0);
    publish();
    ct_segment segment;
    ct_segment_info(&segment);
    CHECK(segment.published);
}

static void be_refused(void) {
    ct_process process;
    ct_view *view;
    CHECK(setgid(65533) == 0 && setuid(65533) == 0);
    setenv("CODETIMER_DIR", "/", 1);
    CHECK(live_count(CT_SEGMENT_LIVE, NULL) == 0);
    snprintf(process.path, sizeof process.path, "%s", getenv("FOREIGN"));
    CHECK(ct_view_open(process.path, &view, &process) == CT_EPERM && process.reason[0] != '\0');
}

static void test_other_user(void **unused) {
    (void)unused;
    ct_process process;
    ct_view *view;
    ct_sample sample;
    char text[64];
    size_t length;
    if (geteuid() != 0) skip();
    assert_int_equal(chown(live_folder, 65534, 65534), 0);
    live_child child = live_start(publish_as_nobody);
    assert_int_equal(live_count(CT_SEGMENT_LIVE, &process), 1);
    assert_true(process.uid == 65534 && live_calls(process.path, "shop/shop.handle") == 1);
    assert_int_equal(ct_view_open(process.path, &view, NULL), CT_OK);
    assert_int_equal(ct_view_set_members(view, "nothing", 7), CT_OK); /* root may */
    assert_int_equal(ct_view_members(view, text, sizeof text, &length), CT_OK);
    assert_string_equal(text, "nothing");
    assert_int_equal(truncate(process.path, 0), 0); /* by copies, so no signal comes */
    assert_int_equal(ct_view_sample(view, 0, 1, &sample), CT_ENOENT);
    ct_view_close(view);
    live_end(child, SIGKILL);
    unlink(process.path);
    assert_int_equal(chown(live_folder, 0, 0), 0);
    child = live_start(publish);
    assert_int_equal(live_count(CT_SEGMENT_LIVE, &process), 1);
    setenv("FOREIGN", process.path, 1);
    assert_int_equal(chmod(live_folder, 0755), 0);
    assert_int_equal(chmod(process.path, 0644), 0);
    int status = run_in_child(be_refused);
    assert_int_equal(chmod(live_folder, 0700), 0);
    assert_int_equal(live_end(child, 0), 0);
    assert_int_equal(status, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tearing),
        cmocka_unit_test(test_no_segments),
        cmocka_unit_test(test_shortened),
        cmocka_unit_test(test_other_user),
    };
    unsetenv("CODETIMER_MEASURE");
    live_make_folder();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    live_remove_folder();
    return failed;
}
