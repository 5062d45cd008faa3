# SPDX-License-Identifier: MIT
"""instrument() and uninstrument(): measuring functions that nobody has decorated.

What is to be measured is the union of the texts that instrument() was given; what is measured follows from it and from
what is there: reconcile() makes the second fit the first, and can be called at any time. Where sys.monitoring is to be
had (CPython 3.12 and later) it measures Python functions; else, and for C functions everywhere, measured stand-ins take
their place in modules and classes.

One lock guards all of this. Whoever imports a module never waits for it: the module is left in a queue, and whoever has
the lock looks after it. What the log is told, it is told after the lock is released.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
from collections import deque
from collections.abc import Iterator
from types import ModuleType, TracebackType
from typing import Any

from codetimer import _codetimer, following
from codetimer._codetimer import Members
from codetimer.instrumenting import found, imports, standins
from codetimer.instrumenting.sweep import Sweep, is_module, modules, walk
from codetimer.instrumenting.wanted import Wanted, is_own, letters

_lock = threading.RLock()
_asked: dict[str | None, Instrumented] = {}
_queue: deque[Any] = deque()
_refused: dict[str, str] = {}
_untold: list[tuple[int, str, object]] = []
_told_own: set[str] = set()

_monitors: bool | None = None  # whether sys.monitoring measures Python functions; None: nothing is asked for

_INFO, _WARNING = 20, 30


class Instrumented:
    """What instrument() was asked for once: what came of it, and a way to end it, which it does as a context manager.

    Its attributes are found out when they are asked for, from what the process is like then."""

    __slots__ = ("__weakref__", "_members")

    def __init__(self, members: str | None) -> None:
        self._members = members

    @property
    def members(self) -> str | None:
        """The members list; None: that of the process, whatever it becomes."""
        return self._members

    @property
    def active(self) -> bool:
        """Whether it has not been ended."""
        return _asked.get(self._members) is self

    @property
    def reached(self) -> tuple[str, ...]:
        """The members that it measures, sorted."""
        with _alone():
            return tuple(sorted(_reached(self._wanted())))

    @property
    def unreachable(self) -> tuple[tuple[str, str], ...]:
        """The members that it selects and that are not measured, or not everywhere, each with the reason, sorted. Looks
        through all objects of the process, which can take a second."""
        with _alone():
            wanted = self._wanted()
            reasons = {member: reason for member, reason in _refused.items() if _is_of(wanted, member)}
            if not _monitors:
                reasons = found.unreachable(wanted) | reasons
            return tuple(sorted(reasons.items()))

    @property
    def matches(self) -> tuple[tuple[str, int, str | None], ...]:
        """Of each pattern its text, how many measured members it matches, and why it is skipped (None: it is not). Of a
        pattern that excludes: how many members it matches of those that are measured because of other texts."""
        with _alone():
            members = _reached(Wanted([text for text in map(_text, _asked) if text is not None]))
        text = _text(self._members)
        patterns = Members(text).patterns if text is not None else ()
        return tuple((each.text, _count(each, members), each.problem) for each in patterns)

    def uninstrument(self) -> bool:
        """End it: what only it selects is as it was before. Returns whether it was active."""
        return self.active and uninstrument(self) > 0

    def _wanted(self) -> Wanted:
        text = _text(self._members) if self.active else None
        return Wanted([] if text is None else [text])

    def __enter__(self) -> Instrumented:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
        /,
    ) -> None:
        self.uninstrument()

    def __repr__(self) -> str:
        if not self.active:
            return f"<codetimer.Instrumented: {self._members!r}, ended>"
        return f"<codetimer.Instrumented: {self._members!r}, {len(self.reached)} members reached>"


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Under the lock; afterwards looks after what was imported meanwhile, and tells the log."""
    with _lock:
        yield
    _drain()
    _tell_all()


def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()  # another thread may have held it, which is not there any more


os.register_at_fork(after_in_child=_after_fork)


# ---- asking ----


def instrument(members: str | None = None) -> Instrumented:
    """Measure the functions that a members list selects, without a decorator, also those of modules to come.

    members: str, a members list as in Members; it chooses what gets a counter, while the list of the process goes on
        deciding which counters count. None: what the list of the process selects, whatever it becomes; nothing without
        one. Calls add up, the same text twice is one.

    Returns an Instrumented, to look at what came of it and to end it. From Python 3.12 on sys.monitoring measures;
    where there is none, and for C functions, stand-ins take the place of functions in modules and classes. C functions
    have to be named: by "math.*" or "math.sqrt", those of builtins by their whole name; "*" does not. Functions that
    are decorated with measured stay as they are, and codetimer is never instrumented. What cannot be measured is told
    by unreachable, and to the logger "codetimer"; it never is an error. Any thread.
    Raises TypeError or ValueError for a text that can be no members list."""
    Members(members)  # TypeError, ValueError
    text = str(members) if members is not None else None
    with _alone():
        made = _asked.setdefault(text, Instrumented(text))
        try:
            _reconcile(_WARNING)
        except BaseException:  # Ctrl-C
            _asked.pop(text, None)
            _reconcile()
            raise
        _warn(text)
    following.start()
    return made


def uninstrument(members: str | Instrumented | None = None) -> int:
    """End what instrument() was asked for.

    members: the text that it was given, or what it returned; None: all.

    Returns how many were ended. Everything is as it was before: where a stand-in is, the original comes back; where the
    program has put something else meanwhile, that stays; and a stand-in that somebody kept makes bare calls. The
    counters and their values stay. Any thread. Raises TypeError for another type."""
    if members is not None and not isinstance(members, (str, Instrumented)):
        raise TypeError(
            f"members must be a str that instrument() was given, what it returned, or None for all, not {members!r}"
        )
    with _alone():
        text = members.members if isinstance(members, Instrumented) else members
        ending = list(_asked) if members is None else [text]
        ended = [text for text in ending if _asked.pop(text, None) is not None]
        if ended:
            _reconcile()
    return len(ended)


def follow() -> None:
    """Make what is measured fit again what is wanted and what is there: after the members list of the process has
    changed, or functions were defined that no import brought. Any thread; never raises."""
    try:
        with _alone():
            if _asked:
                _follow()
    except Exception as error:
        _tell(_WARNING, "instrumentation could not follow: %s", repr(error))


# ---- making it so ----


def _text(members: str | None) -> str | None:
    """What a text stands for now: None is the list of the process, if there is one."""
    return members if members is not None else _codetimer.configure().members


def monitors() -> bool:
    """Whether sys.monitoring measures Python functions."""
    return bool(_monitors)


def refuse(member: str, reason: str) -> None:
    """For what tells what is unreachable."""
    with _lock:
        _refused[member] = reason


def texts() -> tuple[str, ...]:
    """The members lists whose union is wanted now."""
    return tuple(text for text in map(_text, list(_asked)) if text is not None)


def _wanted() -> Wanted:
    return Wanted(texts())


def _begin_monitoring() -> bool:
    """Whether sys.monitoring measures what is asked for now."""
    if not hasattr(sys, "monitoring"):
        return False
    try:
        _codetimer._monitoring_start(tuple(_asked))
    except RuntimeError as error:
        _untold.append((_WARNING, "functions are replaced, as sys.monitoring is not to be had: %s", error))
        return False
    return True


def _reconcile(level: int = _INFO) -> None:
    """Under the lock. Imports are watched first, so that none is missed. "level": of what is said about refusals."""
    global _monitors
    if _asked and not imports.watch(_imported):
        _untold.append((_WARNING, "imports cannot be watched in this Python: %s", sys.version))
    if _asked and _monitors is not False:
        _monitors = _begin_monitoring()
    sweep = Sweep(_wanted(), not _monitors)
    _take_away(sweep)
    if _asked:
        sweep.over(modules())
        _keep(sweep, level)
    else:
        _end()


def _follow() -> None:
    if _monitors:
        _codetimer._monitoring_update()
    sweep = Sweep(_wanted(), not _monitors)
    _take_away(sweep)
    sweep.over(modules())
    _keep(sweep, _INFO)


def _end() -> None:
    global _monitors
    if _monitors:
        _codetimer._monitoring_stop()
    _monitors = None
    imports.unwatch()
    _queue.clear()
    _refused.clear()


def _take_away(sweep: Sweep) -> None:
    """What is wanted no longer."""
    before = list(standins.active())
    ended = [(standin, note) for standin, note in before if not sweep.keeps(standin, note.members)]
    for standin, note in ended:
        standins.take_away(standin, note)
    if ended:
        _clean()
        members = [member for _, note in ended for member in note.members]
        _untold.append((_INFO, "instrumented no longer: %s", _enumerate(members, 50)))


def _clean() -> None:
    for thing in walk(modules()):
        standins.clean(thing)


def _keep(sweep: Sweep, level: int) -> None:
    if sweep.new:
        _untold.append((_INFO, "instrumented: %s", _enumerate(sweep.new, 50)))
    refused = [f"{member} ({reason})" for member, reason in sweep.refused.items() if member not in _refused]
    if refused:
        _untold.append((level, "not instrumented: %s", _enumerate(refused, 5)))
    _refused.update(sweep.refused)
    for member in sweep.reached:
        _refused.pop(member, None)


# ---- imports ----


def _imported(module: Any) -> None:
    """A module has just been imported, by whatever thread."""
    _queue.append(module)
    _drain()
    _tell_all()


def _drain() -> None:
    """Does not wait: whoever has the lock drains the queue when it is released."""
    lock = _lock
    while _queue and lock.acquire(blocking=False):
        try:
            _look_after_queue()
        except Exception as error:
            _queue.clear()
            _untold.append((_WARNING, "modules could not be looked at: %s", repr(error)))
        finally:
            lock.release()


def _look_after_queue() -> None:
    sweep = Sweep(_wanted(), not _monitors)
    while _queue:
        module = _queue.popleft()
        if is_module(module):
            sweep.over([module])
    _keep(sweep, _INFO)


# ---- what came of it ----


def _reached(wanted: Wanted) -> set[str]:
    members = {member for _, note in standins.active() for member in note.members}
    if _monitors:
        members |= found.monitored(wanted) | set(_codetimer._monitoring_info()["reached"])
    return {member for member in members if any(each.selects(member) for each in wanted.lists)}


def _is_of(wanted: Wanted, member: str) -> bool:
    return any(each.selects(member) for each in wanted.lists)


def _count(pattern: Any, members: set[str]) -> int:
    if pattern.problem is not None:
        return 0
    alone = Members(pattern.text.removeprefix("!"))
    return sum(alone.selects(member) for member in members)


# ---- the log ----


def _enumerate(names: list[str], most: int) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{len(names):,}: " + ", ".join(names[:most]) + more


def _warn(text: str | None) -> None:
    """Of patterns that cannot do what they seem to be for. text: None for the list in force: that was told."""
    for pattern in Members(text).patterns if text is not None else ():
        if pattern.problem is not None:
            wrong = f"{pattern.text!r} at {pattern.position}: {pattern.problem}"
            _untold.append((_WARNING, "members pattern skipped: %s", wrong))
            continue
        said, whole = letters(pattern.text)
        if is_own(said.removesuffix(".")) and said not in _told_own:
            _told_own.add(said)
            _untold.append((_WARNING, "codetimer itself is not instrumented: %s", pattern.text))
        if whole and type(sys.modules.get(said)) is ModuleType:
            _untold.append((_WARNING, "a pattern is the name of a module, and selects nothing of it: write %s.*", said))


def _tell_all() -> None:
    while _untold:
        try:
            level, message, value = _untold.pop(0)
        except IndexError:  # another thread was faster
            return
        _tell(level, message, value)


def _tell(level: int, message: str, value: object) -> None:
    """As the C part does: below a warning nobody listens who has not imported logging."""
    try:
        if level >= _WARNING:
            importlib.import_module("logging")
        sys.modules["logging"].getLogger("codetimer").log(level, message, value)
    except Exception:
        return
