# SPDX-License-Identifier: MIT
"""What the tests of codetimer run share: the same program run by python and by codetimer run, and what each left."""

import re
import subprocess
import sys
from typing import NamedTuple

from live import environment


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def start(words, folder, *, flags=(), measured=True, env=None, **options):
    """Starts python with these words, or codetimer run with them."""
    how = ["-m", "codetimer", "run"] if measured else []
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    segments = folder / "segments"
    segments.mkdir(mode=0o700, exist_ok=True)
    line = [sys.executable, *flags, *how, *words]
    return subprocess.Popen(line, cwd=folder, env=environment(segments, **(env or {})), **options)


def finish(popen, given=b"", timeout=120):
    with popen:
        try:
            out, err = popen.communicate(given, timeout=timeout)
        finally:
            popen.kill()
    return Ended(popen.returncode, masked(out), masked(err))


def both(words, folder, *, given=b"", **options):
    """How it ended under python and under codetimer run, side by side."""
    bare = start(words, folder, measured=False, **options)
    measured = start(words, folder, measured=True, **options)
    return finish(bare, given), finish(measured, given)


def run(words, folder, *, given=b"", **options):
    return finish(start(words, folder, **options), given)


def masked(text):
    """Without addresses, which differ from run to run."""
    return re.sub(r"\b0x[0-9a-f]{6,}\b", "0x…", (text or b"").decode("utf-8", "backslashreplace"))
