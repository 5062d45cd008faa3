/* SPDX-License-Identifier: MIT
 *
 * priority_windows.c: HIGH class and HIGHEST thread, REALTIME class on request; affinity within a processor group.
 *
 * The class belongs to the process, the priority within it to the thread; both are only ever raised. Windows gives HIGH
 * to one who asks for REALTIME without the privilege, and reports success: so both are read back. What was found is put
 * back only while both are still what was set here; another thread may have changed the class.
 */
#include "common_windows.h"

#include <stdio.h>
#include <string.h>

#include "../codetimer.h"

/* Places in ct__os_priority.saved and .set. */
enum { CLASS, THREAD, RAW_COUNT };

static const struct {
    DWORD class;
    const char *name;
} classes[] = {
    /* from low to high */
    {IDLE_PRIORITY_CLASS, "IDLE"},     {BELOW_NORMAL_PRIORITY_CLASS, "BELOW_NORMAL"},
    {NORMAL_PRIORITY_CLASS, "NORMAL"}, {ABOVE_NORMAL_PRIORITY_CLASS, "ABOVE_NORMAL"},
    {HIGH_PRIORITY_CLASS, "HIGH"},     {REALTIME_PRIORITY_CLASS, "REALTIME"},
};

enum { CLASS_COUNT = sizeof classes / sizeof classes[0] };

/* Place in the table, -1 for an unknown class. */
static int rank_class(int64_t class) {
    for (int i = 0; i < CLASS_COUNT; i++) {
        if (classes[i].class == (DWORD) class) return i;
    }
    return -1;
}

static int read_raw(int64_t raw[RAW_COUNT]) {
    DWORD class = GetPriorityClass(GetCurrentProcess());
    int thread = GetThreadPriority(GetCurrentThread());
    if (class == 0 || thread == THREAD_PRIORITY_ERROR_RETURN) return 0;
    raw[CLASS] = class;
    raw[THREAD] = thread;
    return 1;
}

static int are_equal(const int64_t a[RAW_COUNT], const int64_t b[RAW_COUNT]) {
    return a[CLASS] == b[CLASS] && a[THREAD] == b[THREAD];
}

static int to_status(DWORD error) {
    if (error == ERROR_ACCESS_DENIED || error == ERROR_PRIVILEGE_NOT_HELD) return CT_EPERM;
    return error == ERROR_CALL_NOT_IMPLEMENTED ? CT_ENOTSUP : CT_EOS;
}

/* ---- raising ---- */

static int set_higher(int64_t class, const int64_t present[RAW_COUNT], char *reason, size_t size) {
    if (rank_class(present[CLASS]) < rank_class(class) && !SetPriorityClass(GetCurrentProcess(), (DWORD) class)) {
        DWORD error = GetLastError();
        snprintf(reason, size, "the %s class was refused (error %lu)", classes[rank_class(class)].name, error);
        return to_status(error);
    }
    if (present[THREAD] < THREAD_PRIORITY_HIGHEST && !SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_HIGHEST)) {
        DWORD error = GetLastError();
        snprintf(reason, size, "the HIGHEST thread priority was refused (error %lu)", error);
        return to_status(error);
    }
    return CT_OK;
}

int ct__os_priority_raise(int level, ct__os_priority *raw, char *reason, size_t reason_size) {
    int64_t class = level == CT__PRIORITY_REALTIME ? REALTIME_PRIORITY_CLASS : HIGH_PRIORITY_CLASS;
    if (reason_size > 0) reason[0] = '\0';
    raw->changed = 0;
    if (!read_raw(raw->saved)) {
        snprintf(reason, reason_size, "the priority cannot be read (error %lu): left alone", GetLastError());
        return CT_EOS;
    }
    memcpy(raw->set, raw->saved, sizeof raw->set);
    if (level == CT__PRIORITY_KEEP) return CT_OK;
    int status = set_higher(class, raw->saved, reason, reason_size);
    if (!read_raw(raw->set)) return CT_EOS;
    raw->changed = !are_equal(raw->set, raw->saved);
    if (status != CT_OK || rank_class(raw->set[CLASS]) >= rank_class(class)) return status;
    snprintf(reason, reason_size,
             "REALTIME was reduced to a lower class: needs the right to increase scheduling priority "
             "(SeIncreaseBasePriorityPrivilege; run as administrator)");
    return CT_EPERM;
}

int ct__os_priority_restore(ct__os_priority *raw) {
    int64_t present[RAW_COUNT];
    if (!raw->changed) return CT_OK;
    if (!read_raw(present)) return CT_EOS;
    if (!are_equal(present, raw->saved)) {
        if (!are_equal(present, raw->set)) return CT_ECHANGED;
        if (!SetThreadPriority(GetCurrentThread(), (int)raw->saved[THREAD])) return to_status(GetLastError());
        if (!SetPriorityClass(GetCurrentProcess(), (DWORD)raw->saved[CLASS])) return to_status(GetLastError());
    }
    raw->changed = 0;
    return CT_OK;
}

/* ---- affinity ---- */

/* A mask covers one group of at most 64 processors; CPUs are numbered through all groups. Returns 0 if there is no
 * such. */
static int find_cpu(int cpu, GROUP_AFFINITY *affinity) {
    memset(affinity, 0, sizeof *affinity);
    DWORD left = (DWORD)cpu;
    WORD groups = GetActiveProcessorGroupCount();
    for (WORD group = 0; group < groups; group++) {
        DWORD count = GetActiveProcessorCount(group);
        if (left < count) {
            affinity->Group = group;
            affinity->Mask = (KAFFINITY)1 << left;
            return 1;
        }
        left -= count;
    }
    return 0;
}

static int are_same_cpus(const GROUP_AFFINITY *a, const GROUP_AFFINITY *b) {
    return a->Group == b->Group && a->Mask == b->Mask;
}

int ct__os_cpu_pin(int cpu, ct__os_priority *raw, char *reason, size_t reason_size) {
    GROUP_AFFINITY before, wanted, after;
    if (reason_size > 0) reason[0] = '\0';
    raw->cpu_changed = 0;
    if (cpu < 0 || !find_cpu(cpu, &wanted)) {
        snprintf(reason, reason_size, "CPU %d does not exist: there are %lu", cpu,
                 GetActiveProcessorCount(ALL_PROCESSOR_GROUPS));
        return CT_ENOTSUP;
    }
    if (!GetThreadGroupAffinity(GetCurrentThread(), &before) ||
        !SetThreadGroupAffinity(GetCurrentThread(), &wanted, NULL)) {
        DWORD error = GetLastError();
        snprintf(reason, reason_size, "pinning to CPU %d was refused (error %lu)", cpu, error);
        return error == ERROR_INVALID_PARAMETER ? CT_ENOTSUP : to_status(error);
    }
    if (!GetThreadGroupAffinity(GetCurrentThread(), &after)) after = wanted;
    memcpy(raw->saved_cpus, &before, sizeof before);
    memcpy(raw->set_cpus, &after, sizeof after);
    raw->cpu_changed = !are_same_cpus(&before, &after);
    if (are_same_cpus(&after, &wanted)) return CT_OK;
    snprintf(reason, reason_size, "the system accepted the pin to CPU %d but did not make it", cpu);
    return CT_ENOTSUP;
}

int ct__os_cpu_restore(ct__os_priority *raw) {
    GROUP_AFFINITY saved, set, present;
    if (!raw->cpu_changed) return CT_OK;
    memcpy(&saved, raw->saved_cpus, sizeof saved);
    memcpy(&set, raw->set_cpus, sizeof set);
    if (!GetThreadGroupAffinity(GetCurrentThread(), &present)) return to_status(GetLastError());
    if (!are_same_cpus(&present, &saved)) {
        if (!are_same_cpus(&present, &set)) return CT_ECHANGED;
        memset(saved.Reserved, 0, sizeof saved.Reserved); /* must be zero */
        if (!SetThreadGroupAffinity(GetCurrentThread(), &saved, NULL)) return to_status(GetLastError());
    }
    raw->cpu_changed = 0;
    return CT_OK;
}

/* ---- texts ---- */

static const char *name_thread(int64_t priority) {
    switch (priority) {
    case THREAD_PRIORITY_IDLE:
        return "IDLE";
    case THREAD_PRIORITY_LOWEST:
        return "LOWEST";
    case THREAD_PRIORITY_BELOW_NORMAL:
        return "BELOW_NORMAL";
    case THREAD_PRIORITY_NORMAL:
        return "NORMAL";
    case THREAD_PRIORITY_ABOVE_NORMAL:
        return "ABOVE_NORMAL";
    case THREAD_PRIORITY_HIGHEST:
        return "HIGHEST";
    case THREAD_PRIORITY_TIME_CRITICAL:
        return "TIME_CRITICAL";
    default:
        return NULL;
    }
}

void ct__os_priority_text(char *buffer, size_t size) {
    int64_t raw[RAW_COUNT];
    if (!read_raw(raw)) {
        snprintf(buffer, size, "unknown");
        return;
    }
    int rank = rank_class(raw[CLASS]);
    const char *class = rank >= 0 ? classes[rank].name : "unknown", *thread = name_thread(raw[THREAD]);
    if (thread != NULL) {
        snprintf(buffer, size, "%s class, %s thread", class, thread);
    } else {
        snprintf(buffer, size, "%s class, thread at %d", class, (int)raw[THREAD]);
    }
}

void ct__os_priority_scope(char *buffer, size_t size) {
    snprintf(buffer, size, "this thread; the class: the whole process%s",
             ct__os_is_wine() ? "; Wine only remembers both" : "");
}
