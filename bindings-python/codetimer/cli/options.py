# SPDX-License-Identifier: MIT
"""The options that time and compare have in common, and what they do."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import sys
from collections.abc import Iterator

import codetimer
from codetimer.cli import UsageError, tell
from codetimer.cli.saving import FORMATS

UNITS = ("nsec", "usec", "msec", "sec")
LEVELS = ("high", "highest", "realtime")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-s", "--setup", metavar="SETUP", action="append", default=[],
        help="executed once before each run, outside of what is measured; its names are local variables to the "
        "statement. Several -s are lines of one text",
    )  # fmt: skip
    parser.add_argument(
        "-t", "--target-time", metavar="SECONDS", type=seconds, dest="budget",
        help="how long to measure, all in all, warm-up included",
    )  # fmt: skip
    parser.add_argument("-u", "--unit", choices=UNITS, help="unit of times per call; else the one that suits each")
    parser.add_argument("-v", "--verbose", action="store_true", help="all that is known, in the report")
    parser.add_argument("--gc-time", action="store_true", help="also time the pauses of the garbage collector")
    parser.add_argument(
        "--memory", action="store_true", help="also count allocations and bytes, in a pass of their own afterwards"
    )
    parser.add_argument("--priority", metavar="LEVEL", choices=LEVELS, help=f"raise the priority: {', '.join(LEVELS)}")
    parser.add_argument("--cpu", metavar="N", type=cpu, help="run on this CPU only")
    parser.add_argument("--json", metavar="FILE", help="also save all that is known, for `codetimer compare`")
    parser.add_argument(
        "--format", choices=FORMATS, default="text",
        help="what to print: the report (text), or the text of a file, as pyperf's for `pyperf compare_to`",
    )  # fmt: skip


def seconds(text: str) -> float:
    """The type of options that are a time to measure."""
    with contextlib.suppress(ValueError):
        value = float(text)
        if 0 < value <= 1e9 and not math.isnan(value):
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is no time to measure: a number of seconds above 0, up to 1e9")


def cpu(text: str) -> int:
    return whole(text, 0, 2**31 - 1, "number of a CPU")


def whole(text: str, least: int, most: int, what: str) -> int:
    with contextlib.suppress(ValueError):
        value = int(text)
        if least <= value <= most:
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is no {what}: a whole number from {least} to {most}")


def lines_of(words: list[str], parser_options: frozenset[str]) -> list[str]:
    """What follows the options. "--" ends them; a long option behind the first line is one that came too late."""
    if words[:1] == ["--"]:
        return words[1:]
    for word in words[1:]:
        if word.partition("=")[0] in parser_options:
            raise UsageError(f"options come before the first statement: {word}")
    return words


def long_options(parser: argparse.ArgumentParser) -> frozenset[str]:
    actions = parser._actions  # argparse has no public way to them
    return frozenset(name for action in actions for name in action.option_strings if name.startswith("--"))


@contextlib.contextmanager
def prepared(args: argparse.Namespace) -> Iterator[None]:
    """The place to measure: the clock is known, modules of the working directory are found, the priority is raised if
    that was asked for."""
    sys.path.insert(0, os.curdir)
    try:
        with codetimer.initialize(args.priority, args.cpu) as environment:
            if environment.priority.reason:
                tell(str(environment).splitlines()[0])
            yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(os.curdir)
