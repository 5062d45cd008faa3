# SPDX-License-Identifier: MIT
"""Threads of codetimer's, which take nothing that is meant for the program's own, and what is told of them.

The system gives a signal of a process to any thread that does not block it. A program that blocks one in its threads,
to wait for it (sigwait, signalfd) or to look at it later (sigpending), would be ended by it if one of ours took it. So
these block all of them: from their first moment, hence the thread that starts one does so meanwhile.
"""

from __future__ import annotations

import signal
import sys
import threading

TYPE_CHECKING = False  # as typing has it, without importing it
if TYPE_CHECKING:
    from collections.abc import Callable

INFO, WARNING = 20, 30
FAULTS = ("SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGSYS", "SIGTRAP")  # of the thread that makes them


def tell(level: int, message: str, *args: object, exc_info: bool = False) -> None:
    """Logs; below a warning only where somebody has imported logging, as nobody else listens."""
    try:
        if level >= WARNING:
            import logging
        else:
            logging = sys.modules["logging"]
        logging.getLogger("codetimer").log(level, message, *args, exc_info=exc_info)
    except Exception:  # nowhere to say it: at the end of the interpreter, or in a handler
        pass


class Thread(threading.Thread):
    """A daemon. signals: those that are blocked in the thread of the program that this one comes from."""

    signals: set[int] | None = None  # None: this system blocks none

    def __init__(self, name: str, run: Callable[[], None]) -> None:
        super().__init__(target=run, name=name, daemon=True)

    def start(self) -> None:
        if not hasattr(signal, "pthread_sigmask"):
            return super().start()
        mask = signal.pthread_sigmask
        before = mask(signal.SIG_BLOCK, ())  # by itself, as the call below may raise what a handler of a signal does
        starts = threading.current_thread()
        self.signals = starts.signals if isinstance(starts, Thread) else before
        try:
            mask(signal.SIG_BLOCK, signal.valid_signals() - {getattr(signal, name, 0) for name in FAULTS})
            super().start()
        finally:
            mask(signal.SIG_SETMASK, before)


def spawn(name: str, run: Callable[[], None]) -> Thread | None:
    """A running thread; None where there can be none (told), as in some subinterpreters and at the very end."""
    try:
        thread = Thread(name, run)
        thread.start()
    except RuntimeError as error:
        if "shutdown" not in str(error):
            tell(WARNING, "no thread to follow the members list (%s): call codetimer.poll() from time to time", error)
        return None
    return thread


def unblock_in_child() -> None:
    """In a forked child: where one of these threads forked, in a provider or a callback, it is the child's only one."""
    thread = threading.current_thread()
    if isinstance(thread, Thread) and thread.signals is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, thread.signals)
