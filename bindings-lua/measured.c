/* SPDX-License-Identifier: MIT
 *
 * measured.c: measured(fn), the wrapper that counts.
 *
 * The wrapper is a Lua function, so fn may yield, recurse deeply, and be seen in tracebacks. It has two upvalues: its
 * gate (gate.c), which begins a call and returns what ends it, and fn. A wrapper that is retired has a gate that does
 * nothing, so what still holds it runs fn unmeasured.
 */
#include "counters.h"

#include <string.h>

static const char factories_key = 0; /* what makes wrappers: a table by number of parameters + 1; 0: any number */

enum { PARAMETERS_MOST = 16 };         /* of functions whose wrapper has just as many */
enum { GATE_UPVALUE = 1, FN_UPVALUE }; /* of the wrapper, in the order of their first use */

/* What is it to us: 0, CT__LUA_GATE or CT__LUA_GATE_RETIRED? If it is a wrapper, pushes the original. */
int ct__lua_push_original(lua_State *L, int index) {
    if (!lua_isfunction(L, index) || lua_iscfunction(L, index)) return 0;
    if (lua_getupvalue(L, index, GATE_UPVALUE) == NULL) return 0;
    int gate = ct__lua_is_gate(L, -1);
    lua_pop(L, 1);
    return gate != 0 && lua_getupvalue(L, index, FN_UPVALUE) != NULL ? gate : 0;
}

void ct__lua_retire(lua_State *L, int index) {
    ct__lua_push_retired_gate(L);
    lua_setupvalue(L, index, GATE_UPVALUE);
}

/* A function of Lua with so many parameters and no more needs just those from its wrapper, which is the faster way. */
static int count_parameters(lua_State *L, int fn) {
    lua_Debug about;
    if (!lua_isfunction(L, fn)) return -1;
    lua_pushvalue(L, fn);
    lua_getinfo(L, ">u", &about);
    return about.isvararg || about.nparams > PARAMETERS_MOST ? -1 : about.nparams;
}

/* "a, b, c", or "..." */
static void add_parameters(luaL_Buffer *code, int parameters) {
    if (parameters < 0) luaL_addstring(code, "...");
    for (int i = 0; i < parameters; i++) {
        if (i > 0) luaL_addstring(code, ", ");
        luaL_addchar(code, (char)('a' + i));
    }
}

static void compile_factory(lua_State *L, int parameters) {
    luaL_Buffer buffer;
    size_t length;
    luaL_buffinit(L, &buffer);
    luaL_addstring(&buffer, "local gate, fn = ...\nreturn function(");
    add_parameters(&buffer, parameters);
    luaL_addstring(&buffer, ")\n    local token <close> = gate()\n    return fn(");
    add_parameters(&buffer, parameters);
    luaL_addstring(&buffer, ")\nend\n");
    luaL_pushresult(&buffer);
    const char *code = lua_tolstring(L, -1, &length);
    if (luaL_loadbufferx(L, code, length, "=codetimer", "t") != LUA_OK) lua_error(L);
    lua_remove(L, -2);
}

/* Pushes the function (gate, fn) that makes a wrapper with so many parameters; it is compiled when first asked for. */
static void push_factory(lua_State *L, int parameters) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &factories_key);
    if (lua_rawgeti(L, -1, parameters + 1) == LUA_TNIL) {
        lua_pop(L, 1);
        compile_factory(L, parameters);
        lua_pushvalue(L, -1);
        lua_rawseti(L, -3, parameters + 1);
    }
    lua_remove(L, -2);
}

enum { FN = 1, NAME, CATEGORY, HELP };

int ct__lua_wrap(lua_State *L) {
    ct__lua_names names;
    if (lua_isnil(L, NAME)) {
        ct__lua_push_default_name(L, FN);
        lua_replace(L, NAME);
    }
    ct__lua_get_names(L, NAME, &names);
    int status = ct__lua_open_counter(L, &names);
    if (status < 0) {
        if (status != CT_EINVAL) ct__lua_trace_refused(L, status, names.member);
        lua_pushinteger(L, status);
        return 1;
    }
    int counter = lua_gettop(L);
    ct__lua_trace_opened(L, status, ct__lua_check_counter(L, counter)->handle);
    push_factory(L, count_parameters(L, FN));
    ct__lua_push_gate(L, counter);
    lua_pushvalue(L, FN);
    lua_call(L, 2, 1);
    return 1;
}

/* Brings (name, fn) into the order (fn, name); returns the number of the argument that is the name. */
static int order_arguments(lua_State *L) {
    int name_first = lua_type(L, FN) == LUA_TSTRING;
    lua_settop(L, CATEGORY);
    if (!name_first) return 2;
    lua_pushvalue(L, FN);
    lua_copy(L, NAME, FN);
    lua_replace(L, NAME);
    return 1;
}

/* tell_kept(fn, name, category): what is measured already keeps the name that it has, which nobody would notice without
 * a line in the trace. */
static int tell_kept(lua_State *L) {
    if (lua_getupvalue(L, FN, GATE_UPVALUE) == NULL || !ct__lua_push_gate_key(L, -1)) return 0;
    const char *key = lua_tostring(L, -1), *member = strchr(key, '/') + 1;
    const char *wanted = lua_isnil(L, NAME) ? member : lua_tostring(L, NAME);
    if (!lua_isnil(L, CATEGORY)) wanted = lua_pushfstring(L, "%s/%s", lua_tostring(L, CATEGORY), wanted);
    if (strcmp(wanted, lua_isnil(L, CATEGORY) ? member : key) == 0) return 0;
    ct__lua_trace_text(L, "refused", wanted, lua_pushfstring(L, "it is measured already, as %s, and stays so", key));
    return 0;
}

/* A measured function as it is. */
static int return_measured(lua_State *L) {
    lua_pushcfunction(L, tell_kept);
    for (int i = FN; i < HELP; i++) lua_pushvalue(L, i);
    if (lua_pcall(L, HELP - FN, 0, 0) != LUA_OK) lua_pop(L, 1); /* no memory to tell it */
    lua_pushvalue(L, FN);
    return 1;
}

int ct__lua_measured(lua_State *L) {
    int name_arg = order_arguments(L);
    ct__lua_check_callable(L, name_arg == 1 ? 2 : 1, FN);
    ct__lua_check_names(L, name_arg, NAME);
    const int is_measured = ct__lua_push_original(L, FN);
    lua_settop(L, HELP);
    if (is_measured == CT__LUA_GATE) return return_measured(L);
    if (lua_isnil(L, NAME)) ct__lua_check_nameable(L, 1, FN);
    lua_pushcfunction(L, ct__lua_wrap);
    for (int i = FN; i <= HELP; i++) lua_pushvalue(L, i);
    int status = lua_pcall(L, HELP, 1, 0);
    if (status != LUA_OK && status != LUA_ERRMEM) return lua_error(L);
    if (status == LUA_OK && lua_isfunction(L, -1)) return 1;
    if (status == LUA_OK && lua_tointeger(L, -1) == CT_EINVAL)
        return ct__lua_refuse_name(L, name_arg, lua_tostring(L, NAME));
    if (status == LUA_ERRMEM) ct__lua_trace_refused(L, CT_ENOMEM, lua_tostring(L, NAME));
    lua_pushvalue(L, FN);
    return 1;
}

int ct__lua_unwrap(lua_State *L) {
    luaL_checkany(L, 1);
    if (!ct__lua_push_original(L, 1)) lua_pushvalue(L, 1);
    return 1;
}

void ct__lua_measured_open(lua_State *L) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &factories_key) == LUA_TNIL) {
        lua_createtable(L, PARAMETERS_MOST + 1, 1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &factories_key);
    }
    lua_settop(L, 0);
    ct__lua_gate_open(L);
}
