/* SPDX-License-Identifier: MIT
 *
 * sweep.c: see sweep.h.
 *
 * A process that ends cleanly takes its segment with it. One that is killed, or leaves by _exit as the workers of many
 * pools do, does not, and that is meant: its last values can still be read. But shared memory is not to fill up with
 * them. So whoever publishes counts the files first; beyond CT__FILES_KEPT it deletes those whose process is gone
 * (their lock is free), at most REMOVED_MOST, so that no program is held up by the past of others.
 */
#include "sweep.h"

#include <stdio.h>

#include "codetimer.h"
#include "platform/platform.h"

enum { REMOVED_MOST = 512, NAME_SIZE = 128, PATH_SIZE = 512 };

/* "<pid>-<start time>-<k>": anything else is not ours to delete. */
static int is_segment_name(const char *name) {
    int dashes = 0;
    for (; *name != '\0'; name++) {
        if (*name == '-')
            dashes++;
        else if (*name < '0' || *name > '9')
            return 0;
    }
    return dashes == 2;
}

static size_t count_segments(const char *directory) {
    ct__os_folder *folder;
    char name[NAME_SIZE];
    size_t count = 0;
    if (ct__os_folder_open(directory, &folder) != CT_OK) return 0;
    while (ct__os_folder_next(folder, name, sizeof name)) count += (size_t)is_segment_name(name);
    ct__os_folder_close(folder);
    return count;
}

static void remove_dead(const char *directory, size_t surplus) {
    ct__os_folder *folder;
    char name[NAME_SIZE], path[PATH_SIZE];
    if (ct__os_folder_open(directory, &folder) != CT_OK) return;
    while (surplus > 0 && ct__os_folder_next(folder, name, sizeof name)) {
        int length = snprintf(path, sizeof path, "%s/%s", directory, name);
        if (!is_segment_name(name) || length < 0 || (size_t)length >= sizeof path) continue;
        surplus -= ct__os_shm_reap(path, 0) == CT_OK;
    }
    ct__os_folder_close(folder);
}

void ct__sweep(const char *directory) {
    size_t count = count_segments(directory);
    if (count <= CT__FILES_KEPT) return;
    size_t surplus = count - CT__FILES_KEPT;
    remove_dead(directory, surplus < REMOVED_MOST ? surplus : REMOVED_MOST);
}
