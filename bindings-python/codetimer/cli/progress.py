# SPDX-License-Identifier: MIT
"""How far a measurement has come, on a line of the terminal that is gone when it ends.

It is told between two batches, outside of what is measured, by the thread that measures. Where standard output or
standard error is no terminal there is none, nor for what is over in a second.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from types import TracebackType

from codetimer import now_ns
from codetimer.cli.native import progress_line
from codetimer.cli.text import cut, printable, symbols

SHORTEST_NS = 1_000_000_000
FIRST_NS = 250_000_000  # before that nobody waits, and what is to come is not yet known well


class Progress:
    """Of several runs of something."""

    def __init__(self, name: str, runs: int = 1, unit: str | None = None) -> None:
        self._symbols = symbols(sys.stderr)
        self._name = printable(name, self._symbols.encoding)
        self._runs, self._done = runs, 0
        self._unit = unit
        self._start_ns = now_ns()
        self._terminal = sys.stdout.isatty() and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._shown = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.clear()

    def next_run(self) -> None:
        self._done += 1

    def tell(self, part: float, per_call_ns: float) -> None:
        """part: of the run under way; per_call_ns: 0 where it is not known."""
        if not self._terminal:
            return
        part = (self._done + part) / self._runs
        elapsed_ns = now_ns() - self._start_ns
        if part <= 0 or elapsed_ns < FIRST_NS or elapsed_ns / part < SHORTEST_NS:
            return
        line = progress_line(part, elapsed_ns, per_call_ns, self._unit, self._symbols.micro != "µ")
        columns = shutil.get_terminal_size().columns
        name = cut(self._name, max(columns - len(line) - 3, 0), self._symbols.ellipsis)
        self._write(f"\r{cut(f'{name}: {line}', columns - 1, '')}\x1b[K")
        self._shown = True

    def clear(self) -> None:
        if self._shown:
            self._write("\r\x1b[K")
        self._shown = False

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):  # the terminal may be gone; the measurement is not
            sys.stderr.write(text)
            sys.stderr.flush()
