/* SPDX-License-Identifier: MIT
 *
 * publish.c: see publish.h.
 *
 * The region of segment.c begins as private memory. With the first measured call it is written into a file, the file
 * gets its name, and is mapped over the region: pointers stay what they are, and no update is lost, because none has
 * begun. From then on the file grows before the region does. What cannot be published stays private memory, and says
 * why. A forked child puts empty private memory in place of its parent's file before it does anything else, and starts
 * from zero under new generations; it publishes a file of its own when it measures. It takes nothing from the region,
 * which its parent goes on changing: all that it needs is in private halves.
 */
#include "publish.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "codetimer.h"
#include "format.h"
#include "platform/platform.h"
#include "registry.h"
#include "sweep.h"

enum { NAMES_TRIED = 64 };

enum { UNTRIED, PUBLISHED, PRIVATE };

static _Atomic int state; /* changed under the lock, but for the exit */
static int incomplete;    /* some growth had to stay private */
static int hooked;
static char path[256];
static char reason[200];
static char program[256], host[16];
static ct__os_file file;

static void set_reason(const char *text) {
    ct__text to;
    ct__text_start(&to, reason, sizeof reason);
    ct__text_put(&to, text);
}

/* ---- growth ---- */

static void become_incomplete(void) {
    incomplete = 1; /* a file has no holes: what follows is private too */
    atomic_store_explicit(&ct__segment_header()->incomplete, 1, memory_order_relaxed);
    set_reason(ct__os_shm_is(path, &file)
                   ? "the file could not grow (shared memory full?): later counters are not published"
                   : "the file was deleted by someone else: later counters are not published yet");
}

static int grow(void *address, size_t offset, size_t size) {
    if (state == PUBLISHED && !incomplete) {
        if (ct__os_shm_grow(path, &file, address, offset, size)) {
            ct__set(&ct__segment_header()->size, offset + size);
            return 1;
        }
        become_incomplete();
    }
    return ct__os_memory_commit(address, size);
}

/* ---- the header ---- */

static void put_field(char *field, size_t size, const char *text) {
    memset(field, 0, size);
    size_t length = strlen(text);
    memcpy(field, text, length < size ? length : size - 1);
}

static void describe(ct__header *header) {
    header->magic = CT__MAGIC;
    header->endian = CT__ENDIAN;
    header->major = CT__LAYOUT_MAJOR;
    header->minor = CT__LAYOUT_MINOR;
    header->header_size = sizeof *header;
    header->record_size = sizeof(ct__record);
    header->slot_size = sizeof(ct__slot);
    header->histogram_size = sizeof(ct__histogram);
    ct__os_identity(&header->pid, &header->start_time, &header->uid, header->boot_id, sizeof header->boot_id);
    put_field(header->program, sizeof header->program, program);
    put_field(header->host, sizeof header->host, host);
    put_field(header->clock, sizeof header->clock, ct__clock_source_name(ct__clock_source()));
    ct__set(&header->heartbeat_ns, ct__os_clock_ns());
    ct__set(&header->size, ct__segment_committed());
    atomic_store_explicit(&header->incomplete, 0, memory_order_relaxed);
}

ct__members_area *ct__publish_members(void) {
    ct__header *header = ct__segment_header();
    if (header == NULL) return NULL;
    uint32_t offset = atomic_load_explicit(&header->members_at, memory_order_relaxed);
    if (offset != 0) return ct__segment_at(offset);
    offset = ct__segment_take(CT__PIECE_MEMBERS, 0);
    if (offset == 0) return NULL;
    ct__members_area *area = ct__segment_at(offset);
    for (int side = 0; side < 2; side++)
        atomic_store_explicit(&area->sides[side].lengths[0], CT__NO_LIST, memory_order_relaxed);
    atomic_store_explicit(&header->members_at, offset, memory_order_release);
    return area;
}

void ct__publish_counts(uint64_t listed, uint64_t refused, const char *last_refused) {
    ct__header *header = ct__segment_header();
    if (header == NULL) return;
    ct__set(&header->listed, listed);
    ct__set(&header->refused, refused);
    if (last_refused != NULL) put_field(header->last_refused, sizeof header->last_refused, last_refused);
}

/* ---- publishing ---- */

static int is_set_to(const char *variable, const char *value) {
    const char *wish = getenv(variable);
    return wish != NULL && strcmp(wish, value) == 0;
}

/* <pid>-<start time>-<k>: k counts the cores in one process. A dead file of that name was left by the program that this
 * one took the place of (execve keeps the pid and the start time). */
static int publish_in(const char *folder, ct__header *header) {
    int status = CT_EXISTS;
    for (int k = 0; k < NAMES_TRIED && status == CT_EXISTS; k++) {
        int length = snprintf(path, sizeof path, "%s/%llu-%llu-%d", folder, (unsigned long long)header->pid,
                              (unsigned long long)header->start_time, k);
        if (length < 0 || (size_t)length >= sizeof path) return CT_EINVAL;
        int kept = is_set_to("CODETIMER_KEEP", "1");
        if (ct__os_shm_exists(path) && (kept || ct__os_shm_reap(path, 0) != CT_OK)) continue;
        status = ct__os_shm_publish(path, header, ct__segment_committed(), &file, reason, sizeof reason);
    }
    if (status == CT_EXISTS) set_reason("all names that its file could have are taken");
    return status;
}

/* Without the lock: exit may be called where it is held. */
static void remove_file(void) {
    int was = state;
    state = PRIVATE;
    if (was == PUBLISHED && !is_set_to("CODETIMER_KEEP", "1")) ct__os_shm_unlink(path, &file);
}

static void begin_anew_in_child(void);

static void hook_process(void) {
    if (hooked) return;
    hooked = 1;
    ct__os_at_exit(remove_file);
    ct__segment_grow = grow;
}

static void publish(void) {
    char folder[256 - 64];
    ct__header *header = ct__segment_header();
    reason[0] = '\0';
    state = PRIVATE;
    incomplete = 0;
    if (header == NULL || ct__publish_members() == NULL) {
        set_reason("there is no memory for the segment");
        return;
    }
    hook_process();
    if (ct__os_shm_directory(1, folder, sizeof folder, reason, sizeof reason) != CT_OK) return;
    ct__sweep(folder);
    describe(header);
    if (publish_in(folder, header) == CT_OK)
        state = PUBLISHED;
    else
        path[0] = '\0';
}

void ct__publish_first(void) {
    if (state != UNTRIED) return;
    ct__os_at_fork(begin_anew_in_child);
    if (is_set_to("CODETIMER_PUBLISH", "0")) {
        state = PRIVATE;
        set_reason("switched off by CODETIMER_PUBLISH=0");
        return;
    }
    publish();
}

/* ---- fork ---- */

/* In the child, with the lock held by the fork itself: no other thread exists. Every handle sees a state word that it
 * does not know and goes the slow way, which finds no publication and makes one. Without memory all state words are 0,
 * nothing is listed any more, and the child runs unmeasured. */
static void begin_anew_in_child(void) {
    state = UNTRIED;
    incomplete = 0;
    path[0] = reason[0] = '\0';
    if (!ct__segment_begin_anew()) {
        state = PRIVATE;
        set_reason("there was no memory for the counters of this forked process");
    }
    ct__writers_begin_anew();
    ct__selection_begin_anew();
    ct__registry_begin_anew();
}

/* ---- housekeeping ---- */

/* A copy under the same or the next name, while nobody writes. */
static void replace_file(int writer) {
    uint32_t active = ct__writers_active();
    if (active == (writer ? 1 : 0)) {
        publish();
        return;
    }
    if (active == 1) return; /* its next call does it */
    state = PRIVATE;
    path[0] = '\0';
    set_reason("the file was deleted by someone else while several threads were counting: no longer published");
}

void ct__publish_tend(int writer) {
    if (state != PUBLISHED) return;
    ct__set(&ct__segment_header()->heartbeat_ns, ct__os_clock_ns());
    if (!ct__os_shm_is(path, &file)) replace_file(writer);
}

/* ---- public ---- */

void ct_segment_info(ct_segment *segment) {
    memset(segment, 0, sizeof *segment);
    ct__os_lock();
    segment->published = state == PUBLISHED;
    if (segment->published) memcpy(segment->path, path, sizeof segment->path);
    memcpy(segment->reason, reason, sizeof segment->reason);
    if (state == UNTRIED) put_field(segment->reason, sizeof segment->reason, "nothing has been measured yet");
    ct__os_unlock();
}

void ct_segment_describe(const char *of_program, const char *of_host) {
    ct__os_lock();
    put_field(program, sizeof program, of_program != NULL ? of_program : "");
    put_field(host, sizeof host, of_host != NULL ? of_host : "");
    ct__os_unlock();
}
