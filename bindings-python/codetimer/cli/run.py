# SPDX-License-Identifier: MIT
"""codetimer run: a program that knows nothing of codetimer, with its functions measured.

The options end where the program begins, so they are read here and not by argparse, which only tells the help. Nothing
is imported that python would not have imported for the program: it may have an argparse of its own beside it.
"""

from __future__ import annotations

import os

import codetimer
from codetimer.cli import USAGE, UsageError, tell
from codetimer.cli.patterns import parse as parse_patterns
from codetimer.cli.run_program import Program
from codetimer.cli.run_report import Report
from codetimer.instrumenting import defining

TYPE_CHECKING = False  # as typing has it, without importing it
if TYPE_CHECKING:
    import argparse
    from typing import Any

PROGRAM = "codetimer run [OPTION]... {script.py | - | -m MODULE} [ARGUMENT]..."
DESCRIPTION = """\
Run a program as python does, with its functions measured. What follows the program belongs to it. Without --measure
and --config the program's own functions are measured: those of the script, or of the package that -m names, unless
CODETIMER_MEASURE or CODETIMER_CONFIG say otherwise. The exit code is that of the program."""
VALUED = ("--measure", "--config", "--to")
SOURCES = ("CODETIMER_MEASURE", "CODETIMER_CONFIG")


class Options:
    """What the command line said."""

    measure: str | None = None
    config: str | None = None
    to: str | None = None
    report = False
    module: str | None = None  # None: argv[0] is the program
    argv: list[str]


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "run", help="run a program measured", description=DESCRIPTION, usage=PROGRAM
    )
    parser.add_argument("--measure", metavar="MEMBERS", help="which functions: patterns, as in 'shop.*;!shop.slow'")
    parser.add_argument("--config", metavar="FILE", help="take the patterns from a file, again whenever it changes")
    parser.add_argument("--report", action="store_true", help="print all counters to standard error at the end")
    parser.add_argument("--to", metavar="FILE", help="write this report to a file instead")
    parser.add_argument("-m", metavar="MODULE", dest="module", help="run a module, as python -m does")
    parser.add_argument("file", metavar="FILE", help="a script, a folder or zip with a __main__.py, or - (stdin)")
    parser.add_argument("arguments", metavar="ARGUMENT", nargs="*", help="of the program")
    return parser


def run(args: argparse.Namespace) -> int:
    """Not reached: main() asks start()."""
    raise UsageError("the program to run is missing")


def start(words: list[str]) -> int | None:
    """Run the program of a command line. Returns only if it could not be begun: an exit code; None: show the help."""
    try:
        options = parse(words)
        if options is None:
            return None
        begin(options)
    except UsageError as error:
        tell(f"run: {error}\nusage: {PROGRAM}")
    except OSError as error:
        tell(f"can't open file {error.filename!r}: [Errno {error.errno}] {error.strerror}")
    return USAGE


def begin(options: Options) -> None:
    program = Program(options.module, options.argv)
    if options.measure is not None:
        parse_patterns(options.measure)
    own = quoted(program.package) + ".*"
    report = Report(options.to) if options.report or options.to is not None else None
    if report is not None:
        report.print_at_exit(own if measures_own(options) else "")
    program.prepare()
    measuring = measure(options, own)
    if report is not None:
        report.measuring = measuring
    program.run(defining.decorator())


def measures_own(options: Options) -> bool:
    """Whether no members list was given."""
    return options.measure is None and options.config is None and not any(map(os.environ.get, SOURCES))


def measure(options: Options, own: str) -> codetimer.Instrumented:
    """From now on: what the members list in force says; where none was given, the program's own functions."""
    if measures_own(options):
        return codetimer.instrument(own)
    if options.measure is not None:
        codetimer.configure(options.measure)
    if options.config is not None:
        codetimer.configure(file=options.config)
    return codetimer.instrument()


def quoted(name: str) -> str:
    """A name as a pattern."""
    return "".join("\\" + each if each in ";!#*?\\" else each for each in name)


# ---- options ----


def parse(words: list[str]) -> Options | None:
    """None: help is wanted. Raises UsageError."""
    options, rest = Options(), list(words)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            break
        if word in ("-h", "--help"):
            return None
        if word.startswith("-m"):
            options.module = word[2:] or _value("-m", rest)
            options.argv = ["-m", *rest]
            return options
        _take(options, word, rest)
    if not rest:
        raise UsageError("the program is missing: script.py, - for standard input, or -m MODULE")
    options.argv = rest
    return options


def _take(options: Options, word: str, rest: list[str]) -> None:
    name, equals, value = word.partition("=")
    if word == "--report":
        options.report = True
    elif name in VALUED:
        setattr(options, name[2:], value if equals else _value(name, rest))
    else:
        raise UsageError(f"unrecognized option: {word}; those of the program follow its name")


def _value(name: str, rest: list[str]) -> str:
    if not rest:
        raise UsageError(f"argument {name}: expected one argument")
    return rest.pop(0)
