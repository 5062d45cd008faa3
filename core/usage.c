/* SPDX-License-Identifier: MIT
 *
 * usage.c: see usage.h. The system's counters only grow; one that fell belongs to another thread (a fork) and makes the
 * fact unknown.
 */
#include "usage.h"

#include <string.h>

#include "format.h"

void ct__usage_read(ct__usage *usage, int with_migrations) {
    memset(usage, 0, sizeof *usage);
    ct__os_usage_read(&usage->os, with_migrations);
}

static int grew(const ct__os_usage *start, const ct__os_usage *end) {
    return end->cpu_ns >= start->cpu_ns && end->switches >= start->switches && end->preemptions >= start->preemptions &&
           end->minor_faults >= start->minor_faults && end->major_faults >= start->major_faults &&
           end->migrations >= start->migrations;
}

static void add_values(ct__os_usage *to, const ct__os_usage *start, const ct__os_usage *end) {
    to->known = to->known && start->known && end->known;
    to->migrations_known = to->migrations_known && start->migrations_known && end->migrations_known;
    to->cpu_ns += end->cpu_ns - start->cpu_ns;
    to->switches += end->switches - start->switches;
    to->preemptions += end->preemptions - start->preemptions;
    to->minor_faults += end->minor_faults - start->minor_faults;
    to->major_faults += end->major_faults - start->major_faults;
    to->migrations += end->migrations - start->migrations;
}

void ct__usage_add(ct__usage *sum, const ct__usage *start, const ct__usage *end) {
    if (sum->parts++ == 0) {
        memset(&sum->os, 0, sizeof sum->os);
        sum->os.known = sum->os.migrations_known = 1;
    }
    const ct__os_usage *told = end->os.reason[0] != '\0' ? &end->os : &start->os;
    if (told->reason[0] != '\0') memcpy(sum->os.reason, told->reason, sizeof sum->os.reason);
    sum->went_down |= !grew(&start->os, &end->os);
    add_values(&sum->os, &start->os, &end->os);
}

static void tell_reason(const ct__usage *sum, ct_usage *usage) {
    ct__text text;
    ct__text_start(&text, usage->reason, sizeof usage->reason);
    if (usage->known && usage->migrations_known) return;
    if (sum->parts == 0) {
        ct__text_put(&text, "no call was made");
    } else if (sum->went_down) {
        ct__text_put(&text, "the counts of the thread went down, as after a fork");
    } else {
        ct__text_put(&text, sum->os.reason);
    }
}

void ct__usage_tell(const ct__usage *sum, ct_usage *usage) {
    memset(usage, 0, sizeof *usage);
    usage->known = sum->parts > 0 && !sum->went_down && sum->os.known;
    usage->migrations_known = sum->parts > 0 && !sum->went_down && sum->os.migrations_known;
    tell_reason(sum, usage);
    if (usage->migrations_known) usage->migrations = sum->os.migrations;
    if (!usage->known) return;
    usage->cpu_ns = sum->os.cpu_ns;
    usage->switches = sum->os.switches;
    usage->preemptions = sum->os.preemptions;
    usage->minor_faults = sum->os.minor_faults;
    usage->major_faults = sum->os.major_faults;
}
