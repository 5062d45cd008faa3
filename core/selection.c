/* SPDX-License-Identifier: MIT
 *
 * selection.c: the one members list that is in force in this process.
 *
 * Its text lies in the members area of the segment, where controllers can change it; every source only writes it there.
 * Whether a counter is enabled is a function of this text and its member alone. The parsed list is a private copy for
 * the version that was last read; a newer version is noticed when a counter is made, with the slow path of a measured
 * call, once a second, and by ct_poll. The first text is CODETIMER_MEASURE. Who wrote a text is remembered with it.
 */
#include <stdlib.h>
#include <string.h>

#include "codetimer.h"
#include "config.h"
#include "format.h"
#include "members.h"
#include "platform/platform.h"
#include "publish.h"
#include "registry.h"

static ct_members *parsed; /* NULL: no list */
static uint64_t parsed_id;
static int begun;
static uint64_t changes;

/* Who wrote the text of this process, and who the list in force. */
static int written_by, in_force_by;
static char written_name[4096];

enum { LOOKS = 8 }; /* at the most in one go, should somebody change the list without end */

/* ---- the area ---- */

static uint64_t state_of(const ct__members_area *area, int side) {
    return atomic_load_explicit((ct__word *)(uintptr_t)&area->sides[side].state, memory_order_acquire);
}

int ct__members_side_in_force(const ct__members_area *area) {
    uint64_t process = state_of(area, CT__BY_PROCESS), controller = state_of(area, CT__BY_CONTROLLER);
    return ct__members_id(controller) > ct__members_id(process) ? CT__BY_CONTROLLER : CT__BY_PROCESS;
}

/* The fence is for those who set bits by this text next: who looks at the number after having set a bit of its own must
 * find it, or be found. */
void ct__members_write(ct__members_area *area, int side, const char *text, size_t length) {
    uint64_t latest = ct__members_id(state_of(area, ct__members_side_in_force(area)));
    uint64_t own = state_of(area, side), buffer = (own & 1) ^ 1, id = (latest / 2 + 1) * 2 + (uint64_t)side;
    ct__members_side *to = &area->sides[side];
    atomic_thread_fence(memory_order_release);
    if (text != NULL && length > 0) memcpy(to->texts[buffer], text, length);
    atomic_store_explicit(&to->lengths[buffer], text != NULL ? (uint32_t)length : CT__NO_LIST, memory_order_relaxed);
    atomic_store_explicit(&to->state, id * 2 + buffer, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
}

/* ---- the parsed list ---- */

/* Whether the list of that side could be read whole; "fresh" NULL then means that there is none. */
static int parse_side(const ct__members_area *area, int side, uint64_t state, ct_members **fresh) {
    uint32_t length = atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&area->sides[side].lengths[state & 1],
                                           memory_order_relaxed);
    *fresh = NULL;
    if (length != CT__NO_LIST && length > CT__MEMBERS_MOST) return 0;
    if (length != CT__NO_LIST && ct_members_parse(area->sides[side].texts[state & 1], length, fresh) != CT_OK) return 0;
    atomic_thread_fence(memory_order_acquire);
    if (state_of(area, side) == state) return 1;
    ct_members_free(*fresh); /* changed meanwhile: the next look reads the newer one */
    return 0;
}

static void begin(ct__members_area *area) {
    const char *first = getenv("CODETIMER_MEASURE");
    begun = 1;
    if (first == NULL || *first == '\0') return;
    size_t length = strlen(first);
    if (length > CT__MEMBERS_MOST) /* whole patterns only */
        for (length = CT__MEMBERS_MOST; length > 0 && first[length] != ';' && first[length] != '\n';) length--;
    ct__members_write(area, CT__BY_PROCESS, first, length);
    written_by = CT_FROM_ENVIRONMENT;
}

/* Brings the parsed list up to date. Returns 1 if it changed. */
static int look(void) {
    ct__members_area *area = ct__publish_members();
    ct_members *fresh;
    if (area == NULL) return 0;
    if (!begun) begin(area);
    int side = ct__members_side_in_force(area);
    uint64_t state = state_of(area, side);
    if (ct__members_id(state) == parsed_id || !parse_side(area, side, state, &fresh)) return 0;
    ct_members_free(parsed);
    parsed = fresh;
    parsed_id = ct__members_id(state);
    in_force_by = side == CT__BY_CONTROLLER ? CT_FROM_CONTROLLER : written_by;
    ct__set(&area->seen, parsed_id);
    changes++;
    return 1;
}

static void enable_by_list(ct__definition *definition) {
    const char *member = definition->key + definition->category_length + 1;
    ct__definition_enable(definition, ct_members_selects(parsed, member, strlen(member)));
}

/* A controller turns to its text first and sets the bits then; so a bit that was set by an older text is set again. */
static void apply_to_all(void) {
    uint32_t end = ct__records_end();
    for (uint32_t i = 0; i < end; i++)
        if (ct__definition_at(i) != NULL) enable_by_list(ct__definition_at(i));
    atomic_thread_fence(memory_order_seq_cst);
}

void ct__selection_follow(void) {
    for (int i = 0; i < LOOKS && look(); i++) apply_to_all();
}

void ct__definition_select(ct__definition *definition) {
    ct__selection_follow();
    enable_by_list(definition);
    atomic_thread_fence(memory_order_seq_cst);
    ct__selection_follow();
}

void ct__selection_begin_anew(void) {
    ct__members_area *area = ct__publish_members();
    if (!begun || area == NULL) return;
    size_t length = 0;
    const char *text = parsed != NULL ? ct__members_text(parsed, &length) : NULL;
    ct__members_write(area, CT__BY_PROCESS, text, length);
    written_by = in_force_by;
    parsed_id = ct__members_id(state_of(area, CT__BY_PROCESS));
    ct__set(&area->seen, parsed_id);
}

int ct__selection_put(int source, const char *name, const char *text, size_t length) {
    ct__members_area *area = ct__publish_members();
    ct__text to;
    if (area == NULL) return CT_ENOMEM;
    begun = 1;
    written_by = source;
    ct__text_start(&to, written_name, sizeof written_name);
    ct__text_put(&to, name);
    ct__members_write(area, CT__BY_PROCESS, text, length);
    ct__selection_follow();
    return CT_OK;
}

uint64_t ct__selection_changes(void) { return changes; }

/* ---- public ---- */

int ct_members_set(const char *text, size_t length) {
    if (length > CT__MEMBERS_MOST || (text == NULL && length > 0)) return CT_EINVAL;
    ct__config_begin(); /* what is given by the environment comes first */
    ct__os_lock();
    int status = ct__selection_put(CT_FROM_CONFIGURE, "", text, length);
    ct__os_unlock();
    return status;
}

int ct_members_get(char *buffer, size_t size, size_t *length) {
    ct__config_begin();
    ct__os_lock();
    ct__selection_follow();
    int status = parsed != NULL ? CT_OK : CT_ENOENT;
    const char *text = parsed != NULL ? ct__members_text(parsed, length) : NULL;
    if (text != NULL && *length < size) memcpy(buffer, text, *length + 1);
    ct__os_unlock();
    return status;
}

int ct_members_source(char *buffer, size_t size) {
    static const char *const words[] = {"", "environment", "configure", "file ", "provider", "controller"};
    ct__text to;
    ct__config_begin();
    ct__os_lock();
    ct__selection_follow();
    int source = in_force_by;
    ct__text_start(&to, buffer, buffer != NULL ? size : 0);
    ct__text_put(&to, words[source]);
    if (source == CT_FROM_FILE) ct__text_put(&to, written_name);
    ct__os_unlock();
    return source;
}

uint64_t ct_members_pattern_hits(const ct_members_pattern *pattern) {
    uint64_t hits = 0;
    uint32_t end = ct_counters_end();
    ct__os_lock();
    for (uint32_t i = 0; i < end; i++) {
        const ct__definition *definition = ct__definition_at(i);
        if (definition == NULL) continue;
        const char *member = definition->key + definition->category_length + 1;
        hits += (uint64_t)ct_members_pattern_matches(pattern, member, strlen(member));
    }
    ct__os_unlock();
    return hits;
}
