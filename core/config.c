/* SPDX-License-Identifier: MIT
 *
 * config.c: the file that the members list is followed in, and the list of an application's own provider.
 *
 * A look reads the whole file (a members list is short) and compares it with what was seen before. Times and identity
 * of the file are not trusted: they stay the same on some replacements, and differ on some that change nothing. What a
 * look finds, be it a text or a problem, is believed when the next look finds it too: then it was not half-written, nor
 * the moment between two names. The first look is believed at once, unless the file is empty, and a text that never
 * rests is taken as it is, once in a while.
 *
 * Invariant: the file is read without the lock; what was read counts only if the file is still the one to follow.
 */
#include "config.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codetimer.h"
#include "format.h"
#include "platform/platform.h"
#include "registry.h"

enum { BUSY_TRIES = 3, MARK = 3 }; /* bytes of a byte order mark */

static const uint64_t look_every_ns = 200000000, restless_ns = 600000000;

/* What a look has found: a text, or why there is none. */
typedef struct finding {
    int state; /* CT_CONFIG_READ, MISSING or REFUSED; NONE: there was no look */
    char *text;
    size_t length;
    uint64_t stamp; /* see ct__os_file_read */
    char reason[200];
} finding;

typedef struct look {
    char path[4096];
    uint64_t edition;
    finding found;
} look;

static _Atomic int begun, follows;

/* All below under the lock. */
static int has_provider;
static ct_config info;
static uint64_t edition;        /* counts the files that were set */
static uint64_t looking;        /* the process in which a look is under way, 0: none */
static uint64_t looked_ns;      /* when the last one began */
static uint64_t restless_since; /* 0: the last two looks found the same */
static finding last;            /* of the look before */
static finding taken;           /* the text that was put into force last */
static finding provided;        /* the text that the provider said last */

/* ---- findings ---- */

static void forget(finding *one) {
    free(one->text);
    *one = (finding){0};
}

static int is_same(const finding *one, const finding *other) {
    return one->state == other->state && one->length == other->length && strcmp(one->reason, other->reason) == 0 &&
           (one->length == 0 || memcmp(one->text, other->text, one->length) == 0);
}

static int is_empty(const finding *one) { return one->state == CT_CONFIG_READ && one->length == 0; }

/* Emptiness is what somebody who writes in place shows again and again: it has to be that of an untouched file. */
static int is_confirmed(const finding *one, const finding *before) {
    return is_same(one, before) && (!is_empty(one) || one->stamp == before->stamp);
}

/* Returns 0 without memory; "to" is then as it was. */
static int keep(finding *to, const char *text, size_t length) {
    char *copy = malloc(length + 1);
    if (copy == NULL) return 0;
    if (length > 0) memcpy(copy, text, length);
    forget(to);
    to->state = CT_CONFIG_READ;
    to->text = copy;
    to->length = length;
    return 1;
}

/* ---- reading ---- */

static void refuse(finding *found, const char *before, uint64_t number, const char *after) {
    ct__text reason;
    found->state = CT_CONFIG_REFUSED;
    found->length = 0;
    ct__text_start(&reason, found->reason, sizeof found->reason);
    ct__text_put(&reason, before);
    ct__text_put_count(&reason, number);
    ct__text_put(&reason, after);
}

static int begins_with(const finding *found, const char *bytes, size_t count) {
    return found->length >= count && memcmp(found->text, bytes, count) == 0;
}

/* A members list is text in UTF-8; a byte order mark in front of it is no part of it. */
static void check_text(finding *found) {
    if (begins_with(found, "\xff\xfe", 2) || begins_with(found, "\xfe\xff", 2)) {
        refuse(found, "it is in UTF-16 or UTF-32, as its first ", 2, " bytes say: save it as UTF-8");
        return;
    }
    for (size_t at = 0, length; at < found->length; at += length) {
        uint32_t code = 0;
        length = ct__text_decode((const unsigned char *)found->text + at, found->length - at, &code);
        if (length > 0 && code != 0) continue;
        refuse(found, "it is no text in UTF-8: byte ", at + 1, length > 0 ? " is a NUL" : " does not belong there");
        return;
    }
    if (!begins_with(found, "\xef\xbb\xbf", MARK)) return;
    found->length -= MARK;
    memmove(found->text, found->text + MARK, found->length);
}

/* Returns 0 if it is being changed this very moment, or there is no memory: then nothing was found. */
static int read_file(const char *path, finding *found) {
    enum { ROOM = CT__MEMBERS_MOST + MARK };
    uint64_t length = 0;
    int status = CT_EBUSY;
    found->text = malloc(ROOM);
    if (found->text == NULL) return 0;
    for (int i = 0; i < BUSY_TRIES && status == CT_EBUSY; i++)
        status = ct__os_file_read(path, found->text, ROOM, &length, &found->stamp, found->reason, sizeof found->reason);
    if (status == CT_EBUSY) return 0;
    found->state = status == CT_OK ? CT_CONFIG_READ : status == CT_ENOENT ? CT_CONFIG_MISSING : CT_CONFIG_REFUSED;
    if (status == CT_OK) {
        found->length = (size_t)length;
        check_text(found);
        if (found->length > CT__MEMBERS_MOST) status = CT_EFULL;
    }
    if (status == CT_EFULL) refuse(found, "it has ", length, " bytes, and a members list at most 65,536");
    if (status == CT_ENOENT) snprintf(found->reason, sizeof found->reason, "there is no such file");
    return 1;
}

/* ---- judging, with the lock held ---- */

static void tell(int state, const char *reason) {
    if (info.state == state && strcmp(info.reason, reason) == 0) return;
    info.state = state;
    snprintf(info.reason, sizeof info.reason, "%s", reason);
    info.events++;
}

static void count_patterns(const finding *found) {
    ct_members *members;
    if (ct_members_parse(found->text, found->length, &members) != CT_OK) return;
    info.patterns = ct_members_count(members);
    ct_members_free(members);
}

/* Writes the list if the text is another than the one that was written last. */
static void take(const finding *found) {
    if (!is_same(found, &taken)) {
        if (!keep(&taken, found->text, found->length) ||
            ct__selection_put(CT_FROM_FILE, info.path, found->text, found->length) != CT_OK) {
            forget(&taken);
            tell(CT_CONFIG_REFUSED, "there is no memory for its list");
            return;
        }
        count_patterns(found);
        info.lists++;
        info.events++;
    }
    tell(CT_CONFIG_READ, "");
}

static void believe(const finding *found) {
    if (found->state == CT_CONFIG_READ)
        take(found);
    else
        tell(found->state, found->reason);
}

/* A text that is another one at every look is taken once in a while. */
static int has_no_rest(const finding *found) {
    if (restless_since == 0) restless_since = looked_ns;
    return looked_ns - restless_since >= restless_ns && found->state == CT_CONFIG_READ && found->length > 0;
}

static void judge(finding *found) {
    int first = last.state == CT_CONFIG_NONE && !is_empty(found);
    if (first || is_confirmed(found, &last) || has_no_rest(found)) {
        restless_since = 0;
        believe(found);
    }
    forget(&last);
    last = *found;
    *found = (finding){0};
}

/* ---- looking ---- */

/* A look that began in this process before a fork, in another thread, never ends in the child. */
static int is_looking(void) { return looking != 0 && looking == ct__os_process_number(); }

/* With the lock held. */
static void begin_look(look *now) {
    memcpy(now->path, info.path, sizeof now->path);
    now->edition = edition;
    now->found = (finding){0};
    looking = ct__os_process_number();
    looked_ns = ct__os_clock_ns();
    info.looks++;
}

static void end_look(look *now) {
    int found = read_file(now->path, &now->found);
    ct__os_lock();
    if (now->edition == edition) {
        looking = 0;
        if (found) judge(&now->found);
    }
    ct__os_unlock();
    forget(&now->found);
}

void ct__config_look(void) {
    look now;
    if (!ct__config_follows()) return;
    ct__os_lock();
    int due = info.path[0] != '\0' && !is_looking() && ct__os_clock_ns() - looked_ns >= look_every_ns;
    if (due) begin_look(&now);
    ct__os_unlock();
    if (due) end_look(&now);
}

int ct__config_follows(void) { return atomic_load_explicit(&follows, memory_order_relaxed); }

/* ---- which file ---- */

/* With the lock held. */
static void set_path(const char *path) {
    edition++;
    looking = 0;
    restless_since = 0;
    forget(&last);
    forget(&taken);
    snprintf(info.path, sizeof info.path, "%s", path);
    info.patterns = 0;
    info.state = path[0] != '\0' ? CT_CONFIG_WAITING : CT_CONFIG_NONE;
    info.reason[0] = '\0';
    info.events++;
    atomic_store_explicit(&follows, path[0] != '\0' || has_provider, memory_order_relaxed);
}

static int follow(const char *path) {
    look now = {.path = ""};
    if (path[0] != '\0' && ct__os_path_absolute(path, now.path, sizeof now.path) != CT_OK) return CT_EINVAL;
    ct__os_lock();
    set_path(now.path);
    if (path[0] != '\0') begin_look(&now);
    ct__os_unlock();
    if (path[0] == '\0') return CT_OK;
    end_look(&now);
    ct__counter_tend_soon();
    return CT_OK;
}

void ct__config_begin(void) {
    if (atomic_exchange_explicit(&begun, 1, memory_order_acq_rel)) return;
    const char *path = getenv("CODETIMER_CONFIG");
    if (path != NULL) (void)follow(path);
}

int ct_config_file(const char *path) {
    atomic_store_explicit(&begun, 1, memory_order_release);
    return follow(path != NULL ? path : "");
}

void ct_config_info(ct_config *config) {
    ct__config_begin();
    ct__os_lock();
    *config = info;
    ct__os_unlock();
}

/* ---- the provider ---- */

int ct_members_provide(const char *text, size_t length) {
    if (length > CT__MEMBERS_MOST || (text == NULL && length > 0)) return CT_EINVAL;
    ct__config_begin();
    finding said = {.state = CT_CONFIG_READ, .text = (char *)(uintptr_t)text, .length = length};
    int status = CT_OK;
    ct__os_lock();
    has_provider = 1;
    atomic_store_explicit(&follows, 1, memory_order_relaxed);
    if (text == NULL)
        forget(&provided);
    else if (is_same(&said, &provided))
        status = CT_EXISTS;
    else if (!keep(&provided, text, length))
        status = CT_ENOMEM;
    else
        status = ct__selection_put(CT_FROM_PROVIDER, "", text, length);
    if (status == CT_ENOMEM) forget(&provided);
    ct__os_unlock();
    return status;
}
