# SPDX-License-Identifier: MIT
"""The command codetimer: measure statements, run a program measured, watch and switch counters of running processes.

Each subcommand is a module of this package with add_parser(subparsers) and run(args), which returns the exit code.
Where the command is named first, only its module is imported. What begins with something else is a statement to time,
as with python -m timeit. Importing this package imports nothing else: a program under codetimer run finds sys.modules
as python leaves it.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as typing has it, without importing it
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from typing import Any, Protocol

    class _Command(Protocol):
        """What the module of a subcommand has."""

        def add_parser(self, subparsers: Any) -> argparse.ArgumentParser: ...
        def run(self, args: argparse.Namespace) -> int: ...


OK = 0
NOTHING = 1  # nothing found, or refused
USAGE = 2
INTERRUPTED = 130

EXIT_CODES = (
    "a first argument that is no command is a statement to time: codetimer 'x+1'. "
    "exit codes: 0 done; 1 nothing found, or refused; 2 wrong usage; 130 ended by Ctrl-C, "
    "which of record, serve and top is the way to end: 0"
)
LARGEST_PID = 2**31 - 1


# The module of each subcommand, in the order of the help.
COMMANDS = {
    "time": "time_",
    "compare": "compare",
    "run": "run",
    "list": "list_",
    "top": "top",
    "watch": "watch",
    "record": "record",
    "show": "show",
    "serve": "serve",
    "enable": "control",
    "disable": "control",
    "members": "control",
    "reap": "control",
    "completion": "completion",
}


class UsageError(Exception):
    """Arguments that are wrong in a way that only the subcommand can see: told on stderr, exit code 2."""


class Refused(Exception):
    """What was asked for cannot be done: told on stderr, exit code 1."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["run"]:
        from codetimer.cli.run import start

        ended = start(arguments[1:])
        if ended is not None:
            return ended
        arguments = ["run", "--help"]
    for stream in ("stdout", "stderr"):  # closed by whoever started us
        if getattr(sys, stream) is None:
            setattr(sys, stream, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    code = _guarded(arguments)
    try:
        sys.stdout.flush()
    except OSError:
        _silence(sys.stdout)
    return code


def _guarded(arguments: list[str]) -> int:
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return OK
    except UsageError as error:
        return _fail(error, USAGE)
    except (OSError, ValueError, Refused) as error:
        return _fail(error, NOTHING)
    return code


def process_id(text: str) -> int:
    """The type of arguments that are a PID."""
    import argparse

    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else 0
    if not 1 <= number <= LARGEST_PID:
        raise argparse.ArgumentTypeError(f"{text!r} is no process id: a whole number from 1 to {LARGEST_PID}")
    return number


def folder(text: str) -> str:
    """The type of options that are a folder."""
    if not text:
        import argparse

        raise argparse.ArgumentTypeError("the name of the folder is empty; leave --dir out for the usual one")
    return text


def tell(message: str) -> None:
    """A line for the user that is not part of the output."""
    if sys.stderr is not None:
        print(f"codetimer: {message}", file=sys.stderr)


def load(command: str) -> _Command:
    """The module of a subcommand."""
    from importlib import import_module
    from typing import cast

    return cast("_Command", import_module(f"codetimer.cli.{COMMANDS[command]}"))


def _run(arguments: list[str]) -> int:
    from codetimer.cli.parser import Parser

    parser = Parser(
        prog="codetimer",
        description="Measure statements; run a program measured; watch and switch the counters of running processes.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("--version", action="version", version=f"codetimer {_version()}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    needed = _needed(arguments)
    for command in {COMMANDS[command]: command for command in needed}.values():
        load(command).add_parser(subparsers)
    if not arguments:
        parser.print_help(sys.stderr)
        return USAGE
    try:
        args = parser.parse_args(_with_command(arguments))
    except SystemExit as end:  # help, version or wrong usage, which argparse has told
        return end.code if isinstance(end.code, int) else USAGE
    return load(args.command).run(args)


def _needed(arguments: list[str]) -> list[str]:
    """One command where it is named first, as it usually is; else all, for the help."""
    named = _with_command(arguments)[:1]
    return named if named and named[0] in COMMANDS else list(COMMANDS)


def _with_command(arguments: list[str]) -> list[str]:
    """The command is time where none is named. What looks like a misspelt one is refused: as a statement a name that
    nobody has bound would be an error too."""
    import builtins
    import keyword

    first = arguments[0] if arguments else "--help"
    if first in COMMANDS or first in ("-h", "--help", "--version"):
        return arguments
    if first.isidentifier() and not keyword.iskeyword(first) and not hasattr(builtins, first):
        raise UsageError(
            f"{first!r} is no command, and as a statement it names nothing (see codetimer --help); to measure it all "
            f"the same: codetimer time {first}"
        )
    return ["time", *arguments]


def _version() -> str:
    from codetimer import __version__

    return __version__


def _fail(error: Exception, code: int) -> int:
    if isinstance(error, OSError) and error.strerror is not None:
        tell(error.strerror if error.filename is None else f"{error.filename}: {error.strerror}")
    else:
        tell(str(error))
    return code


def _silence(stream: Any) -> None:
    """It cannot be written any more: what is still in its buffer goes nowhere, without another message at exit."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
    except (OSError, ValueError, AttributeError):
        pass
