# SPDX-License-Identifier: MIT
"""Guards codetimer.report(): the table of the core reaches the stream that was meant, in the characters and colours
that it can take. Fails if it goes elsewhere, or if a stream's refusal is swallowed."""

import io

import codetimer
import pytest


@pytest.fixture
def table():
    made = codetimer.timer("test.report\x1b", category="group").counter
    made.record(1500)
    yield made
    made.remove()


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_to_stdout(table, capsys):
    assert codetimer.report() is None
    printed = capsys.readouterr().out.splitlines()
    head = printed[0].split()
    assert [word for word in head if word != "Active"] == (
        "Member Calls Average P50 P99 Min Max Total Errors In Flight".split()
    )
    (row,) = [line for line in printed if line.startswith("group/test.report")]
    times = ["1.500", "µs"] * 6
    if "Active" in head:  # other tests' coroutines are there
        times[2:2] = ["1.500", "µs"]
    assert row.split() == [r"group/test.report\x1b", "1", *times, "0", "0"]


def test_to_file(table, capsys):
    file = io.StringIO()
    codetimer.report(file)
    codetimer.report(file=file)
    assert file.getvalue().count("group/test.report") == 2 and capsys.readouterr().out == ""


def test_ascii_stream(table):
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    codetimer.report(file)
    file.flush()
    assert b"1.500 us" in file.buffer.getvalue()


def test_colour(table, monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    file = Terminal()
    codetimer.report(file)
    assert "\x1b[33mgroup/test.report\\x1b\x1b[0m" in file.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    codetimer.report(file := Terminal())
    assert "\x1b" not in file.getvalue()


def test_a_long_table():
    made = [codetimer.timer(f"test.row{i:04}" + "x" * 200).counter for i in range(500)]
    for counter in made:
        counter.record(5)
    file = io.StringIO()
    codetimer.report(file)
    assert file.getvalue().count("test.row") == 500
    for counter in made:
        counter.remove()


def test_wrong_file():
    with pytest.raises(TypeError, match=r"file must have a write\(str\) method or be None, not 5 \(int\)"):
        codetimer.report(5)


def test_failing_file(table):
    class Broken:
        def write(self, text):
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        codetimer.report(Broken())


def test_no_stdout(script):
    done = script("import codetimer, sys\nsys.stdout = None\ncodetimer.report()\ndel sys.stdout\ncodetimer.report()")
    assert done.returncode == 1 and b"lost sys.stdout" in done.stderr
