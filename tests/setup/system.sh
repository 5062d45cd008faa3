#!/bin/sh
# SPDX-License-Identifier: MIT
#
# system.sh GROUP...: sees to it that the tools of the named groups (base, lint, fuzz, valgrind, prometheus, socket) are
# on this machine.
#
# Each tool is probed by using it, so it does not matter where it came from. Only what is missing is installed, with
# apt-get, as root or through sudo without a password. Nothing is ever asked: where that is not possible, the command
# that would help is printed and the exit status is 1. With everything present nothing is run with privileges.
set -u
here=$(dirname "$0")
missing=

# need PACKAGES PROBE...: notes the packages if the probe fails.
need() {
    packages=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $packages"
}

has() { command -v "$1"; }

# links CODE FLAGS...: does this line of C compile and link?
links() {
    code=$1
    shift
    printf '%s\nint main(void) { return 0; }\n' "$code" | "${CC:-cc}" -x c - -o /dev/null "$@"
}

fuzzer_links() {
    echo 'int LLVMFuzzerTestOneInput(const char *data, unsigned long size) { return size > 0 && data[0] == 1; }' |
        clang -fsanitize=fuzzer -x c - -o /dev/null
}

lua_headers() { test -e "${LUA_INCDIR:-/nowhere}/lua.h" || pkg-config --exists lua5.4; }

need_base() {
    need "gcc libc6-dev" links '#include <stdio.h>'
    need pkg-config has pkg-config
    need lua5.4 has lua5.4
    need liblua5.4-dev lua_headers
    need lua-busted has busted
    need libcmocka-dev links '#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>' -lcmocka
    need "python3 python3-venv python3-dev" "$here/pythons.sh" --default
}

need_lint() {
    need gcc has gcc
    need clang has clang
    need clang-tidy has clang-tidy
    need gcc-mingw-w64-x86-64 has x86_64-w64-mingw32-gcc
    need lua-check has luacheck
}

need_fuzz() {
    need "clang libclang-rt-dev" fuzzer_links
}

# A service, so only continuous integration installs it; elsewhere its tests say that they are skipped.
need_prometheus() { need prometheus has prometheus; }

# With it the workers of examples/workers.lua sleep better; they can do without.
need_socket() { need lua-socket lua5.4 -e 'require "socket"'; }

need_valgrind() { need "valgrind libc6-dbg" has valgrind; }

probe() {
    missing=
    for group in "$@"; do "need_$group"; done
}

# as_root COMMAND...: runs it as root, or fails without asking.
as_root() {
    if [ "$(id -u)" = 0 ]; then env DEBIAN_FRONTEND=noninteractive "$@" </dev/null
    else sudo -n env DEBIAN_FRONTEND=noninteractive "$@" </dev/null; fi
}

give_up() {
    echo "set-up: $1" >&2
    echo "set-up: missing on this machine:$missing" >&2
    echo "set-up: install that as root, for example: apt-get install$missing" >&2
    exit 1
}

install_missing() {
    # The lists are fetched first: on a fresh machine there are none, and old ones name files that are gone. One broken
    # foreign source must not stop us, so only the installation itself decides.
    as_root apt-get -q update >>"$log" 2>&1 || echo "set-up: apt-get update had errors; trying all the same" >&2
    # shellcheck disable=SC2086
    as_root apt-get -q -y --no-install-recommends -o Dpkg::Use-Pty=0 install $missing >>"$log" 2>&1
}

probe "$@"
[ -n "$missing" ] || exit 0
has apt-get >/dev/null || give_up "this system has no apt-get, so nothing was installed"
[ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null || give_up "not root, and no sudo without a password: nothing was done"
log=build/set-up.log
mkdir -p build && : >"$log"
echo "set-up: installing$missing (log in $log)"
install_missing || { tail -n 20 "$log" && give_up "apt-get could not install it (see above)"; }
probe "$@"
[ -z "$missing" ] || give_up "still missing after the installation"
