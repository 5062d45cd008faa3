/* SPDX-License-Identifier: MIT
 *
 * registry.h: floor 2, which counters there are in this process, and who writes them.
 *
 * A definition is one counter; its record (segment.h) is what readers see, the rest is private. It is found by its key
 * while it is listed. Removing unlists it and begins a new generation; its memory is used again when the last handle is
 * closed, never earlier, so a handle can always follow its pointers. A key that is opened again while handles of the
 * removed counter still exist gets that definition back.
 */
#ifndef CT_REGISTRY_H
#define CT_REGISTRY_H

#include "codetimer.h"
#include "segment.h"

typedef struct ct__definition {
    ct__record *record;
    const char *key; /* in the segment, with a NUL */
    uint64_t references;
    uint32_t hash, index;
    struct ct__definition *next; /* in its bucket of the table, or in the list of free ones */
} ct__definition;

struct ct_writer {
    uint32_t number; /* owner of its slots */
    int closed;      /* lives on for its open handles */
    uint64_t handles;
    char *script;    /* category of members without a dot */
    ct__slot sink;   /* where values go when there is no memory for a slot: nobody reads it */
    ct__histogram sink_histogram;
};

struct ct_counter {
    ct__word *state; /* of the record */
    uint64_t seen;   /* the state word that slot and histogram were resolved for; 0: none yet */
    ct__slot *slot;
    ct__histogram *histogram;
    ct__definition *definition;
    ct_writer *writer;
};

static inline uint64_t ct__generation(uint64_t state) { return state >> 1; }
static inline int ct__enabled(uint64_t state) { return (int)(state & 1); }

/* Gives the handle its slot for the current generation, zeroed if it is the first call of it. Returns the state word that
 * it is resolved for. */
uint64_t ct__counter_resolve(ct_counter *counter);

/* One handle of the writer less. With the lock held. */
void ct__writer_release(ct_writer *writer);

/* Switches all counting of a definition on or off, keeping its generation and values. With the lock held. */
void ct__definition_enable(ct__definition *definition, int enabled);

/* ct_counter_sample, of a record that cannot go away meanwhile. */
void ct__record_sample(ct__record *record, ct_sample *sample);

/* In a forked child: every counter starts a new generation. With the lock held. */
void ct__registry_begin_anew(void);

/* Applies the members list to all counters. With the lock held. */
void ct__registry_apply_members(void);

/* Writers open in this process. With the lock held. */
uint32_t ct__writers_open(void);

/* Whether the current members list selects the counter; reads a list that was changed from outside first. With the lock
 * held. */
int ct__selects(const char *key, size_t category_length);

/* The text of a version in a members area; CT_OK, CT_ENOENT (there is no list), CT_EINVAL (damaged). */
int ct__members_read(const ct__members_area *area, uint64_t version, char *buffer, size_t size, size_t *length);

/* Puts a text (NULL: no list) into force. Writers of the area exclude each other. */
void ct__members_write(ct__members_area *area, const char *text, size_t length);

/* What is due once a second, for who has just read the clock. */
void ct__counter_tend(void);

/* Whether a text can be (part of) a key: 1 to 65,535 bytes. */
int ct__is_name(const char *name);

/* Any record ever used, by its index. With the lock held. */
ct__record *ct__record_at(uint32_t index);

/* The definition of a listed counter by its index, or NULL. With the lock held. */
ct__definition *ct__definition_at(uint32_t index);

#endif
