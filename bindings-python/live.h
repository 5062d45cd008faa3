/* SPDX-License-Identifier: MIT
 *
 * live.h: what the files about live counters share: listing, reading and switching processes, and members lists.
 */
#ifndef CTPY_LIVE_H
#define CTPY_LIVE_H

#include "common.h"

/* ---- process.c: the named tuple codetimer.Process ---- */

int ctpy_process_add_types(PyObject *module, ctpy_state *state);
PyObject *ctpy_process_new(ctpy_state *state, const ct_process *process);
PyObject *ctpy_info_new(ctpy_state *state, const ct_view_counter *counter); /* a CounterInfo */

PyObject *ctpy_processes(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *ctpy_reap(PyObject *module, PyObject *path);
PyObject *ctpy_segment_info(PyObject *module, PyObject *ignored);

/* Raises what a status of the core means here: a subclass of OSError with "message" and "filename" (NULL: none), or
 * ValueError, or MemoryError. Returns NULL. */
PyObject *ctpy_raise(int status, const char *message, const char *filename);

/* Opens the listing of "directory" (a path, or None). Returns 0, or -1 with an exception. */
int ctpy_open_listing(PyObject *directory, ct_listing **listing);

/* ---- attach.c: which segments a process has ---- */

/* The views of the segments of a process, owned by who asked; released with PyMem_Free. */
typedef struct ctpy_views {
    ct_view **views;
    size_t count;
} ctpy_views;

void ctpy_close_views(ctpy_views *views);
PyObject *ctpy_attach(PyObject *module, PyObject *args, PyObject *kwargs);

/* ---- view.c: the type codetimer.View ---- */

extern PyType_Spec ctpy_view_spec;

/* A new View that owns the views (also on failure). */
PyObject *ctpy_view_new(ctpy_state *state, ctpy_views *views);

/* ---- members.c: the type codetimer.Members ---- */

extern PyType_Spec ctpy_members_spec;
int ctpy_members_add_types(PyObject *module, ctpy_state *state);

enum { CTPY_MEMBERS_MOST = 65536 };

/* The text of a members list: UTF-8, borrowed from "text"; NULL for None, which is allowed if "none". Returns 0, or -1
 * with TypeError or ValueError. */
int ctpy_parse_members(PyObject *text, int none, const char **utf8, Py_ssize_t *length);

/* Where one of its patterns is wrong: ValueError, with its position. */
int ctpy_check_patterns(const char *utf8, Py_ssize_t length);

/* A members list of the core as a str or None: "read" fills a buffer as ct_members_get does. */
typedef int (*ctpy_members_reader)(void *from, char *buffer, size_t size, size_t *length);
PyObject *ctpy_read_members(ctpy_members_reader read, void *from);

/* ---- settings.c: the type codetimer.Settings ---- */

extern PyType_Spec ctpy_settings_spec;
PyObject *ctpy_configure(PyObject *module, PyObject *args, PyObject *kwargs);

/* ---- following.c: lists that come from a file or a provider ---- */

/* Log what is skipped of a list; what has become of the file since the last time; and the first time that it is called,
 * both of CODETIMER_MEASURE and CODETIMER_CONFIG. Leave no exception. */
void ctpy_tell_problems(ctpy_state *state, const ct_members *members);
void ctpy_tell_file(ctpy_state *state);
void ctpy_tell_environment(ctpy_state *state);

/* Calls a function of codetimer.following with arguments as for Py_BuildValue (a tuple). "only_if_there": None where
 * the module was never needed. */
PyObject *ctpy_call_following(const char *function, int only_if_there, const char *format, ...);

/* A path as bytes. Returns 0, or -1 with TypeError or ValueError. */
int ctpy_convert_file(PyObject *file, PyObject **bytes);

/* From now on the list is followed in this file (None: in none), or asked of this provider (None: of none). Return 0,
 * or -1 with an exception. */
int ctpy_follow_file(ctpy_state *state, PyObject *file);
int ctpy_set_provider(PyObject *provider);

/* Has somebody look after the file that CODETIMER_CONFIG names. Leaves no exception. */
void ctpy_follow_environment(void);

/* _follow(), which polls and tells, and returns how often the list has changed; _tell_unmatched(); _provide(text),
 * which returns whether that is new. For codetimer.following. */
PyObject *ctpy_follow(PyObject *module, PyObject *ignored);
PyObject *ctpy_tell_unmatched(PyObject *module, PyObject *ignored);
PyObject *ctpy_provide(PyObject *module, PyObject *text);
PyObject *ctpy_is_main(PyObject *module, PyObject *ignored); /* _is_main(): no subinterpreter */

/* _soon(fn): calls fn() in the main thread, as soon as what it is in has come back to Python code; and again, until it
 * does not return False. Returns whether there was room for that. */
PyObject *ctpy_soon(PyObject *module, PyObject *fn);

#endif
