# SPDX-License-Identifier: MIT
"""Guards the tree as a whole: a licence line first, the version in one place, no machine's own paths, no loose ends."""

from __future__ import annotations

import re
from pathlib import Path

import tree

SPDX = "SPDX-License-Identifier: MIT"
CODE = (".c", ".h", ".py", ".pyi", ".lua", ".sh")
# Written so that no pattern matches itself.
MACHINE = re.compile(r"(?<![\w.$}/])/(?:work|root|home/[a-z]\w*)/|\.org/(?:simple|debian)\b|(?:python)hosted\.org")
LOOSE = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")

version = re.search(r'#define CT_VERSION "([^"]+)"', tree.text("core/codetimer.h"))
assert version, "core/codetimer.h defines no CT_VERSION"


def check(path: Path) -> None:
    source = tree.text(path)
    if path.suffix in CODE and SPDX not in "\n".join(source.splitlines()[:2]):
        tree.found(path, 1, f'the first line must say "{SPDX}"')
    for number, line in enumerate(source.splitlines(), 1):
        if MACHINE.search(line):
            tree.found(path, number, f"a path or host of one machine: {line.strip()}")
        if LOOSE.search(line):
            tree.found(path, number, f"a loose end: {line.strip()}")
        if version[1] in line and str(path) not in ("core/codetimer.h", "CHANGELOG.md"):
            tree.found(path, number, f"the version is written out; read it from core/codetimer.h: {line.strip()}")


for file in tree.files():
    check(file)
tree.finish()
