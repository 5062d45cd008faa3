# SPDX-License-Identifier: MIT
"""Guards the floors: who may include whom. The table in core/README.md is the rule; this only reads and applies it."""

from __future__ import annotations

import re
from pathlib import Path

import tree

STANDARD = set(
    "assert ctype errno float inttypes limits math setjmp stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib "
    "string threads time".split()
)
HOST = {
    "bindings-python": {"Python.h", "structmember.h", "internal/pycore_interp.h", "signal.h"},
    "bindings-lua": {"lua.h", "lauxlib.h", "lualib.h"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)
ROW = re.compile(r"^\| (\d) \| (\w+) \|[^|]*\|([^|]*)\|$", re.MULTILINE)

rows = ROW.findall(tree.text("core/README.md"))
floor = {topic: int(number) for number, topic, _ in rows}
peers = {topic: set(re.findall(r"\w+", own)) for _, topic, own in rows}


def topic_of(path: Path) -> str:
    return "platform" if path.parent.name == "platform" else path.stem


def includes(path: Path) -> list[tuple[int, bool, str]]:
    source = tree.text(path)
    return [
        (source.count("\n", 0, match.start()) + 1, match[1] == "<", match[2]) for match in INCLUDE.finditer(source)
    ]


def check_core(path: Path) -> None:
    topic = topic_of(path)
    if topic not in floor:
        tree.found(path, 1, f'"{topic}" is not in the table of core/README.md; add it with its floor')
        return
    for line, system, name in includes(path):
        if system and topic != "platform" and name.removesuffix(".h") not in STANDARD:
            tree.found(path, line, f"<{name}> is not standard C: headers of a system belong in core/platform/")
        if system or name.endswith("codetimer.h"):
            continue
        other = topic_of((tree.ROOT / path.parent / name).resolve())
        if other == topic or other in peers[topic]:
            continue
        if floor.get(other, 9) >= floor[topic]:
            tree.found(path, line, f'"{name}" (floor {floor.get(other, "unknown")}) from floor {floor[topic]}: '
                                   f"not below, and not named for {topic} in core/README.md")


def check_binding(path: Path) -> None:
    for line, system, name in includes(path):
        if system and name.removesuffix(".h") not in STANDARD and name not in HOST[path.parts[0]]:
            tree.found(path, line, f"<{name}>: a binding includes its host's headers and standard C only")
        own = name in ("codetimer.h", "core/codetimer.h") or (tree.ROOT / path.parent / name).exists()
        if not system and not own:
            tree.found(path, line, f'"{name}": a binding includes codetimer.h and its own headers only')


for file in tree.files(".c", ".h", under="core/"):
    if not file.name.startswith("codetimer"):  # the public headers stand outside; every file may include them
        check_core(file)
for folder in HOST:
    for file in tree.files(".c", ".h", under=folder + "/"):
        check_binding(file)
tree.finish()
