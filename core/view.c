/* SPDX-License-Identifier: MIT
 *
 * view.c: reading the segment of another process.
 *
 * Nothing in the file is trusted: every offset is checked against the length of the file before it is followed, every list is
 * bounded, and texts are only lent with lengths that were checked. A record is read inside its writer's sequence; when its
 * writer is in the way for too long, the last good values are given and said to be such; when its process is dead, the
 * record is taken as it is, and said to be unclean. What has once been found for a record (its name, its slots) is looked at
 * again only when its state or its list of slots has changed, so that a second reading costs little more than the copies.
 */
#include "view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "codetimer.h"
#include "format.h"
#include "registry.h"

enum { SLOTS_MOST = 4096, TRIES = 1000 };

static void set_reason(ct_process *process, const char *text) {
    ct__text to;
    ct__text_start(&to, process->reason, sizeof process->reason);
    ct__text_put(&to, text);
}

/* ---- opening ---- */

static int refuse(ct_process *process, const char *text) {
    process->state = CT_SEGMENT_UNUSABLE;
    set_reason(process, text);
    return CT_EINVAL;
}

static int refuse_version(ct_process *process, const ct__header *header) {
    char text[120];
    snprintf(text, sizeof text, "its layout is version %u.%u, this program reads %u", header->major, header->minor,
             CT__LAYOUT_MAJOR);
    return refuse(process, text);
}

static int check_header(const ct__header *header, ct_process *process) {
    if (header->magic != CT__MAGIC) return refuse(process, "it is not a segment of codetimer");
    if (header->endian != CT__ENDIAN) return refuse(process, "it was written with another byte order");
    if (header->major != CT__LAYOUT_MAJOR) return refuse_version(process, header);
    int sizes_fit = header->header_size >= sizeof *header && header->record_size == sizeof(ct__record) &&
                    header->slot_size == sizeof(ct__slot) && header->histogram_size == sizeof(ct__histogram);
    return sizes_fit ? CT_OK : refuse(process, "its parts have other sizes than this program knows: it is damaged");
}

static void copy_field(char *to, size_t size, const char *from) {
    memcpy(to, from, size);
    to[size - 1] = '\0';
}

static void describe(ct_view *view, const ct__header *header, ct_process *process) {
    uint64_t now = ct__os_clock_ns(), heartbeat = ct__get(&header->heartbeat_ns);
    process->pid = (int64_t)header->pid;
    process->start_time = header->start_time;
    process->uid = view->file.uid;
    copy_field(process->program, sizeof process->program, header->program);
    copy_field(process->host, sizeof process->host, header->host);
    copy_field(process->clock, sizeof process->clock, header->clock);
    copy_field(process->last_refused, sizeof process->last_refused, header->last_refused);
    process->counters = ct__get(&header->listed);
    process->refused = ct__get(&header->refused);
    process->heartbeat_age_ns = now > heartbeat ? now - heartbeat : 0;
    view->alive = ct__os_view_alive(&view->file);
    process->state = view->alive ? CT_SEGMENT_LIVE : CT_SEGMENT_DEAD;
    if (ct__get(&header->size) > view->file.size) set_reason(process, "its file is shorter than it should be");
}

static int read_header(ct_view *view, ct_process *process) {
    ct__header header;
    if (!ct__os_view_copy(&view->file, 0, &header, sizeof header)) return refuse(process, "it is too short");
    int status = check_header(&header, process);
    if (status != CT_OK) return status;
    uint32_t records = atomic_load_explicit(&header.records, memory_order_acquire);
    view->records = records < CT__RECORDS_MAX ? records : CT__RECORDS_MAX;
    view->members_at = atomic_load_explicit(&header.members_at, memory_order_relaxed);
    memcpy(view->chunks, header.chunks, sizeof view->chunks);
    describe(view, &header, process);
    return CT_OK;
}

static int open_view(ct_view *view, ct_process *process) {
    memset(process, 0, sizeof *process);
    memcpy(process->path, view->path, sizeof process->path);
    int status = ct__os_view_open(view->path, sizeof(ct__header), &view->file, process->reason, sizeof process->reason);
    if (status != CT_OK) {
        process->state = CT_SEGMENT_UNUSABLE;
        return status;
    }
    status = read_header(view, process);
    if (status != CT_OK) ct__os_view_close(&view->file);
    return status;
}

int ct_view_open(const char *path, ct_view **view, ct_process *process) {
    ct_process unasked;
    if (path == NULL || view == NULL || strlen(path) >= sizeof unasked.path) return CT_EINVAL;
    ct_view *made = calloc(1, sizeof *made);
    if (made == NULL) return CT_ENOMEM;
    memcpy(made->path, path, strlen(path) + 1); /* "path" may lie in "process" */
    int status = open_view(made, process != NULL ? process : &unasked);
    if (status != CT_OK) {
        free(made);
        return status;
    }
    *view = made;
    return CT_OK;
}

void ct_view_close(ct_view *view) {
    if (view == NULL) return;
    ct__os_view_close(&view->file);
    free(view->known);
    free(view->key);
    free(view->help);
    free(view);
}

int ct_view_refresh(ct_view *view, ct_process *process) {
    ct_process unasked;
    if (process == NULL) process = &unasked;
    memset(process, 0, sizeof *process);
    memcpy(process->path, view->path, sizeof process->path);
    ct__os_view_refresh(&view->file);
    int status = read_header(view, process);
    if (status != CT_OK) return status;
    if (ct__os_view_linked(&view->file, view->path)) return CT_OK;
    set_reason(process, "its file is gone");
    return CT_ENOENT;
}

uint32_t ct_view_end(const ct_view *view) { return view->records; }

/* ---- records ---- */

static size_t record_offset(const ct_view *view, uint32_t index) {
    uint32_t chunk = atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&view->chunks[index / CT__RECORDS_PER_CHUNK],
                                          memory_order_relaxed);
    return chunk != 0 && chunk % 8 == 0 ? chunk + sizeof(ct__record) * (index % CT__RECORDS_PER_CHUNK) : 0;
}

int ct__view_record(const ct_view *view, uint32_t index, ct__record *record) {
    size_t offset = index < view->records ? record_offset(view, index) : 0;
    return offset != 0 && ct__os_view_copy(&view->file, offset, record, sizeof *record);
}

/* A text of the file in a buffer of the view that grows. */
static int read_text(const ct_view *view, uint32_t offset, uint32_t length, char **buffer, size_t *room) {
    if (length > view->file.size || offset > view->file.size - length) return 0;
    if (*room < (size_t)length + 1) {
        char *more = realloc(*buffer, (size_t)length + 1);
        if (more == NULL) return 0;
        *buffer = more;
        *room = (size_t)length + 1;
    }
    (*buffer)[length] = '\0';
    return ct__os_view_copy(&view->file, offset, *buffer, length);
}

static int read_help(ct_view *view, const ct__record *record, ct_view_counter *counter) {
    uint32_t length = atomic_load_explicit(&record->help_length, memory_order_relaxed);
    uint32_t offset = atomic_load_explicit(&record->help, memory_order_relaxed);
    counter->help = "";
    counter->help_length = 0;
    if (length == 0) return 1;
    if (!read_text(view, offset, length, &view->help, &view->help_room)) return 0;
    counter->help = view->help;
    counter->help_length = length;
    return 1;
}

int ct_view_counter_at(ct_view *view, uint32_t index, ct_view_counter *counter) {
    ct__record record;
    if (!ct__view_record(view, index, &record)) return CT_ENOENT;
    uint32_t length = atomic_load_explicit(&record.key_length, memory_order_relaxed);
    uint32_t category = atomic_load_explicit(&record.category_length, memory_order_relaxed);
    uint32_t key = atomic_load_explicit(&record.key, memory_order_relaxed);
    if (length < 3 || category >= length - 1) return CT_ENOENT;
    if (!read_text(view, key, length, &view->key, &view->key_room)) return CT_ENOENT;
    if (view->key[category] != '/' || !read_help(view, &record, counter)) return CT_ENOENT;
    counter->key = view->key;
    counter->key_length = length;
    counter->category_length = category;
    counter->listed = atomic_load_explicit(&record.listed, memory_order_relaxed) != 0;
    counter->enabled = ct__enabled(ct__get(&record.state));
    return CT_OK;
}

/* ---- samples ---- */

static uint32_t read_sequence(const ct_view *view, size_t offset) {
    uint32_t sequence = 1;
    ct__os_view_copy(&view->file, offset + offsetof(ct__slot, sequence), &sequence, sizeof sequence);
    atomic_thread_fence(memory_order_acquire);
    return sequence;
}

/* 1: consistent; 0: taken as it is, since nobody writes any more; -1: its writer was always in the way. */
static int read_slot(const ct_view *view, size_t offset, ct__slot *slot) {
    for (int i = 0; i < TRIES; i++) {
        uint32_t before = read_sequence(view, offset);
        if (!ct__os_view_copy(&view->file, offset, slot, sizeof *slot)) return 0;
        atomic_thread_fence(memory_order_acquire);
        uint32_t after = read_sequence(view, offset);
        if (before == after && before % 2 == 0) return 1;
        int gone = !view->alive || atomic_load_explicit(&slot->owner, memory_order_relaxed) == 0;
        if (gone && before == after) return 0;
    }
    return -1;
}

static int is_slot(const ct_view *view, size_t offset) {
    return offset % 8 == 0 && offset >= sizeof(ct__header) && view->file.size >= sizeof(ct__slot) &&
           offset <= view->file.size - sizeof(ct__slot);
}

static void add_slot(ct_sample *sample, const ct__slot *slot) {
    uint64_t calls = ct__get(&slot->calls), entered = ct__get(&slot->entered), finished = ct__get(&slot->finished);
    sample->calls += calls;
    sample->total_ns += ct__get(&slot->total_ns);
    sample->active_ns += ct__get(&slot->active_ns);
    sample->errors += ct__get(&slot->errors);
    sample->cancelled += ct__get(&slot->cancelled);
    sample->anomalies += ct__get(&slot->anomalies);
    if (entered > finished) sample->in_flight += entered - finished;
    if (calls == 0) return;
    if (ct__get(&slot->min_ns) < sample->min_ns) sample->min_ns = ct__get(&slot->min_ns);
    if (ct__get(&slot->max_ns) > sample->max_ns) sample->max_ns = ct__get(&slot->max_ns);
}

static void add_buckets(const ct_view *view, ct_sample *sample, const ct__slot *slot) {
    ct__histogram histogram;
    uint32_t offset = atomic_load_explicit(&slot->histogram, memory_order_relaxed);
    if (offset < sizeof(ct__header) || offset % 8 != 0) return;
    if (!ct__os_view_copy(&view->file, offset, &histogram, sizeof histogram)) return;
    for (size_t i = 0; i < CT__BUCKETS; i++) sample->buckets[i] += ct__get(&histogram.buckets[i]);
}

/* Sums the slots of the current generation. Returns 0 if one of them could not be read. */
static int sum_slots(const ct_view *view, uint32_t offset, int buckets, ct_sample *sample) {
    ct__slot slot;
    for (int i = 0; i < SLOTS_MOST && offset != 0 && is_slot(view, offset); i++) {
        int read = read_slot(view, offset, &slot);
        if (read < 0) return 0;
        if (ct__get(&slot.generation) == sample->generation) {
            if (read == 0) sample->unclean = 1;
            add_slot(sample, &slot);
            if (buckets) add_buckets(view, sample, &slot);
        }
        offset = atomic_load_explicit(&slot.next, memory_order_relaxed);
    }
    return 1;
}

static void clear(ct_sample *sample, int buckets) {
    memset(sample, 0, buckets ? sizeof *sample : offsetof(ct_sample, buckets));
    sample->min_ns = UINT64_MAX;
}

/* The last good values of a record, kept without its buckets. */
static ct__known *known_at(ct_view *view, uint32_t index) {
    if (index >= view->known_room) {
        size_t room = view->records + 64u;
        ct__known *more = realloc(view->known, room * sizeof *more);
        if (more == NULL) return NULL;
        memset(more + view->known_room, 0, (room - view->known_room) * sizeof *more);
        view->known = more;
        view->known_room = room;
    }
    return &view->known[index];
}

static void remember(ct_view *view, uint32_t index, const ct_sample *sample) {
    ct__known *known = known_at(view, index);
    if (known == NULL) return;
    known->good = 1;
    memcpy(known->values, sample, sizeof known->values);
}

static int recall(ct_view *view, uint32_t index, ct_sample *sample, uint64_t now) {
    ct__known *known = known_at(view, index);
    if (known != NULL && known->good) memcpy(sample, known->values, sizeof known->values);
    sample->time_ns = now;
    return CT_EXISTS;
}

int ct_view_sample(ct_view *view, uint32_t index, int buckets, ct_sample *sample) {
    ct__record record;
    if (!ct__view_record(view, index, &record)) return CT_ENOENT;
    uint64_t state = ct__get(&record.state), now = ct__os_clock_ns();
    clear(sample, buckets);
    sample->generation = ct__generation(state);
    sample->enabled = ct__enabled(state);
    sample->listed = atomic_load_explicit(&record.listed, memory_order_relaxed) != 0;
    sample->time_ns = now;
    uint32_t first = atomic_load_explicit(&record.first_slot, memory_order_relaxed);
    if (!sum_slots(view, first, buckets, sample)) return recall(view, index, sample, now);
    if (sample->calls == 0) sample->min_ns = 0;
    remember(view, index, sample);
    return CT_OK;
}
