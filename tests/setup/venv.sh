#!/bin/sh
# SPDX-License-Identifier: MIT
#
# venv.sh FOLDER PYTHON REQUIREMENTS...: a virtual environment with these requirements files, made anew only when the
# interpreter, the place or a file has changed. pip is used as its user has configured it.
set -eu
folder=$1 python=$2
shift 2
stamp="$folder/.made-of"
wanted=$(echo "$PWD $folder $python" && cat "$@")
[ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ] || exit 0
echo "set-up: $folder with $python"
rm -rf "$folder"
"$python" -m venv "$folder"
for file in "$@"; do set -- "$@" -r "$file"; shift; done
"$folder/bin/python" -m pip --quiet --disable-pip-version-check --no-input install "$@" || {
    echo "set-up: pip could not install the Python tools named in $* (see above); is a package index reachable?" >&2
    exit 1
}
printf '%s\n' "$wanted" >"$stamp"
