/* SPDX-License-Identifier: MIT
 *
 * view.c: reading the segment of another process.
 *
 * Nothing in the file is trusted: every offset is checked against the length of the file before it is followed, every
 * list is bounded, and texts are lent as copies with lengths that were checked. The name of a record is copied between
 * two looks at its generation, because its memory may be given to another counter meanwhile.
 */
#include "view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codetimer.h"
#include "format.h"
#include "sample.h"

enum { TRIES = 16, LONGEST_TEXT = 2 * 65536 };

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
    if (ct__get32(&header->incomplete) != 0) set_reason(process, "its file could not grow: later counters are missing");
    if (ct__get(&header->size) > view->file.size) set_reason(process, "its file is shorter than it should be");
}

int ct__view_read_header(ct_view *view, ct_process *process) {
    ct__header header;
    if (!ct__os_view_copy(&view->file, 0, &header, sizeof header)) return refuse(process, "it is too short");
    int status = check_header(&header, process);
    if (status != CT_OK) return status;
    uint32_t records = ct__get32(&header.records);
    view->records = records < CT__RECORDS_MAX ? records : CT__RECORDS_MAX;
    view->members_at = ct__get32(&header.members_at);
    for (size_t i = 0; i < CT__CHUNKS_MAX; i++) view->chunks[i] = ct__get32(&header.chunks[i]);
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
    status = ct__view_read_header(view, process);
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
    int status = ct__view_read_header(view, process);
    if (status != CT_OK) return status;
    if (ct__os_view_linked(&view->file, view->path)) return CT_OK;
    set_reason(process, "its file is gone");
    return CT_ENOENT;
}

uint32_t ct_view_end(const ct_view *view) { return view->records; }

/* ---- records ---- */

/* A text of the file in a buffer of the view that grows. */
static int read_text(const ct_view *view, uint32_t offset, uint32_t length, char **buffer, size_t *room) {
    if (length > LONGEST_TEXT || length > view->file.size || offset > view->file.size - length) return 0;
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
    uint32_t length = ct__get32(&record->help_length);
    counter->help = "";
    counter->help_length = 0;
    if (length == 0) return 1;
    if (!read_text(view, ct__get32(&record->help), length, &view->help, &view->help_room)) return 0;
    counter->help = view->help;
    counter->help_length = length;
    return 1;
}

static int read_key(ct_view *view, const ct__record *record, ct_view_counter *counter) {
    uint32_t length = ct__get32(&record->key_length), category = ct__get32(&record->category_length);
    if (length < 3 || category == 0 || category >= length - 1) return 0;
    if (!read_text(view, ct__get32(&record->key), length, &view->key, &view->key_room)) return 0;
    if (view->key[category] != '/') return 0;
    counter->key = view->key;
    counter->key_length = length;
    counter->category_length = category;
    return 1;
}

static int read_counter(ct_view *view, const ct__record *record, uint64_t state, ct_view_counter *counter) {
    if (!read_key(view, record, counter) || !read_help(view, record, counter)) return 0;
    counter->listed = ct__get32(&record->listed) != 0;
    counter->enabled = (int)(state & 1);
    return 1;
}

int ct_view_counter_at(ct_view *view, uint32_t index, ct_view_counter *counter) {
    ct__record room;
    for (int i = 0; i < TRIES; i++) {
        const ct__record *record = ct__view_record(view, index, &room);
        if (record == NULL) return CT_ENOENT;
        uint64_t state = atomic_load_explicit((ct__word *)(uintptr_t)&record->state, memory_order_acquire);
        int read = read_counter(view, record, state, counter);
        atomic_thread_fence(memory_order_acquire);
        record = ct__view_record(view, index, &room);
        if (record != NULL && ct__get(&record->state) >> 1 == state >> 1) return read ? CT_OK : CT_ENOENT;
    }
    return CT_ENOENT; /* it changes all the time */
}
