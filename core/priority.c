/* SPDX-License-Identifier: MIT
 *
 * priority.c: raises the calling thread's priority and puts back exactly what was there.
 *
 * The public report is the first member of a token that also holds the raw values and the thread they belong to. A
 * refusal by the system is written into the report and is no failure. Restoring on another thread would change that
 * one's priority instead, so it is refused.
 *
 * Invariant: "restored" becomes 1 only once both the priority and the affinity are back (or were never changed); until
 * then restoring may be tried again.
 */
#include "codetimer.h"

#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "platform/platform.h"

typedef struct priority_token {
    ct_priority report; /* first: a ct_priority * is a priority_token * */
    ct__os_priority raw;
    uint64_t thread;
} priority_token;

static const struct {
    const char *name;
    int level;
} levels[] = {
    {"high", CT__PRIORITY_HIGH},
    {"highest", CT__PRIORITY_HIGHEST},
    {"realtime", CT__PRIORITY_REALTIME},
};

/* Writes the level and its lasting name. Returns 0 for an unknown one. */
static int find_level(const char *name, int *level, const char **lasting_name) {
    *level = CT__PRIORITY_KEEP;
    *lasting_name = NULL;
    if (name == NULL) return 1;
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (strcmp(name, levels[i].name) != 0) continue;
        *level = levels[i].level;
        *lasting_name = levels[i].name;
        return 1;
    }
    return 0;
}

static void raise_and_pin(priority_token *token, int level) {
    ct_priority *report = &token->report;
    char why_priority[sizeof report->reason] = "", why_cpu[sizeof report->reason] = "";
    if (level != CT__PRIORITY_KEEP) {
        report->status = ct__os_priority_raise(level, &token->raw, why_priority, sizeof why_priority);
    }
    if (report->cpu >= 0) report->cpu_status = ct__os_cpu_pin(report->cpu, &token->raw, why_cpu, sizeof why_cpu);
    ct__text reason;
    ct__text_start(&reason, report->reason, sizeof report->reason);
    ct__text_put(&reason, why_priority);
    if (why_priority[0] != '\0' && why_cpu[0] != '\0') ct__text_put(&reason, "; ");
    ct__text_put(&reason, why_cpu);
}

int ct_priority_raise(const char *level, int cpu, ct_priority **priority) {
    int wanted;
    const char *name;
    if (priority == NULL || cpu < -1 || !find_level(level, &wanted, &name)) return CT_EINVAL;
    priority_token *token = calloc(1, sizeof *token);
    if (token == NULL) return CT_ENOMEM;
    ct_priority *report = &token->report;
    token->thread = ct__os_thread_number();
    report->requested = name;
    report->cpu = cpu;
    ct__os_priority_text(report->previous, sizeof report->previous);
    raise_and_pin(token, wanted);
    ct__os_priority_text(report->effective, sizeof report->effective);
    ct__os_priority_scope(report->scope, sizeof report->scope);
    *priority = report;
    return CT_OK;
}

int ct_priority_restore(ct_priority *priority) {
    if (priority == NULL) return CT_EINVAL;
    priority_token *token = (priority_token *)(void *)priority;
    if (priority->restored) return CT_OK;
    if (token->thread != ct__os_thread_number()) return CT_ETHREAD;
    int status = ct__os_priority_restore(&token->raw);
    int cpu_status = ct__os_cpu_restore(&token->raw);
    priority->restored = status == CT_OK && cpu_status == CT_OK;
    return status != CT_OK ? status : cpu_status;
}

void ct_priority_free(ct_priority *priority) { free(priority); }
