# SPDX-License-Identifier: MIT
"""What all checks share: the files of the project, and how a finding is reported.

A check collects findings ("file:line: what is wrong and what to do") and ends with finish(), which prints them; its
exit status is 1 if there were any.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NO_TEXT = ("build/", ".git/", "tests/fuzz/corpus/")
findings: list[str] = []


def files(*suffixes: str, under: str = "") -> list[Path]:
    """The project's text files, relative to its root: what git tracks or would track; without git, all but build/."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        listed = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file()]
    paths = [Path(name) for name in sorted(set(listed)) if not name.startswith(NO_TEXT)]
    paths = [path for path in paths if path.as_posix().startswith(under) and (ROOT / path).is_file()]
    return [path for path in paths if not suffixes or path.suffix in suffixes]


def text(path: Path | str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def found(path: Path | str, line: int, message: str) -> None:
    findings.append(f"{path}:{line}: {message}")


def finish() -> None:
    print("\n".join(findings) or "nothing found")
    sys.exit(bool(findings))
