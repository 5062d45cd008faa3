# SPDX-License-Identifier: MIT
"""A terminal for as long as a full-screen program runs: keys one by one, frames drawn in place, all put back at the
end.

Whatever ends the program (an error, Ctrl-C, a signal, a hang-up), the terminal is put back first; stopped by Ctrl-Z
it is put back for the shell and taken again on continuing. Only lines that changed are written, so nothing flickers.
Ctrl-C and Ctrl-Z stay signals. All of this happens in the main thread; signals wake it through a pipe.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Sequence
from types import FrameType, TracebackType
from typing import Any

ENTER = "\x1b[?1049h\x1b[?25l\x1b[2J"  # the second screen, no cursor, cleared
LEAVE = "\x1b[0m\x1b[?25h\x1b[?1049l"
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
HUNG_UP = 128 + signal.SIGHUP
KEYS = {
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down", "\x1b[5~": "page up", "\x1b[6~": "page down",
    "\x1b[H": "home", "\x1bOH": "home", "\x1b[1~": "home", "\x1b[F": "end", "\x1bOF": "end", "\x1b[4~": "end",
    "\x7f": "backspace", "\x08": "backspace", "\r": "enter", "\n": "enter",
}  # fmt: skip


def is_capable() -> bool:
    """Whether standard output is a terminal that can be drawn on."""
    return sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


class Terminal:
    """The terminal that standard output is, and its keyboard where there is one."""

    def __init__(self) -> None:
        self._output = sys.stdout.fileno()
        self._input: int | None = None
        self._opened: int | None = None  # our own descriptor of the keyboard
        self._saved: list[Any] | None = None
        self._handlers: dict[int, Any] = {}
        self._pipe = (-1, -1)
        self._wakeup = -1
        self._frame: list[str] = []
        self.resized = False

    def __enter__(self) -> Terminal:
        sys.stdout.flush()
        try:
            self._find_keyboard()
            self._catch_signals()
            self._take()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._give_back()
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        for descriptor in (*self._pipe, -1 if self._opened is None else self._opened):
            if descriptor >= 0:
                os.close(descriptor)

    def size(self) -> tuple[int, int]:
        """Columns and lines."""
        try:
            columns, lines = os.get_terminal_size(self._output)
        except OSError:
            columns, lines = 0, 0
        return columns or 80, lines or 24  # a terminal that does not know says 0

    def draw(self, lines: Sequence[str]) -> None:
        """Show these lines, which fit; only what changed is written."""
        if not self._is_foreground():
            return
        changes = []
        for number, line in enumerate(lines):
            if number >= len(self._frame) or self._frame[number] != line:
                changes.append(f"\x1b[{number + 1};1H\x1b[0m{line}\x1b[0m\x1b[K")
        if len(lines) < len(self._frame):
            changes.append(f"\x1b[{len(lines) + 1};1H\x1b[J")
        self._frame = list(lines)
        if changes:
            self._show("".join(changes))

    def redraw(self) -> None:
        """Draw everything the next time: nobody knows what is on the screen."""
        self._frame = []
        self._show("\x1b[0m\x1b[2J")

    def keys(self, until: float) -> list[str]:
        """The next keys: a character each, or a name like "up". Nothing at time.monotonic() = until, or on a resize."""
        while not self.resized:
            left = until - time.monotonic()
            sources = [self._pipe[0], *([] if self._input is None else [self._input])]
            ready = select.select(sources, [], [], max(left, 0))[0]
            if self._pipe[0] in ready:
                self._drain()
            if self._input in ready:
                return self._read(self._input)
            if left <= 0:
                break
        return []

    # ---- taking and giving back ----

    def _find_keyboard(self) -> None:
        if sys.__stdin__ is not None and sys.__stdin__.isatty():
            self._input = sys.__stdin__.fileno()
            return
        with contextlib.suppress(OSError):
            self._input = self._opened = os.open("/dev/tty", os.O_RDONLY | os.O_CLOEXEC)

    def _take(self) -> None:
        if not self._is_foreground():
            return
        if self._input is not None:
            if self._saved is None:
                self._saved = termios.tcgetattr(self._input)
            tty.setcbreak(self._input, termios.TCSADRAIN)
        self._frame = []
        self._show(ENTER)

    def _give_back(self) -> None:
        """Must not fail: the terminal may be gone."""
        with contextlib.suppress(OSError):
            self._write(LEAVE)
        if self._input is not None and self._saved is not None:
            with contextlib.suppress(OSError, termios.error):
                termios.tcsetattr(self._input, termios.TCSADRAIN, self._saved)
            self._saved = None

    def _is_foreground(self) -> bool:
        try:
            return os.tcgetpgrp(self._output) == os.getpgrp()
        except OSError:
            return True  # not our controlling terminal: nobody can put us into its background

    # ---- signals ----

    def _catch_signals(self) -> None:
        self._pipe = os.pipe()
        for descriptor in self._pipe:
            os.set_blocking(descriptor, False)
        self._wakeup = signal.set_wakeup_fd(self._pipe[1], warn_on_full_buffer=False)
        handlers = {signal.SIGWINCH: self._resize, signal.SIGTSTP: self._stop, signal.SIGCONT: self._continue}
        handlers |= dict.fromkeys(ENDING, self._end)
        for number, handler in handlers.items():
            self._handlers[number] = signal.signal(number, handler)

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._pipe[0], 1024)

    def _resize(self, number: int, frame: FrameType | None) -> None:
        self.resized = True

    def _end(self, number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._give_back()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)  # stops here, unless nobody could continue us
        signal.signal(number, self._stop)
        self._continue(number, frame)

    def _continue(self, number: int, frame: FrameType | None) -> None:
        self._take()
        self.resized = True  # it may have been, meanwhile

    # ---- bytes ----

    def _show(self, text: str) -> None:
        try:
            self._write(text)
        except OSError as error:
            raise _hung_up(error) from None

    def _write(self, text: str) -> None:
        data = text.encode(sys.stdout.encoding or "ascii", "backslashreplace")
        while data:
            try:
                data = data[os.write(self._output, data) :]
            except BlockingIOError:
                select.select([], [self._output], [], 1)

    def _read(self, descriptor: int) -> list[str]:
        try:
            data = os.read(descriptor, 1024)
        except OSError as error:
            raise _hung_up(error) from None
        if not data:
            raise SystemExit(HUNG_UP)
        text = data.decode(errors="ignore")
        keys = []
        while text:
            key = next((key for key in KEYS if text.startswith(key)), None)
            size = len(key) if key is not None else _sequence(text)
            keys.append(KEYS[key] if key is not None else text[:size] if size == 1 else "unknown")
            text = text[size:]
        return ["escape" if key == "\x1b" else key for key in keys]


def _hung_up(error: OSError) -> BaseException:
    """What to raise: a terminal that is gone ends the program as its signal does, which may come later or never."""
    return SystemExit(HUNG_UP) if error.errno in (errno.EIO, errno.ENXIO) else error


def _sequence(text: str) -> int:
    """The length of the key at its beginning: an escape sequence ends with a letter or "~"."""
    if not text.startswith(("\x1b[", "\x1bO")):
        return 1
    return next((end + 1 for end, each in enumerate(text) if end > 1 and (each.isalpha() or each == "~")), len(text))
