/* SPDX-License-Identifier: MIT
 *
 * definition.h: floor 2, one counter: its record in the segment, and the private half that this process lives by.
 *
 * The record is what readers see. What the process itself needs to know lies in the private half, not in the record: a
 * forked child finds the region still being changed by its parent, and another process may write into it.
 *
 * All functions need the registry's lock.
 */
#ifndef CT_DEFINITION_H
#define CT_DEFINITION_H

#include <stddef.h>
#include <stdint.h>

#include "segment.h"

typedef struct ct__definition {
    ct__record *record;
    char *key, *help; /* in one piece of memory */
    size_t category_length;
    uint64_t generation; /* that of the record's state word */
    uint64_t references;
    int listed;
    uint32_t hash, index;
    struct ct__definition *next; /* in its bucket of the table, or in the list of free ones */
} ct__definition;

/* Any definition with that key: listed, or removed and still held. NULL: none. */
ct__definition *ct__definition_find(const char *key, uint32_t hash);

/* FNV-1a (Fowler, Noll, Vo). */
uint32_t ct__definition_hash(const char *key);

/* A new one, not listed yet. NULL: no memory. */
ct__definition *ct__definition_make(const char *key, uint32_t hash, size_t category_length, const char *help);

/* A new generation, with values that begin again. */
void ct__definition_begin_generation(ct__definition *definition, int enabled);

/* Lists it under a new generation, enabled as the members list says. */
void ct__definition_list(ct__definition *definition);
void ct__definition_unlist(ct__definition *definition);

/* Nobody holds it and it is not listed: its memory may be used again. The generation stays, so that generations grow.
 */
void ct__definition_recycle(ct__definition *definition);

/* Switches its counting on or off, keeping its generation and values. */
void ct__definition_enable(ct__definition *definition, int enabled);

/* The definition of a listed counter by its index, or NULL. */
ct__definition *ct__definition_at(uint32_t index);

/* How many indices there are, and the record of one. */
uint32_t ct__records_end(void);
ct__record *ct__record_at(uint32_t index);

/* In a forked child, when the segment has begun anew: all records again, each under a new generation. Returns how many
 * are listed. */
uint64_t ct__definitions_begin_anew(void);

#endif
