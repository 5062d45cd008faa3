# SPDX-License-Identifier: MIT
"""Guards `codetimer completion bash`: the script completes commands, options, their values, and the PIDs of
processes."""

import shutil
import subprocess
import sys

import pytest
from cli_processes import Worker, environment, run
from codetimer.cli import COMMANDS

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")


@pytest.fixture
def folder(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path


def complete(folder, *words):
    """What bash would offer for the last word."""
    code = f"""
codetimer() {{ {sys.executable} -m codetimer "$@"; }}
eval "$(codetimer completion bash)"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_codetimer
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    result = subprocess.run(
        ["bash", "-u", "-c", code, "bash", "codetimer", *words],
        env=environment(folder), capture_output=True, text=True, timeout=60, cwd=folder,
    )  # fmt: skip
    assert result.stderr == ""
    return result.stdout.split("\n")[:-1]


def test_commands(folder):
    assert complete(folder, "") == [*COMMANDS, "--help", "--version"]
    assert complete(folder, "re") == ["record", "reap"]


@pytest.mark.parametrize("command", COMMANDS)
def test_options_are_those_of_the_command(folder, command):
    offered = complete(folder, command, "--")
    text = run(folder, command, "--help").stdout
    assert "--help" in offered
    assert all(option in text for option in offered)
    assert all(word.strip("[],") in offered for word in text.split() if word.startswith(("[--", "--")) and word != "--")


def test_values(folder):
    assert complete(folder, "serve", "8000", "--by", "") == ["process", "program"]
    assert complete(folder, "top", "--interval", "") == [""]
    (folder / "a file.csv").touch()
    assert "a file.csv" in complete(folder, "show", "")
    assert "a file.csv" in complete(folder, "record", "x/y/rate", "--to", "a")


def test_pids(folder):
    with Worker(folder) as one, Worker(folder) as other:
        pids = sorted([one.pid, other.pid])
        for words in (["enable", ""], ["top", "--pid", ""], ["list", ""]):
            assert complete(folder, *words) == list(map(str, pids))
    assert complete(folder, "disable", "") == [""]
