# SPDX-License-Identifier: MIT
"""A fork finds no thread of ours: it ends before, and begins anew in both processes.

So a program that has one thread still has one where it forks: Python (since 3.12) does not warn of a process with
threads, and nothing of ours is in the middle of anything in the child. Where the program has threads of its own, Python
would warn anyway, and ours stays.
"""

from __future__ import annotations

import os
import sys
import threading
import time

from codetimer import _codetimer, threads

TYPE_CHECKING = False  # as typing has it, without importing it
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from codetimer.following import Following

_extension: Any = _codetimer  # what of it is for this package only has no stubs
_forks: FrameType | None = None  # who calls os.fork()

PATIENCE = 1.0  # seconds
TASKS = "/proc/self/task"  # of Linux


def rest(following: Following) -> None:
    """Before the fork."""
    global _forks
    thread = following.thread
    if thread is None or threading.active_count() != 2 or threading.current_thread() is not threading.main_thread():
        return
    _forks = sys._getframe(1).f_back
    following.rests.set()
    following.wake()
    thread.join(PATIENCE)
    if thread.native_id != threading.get_native_id():  # it is where threads are greenlets of this one, as gevent has it
        _wait_for(thread.native_id)


def _wait_for(native_id: int | None) -> None:
    """Its join() returns a little before the system has forgotten it, and Python asks the system."""
    until = time.monotonic() + PATIENCE
    while os.path.exists(f"{TASKS}/{native_id}") and time.monotonic() < until:
        time.sleep(0.00005)


def resume(following: Following) -> None:
    """After it, in the parent. A thread that had not come to its end does so beside its successor."""

    def restarted() -> bool:
        if returned := _has_returned():
            restart(following)
        return returned

    if following.rests.is_set() and not _extension._soon(restarted):
        restart(following)


def _has_returned() -> bool:
    """Whether os.fork() has: Python counts the threads at its very end."""
    frame = sys._getframe(1).f_back
    while frame is not None and _forks is not None:
        frame = frame.f_back
        if frame is _forks:
            return False
    return True


def restart(following: Following) -> bool:
    global _forks
    _forks = None
    following.rests = threading.Event()
    following.thread, seen = None, following.seen
    following.start()
    following.seen = seen
    return True


def register(following: Callable[[], Following], in_child: Callable[[], None]) -> None:
    """From now on. following: which one there is then; in_child: makes another one."""

    def after_in_child() -> None:
        global _forks
        _forks = None
        threads.unblock_in_child()
        in_child()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=lambda: rest(following()),
            after_in_parent=lambda: resume(following()),
            after_in_child=after_in_child,
        )
