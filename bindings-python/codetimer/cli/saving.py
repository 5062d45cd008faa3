# SPDX-License-Identifier: MIT
"""Results written into files: whole, or not at all.

A file is written beside its place and renamed when it is complete, so that a full disk or Ctrl-C leaves what was there
before. What cannot be renamed to (a device, a pipe) is written as it is.
"""

from __future__ import annotations

import contextlib
import os
import platform
import stat
import sys
import tempfile
from collections.abc import Sequence
from datetime import datetime, timezone

from codetimer import Comparison, Result
from codetimer.cli import Refused, UsageError
from codetimer.cli.native import export_text

FORMATS = ("text", "json", "csv", "markdown", "pyperf")


def export(what: Comparison | Sequence[Result], format: str) -> str:
    """The text of a file."""
    return export_text(
        what,
        format,
        host=f"Python {platform.python_version()}",
        machine=f"{platform.machine()} {platform.system()} {platform.release()}",
        date=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )


def print_export(what: Comparison | Sequence[Result], format: str) -> None:
    encoding = sys.stdout.encoding or "ascii"
    sys.stdout.write(export(what, format).encode(encoding, "backslashreplace").decode(encoding))


def check_target(path: str | None) -> None:
    """Whether a file can be written there, asked before anything is measured."""
    if path is None:
        return
    if path in ("", "-"):
        raise UsageError("--json needs the name of a file; to standard output: --format json")
    if os.path.isdir(path):
        raise Refused(f"{path} is a folder; --json needs the name of a file")
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise Refused(f"{path}: there is no folder {folder}")


def save(path: str, text: str) -> None:
    """Raises Refused, with what has become of the file."""
    place = os.path.realpath(path)
    try:
        if os.path.exists(place) and not stat.S_ISREG(os.stat(place).st_mode):
            with open(place, "w", encoding="utf-8", newline="") as file:
                file.write(text)
        else:
            _replace(place, text)
    except OSError as error:
        raise Refused(f"{path} could not be saved: {error.strerror}; nothing of it was kept") from None


def _replace(place: str, text: str) -> None:
    descriptor, beside = tempfile.mkstemp(prefix=f".{os.path.basename(place)[:100]}.", dir=os.path.dirname(place))
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), _mode(place))
        os.replace(beside, place)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def _mode(place: str) -> int:
    """That of the file before, else as of any new file."""
    with contextlib.suppress(OSError):
        return stat.S_IMODE(os.stat(place).st_mode)
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
