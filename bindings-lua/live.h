/* SPDX-License-Identifier: MIT
 *
 * live.h: what the files about live counters offer each other: listing, reading and switching processes, and the
 * members list of this one.
 *
 * What the core opens has to be closed also when Lua raises "not enough memory" in between; so it lies in a userdata as
 * soon as it is open.
 */
#ifndef CT_LUA_LIVE_H
#define CT_LUA_LIVE_H

#include "counters.h"

/* ---- process.c ---- */

void ct__lua_live_open(lua_State *L);

/* Pushes a box: what is put into it is released by "release" when the box is collected, or emptied. */
typedef struct ct__lua_box {
    void *content; /* or NULL */
    void (*release)(void *content);
} ct__lua_box;
ct__lua_box *ct__lua_new_box(lua_State *L, void (*release)(void *content));
void ct__lua_empty_box(ct__lua_box *box);

/* Argument "arg" must be a string without a NUL byte. */
const char *ct__lua_check_path(lua_State *L, int arg, const char *what);

/* Pushes nil, "subject: message", or the message alone if there is no subject, and the code. Returns 3. */
int ct__lua_refuse(lua_State *L, int status, const char *subject, const char *message);

/* Pushes a box with the listing of the folder that is argument "arg", or nil. Returns NULL after pushing a refusal. */
ct__lua_box *ct__lua_open_listing(lua_State *L, int arg);

void ct__lua_push_process(lua_State *L, const ct_process *process);

int ct__lua_processes(lua_State *L);
int ct__lua_reap(lua_State *L);
int ct__lua_segment_info(lua_State *L);

/* ---- attach.c ---- */

/* The open segments of a process: one for each core in it, of which there are seldom two. None: closed. */
enum { CT__LUA_VIEWS_MOST = 64 };
typedef struct ct__lua_views {
    int count;
    ct_view *views[CT__LUA_VIEWS_MOST];
} ct__lua_views;

int ct__lua_attach(lua_State *L);

/* ---- view.c ---- */

void ct__lua_view_open(lua_State *L);
/* Pushes a View that has no segment yet. */
ct__lua_views *ct__lua_new_view(lua_State *L);
void ct__lua_close_views(ct__lua_views *views);

/* ---- settings.c ---- */

enum { CT__LUA_MEMBERS_MOST = 65536 };

/* A text of at most 65,536 bytes, or, if "none" is 1, nil: returns NULL. */
const char *ct__lua_check_members(lua_State *L, int arg, int index, int none, size_t *length);

/* Pushes a members list, or nil if there is none. Pushes nothing unless the status is CT_OK. */
typedef int (*ct__lua_members_reader)(void *from, char *buffer, size_t size, size_t *length);
int ct__lua_push_members(lua_State *L, ct__lua_members_reader read, void *from);

/* Tells the trace function what is skipped of CODETIMER_MEASURE, the first time that it is called. Raises nothing. */
void ct__lua_trace_environment(lua_State *L);

/* Pushes a box that holds the list; NULL: there is none in it. */
ct_members *ct__lua_push_list(lua_State *L, const char *text, size_t length);

/* Where one of its patterns is wrong, pushes a sentence that tells it, below which others may lie, and returns 1. */
int ct__lua_push_wrong(lua_State *L, const char *text, size_t length);

/* Tells the trace function which patterns of a list are wrong. */
void ct__lua_trace_problems(lua_State *L, const char *text, size_t length);

void ct__lua_settings_open(lua_State *L);
int ct__lua_configure(lua_State *L);
int ct__lua_poll(lua_State *L);

/* ---- following.c: lists that come from a provider, and who wants to know of changes ---- */

void ct__lua_following_open(lua_State *L);

/* The value at "index" must be able to be a provider: an argument error if not. */
void ct__lua_check_provider(lua_State *L, int index);
/* nil: from now on there is none. */
void ct__lua_set_provider(lua_State *L, int index);
void ct__lua_push_provider(lua_State *L);
/* Pushes why it cannot be used, or nil. */
void ct__lua_push_provider_problem(lua_State *L);
/* What it says next is written in any case. */
void ct__lua_renew_provider(lua_State *L);

void ct__lua_add_callback(lua_State *L, int index);
/* Returns 1 if it was there. */
int ct__lua_remove_callback(lua_State *L, int index);

/* The rest is done within measured calls too, and raises nothing. */

/* Asks the provider for its list, if it may be another one. */
void ct__lua_ask_provider(lua_State *L);
/* Calls the callbacks, if they were not called since the list changed. */
void ct__lua_call_callbacks(lua_State *L, uint64_t changes, void (*push_settings)(lua_State *L));
/* Tells the trace function what has become of the file since the last time, and that there is another list. */
void ct__lua_tell_file(lua_State *L);
void ct__lua_tell_change(lua_State *L);

#endif
