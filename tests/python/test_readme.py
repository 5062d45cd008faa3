# SPDX-License-Identifier: MIT
"""Guards the README: each of its snippets runs as printed, and what it prints has the shape that the README shows.

A snippet is a fenced block of python, lua or c with the output as the next block (text). Figures are masked; so are the
parts that depend on the machine: the spread, the unit of a time, the kind of cycles or why there are none, and what a
busy machine did to a run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
BUILD = ROOT / "build"
SNIPPET = re.compile(r"^```(python|lua|c)\n(.*?)^```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MASKS = [
    (r" (±|\+-) [\d.,]+ %", ""),
    (r" +Note: +(CPU time is|still warming up|it slows down).*\n", ""),
    (r"(?m)^Note: .*\n", ""),  # of a comparison
    (r"(CPU Cycles: +).*", r"\1C"),
    (r"\((core|reference)\)", "(C)"),
    (r"\d[\d,]*(\.\d+)?", "N"),
    (r"N (ns|µs|us|ms|s)\b", "N U"),
    (r"(?<=\S) {2,}", "  "),  # columns are as wide as their figures
]

pytestmark = pytest.mark.skipif(not README.exists(), reason="no README here: this is a source package")


def snippets() -> list[tuple[str, str, str]]:
    return SNIPPET.findall(README.read_text(encoding="utf-8")) if README.exists() else []


def shape(output: str) -> list[str]:
    for pattern, mask in MASKS:
        output = re.sub(pattern, mask, output)
    return [line.rstrip() for line in output.strip().splitlines()]


def prepare(language: str, source: Path) -> list[str]:
    """The command that runs it; skips where this language is not built here."""
    if language == "python":
        return [sys.executable, str(source)]
    if language == "lua":
        lua = shutil.which("lua5.4")
        if lua is None or not list(BUILD.glob("lua/5.4/codetimer.so")):
            pytest.skip("lua5.4 or its module is not here (make build)")
        return [lua, str(source)]
    compiler, library = shutil.which("cc"), BUILD / "libcodetimer.a"
    if compiler is None or not library.exists():
        pytest.skip("no C compiler or no library here (make build)")
    program = source.with_suffix("")
    flags = ["-std=c11", f"-I{ROOT / 'core'}", str(source), str(library), "-lm", "-pthread"]
    clean = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    subprocess.run([compiler, *flags, "-o", str(program)], check=True, env=clean)
    return [str(program)]


def test_the_readme_has_its_snippets() -> None:
    languages = " ".join(language for language, _, _ in snippets())
    assert languages == "python lua c python lua python lua python python python lua python"


@pytest.mark.parametrize(("language", "code", "expected"), snippets(), ids=lambda value: value.split("\n")[0][:40])
def test_snippet(language: str, code: str, expected: str, tmp_path: Path) -> None:
    source = tmp_path / f"snippet.{ {'python': 'py'}.get(language, language) }"
    source.write_text(code, encoding="utf-8")
    environment = dict(os.environ, LUA_CPATH=f"{BUILD}/lua/5.4/?.so;;", LC_ALL="C.UTF-8", PYTHONUTF8="1", NO_COLOR="1")
    run = subprocess.run(
        prepare(language, source), capture_output=True, encoding="utf-8", timeout=120, env=environment, cwd=tmp_path
    )
    assert run.returncode == 0, run.stderr
    assert shape(run.stdout) == shape(expected)
