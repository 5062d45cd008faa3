/* SPDX-License-Identifier: MIT
 *
 * select.c: what a handle selects, by its patterns, and what belongs to Lua itself, which is measured only if it is
 * asked for by name.
 */
#include "instrument.h"

#include <string.h>

static int is_among(const char *const *names, const char *name) {
    for (; *names != NULL; names++)
        if (strcmp(*names, name) == 0) return 1;
    return 0;
}

int ct__lua_is_standard(const char *name) {
    static const char *const names[] = {"_G",      "coroutine", "debug", "io",   "math", "os",
                                        "package", "string",    "table", "utf8", NULL};
    return is_among(names, name);
}

int ct__lua_is_basic(const char *name) {
    static const char *const names[] = {"assert",   "collectgarbage", "dofile",   "error",        "getmetatable",
                                        "ipairs",   "load",           "loadfile", "next",         "pairs",
                                        "pcall",    "print",          "rawequal", "rawget",       "rawlen",
                                        "rawset",   "require",        "select",   "setmetatable", "tonumber",
                                        "tostring", "type",           "warn",     "xpcall",       NULL};
    return is_among(names, name);
}

/* Compares the text of a pattern before its first wildcard with "name." */
static int may_reach(const ct_members_pattern *pattern, const char *name, int by_name) {
    size_t length = strlen(name), matched = 0;
    for (size_t i = 0; i < pattern->body_length; i++) {
        char c = pattern->body[i];
        if (c == '*' || c == '?') return !by_name;
        if (c == '\\') c = pattern->body[++i];
        if (matched == length) return c == '.';
        if (c != name[matched++]) return 0;
    }
    return matched == length;
}

int ct__lua_may_select(const ct_members *members, const char *name, int by_name) {
    size_t count = members != NULL ? ct_members_count(members) : 0;
    for (size_t i = 0; i < count; i++) {
        const ct_members_pattern *pattern = ct_members_at(members, i);
        if (pattern->problem != NULL) continue;
        if (pattern->exclude ? i == 0 && !by_name : may_reach(pattern, name, by_name)) return 1;
    }
    return 0;
}

int ct__lua_selects(const ct__lua_handle *handle, const char *member) {
    if (handle->members == NULL) return !handle->modules;
    return ct_members_selects(handle->members, member, strlen(member));
}
