/* SPDX-License-Identifier: MIT
 *
 * Guards publishing where it cannot be done: folders that are not ours alone, links, other users'; shared memory that
 * is full at once or later, read-only, limited; no descriptors. The program counts on, the reason is told, and no
 * signal comes. Fails if space is used before it is reserved.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "live.h"

/* ---- folders ---- */

static char place[600];

static void check_refused(void) {
    setenv("CODETIMER_DIR", place, 1);
    call_twice();
    CHECK(!segment_now().published && segment_now().reason[0] != '\0');
    ct_listing *listing;
    ct_process process;
    if (ct_listing_open(place, &listing) != CT_OK) return;
    CHECK(!ct_listing_next(listing, &process));
    ct_listing_close(listing);
}

static void make_place(const char *name, mode_t mode) {
    snprintf(place, sizeof place, "%s/%s", live_folder, name);
    assert_int_equal(mkdir(place, 0700), 0);
    assert_int_equal(chmod(place, mode), 0);
}

static void test_folders(void **unused) {
    (void)unused;
    char link[700];
    make_place("open", 0777);
    assert_int_equal(run_in_child(check_refused), 0);
    make_place("group", 0770);
    assert_int_equal(run_in_child(check_refused), 0);
    make_place("sticky", 01777);
    assert_int_equal(run_in_child(check_refused), 0);
    make_place("fine", 0700);
    snprintf(link, sizeof link, "%s-link", place);
    assert_int_equal(symlink(place, link), 0);
    snprintf(place, sizeof place, "%s/fine-link", live_folder);
    assert_int_equal(run_in_child(check_refused), 0);
    snprintf(place, sizeof place, "%s/fine/a/b", live_folder);
    assert_int_equal(run_in_child(check_refused), 0);
    snprintf(place, sizeof place, "/dev/null");
    assert_int_equal(run_in_child(check_refused), 0);
    memset(place, 'x', sizeof place - 1);
    place[0] = '/';
    assert_int_equal(run_in_child(check_refused), 0);
}

static void become_nobody(void) { CHECK(setgid(65534) == 0 && setuid(65534) == 0); }

static void check_refused_to_nobody(void) {
    become_nobody();
    check_refused();
}

static void test_foreign_folder(void **unused) {
    (void)unused;
    if (geteuid() != 0) skip();
    make_place("foreign", 0700);
    assert_int_equal(chown(place, 65534, 65534), 0);
    assert_int_equal(run_in_child(check_refused), 0);
    make_place("denied", 0500);
    assert_int_equal(run_in_child(check_refused_to_nobody), 0);
    assert_int_equal(chown(place, 65534, 65534), 0);
    assert_int_equal(run_in_child(check_refused_to_nobody), 0);
}

/* ---- room ---- */

static int mount_small(const char *options) {
    snprintf(place, sizeof place, "%s/small", live_folder);
    (void)mkdir(place, 0700);
    if (geteuid() == 0 && mount("codetimer-test", place, "tmpfs", 0, options) == 0) return 1;
    printf("skipped: no tmpfs can be mounted here\n");
    return 0;
}

static void check_growth_stops(void) {
    char name[64];
    setenv("CODETIMER_DIR", place, 1);
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "many.m%d", i);
        live_call(live_counter(name));
    }
    CHECK(calls_of(live_counter("many.m999")) == 1);
    CHECK(segment_now().published && strstr(segment_now().reason, "could not grow") != NULL);
    CHECK(live_calls(segment_now().path, "many/many.m0") == 1 &&
          live_calls(segment_now().path, "many/many.m999") == -1);
}

static void test_full(void **unused) {
    (void)unused;
    if (!mount_small("size=16k,mode=0700")) skip();
    int status = run_in_child(check_refused);
    umount(place);
    assert_int_equal(status, 0);
    assert_true(mount_small("size=700k,mode=0700"));
    status = run_in_child(check_growth_stops);
    umount(place);
    assert_int_equal(status, 0);
    assert_true(mount_small("size=4m,mode=0700"));
    assert_int_equal(mount(NULL, place, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
    status = run_in_child(check_refused);
    umount(place);
    assert_int_equal(status, 0);
}

static void limit_and_call(void) {
    struct rlimit limit = {16384, 16384};
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    call_twice();
    CHECK(!segment_now().published && segment_now().reason[0] != '\0');
}

/* Going over the limit of file sizes would be a signal. */
static void test_limited(void **unused) {
    (void)unused;
    assert_int_equal(run_in_child(limit_and_call), 0);
}

static void no_descriptors(void) {
    struct rlimit limit, before;
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    limit = before;
    limit.rlim_cur = 0;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    call_twice();
    CHECK(!segment_now().published && setrlimit(RLIMIT_NOFILE, &before) == 0);
}

static void test_no_descriptors(void **unused) {
    (void)unused;
    assert_int_equal(run_in_child(no_descriptors), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limited),        cmocka_unit_test(test_no_descriptors), cmocka_unit_test(test_folders),
        cmocka_unit_test(test_foreign_folder), cmocka_unit_test(test_full),
    };
    unsetenv("CODETIMER_PUBLISH");
    unsetenv("CODETIMER_MEASURE");
    live_make_folder();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    live_remove_folder();
    return failed;
}
