/* SPDX-License-Identifier: MIT
 *
 * Guards what a followed file can do on a real system: whatever way it is edited, what it says comes into force, no
 * half of it ever does, and what is no file that can be read neither blocks nor changes anything. Fails if the file is
 * watched by its identity or its times, if it is opened without a look at what it is, or if one that never rests is
 * never taken.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "live.h"

enum { SKIPPED = 77, TORN = 2000 };

static char folder[64], path[100];

/* ---- what is done to files ---- */

static void put(const char *name, const char *text) {
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static void replace(const char *text) {
    char other[160];
    snprintf(other, sizeof other, "%s.new", path);
    put(other, text);
    CHECK(rename(other, path) == 0);
}

/* A link that always exists: the new one takes the place of the old one. */
static void turn_link(const char *target, const char *link) {
    char other[160];
    snprintf(other, sizeof other, "%s.new", link);
    CHECK(symlink(target, other) == 0 && rename(other, link) == 0);
}

static int list_is(const char *expected) {
    static char text[70000];
    size_t length;
    return ct_members_get(text, sizeof text, &length) == CT_OK && strcmp(text, expected) == 0;
}

static const ct_config *now(void) {
    static ct_config config;
    ct_config_info(&config);
    return &config;
}

/* Until it is so; that it takes no longer than a second is not asserted on a machine that may be busy. */
#define WAIT_FOR(condition)                                                                                            \
    do {                                                                                                               \
        for (int i_ = 0; i_ < 12000 && !(condition); i_++) {                                                           \
            live_rest_ms(5);                                                                                           \
            ct_poll();                                                                                                 \
        }                                                                                                              \
        CHECK(condition);                                                                                              \
    } while (0)

static void wait_for_looks(uint64_t more) {
    uint64_t until = now()->looks + more;
    WAIT_FOR(now()->looks >= until);
}

static int count_descriptors(void) {
    DIR *stream = opendir("/proc/self/fd");
    int count = 0;
    CHECK(stream != NULL);
    while (readdir(stream) != NULL) count++;
    closedir(stream);
    return count;
}

/* ---- editing ---- */

static void check_edits(void) {
    int descriptors = count_descriptors();
    CHECK(ct_config_file(path) == CT_OK && now()->state == CT_CONFIG_MISSING);
    put(path, "in.place");
    WAIT_FOR(list_is("in.place"));
    put(path, "same.len");
    WAIT_FOR(list_is("same.len"));
    replace("by.rename");
    WAIT_FOR(list_is("by.rename"));
    struct timespec times[2] = {{1000000000, 0}, {1000000000, 0}};
    put(path, "old.times1");
    CHECK(utimensat(AT_FDCWD, path, times, 0) == 0);
    WAIT_FOR(list_is("old.times1"));
    put(path, "old.times2");
    CHECK(utimensat(AT_FDCWD, path, times, 0) == 0);
    WAIT_FOR(list_is("old.times2"));
    CHECK(unlink(path) == 0);
    WAIT_FOR(now()->state == CT_CONFIG_MISSING);
    CHECK(list_is("old.times2"));
    put(path, "");
    wait_for_looks(1);
    replace("back.again");
    WAIT_FOR(list_is("back.again"));
    put(path, "");
    WAIT_FOR(list_is(""));
    CHECK(count_descriptors() == descriptors);
}

static void check_relative(void) {
    CHECK(chdir(folder) == 0);
    put("members", "a");
    CHECK(ct_config_file("members") == CT_OK && list_is("a") && strcmp(now()->path, path) == 0);
    CHECK(chdir("/") == 0);
    put(path, "b");
    WAIT_FOR(list_is("b"));
    put("/proc/self/comm", "x"); /* a file that does not tell its length */
    CHECK(ct_config_file("proc/self/comm") == CT_OK && list_is("x\n"));
    CHECK(strcmp(now()->path, "/proc/self/comm") == 0);
}

/* As Kubernetes mounts a ConfigMap: the file is a link by way of a link to a folder, and that one is turned. */
static void check_links(void) {
    char one[128], two[128], data[128], text[160];
    snprintf(one, sizeof one, "%s/..1", folder);
    snprintf(two, sizeof two, "%s/..2", folder);
    snprintf(data, sizeof data, "%s/..data", folder);
    CHECK(mkdir(one, 0700) == 0 && mkdir(two, 0700) == 0);
    snprintf(text, sizeof text, "%s/members", one);
    put(text, "one");
    snprintf(text, sizeof text, "%s/members", two);
    put(text, "two");
    CHECK(symlink("..1", data) == 0 && symlink("..data/members", path) == 0);
    CHECK(ct_config_file(path) == CT_OK && list_is("one"));
    turn_link("..2", data);
    WAIT_FOR(list_is("two"));
    turn_link("..1", data);
    WAIT_FOR(list_is("one"));
    turn_link("nowhere", data);
    WAIT_FOR(now()->state == CT_CONFIG_MISSING);
    turn_link("..data", data);
    WAIT_FOR(now()->state == CT_CONFIG_REFUSED);
    CHECK(list_is("one"));
}

/* As root, or else as somebody who is root among himself. */
static void enter_own_mounts(void) {
    char map[32];
    uid_t uid = geteuid();
    if (unshare(CLONE_NEWNS) != 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 || access("/proc/self/uid_map", W_OK) != 0) exit(SKIPPED);
        snprintf(map, sizeof map, "%u %u 1", (unsigned)uid, (unsigned)uid);
        put("/proc/self/uid_map", map);
    }
    if (mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) != 0) exit(SKIPPED);
}

static void check_bind_mount(void) {
    char file[160], other[128];
    snprintf(file, sizeof file, "%s/file", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    put(path, "outside");
    put(file, "");
    CHECK(mkdir(other, 0700) == 0);
    enter_own_mounts();
    if (mount(path, file, "none", MS_BIND, NULL) != 0) exit(SKIPPED);
    CHECK(ct_config_file(file) == CT_OK && list_is("outside"));
    put(path, "edited");
    WAIT_FOR(list_is("edited"));
    CHECK(mount(folder, other, "none", MS_BIND, NULL) == 0);
    snprintf(file, sizeof file, "%s/members", other);
    CHECK(ct_config_file(file) == CT_OK && list_is("edited"));
    replace("renamed");
    WAIT_FOR(list_is("renamed"));
}

/* ---- what is no file that can be read ---- */

static void expect_reason(const char *name, int state, const char *reason) {
    alarm(60); /* if it blocks */
    CHECK(ct_config_file(name) == CT_OK);
    if (strcmp(now()->reason, reason) != 0) fprintf(stderr, "%s: %s\n", name, now()->reason);
    CHECK(now()->state == state && strcmp(now()->reason, reason) == 0 && list_is("a"));
    uint64_t events = now()->events;
    wait_for_looks(2);
    CHECK(now()->events == events);
    alarm(0);
}

static void check_no_files(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char below[160];
    int descriptors = count_descriptors();
    CHECK(ct_members_set("a", 1) == CT_OK);
    expect_reason(folder, CT_CONFIG_REFUSED, "it is a directory, not a regular file");
    expect_reason("/dev/zero", CT_CONFIG_REFUSED, "it is a device, not a regular file");
    CHECK(mkfifo(path, 0600) == 0);
    expect_reason(path, CT_CONFIG_REFUSED, "it is a pipe, not a regular file");
    CHECK(unlink(path) == 0);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    expect_reason(path, CT_CONFIG_REFUSED, "it is a socket, not a regular file");
    close(fd);
    CHECK(unlink(path) == 0);
    expect_reason(path, CT_CONFIG_MISSING, "there is no such file");
    put(path, "b");
    snprintf(below, sizeof below, "%s/below", path);
    expect_reason(below, CT_CONFIG_MISSING, "there is no such file");
    CHECK(truncate(path, 10 << 20) == 0);
    expect_reason(path, CT_CONFIG_REFUSED, "it has 10,485,760 bytes, and a members list at most 65,536");
    CHECK(count_descriptors() == descriptors);
}

static void check_unreadable(void) {
    put(path, "b");
    CHECK(ct_members_set("a", 1) == CT_OK && chmod(path, 0) == 0);
    if (access(path, R_OK) == 0 && setuid(65534) != 0) exit(SKIPPED); /* root reads everything */
    if (access(folder, X_OK) != 0) exit(SKIPPED);
    expect_reason(path, CT_CONFIG_REFUSED, "it cannot be opened: Permission denied");
}

/* ---- one that never rests ---- */

static void write_for_ever(void (*write_text)(const char *text)) {
    char text[TORN + 1];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0;; i++) {
        memset(text, 'a' + i % 26, TORN);
        snprintf(text, 16, "%d;", i);
        text[strlen(text)] = text[TORN - 1];
        text[TORN] = '\0';
        write_text(text);
        live_rest_ms(1);
    }
}

static void put_text(const char *text) { put(path, text); }

/* All of one writing: a number, and then one letter that belongs to it. */
static int is_whole(const char *text) {
    int number = atoi(text);
    const char *letters = strchr(text, ';');
    return strlen(text) == TORN && letters != NULL &&
           strspn(letters + 1, (char[]){(char)('a' + number % 26), 0}) == strlen(letters + 1);
}

/* Returns how many of the lists that were taken were torn, and their number. */
static int take_some(void (*write_text)(const char *text), int *taken) {
    static char text[70000];
    size_t length;
    int torn = 0;
    fflush(NULL);
    pid_t writer = fork();
    if (writer == 0) write_for_ever(write_text);
    WAIT_FOR(access(path, R_OK) == 0);
    CHECK(ct_config_file(path) == CT_OK);
    uint64_t lists = now()->lists, seen = lists, begun = ct_now_ns();
    while (now()->lists < lists + 3 || ct_now_ns() - begun < 2000000000u) {
        CHECK(ct_now_ns() - begun < 120000000000u);
        ct_poll();
        if (now()->lists != seen && ct_members_get(text, sizeof text, &length) == CT_OK) torn += !is_whole(text);
        seen = now()->lists;
        live_rest_ms(2);
    }
    *taken = (int)(seen - lists);
    printf("%d lists of %d looks, %d of them torn\n", *taken, (int)now()->looks, torn);
    kill(writer, SIGKILL);
    waitpid(writer, NULL, 0);
    return torn;
}

static void check_replaced_without_end(void) {
    int taken;
    CHECK(take_some(replace, &taken) == 0);
}

/* Such a file is taken as it is found: torn where the system has stopped the writer half-way. */
static void check_written_without_end(void) {
    int taken, torn = take_some(put_text, &taken);
    CHECK(torn < taken);
}

/* ---- forks ---- */

static void check_fork(void) {
    put(path, "shop.*");
    CHECK(ct_config_file(path) == CT_OK && list_is("shop.*"));
    call_twice();
    fflush(NULL);
    pid_t child = fork();
    put(path, "*.handle"); /* both write the same */
    WAIT_FOR(list_is("*.handle"));
    if (child == 0) exit(0);
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0);
}

static int begin(void **unused) {
    (void)unused;
    live_make_folder();
    strcpy(folder, "/tmp/codetimer-test-XXXXXX");
    if (mkdtemp(folder) == NULL || chmod(folder, 0711) != 0) return -1;
    snprintf(path, sizeof path, "%s/members", folder);
    unsetenv("CODETIMER_MEASURE");
    unsetenv("CODETIMER_CONFIG");
    return 0;
}

static int end(void **unused) {
    (void)unused;
    char command[128];
    live_remove_folder();
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void run(void (*scenario)(void), const char *why) {
    int status = run_in_child(scenario);
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
        print_message("skipped: %s\n", why);
        skip();
    }
    assert_int_equal(status, 0);
}

#define TEST(name, why)                                                                                                \
    static void test_##name(void **unused) {                                                                           \
        (void)unused;                                                                                                  \
        run(check_##name, why);                                                                                        \
    }
TEST(edits, "")
TEST(relative, "")
TEST(links, "")
TEST(bind_mount, "bind mounts are not permitted here")
TEST(no_files, "")
TEST(unreadable, "this user reads every file")
TEST(replaced_without_end, "")
TEST(written_without_end, "")
TEST(fork, "")

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_edits, begin, end),
        cmocka_unit_test_setup_teardown(test_relative, begin, end),
        cmocka_unit_test_setup_teardown(test_links, begin, end),
        cmocka_unit_test_setup_teardown(test_bind_mount, begin, end),
        cmocka_unit_test_setup_teardown(test_no_files, begin, end),
        cmocka_unit_test_setup_teardown(test_unreadable, begin, end),
        cmocka_unit_test_setup_teardown(test_replaced_without_end, begin, end),
        cmocka_unit_test_setup_teardown(test_written_without_end, begin, end),
        cmocka_unit_test_setup_teardown(test_fork, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
