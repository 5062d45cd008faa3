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

enum { DEFAULT_CAPACITY = 16384, REFUSED_SIZE = 256 };

static const size_t name_most = 65535;

static uint64_t listed, overflow;
static char refused[REFUSED_SIZE];

/* ---- capacity ---- */

static uint64_t read_capacity(void) {
    const char *wish = getenv("CODETIMER_MAX_COUNTERS");
    char *end = NULL;
    unsigned long value = wish != NULL ? strtoul(wish, &end, 10) : 0;
    int valid = wish != NULL && end != wish && *end == '\0' && value >= 1 && strchr(wish, '-') == NULL;
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

/* ---- opening ---- */

static int create(const char *key, uint32_t hash, size_t category_length, const char *help, ct__definition **made) {
    if (listed >= capacity()) return refuse(key, CT_EFULL);
    *made = ct__definition_make(key, hash, category_length, help);
    return *made != NULL ? CT_OK : refuse(key, CT_ENOMEM);
}

static int create_or_get(const char *key, size_t category_length, const char *help, ct__definition **found) {
    uint32_t hash = ct__definition_hash(key);
    if (ct__segment_header() == NULL) return refuse(key, CT_ENOMEM);
    *found = ct__definition_find(key, hash);
    int status = CT_OK;
    if (*found == NULL) status = create(key, hash, category_length, help, found);
    if (status != CT_OK) return status;
    if ((*found)->listed) return CT_EXISTS;
    if (listed >= capacity()) return refuse(key, CT_EFULL);
    ct__definition_list(*found); /* new; or removed, but still held: the same counter again */
    ct__publish_counts(++listed, overflow, NULL);
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

/* The part before the first dot, unless it could not be a category. */
static size_t derive_category(const ct_writer *writer, const char *member, const char **category) {
    const char *dot = strchr(member, '.');
    size_t length = dot != NULL ? (size_t)(dot - member) : 0;
    int usable = length > 0 && memchr(member, '/', length) == NULL;
    *category = usable ? member : writer->script;
    return usable ? length : strlen(writer->script);
}

int ct__is_name(const char *name) {
    size_t length = name != NULL ? length_up_to(name, name_most + 1) : 0;
    return length > 0 && length <= name_most;
}

/* With the lock held; "made" and "key" are NULL where there was no memory for them. */
static int open_counter(ct_counter *made, ct_writer *writer, const char *key, size_t category_length,
                        const char *member, const char *help) {
    ct__definition *definition = NULL;
    if (made == NULL || key == NULL) return refuse(member, CT_ENOMEM);
    int status = create_or_get(key, category_length, help, &definition);
    if (definition != NULL && status >= 0) bind_counter(made, writer, definition);
    return status;
}

int ct_counter_open(ct_writer *writer, const char *category, const char *member, const char *help,
                    ct_counter **counter) {
    int valid = writer != NULL && counter != NULL && ct__is_name(member) &&
                (category == NULL || (ct__is_name(category) && strchr(category, '/') == NULL)) &&
                (help == NULL || length_up_to(help, name_most + 1) <= name_most);
    if (!valid) return CT_EINVAL;
    size_t length = category != NULL ? strlen(category) : derive_category(writer, member, &category);
    ct_counter *made = malloc(sizeof *made);
    char *key = make_key(category, length, member);
    ct__os_lock();
    int status = open_counter(made, writer, key, length, member, help);
    ct__os_unlock();
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
    ct__definition *definition = ct__definition_find(key, ct__definition_hash(key));
    int found = definition != NULL && definition->listed;
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
    if (--definition->references == 0 && !definition->listed) ct__definition_recycle(definition);
    ct__writer_release(counter->writer);
    ct__os_unlock();
    free(counter);
}

/* ---- reset, remove, fork ---- */

int ct_counter_reset(ct_counter *counter) {
    ct__os_lock();
    ct__definition *definition = counter->definition;
    int there = definition->listed;
    if (there) ct__definition_begin_generation(definition, ct__enabled(ct__get(&definition->record->state)));
    if (there) ct__definition_select(definition); /* a controller may have switched it meanwhile */
    ct__os_unlock();
    return there ? CT_OK : CT_ENOENT;
}

int ct_counter_remove(ct_counter *counter) {
    ct__os_lock();
    ct__definition *definition = counter->definition;
    int there = definition->listed;
    if (there) {
        ct__definition_unlist(definition);
        ct__publish_counts(--listed, overflow, NULL);
    }
    ct__os_unlock();
    return there ? CT_OK : CT_ENOENT;
}

void ct__registry_begin_anew(void) {
    listed = ct__definitions_begin_anew();
    ct__publish_counts(listed, overflow, refused);
}

/* ---- what there is ---- */

uint32_t ct_counters_end(void) {
    ct__os_lock();
    uint32_t end = ct__records_end();
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
