# SPDX-License-Identifier: MIT
"""The report of codetimer run: after everything that the program does at its end, and whatever ended it.

It is an exit handler, the first to be registered and so the last to run; where none runs (os._exit, exec, a signal that
kills) there is no report. A child that the program forks inherits it, but was not asked for one.
"""

from __future__ import annotations

import atexit
import os
import sys

import codetimer
from codetimer import Members
from codetimer.cli import tell

TYPE_CHECKING = False  # as typing has it, without importing it
if TYPE_CHECKING:
    from typing import TextIO


TOLD = 10  # functions that could not be measured


class Report:
    """path: of a file; None: standard error. Raises OSError where it cannot be written."""

    def __init__(self, path: str | None) -> None:
        self.path = path if path is None else os.path.abspath(path)
        self.pid = os.getpid()
        self.measuring: codetimer.Instrumented | None = None
        if self.path is not None:
            open(self.path, "w").close()  # refused while it can still be told

    def print_at_exit(self, otherwise: str) -> None:
        """otherwise: the members list where there is none in force."""
        atexit.register(self._print, otherwise)

    def _print(self, otherwise: str) -> None:
        if os.getpid() != self.pid:
            return
        try:
            if self.path is not None:
                with open(self.path, "w", encoding="utf-8", errors="backslashreplace") as file:
                    self._write(file, otherwise)
            elif sys.stderr is not None:
                self._write(sys.stderr, otherwise)
        except KeyboardInterrupt:
            pass
        except OSError as error:
            tell(f"the report could not be written: {error}")
        except ValueError:  # the program has closed its standard error
            pass

    def _write(self, file: TextIO, otherwise: str) -> None:
        """All counters with calls, then what was asked for and is not among them."""
        codetimer.report(file)
        settings = codetimer.configure()
        if settings.problem is not None:
            print(f"codetimer: {settings.problem}", file=file)
        for pattern in unmatched(otherwise if settings.members is None else settings.members):
            print(f"codetimer: pattern {pattern!r} matched no function that was called", file=file)
        unreachable = self.measuring.unreachable if self.measuring is not None else ()
        for member, reason in unreachable[:TOLD]:
            print(f"codetimer: {member} could not be measured, or not everywhere: {reason}", file=file)
        if len(unreachable) > TOLD:
            print(f"codetimer: nor could {len(unreachable) - TOLD} more", file=file)


def unmatched(members: str) -> list[str]:
    """The patterns that select something, but none of the functions that were called."""
    called = [key.partition("/")[2] for key, counter in codetimer.counters.items() if counter.calls]
    patterns = [pattern.text for pattern in Members(members).patterns if pattern.problem is None]
    return [
        pattern
        for pattern in dict.fromkeys(patterns)
        if not pattern.startswith("!") and not any(map(Members(pattern).selects, called))
    ]
