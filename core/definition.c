/* SPDX-License-Identifier: MIT
 *
 * definition.c: see definition.h. Definitions are found by a table of keys; their number is their place among the
 * records.
 */
#include "definition.h"

#include <stdlib.h>
#include <string.h>

#include "registry.h"

enum { TABLE_SIZE = 32768 };

static ct__definition **table; /* buckets of listed and lingering definitions */
static ct__definition *definitions[CT__RECORDS_MAX];
static uint32_t definitions_made;
static ct__definition *spare; /* whose records may be used again */

/* ---- the table ---- */

uint32_t ct__definition_hash(const char *key) {
    uint32_t hash = 2166136261u;
    for (; *key != '\0'; key++) hash = (hash ^ (unsigned char)*key) * 16777619u;
    return hash;
}

static ct__definition **bucket_of(uint32_t hash) { return &table[hash % TABLE_SIZE]; }

ct__definition *ct__definition_find(const char *key, uint32_t hash) {
    if (table == NULL) return NULL;
    for (ct__definition *at = *bucket_of(hash); at != NULL; at = at->next)
        if (at->hash == hash && strcmp(at->key, key) == 0) return at;
    return NULL;
}

static void link_definition(ct__definition *definition) {
    definition->next = *bucket_of(definition->hash);
    *bucket_of(definition->hash) = definition;
}

static void unlink_definition(ct__definition *definition) {
    ct__definition **at = bucket_of(definition->hash);
    while (*at != definition) at = &(*at)->next;
    *at = definition->next;
}

/* ---- records ---- */

uint32_t ct__records_end(void) { return definitions_made; }
ct__record *ct__record_at(uint32_t index) { return definitions[index]->record; }

/* The place of the record with that index, NULL without memory. */
static ct__record *place_record(ct__header *header, uint32_t index) {
    _Atomic uint32_t *chunk = &header->chunks[index / CT__RECORDS_PER_CHUNK];
    uint32_t offset = atomic_load_explicit(chunk, memory_order_relaxed);
    if (offset == 0) offset = ct__segment_take(CT__PIECE_CHUNK, 0);
    if (offset == 0) return NULL;
    atomic_store_explicit(chunk, offset, memory_order_release);
    return (ct__record *)ct__segment_at(offset) + index % CT__RECORDS_PER_CHUNK;
}

/* A definition whose record never was used. */
static ct__definition *make_fresh(void) {
    ct__header *header = ct__segment_header();
    if (header == NULL || definitions_made == CT__RECORDS_MAX) return NULL;
    ct__definition *definition = calloc(1, sizeof *definition);
    ct__record *record = definition != NULL ? place_record(header, definitions_made) : NULL;
    if (record == NULL) {
        free(definition);
        return NULL;
    }
    definition->record = record;
    definition->index = definitions_made;
    definitions[definitions_made++] = definition;
    atomic_store_explicit(&header->records, definitions_made, memory_order_release);
    return definition;
}

static ct__definition *take_definition(void) {
    ct__definition *definition = spare;
    if (definition == NULL) return make_fresh();
    spare = definition->next;
    return definition;
}

static void give_definition(ct__definition *definition) {
    free(definition->key);
    definition->key = definition->help = NULL;
    definition->next = spare;
    spare = definition;
}

/* ---- texts ---- */

static int keep_texts(ct__definition *definition, const char *key, size_t category_length, const char *help) {
    size_t key_size = strlen(key) + 1, help_size = help != NULL ? strlen(help) + 1 : 1;
    char *copy = malloc(key_size + help_size);
    if (copy == NULL) return 0;
    definition->key = memcpy(copy, key, key_size);
    definition->help = memcpy(copy + key_size, help != NULL ? help : "", help_size);
    definition->category_length = category_length;
    return 1;
}

static uint32_t put_text(const char *text, size_t length) {
    uint32_t offset = ct__segment_take(CT__PIECE_TEXT, length + 1);
    if (offset != 0) memcpy(ct__segment_at(offset), text, length + 1);
    return offset;
}

/* From the private half to the record. */
static int show_texts(const ct__definition *definition) {
    ct__record *record = definition->record;
    size_t key_length = strlen(definition->key), help_length = strlen(definition->help);
    uint32_t key_at = put_text(definition->key, key_length);
    uint32_t help_at = help_length > 0 ? put_text(definition->help, help_length) : 0;
    if (key_at == 0 || (help_length > 0 && help_at == 0)) {
        ct__segment_give(CT__PIECE_TEXT, key_length + 1, key_at);
        return 0;
    }
    atomic_store_explicit(&record->key, key_at, memory_order_relaxed);
    atomic_store_explicit(&record->key_length, (uint32_t)key_length, memory_order_relaxed);
    atomic_store_explicit(&record->category_length, (uint32_t)definition->category_length, memory_order_relaxed);
    atomic_store_explicit(&record->help, help_at, memory_order_relaxed);
    atomic_store_explicit(&record->help_length, (uint32_t)help_length, memory_order_relaxed);
    return 1;
}

/* ---- making and recycling ---- */

ct__definition *ct__definition_make(const char *key, uint32_t hash, size_t category_length, const char *help) {
    if (table == NULL) table = calloc(TABLE_SIZE, sizeof *table);
    ct__definition *definition = table != NULL ? take_definition() : NULL;
    if (definition == NULL) return NULL;
    if (!keep_texts(definition, key, category_length, help) || !show_texts(definition)) {
        give_definition(definition);
        return NULL;
    }
    definition->hash = hash;
    definition->references = 0;
    link_definition(definition);
    return definition;
}

static void give_slots(ct__record *record) {
    uint32_t offset = atomic_load_explicit(&record->first_slot, memory_order_relaxed);
    atomic_store_explicit(&record->first_slot, 0, memory_order_relaxed);
    while (offset != 0) {
        ct__slot *slot = ct__segment_at(offset);
        uint32_t next = atomic_load_explicit(&slot->next, memory_order_relaxed);
        ct__segment_give(CT__PIECE_HISTOGRAM, 0, atomic_load_explicit(&slot->histogram, memory_order_relaxed));
        ct__segment_give(CT__PIECE_SLOT, 0, offset);
        offset = next;
    }
}

static void give_texts(const ct__definition *definition) {
    const ct__record *record = definition->record;
    ct__segment_give(CT__PIECE_TEXT, strlen(definition->key) + 1, atomic_load(&record->key));
    ct__segment_give(CT__PIECE_TEXT, strlen(definition->help) + 1, atomic_load(&record->help));
}

void ct__definition_recycle(ct__definition *definition) {
    unlink_definition(definition);
    atomic_thread_fence(
        memory_order_release); /* readers see the new generation before what comes into its memory next */
    if (ct__segment_header() != NULL) {
        give_slots(definition->record);
        give_texts(definition);
    }
    give_definition(definition);
}

/* ---- state ---- */

void ct__definition_begin_generation(ct__definition *definition, int enabled) {
    uint64_t state = ++definition->generation << 1 | (uint64_t)enabled;
    atomic_store_explicit(&definition->record->state, state, memory_order_release);
}

/* A controller writes the same word: only the enabled bit, and only while the generation is what it saw. */
void ct__definition_enable(ct__definition *definition, int enabled) {
    ct__word *word = &definition->record->state;
    uint64_t state = ct__get(word), wanted;
    do wanted = definition->generation << 1 | (uint64_t)(enabled != 0);
    while (state != wanted && !atomic_compare_exchange_weak(word, &state, wanted));
}

void ct__definition_list(ct__definition *definition) {
    definition->listed = 1;
    ct__definition_begin_generation(definition, 0);
    atomic_store_explicit(&definition->record->listed, 1, memory_order_release);
    ct__definition_select(definition);
}

void ct__definition_unlist(ct__definition *definition) {
    definition->listed = 0;
    atomic_store_explicit(&definition->record->listed, 0, memory_order_release);
    ct__definition_begin_generation(definition, 0);
}

ct__definition *ct__definition_at(uint32_t index) {
    ct__definition *definition = index < definitions_made ? definitions[index] : NULL;
    return definition != NULL && definition->listed ? definition : NULL;
}

/* ---- fork ---- */

static void show_again(ct__definition *definition) {
    int shown = definition->key != NULL && show_texts(definition);
    if (!shown) definition->listed = 0;
    ct__definition_begin_generation(definition, 0);
    if (!definition->listed) return;
    atomic_store_explicit(&definition->record->listed, 1, memory_order_release);
    ct__definition_select(definition);
}

uint64_t ct__definitions_begin_anew(void) {
    uint64_t listed = 0;
    ct__header *header = ct__segment_header();
    if (header != NULL) atomic_store_explicit(&header->records, definitions_made, memory_order_release);
    for (uint32_t i = 0; i < definitions_made; i++) {
        if (header == NULL)
            definitions[i]->listed = 0;
        else
            show_again(definitions[i]);
        listed += (uint64_t)definitions[i]->listed;
    }
    return listed;
}
