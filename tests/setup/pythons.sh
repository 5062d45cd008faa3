#!/bin/sh
# SPDX-License-Identifier: MIT
#
# pythons.sh: finds the Python interpreters to build for. Prints one line each, "VERSION<tab>PATH", the default first.
# pythons.sh --default: only the default; exit status 1 if this machine has none that is complete.
#
# Complete means: CPython 3.10 or later that can make a virtual environment and has its C headers. Looked for are
# python3.10 to python3.13 and python3 on PATH and under ~/.pyenv/versions. The default is 3.11 where it is there, else
# python3, else the newest. What is found incomplete, or not at all, is reported on standard error as skipped.
set -u
tab=$(printf '\t')

# candidates VERSION: every command that may be it, best first.
candidates() {
    (
        IFS=:
        for folder in $PATH; do printf '%s\n' "$folder/python$1" "$folder/python3"; done
    )
    for folder in "${HOME:-/nonexistent}/.pyenv/versions/$1".*; do printf '%s\n' "$folder/bin/python$1"; done
}

probe='
import ensurepip, os, platform, sys, sysconfig, venv
assert platform.python_implementation() == "CPython" and sys.version_info[:2] == tuple(map(int, sys.argv[1].split(".")))
assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
print(os.path.realpath(sys.executable))'

# find VERSION: prints the first complete one.
find() {
    candidates "$1" | while read -r candidate; do
        [ -x "$candidate" ] || continue
        path=$("$candidate" -I -c "$probe" "$1" 2>/dev/null) && printf '%s\n' "$path" && break
    done
}

system_version() {
    python3 -I -c 'import sys; sys.version_info >= (3, 10) and print("%d.%d" % sys.version_info[:2])' 2>/dev/null
}

default=
for version in 3.11 "$(system_version)" 3.13 3.12 3.10; do
    [ -n "$version" ] || continue
    path=$(find "$version")
    [ -n "$path" ] && default=$version && break
done
[ -n "$default" ] || exit 1
printf '%s\t%s\n' "$default" "$path"
[ "${1:-}" != --default ] || exit 0
for version in 3.10 3.11 3.12 3.13; do
    [ "$version" != "$default" ] || continue
    path=$(find "$version")
    if [ -n "$path" ]; then printf '%s\n' "$version$tab$path"
    else echo "set-up: python$version skipped: not on PATH or under ~/.pyenv/versions with venv and C headers" >&2; fi
done
