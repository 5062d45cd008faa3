# SPDX-License-Identifier: MIT
"""What the tests of the command line share: measured processes, the command itself, and a terminal to run it in."""

import bisect
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import NamedTuple

import codetimer

LIBRARY = str(Path(codetimer.__file__).parent.parent)
TIMEOUT_S = 60  # seconds; only what never comes needs them

# A process with a busy counter, one whose calls all fail, and one that was called once. It answers what it is asked on
# its standard input between two calls, so that what it knows itself (when each call of the first began and ended) and
# what its counters say are of the same calls.
WORKER = """
import json, queue, sys, threading, time
import codetimer
calls, asked, rests = [], queue.SimpleQueue(), False

@codetimer.measured(name="shop.handle", help="Handles an order.")
def handle():
    time.sleep(0.003)  # in the middle of a bucket of serve

@codetimer.measured(name="shop.fail")
def fail():
    time.sleep(0.001)
    raise ValueError

@codetimer.measured(name="shop.once")
def once():
    pass

def call():
    began = time.perf_counter_ns()
    handle()
    calls.append((began, time.perf_counter_ns()))
    try:
        fail()
    except ValueError:
        pass

def listen():
    for line in sys.stdin:
        asked.put(line.strip())

once()
call()
threading.Thread(target=listen, daemon=True).start()
print("ready", flush=True)
while True:
    while rests or not asked.empty():
        what = asked.get()
        rests = rests or what == "rest"
        print(json.dumps(calls if what == "calls" else [len(calls), time.perf_counter_ns()]), flush=True)
    call()
"""
SHORTEST_NS = 3_000_000 * 0.999  # of its first: it sleeps for at least that long; the clocks may go at different rates

# The same counters with durations that are made up: what is shown of them does not depend on the machine.
RECORDER = """
import time
import codetimer
once, handle, fail = (codetimer.timer("shop." + name).counter for name in ("once", "handle", "fail"))
once.record(1)
def call():
    handle.record(3_000_000)
    fail.record(1_000_000, error=True)
call()
print("ready", flush=True)
while True:
    time.sleep(0.004)
    call()
"""


def environment(folder, **more):
    dropped = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES")
    kept = {key: value for key, value in os.environ.items() if key not in dropped}
    kept |= {"PYTHONPATH": LIBRARY, "CODETIMER_DIR": str(folder), "PYTHONIOENCODING": "utf-8", "TERM": "xterm"}
    return kept | more


class Truth(NamedTuple):
    """What a worker knows at a moment between two calls."""

    calls: int
    time_ns: int


class Worker:
    """A measured process, until the end of the with statement."""

    def __init__(self, folder, code=WORKER, **more):
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            env=environment(folder, **more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self.process.pid
        assert self.process.stdout.readline() == "ready\n"

    def _ask(self, what):
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def truth(self):
        return Truth(*self._ask("truth"))

    def rest(self):
        """The truth for ever: it lives on, and calls nothing any more."""
        return Truth(*self._ask("rest"))

    def calls(self):
        """When each call began and ended, all of them."""
        return [tuple(each) for each in self._ask("calls")]

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.process.kill()
        self.process.communicate()


def command(*arguments):
    return [sys.executable, "-m", "codetimer", *map(str, arguments)]


def run(folder, *arguments, **options):
    """The command, to its end."""
    more = options.pop("env", {})
    return subprocess.run(
        command(*arguments), env=environment(folder, **more), capture_output=True, text=True, timeout=60, **options
    )


def check_window(calls, before, after, window_ns, counted, total_ns):
    """What was seen in a window somewhere between two truths is what some window of that length had. The counts of such
    windows differ by one call on a quiet machine, by more on a busy one, and what is seen always lies within them."""
    ends = [end for _, end in calls]
    assert 0 < window_ns <= (after.time_ns - before.time_ns) * 1.001
    last = after.time_ns - window_ns
    starts = {before.time_ns, last, *(end - shift for end in ends for shift in (0, window_ns))}
    counts = [
        bisect.bisect_right(ends, start + window_ns) - bisect.bisect_right(ends, start)
        for start in starts
        if before.time_ns <= start <= last
    ]
    assert min(counts, default=0) - 2 <= counted <= max(counts, default=len(calls)) + 2
    durations = [end - began for began, end in calls[before.calls : after.calls]]
    assert counted <= len(durations)
    longest = max(sum(durations[at : at + counted]) for at in range(len(durations) - counted + 1))
    assert counted * SHORTEST_NS <= total_ns <= longest * 1.001


def wait_for(condition, what="it"):
    """Its first result that is true."""
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited {TIMEOUT_S} s in vain for {what}")


CLEAR = "\x1b[2J"


class Screen:
    """A program in a terminal of its own, as a person sees it: just as much of a terminal as our programs use."""

    def __init__(self, arguments, env, size=(120, 24)):
        self.columns, self.lines = size
        self.cells, self.at = {}, (0, 0)
        self.overflowed = False
        self.cursor = True
        self.alternate = False
        self.raw = ""
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.execve(arguments[0], arguments, env)
        self.resize(*size)

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.master)

    def resize(self, columns, lines):
        self.columns, self.lines = columns, lines
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def resize_and_wait(self, columns, lines):
        """Until the program has drawn for the new size; what overflowed before that does not count."""
        begun = len(self.raw)
        self.resize(columns, lines)
        wait_for(lambda: self.read() and CLEAR in self.raw[begun:], "a screen drawn anew")

    def modes(self):
        """Of the terminal, as the next program would find it."""
        return termios.tcgetattr(self.master)

    def press(self, keys):
        os.write(self.master, keys.encode())

    def read(self):
        """Takes what the program has written, until it pauses."""
        end = time.monotonic() + 2
        while time.monotonic() < end and select.select([self.master], [], [], 0.05)[0]:
            try:
                data = os.read(self.master, 65536)
            except OSError:  # the program has ended
                return False
            if not data:
                return False
            text = data.decode(errors="replace")
            self.raw += text
            self._show(text)
        return True

    def text(self):
        self.read()
        return "\n".join(self.line(number) for number in range(self.lines))

    def line(self, number):
        row = self.cells.get(number, {})
        return "".join(row.get(column, " ") for column in range(max(row, default=-1) + 1)).rstrip()

    def wait(self, pattern):
        """The match of the pattern, once it is on the screen."""
        return wait_for(lambda: re.search(pattern, self.text()), f"{pattern!r} on the screen:\n{self.text()}")

    def ended(self):
        """Its exit code: negative for a signal."""

        def reap():
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            return [status] if pid else None

        (status,) = wait_for(reap, "its end")
        self.pid = 0
        self.read()  # its last words
        return os.waitstatus_to_exitcode(status)

    def _show(self, text):
        for match in re.finditer(r"\x1b\[([?0-9;]*)([A-Za-z])|([\r\n])|([^\x1b])", text):
            values, what, control, character = match.groups()
            row, column = self.at
            if character:
                self.overflowed |= column >= self.columns or row >= self.lines
                self.cells.setdefault(row, {})[column] = character
                self.at = (row, column + 1)
            elif control:
                self.at = (row, 0) if control == "\r" else (row + 1, column)
            else:
                self._obey(what, values, row, column)

    def _obey(self, what, values, row, column):
        if what == "H":
            numbers = [int(each) for each in (values or "1;1").split(";")]
            self.at = (numbers[0] - 1, numbers[1] - 1)
        elif what == "K":
            line = self.cells.get(row, {})
            self.cells[row] = {each: line[each] for each in line if each < column}
        elif what == "J":
            kept = 0 if values == "2" else row
            self.overflowed &= values != "2"
            self.cells = {each: self.cells[each] for each in self.cells if each < kept}
        elif values in ("?25", "?1049"):
            name = "cursor" if values == "?25" else "alternate"
            setattr(self, name, what == "h")
