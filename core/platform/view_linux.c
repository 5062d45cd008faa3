/* SPDX-License-Identifier: MIT
 *
 * view_linux.c: the files in shared memory, from the side of readers and controllers.
 *
 * A reader opens without following links, looks at what it got, and maps it read-only. Root reading another user's file
 * copies by pread(2) instead: that user could shorten the file under the mapping, which is SIGBUS. Whether the owner
 * lives is asked by a shared lock that is given back at once. Controllers exclude each other by a record lock of the
 * open file description (fcntl(2), F_OFD_SETLK), which ends with the controller, however it ends.
 */
#define _GNU_SOURCE
#include "platform.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../codetimer.h"

/* The address space of a segment ends here; a longer file is not one. */
static const uint64_t largest = (uint64_t)1 << 32;

static int status_of_errno(void) {
    if (errno == ENOENT || errno == ENOTDIR) return CT_ENOENT;
    if (errno == EACCES || errno == EPERM) return CT_EPERM;
    return errno == ELOOP ? CT_EINVAL : CT_EOS;
}

static void map_file(ct__os_view *view) {
    if (view->map != NULL) munmap((void *)(uintptr_t)view->map, view->size);
    view->map = NULL;
    if (geteuid() == 0 && view->uid != 0) return; /* by copies */
    void *map = mmap(NULL, view->size, PROT_READ, MAP_SHARED, view->fd, 0);
    if (map != MAP_FAILED) view->map = map;
}

static int examine(ct__os_view *view, size_t least, char *reason, size_t reason_size) {
    struct stat facts;
    if (fstat(view->fd, &facts) != 0) return status_of_errno();
    int foreign = facts.st_uid != geteuid() && geteuid() != 0;
    if (!S_ISREG(facts.st_mode) || foreign) {
        snprintf(reason, reason_size, foreign ? "it belongs to another user" : "it is not a regular file");
        return foreign ? CT_EPERM : CT_EINVAL;
    }
    if ((uint64_t)facts.st_size < least || (uint64_t)facts.st_size > largest) {
        snprintf(reason, reason_size, "its length, %lld bytes, is not that of a segment", (long long)facts.st_size);
        return CT_EINVAL;
    }
    view->size = (size_t)facts.st_size;
    view->uid = (uint64_t)facts.st_uid;
    view->file.device = (uint64_t)facts.st_dev;
    view->file.inode = (uint64_t)facts.st_ino;
    return CT_OK;
}

int ct__os_view_open(const char *path, size_t least, ct__os_view *view, char *reason, size_t reason_size) {
    memset(view, 0, sizeof *view);
    view->fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (view->fd < 0) {
        int status = status_of_errno();
        snprintf(reason, reason_size, "it cannot be opened: %s", errno == ELOOP ? "it is a link" : strerror(errno));
        return status;
    }
    int status = examine(view, least, reason, reason_size);
    if (status != CT_OK) {
        close(view->fd);
        view->fd = -1;
        return status;
    }
    map_file(view);
    return CT_OK;
}

void ct__os_view_close(ct__os_view *view) {
    if (view->map != NULL) munmap((void *)(uintptr_t)view->map, view->size);
    if (view->fd >= 0) close(view->fd);
    view->map = NULL;
    view->fd = -1;
}

int ct__os_view_refresh(ct__os_view *view) {
    struct stat facts;
    if (fstat(view->fd, &facts) != 0 || (uint64_t)facts.st_size > largest) return 0;
    if ((size_t)facts.st_size == view->size) return 0;
    if (view->map != NULL) munmap((void *)(uintptr_t)view->map, view->size);
    view->map = NULL;
    view->size = (size_t)facts.st_size;
    if (view->size > 0) map_file(view);
    return 1;
}

int ct__os_view_copy(const ct__os_view *view, size_t offset, void *to, size_t size) {
    if (offset > view->size || size > view->size - offset) return 0;
    if (view->map != NULL) {
        memcpy(to, view->map + offset, size);
        return 1;
    }
    return pread(view->fd, to, size, (off_t)offset) == (ssize_t)size;
}

int ct__os_view_alive(const ct__os_view *view) {
    if (flock(view->fd, LOCK_SH | LOCK_NB) != 0) return 1;
    flock(view->fd, LOCK_UN);
    return 0;
}

int ct__os_view_linked(const ct__os_view *view, const char *path) { return ct__os_shm_is(path, &view->file); }

/* ---- controllers ---- */

/* A controller holds the lock for microseconds, unless it was stopped; then the others say so instead of waiting. */
static int lock_for_control(int fd) {
    static const int tries = 10000; /* of 0.1 ms: a second or two */
    struct flock lock;
    memset(&lock, 0, sizeof lock);
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_len = 1;
    for (int i = 0; i < tries; i++) {
        if (fcntl(fd, F_OFD_SETLK, &lock) == 0) return CT_OK;
        if (errno != EAGAIN && errno != EACCES && errno != EINTR) return CT_EOS;
        ct__os_rest();
    }
    return CT_EBUSY;
}

static int open_for_control(const char *path, const ct__os_file *file, ct__os_control *control) {
    struct stat facts;
    control->fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (control->fd < 0) return status_of_errno();
    if (fstat(control->fd, &facts) != 0 || (uint64_t)facts.st_dev != file->device ||
        (uint64_t)facts.st_ino != file->inode)
        return CT_ENOENT;
    int status = lock_for_control(control->fd);
    if (status != CT_OK) return status;
    if (fstat(control->fd, &facts) != 0 || facts.st_size <= 0 || (uint64_t)facts.st_size > largest) return CT_EOS;
    control->size = (size_t)facts.st_size;
    void *map = mmap(NULL, control->size, PROT_READ | PROT_WRITE, MAP_SHARED, control->fd, 0);
    control->map = map != MAP_FAILED ? map : NULL;
    return map != MAP_FAILED ? CT_OK : CT_EOS;
}

int ct__os_control_open(const char *path, const ct__os_file *file, ct__os_control *control) {
    *control = (ct__os_control){-1, NULL, 0};
    int status = open_for_control(path, file, control);
    if (status != CT_OK) ct__os_control_close(control);
    return status;
}

void ct__os_control_close(ct__os_control *control) {
    if (control->map != NULL) munmap(control->map, control->size);
    if (control->fd >= 0) close(control->fd);
    control->map = NULL;
    control->fd = -1;
}

/* ---- folders ---- */

struct ct__os_folder {
    DIR *stream;
};

int ct__os_folder_open(const char *path, ct__os_folder **folder) {
    ct__os_folder *made = malloc(sizeof *made);
    if (made == NULL) return CT_ENOMEM;
    made->stream = opendir(path);
    if (made->stream == NULL) {
        int status = status_of_errno();
        free(made);
        return status;
    }
    *folder = made;
    return CT_OK;
}

int ct__os_folder_next(ct__os_folder *folder, char *name, size_t size) {
    const struct dirent *entry = readdir(folder->stream);
    while (entry != NULL && (entry->d_name[0] == '.' || strlen(entry->d_name) >= size)) entry = readdir(folder->stream);
    if (entry == NULL) return 0;
    memcpy(name, entry->d_name, strlen(entry->d_name) + 1);
    return 1;
}

void ct__os_folder_close(ct__os_folder *folder) {
    if (folder == NULL) return;
    closedir(folder->stream);
    free(folder);
}
