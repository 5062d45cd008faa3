/* SPDX-License-Identifier: MIT
 *
 * control.c: switching the counters of another process.
 *
 * A controller holds the controllers' lock of the file, writes the text into the buffer that nobody reads, turns to it by
 * raising the version, and then sets the enabled bit of every state word as the text demands. Each step can be repeated, and
 * is by whoever comes next: a controller that is killed half-way leaves the old text or the new one, never a mixture, and
 * the process itself brings the bits into line when it reads the text.
 */
#include <stdlib.h>
#include <string.h>

#include "registry.h"
#include "view.h"

static ct__members_area *area_in(unsigned char *map, size_t size, uint32_t offset) {
    int inside = offset >= sizeof(ct__header) && offset % 8 == 0 && size >= sizeof(ct__members_area) &&
                 offset <= size - sizeof(ct__members_area);
    return inside ? (ct__members_area *)(void *)(map + offset) : NULL;
}

/* A consistent copy of the text: its version is the same before and after. */
static int read_members(ct_view *view, char *buffer, size_t size, size_t *length) {
    static const int tries = 100;
    ct__members_area *copy = malloc(sizeof *copy);
    int status = CT_ENOMEM;
    for (int i = 0; copy != NULL && i < tries; i++) {
        uint64_t after = 0;
        status = CT_EINVAL;
        if (!ct__os_view_copy(&view->file, view->members_at, copy, sizeof *copy)) break;
        ct__os_view_copy(&view->file, view->members_at + offsetof(ct__members_area, version), &after, sizeof after);
        uint64_t version = ct__get(&copy->version);
        status = ct__members_read(copy, version, buffer, size, length);
        if (after == version) break;
    }
    free(copy);
    return status;
}

int ct_view_members(ct_view *view, char *buffer, size_t size, size_t *length) {
    if (view->members_at < sizeof(ct__header)) return CT_EINVAL;
    return read_members(view, buffer, size, length);
}

int ct_view_acknowledged(ct_view *view) {
    uint64_t words[2] = {0, 1};
    ct__os_view_copy(&view->file, view->members_at + offsetof(ct__members_area, version), words, sizeof words);
    return words[0] == words[1];
}

/* ---- writing ---- */

static void set_enabled(ct__word *word, int enabled) {
    uint64_t state = atomic_load_explicit(word, memory_order_relaxed), wanted;
    do wanted = (state & ~(uint64_t)1) | (uint64_t)(enabled != 0);
    while (wanted != state && !atomic_compare_exchange_weak(word, &state, wanted));
}

static void apply(ct_view *view, ct__os_control *control, const ct_members *members) {
    for (uint32_t i = 0; i < view->records; i++) {
        ct_view_counter counter;
        if (ct_view_counter_at(view, i, &counter) != CT_OK || !counter.listed) continue;
        uint32_t chunk = atomic_load_explicit(&view->chunks[i / CT__RECORDS_PER_CHUNK], memory_order_relaxed);
        size_t offset = chunk + sizeof(ct__record) * (i % CT__RECORDS_PER_CHUNK);
        if (offset > control->size - sizeof(ct__record)) continue;
        const char *member = counter.key + counter.category_length + 1;
        size_t length = counter.key_length - counter.category_length - 1;
        ct__record *record = (ct__record *)(void *)(control->map + offset);
        set_enabled(&record->state, ct_members_selects(members, member, length));
    }
}

static int write_members(ct_view *view, ct__os_control *control, const char *text, size_t length) {
    ct__members_area *area = area_in(control->map, control->size, view->members_at);
    ct_members *members = NULL;
    if (area == NULL) return CT_EINVAL;
    int status = text != NULL ? ct_members_parse(text, length, &members) : CT_OK;
    if (status != CT_OK) return status;
    ct__members_write(area, text, length);
    apply(view, control, members);
    ct_members_free(members);
    return CT_OK;
}

static int open_control(ct_view *view, ct__os_control *control) {
    int status = ct_view_refresh(view, NULL);
    if (status != CT_OK) return status;
    if (!view->alive) return CT_ENOENT;
    return ct__os_control_open(view->path, &view->file.file, control);
}

int ct_view_set_members(ct_view *view, const char *text, size_t length) {
    ct__os_control control;
    if (length >= CT__MEMBERS_SIZE || (text == NULL && length > 0)) return CT_EINVAL;
    int status = open_control(view, &control);
    if (status != CT_OK) return status;
    status = write_members(view, &control, text, length);
    ct__os_control_close(&control);
    return status;
}

/* The text after the change; the lock is held, so nobody else changes it in between. */
static int switch_locked(ct_view *view, ct__os_control *control, const ct_members *change, int enable) {
    char *text = malloc(CT__MEMBERS_SIZE), *changed = malloc(CT__MEMBERS_SIZE);
    ct_members *now = NULL;
    size_t length = 0;
    int status = text != NULL && changed != NULL ? read_members(view, text, CT__MEMBERS_SIZE, &length) : CT_ENOMEM;
    if (status == CT_OK) status = ct_members_parse(text, length, &now);
    if (status == CT_OK || status == CT_ENOENT) {
        length = ct_members_switch(now, change, enable, changed, CT__MEMBERS_SIZE);
        status = length < CT__MEMBERS_SIZE ? write_members(view, control, changed, length) : CT_EINVAL;
    }
    ct_members_free(now);
    free(text);
    free(changed);
    return status;
}

int ct_view_switch(ct_view *view, const char *patterns, size_t length, int enable) {
    ct__os_control control;
    ct_members *change;
    int status = ct_members_parse(patterns, length, &change);
    if (status != CT_OK) return status;
    status = open_control(view, &control);
    if (status == CT_OK) {
        status = switch_locked(view, &control, change, enable);
        ct__os_control_close(&control);
    }
    ct_members_free(change);
    return status;
}
