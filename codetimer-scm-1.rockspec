-- SPDX-License-Identifier: MIT
-- For "luarocks make" in a checkout: it builds what lies here and fetches nothing. The version is in core/codetimer.h.
rockspec_format = "3.0"
package = "codetimer"
version = "scm-1"
source = { url = "git+file://." }
description = {
    summary = "How long code takes, and what the CPU and the garbage collector did meanwhile",
    detailed = [[
        Times n calls of a function as one run: elapsed time, time per call with its spread, CPU cycles of the thread,
        and exact counts of minor and major collections.
    ]],
    license = "MIT",
    labels = { "benchmark", "profiling", "performance" },
}
dependencies = { "lua >= 5.4" }
build = {
    -- Make, because the module must be linked with -z nodelete, which the builtin build cannot pass.
    type = "make",
    build_target = "build-lua",
    install_target = "install-lua",
    build_variables = {
        CC = "$(CC)",
        CFLAGS = "$(CFLAGS)",
        LIBFLAG = "$(LIBFLAG)",
        LUA_INCDIR = "$(LUA_INCDIR)",
        WERROR = "",
        D = "build/rock",
    },
    install_variables = {
        CC = "$(CC)",
        CFLAGS = "$(CFLAGS)",
        LIBFLAG = "$(LIBFLAG)",
        LUA_INCDIR = "$(LUA_INCDIR)",
        INST_LIBDIR = "$(LIBDIR)",
        INST_LUADIR = "$(LUADIR)",
        INST_BINDIR = "$(BINDIR)",
        WERROR = "",
        D = "build/rock",
    },
}
-- codetimer-lua is a program for sh; a wrapper would take it for one in Lua.
deploy = { wrap_bin_scripts = false }
