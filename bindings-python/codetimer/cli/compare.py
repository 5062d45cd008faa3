# SPDX-License-Identifier: MIT
"""codetimer compare: which of several statements is faster; or what result files say, beside each other."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import codetimer
from codetimer import Comparison
from codetimer.cli import INTERRUPTED, NOTHING, OK, UsageError, tell
from codetimer.cli.native import print_report
from codetimer.cli.options import add_options, lines_of, long_options, prepared
from codetimer.cli.progress import Progress
from codetimer.cli.saving import check_target, export, print_export, save
from codetimer.cli.statements import Broken, Nowhere, Source, empty_turn, name_of, tell_traceback

MOST = 32

DESCRIPTION = """\
Find out which of several statements is faster:

  codetimer compare -s "n = 100" "[i for i in range(n)]" "list(range(n))"

They are executed in turns, so that what changes on the machine falls on all alike. Each is compared with the first one,
which is also compared with itself: no difference is claimed that the machine makes up. Each STATEMENT is a candidate;
one of several lines is one argument with newlines in it. Copies of each are executed in turn, at several places in
memory, since the place can make a difference of some %; the setup is executed for each copy, or where it takes over
2 ms for each statement.

Or put results of several processes, days or languages beside each other, from the files that --json has written:

  codetimer compare before.json after.json

They are matched by name, and two files with one result each in any case. Each loses its own empty call. What changed
on the machine in between is in the figures: they were not measured in turns, and the report says so. Notes on the
results stand below.

Arguments that end in .json are files. "--" ends the options, and makes all that follows statements.
"""
EPILOG = """\
exit codes: 0 done; 1 a statement failed, or a file could not be read or saved; 2 wrong usage; 130 ended by Ctrl-C,
with a report of what was measured until then
"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "compare", help="find out which statement, or which result file, is faster", description=DESCRIPTION,
        epilog=EPILOG, usage="codetimer compare [OPTION]... {STATEMENT STATEMENT... | FILE FILE...}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add_options(parser)
    parser.add_argument(
        "what", metavar="FILE", nargs=argparse.REMAINDER, help="two or more statements, or files of --json"
    )
    parser.set_defaults(long_options=long_options(parser))
    return parser


def run(args: argparse.Namespace) -> int:
    words = lines_of(args.what, args.long_options)
    files = [word.lower().endswith(".json") for word in words] if args.what[:1] != ["--"] else [False] * len(words)
    if len(words) < 2:
        raise UsageError("give two or more statements, or two or more files of --json")
    if all(files):
        from codetimer.cli import beside

        return beside.run(args, words)
    if any(files):
        word = words[files.index(True)]
        raise UsageError(f"statements and files cannot be mixed: {word} (if it is a statement, put -- before them)")
    check_target(args.json)
    return _compare(args, words)


def names_of(statements: list[str]) -> list[str]:
    """Those that are the same get a number; again, where another is called just that. So no two are alike."""
    names = [name_of(statement) for statement in statements]
    given = []
    for at, name in enumerate(names, 1):
        number = f" #{at}" if names.count(name) > 1 else ""
        while number and name + number in names:
            number += f" #{at}"
        given.append(name + number)
    return given


def _compare(args: argparse.Namespace, words: list[str]) -> int:
    if len(words) > MOST:
        raise UsageError(f"at most {MOST} statements can be compared, not {len(words)}")
    setup = "\n".join(args.setup)
    try:
        sources = [Source(setup, word, str(number)) for number, word in enumerate(words, 1)]
        with prepared(args):
            empty = empty_turn()
            made = [source.make(empty) for source in sources]
            comparison, error = _measure(args, dict(zip(names_of(words), made, strict=True)))
    except Broken:
        return NOTHING
    return _finish(args, comparison, error)


def _measure(
    args: argparse.Namespace, candidates: dict[str, Callable[[], None]]
) -> tuple[Comparison | None, BaseException | None]:
    before = codetimer.last_comparison()
    private: dict[str, Any] = {}
    with Progress(f"{len(candidates)} statements", unit=args.unit) as progress:
        private["_progress"] = progress.tell
        try:
            comparison = codetimer.compare(
                candidates, budget=args.budget, gc_time=args.gc_time, memory=args.memory, file=Nowhere(),
                **private,
            )  # fmt: skip
        except BaseException as error:
            partial = codetimer.last_comparison()
            return None if partial is before else partial, error
    return comparison, None


def _finish(args: argparse.Namespace, comparison: Comparison | None, error: BaseException | None) -> int:
    if comparison is not None and args.format == "text":
        print_report(comparison, sys.stdout, verbose=args.verbose, unit=args.unit)
    elif comparison is not None:
        print_export(comparison, args.format)
    sys.stdout.flush()
    failed = error is not None and not isinstance(error, KeyboardInterrupt)
    if failed and error is not None:
        tell_traceback(error)
    if failed and args.json is not None:
        tell(f"{args.json} was not written, since a statement failed")
    elif comparison is not None and args.json is not None:
        save(args.json, export(comparison, "json"))
    return NOTHING if failed else INTERRUPTED if error is not None else OK
