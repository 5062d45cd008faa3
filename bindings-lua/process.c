/* SPDX-License-Identifier: MIT
 *
 * process.c: codetimer.processes and reap: which processes publish counters, and what is left of those that ended.
 *
 * Every file in the folder has an entry, also one that cannot be read: that entry says why, and what such a file does
 * not tell is absent.
 */
#include "live.h"

#include <string.h>

#define BOX_TYPE "codetimer.Box"

/* ---- boxes ---- */

void ct__lua_empty_box(ct__lua_box *box) {
    if (box->content != NULL) box->release(box->content);
    box->content = NULL;
}

static int box_gc(lua_State *L) {
    ct__lua_empty_box(luaL_checkudata(L, 1, BOX_TYPE));
    return 0;
}

ct__lua_box *ct__lua_new_box(lua_State *L, void (*release)(void *content)) {
    ct__lua_box *box = lua_newuserdatauv(L, sizeof *box, 0);
    *box = (ct__lua_box){.release = release};
    luaL_setmetatable(L, BOX_TYPE);
    return box;
}

/* ---- arguments and refusals ---- */

const char *ct__lua_check_path(lua_State *L, int arg, const char *what) {
    size_t length;
    if (lua_type(L, arg) != LUA_TSTRING)
        luaL_argerror(L, arg, lua_pushfstring(L, "%s must be a string, got %s", what, ct__lua_describe(L, arg)));
    const char *path = lua_tolstring(L, arg, &length);
    if (strlen(path) != length) luaL_argerror(L, arg, lua_pushfstring(L, "%s must not contain a NUL byte", what));
    return path;
}

int ct__lua_refuse(lua_State *L, int status, const char *subject, const char *message) {
    luaL_pushfail(L);
    lua_pushfstring(L, "%s%s%s", subject != NULL ? subject : "", subject != NULL ? ": " : "", message);
    lua_pushstring(L, ct_status_name(status));
    return 3;
}

static int refuse_folder(lua_State *L, int status, const char *directory) {
    const char *message = ct_status_text(status);
    if (status == CT_ENOENT) message = "there is no such folder";
    if (status == CT_EINVAL) message = "its name is too long";
    if (status == CT_EPERM) message = "the folder cannot be read";
    if (directory == NULL && status == CT_EPERM)
        message =
            "the folder for live counters must be your own and writable by you alone; set CODETIMER_DIR to another";
    if (directory == NULL && status == CT_ENOTSUP)
        message = "there is no folder for live counters: /dev/shm cannot be written; set CODETIMER_DIR";
    return ct__lua_refuse(L, status, directory, message);
}

/* ---- listings ---- */

static void close_listing(void *listing) { ct_listing_close(listing); }

ct__lua_box *ct__lua_open_listing(lua_State *L, int arg) {
    const char *directory = lua_isnoneornil(L, arg) ? NULL : ct__lua_check_path(L, arg, "directory");
    ct__lua_box *box = ct__lua_new_box(L, close_listing);
    ct_listing *listing;
    int status = ct_listing_open(directory, &listing);
    if (status == CT_OK) {
        box->content = listing;
        return box;
    }
    refuse_folder(L, status, directory);
    return NULL;
}

/* ---- processes ---- */

/* What the core leaves empty is not known, hence absent. */
static void set_known(lua_State *L, const char *key, const char *text) {
    if (text[0] != '\0') ct__lua_set_text(L, key, text);
}

static void set_facts(lua_State *L, const ct_process *process) {
    ct__lua_set_integer(L, "pid", (uint64_t)process->pid);
    ct__lua_set_integer(L, "start_time", process->start_time);
    ct__lua_set_integer(L, "uid", process->uid);
    set_known(L, "program", process->program);
    set_known(L, "host", process->host);
    set_known(L, "clock", process->clock);
    ct__lua_set_integer(L, "counters", process->counters);
    ct__lua_set_integer(L, "refused", process->refused);
    set_known(L, "last_refused", process->last_refused);
    ct__lua_set_integer(L, "heartbeat_age_ns", process->heartbeat_age_ns);
}

void ct__lua_push_process(lua_State *L, const ct_process *process) {
    static const char *const states[] = {"live", "dead", "unusable"};
    lua_createtable(L, 0, 13);
    ct__lua_set_text(L, "path", process->path);
    ct__lua_set_text(L, "state", states[process->state]);
    if (process->state != CT_SEGMENT_UNUSABLE) set_facts(L, process);
    set_known(L, "reason", process->reason);
}

/* processes([directory]) */
int ct__lua_processes(lua_State *L) {
    ct_process process;
    ct__lua_box *box = ct__lua_open_listing(L, 1);
    if (box == NULL) return 3;
    lua_newtable(L);
    for (lua_Integer i = 1; ct_listing_next(box->content, &process); i++) {
        ct__lua_push_process(L, &process);
        lua_rawseti(L, -2, i);
    }
    ct__lua_empty_box(box);
    return 1;
}

/* segment_info() */
int ct__lua_segment_info(lua_State *L) {
    ct_segment segment;
    ct_segment_info(&segment);
    lua_createtable(L, 0, 3);
    lua_pushboolean(L, segment.published);
    lua_setfield(L, -2, "published");
    set_known(L, "path", segment.path);
    set_known(L, "reason", segment.reason);
    return 1;
}

/* reap(path) */
int ct__lua_reap(lua_State *L) {
    const char *path = ct__lua_check_path(L, 1, "path");
    int status = ct_segment_reap(path);
    if (status != CT_OK)
        return ct__lua_refuse(L, status, path,
                              status == CT_EPERM    ? "its process lives, or it is not yours"
                              : status == CT_EINVAL ? "it is not a segment"
                              : status == CT_ENOENT ? "there is no such segment"
                                                    : ct_status_text(status));
    lua_pushboolean(L, 1);
    return 1;
}

void ct__lua_live_open(lua_State *L) {
    static const luaL_Reg functions[] = {{"__gc", box_gc}, {NULL, NULL}};
    ct__lua_new_type(L, BOX_TYPE, functions);
    ct__lua_view_open(L);
    ct__lua_settings_open(L);
}
