/* SPDX-License-Identifier: MIT
 *
 * control.c: switching the counters of another process.
 *
 * A controller holds the controllers' lock of the file, writes the text into the buffer that nobody reads, turns to it
 * by raising the number, and then sets the enabled bit of every state word as the text demands. Each step can be
 * repeated, and is by whoever comes next: a controller that is killed half-way leaves the old text or the new one,
 * never a mixture, and the process itself brings the bits into line when it reads the text. Whoever has set bits looks
 * at the number again: if the other side has turned to a newer text meanwhile, the bits are set by that one.
 */
#include <stdlib.h>
#include <string.h>

#include "registry.h"
#include "sample.h"
#include "view.h"

enum { TRIES = 100 };

/* ---- reading ---- */

static uint64_t read_state(const ct_view *view, int side) {
    ct__word room;
    size_t offset = view->members_at + offsetof(ct__members_area, sides) + (size_t)side * sizeof(ct__members_side);
    const ct__word *word = ct__view_at(view, offset + offsetof(ct__members_side, state), sizeof room, &room);
    return word != NULL ? atomic_load_explicit((ct__word *)(uintptr_t)word, memory_order_acquire) : 0;
}

static uint64_t read_state_in_force(const ct_view *view, int *side) {
    uint64_t process = read_state(view, CT__BY_PROCESS), controller = read_state(view, CT__BY_CONTROLLER);
    *side = ct__members_id(controller) > ct__members_id(process);
    return *side == CT__BY_CONTROLLER ? controller : process;
}

static int read_text(const ct_view *view, int side, uint64_t state, char *buffer, size_t size, size_t *length) {
    _Atomic uint32_t room;
    size_t which = state & 1;
    size_t from = view->members_at + offsetof(ct__members_area, sides) + (size_t)side * sizeof(ct__members_side);
    size_t length_at = from + offsetof(ct__members_side, lengths) + which * sizeof room;
    size_t text_at = from + offsetof(ct__members_side, texts) + which * CT__MEMBERS_MOST;
    const _Atomic uint32_t *word = ct__view_at(view, length_at, sizeof room, &room);
    uint32_t stated = word != NULL ? ct__get32(word) : 0;
    if (word == NULL || (stated > CT__MEMBERS_MOST && stated != CT__NO_LIST)) return CT_EINVAL;
    if (stated == CT__NO_LIST) return CT_ENOENT;
    *length = stated;
    if (stated >= size) return CT_OK;
    buffer[stated] = '\0';
    return ct__os_view_copy(&view->file, text_at, buffer, stated) ? CT_OK : CT_EINVAL;
}

/* The offset of the area is one that can hold it. */
static int has_area(const ct_view *view) {
    size_t size = view->file.size;
    return view->members_at >= sizeof(ct__header) && view->members_at % 8 == 0 && size >= sizeof(ct__members_area) &&
           view->members_at <= size - sizeof(ct__members_area);
}

/* A text is whole if its side has not turned to another one meanwhile. */
int ct_view_members(ct_view *view, char *buffer, size_t size, size_t *length) {
    int status = CT_EINVAL;
    if (!has_area(view)) return CT_EINVAL;
    for (int i = 0; i < TRIES; i++) {
        int side;
        uint64_t state = read_state_in_force(view, &side);
        status = read_text(view, side, state, buffer, size, length);
        atomic_thread_fence(memory_order_acquire);
        if (read_state(view, side) == state) break;
    }
    return status;
}

int ct_view_acknowledged(ct_view *view) {
    ct__word room;
    int side;
    if (!has_area(view)) return 0;
    const ct__word *seen = ct__view_at(view, view->members_at + offsetof(ct__members_area, seen), sizeof room, &room);
    return seen != NULL && ct__get(seen) == ct__members_id(read_state_in_force(view, &side));
}

/* ---- writing ---- */

/* Only in the generation in which the record had the name by which this was decided. */
static void set_enabled(ct__word *word, uint64_t generation, int enabled) {
    uint64_t state = atomic_load_explicit(word, memory_order_relaxed),
             wanted = generation << 1 | (uint64_t)(enabled != 0);
    while (state >> 1 == generation && state != wanted && !atomic_compare_exchange_weak(word, &state, wanted))
        ;
}

static void apply_to(ct_view *view, const ct__os_control *control, const ct_members *members, uint32_t index) {
    ct_view_counter counter;
    size_t offset = ct__view_record_offset(view, index);
    if (offset == 0 || control->size < sizeof(ct__record) || offset > control->size - sizeof(ct__record)) return;
    ct__record *record = (ct__record *)(void *)(control->map + offset);
    uint64_t state = atomic_load_explicit(&record->state, memory_order_acquire);
    if (ct_view_counter_at(view, index, &counter) != CT_OK || !counter.listed) return;
    const char *member = counter.key + counter.category_length + 1;
    size_t length = counter.key_length - counter.category_length - 1;
    set_enabled(&record->state, state >> 1, ct_members_selects(members, member, length));
}

/* Counters made while the text was written may have followed the old one: the header is read anew. */
static int apply(ct_view *view, const ct__os_control *control, const ct_members *members) {
    int status = ct_view_refresh(view, NULL);
    if (status != CT_OK) return status;
    for (uint32_t i = 0; i < view->records; i++) apply_to(view, control, members, i);
    atomic_thread_fence(memory_order_seq_cst);
    return CT_OK;
}

/* The text in force, parsed; NULL: there is none, or it cannot be read, which "status" tells. */
static ct_members *read_list(ct_view *view, int *status) {
    ct_members *members = NULL;
    char *text = malloc(CT__MEMBERS_MOST + 1);
    size_t length = 0;
    *status = text != NULL ? ct_view_members(view, text, CT__MEMBERS_MOST + 1, &length) : CT_ENOMEM;
    if (*status == CT_OK) *status = ct_members_parse(text, length, &members);
    if (*status == CT_ENOENT) *status = CT_OK;
    free(text);
    return members;
}

/* Until no newer text has come into force meanwhile. */
static int apply_list(ct_view *view, const ct__os_control *control) {
    int status = CT_OK, side;
    uint64_t applied = 0;
    for (int i = 0; i < TRIES && status == CT_OK; i++) {
        uint64_t now = read_state_in_force(view, &side);
        if (i > 0 && now == applied) break;
        ct_members *members = read_list(view, &status);
        if (status == CT_OK) status = apply(view, control, members);
        ct_members_free(members);
        applied = now;
    }
    return status;
}

static int write_members(ct_view *view, const ct__os_control *control, const char *text, size_t length) {
    if (!has_area(view) || control->size < view->file.size) return CT_EINVAL;
    ct__members_write((ct__members_area *)(void *)(control->map + view->members_at), CT__BY_CONTROLLER, text, length);
    return apply_list(view, control);
}

static int open_control(ct_view *view, ct__os_control *control) {
    int status = ct_view_refresh(view, NULL);
    if (status != CT_OK) return status;
    if (!view->alive) return CT_ENOENT;
    return ct__os_control_open(view->path, &view->file.file, control);
}

int ct_view_set_members(ct_view *view, const char *text, size_t length) {
    ct__os_control control;
    if (length > CT__MEMBERS_MOST || (text == NULL && length > 0)) return CT_EINVAL;
    int status = open_control(view, &control);
    if (status != CT_OK) return status;
    status = write_members(view, &control, text, length);
    ct__os_control_close(&control);
    return status;
}

/* The text after the change; the lock is held, so no other controller changes it in between. */
static int switch_locked(ct_view *view, const ct__os_control *control, const ct_members *change, int enable) {
    char *changed = malloc(CT__MEMBERS_MOST + 1);
    int status = CT_ENOMEM;
    ct_members *now = changed != NULL ? read_list(view, &status) : NULL;
    if (status == CT_OK) {
        size_t length = ct_members_switch(now, change, enable, changed, CT__MEMBERS_MOST + 1);
        status = length <= CT__MEMBERS_MOST ? write_members(view, control, changed, length) : CT_EINVAL;
    }
    ct_members_free(now);
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
