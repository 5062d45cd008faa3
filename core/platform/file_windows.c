/* SPDX-License-Identifier: MIT
 *
 * file_windows.c: a small file read whole. It is opened so that others may write, replace and delete it meanwhile.
 * Paths are UTF-8.
 */
#include "common_windows.h"

#include <stdio.h>
#include <string.h>

#include "../codetimer.h"

enum { PATH_MOST = 4096 };

static int widen(const char *path, wchar_t *wide) {
    return MultiByteToWideChar(CP_UTF8, 0, path, -1, wide, PATH_MOST) > 0;
}

int ct__os_path_absolute(const char *path, char *absolute, size_t size) {
    wchar_t wide[PATH_MOST], full[PATH_MOST];
    if (!widen(path, wide)) return CT_EINVAL;
    DWORD length = GetFullPathNameW(wide, PATH_MOST, full, NULL);
    if (length == 0 || length >= PATH_MOST) return CT_EINVAL;
    return WideCharToMultiByte(CP_UTF8, 0, full, -1, absolute, (int)size, NULL, NULL) > 0 ? CT_OK : CT_EINVAL;
}

static int explain(char *reason, size_t reason_size) {
    DWORD error = GetLastError();
    if (error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND) return CT_ENOENT;
    snprintf(reason, reason_size, "it cannot be opened or read: error %lu of Windows", (unsigned long)error);
    return error == ERROR_ACCESS_DENIED || error == ERROR_SHARING_VIOLATION ? CT_EPERM : CT_EOS;
}

static int has_changed(const BY_HANDLE_FILE_INFORMATION *before, const BY_HANDLE_FILE_INFORMATION *after) {
    return before->nFileSizeLow != after->nFileSizeLow || before->nFileSizeHigh != after->nFileSizeHigh ||
           CompareFileTime(&before->ftLastWriteTime, &after->ftLastWriteTime) != 0;
}

static uint64_t make_stamp(const BY_HANDLE_FILE_INFORMATION *facts) {
    const uint64_t odd = 0x9e3779b97f4a7c15u;
    uint64_t time = (uint64_t)facts->ftLastWriteTime.dwHighDateTime << 32 | facts->ftLastWriteTime.dwLowDateTime;
    uint64_t index = (uint64_t)facts->nFileIndexHigh << 32 | facts->nFileIndexLow;
    return (time * odd ^ index) * odd ^ facts->dwVolumeSerialNumber;
}

static int read_open(HANDLE file, char *buffer, size_t size, uint64_t *length, uint64_t *stamp, char *reason,
                     size_t reason_size) {
    BY_HANDLE_FILE_INFORMATION before, after;
    DWORD done = 0, got = 0;
    if (GetFileType(file) != FILE_TYPE_DISK) {
        snprintf(reason, reason_size, "it is a device or a pipe, not a regular file");
        return CT_EINVAL;
    }
    if (!GetFileInformationByHandle(file, &before)) return explain(reason, reason_size);
    *length = (uint64_t)before.nFileSizeHigh << 32 | before.nFileSizeLow;
    *stamp = make_stamp(&before);
    if (*length > size) return CT_EFULL;
    do {
        if (!ReadFile(file, buffer + done, (DWORD)size - done, &got, NULL)) return explain(reason, reason_size);
        done += got;
    } while (got > 0 && done < size);
    *length = done;
    if (!GetFileInformationByHandle(file, &after)) return explain(reason, reason_size);
    return has_changed(&before, &after) ? CT_EBUSY : CT_OK;
}

int ct__os_file_read(const char *path, char *buffer, size_t size, uint64_t *length, uint64_t *stamp, char *reason,
                     size_t reason_size) {
    wchar_t wide[PATH_MOST];
    if (!widen(path, wide)) return CT_ENOENT;
    DWORD facts = GetFileAttributesW(wide);
    if (facts == INVALID_FILE_ATTRIBUTES) return explain(reason, reason_size);
    if ((facts & FILE_ATTRIBUTE_DIRECTORY) != 0) {
        snprintf(reason, reason_size, "it is a directory, not a regular file");
        return CT_EINVAL;
    }
    const DWORD share = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
    HANDLE file = CreateFileW(wide, GENERIC_READ, share, NULL, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
    if (file == INVALID_HANDLE_VALUE) return explain(reason, reason_size);
    int status = read_open(file, buffer, size, length, stamp, reason, reason_size);
    CloseHandle(file);
    return status;
}
