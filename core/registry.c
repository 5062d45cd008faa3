/* SPDX-License-Identifier: MIT
 *
 * registry.c: see registry.h. Everything here runs under the one lock, and never on the path of a measured call except
 * the first of a generation.
 */
#include "registry.h"

#include <stdlib.h>
#include <string.h>

#include "platform/platform.h"
#include "publish.h"

enum { DEFAULT_CAPACITY = 16384, TABLE_SIZE = 32768, REFUSED_SIZE = 256 };

static const size_t name_most = 65535;

static ct__definition **table; /* buckets of listed and lingering definitions */
static ct__definition *definitions[CT__RECORDS_MAX];
static ct__definition *spare; /* whose records may be used again */
static uint64_t listed, overflow;
static char refused[REFUSED_SIZE];

/* ---- capacity ---- */

static uint64_t read_capacity(void) {
    const char *wish = getenv("CODETIMER_MAX_COUNTERS");
    char *end = NULL;
    unsigned long value = wish != NULL ? strtoul(wish, &end, 10) : 0;
    int valid = wish != NULL && end != wish && *end == '\0' && value >= 1;
    if (!valid) return DEFAULT_CAPACITY;
    return value < CT__RECORDS_MAX ? value : CT__RECORDS_MAX;
}

static uint64_t capacity(void) {
    static uint64_t value;
    if (value == 0) value = read_capacity();
    return value;
}

static int refuse(const char *key, int status) {
    ct__publish_counts(listed, ++overflow, key);
    size_t length = strlen(key);
    if (length >= REFUSED_SIZE) length = REFUSED_SIZE - 1;
    memcpy(refused, key, length);
    refused[length] = '\0';
    return status;
}

/* ---- keys ---- */

/* strnlen, which C11 lacks. */
static size_t length_up_to(const char *text, size_t most) {
    const char *end = memchr(text, '\0', most);
    return end != NULL ? (size_t)(end - text) : most;
}

/* FNV-1a (Fowler, Noll, Vo). */
static uint32_t hash_key(const char *key) {
    uint32_t hash = 2166136261u;
    for (; *key != '\0'; key++) hash = (hash ^ (unsigned char)*key) * 16777619u;
    return hash;
}

static ct__definition **bucket_of(uint32_t hash) { return &table[hash % TABLE_SIZE]; }

static ct__definition *find(const char *key, uint32_t hash) {
    if (table == NULL) return NULL;
    for (ct__definition *at = *bucket_of(hash); at != NULL; at = at->next)
        if (at->hash == hash && strcmp(at->key, key) == 0) return at;
    return NULL;
}

static void unlink_definition(ct__definition *definition) {
    ct__definition **at = bucket_of(definition->hash);
    while (*at != definition) at = &(*at)->next;
    *at = definition->next;
}

static int is_listed(const ct__definition *definition) {
    return atomic_load_explicit(&definition->record->listed, memory_order_relaxed) != 0;
}

/* "category/member", malloc'd. */
static char *make_key(const char *category, size_t category_length, const char *member) {
    size_t member_length = strlen(member);
    char *key = malloc(category_length + 1 + member_length + 1);
    if (key == NULL) return NULL;
    memcpy(key, category, category_length);
    key[category_length] = '/';
    memcpy(key + category_length + 1, member, member_length + 1);
    return key;
}

/* ---- records ---- */

ct__record *ct__record_at(uint32_t index) {
    const ct__header *header = ct__segment_header();
    uint32_t chunk = atomic_load_explicit(&header->chunks[index / CT__RECORDS_PER_CHUNK], memory_order_relaxed);
    return (ct__record *)ct__segment_at(chunk) + index % CT__RECORDS_PER_CHUNK;
}

/* A record that never was used, with its private half. */
static ct__definition *make_definition(void) {
    ct__header *header = ct__segment_header();
    if (header == NULL) return NULL;
    uint32_t index = atomic_load_explicit(&header->records, memory_order_relaxed);
    if (index == CT__RECORDS_MAX) return NULL;
    _Atomic uint32_t *chunk = &header->chunks[index / CT__RECORDS_PER_CHUNK];
    if (atomic_load_explicit(chunk, memory_order_relaxed) == 0) {
        uint32_t offset = ct__segment_take(CT__PIECE_CHUNK, 0);
        if (offset == 0) return NULL;
        atomic_store_explicit(chunk, offset, memory_order_release);
    }
    ct__definition *definition = calloc(1, sizeof *definition);
    if (definition == NULL) return NULL;
    definition->index = index;
    definition->record = ct__record_at(index);
    definitions[index] = definition;
    atomic_store_explicit(&header->records, index + 1, memory_order_release);
    return definition;
}

static ct__definition *take_definition(void) {
    ct__definition *definition = spare;
    if (definition == NULL) return make_definition();
    spare = definition->next;
    return definition;
}

static void give_definition(ct__definition *definition) {
    definition->next = spare;
    spare = definition;
}

static uint32_t put_text(const char *text, size_t length) {
    uint32_t offset = ct__segment_take(CT__PIECE_TEXT, length + 1);
    if (offset != 0) memcpy(ct__segment_at(offset), text, length + 1);
    return offset;
}

static int set_texts(ct__record *record, const char *key, size_t category_length, const char *help) {
    size_t key_length = strlen(key), help_length = help != NULL ? strlen(help) : 0;
    uint32_t key_at = put_text(key, key_length);
    uint32_t help_at = help_length > 0 ? put_text(help, help_length) : 0;
    if (key_at == 0 || (help_length > 0 && help_at == 0)) {
        ct__segment_give(CT__PIECE_TEXT, key_length + 1, key_at);
        return 0;
    }
    atomic_store_explicit(&record->key, key_at, memory_order_relaxed);
    atomic_store_explicit(&record->key_length, (uint32_t)key_length, memory_order_relaxed);
    atomic_store_explicit(&record->category_length, (uint32_t)category_length, memory_order_relaxed);
    atomic_store_explicit(&record->help, help_at, memory_order_relaxed);
    atomic_store_explicit(&record->help_length, (uint32_t)help_length, memory_order_relaxed);
    return 1;
}

/* One exchange: a controller's change of the enabled bit, made meanwhile, is overtaken by what the list says anyway. */
static void begin_generation(ct__record *record, int enabled) {
    uint64_t next = ct__generation(ct__get(&record->state)) + 1;
    atomic_store_explicit(&record->state, next << 1 | (uint64_t)enabled, memory_order_release);
}

static void list_definition(ct__definition *definition) {
    size_t category_length = atomic_load_explicit(&definition->record->category_length, memory_order_relaxed);
    begin_generation(definition->record, ct__selects(definition->key, category_length));
    atomic_store_explicit(&definition->record->listed, 1, memory_order_release);
    ct__publish_counts(++listed, overflow, NULL);
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

/* Nobody holds it and it is not listed: its memory may be used again. The state word stays, so that generations grow. */
static void recycle(ct__definition *definition) {
    ct__record *record = definition->record;
    unlink_definition(definition);
    give_slots(record);
    ct__segment_give(CT__PIECE_TEXT, (size_t)atomic_load(&record->key_length) + 1, atomic_load(&record->key));
    ct__segment_give(CT__PIECE_TEXT, (size_t)atomic_load(&record->help_length) + 1, atomic_load(&record->help));
    give_definition(definition);
}

/* ---- opening ---- */

static int create(const char *key, uint32_t hash, size_t category_length, const char *help, ct__definition **made) {
    if (listed >= capacity()) return refuse(key, CT_EFULL);
    if (table == NULL) table = calloc(TABLE_SIZE, sizeof *table);
    ct__definition *definition = table != NULL ? take_definition() : NULL;
    if (definition == NULL) return refuse(key, CT_ENOMEM);
    if (!set_texts(definition->record, key, category_length, help)) {
        give_definition(definition);
        return refuse(key, CT_ENOMEM);
    }
    definition->hash = hash;
    definition->key = ct__segment_at(atomic_load_explicit(&definition->record->key, memory_order_relaxed));
    definition->references = 0;
    definition->next = *bucket_of(hash);
    *bucket_of(hash) = definition;
    list_definition(definition);
    *made = definition;
    return CT_OK;
}

static int create_or_get(const char *key, size_t category_length, const char *help, ct__definition **found) {
    uint32_t hash = hash_key(key);
    *found = find(key, hash);
    if (*found == NULL) return create(key, hash, category_length, help, found);
    if (is_listed(*found)) return CT_EXISTS;
    if (listed >= capacity()) return refuse(key, CT_EFULL);
    list_definition(*found); /* removed, but still held: the same counter again */
    return CT_OK;
}

static void bind_counter(ct_counter *counter, ct_writer *writer, ct__definition *definition) {
    definition->references++;
    writer->handles++;
    counter->state = &definition->record->state;
    counter->seen = 0;
    counter->slot = &writer->sink;
    counter->histogram = &writer->sink_histogram;
    counter->definition = definition;
    counter->writer = writer;
}

static size_t derive_category(const ct_writer *writer, const char *member, const char **category) {
    const char *dot = strchr(member, '.');
    *category = dot != NULL && dot != member ? member : writer->script;
    return *category == member ? (size_t)(dot - member) : strlen(writer->script);
}

int ct__is_name(const char *name) {
    size_t length = name != NULL ? length_up_to(name, name_most + 1) : 0;
    return length > 0 && length <= name_most;
}

int ct_counter_open(ct_writer *writer, const char *category, const char *member, const char *help,
                    ct_counter **counter) {
    int valid = writer != NULL && counter != NULL && ct__is_name(member) &&
                (category == NULL || (ct__is_name(category) && strchr(category, '/') == NULL)) &&
                (help == NULL || length_up_to(help, name_most + 1) <= name_most);
    if (!valid) return CT_EINVAL;
    size_t length = category != NULL ? strlen(category) : derive_category(writer, member, &category);
    if (memchr(category, '/', length) != NULL) return CT_EINVAL;
    ct_counter *made = malloc(sizeof *made);
    char *key = make_key(category, length, member);
    ct__definition *definition = NULL;
    int status = CT_ENOMEM;
    if (made != NULL && key != NULL) {
        ct__os_lock();
        status = create_or_get(key, length, help, &definition);
        if (definition != NULL && status >= 0) bind_counter(made, writer, definition);
        ct__os_unlock();
    }
    free(key);
    if (status < 0) {
        free(made);
        return status;
    }
    *counter = made;
    return status;
}

int ct_counter_find(ct_writer *writer, const char *key, ct_counter **counter) {
    if (writer == NULL || key == NULL || counter == NULL) return CT_EINVAL;
    ct_counter *made = malloc(sizeof *made);
    if (made == NULL) return CT_ENOMEM;
    ct__os_lock();
    ct__definition *definition = find(key, hash_key(key));
    int found = definition != NULL && is_listed(definition);
    if (found) bind_counter(made, writer, definition);
    ct__os_unlock();
    if (!found) {
        free(made);
        return CT_ENOENT;
    }
    *counter = made;
    return CT_OK;
}

void ct_counter_close(ct_counter *counter) {
    if (counter == NULL) return;
    ct__os_lock();
    ct__definition *definition = counter->definition;
    if (--definition->references == 0 && !is_listed(definition)) recycle(definition);
    ct__writer_release(counter->writer);
    ct__os_unlock();
    free(counter);
}

/* ---- reset, remove, enable ---- */

int ct_counter_reset(ct_counter *counter) {
    ct__os_lock();
    ct__definition *definition = counter->definition;
    int there = is_listed(definition);
    if (there) begin_generation(definition->record, ct__enabled(ct__get(&definition->record->state)));
    ct__os_unlock();
    return there ? CT_OK : CT_ENOENT;
}

int ct_counter_remove(ct_counter *counter) {
    ct__os_lock();
    ct__definition *definition = counter->definition;
    int there = is_listed(definition);
    if (there) {
        atomic_store_explicit(&definition->record->listed, 0, memory_order_release);
        begin_generation(definition->record, 0);
        ct__publish_counts(--listed, overflow, NULL);
    }
    ct__os_unlock();
    return there ? CT_OK : CT_ENOENT;
}

/* A controller in another process may write the same word: only the enabled bit, and only while the generation is what it
 * saw. */
void ct__definition_enable(ct__definition *definition, int enabled) {
    ct__word *word = &definition->record->state;
    uint64_t state = ct__get(word), wanted;
    do wanted = (state & ~(uint64_t)1) | (uint64_t)(enabled != 0);
    while (!atomic_compare_exchange_weak(word, &state, wanted));
}

void ct__registry_apply_members(void) {
    const ct__header *header = ct__segment_header();
    uint32_t end = header != NULL ? atomic_load_explicit(&header->records, memory_order_relaxed) : 0;
    for (uint32_t i = 0; i < end; i++) {
        ct__definition *definition = ct__definition_at(i);
        if (definition == NULL) continue;
        size_t category_length = atomic_load_explicit(&definition->record->category_length, memory_order_relaxed);
        ct__definition_enable(definition, ct__selects(definition->key, category_length));
    }
}

void ct__registry_begin_anew(void) {
    const ct__header *header = ct__segment_header();
    uint32_t end = header != NULL ? atomic_load_explicit(&header->records, memory_order_relaxed) : 0;
    for (uint32_t i = 0; i < end; i++) {
        ct__record *record = definitions[i]->record;
        begin_generation(record, ct__enabled(ct__get(&record->state)));
    }
}

ct__definition *ct__definition_at(uint32_t index) {
    ct__definition *definition = index < CT__RECORDS_MAX ? definitions[index] : NULL;
    return definition != NULL && is_listed(definition) ? definition : NULL;
}

/* ---- what there is ---- */

uint32_t ct_counters_end(void) {
    ct__os_lock();
    const ct__header *header = ct__segment_header();
    uint32_t end = header != NULL ? atomic_load_explicit(&header->records, memory_order_relaxed) : 0;
    ct__os_unlock();
    return end;
}

size_t ct_counters_key(uint32_t index, char *buffer, size_t size) {
    ct__os_lock();
    const ct__definition *definition = ct__definition_at(index);
    size_t length = definition != NULL ? strlen(definition->key) : 0;
    if (definition != NULL && length < size) memcpy(buffer, definition->key, length + 1);
    ct__os_unlock();
    return length;
}

size_t ct_counter_key(const ct_counter *counter, char *buffer, size_t size) {
    const char *key = counter->definition->key; /* stays while the handle does */
    size_t length = strlen(key);
    if (length < size) memcpy(buffer, key, length + 1);
    return length;
}

void ct_counters_info(ct_counters *counters) {
    ct__os_lock();
    counters->listed = listed;
    counters->capacity = capacity();
    counters->refused = overflow;
    memcpy(counters->last_refused, refused, sizeof counters->last_refused);
    ct__os_unlock();
}
