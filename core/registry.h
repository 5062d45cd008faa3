/* SPDX-License-Identifier: MIT
 *
 * registry.h: floor 2, which counters there are in this process, and who writes them.
 *
 * A definition (definition.h) is one counter. It is found by its key while it is listed. Removing unlists it and begins
 * a new generation; its memory is used again when the last handle is closed, never earlier, so a handle can always
 * follow its pointers. A key that is opened again while handles of the removed counter still exist gets that definition
 * back.
 */
#ifndef CT_REGISTRY_H
#define CT_REGISTRY_H

#include "codetimer.h"
#include "definition.h"
#include "segment.h"

struct ct_writer {
    uint32_t number;  /* owner of its slots */
    uint32_t process; /* in which it has written; counted up by forks */
    int closed;       /* lives on for its open handles */
    uint64_t handles;
    char *script;  /* category of members without a dot */
    ct__slot sink; /* where values go when there is no memory for a slot: nobody reads it */
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

/* Gives the handle its slot for the current generation, zeroed if it is the first call of it. Returns the state word
 * that it is resolved for. */
uint64_t ct__counter_resolve(ct_counter *counter);

/* One handle of the writer less. With the lock held. */
void ct__writer_release(ct_writer *writer);

/* ct_counter_sample, of a record that cannot go away meanwhile. */
void ct__record_sample(ct__record *record, ct_sample *sample);

/* In a forked child: every counter starts a new generation. With the lock held. */
void ct__registry_begin_anew(void);

/* Writers that have written in this process. With the lock held. */
uint32_t ct__writers_active(void);

/* In a forked child: none has, and the threads of most are gone. With the lock held. */
void ct__writers_begin_anew(void);

/* Enables a definition as the members list says that is in force now. With the lock held. */
void ct__definition_select(ct__definition *definition);

/* Follows a list that was changed from outside. With the lock held. */
void ct__selection_follow(void);

/* In a forked child: the list that the parent had read last is the child's. With the lock held. */
void ct__selection_begin_anew(void);

/* The side whose list is in force. */
int ct__members_side_in_force(const ct__members_area *area);

/* Puts a text (NULL: no list) into force. Writers of one side exclude each other. */
void ct__members_write(ct__members_area *area, int side, const char *text, size_t length);

/* Puts a text (NULL: no list) into force, written by "source" (CT_FROM_*), of which "name" tells more ("": nothing).
 * CT_OK, CT_ENOMEM. With the lock held. */
int ct__selection_put(int source, const char *name, const char *text, size_t length);

/* How often the list has changed. With the lock held. */
uint64_t ct__selection_changes(void);

/* The housekeeping that is due, and how often it is. "writer": called by one, between two of its calls. */
void ct__tend(int writer);
uint64_t ct__tend_every_ns(void);

/* It is due with the next measured call that ends. */
void ct__counter_tend_soon(void);

/* Whether a text can be (part of) a key: 1 to 65,535 bytes. */
int ct__is_name(const char *name);

#endif
