/* SPDX-License-Identifier: MIT
 *
 * view.h: floor 2, an open view, for view.c and control.c.
 */
#ifndef CT_VIEW_H
#define CT_VIEW_H

#include "codetimer.h"
#include "platform/platform.h"
#include "segment.h"

typedef struct ct__known {
    int good;
    unsigned char values[offsetof(ct_sample, buckets)]; /* of a sample */
} ct__known;

struct ct_view {
    ct__os_view file;
    char path[256];
    int alive;
    uint32_t records, members_at;
    _Atomic uint32_t chunks[CT__CHUNKS_MAX];
    ct__known *known;
    size_t known_room;
    char *key, *help;
    size_t key_room, help_room;
};

/* A copy of a record. Returns 0 if there is none. */
int ct__view_record(const ct_view *view, uint32_t index, ct__record *record);

#endif
