/* SPDX-License-Identifier: MIT
 *
 * Guards what the system says of this thread, as far as any machine can keep it: pages that are touched for the first
 * time are faults, waiting is a switch and no CPU time, and what is not told has a reason.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "codetimer.h"

enum { PAGES = 64, WAITS = 5 };

static int touch_pages(void *unused) {
    (void)unused;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 1;
    for (size_t i = 0; i < PAGES; i++) memory[i * page] = 1;
    munmap(memory, PAGES * page);
    return 0;
}

static int wait_a_little(void *unused) {
    struct timespec time = {0, 3000000};
    (void)unused;
    nanosleep(&time, NULL);
    return 0;
}

static ct_result *run(int64_t n, int (*fn)(void *)) {
    ct_result *result;
    assert_int_equal(ct_time("", n, fn, NULL, NULL, &result), CT_OK);
    return result;
}

static int is_explained(const ct_usage *usage) {
    return (usage->known && usage->migrations_known) == (usage->reason[0] == '\0');
}

static void test_faults(void **unused) {
    (void)unused;
    ct_result *result = run(10, touch_pages);
    assert_true(is_explained(&result->usage));
    int known = result->usage.known;
    uint64_t faults = result->usage.minor_faults;
    ct_result_free(result);
    if (!known) skip();
    assert_true(faults >= 10); /* fewer than pages where the system maps many at a time */
}

static void test_waits(void **unused) {
    (void)unused;
    ct_result *result = run(WAITS, wait_a_little);
    const ct_usage usage = result->usage;
    uint64_t elapsed_ns = result->elapsed_ns;
    ct_result_free(result);
    if (!usage.known) skip();
    assert_true(usage.switches >= WAITS);
    assert_true(usage.cpu_ns < elapsed_ns / 2);
}

/* Migrations are read from a file; none is left open. */
static void test_no_descriptor_is_kept(void **unused) {
    (void)unused;
    int before = dup(0);
    close(before);
    for (int i = 0; i < 3; i++) ct_result_free(run(2, wait_a_little));
    int after = dup(0);
    close(after);
    assert_int_equal(before, after);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_no_descriptor_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
