/* SPDX-License-Identifier: MIT
 *
 * fake_shm.c: see fake_shm.h. Each file is a memfd, so that its owner and its readers can map it as they would a real
 * one.
 */
#define _GNU_SOURCE
#include "fake_shm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "codetimer.h"
#include "platform/platform.h"

enum { FILES = 64 };

typedef struct entry {
    char path[256];
    int fd, linked;
    size_t size;
} entry;

#define FRESH                                                                                                          \
    { CT_OK, CT_OK, CT_OK, CT_OK, (size_t)1 << 30, 0, 0, 0, NULL, 77, 1234, 0, 0, 0, 0 }

fake_shm_state fake_shm = FRESH;

static entry files[FILES];
static int files_made;
static void (*in_child)(void);
static void (*at_exit)(void);

void fake_shm_reset(void) {
    fake_shm_state fresh = FRESH;
    fake_shm = fresh;
}

/* ---- files ---- */

static entry *find(const char *path) {
    for (int i = 0; i < files_made; i++)
        if (files[i].linked && strcmp(files[i].path, path) == 0) return &files[i];
    return NULL;
}

static entry *make(const char *path, size_t size) {
    if (files_made == FILES) abort();
    entry *made = &files[files_made++];
    snprintf(made->path, sizeof made->path, "%s", path);
    made->fd = memfd_create("fake", MFD_CLOEXEC);
    if (made->fd < 0 || ftruncate(made->fd, (off_t)size) != 0) abort();
    made->linked = 1;
    made->size = size;
    return made;
}

static entry *entry_of(const ct__os_file *file) { return &files[file->inode - 1]; }
static uint64_t inode_of(const entry *one) { return (uint64_t)(one - files) + 1; }

static void *map(const entry *one, void *address, size_t offset, size_t size) {
    int flags = MAP_SHARED | (address != NULL ? MAP_FIXED : 0);
    void *mapped = mmap(address, size, PROT_READ | PROT_WRITE, flags, one->fd, (off_t)offset);
    if (mapped == MAP_FAILED) abort();
    return mapped;
}

unsigned char *fake_shm_bytes(const char *path, size_t *size) {
    const entry *one = find(path);
    if (one == NULL) return NULL;
    *size = one->size;
    return map(one, NULL, 0, one->size);
}

void fake_shm_put(const char *path, const void *bytes, size_t size) {
    entry *one = find(path);
    if (one == NULL) one = make(path, size);
    one->size = size;
    if (ftruncate(one->fd, (off_t)size) != 0) abort();
    if (size > 0 && pwrite(one->fd, bytes, size, 0) != (ssize_t)size) abort();
}

void fake_shm_remove(const char *path) {
    entry *one = find(path);
    if (one != NULL) one->linked = 0;
}

int fake_shm_count(void) {
    int count = 0;
    for (int i = 0; i < files_made; i++) count += files[i].linked;
    return count;
}

/* ---- processes ---- */

void ct__os_at_fork(void (*function)(void)) { in_child = function; }
void ct__os_at_exit(void (*function)(void)) { at_exit = function; }

void fake_shm_fork(void) {
    ct__os_lock();
    fake_shm.pid++;
    if (in_child != NULL) in_child();
    ct__os_unlock();
}

void fake_shm_exit(void) {
    if (at_exit != NULL) at_exit();
}

int ct__os_memory_clear(void *address, size_t size) {
    int access = fake_shm.clear_fails ? PROT_READ : PROT_READ | PROT_WRITE;
    if (mmap(address, size, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) abort();
    return !fake_shm.clear_fails;
}

void ct__os_identity(uint64_t *pid, uint64_t *start_time, uint64_t *uid, char *boot_id, size_t boot_id_size) {
    *pid = fake_shm.pid;
    *start_time = fake_shm.start_time;
    *uid = 1000;
    snprintf(boot_id, boot_id_size, "a boot");
}

/* ---- publishing ---- */

int ct__os_shm_directory(int create, char *path, size_t size, char *reason, size_t reason_size) {
    (void)create;
    snprintf(path, size, "/fake");
    if (fake_shm.directory_status != CT_OK) snprintf(reason, reason_size, "no folder in the script");
    return fake_shm.directory_status;
}

int ct__os_shm_publish(const char *path, void *address, size_t size, ct__os_file *file, char *reason,
                       size_t reason_size) {
    int status = find(path) != NULL ? CT_EXISTS : fake_shm.publish_status;
    if (status == CT_OK && size > fake_shm.room) status = CT_EFULL;
    if (status != CT_OK) {
        snprintf(reason, reason_size, "refused by the script");
        return status;
    }
    entry *one = make(path, size);
    if (pwrite(one->fd, address, size, 0) != (ssize_t)size) abort();
    map(one, address, 0, size);
    fake_shm.room -= size;
    fake_shm.publications++;
    *file = (ct__os_file){1, inode_of(one)};
    return CT_OK;
}

int ct__os_shm_exists(const char *path) { return find(path) != NULL; }

int ct__os_shm_is(const char *path, const ct__os_file *file) {
    const entry *one = find(path);
    return one != NULL && inode_of(one) == file->inode;
}

int ct__os_shm_grow(const char *path, const ct__os_file *file, void *address, size_t offset, size_t size) {
    if (!ct__os_shm_is(path, file) || size > fake_shm.room) return 0;
    entry *one = entry_of(file);
    if (ftruncate(one->fd, (off_t)(offset + size)) != 0) abort();
    one->size = offset + size;
    map(one, address, offset, size);
    fake_shm.room -= size;
    fake_shm.growths++;
    return 1;
}

void ct__os_shm_unlink(const char *path, const ct__os_file *file) {
    if (ct__os_shm_is(path, file)) fake_shm_remove(path);
}

int ct__os_shm_reap(const char *path, int patiently) {
    (void)patiently;
    if (find(path) == NULL) return CT_ENOENT;
    if (!fake_shm.dead) return CT_EPERM;
    fake_shm_remove(path);
    fake_shm.reaps++;
    return CT_OK;
}

/* ---- reading ---- */

static void map_view(ct__os_view *view) {
    const entry *one = entry_of(&view->file);
    if (view->map != NULL) munmap((void *)(uintptr_t)view->map, view->size);
    view->size = one->size;
    view->map = fake_shm.by_copies || one->size == 0 ? NULL : map(one, NULL, 0, one->size);
}

int ct__os_view_open(const char *path, size_t least, ct__os_view *view, char *reason, size_t reason_size) {
    const entry *one = find(path);
    memset(view, 0, sizeof *view);
    view->fd = -1;
    if (one == NULL || one->size < least) {
        snprintf(reason, reason_size, one == NULL ? "it is not there" : "it is too short");
        return one == NULL ? CT_ENOENT : CT_EINVAL;
    }
    view->uid = 1000;
    view->file = (ct__os_file){1, inode_of(one)};
    map_view(view);
    return CT_OK;
}

void ct__os_view_close(ct__os_view *view) {
    if (view->map != NULL) munmap((void *)(uintptr_t)view->map, view->size);
    view->map = NULL;
}

int ct__os_view_refresh(ct__os_view *view) {
    if (entry_of(&view->file)->size == view->size) return 0;
    map_view(view);
    return 1;
}

int ct__os_view_copy(const ct__os_view *view, size_t offset, void *to, size_t size) {
    if (offset > view->size || size > view->size - offset) return 0;
    if (fake_shm.before_copy != NULL) fake_shm.before_copy(offset, size);
    return pread(entry_of(&view->file)->fd, to, size, (off_t)offset) == (ssize_t)size;
}

int ct__os_view_alive(const ct__os_view *view) {
    (void)view;
    return !fake_shm.dead;
}

int ct__os_view_linked(const ct__os_view *view, const char *path) { return ct__os_shm_is(path, &view->file); }

/* ---- controlling ---- */

int ct__os_control_open(const char *path, const ct__os_file *file, ct__os_control *control) {
    *control = (ct__os_control){-1, NULL, 0};
    if (fake_shm.control_status != CT_OK) return fake_shm.control_status;
    if (!ct__os_shm_is(path, file)) return CT_ENOENT;
    control->size = entry_of(file)->size;
    control->map = map(entry_of(file), NULL, 0, control->size);
    fake_shm.controls++;
    return CT_OK;
}

void ct__os_control_close(ct__os_control *control) {
    if (control->map != NULL) munmap(control->map, control->size);
    control->map = NULL;
    fake_shm.controls--;
}

/* ---- folders ---- */

struct ct__os_folder {
    int next;
};

int ct__os_folder_open(const char *path, ct__os_folder **folder) {
    (void)path;
    if (fake_shm.folder_status != CT_OK) return fake_shm.folder_status;
    *folder = calloc(1, sizeof **folder);
    return *folder != NULL ? CT_OK : CT_ENOMEM;
}

int ct__os_folder_next(ct__os_folder *folder, char *name, size_t size) {
    while (folder->next < files_made && !files[folder->next].linked) folder->next++;
    if (folder->next == files_made) return 0;
    snprintf(name, size, "%s", strrchr(files[folder->next++].path, '/') + 1);
    return 1;
}

void ct__os_folder_close(ct__os_folder *folder) { free(folder); }
