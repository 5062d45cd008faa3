/* SPDX-License-Identifier: MIT
 *
 * codetimer_live.h: the part of the manual about live counters. Included by codetimer.h; include that.
 *
 * A process publishes its counters in a segment: a file in shared memory that any process of the same user (or root)
 * may map and read while they run. There is no server, no thread and no stop in the measured process. What it measures
 * is decided by its members list, a text that can be changed from inside and outside at any time.
 */
#ifndef CODETIMER_LIVE_H
#define CODETIMER_LIVE_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---- members lists ------------------------------------------------------------------------------------------ */

/* A members list selects members by name: patterns separated by ";" or a newline; "#" begins a comment; "*" stands for
 * any characters (dots too), "?" for one; "!" in front excludes; the last pattern that matches decides. A list that
 * begins with "!" starts from all. Case matters. A backslash quotes ; ! # * ? and itself. At most 64 KiB. A pattern
 * that is wrong is skipped and says why, the rest applies. No list (NULL) selects everything, an empty one nothing. */
typedef struct ct_members ct_members;

typedef struct ct_members_pattern {
    const char *text; /* as written, without blanks around it; not terminated */
    size_t length;
    size_t position;  /* of its first byte in the list */
    int exclude;      /* it begins with "!" */
    const char *body; /* what follows the "!" */
    size_t body_length;
    const char *problem; /* NULL, or why it is skipped */
} ct_members_pattern;

/* Returns CT_OK, CT_EINVAL (over 64 KiB), CT_ENOMEM. The text is copied. */
CT_API int ct_members_parse(const char *text, size_t length, ct_members **members);
CT_API void ct_members_free(ct_members *members);

/* 1 if the list (NULL: none) selects the member. */
CT_API int ct_members_selects(const ct_members *members, const char *member, size_t length);

CT_API size_t ct_members_count(const ct_members *members);
CT_API const ct_members_pattern *ct_members_at(const ct_members *members, size_t index);
CT_API int ct_members_pattern_matches(const ct_members_pattern *pattern, const char *member, size_t length);

/* The text of a list in which the patterns of "change" are switched on (or off): they come last, and earlier equal or
 * opposite ones are dropped, as are wrong ones of both: ct_members_at tells which. "members" NULL: no list so far.
 * Returns as snprintf does. */
CT_API size_t ct_members_switch(const ct_members *members, const ct_members *change, int enable, char *buffer,
                                size_t size);

/* The list of this process. Setting it switches all counters, at once and for those to come. "text" NULL: no list. At
 * the start it is CODETIMER_MEASURE, if that is set. There is one text; whoever wrote last wins. Returns CT_OK,
 * CT_EINVAL, CT_ENOMEM. Threads: any. */
CT_API int ct_members_set(const char *text, size_t length);

/* Its text: CT_OK and *length (the text is written, with a NUL, if it fits), or CT_ENOENT: there is no list. */
CT_API int ct_members_get(char *buffer, size_t size, size_t *length);

/* How many counters of this process the pattern matches. */
CT_API uint64_t ct_members_pattern_hits(const ct_members_pattern *pattern);

/* Who wrote the list in force. */
enum {
    CT_FROM_NOBODY,      /* there is none, and never was */
    CT_FROM_ENVIRONMENT, /* CODETIMER_MEASURE */
    CT_FROM_CONFIGURE,   /* ct_members_set */
    CT_FROM_FILE,        /* ct_config_file, CODETIMER_CONFIG */
    CT_FROM_PROVIDER,    /* ct_members_provide */
    CT_FROM_CONTROLLER,  /* another process */
};

/* Returns CT_FROM_*, and writes the same in words, cut to fit: "environment", "configure", "file /etc/shop.members",
 * "provider", "controller"; nothing for nobody. "buffer" may be NULL. Threads: any. */
CT_API int ct_members_source(char *buffer, size_t size);

/* What an application's own source of lists says. It writes the list only where that differs from what it said last, so
 * that what others wrote meanwhile stays. NULL: a new provider, whose first text is written in any case. Returns CT_OK
 * (written), CT_EXISTS (nothing new), CT_EINVAL, CT_ENOMEM. */
CT_API int ct_members_provide(const char *text, size_t length);

/* ---- a file that holds the list ------------------------------------------------------------------------------- */

/* From now on the list is followed in this file: text in UTF-8, with or without a byte order mark. NULL or "": in none;
 * the list stays. At the start it is CODETIMER_CONFIG. A relative path is one in the current directory, and stays that
 * file. The file is read at once, and then whenever ct_poll, ct_tend or a measured call comes along a quarter of a
 * second or more after the last time. Only what it contains decides, neither its times nor which file it is: it may be
 * written in place or replaced, be a link that is turned, not be there yet, go and come back. What differs from the
 * time before is perhaps half-written: it is put into force when it is found again the next time, and one that is never
 * found twice, once a second as it is. The list is written only when the file's content changes; a file that cannot be
 * used leaves it as it is. Setting the same file again writes it anew. Returns CT_OK also where the file cannot be read
 * (ct_config_info tells), CT_EINVAL (the path is too long, or there is no current directory), CT_ENOMEM. */
CT_API int ct_config_file(const char *path);

enum {
    CT_CONFIG_NONE,    /* no file is followed */
    CT_CONFIG_WAITING, /* not settled yet, empty so far */
    CT_CONFIG_READ,    /* its list was put into force */
    CT_CONFIG_MISSING, /* there is no such file: if a list of it was put into force, that stays */
    CT_CONFIG_REFUSED, /* it cannot be used, for the reason; likewise */
};

typedef struct ct_config {
    int state;         /* CT_CONFIG_* */
    char path[4096];   /* absolute; empty if there is none */
    char reason[200];  /* of MISSING and REFUSED */
    uint64_t looks;    /* how often it was looked at */
    uint64_t lists;    /* how often a list of it was put into force */
    uint64_t events;   /* changes whenever anything above does but "looks" */
    uint64_t patterns; /* in the list that was read last, also those that are skipped */
} ct_config;

CT_API void ct_config_info(ct_config *config);

/* ---- housekeeping -------------------------------------------------------------------------------------------- */

/* Counts the changes of the list, by whomever. Also does what is due of the housekeeping (heartbeat, the file, changes
 * from outside), so a host that has nothing else to do may call it from time to time. Threads: any. It reads the file
 * without holding up measured calls. */
CT_API uint64_t ct_poll(void);

/* The same where it is due (once a second; four times where a file or a provider is followed), else no more than a
 * reading of the clock. Measured calls that count do it by themselves; this is for hosts where perhaps none does.
 * Returns 1 if it was due. */
CT_API int ct_tend(void);

/* ---- the segment of this process ---------------------------------------------------------------------------- */

typedef struct ct_segment {
    int published;
    char path[256];   /* of its file; empty while it is not published */
    char reason[200]; /* why not, or what is missing; empty when all is well */
} ct_segment;

/* Where this process publishes: $CODETIMER_DIR, else /dev/shm/codetimer-<uid>, else $XDG_RUNTIME_DIR/codetimer. It does
 * so with the first measured call. CODETIMER_PUBLISH=0: never. CODETIMER_KEEP=1: the file stays after exit. */
CT_API void ct_segment_info(ct_segment *segment);

/* Program and host language for readers, cut to fit (255 and 15 bytes). Before the first measured call; NULL: unknown.
 */
CT_API void ct_segment_describe(const char *program, const char *host);

/* ---- reading other processes -------------------------------------------------------------------------------- */

enum {
    CT_SEGMENT_LIVE,     /* its process runs */
    CT_SEGMENT_DEAD,     /* it ended; the values are its last */
    CT_SEGMENT_UNUSABLE, /* see reason */
};

typedef struct ct_process {
    char path[256];
    int state; /* CT_SEGMENT_* */
    int64_t pid;
    uint64_t start_time; /* as the system counts it; with the pid it is unique */
    uint64_t uid;
    char program[256], host[16], clock[24];
    uint64_t counters; /* listed */
    uint64_t refused;  /* could not be made */
    char last_refused[256];
    uint64_t heartbeat_age_ns; /* since its housekeeping last ran: an idle process has none */
    char reason[200];          /* why it is unusable, or what is missing in it */
} ct_process;

/* The segments in a directory (NULL: where this user's processes publish). */
typedef struct ct_listing ct_listing;
CT_API int ct_listing_open(const char *directory, ct_listing **listing);
CT_API int ct_listing_next(ct_listing *listing, ct_process *process); /* 1, or 0 at the end */
CT_API void ct_listing_close(ct_listing *listing);

/* Deletes the segment of a dead process. CT_OK, CT_ENOENT, CT_EINVAL (no segment), CT_EPERM (it lives, or is not ours),
 * CT_EOS. */
CT_API int ct_segment_reap(const char *path);

/* A view of one segment. It trusts nothing in the file. Not for two threads at a time. */
typedef struct ct_view ct_view;

/* Returns CT_OK, CT_ENOENT, CT_EPERM, CT_EINVAL (no segment, or another version: "process->reason" says why),
 * CT_ENOMEM. "process" may be NULL. */
CT_API int ct_view_open(const char *path, ct_view **view, ct_process *process);
CT_API void ct_view_close(ct_view *view);

/* Brings the description up to date: CT_OK, or CT_ENOENT when the file is gone (the last values stay readable). */
CT_API int ct_view_refresh(ct_view *view, ct_process *process);

/* Counters by index, 0 up to ct_view_end(). */
CT_API uint32_t ct_view_end(const ct_view *view);

typedef struct ct_view_counter {
    const char *key; /* "category/member", not terminated; lives until the next ct_view_ call */
    size_t key_length, category_length;
    const char *help;
    size_t help_length;
    int listed, enabled;
} ct_view_counter;

/* CT_OK, CT_ENOENT (none there). */
CT_API int ct_view_counter_at(ct_view *view, uint32_t index, ct_view_counter *counter);

/* As ct_counter_sample. "buckets" 0: without them. CT_OK; CT_EXISTS: its writer was busy, these are the last good
 * values (of the record); CT_ENOENT. */
CT_API int ct_view_sample(ct_view *view, uint32_t index, int buckets, ct_sample *sample);

/* ---- switching other processes ------------------------------------------------------------------------------ */

/* The members list of the process, as ct_members_get. */
CT_API int ct_view_members(ct_view *view, char *buffer, size_t size, size_t *length);

/* Sets it, or switches patterns on or off in it (ct_members_switch), and with it all counters of the process, at once.
 * Needs the same user or root. CT_OK, CT_EINVAL, CT_ENOENT (the process has ended), CT_EPERM, CT_ENOMEM, CT_EBUSY
 * (after a second or two: another controller holds the lock, and was perhaps stopped). */
CT_API int ct_view_set_members(ct_view *view, const char *text, size_t length);
CT_API int ct_view_switch(ct_view *view, const char *patterns, size_t length, int enable);

/* 1 when the process itself has taken notice of the latest list: counters that it makes from now on follow it. It does
 * so with its next measured call or new counter, or when it polls. */
CT_API int ct_view_acknowledged(ct_view *view);

#ifdef __cplusplus
}
#endif
#endif
