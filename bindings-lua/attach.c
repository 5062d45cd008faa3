/* SPDX-License-Identifier: MIT
 *
 * attach.c: codetimer.attach: which segments a process has.
 *
 * A process has a segment for each core in it, that is for each language that measures. A pid alone may name several
 * processes: one that lives and others that are dead, or, in a folder that containers share, two that live. The living
 * one is meant, else the one that began last. What an earlier program left under the same pid and start time (execve)
 * is dead beside a living one, and not joined to it.
 *
 * Invariant: while the folder is read, the View holds all segments met so far of the best process met so far.
 */
#include "live.h"

#include <stdio.h>
#include <string.h>

enum { PROCESS = 1, DIRECTORY };

typedef struct search {
    int64_t pid;
    uint64_t start_time;
    int exactly; /* the start time is given */
    ct_process best;
    int found;   /* "best" is filled */
    int refused; /* the status with which a segment of the best process refused to open, with its reason */
    char reason[200];
    char rival[256];    /* the path of another process that lives under the pid, or empty */
    char unusable[256]; /* the path of an unusable segment under the pid, or empty */
} search;

/* ---- the argument ---- */

static lua_Integer check_integer(lua_State *L, int index) {
    int whole = 0;
    lua_Integer value = lua_type(L, index) == LUA_TNUMBER ? lua_tointegerx(L, index, &whole) : 0;
    if (!whole)
        luaL_argerror(L, PROCESS,
                      lua_pushfstring(L, "pid must be a process id or an entry of processes(), got %s",
                                      ct__lua_describe(L, PROCESS)));
    return value;
}

static void check_process(lua_State *L, search *s) {
    if (lua_istable(L, PROCESS)) {
        if (lua_getfield(L, PROCESS, "reason") == LUA_TSTRING && lua_getfield(L, PROCESS, "pid") == LUA_TNIL)
            luaL_argerror(L, PROCESS, lua_pushfstring(L, "this one cannot be attached to: %s", lua_tostring(L, -2)));
        lua_settop(L, DIRECTORY);
        lua_getfield(L, PROCESS, "pid");
        lua_getfield(L, PROCESS, "start_time");
        s->start_time = (uint64_t)check_integer(L, -1);
        s->exactly = 1;
        lua_pop(L, 1);
    } else
        lua_pushvalue(L, PROCESS);
    s->pid = check_integer(L, -1);
    if (s->pid <= 0)
        luaL_argerror(L, PROCESS, lua_pushfstring(L, "pid must be greater than 0, got %I", (LUAI_UACINT)s->pid));
    lua_settop(L, DIRECTORY);
}

/* ---- the search: calls nothing of Lua ---- */

/* Whether a file is named after the pid: all that is known of a segment that cannot be read. */
static int is_named_after(const char *path, int64_t pid) {
    char start[32];
    const char *slash = strrchr(path, '/');
    int length = snprintf(start, sizeof start, "%lld-", (long long)pid);
    return slash != NULL && strncmp(slash + 1, start, (size_t)length) == 0;
}

/* 1: "process" is meant rather than "best"; 0: they are segments of one; -1: the best is. */
static int compare(const ct_process *process, const ct_process *best) {
    if (process->state != best->state) return process->state == CT_SEGMENT_LIVE ? 1 : -1;
    if (process->start_time == best->start_time) return 0;
    return process->start_time > best->start_time ? 1 : -1;
}

static void open_segment(search *s, ct__lua_views *views, const char *path) {
    ct_process process;
    if (views->count == CT__LUA_VIEWS_MOST) return;
    int status = ct_view_open(path, &views->views[views->count], &process);
    if (status == CT_OK) views->count++;
    if (status == CT_OK || status == CT_ENOENT) return; /* it has just ended */
    s->refused = status;
    memcpy(s->reason, process.reason, sizeof s->reason);
}

static void take(search *s, ct__lua_views *views, const ct_process *process) {
    int better = s->found ? compare(process, &s->best) : 1;
    if (s->found && process->state == CT_SEGMENT_LIVE && s->best.state == CT_SEGMENT_LIVE && better != 0)
        memcpy(s->rival, process->path, sizeof s->rival);
    if (better < 0) return;
    if (better > 0) {
        ct__lua_close_views(views);
        s->best = *process;
        s->found = 1;
        s->refused = CT_OK;
    }
    open_segment(s, views, process->path);
}

static void find_segments(search *s, ct__lua_views *views, ct_listing *listing) {
    ct_process process;
    while (ct_listing_next(listing, &process)) {
        if (process.state == CT_SEGMENT_UNUSABLE) {
            if (is_named_after(process.path, s->pid)) memcpy(s->unusable, process.path, sizeof s->unusable);
        } else if (process.pid == s->pid && (!s->exactly || process.start_time == s->start_time))
            take(s, views, &process);
    }
}

/* ---- the outcome ---- */

static int refuse_ended(lua_State *L, int64_t pid) {
    lua_pushfstring(L, "process %I publishes no counters: it has ended, has measured nothing yet, or could not publish "
                    "them, and then knows why: codetimer.segment_info()",
                    (LUAI_UACINT)pid);
    return ct__lua_refuse(L, CT_ENOENT, NULL, lua_tostring(L, -1));
}

static int refuse_ambiguous(lua_State *L, const search *s) {
    lua_pushfstring(L, "two processes with pid %I are alive (%s and %s): give the entry of processes() that you mean",
                    (LUAI_UACINT)s->pid, s->best.path, s->rival);
    return ct__lua_refuse(L, CT_EINVAL, NULL, lua_tostring(L, -1));
}

/* Opens what was found unusable once more, to learn why. */
static int refuse_unusable(lua_State *L, const search *s) {
    ct_process process;
    ct_view *view;
    int status = ct_view_open(s->unusable, &view, &process);
    if (status == CT_OK) ct_view_close(view);
    if (status == CT_OK || status == CT_ENOENT) return refuse_ended(L, s->pid);
    return ct__lua_refuse(L, status, s->unusable, process.reason);
}

/* attach(pid or entry of processes() [, directory]) */
int ct__lua_attach(lua_State *L) {
    search s = {0};
    lua_settop(L, DIRECTORY);
    check_process(L, &s);
    ct__lua_views *views = ct__lua_new_view(L);
    int view = lua_gettop(L);
    ct__lua_box *listing = ct__lua_open_listing(L, DIRECTORY);
    if (listing == NULL) return 3;
    find_segments(&s, views, listing->content);
    ct__lua_empty_box(listing);
    if (s.rival[0] != '\0' || s.refused != CT_OK) ct__lua_close_views(views);
    if (s.rival[0] != '\0') return refuse_ambiguous(L, &s);
    if (s.refused != CT_OK) return ct__lua_refuse(L, s.refused, s.best.path, s.reason);
    if (!s.found && s.unusable[0] != '\0') return refuse_unusable(L, &s);
    if (views->count == 0) return refuse_ended(L, s.pid);
    lua_settop(L, view);
    return 1;
}
