/* SPDX-License-Identifier: MIT
 *
 * listing.c: which segments there are. Every file in the folder has a line, also one that is no segment: with the
 * reason.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codetimer.h"
#include "platform/platform.h"

struct ct_listing {
    ct__os_folder *folder;
    char directory[256];
};

static int choose_directory(const char *given, char *directory, size_t size) {
    char reason[200];
    if (given == NULL) return ct__os_shm_directory(0, directory, size, reason, sizeof reason);
    if (strlen(given) >= size) return CT_EINVAL;
    memcpy(directory, given, strlen(given) + 1);
    return CT_OK;
}

/* A folder that does not exist yet is one without segments. */
int ct_listing_open(const char *directory, ct_listing **listing) {
    if (listing == NULL) return CT_EINVAL;
    ct_listing *made = calloc(1, sizeof *made);
    if (made == NULL) return CT_ENOMEM;
    int status = choose_directory(directory, made->directory, sizeof made->directory);
    if (status == CT_OK) status = ct__os_folder_open(made->directory, &made->folder);
    if (status != CT_OK && !(status == CT_ENOENT && directory == NULL)) {
        free(made);
        return status;
    }
    *listing = made;
    return CT_OK;
}

/* A file that goes away between the listing and the look has no line: it was that of a process that ended. */
int ct_listing_next(ct_listing *listing, ct_process *process) {
    char name[256], path[600];
    ct_view *view;
    while (listing->folder != NULL && ct__os_folder_next(listing->folder, name, sizeof name)) {
        int length = snprintf(path, sizeof path, "%s/%s", listing->directory, name);
        if (length < 0 || (size_t)length >= sizeof process->path) continue;
        int status = ct_view_open(path, &view, process);
        if (status == CT_OK) ct_view_close(view);
        if (status != CT_ENOENT) return 1;
    }
    return 0;
}

void ct_listing_close(ct_listing *listing) {
    if (listing == NULL) return;
    ct__os_folder_close(listing->folder);
    free(listing);
}

/* Only what is a segment: the name of another file, given by mistake, must not cost that file. */
int ct_segment_reap(const char *path) {
    ct_process process;
    ct_view *view;
    if (path == NULL) return CT_EINVAL;
    int status = ct_view_open(path, &view, &process);
    if (status != CT_OK) return status;
    ct_view_close(view);
    return ct__os_shm_reap(path, 1);
}
