# SPDX-License-Identifier: MIT
"""Guards readability: files within 400 lines, functions and examples within 60, lines within 120 columns."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import tree

FILE_LINES, FUNCTION_LINES, EXAMPLE_LINES, COLUMNS = 400, 60, 60, 120
CODE = (".c", ".h", ".py", ".pyi", ".lua", ".sh")


def c_functions(source: str) -> Iterator[tuple[int, int, str]]:
    """A function of C starts in column 0, its head ends in "{", and it ends with "}" in column 0."""
    lines = source.splitlines()
    for end, line in enumerate(lines):
        if line != "}":
            continue
        heads = (i for i in range(end) if re.match(r"[A-Za-z_].*[^;,]$", lines[i]) and "(" in lines[i])
        start = max(heads, default=None)
        if start is not None:
            yield start + 1, end - start + 1, lines[start]


def python_functions(source: str) -> Iterator[tuple[int, int, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1, node.name


def lua_functions(source: str) -> Iterator[tuple[int, int, str]]:
    """A named function of Lua ends with the first "end" at its own indentation."""
    lines = source.splitlines()
    for start, line in enumerate(lines):
        if match := re.match(r"(\s*)(local )?function [\w.:]+", line):
            if re.search(r"\bend\W*$", line):
                continue  # whole on one line
            end = next((i for i in range(start, len(lines)) if re.match(match[1] + r"end\b", lines[i])), start)
            yield start + 1, end - start + 1, line.strip()


FUNCTIONS = {".c": c_functions, ".h": c_functions, ".py": python_functions, ".lua": lua_functions}


def check(path: Path) -> None:
    source = tree.text(path)
    lines = source.splitlines()
    most = EXAMPLE_LINES if path.parts[0] == "examples" else FILE_LINES
    if len(lines) > most:
        tree.found(path, len(lines), f"{len(lines)} lines, at most {most}: split it by topic")
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS:
            tree.found(path, number, f"{len(line)} columns, at most {COLUMNS}")
    for start, length, name in FUNCTIONS.get(path.suffix, lambda _: ())(source):
        if length > FUNCTION_LINES:
            tree.found(path, start, f"{length} lines, at most {FUNCTION_LINES}: {name}")


for file in [*tree.files(*CODE), Path("Makefile"), Path("tests/tally"), Path(".ci/run")]:
    check(file)
tree.finish()
