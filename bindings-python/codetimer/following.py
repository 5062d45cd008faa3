# SPDX-License-Identifier: MIT
"""Someone awake: threads that look after the members list while the program does something else.

One thread polls the core a few times a second, brings instrumented functions into line, and sees when the list has
changed. It runs none of the application's code: providers and callbacks have workers of their own, so that one that
blocks or fails stops nothing but itself. All are daemons, begin when they are needed, end with the interpreter, and
begin anew in a forked child.
"""

from __future__ import annotations

import atexit
import sys
import threading

from codetimer import _codetimer, forking
from codetimer.threads import INFO, WARNING, spawn, tell

TYPE_CHECKING = False  # as typing has it, without importing it
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PERIOD = 0.25  # seconds between two looks
FIRST_ANSWER = 1.0  # seconds that configure() waits for a new provider
LAST_WAIT = 10.0  # seconds that the end of the interpreter waits at the most, for what ends at once
PATIENCE = 5.0  # seconds after which a worker is said to hang


class Worker:
    """A thread that does its task whenever it is asked to. since_ns: when it began to; None while it rests."""

    def __init__(self, name: str, task: Callable[[], None]) -> None:
        self._name = name
        self._task = task
        self._asked = threading.Event()
        self._thread: threading.Thread | None = None
        self._ended = False
        self.since_ns: int | None = None
        self._late_told = False

    def ask(self) -> None:
        """From the thread that follows, or before it begins."""
        self._asked.set()
        if self._thread is None and not self._ended:
            self._thread = spawn(self._name, self._run)
            if self._thread is None:
                self._ended = True

    def _run(self) -> None:
        while True:
            self._asked.wait()
            self._asked.clear()  # before the question, lest the end be slept through
            if self._ended:
                return
            self._late_told = False
            self.since_ns = _codetimer.now_ns()
            self._task()
            self.since_ns = None

    def is_late(self) -> bool:
        """Whether it hangs, and that was not told yet."""
        since_ns = self.since_ns
        if since_ns is None or self._late_told or _codetimer.now_ns() - since_ns < PATIENCE * 1e9:
            return False
        self._late_told = True
        return True

    def end(self) -> None:
        """It ends as soon as it rests."""
        self._ended = True
        self._asked.set()

    def join(self) -> None:
        if self._thread is not None and (self.since_ns is None or not _codetimer._is_main()):
            self._thread.join(LAST_WAIT)


class Provider:
    """An application's own source of lists: an object with members(), and perhaps subscribe(changed)."""

    def __init__(self, source: Any) -> None:
        self.source = source
        self.problem: str | None = None
        self.worker = Worker("codetimer provider", self._ask)
        self._subscribed = False
        self._to_subscribe = getattr(source, "subscribe", None) is not None
        self._news = True
        self._answered = threading.Event()
        self._wanted = 1  # counts what was asked for by hand; and which of it has an answer
        self._given = 0

    @staticmethod
    def check(source: Any) -> None:
        """Refuses what can be no provider."""
        if isinstance(source, type):
            raise TypeError(f"provider must be an object, not the class {source.__name__}: {source.__name__}()?")
        if not callable(getattr(source, "members", None)):
            raise TypeError(
                "provider must have a method members(), which returns a members list (str) or None, "
                f"and {source!r} ({type(source).__name__}) has none"
            )
        subscribe = getattr(source, "subscribe", None)
        if subscribe is not None and not callable(subscribe):
            raise TypeError(f"subscribe of the provider must be a method, subscribe(changed), not {subscribe!r}")

    def poll(self) -> None:
        """Asks for the list if it may be another one."""
        if self.worker.since_ns is None and (self._news or not self._subscribed):
            self._news = False
            self.worker.ask()

    def renew(self) -> None:
        """It is asked once more, whether or not it has news."""
        self._wanted += 1
        self._news = True

    def wait(self, seconds: float) -> None:
        """For the answer to what was asked for by hand; in vain where it hangs."""
        while True:
            self._answered.clear()
            if self._given >= self._wanted or not self._answered.wait(seconds):
                return

    def _changed(self, *_: object) -> None:
        """What subscribe() is given: from any thread, also in a signal handler."""
        self._news = True

    def _ask(self) -> None:
        wanted = self._wanted
        try:
            if self._to_subscribe:
                self._to_subscribe = False
                self.source.subscribe(self._changed)
                self._subscribed = True
            text = self.source.members()
            if text is not None and not isinstance(text, str):
                raise TypeError(f"members() returned {text!r} ({type(text).__name__}), not a str or None")
            if text is not None:
                following.provide(self, text)
        except BaseException as error:  # whatever it raises, this thread goes on
            self._fail(f"{type(error).__name__}: {error}")
        else:
            if self.problem is not None:
                tell(INFO, "provider %r answers again", self.source)
            self.problem = None
        self._given = wanted
        self._answered.set()

    def _fail(self, problem: str) -> None:
        if problem != self.problem:
            tell(WARNING, "provider %r failed, the members list stays: %s", self.source, problem, exc_info=True)
        self.problem = problem


class Callback:
    """One on_change. seen: how often the list had changed when it was called last."""

    def __init__(self, function: Callable[[Any], object], settings: object, seen: int) -> None:
        self.function = function
        self.settings = settings
        self.seen = seen

    def call(self) -> None:
        try:
            self.function(self.settings)
        except BaseException:  # whatever it raises, it stays
            tell(WARNING, "on_change callback %r failed, it stays", self.function, exc_info=True)


class Following:
    """All of it. What it holds passes to a forked child, its threads do not."""

    def __init__(self) -> None:
        self.callbacks: list[Callback] = []
        self.provider: Provider | None = None
        self.seen = 0
        self.thread: threading.Thread | None = None
        self.rests = threading.Event()  # set: that thread is to end, see forking.py
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._calls = Worker("codetimer callbacks", self._call_back)
        self._calling: object = None
        self._ended = False
        self._failure = ""

    # ---- the thread that follows ----

    def start(self) -> None:
        with self._lock:
            if self.thread is None and not self._ended:
                self.seen = _codetimer.poll()
                self.thread = spawn("codetimer", self._run)
                if self.thread is None:
                    self._ended = True

    def wake(self) -> None:
        """It looks at once."""
        self._wake.set()

    def _run(self) -> None:
        rests = self.rests
        while True:
            self._wake.wait(PERIOD)
            self._wake.clear()
            if self._ended or rests.is_set():
                return
            try:
                self._look()
            except BaseException as error:
                failure = f"{type(error).__name__}: {error}"
                if failure != self._failure:
                    tell(WARNING, "following the members list failed, and is tried again", exc_info=True)
                self._failure = failure

    def _look(self) -> None:
        provider = self.provider
        if provider is not None:
            provider.poll()
            if provider.worker.is_late():
                tell(WARNING, "provider %r has not answered for %d s, the members list stays",
                     provider.source, PATIENCE)
        changes = _codetimer._follow()
        if changes != self.seen:
            self._follow_change(changes)
        if self._calls.is_late():
            tell(WARNING, "on_change callback %r has not returned for %d s: other callbacks wait for it",
                 self._calling, PATIENCE)

    def _follow_change(self, changes: int) -> None:
        self.seen = changes
        follow = getattr(sys.modules.get("codetimer.instrumenting"), "follow", None)
        try:
            if follow is not None:
                follow()
        finally:
            _codetimer._tell_unmatched()
            if self.callbacks:
                self._calls.ask()

    # ---- callbacks ----

    def add(self, settings: object, function: Any) -> Any:
        if not callable(function):
            raise TypeError(f"callback must be a callable that takes the settings, not {function!r}")
        self.callbacks.append(Callback(function, settings, _codetimer.poll()))
        self.start()
        return function

    def remove(self, function: object) -> bool:
        for callback in self.callbacks:
            if callback.function == function:
                self.callbacks.remove(callback)
                return True
        return False

    def _call_back(self) -> None:
        for callback in tuple(self.callbacks):
            changes = self.seen
            if callback.seen != changes and callback in self.callbacks:
                callback.seen = changes
                self._calling = callback.function
                callback.call()

    # ---- the provider ----

    def set_provider(self, source: Any) -> None:
        provider = None
        if source is not None:
            Provider.check(source)
            provider = Provider(source)
        with self._lock:
            before, self.provider = self.provider, provider
            _codetimer._provide(None)
        if before is not None:
            before.worker.end()
        self.ask()

    def ask(self) -> None:
        """Has the provider asked at once, and waits a moment for what it says."""
        provider = self.provider
        if provider is None:
            return
        self.start()
        self.wake()
        provider.wait(FIRST_ANSWER)

    def reload(self) -> None:
        provider = self.provider
        if provider is None:
            return
        _codetimer._provide(None)
        provider.renew()
        self.ask()

    def provide(self, provider: Provider, text: str) -> None:
        with self._lock:
            written = provider is self.provider and _codetimer._provide(text)
        if written:
            self.wake()

    # ---- forks and the end ----

    def in_child(self) -> Following:
        child = Following()
        child.callbacks = self.callbacks
        if self.provider is not None:
            child.provider = Provider(self.provider.source)
        if self.thread is not None and not self._ended:
            child.start()
            child.seen = self.seen
        self._ended = True  # for a thread that is a greenlet, which is in the child too
        return child

    def end(self) -> None:
        """At the end of the interpreter: what rests ends, what runs the application's code is left. A subinterpreter
        waits for that too, as the end of one that has threads ends the process."""
        self._ended = True
        self.wake()
        workers = [self._calls] if self.provider is None else [self._calls, self.provider.worker]
        for worker in workers:
            worker.end()
        if self.thread is not None:
            self.thread.join(LAST_WAIT)
        for worker in workers:
            worker.join()


following = Following()


def in_child() -> None:
    global following
    following = following.in_child()


# What the C part calls, of whatever following there is in this process.
def start() -> None:
    """Someone is awake from now on: for a file, a provider, callbacks, instrumented functions."""
    following.start()


def wake() -> None:
    following.wake()


def add(settings: object, function: Any) -> Any:
    return following.add(settings, function)


def remove(function: object) -> bool:
    return following.remove(function)


def check(source: object) -> None:
    Provider.check(source)


def set_provider(source: object) -> None:
    following.set_provider(source)


def get_provider() -> object:
    return following.provider.source if following.provider is not None else None


def get_problem() -> str | None:
    provider = following.provider
    return f"provider: {provider.problem}" if provider is not None and provider.problem is not None else None


def reload() -> None:
    following.reload()


forking.register(lambda: following, in_child)
atexit.register(lambda: following.end())
