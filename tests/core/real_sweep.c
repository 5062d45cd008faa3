/* SPDX-License-Identifier: MIT
 *
 * Guards that processes which leave their segments behind (by _exit, as pool workers do) do not fill up the shared
 * memory: beyond 128 files the dead are deleted by whoever publishes next, the living stay, and what is not ours is not
 * touched.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codetimer.h"
#include "sweep.h"

static char folder[] = "/tmp/codetimer-sweep-XXXXXX";

/* Kept, so that leak checkers see them reachable. */
static ct_writer *writer;
static ct_counter *counter;

static void count_once(void) {
    if (ct_writer_open(NULL, &writer) != CT_OK) abort();
    if (ct_counter_open(writer, NULL, "sweep.counter", NULL, &counter) < 0) abort();
    ct_counter_record(counter, 5, CT_RETURNED);
}

static void leave_a_segment(void) {
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        count_once();
        _exit(0);
    }
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
}

static int count_files(const char *but) {
    int count = 0;
    DIR *stream = opendir(folder);
    for (struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream))
        count += entry->d_name[0] != '.' && (but == NULL || strcmp(entry->d_name, but) != 0);
    closedir(stream);
    return count;
}

static void test_sweep(void **unused) {
    (void)unused;
    char other[64];
    ct_segment segment;
    snprintf(other, sizeof other, "%s/notes", folder);
    close(open(other, O_CREAT | O_WRONLY, 0600));
    for (int i = 0; i < CT__FILES_KEPT; i++) leave_a_segment();
    assert_int_equal(count_files("notes"), CT__FILES_KEPT); /* so many are kept */
    count_once();                                           /* this process lives */
    for (int i = 0; i < 20; i++) leave_a_segment();
    assert_true(count_files("notes") <= CT__FILES_KEPT + 2);
    assert_int_equal(access(other, F_OK), 0);
    ct_segment_info(&segment);
    assert_true(segment.published);
    assert_int_equal(access(segment.path, F_OK), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sweep)};
    if (mkdtemp(folder) == NULL) return 1;
    setenv("CODETIMER_DIR", folder, 1);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) != 0 || failed; /* NOLINT: the folder is our own */
}
