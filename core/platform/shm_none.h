/* SPDX-License-Identifier: MIT
 *
 * shm_none.h: a system where counters are not published yet. Included by one .c file, which says why: NOT_HERE. The
 * program counts privately, ct_segment_info gives the reason, and there is nothing to read or to switch.
 */
#ifndef CT_SHM_NONE_H
#define CT_SHM_NONE_H

#include <stdio.h>
#include <string.h>

#include "../codetimer.h"
#include "platform.h"

static int refuse(char *reason, size_t reason_size) {
    snprintf(reason, reason_size, "%s", NOT_HERE);
    return CT_ENOTSUP;
}

int ct__os_shm_directory(int create, char *path, size_t size, char *reason, size_t reason_size) {
    (void)create;
    if (size > 0) path[0] = '\0';
    return refuse(reason, reason_size);
}

int ct__os_shm_publish(const char *path, void *address, size_t size, ct__os_file *file, char *reason,
                       size_t reason_size) {
    (void)path, (void)address, (void)size, (void)file;
    return refuse(reason, reason_size);
}

int ct__os_shm_grow(const char *path, const ct__os_file *file, void *address, size_t offset, size_t size) {
    (void)path, (void)file, (void)address, (void)offset, (void)size;
    return 0;
}

int ct__os_shm_exists(const char *path) {
    (void)path;
    return 0;
}

int ct__os_shm_is(const char *path, const ct__os_file *file) {
    (void)path, (void)file;
    return 0;
}

void ct__os_shm_unlink(const char *path, const ct__os_file *file) { (void)path, (void)file; }

int ct__os_shm_reap(const char *path, int patiently) {
    (void)path, (void)patiently;
    return CT_ENOTSUP;
}

/* ---- reading ---- */

int ct__os_view_open(const char *path, size_t least, ct__os_view *view, char *reason, size_t reason_size) {
    (void)path, (void)least;
    memset(view, 0, sizeof *view);
    view->fd = -1;
    return refuse(reason, reason_size);
}

void ct__os_view_close(ct__os_view *view) { (void)view; }

int ct__os_view_refresh(ct__os_view *view) {
    (void)view;
    return 0;
}

int ct__os_view_copy(const ct__os_view *view, size_t offset, void *to, size_t size) {
    (void)view, (void)offset, (void)to, (void)size;
    return 0;
}

int ct__os_view_alive(const ct__os_view *view) {
    (void)view;
    return 0;
}

int ct__os_view_linked(const ct__os_view *view, const char *path) {
    (void)view, (void)path;
    return 0;
}

int ct__os_control_open(const char *path, const ct__os_file *file, ct__os_control *control) {
    (void)path, (void)file, (void)control;
    return CT_ENOTSUP;
}

void ct__os_control_close(ct__os_control *control) { (void)control; }

/* ---- folders ---- */

int ct__os_folder_open(const char *path, ct__os_folder **folder) {
    (void)path, (void)folder;
    return CT_ENOTSUP;
}

int ct__os_folder_next(ct__os_folder *folder, char *name, size_t size) {
    (void)folder, (void)name, (void)size;
    return 0;
}

void ct__os_folder_close(ct__os_folder *folder) { (void)folder; }

#endif
