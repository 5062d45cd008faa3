# SPDX-License-Identifier: MIT
"""What the tests of live counters share: measured programs in processes of their own, and the command line."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import codetimer

LIBRARY = str(Path(codetimer.__file__).parent.parent)

# The beginning of a measured program: say(text) tells the test something (in one piece, also when forked children speak
# at the same time), hear() waits for a line from it.
START = """
import os, sys, time
import codetimer
def say(*words): os.write(1, (" ".join(map(str, words)) + "\\n").encode())
def hear(): return sys.stdin.readline().strip()
"""


def environment(folder, **more):
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CODETIMER_", "PYTHON")) and name not in ("NO_COLOR", "FORCE_COLOR")
    }
    if "PYTHONMALLOC" in os.environ:  # the sanitizers want it
        kept["PYTHONMALLOC"] = os.environ["PYTHONMALLOC"]
    return kept | {"PYTHONPATH": LIBRARY, "CODETIMER_DIR": str(folder), "PYTHONUTF8": "1", "LC_ALL": "C.UTF-8"} | more


class Program:
    """A running measured program."""

    def __init__(self, popen):
        self.popen = popen
        self.pid = popen.pid

    def hear(self):
        """The next line that it says."""
        line = self.popen.stdout.readline()
        assert line, f"the program ended: {self.popen.stderr.read()}"
        return line.strip()

    def say(self, text=""):
        self.popen.stdin.write(f"{text}\n")
        self.popen.stdin.flush()

    def end(self):
        """Lets it end by itself."""
        with contextlib.suppress(BrokenPipeError):
            self.popen.stdin.close()
        code = self.popen.wait(60)
        assert code == 0, self.popen.stderr.read()


@contextlib.contextmanager
def program(code, folder, *, command=None, start=START, **more):
    """Runs Python code (or a command) as a measured program; kills it at the end if it still runs."""
    popen = subprocess.Popen(
        command or [sys.executable, "-c", start + code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(folder, **more),
    )
    with popen:
        try:
            yield Program(popen)
        finally:
            popen.kill()
            popen.stdin = None if popen.stdin.closed else popen.stdin
            with contextlib.suppress(BrokenPipeError):
                if popen.stdin is not None:
                    popen.stdin.close()
            popen.stdin = None


def command(folder, *arguments, **options):
    """Runs the command codetimer to its end."""
    options.setdefault("timeout", 60)
    env = environment(folder, **options.pop("env", {}))
    return subprocess.run(
        [sys.executable, "-m", "codetimer", *arguments], capture_output=True, text=True, env=env, **options
    )


def wait_until(true, seconds=60.0):
    """Waits for what must come true soon; only what never does needs the seconds."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.005)


def descriptors(pid):
    return sorted(os.listdir(f"/proc/{pid}/fd"))


def threads(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def sample(pid, folder, key):
    """The values of one counter of a process now."""
    with codetimer.attach(pid, directory=folder) as view:
        return view.sample()[key]
