/* SPDX-License-Identifier: MIT
 *
 * view.h: floor 2, an open view, for view.c, view_sample.c and control.c.
 */
#ifndef CT_VIEW_H
#define CT_VIEW_H

#include "codetimer.h"
#include "platform/platform.h"
#include "segment.h"

/* The last good values of a record. */
typedef struct ct__known {
    int good;
    unsigned char values[offsetof(ct_sample, buckets)]; /* of a sample */
} ct__known;

struct ct_view {
    ct__os_view file;
    char path[256];
    int alive;
    uint32_t records, members_at;
    uint32_t chunks[CT__CHUNKS_MAX];
    int rests; /* taken so far, waiting for writers */
    ct__known *known;
    size_t known_room;
    char *key, *help;
    size_t key_room, help_room;
};

/* Bytes of the file: where they are mapped, else copied to "room". NULL: they do not lie inside. What is mapped may
 * change at any moment, so each word of it is read once and checked then. */
static inline const void *ct__view_at(const ct_view *view, size_t offset, size_t size, void *room) {
    if (offset > view->file.size || size > view->file.size - offset) return NULL;
    if (view->file.map != NULL) return view->file.map + offset;
    return ct__os_view_copy(&view->file, offset, room, size) ? room : NULL;
}

/* Offset of a record, 0 if there is none. */
static inline size_t ct__view_record_offset(const ct_view *view, uint32_t index) {
    uint32_t chunk = index < view->records ? view->chunks[index / CT__RECORDS_PER_CHUNK] : 0;
    if (chunk < sizeof(ct__header) || chunk % 8 != 0) return 0;
    return chunk + sizeof(ct__record) * (index % CT__RECORDS_PER_CHUNK);
}

/* A record, as ct__view_at. */
static inline const ct__record *ct__view_record(const ct_view *view, uint32_t index, ct__record *room) {
    size_t offset = ct__view_record_offset(view, index);
    return offset != 0 ? ct__view_at(view, offset, sizeof *room, room) : NULL;
}

/* Brings what the view knows of the header up to date. CT_OK, CT_EINVAL with the reason. */
int ct__view_read_header(ct_view *view, ct_process *process);

#endif
