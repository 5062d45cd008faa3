# SPDX-License-Identifier: MIT
"""Ctrl-C and SIGTERM for programs that must finish what they are at: the request waits until they sleep."""

from __future__ import annotations

import signal
import time
from types import FrameType, TracebackType
from typing import Any


class _Woken(BaseException):
    """Raised by the handler inside sleep() and nowhere else."""


class Ending:
    """While it is entered, the first Ctrl-C or SIGTERM sets `asked` and ends sleep(); a second one interrupts."""

    def __init__(self) -> None:
        self.asked = False
        self._asleep = False
        self._handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Ending:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._handlers[number] = signal.signal(number, self._ask)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def sleep(self, until: float | None = None) -> None:
        """Until time.monotonic() is there (None: for ever), or until asked to end."""
        try:
            self._asleep = True
            while not self.asked and (until is None or time.monotonic() < until):
                time.sleep(3600 if until is None else min(max(until - time.monotonic(), 0), 3600))
        except _Woken:
            pass
        finally:
            self._asleep = False

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        if self._asleep:
            self._asleep = False
            raise _Woken
