/* SPDX-License-Identifier: MIT
 *
 * host.c: the run for programs in C, the only host that the core itself serves: its loop and its standard output.
 */
#include <stdio.h>
#include <stdlib.h>

#include "codetimer.h"

enum { STDOUT_DESCRIPTOR = 1 };

static uint64_t make_calls(uint64_t k, int (*fn)(void *arg), void *arg) {
    uint64_t made = 0;
    while (made < k && fn(arg) == 0) made++;
    return made;
}

static int print_report(const ct_result *result) {
    int color = ct_report_color(ct_is_terminal(STDOUT_DESCRIPTOR));
    ct_report_options options = {.size = sizeof options, .color = color, .ascii = ct_report_ascii()};
    size_t size = ct_report_format(result, &options, NULL, 0) + 1;
    char *text = malloc(size);
    if (text == NULL) return CT_ENOMEM;
    ct_report_format(result, &options, text, size);
    int failed = fputs(text, stdout) == EOF || fflush(stdout) == EOF;
    free(text);
    return failed ? CT_EOS : CT_OK;
}

int ct_time(const char *name, int64_t n, int (*fn)(void *arg), void *arg, const ct_time_options *options,
            ct_result **result) {
    ct_run *run;
    ct_result *made;
    uint64_t k;
    int what;
    if (fn == NULL) return CT_EINVAL;
    int status = ct_time_begin(name, n, options, &run);
    if (status != CT_OK) return status;
    ct_time_finish finish = {.size = sizeof finish};
    while ((what = ct_time_next(run, &k)) != 0) {
        if (what == CT_WARM) continue;
        uint64_t done = make_calls(k, fn, arg);
        ct_time_done(run, done);
        if (done < k) finish.interrupted = "error";
    }
    status = ct_time_end(run, &finish, &made);
    if (status != CT_OK) return status;
    if (made->name_length > 0) status = print_report(made);
    if (result != NULL) {
        *result = made;
    } else {
        ct_result_free(made);
    }
    return status;
}
