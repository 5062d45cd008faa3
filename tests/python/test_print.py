# SPDX-License-Identifier: MIT
"""Guards: the report reaches every kind of stream, in characters that it can hold, and a stream that refuses loses
nothing: the result is kept, fn's own error goes first."""

import io
import os
import re
import sys

import codetimer
import pytest

HEAD = "\nimport codetimer, sys\n"
CAUGHT = (
    HEAD
    + """
try:
    codetimer.time('x', 3, {fn})
except {error} as error:
    print(error, codetimer.last_result().calls, file=sys.stderr)
"""
)
ONE = HEAD + "codetimer.time({name!r}, 7, int)\n"
YELLOW, RESET = "\x1b[33m", "\x1b[0m"


def report(name, n=7, fn=int, file=None):
    """What time writes, the figures as #."""
    file = io.StringIO() if file is None else file
    codetimer.time(name, n, fn, file=file)
    return re.sub(r"[\d,]+(\.\d+)?", "#", file.getvalue())


def test_the_block():
    lines = report("Block").splitlines()
    assert lines[0] == "Block" and lines[-1] == ""
    assert [line[:20] for line in lines[1:4]] == [
        "    Calls:          ",
        "    Time Elapsed:   ",
        "    Per Call:       ",
    ]
    assert lines[4].startswith("    CPU Cycles:     ")
    assert lines[5:8] == ["    Gen #:          #"] * 3


def test_standard_output_as_it_is_at_the_end(capsys):
    def redirect():
        sys.stdout = other

    other, before = io.StringIO(), sys.stdout
    try:
        result = codetimer.time("Moved", 3, redirect)
    finally:
        sys.stdout = before
    assert other.getvalue() == str(result)
    assert capsys.readouterr().out == ""


def test_one_write_and_no_flush():
    class Stream(io.StringIO):
        def write(self, text):
            writes.append(text)

        def flush(self):
            writes.append("flush")

    writes = []
    result = codetimer.time("One", 3, int, file=Stream())
    assert writes == [str(result)]


def test_an_empty_name_prints_nothing(capsys):
    stream = io.StringIO()
    assert codetimer.time("", 3, int, file=stream).calls == 3
    codetimer.time("", 3, int)
    assert stream.getvalue() == capsys.readouterr().out == ""


def test_no_standard_output(script):
    done = script(HEAD + "sys.stdout = None\nr = codetimer.time('x', 3, int)\nprint(r.calls, file=sys.stderr)")
    assert (done.returncode, done.stderr) == (0, b"3\n")


def test_lost_standard_output(script):
    done = script("import sys; del sys.stdout" + CAUGHT.format(fn="int", error="RuntimeError"))
    assert done.returncode == 0 and b"lost sys.stdout" in done.stderr and done.stderr.endswith(b" 3\n")


# ---- streams that refuse ----


class Refusing(io.StringIO):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def write(self, text):
        raise self.error


@pytest.mark.parametrize("error", [OSError("full"), ValueError("closed"), KeyboardInterrupt()])
def test_a_file_that_raises(error):
    with pytest.raises(type(error)) as caught:
        codetimer.time("Refused", 5, int, file=Refusing(error))
    assert caught.value is error
    assert codetimer.last_result().name == "Refused" and codetimer.last_result().calls == 5


def test_the_error_of_fn_goes_first():
    error = ZeroDivisionError("mine")

    def fn():
        raise error

    with pytest.raises(ZeroDivisionError) as caught:
        codetimer.time("Both", 5, fn, file=Refusing(OSError("full")))
    assert caught.value is error and error.__context__ is None
    assert codetimer.last_result().name == "Both"


def test_a_closed_file():
    stream = io.StringIO()
    stream.close()
    with pytest.raises(ValueError, match="closed"):
        codetimer.time("Closed", 5, int, file=stream)
    assert codetimer.last_result().name == "Closed"


def test_fn_closes_standard_output(script):
    done = script(CAUGHT.format(fn="sys.stdout.close", error="ValueError"))
    assert b"closed file" in done.stderr and b" 3\n" in done.stderr


def test_descriptor_1_is_closed(script):
    done = script(
        HEAD + "r = codetimer.time('x', 3, int)\nprint(r.calls, file=sys.stderr)", preexec_fn=lambda: os.close(1)
    )
    assert (done.returncode, done.stderr) == (0, b"3\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_device(script):
    code = CAUGHT.format(fn="int", error="OSError")
    with open("/dev/full", "w") as full:
        done = script(code, "-u", stdout=full)
    assert done.stderr.startswith(b"[Errno 28]") and b" 3\n" in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_device_and_an_error_of_fn(script):
    code = CAUGHT.format(fn="lambda: 1 / 0", error="ZeroDivisionError")
    with open("/dev/full", "w") as full:
        done = script(code, "-u", stdout=full)
    assert done.stderr.startswith(b"division by zero 0\n")


def test_a_stream_with_nothing_but_write():
    class Stream:
        def write(self, text):
            texts.append(text)

    texts = []
    result = codetimer.time("Bare µ", 3, int, file=Stream())
    assert texts == [str(result)]


def test_a_stream_with_odd_attributes():
    class Stream(io.StringIO):
        encoding = 5

        def isatty(self):
            raise OSError

    assert report("Odd", file=Stream()).startswith("Odd\n")
    Stream.encoding = "no-such-encoding"
    assert report("Odd", file=Stream()).startswith("Odd\n")


# ---- characters ----


def stream_of(encoding, errors="strict"):
    return io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors=errors, newline="\n")


def written(stream):
    stream.flush()
    return stream.buffer.getvalue().decode(stream.encoding)


@pytest.mark.parametrize(
    "encoding,plain",
    [("utf-8", False), ("utf-16", False), ("cp1252", False), ("ascii", True), ("latin-1", True), ("cp437", True)],
)
def test_signs_are_those_the_stream_can_hold(encoding, plain):
    def fail():
        raise StopIteration

    stream = stream_of(encoding)
    codetimer.time("Signs", 30, lambda: sum(range(40_000)), file=stream)
    with pytest.raises(StopIteration):
        codetimer.time("None", 1, fail, file=stream)
    text = written(stream)
    assert ("+-" in text) is plain and ("±" in text) is not plain
    assert re.search("Per Call: +-\n", text) if plain else re.search("Per Call: +—\n", text)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8", "utf-16"])
@pytest.mark.parametrize("errors", ["strict", "replace"])
def test_a_name_the_stream_cannot_hold_is_escaped(encoding, errors):
    stream = stream_of(encoding, errors)
    codetimer.time("né 漢 \U0001f600", 3, int, file=stream)
    expected = {
        "ascii": r"n\xe9 \u6f22 \U0001f600",
        "latin-1": r"né \u6f22 \U0001f600",
        "cp1252": r"né \u6f22 \U0001f600",
    }.get(encoding, "né 漢 \U0001f600")
    assert written(stream).splitlines()[0] == expected


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_pythonioencoding(encoding, script):
    done = script(ONE.format(name="n漢"), env={"PYTHONIOENCODING": encoding})
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(rb"n\u6f22" + b"\n")
    done.stdout.decode("ascii")


@pytest.mark.parametrize("locale", ["de_DE.UTF-8", "C", "POSIX", "C.UTF-8"])
def test_numbers_are_alike_in_every_locale(locale, script):
    code = HEAD + "import locale\ntry: locale.setlocale(locale.LC_ALL, '')\nexcept locale.Error: pass\n"
    code += "codetimer.time('Größe', 12345, int)\n"
    done = script(code, env={"LC_ALL": locale, "PYTHONIOENCODING": "utf-8"})
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode("utf-8")
    assert text.startswith("Größe\n")
    assert re.search(r"Calls:          12,345\n    Time Elapsed:   [\d,]+\.\d{3} ms\n", text)


@pytest.mark.parametrize(
    "name", ["two\nlines", "\r\b\x07", "\x1b[31mred", "\x00nul\x00", "\x7f\x85\u2028", "\udc80\ud800", "tab\t"]
)
def test_control_characters_and_surrogates_are_escaped(name):
    stream = stream_of("utf-8")
    result = codetimer.time(name, 3, int, file=stream)
    head = written(stream).split("\n")[0]
    assert result.name is name
    assert "\\" in head and head.isprintable()
    assert written(stream) == str(result)
    assert repr(result).startswith(head) and repr(result).isprintable()


def test_a_name_of_10_000_characters():
    name = "näme " * 2000
    stream = stream_of("utf-8")
    codetimer.time(name, 3, int, file=stream)
    assert written(stream).split("\n")[0] == name


def test_a_name_of_a_subclass_of_str():
    class Name(str):
        def __str__(self):
            raise ZeroDivisionError

    name = Name("sub")
    assert codetimer.time(name, 3, int, file=io.StringIO()).name is name


# ---- terminals ----


def on_terminal(script, env):
    """What arrives on a pseudo-terminal."""
    ours, theirs = os.openpty()
    try:
        done = script(ONE.format(name="Tty"), stdout=theirs, env=env)
        assert done.returncode == 0, done.stderr
        return os.read(ours, 65536).decode()
    finally:
        os.close(ours)
        os.close(theirs)


def test_colour_on_a_terminal(script):
    text = on_terminal(script, {"TERM": "xterm"})
    assert text.startswith(f"{YELLOW}Tty{RESET}\r\n") and text.count("\x1b") == 2


@pytest.mark.parametrize(
    "env", [{"TERM": "dumb"}, {"NO_COLOR": "1", "TERM": "xterm"}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}]
)
def test_no_colour_on_a_terminal(env, script):
    assert on_terminal(script, env).startswith("Tty\r\n")


def test_no_colour_without_a_terminal(script):
    assert script(ONE.format(name="Pipe"), env={"TERM": "xterm"}).stdout.startswith(b"Pipe\n")


def test_forced_colour_without_a_terminal(script):
    assert script(ONE.format(name="Pipe"), env={"FORCE_COLOR": "1"}).stdout.startswith(b"\x1b[33mPipe\x1b[0m\n")


def test_no_terminal_at_all(script):
    done = script(ONE.format(name="Alone"), stdin=-3, start_new_session=True)
    assert done.returncode == 0 and done.stdout.startswith(b"Alone\n")
