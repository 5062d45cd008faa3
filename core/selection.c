/* SPDX-License-Identifier: MIT
 *
 * selection.c: the one members list that is in force in this process.
 *
 * Its text lies in the members area of the segment, where controllers can change it; every source only writes it there.
 * Whether a counter is enabled is a function of this text and its member alone. The parsed list is a private copy for the
 * version that was last read; a newer version is noticed when a counter is made, with the slow path of a measured call,
 * once a second, and by ct_poll. The first text is CODETIMER_MEASURE.
 */
#include <stdlib.h>
#include <string.h>

#include "codetimer.h"
#include "members.h"
#include "platform/platform.h"
#include "publish.h"
#include "registry.h"

static ct_members *parsed; /* NULL: no list */
static uint64_t parsed_version;
static int begun;
static uint64_t changes;

/* ---- the area ---- */

int ct__members_read(const ct__members_area *area, uint64_t version, char *buffer, size_t size, size_t *length) {
    uint32_t stated = atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&area->lengths[version & 1], memory_order_relaxed);
    if (stated == CT__NO_LIST) return CT_ENOENT;
    if (stated >= CT__MEMBERS_SIZE) return CT_EINVAL;
    *length = stated;
    if (stated < size) {
        memcpy(buffer, area->texts[version & 1], stated);
        buffer[stated] = '\0';
    }
    return CT_OK;
}

/* Fills the buffer that nobody reads, then turns to it. */
void ct__members_write(ct__members_area *area, const char *text, size_t length) {
    uint64_t next = ct__get(&area->version) + 1;
    if (text != NULL) memcpy(area->texts[next & 1], text, length);
    atomic_store_explicit(&area->lengths[next & 1], text != NULL ? (uint32_t)length : CT__NO_LIST, memory_order_relaxed);
    atomic_store_explicit(&area->version, next, memory_order_release);
}

/* ---- the parsed list ---- */

static void adopt(ct__members_area *area, uint64_t version) {
    static char text[CT__MEMBERS_SIZE]; /* guarded by the lock; too large for the stack of a small thread */
    size_t length = 0;
    ct_members *fresh = NULL;
    int status = ct__members_read(area, version, text, sizeof text, &length);
    if (status == CT_OK && ct_members_parse(text, length, &fresh) != CT_OK) return; /* no memory: the old one stays */
    if (atomic_load_explicit(&area->version, memory_order_acquire) != version) {
        ct_members_free(fresh); /* changed meanwhile: the next look reads the newer one */
        return;
    }
    ct_members_free(parsed);
    parsed = fresh;
    parsed_version = version;
    ct__set(&area->seen, version);
    changes++;
}

static void begin(ct__members_area *area) {
    const char *first = getenv("CODETIMER_MEASURE");
    begun = 1;
    if (first == NULL || *first == '\0') return;
    size_t length = strlen(first);
    if (length >= CT__MEMBERS_SIZE) length = CT__MEMBERS_SIZE - 1;
    ct__members_write(area, first, length);
}

/* Brings the parsed list up to date. Returns 1 if it changed. */
static int look(void) {
    ct__members_area *area = ct__publish_members();
    if (area == NULL) return 0;
    if (!begun) begin(area);
    uint64_t version = atomic_load_explicit(&area->version, memory_order_acquire);
    if (version == parsed_version) return 0;
    adopt(area, version);
    return 1;
}

int ct__selects(const char *key, size_t category_length) {
    const char *member = key + category_length + 1;
    look();
    return ct_members_selects(parsed, member, strlen(member));
}

/* ---- public ---- */

static void look_and_apply(void) {
    if (look()) ct__registry_apply_members();
}

int ct_members_set(const char *text, size_t length) {
    if (length >= CT__MEMBERS_SIZE) return CT_EINVAL;
    ct__os_lock();
    ct__members_area *area = ct__publish_members();
    if (area != NULL) {
        begun = 1;
        ct__members_write(area, text, length);
        look_and_apply();
    }
    ct__os_unlock();
    return area != NULL ? CT_OK : CT_ENOMEM;
}

int ct_members_get(char *buffer, size_t size, size_t *length) {
    ct__os_lock();
    look_and_apply();
    ct__members_area *area = ct__publish_members();
    int status = area != NULL ? ct__members_read(area, parsed_version, buffer, size, length) : CT_ENOMEM;
    ct__os_unlock();
    return status;
}

uint64_t ct_members_pattern_hits(const ct_members_pattern *pattern) {
    uint64_t hits = 0;
    uint32_t end = ct_counters_end();
    ct__os_lock();
    for (uint32_t i = 0; i < end; i++) {
        const ct__definition *definition = ct__definition_at(i);
        if (definition == NULL) continue;
        const char *member = strchr(definition->key, '/') + 1;
        hits += (uint64_t)ct_members_pattern_matches(pattern, member, strlen(member));
    }
    ct__os_unlock();
    return hits;
}

void ct__counter_tend(void) {
    ct__os_lock();
    ct__publish_tend(ct__writers_open() == 1);
    look_and_apply();
    ct__os_unlock();
}

uint64_t ct_poll(void) {
    ct__counter_tend();
    return changes;
}
