/* SPDX-License-Identifier: MIT
 *
 * file_posix.c: a small file read whole.
 *
 * What is no regular file is not opened: a pipe would wait for its writer, a device might do something. It may become
 * one between the question and the opening; so the opening does not wait either, and what was opened is asked again.
 */
#define _GNU_SOURCE
#include "platform.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../codetimer.h"

#if defined(__APPLE__)
#define TIME_OF(facts, which) (facts)->st_##which##timespec
#else
#define TIME_OF(facts, which) (facts)->st_##which##tim
#endif

int ct__os_path_absolute(const char *path, char *absolute, size_t size) {
    char here[4096] = "";
    if (path[0] != '/' && (getcwd(here, sizeof here) == NULL || here[0] != '/')) return CT_EINVAL;
    int length = snprintf(absolute, size, "%s%s%s", here, path[0] != '/' && here[1] != '\0' ? "/" : "", path);
    return length > 0 && (size_t)length < size ? CT_OK : CT_EINVAL;
}

static int explain(const char *what, char *reason, size_t reason_size) {
    if (errno == ENOENT || errno == ENOTDIR) return CT_ENOENT;
    int status = errno == EACCES || errno == EPERM ? CT_EPERM : CT_EOS;
    snprintf(reason, reason_size, "it cannot be %s: %s", what, strerror(errno));
    return status;
}

static int check_kind(const struct stat *facts, char *reason, size_t reason_size) {
    if (S_ISREG(facts->st_mode)) return CT_OK;
    snprintf(reason, reason_size, "%s",
             S_ISDIR(facts->st_mode)    ? "it is a directory, not a regular file"
             : S_ISFIFO(facts->st_mode) ? "it is a pipe, not a regular file"
             : S_ISSOCK(facts->st_mode) ? "it is a socket, not a regular file"
                                        : "it is a device, not a regular file");
    return CT_EINVAL;
}

static int is_same_time(const struct timespec *one, const struct timespec *other) {
    return one->tv_sec == other->tv_sec && one->tv_nsec == other->tv_nsec;
}

static int has_changed(const struct stat *before, const struct stat *after) {
    return before->st_size != after->st_size || !is_same_time(&TIME_OF(before, m), &TIME_OF(after, m)) ||
           !is_same_time(&TIME_OF(before, c), &TIME_OF(after, c));
}

/* Up to "size" bytes: files of some systems do not tell their length. */
static int read_all(int fd, char *buffer, size_t size, uint64_t *length, char *reason, size_t reason_size) {
    size_t done = 0;
    while (done < size) {
        ssize_t got = read(fd, buffer + done, size - done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            (void)explain("read", reason, reason_size);
            return CT_EOS;
        }
        if (got == 0) break;
        done += (size_t)got;
    }
    *length = done;
    return CT_OK;
}

/* Facts that would have to repeat in such a way that they cancel out. */
static uint64_t make_stamp(const struct stat *facts) {
    const uint64_t odd = 0x9e3779b97f4a7c15u;
    const uint64_t parts[] = {(uint64_t)facts->st_dev,
                              (uint64_t)facts->st_ino,
                              (uint64_t)TIME_OF(facts, m).tv_sec,
                              (uint64_t)TIME_OF(facts, m).tv_nsec,
                              (uint64_t)TIME_OF(facts, c).tv_sec,
                              (uint64_t)TIME_OF(facts, c).tv_nsec};
    uint64_t stamp = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        stamp = (stamp ^ parts[i]) * odd;
        stamp ^= stamp >> 29;
    }
    return stamp;
}

static int read_open(int fd, char *buffer, size_t size, uint64_t *length, uint64_t *stamp, char *reason,
                     size_t reason_size) {
    struct stat before, after;
    if (fstat(fd, &before) != 0) return explain("looked at", reason, reason_size);
    int status = check_kind(&before, reason, reason_size);
    if (status != CT_OK) return status;
    *length = (uint64_t)before.st_size;
    *stamp = make_stamp(&before);
    if (*length > size) return CT_EFULL;
    status = read_all(fd, buffer, size, length, reason, reason_size);
    if (status != CT_OK) return status;
    if (fstat(fd, &after) != 0) return explain("looked at", reason, reason_size);
    return has_changed(&before, &after) ? CT_EBUSY : CT_OK;
}

int ct__os_file_read(const char *path, char *buffer, size_t size, uint64_t *length, uint64_t *stamp, char *reason,
                     size_t reason_size) {
    struct stat facts;
    if (stat(path, &facts) != 0) return explain("looked at", reason, reason_size);
    int status = check_kind(&facts, reason, reason_size);
    if (status != CT_OK) return status;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) return explain("opened", reason, reason_size);
    status = read_open(fd, buffer, size, length, stamp, reason, reason_size);
    close(fd);
    return status;
}
