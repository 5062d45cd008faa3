/* SPDX-License-Identifier: MIT
 *
 * host.c: a host program for tests: host SCRIPT runs a Lua script in a state of its own. The script finds
 *
 *     allocations()     how many blocks the state's allocator has handed out so far
 *     counts()          blocks handed out, resized and taken back so far, and bytes of the new and by which others grew
 *     allocator()       which allocator is in place now, as a string
 *     cover()           puts a hook of the host above it, which passes everything on; uncover() takes that out again
 *     fail_after(k)     k more blocks, then none is handed out until fail_after(nil)
 *     short(k, fn)      pcall(fn) with only k blocks; the limit ends with fn
 *     other(code)       runs code in a second state, on the same thread; returns its string result
 *     start(code)       runs code in another state on another thread
 *     join()            waits for that thread; returns its string result
 *
 * The state is closed at the end; the exit status is 0 if the script raised no error.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lua.h>
#include <lauxlib.h>
#include <lualib.h>

typedef struct memory {
    long long allocations, reallocations, frees, bytes;
    long long left; /* blocks that may still be handed out, or -1: any number */
} memory;

typedef struct job {
    pthread_t thread;
    char code[8192];
    char answer[8192];
} job;

typedef struct cover {
    lua_Alloc below;
    void *below_user;
} cover;

static memory script_memory = {.left = -1};
static cover script_cover;
static job worker;

static void *allocate(void *user, void *block, size_t old_size, size_t size) {
    memory *m = user;
    if (size == 0) {
        if (block != NULL) m->frees++;
        free(block);
        return NULL;
    }
    if (block == NULL) m->allocations++;
    if (block != NULL) m->reallocations++;
    if (block == NULL || size > old_size) m->bytes += (long long)(block == NULL ? size : size - old_size);
    if (m->left == 0 && (block == NULL || size > old_size)) return NULL;
    if (m->left > 0 && block == NULL) m->left--;
    return realloc(block, size);
}

static int count_allocations(lua_State *L) {
    lua_pushinteger(L, script_memory.allocations);
    return 1;
}

static int push_counts(lua_State *L) {
    const memory m = script_memory;
    lua_pushinteger(L, m.allocations);
    lua_pushinteger(L, m.reallocations);
    lua_pushinteger(L, m.frees);
    lua_pushinteger(L, m.bytes);
    return 4;
}

static int name_allocator(lua_State *L) {
    char text[64];
    void *user;
    lua_Alloc allocator = lua_getallocf(L, &user);
    snprintf(text, sizeof text, "%zx %p", (size_t)allocator, user);
    lua_pushstring(L, text);
    return 1;
}

static void *pass_on(void *user, void *block, size_t old_size, size_t size) {
    cover *c = user;
    return c->below(c->below_user, block, old_size, size);
}

static int put_cover(lua_State *L) {
    script_cover.below = lua_getallocf(L, &script_cover.below_user);
    lua_setallocf(L, pass_on, &script_cover);
    return 0;
}

static int take_cover(lua_State *L) {
    lua_setallocf(L, script_cover.below, script_cover.below_user);
    return 0;
}

static int fail_after(lua_State *L) {
    script_memory.left = lua_isnoneornil(L, 1) ? -1 : luaL_checkinteger(L, 1);
    return 0;
}

static int call_short(lua_State *L) {
    script_memory.left = luaL_checkinteger(L, 1);
    lua_settop(L, 2);
    int status = lua_pcall(L, 0, 0, 0);
    script_memory.left = -1;
    lua_pushboolean(L, status == LUA_OK);
    if (status != LUA_OK) lua_insert(L, -2);
    return status == LUA_OK ? 1 : 2;
}

/* The answer of code in a state of its own, or its error. */
static void run_code(const char *code, char *answer, size_t size) {
    lua_State *other = luaL_newstate();
    luaL_openlibs(other);
    if (luaL_loadstring(other, code) == LUA_OK) lua_pcall(other, 0, 1, 0);
    const char *text = lua_tostring(other, -1);
    snprintf(answer, size, "%s", text != NULL ? text : "no answer");
    lua_close(other);
}

static int run_other(lua_State *L) {
    char answer[8192];
    run_code(luaL_checkstring(L, 1), answer, sizeof answer);
    lua_pushstring(L, answer);
    return 1;
}

static void *run_worker(void *arg) {
    job *w = arg;
    run_code(w->code, w->answer, sizeof w->answer);
    return NULL;
}

static int start_worker(lua_State *L) {
    snprintf(worker.code, sizeof worker.code, "%s", luaL_checkstring(L, 1));
    if (pthread_create(&worker.thread, NULL, run_worker, &worker) != 0) return luaL_error(L, "no thread");
    return 0;
}

static int join_worker(lua_State *L) {
    pthread_join(worker.thread, NULL);
    lua_pushstring(L, worker.answer);
    return 1;
}

int main(int argc, char **argv) {
    lua_State *L = lua_newstate(allocate, &script_memory);
    if (argc != 2 || L == NULL) return 2;
    luaL_openlibs(L);
    lua_register(L, "allocations", count_allocations);
    lua_register(L, "counts", push_counts);
    lua_register(L, "allocator", name_allocator);
    lua_register(L, "cover", put_cover);
    lua_register(L, "uncover", take_cover);
    lua_register(L, "fail_after", fail_after);
    lua_register(L, "short", call_short);
    lua_register(L, "other", run_other);
    lua_register(L, "start", start_worker);
    lua_register(L, "join", join_worker);
    int failed = luaL_dofile(L, argv[1]);
    script_memory.left = -1;
    if (failed) fprintf(stderr, "host: %s\n", lua_tostring(L, -1));
    lua_close(L);
    return failed;
}
