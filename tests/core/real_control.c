/* SPDX-License-Identifier: MIT
 *
 * Guards switching a running process from others: two controllers at once leave one of the possible lists, and every
 * text that anybody reads meanwhile is one that somebody wrote; a controller that is killed at any moment harms nothing
 * and the next one goes on; a list acts on the very next call; and 65,536 members, with the rest refused and counted.
 * Fails if the controllers' lock is not taken, or outlives its holder.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "live.h"

enum { ROUNDS = 200, LENGTH = 3000 };

static char target_path[256];

static ct_view *open_target(void) {
    ct_view *view;
    CHECK(ct_view_open(target_path, &view, NULL) == CT_OK);
    return view;
}

/* A list of one letter, so that a mixture shows. */
static void fill(char *text, char letter) {
    memset(text, letter, LENGTH);
    for (int i = 20; i < LENGTH; i += 21) text[i] = ';';
}

static int is_of_one_letter(const char *text, size_t length) {
    if (length != LENGTH) return 0;
    for (size_t i = 0; i < length; i++)
        if (text[i] != (i % 21 == 20 ? ';' : text[0])) return 0;
    return 1;
}

static void control(char first) {
    char text[LENGTH];
    ct_view *view = open_target();
    for (int i = 0; i < ROUNDS; i++) {
        fill(text, (char)(first + i % 5));
        CHECK(ct_view_set_members(view, text, LENGTH) == CT_OK);
    }
    ct_view_close(view);
}

static pid_t start_controller(char first) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid != 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    control(first);
    _exit(0);
}

static void publish(void) {
    char name[32];
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "shop.member%d", i);
        live_call(live_counter(name));
    }
}

/* The process itself sets lists, too, and counts. */
static void change(void) {
    pid_t parent = getppid();
    char text[LENGTH];
    fill(text, 'p');
    for (int i = 0; kill(parent, 0) == 0 && i < 2000; i++) {
        if (i % 7 == 0) CHECK(ct_members_set(text, LENGTH) == CT_OK);
        live_call(live_counter("shop.member1"));
        if (i == 0) CHECK(live_count(CT_SEGMENT_LIVE, NULL) == 1);
        ct_poll();
        if (i % 100 == 0) live_rest_ms(1);
    }
}

static void find_target(void) {
    ct_process process;
    assert_int_equal(live_count(CT_SEGMENT_LIVE, &process), 1);
    memcpy(target_path, process.path, sizeof target_path);
}

static int read_until_ended(pid_t one, pid_t other) {
    char text[2 * LENGTH];
    size_t length;
    int ended = 0, reads = 0, status;
    ct_view *view = open_target();
    while (ended < 2) {
        if (ct_view_members(view, text, sizeof text, &length) == CT_OK) {
            assert_true(is_of_one_letter(text, length));
            reads++;
        }
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid != one && pid != other) continue;
        assert_int_equal(status, 0);
        ended++;
    }
    ct_view_close(view);
    return reads;
}

static void test_two_controllers(void **unused) {
    (void)unused;
    char text[2 * LENGTH], key[64];
    size_t length;
    ct_view_counter one;
    live_child child = live_start(publish);
    find_target();
    pid_t first = start_controller('a'), second = start_controller('f');
    printf("%d texts read meanwhile\n", read_until_ended(first, second));
    ct_view *view = open_target();
    assert_int_equal(ct_view_members(view, text, sizeof text, &length), CT_OK);
    assert_true(is_of_one_letter(text, length) &&
                (text[0] == 'a' + (ROUNDS - 1) % 5 || text[0] == 'f' + (ROUNDS - 1) % 5));
    assert_int_equal(ct_view_switch(view, "shop.member7", 12, 1), CT_OK);
    for (uint32_t i = 0; i < ct_view_end(view); i++) { /* the bits follow the text */
        assert_int_equal(ct_view_counter_at(view, i, &one), CT_OK);
        snprintf(key, sizeof key, "%.*s", (int)one.key_length, one.key);
        assert_int_equal(one.enabled, strcmp(key, "shop/shop.member7") == 0);
    }
    ct_view_close(view);
    assert_int_equal(live_end(child, 0), 0);
}

/* Each adds patterns of its own to what it finds: none may get lost. */
static void add_patterns(char letter) {
    char pattern[16];
    ct_view *view = open_target();
    for (int i = 0; i < ROUNDS; i++) {
        snprintf(pattern, sizeof pattern, "%c%d", letter, i);
        CHECK(ct_view_switch(view, pattern, strlen(pattern), 1) == CT_OK);
    }
    ct_view_close(view);
}

static void test_nothing_lost(void **unused) {
    (void)unused;
    char text[6000];
    size_t length, patterns = 0;
    pid_t pids[2];
    live_child child = live_start(publish);
    find_target();
    fflush(NULL);
    for (int i = 0; i < 2; i++) {
        pids[i] = fork();
        if (pids[i] != 0) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        add_patterns((char)('a' + i));
        _exit(0);
    }
    for (int i = 0; i < 2; i++) {
        int status = -1;
        waitpid(pids[i], &status, 0);
        assert_int_equal(status, 0);
    }
    ct_view *view = open_target();
    assert_int_equal(ct_view_members(view, text, sizeof text, &length), CT_OK);
    ct_view_close(view);
    for (size_t i = 0; i < length; i++) patterns += text[i] == ';';
    assert_int_equal(patterns, 2 * ROUNDS); /* "*" stands before them */
    assert_int_equal(live_end(child, 0), 0);
}

/* Meanwhile the process changes its own list some hundred times. */
static void test_controllers_and_the_process(void **unused) {
    (void)unused;
    int up[2];
    char byte;
    assert_int_equal(pipe(up), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        child_may_leak();
        publish();
        if (write(up[1], "r", 1) != 1) exit(1);
        change();
        exit(0);
    }
    close(up[1]);
    assert_int_equal(read(up[0], &byte, 1), 1);
    close(up[0]);
    find_target();
    char text[2 * LENGTH], mine[LENGTH];
    size_t length;
    int status = -1;
    ct_view *view = open_target();
    for (int i = 0; waitpid(child, &status, WNOHANG) == 0; i++) {
        fill(mine, (char)('a' + i % 5));
        int set = ct_view_set_members(view, mine, LENGTH);
        assert_true(set == CT_OK || set == CT_ENOENT);
        if (ct_view_members(view, text, sizeof text, &length) == CT_OK) assert_true(is_of_one_letter(text, length));
    }
    ct_view_close(view);
    assert_int_equal(status, 0);
}

static void test_controllers_killed(void **unused) {
    (void)unused;
    char text[2 * LENGTH];
    size_t length;
    live_child child = live_start(publish);
    find_target();
    srand(815);
    ct_view *view = open_target();
    for (int i = 0; i < 100; i++) {
        pid_t pid = start_controller('a');
        struct timespec rest = {0, rand() % 3000000};
        nanosleep(&rest, NULL);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        if (ct_view_members(view, text, sizeof text, &length) == CT_OK) assert_true(is_of_one_letter(text, length));
    }
    assert_int_equal(ct_view_set_members(view, "shop.*", 6), CT_OK);
    assert_int_equal(ct_view_members(view, text, sizeof text, &length), CT_OK);
    assert_string_equal(text, "shop.*");
    ct_view_close(view);
    assert_int_equal(live_end(child, 0), 0);
}

/* ---- the next call ---- */

static _Atomic uint64_t *called; /* shared with the child */

static void call_for_ever(void) {
    ct_counter *counter = live_counter("shop.handle");
    live_call(counter);
    fflush(NULL);
    for (int i = 0; i < 20000 && atomic_load(called) != UINT64_MAX; i++) {
        live_call(counter);
        atomic_fetch_add(called, 1);
        if (i == 0) kill(getppid(), SIGUSR1);
        live_rest_ms(1);
    }
}

static void wait_for_calls(uint64_t more) {
    uint64_t until = atomic_load(called) + more;
    while (atomic_load(called) < until) live_rest_ms(1);
}

static void expect_counting(ct_view *view, int expected) {
    ct_sample before, after;
    wait_for_calls(2); /* one may have been under way */
    assert_int_equal(ct_view_sample(view, 0, 0, &before), CT_OK);
    wait_for_calls(3);
    assert_int_equal(ct_view_sample(view, 0, 0, &after), CT_OK);
    assert_int_equal(after.calls > before.calls, expected);
}

static void test_next_call(void **unused) {
    (void)unused;
    called = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    signal(SIGUSR1, SIG_IGN);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        child_may_leak();
        call_for_ever();
        exit(0);
    }
    wait_for_calls(1);
    find_target();
    ct_view *view = open_target();
    for (int i = 0; i < 5; i++) {
        assert_int_equal(ct_view_switch(view, "shop.*", 6, 0), CT_OK);
        expect_counting(view, 0);
        assert_int_equal(ct_view_switch(view, "shop.*", 6, 1), CT_OK);
        expect_counting(view, 1);
    }
    ct_view_close(view);
    atomic_store(called, UINT64_MAX);
    waitpid(pid, NULL, 0);
}

/* ---- many ---- */

static void publish_many(void) {
    char name[32];
    setenv("CODETIMER_MAX_COUNTERS", "100000", 1);
    ct_writer *writer;
    ct_counter *counter;
    int refused = 0;
    CHECK(ct_writer_open("script", &writer) == CT_OK);
    for (int i = 0; i < 100000; i++) {
        snprintf(name, sizeof name, "many.m%d", i);
        int status = ct_counter_open(writer, NULL, name, NULL, &counter);
        CHECK(status == (i < 65536 ? CT_OK : CT_EFULL));
        refused += status == CT_EFULL;
        if (status == CT_OK && i % 16 == 0) live_call(counter);
    }
    CHECK(refused == 100000 - 65536);
}

static void test_many(void **unused) {
    (void)unused;
    ct_process process;
    ct_sample sample;
    ct_view_counter one;
    uint64_t calls = 0, enabled = 0;
    live_child child = live_start(publish_many);
    find_target();
    ct_view *view;
    assert_int_equal(ct_view_open(target_path, &view, &process), CT_OK);
    assert_true(process.counters == 65536 && process.refused == 100000 - 65536);
    assert_string_equal(process.last_refused, "many/many.m99999");
    for (uint32_t i = 0; i < ct_view_end(view); i++) {
        assert_int_equal(ct_view_sample(view, i, 1, &sample), CT_OK);
        calls += sample.calls;
    }
    assert_int_equal(calls, 65536 / 16);
    assert_int_equal(ct_view_set_members(view, "many.m7*", 8), CT_OK);
    for (uint32_t i = 0; i < ct_view_end(view); i++)
        enabled += ct_view_counter_at(view, i, &one) == CT_OK && one.enabled;
    assert_int_equal(enabled, 1 + 10 + 100 + 1000);
    ct_view_close(view);
    assert_int_equal(live_end(child, 0), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_controllers),
        cmocka_unit_test(test_nothing_lost),
        cmocka_unit_test(test_controllers_and_the_process),
        cmocka_unit_test(test_controllers_killed),
        cmocka_unit_test(test_next_call),
        cmocka_unit_test(test_many),
    };
    unsetenv("CODETIMER_MEASURE");
    live_make_folder();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    live_remove_folder();
    return failed;
}
