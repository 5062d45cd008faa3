/* SPDX-License-Identifier: MIT
 *
 * program.c: measure_program, a whole program that knows nothing of codetimer, and the report at its end. codetimer-lua
 * calls it before the script begins.
 *
 * The report is made by an exit handler: so it comes also after os.exit, which closes no Lua state, and it asks the
 * core alone. There is one such handler in a process, hence the one C variable of the binding. A child that the program
 * forks has it too.
 */
#include "instrument.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The members list that counts where there is none in force, or NULL: no report was asked for. */
static char *reported;

enum { STDERR_DESCRIPTOR = 2 };

/* ---- the report ---- */

static void print_table(void) {
    ct_report_options options = {.size = sizeof options,
                                 .color = ct_report_color(ct_is_terminal(STDERR_DESCRIPTOR)),
                                 .ascii = ct_report_ascii()};
    size_t size = ct_report_counters(&options, NULL, 0) + 1;
    char *text = malloc(size);
    if (text == NULL) return;
    ct_report_counters(&options, text, size);
    fputs(text, stderr);
    free(text);
}

static int was_called(ct_writer *writer, const char *key) {
    ct_counter *counter;
    ct_sample sample;
    if (ct_counter_find(writer, key, &counter) != CT_OK) return 0;
    ct_counter_sample(counter, &sample);
    ct_counter_close(counter);
    return sample.calls > 0;
}

/* Whether the pattern matches the counter, and that has calls. */
static int matches(ct_writer *writer, uint32_t index, const ct_members_pattern *pattern) {
    size_t length = ct_counters_key(index, NULL, 0);
    char *key = length > 0 ? malloc(length + 1) : NULL;
    if (key == NULL) return 0;
    int found = 0;
    if (ct_counters_key(index, key, length + 1) == length) {
        const char *member = strchr(key, '/') + 1;
        found = ct_members_pattern_matches(pattern, member, strlen(member)) && was_called(writer, key);
    }
    free(key);
    return found;
}

static int matches_any(ct_writer *writer, const ct_members_pattern *pattern) {
    uint32_t end = ct_counters_end();
    for (uint32_t i = 0; i < end; i++)
        if (matches(writer, i, pattern)) return 1;
    return 0;
}

static void print_unmatched(ct_writer *writer, const ct_members *members) {
    int unmatched = 0;
    for (size_t i = 0; i < ct_members_count(members); i++) {
        const ct_members_pattern *pattern = ct_members_at(members, i);
        if (pattern->problem != NULL || pattern->exclude || matches_any(writer, pattern)) continue;
        fprintf(stderr, "codetimer: pattern '%.*s' matched no function that was called\n", (int)pattern->length,
                pattern->text);
        unmatched = 1;
    }
    if (unmatched) fputs("codetimer: local functions and functions of no table are out of reach in Lua\n", stderr);
}

/* The caller frees it. NULL: there is no memory. */
static char *copy_list(void) {
    for (size_t size = 1024, length;; size = length + 1) {
        char *text = malloc(size);
        if (text == NULL) return NULL;
        int status = ct_members_get(text, size, &length);
        if (status == CT_OK && length < size) return text;
        if (status != CT_OK) length = strlen(reported);
        if (status != CT_OK && length < size) return memcpy(text, reported, length + 1);
        free(text);
    }
}

/* Where the file stands that was to bring the list, if it cannot be used. */
static void print_problem(const char *before) {
    ct_config config;
    ct_config_info(&config);
    if (config.state != CT_CONFIG_MISSING && config.state != CT_CONFIG_REFUSED) return;
    fprintf(stderr, "%s: file %s: %s\n", before, config.path, config.reason);
}

static void print_report(void) {
    ct_writer *writer;
    ct_members *members;
    char *list = copy_list();
    print_table();
    print_problem("codetimer");
    if (list != NULL && ct_writer_open(NULL, &writer) == CT_OK) {
        if (ct_members_parse(list, strlen(list), &members) == CT_OK) {
            print_unmatched(writer, members);
            ct_members_free(members);
        }
        ct_writer_close(writer);
    }
    free(list);
    fflush(stderr);
}

static void report_at_exit(const char *otherwise) {
    if (reported != NULL) return;
    size_t size = strlen(otherwise) + 1;
    reported = malloc(size);
    if (reported == NULL) return;
    memcpy(reported, otherwise, size);
    atexit(print_report);
}

/* ---- measure_program{measure=, config=, report=} ---- */

enum { OPTIONS = 1, MEASURE, CONFIG, REPORT, OWN };

/* Pushes the patterns of the script's own functions. */
static void push_own(lua_State *L) {
    luaL_Buffer buffer;
    const char *script = ct__lua_push_script(L);
    luaL_buffinit(L, &buffer);
    for (; *script != '\0'; script++) {
        if (strchr(";!#*?\\", *script) != NULL) luaL_addchar(&buffer, '\\');
        luaL_addchar(&buffer, *script);
    }
    luaL_addstring(&buffer, ".*");
    luaL_pushresult(&buffer);
    lua_replace(L, OWN);
    lua_settop(L, OWN);
}

static void check_config(lua_State *L) {
    if (lua_isnil(L, CONFIG)) return;
    if (lua_type(L, CONFIG) != LUA_TSTRING || strlen(lua_tostring(L, CONFIG)) != lua_rawlen(L, CONFIG))
        luaL_argerror(L, OPTIONS,
                      lua_pushfstring(L, "config must be the name of a file, got %s", ct__lua_describe(L, CONFIG)));
}

static int is_given(const char *variable) {
    const char *value = getenv(variable);
    return value != NULL && *value != '\0';
}

static int set_sources(lua_State *L) {
    size_t length;
    const char *text = lua_tolstring(L, MEASURE, &length);
    int status = text != NULL ? ct_members_set(text, length) : CT_OK;
    if (status == CT_OK && !lua_isnil(L, CONFIG)) status = ct_config_file(lua_tostring(L, CONFIG));
    return status;
}

int ct__lua_measure_program(lua_State *L) {
    static const char *const names[] = {"measure", "config", "report", NULL};
    lua_settop(L, OPTIONS);
    if (!ct__lua_check_options(L, OPTIONS, names)) {
        lua_newtable(L);
        lua_replace(L, OPTIONS);
    }
    for (const char *const *name = names; *name != NULL; name++) lua_getfield(L, OPTIONS, *name);
    lua_pushnil(L);
    check_config(L);
    size_t length; /* a wrong pattern would be skipped later; now there is somebody to tell it to */
    const char *text = ct__lua_check_members(L, OPTIONS, MEASURE, 1, &length);
    if (ct__lua_push_wrong(L, text, length)) return ct__lua_refuse(L, CT_EINVAL, NULL, lua_tostring(L, -1));
    push_own(L);
    int own = lua_isnil(L, MEASURE) && lua_isnil(L, CONFIG) && !is_given("CODETIMER_MEASURE") &&
              !is_given("CODETIMER_CONFIG");
    if (lua_toboolean(L, REPORT)) report_at_exit(own ? lua_tostring(L, OWN) : "");
    int status = set_sources(L);
    if (status != CT_OK) return ct__lua_fail(L, status);
    print_problem("codetimer-lua: the members list stays, its file cannot be used");
    lua_pushcfunction(L, ct__lua_instrument);
    lua_pushvalue(L, OWN);
    if (!own) {
        lua_pushnil(L);
        lua_replace(L, -2);
    }
    lua_call(L, 1, 1);
    return 1;
}
