/* SPDX-License-Identifier: MIT
 *
 * fake_priority.c: see fake_priority.h.
 */
#include "fake_priority.h"

#include <stdio.h>
#include <string.h>

#include "codetimer.h"
#include "platform/platform.h"

#define FRESH                                                                                                          \
    { 0, -1, CT_OK, CT_OK, CT_OK, CT_OK, 0 }

fake_priority_state fake_priority = FRESH;

void fake_priority_reset(void) {
    fake_priority_state fresh = FRESH;
    fake_priority = fresh;
}

int ct__os_priority_raise(int level, ct__os_priority *raw, char *reason, size_t reason_size) {
    raw->saved[0] = raw->set[0] = fake_priority.level;
    raw->changed = 0;
    if (fake_priority.raise_status != CT_OK) {
        snprintf(reason, reason_size, "level %d refused by the script", level);
        return fake_priority.raise_status;
    }
    if (fake_priority.level >= level) return CT_OK;
    fake_priority.level = level;
    fake_priority.calls++;
    raw->set[0] = level;
    raw->changed = 1;
    return CT_OK;
}

int ct__os_priority_restore(ct__os_priority *raw) {
    if (!raw->changed) return CT_OK;
    if (fake_priority.level != raw->set[0]) return CT_ECHANGED;
    if (fake_priority.restore_status != CT_OK) return fake_priority.restore_status;
    fake_priority.level = (int)raw->saved[0];
    fake_priority.calls++;
    raw->changed = 0;
    return CT_OK;
}

int ct__os_cpu_pin(int cpu, ct__os_priority *raw, char *reason, size_t reason_size) {
    memcpy(raw->saved_cpus, &fake_priority.cpu, sizeof fake_priority.cpu);
    if (fake_priority.pin_status != CT_OK) {
        snprintf(reason, reason_size, "CPU %d refused by the script", cpu);
        return fake_priority.pin_status;
    }
    fake_priority.cpu = cpu;
    fake_priority.calls++;
    memcpy(raw->set_cpus, &cpu, sizeof cpu);
    raw->cpu_changed = 1;
    return CT_OK;
}

int ct__os_cpu_restore(ct__os_priority *raw) {
    if (!raw->cpu_changed) return CT_OK;
    if (memcmp(raw->set_cpus, &fake_priority.cpu, sizeof fake_priority.cpu) != 0) return CT_ECHANGED;
    if (fake_priority.unpin_status != CT_OK) return fake_priority.unpin_status;
    memcpy(&fake_priority.cpu, raw->saved_cpus, sizeof fake_priority.cpu);
    fake_priority.calls++;
    raw->cpu_changed = 0;
    return CT_OK;
}

void ct__os_priority_text(char *buffer, size_t size) { snprintf(buffer, size, "level %d", fake_priority.level); }

void ct__os_priority_scope(char *buffer, size_t size) { snprintf(buffer, size, "this thread"); }
