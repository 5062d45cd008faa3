/* SPDX-License-Identifier: MIT
 *
 * shm_linux.c: the files in shared memory, from the side of the process that publishes.
 *
 * Invariants: a file is complete before it has a name; its space is reserved before it is used (a full tmpfs answers
 * ENOSPC, never SIGBUS); the owner's flock(2) belongs to the open file description, which the mapping keeps alive after
 * the descriptor is closed, so "locked" means "its process lives" (other systems end such a lock with the descriptor).
 * The folder is ours, mode 0700, and no link.
 */
#define _GNU_SOURCE
#include "platform.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../codetimer.h"

/* ---- the folder ---- */

static int is_set(const char *text) { return text != NULL && *text != '\0'; }

/* A program may change its folder later. */
static int make_absolute(const char *given, char *path, size_t size) {
    char here[512] = "";
    if (given[0] != '/' && getcwd(here, sizeof here) == NULL) return -1;
    return snprintf(path, size, "%s%s%s", here, here[0] != '\0' ? "/" : "", given);
}

/* $CODETIMER_DIR, else /dev/shm/codetimer-<uid>, else $XDG_RUNTIME_DIR/codetimer. */
static int choose_directory(char *path, size_t size) {
    const char *given = getenv("CODETIMER_DIR"), *runtime = getenv("XDG_RUNTIME_DIR");
    int length = -1;
    if (is_set(given)) {
        length = make_absolute(given, path, size);
    } else if (access("/dev/shm", W_OK) == 0) {
        length = snprintf(path, size, "/dev/shm/codetimer-%lu", (unsigned long)geteuid());
    } else if (is_set(runtime)) {
        length = snprintf(path, size, "%s/codetimer", runtime);
    }
    return length > 0 && (size_t)length < size;
}

static int check_directory(const char *path, char *reason, size_t reason_size) {
    struct stat facts;
    if (lstat(path, &facts) != 0) {
        snprintf(reason, reason_size, "the folder %.90s: %s", path, strerror(errno));
        return errno == ENOENT ? CT_ENOENT : CT_EPERM;
    }
    const char *wrong = !S_ISDIR(facts.st_mode)          ? "is not a folder (or is a link)"
                        : facts.st_uid != geteuid()      ? "belongs to another user"
                        : (facts.st_mode & 0022) != 0    ? "can be written by others"
                        : access(path, W_OK | X_OK) != 0 ? "cannot be written"
                                                         : NULL;
    if (wrong == NULL) return CT_OK;
    snprintf(reason, reason_size, "the folder %.90s %s; set CODETIMER_DIR to one of your own, mode 0700", path, wrong);
    return CT_EPERM;
}

int ct__os_shm_directory(int create, char *path, size_t size, char *reason, size_t reason_size) {
    if (!choose_directory(path, size)) {
        snprintf(reason, reason_size, "no place to publish: /dev/shm cannot be written, or CODETIMER_DIR is too long");
        return CT_ENOTSUP;
    }
    if (create && mkdir(path, 0700) == 0) (void)chmod(path, 0700); /* whatever the umask */
    return check_directory(path, reason, reason_size);
}

/* ---- publishing ---- */

static int explain(const char *what, char *reason, size_t reason_size) {
    int error = errno;
    snprintf(reason, reason_size, "%s: %s", what, strerror(error));
    return error == ENOSPC || error == EDQUOT || error == EFBIG ? CT_EFULL
           : error == EACCES || error == EPERM                  ? CT_EPERM
                                                                : CT_EOS;
}

static int folder_of(const char *path, char *folder, size_t size) {
    const char *slash = strrchr(path, '/');
    if (slash == NULL || (size_t)(slash - path) >= size) return 0;
    memcpy(folder, path, (size_t)(slash - path));
    folder[slash - path] = '\0';
    return 1;
}

/* A file under a name that readers skip, for file systems without the other kind. */
static int make_temporary(const char *folder, char *temporary, size_t size) {
    snprintf(temporary, size, "%s/.new-XXXXXX", folder);
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) temporary[0] = '\0';
    return fd;
}

/* A file without a name (open(2), O_TMPFILE). */
static int make_unnamed(const char *path, char *temporary, size_t size) {
    char folder[512];
    temporary[0] = '\0';
    if (!folder_of(path, folder, sizeof folder)) return -1;
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    int lacking = fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL);
    if (fd >= 0 && access("/proc/self/fd", X_OK) != 0) { /* it could not be named */
        close(fd);
        lacking = 1;
    }
    return lacking ? make_temporary(folder, temporary, size) : fd;
}

static int give_name(int fd, const char *temporary, const char *path) {
    char link_path[64];
    if (temporary[0] != '\0') return link(temporary, path);
    snprintf(link_path, sizeof link_path, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, link_path, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

static int write_all(int fd, const char *from, size_t size) {
    size_t done = 0;
    while (done < size) {
        ssize_t wrote = pwrite(fd, from + done, size - done, (off_t)done);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) return 0;
        done += (size_t)wrote;
    }
    return 1;
}

/* Over the limit of file sizes the system would end the program by a signal. */
static int reserve_space(int fd, size_t offset, size_t size) {
    struct rlimit limit;
    errno = EFBIG;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && offset + size > limit.rlim_cur) return 0;
    int error = posix_fallocate(fd, (off_t)offset, (off_t)size);
    while (error == EINTR) error = posix_fallocate(fd, (off_t)offset, (off_t)size);
    errno = error;
    return error == 0;
}

static int map_over(int fd, void *address, size_t offset, size_t size) {
    return mmap(address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)offset) != MAP_FAILED;
}

static int publish_fd(int fd, const char *temporary, const char *path, void *address, size_t size, ct__os_file *file,
                      char *reason, size_t reason_size) {
    struct stat facts;
    (void)fchmod(fd, 0600); /* whatever the umask */
    if (!reserve_space(fd, 0, size)) return explain("no room for the segment", reason, reason_size);
    if (!write_all(fd, address, size)) return explain("the segment cannot be written", reason, reason_size);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) return explain("the segment cannot be locked", reason, reason_size);
    if (fstat(fd, &facts) != 0) return explain("the segment cannot be examined", reason, reason_size);
    if (give_name(fd, temporary, path) != 0) {
        if (errno == EEXIST) return CT_EXISTS;
        return explain("the segment cannot be named", reason, reason_size);
    }
    if (!map_over(fd, address, 0, size)) {
        int status = explain("the segment cannot be mapped", reason, reason_size);
        unlink(path);
        return status;
    }
    file->device = (uint64_t)facts.st_dev;
    file->inode = (uint64_t)facts.st_ino;
    return CT_OK;
}

int ct__os_shm_publish(const char *path, void *address, size_t size, ct__os_file *file, char *reason,
                       size_t reason_size) {
    char temporary[600];
    int fd = make_unnamed(path, temporary, sizeof temporary);
    if (fd < 0) return explain("the segment cannot be made", reason, reason_size);
    int status = publish_fd(fd, temporary, path, address, size, file, reason, reason_size);
    if (temporary[0] != '\0') unlink(temporary);
    close(fd);
    return status;
}

static int is_same(const struct stat *facts, const ct__os_file *file) {
    return (uint64_t)facts->st_dev == file->device && (uint64_t)facts->st_ino == file->inode;
}

int ct__os_shm_exists(const char *path) {
    struct stat facts;
    return lstat(path, &facts) == 0;
}

int ct__os_shm_is(const char *path, const ct__os_file *file) {
    struct stat facts;
    return lstat(path, &facts) == 0 && is_same(&facts, file);
}

int ct__os_shm_grow(const char *path, const ct__os_file *file, void *address, size_t offset, size_t size) {
    struct stat facts;
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return 0;
    int grown = fstat(fd, &facts) == 0 && is_same(&facts, file) && reserve_space(fd, offset, size) &&
                map_over(fd, address, offset, size);
    close(fd);
    return grown;
}

void ct__os_shm_unlink(const char *path, const ct__os_file *file) {
    if (ct__os_shm_is(path, file)) unlink(path);
}

/* Readers hold the lock for an instant when they ask whether the process lives. */
static int is_abandoned(int fd, int patiently) {
    const int tries = patiently ? 100 : 1;
    for (int i = 0; i < tries; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) return 1;
        if (patiently) ct__os_rest();
    }
    return 0;
}

int ct__os_shm_reap(const char *path, int patiently) {
    struct stat facts;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT ? CT_ENOENT : CT_EPERM;
    int status = CT_EPERM;
    if (fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) && is_abandoned(fd, patiently)) {
        ct__os_file file = {(uint64_t)facts.st_dev, (uint64_t)facts.st_ino};
        status = !ct__os_shm_is(path, &file) ? CT_ENOENT : unlink(path) == 0 ? CT_OK : CT_EOS;
    }
    close(fd);
    return status;
}
