#!/bin/sh
# SPDX-License-Identifier: MIT
#
# coverage.sh OBJECTS PERCENT: line coverage of core/*.c (without core/platform), from the gcov data of the C tests that
# link the fake platform. Prints a line per file; exit status 1 below PERCENT.
set -u
objects=$1 least=$2
find "$objects/fake/core" -name '*.gcda' | sort | while read -r data; do
    gcov -n "$data"
done 2>&1 | awk -v least="$least" '
    /^File / { file = $2; gsub(/\047/, "", file) }
    /^Lines executed:/ && file ~ /^core\/[a-z_]+\.c$/ {
        split($0, part, /[:%]| of /)
        printf "%6.2f %% of %4d lines  %s\n", part[2], part[4], file
        hit += part[2] * part[4] / 100; all += part[4]; file = ""
    }
    END {
        total = all ? 100 * hit / all : 0
        printf "%6.2f %% of %4d lines  core (at least %s %% wanted)\n", total, all, least
        exit !(total >= least)
    }'
