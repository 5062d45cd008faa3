/* SPDX-License-Identifier: MIT
 *
 * priority_macos.c: a QoS override of the calling thread.
 *
 * On macOS the quality-of-service class decides over both scheduling and the kind of core. An override lifts the thread
 * to a class and is ended by its own handle, so that the thread's own class is never written and nothing of it has to
 * be put back. pthread_setschedparam is not used: it takes the thread out of QoS for good. Real-time (time constraint)
 * threads are demoted when they run long, which is what a measured thread does; so "realtime" is answered with the
 * override and the reason. There is no CPU affinity.
 *
 * The system does not tell which overrides a thread has; they are counted here.
 */
#include "platform.h"

#include <errno.h>
#include <pthread.h>
#include <pthread/qos.h>
#include <stdio.h>
#include <string.h>

#include "../codetimer.h"

/* Place of the override's handle in ct__os_priority.set, and of the class that was found in .saved. */
enum { HANDLE = 0 };

static _Thread_local int overrides;

int ct__os_priority_raise(int level, ct__os_priority *raw, char *reason, size_t reason_size) {
    if (reason_size > 0) reason[0] = '\0';
    raw->changed = 0;
    raw->saved[HANDLE] = (int64_t)qos_class_self();
    if (level == CT__PRIORITY_KEEP) return CT_OK;
    if (raw->saved[HANDLE] != QOS_CLASS_USER_INTERACTIVE) {
        pthread_override_t handle = pthread_override_qos_class_start_np(pthread_self(), QOS_CLASS_USER_INTERACTIVE, 0);
        if (handle == NULL) {
            snprintf(reason, reason_size, "the QoS override was refused (errno %d)", errno);
            return CT_ENOTSUP;
        }
        raw->set[HANDLE] = (int64_t)(intptr_t)handle;
        raw->changed = 1;
        overrides++;
    }
    if (level != CT__PRIORITY_REALTIME) return CT_OK;
    snprintf(reason, reason_size,
             "macOS demotes real-time threads that run long: user-interactive, its highest class, is used instead");
    return CT_ENOTSUP;
}

int ct__os_priority_restore(ct__os_priority *raw) {
    if (!raw->changed) return CT_OK;
    int error = pthread_override_qos_class_end_np((pthread_override_t)(intptr_t)raw->set[HANDLE]);
    if (error != 0) return error == EPERM ? CT_EPERM : CT_EOS;
    raw->changed = 0;
    overrides--;
    return CT_OK;
}

int ct__os_cpu_pin(int cpu, ct__os_priority *raw, char *reason, size_t reason_size) {
    raw->cpu_changed = 0;
    snprintf(reason, reason_size, "macOS cannot pin a thread to CPU %d: it has no CPU affinity", cpu);
    return CT_ENOTSUP;
}

int ct__os_cpu_restore(ct__os_priority *raw) {
    raw->cpu_changed = 0;
    return CT_OK;
}

static const char *name_class(qos_class_t class) {
    switch (class) {
    case QOS_CLASS_USER_INTERACTIVE:
        return "user-interactive";
    case QOS_CLASS_USER_INITIATED:
        return "user-initiated";
    case QOS_CLASS_DEFAULT:
        return "default";
    case QOS_CLASS_UTILITY:
        return "utility";
    case QOS_CLASS_BACKGROUND:
        return "background";
    default:
        return "unspecified";
    }
}

void ct__os_priority_text(char *buffer, size_t size) {
    snprintf(buffer, size, "QoS %s%s", name_class(qos_class_self()),
             overrides > 0 ? ", override user-interactive" : "");
}

void ct__os_priority_scope(char *buffer, size_t size) {
    snprintf(buffer, size, "this thread; macOS itself chooses between fast and slow cores");
}
