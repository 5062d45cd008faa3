/* SPDX-License-Identifier: MIT
 *
 * fake_file.c: see fake_file.h. The current directory is "/fake".
 */
#include "fake_file.h"

#include <stdio.h>
#include <string.h>

#include "codetimer.h"
#include "platform/platform.h"

fake_file_state fake_file = {.status = CT_ENOENT, .reason = ""};

void fake_file_say(const char *text) {
    fake_file.status = CT_OK;
    fake_file.text = text;
    fake_file.length = strlen(text);
    fake_file.stamp++;
}

void fake_file_refuse(int status, const char *reason) {
    fake_file.status = status;
    fake_file.reason = reason;
}

int ct__os_path_absolute(const char *path, char *absolute, size_t size) {
    int length = snprintf(absolute, size, "%s%s", path[0] == '/' ? "" : "/fake/", path);
    return length > 0 && (size_t)length < size ? CT_OK : CT_EINVAL;
}

int ct__os_file_read(const char *path, char *buffer, size_t size, uint64_t *length, uint64_t *stamp, char *reason,
                     size_t reason_size) {
    snprintf(fake_file.path, sizeof fake_file.path, "%s", path);
    fake_file.reads++;
    if (fake_file.during != NULL) fake_file.during();
    if (fake_file.busy > 0) {
        fake_file.busy--;
        return CT_EBUSY;
    }
    snprintf(reason, reason_size, "%s", fake_file.status == CT_OK ? "" : fake_file.reason);
    if (fake_file.status != CT_OK) return fake_file.status;
    *length = fake_file.length;
    *stamp = fake_file.stamp;
    if (fake_file.length > size) return CT_EFULL;
    memcpy(buffer, fake_file.text, fake_file.length);
    return CT_OK;
}
