# SPDX-License-Identifier: MIT
"""Guards `codetimer top`: what it shows is what the process itself knows, every key does its work, and the terminal is
put back however it ends."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from cli_processes import CLEAR, RECORDER, Screen, Worker, check_window, command, environment, run, wait_for
from codetimer.cli.sampling import Row, Snapshot
from codetimer.cli.table import BY_DIGIT, Layout, Order
from codetimer.cli.text import Symbols, cells, cut, duration, number, printable
from codetimer.cli.top import Top

SIGNS = Symbols("—", "µ", "…", "utf-8")


@pytest.fixture
def folder(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path


@pytest.fixture
def worker(folder):
    with Worker(folder) as process:
        yield process


@pytest.fixture
def recorder(folder):
    with Worker(folder, RECORDER) as process:
        yield process


def make(key="shop/shop.handle", pid=1, **values):
    empty = dict.fromkeys(Row._fields)
    known = {"program": "a.py", "calls": 1, "errors": 0, "in_flight": 0, "live": True, "start_time": 1}
    return Row(**(empty | known | {"key": key, "pid": pid} | values))


# ---- once ----


def test_rates_and_averages_are_those_of_the_process(folder, worker):
    before = worker.truth()
    result = run(folder, "top", "--json", "--interval", "1.5")
    after = worker.truth()
    rows = {row["key"]: row for row in json.loads(result.stdout)["rows"]}
    row = rows["shop/shop.handle"]
    assert row["pid"] == worker.pid
    assert row["window_ns"] >= 1.4e9
    total_ns = row["average_ns"] * row["window_calls"]
    check_window(worker.calls(), before, after, row["window_ns"], row["window_calls"], total_ns)
    assert row["rate"] == pytest.approx(row["window_calls"] / row["window_ns"] * 1e9)
    assert row["share"] == pytest.approx(total_ns / row["window_ns"])
    assert row["p50_ns"] <= row["p99_ns"] <= row["max_ns"]
    assert rows["shop/shop.fail"]["errors"] == rows["shop/shop.fail"]["calls"]


def test_no_call_is_a_dash_and_null_never_0(folder, worker):
    plain = run(folder, "top", "--interval", "0.2")
    line = next(line for line in plain.stdout.splitlines() if "shop.once" in line)
    assert line.split()[3:9] == ["—"] * 6
    document = json.loads(run(folder, "top", "--json", "--interval", "0.2", "shop.once").stdout)
    (row,) = document["rows"]
    assert [row[name] for name in ("rate", "average_ns", "p50_ns", "p99_ns", "max_ns", "share")] == [None] * 6
    assert row["calls"] == 1


def test_a_stream_without_dashes_gets_ascii(folder, worker):
    result = run(folder, "top", "--interval", "0.2", env={"PYTHONIOENCODING": "ascii"})
    line = next(line for line in result.stdout.splitlines() if "shop.once" in line)
    assert line.split()[3:9] == ["-"] * 6
    assert result.stdout.isascii()


def test_paths_and_pids_select(folder, worker):
    backslashes = (r"\shop(shop.handle)", r"\shop(shop.handle)\average")
    for path in ("shop.handle", "shop/shop.h*", *backslashes, "*/*.handle/rate"):
        rows = json.loads(run(folder, "top", "--json", "--interval", "0.1", path).stdout)["rows"]
        assert [row["key"] for row in rows] == ["shop/shop.handle"], path
    assert run(folder, "top", "--interval", "0.1", "--pid", worker.pid).returncode == 0
    assert run(folder, "top", "--interval", "0.1", "--pid", os.getpid()).returncode == 1


def test_what_is_switched_off_is_hidden(folder, worker):
    assert run(folder, "disable", worker.pid, "shop.once").returncode == 0
    keys = [row["key"] for row in json.loads(run(folder, "top", "--json", "--interval", "0.1").stdout)["rows"]]
    assert "shop/shop.once" not in keys and "shop/shop.handle" in keys
    assert "shop/shop.once" in run(folder, "list", worker.pid).stdout


def test_nothing_to_show_says_so(folder):
    result = run(folder, "top", "--interval", "0.1")
    assert result.returncode == 1
    assert result.stdout == ""
    assert "no process publishes" in result.stderr


@pytest.mark.parametrize("arguments", [["--interval", "0"], ["--interval", "x"], ["--interval", "nan"], ["a/b/c\\("]])
def test_wrong_arguments(folder, arguments):
    assert run(folder, "top", *arguments).returncode == 2


def test_dumb_terminals_get_the_plain_table(folder, worker):
    with Screen(command("top", "--interval", "0.2"), environment(folder, TERM="dumb")) as screen:
        assert screen.ended() == 0
        assert "\x1b" not in screen.raw
        assert "shop.handle" in screen.raw


# ---- in a terminal ----


@pytest.fixture
def screen(folder, recorder):
    with Screen(command("top", "--interval", "0.2"), environment(folder)) as shown:
        shown.modes_before = shown.modes()
        shown.wait(r"shop\.handle .* ms .*\d")
        yield shown


def restored(screen):
    return screen.modes() == screen.modes_before and screen.cursor and not screen.alternate


def members(screen):
    return [line.split()[2] for line in screen.text().splitlines()[2:] if "shop." in line]


def wait_for_members(screen, *expected):
    """The frame after next may have an interval in which the recorder did not run."""
    wait_for(lambda: members(screen)[: len(expected)] == list(expected), f"{expected} in\n{screen.text()}")


def test_keys(screen):
    screen.wait("by TIME%")
    wait_for_members(screen, "shop.handle", "shop.fail", "shop.once")
    screen.press("9")
    screen.wait("by ERRORS")
    wait_for_members(screen, "shop.fail")
    screen.press("9")
    screen.wait("by ERRORS upwards")
    wait_for(lambda: members(screen)[2:] == ["shop.fail"])
    screen.press("n")
    screen.wait("by name")
    wait_for_members(screen, "shop.fail", "shop.handle", "shop.once")
    screen.press("z")
    screen.wait("without zeros")
    wait_for(lambda: members(screen) == ["shop.fail", "shop.handle"])
    screen.press("/HAN\r")
    screen.wait("filter HAN")
    wait_for(lambda: members(screen) == ["shop.handle"])
    screen.press("\x1b")
    wait_for(lambda: "filter" not in screen.text().splitlines()[0])
    screen.press("?")
    screen.wait("calls per second in the interval")
    screen.press("x")
    screen.wait("by name")
    screen.press("q")
    assert screen.ended() == 0
    assert restored(screen)
    assert not screen.overflowed


def test_pause_holds_the_frame(screen):
    screen.press("p")
    screen.wait("PAUSED")

    def holds():
        nonlocal frame
        frame = screen.text()
        time.sleep(0.7)
        return screen.text() == frame

    frame = ""
    wait_for(holds, "a frame that stays")  # the first that is read may be half of one
    screen.press("p")
    wait_for(lambda: screen.text() != frame)


def test_refreshing_writes_only_what_changed(screen):
    screen.press("1")  # all of the table is on the screen
    screen.wait("by CALLS/s")

    def refresh():
        begun = len(screen.raw)
        wait_for(lambda: screen.read() and "shop.handle" in screen.raw[begun:], "new values")
        return screen.raw[begun:]

    refresh()  # with it, the frame in which the order changed is complete
    for _ in range(3):
        new = refresh()
        assert CLEAR not in new and "\x1b[J" not in new and "codetimer top" not in new


@pytest.mark.parametrize("size", [(40, 10), (12, 5), (1, 1), (200, 50)])
def test_any_window_size(screen, size):
    screen.resize_and_wait(*size)
    for key, first in (("?", "C"), ("x", "c")):  # the explanation of the columns, and back
        screen.press(key)
        wait_for(lambda first=first: screen.text().startswith(first))
    assert not screen.overflowed
    screen.press("q")
    assert screen.ended() == 0
    assert restored(screen)


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, 0),
        (signal.SIGTERM, 128 + signal.SIGTERM),
        (signal.SIGHUP, 128 + signal.SIGHUP),
        (signal.SIGQUIT, 128 + signal.SIGQUIT),
    ],
)
def test_signals_end_it_with_the_terminal_put_back(screen, number, code):
    os.kill(screen.pid, number)
    assert screen.ended() == code
    assert restored(screen)


def test_a_terminal_that_is_gone_ends_it(folder, worker):
    """Also where the signal for it does not come: the reading or the writing fails."""
    outer, inner = pty.openpty()
    program = subprocess.Popen(
        [sys.executable, "-m", "codetimer", "top", "--interval", "0.1"],
        stdin=inner, stdout=inner, stderr=subprocess.PIPE, env=environment(folder, TERM="xterm"),
    )  # fmt: skip
    os.close(inner)
    with program:
        assert os.read(outer, 10)
        os.close(outer)
        assert (program.wait(60), program.stderr.read()) == (128 + signal.SIGHUP, b"")


def test_ctrl_c_on_the_keyboard(screen):
    screen.press("\x03")
    assert screen.ended() == 0
    assert restored(screen)


def test_an_error_puts_the_terminal_back(folder, worker, tmp_path):
    code = """
    import os, sys
    from codetimer.cli import main, sampling
    good, sign = sampling.Sampler.sample, sys.argv[1]
    def sample(self):
        if os.path.exists(sign):
            raise RuntimeError("on purpose")
        return good(self)
    sampling.Sampler.sample = sample
    sys.exit(main(["top", "--interval", "0.3"]))
    """
    sign = tmp_path / "fail now"
    with Screen([sys.executable, "-c", textwrap.dedent(code), str(sign)], environment(folder)) as screen:
        screen.modes_before = screen.modes()
        screen.wait("shop.handle")
        assert not restored(screen)
        sign.touch()
        assert screen.ended() == 1
        assert restored(screen)
        assert "on purpose" in screen.raw


def test_stopped_and_continued(folder, worker):
    """As a shell does it: the program is in a process group of its own, and the terminal changes hands."""
    shell = """
    import os, signal, subprocess, sys
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpgrp())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execv(sys.executable, [sys.executable, "-m", "codetimer", "top", "--interval", "0.2"])
    os.waitpid(pid, os.WUNTRACED)
    os.tcsetpgrp(0, os.getpgrp())
    input("STOPPED>")
    os.tcsetpgrp(0, pid)
    os.kill(pid, signal.SIGCONT)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """
    with Screen([sys.executable, "-c", textwrap.dedent(shell)], environment(folder)) as screen:
        screen.modes_before = screen.modes()
        screen.wait("shop.handle")
        screen.press("\x1a")
        screen.wait("STOPPED>")
        assert restored(screen)
        screen.cells.clear()
        screen.press("\n")
        screen.wait("shop.handle")
        assert screen.alternate and not screen.cursor
        screen.press("q")
        assert screen.ended() == 0
        assert restored(screen)


def test_rows_of_ended_processes_stay_grey(folder, screen, recorder):
    recorder.process.kill()
    line = screen.wait(r"x +\d+ .*shop\.handle.*")
    assert line[0].split()[4:10] == ["—"] * 6
    assert "\x1b[2mx" in screen.raw
    screen.wait("0 processes")


# ---- the order and the layout ----


def test_rows_do_not_dance():
    """Values that differ by less than a tenth change nothing; those that differ by more do."""
    order = Order(BY_DIGIT["1"])
    first = [make(pid=pid, rate=rate) for pid, rate in ((1, 100.0), (2, 99.0), (3, 50.0), (4, None))]
    assert [row.pid for row in order.sort(first)] == [1, 2, 3, 4]
    wobbled = [make(pid=pid, rate=rate) for pid, rate in ((1, 99.0), (2, 105.0), (3, 50.0), (4, None))]
    assert [row.pid for row in order.sort(wobbled)] == [1, 2, 3, 4]
    moved = [make(pid=pid, rate=rate) for pid, rate in ((1, 99.0), (2, 105.0), (3, 200.0), (4, 1.0))]
    assert [row.pid for row in order.sort(moved)] == [3, 1, 2, 4]
    order.choose(BY_DIGIT["2"])
    order.choose(BY_DIGIT["1"])
    assert [row.pid for row in order.sort(moved)] == [3, 2, 1, 4]


def test_every_width_is_kept():
    rows = [make(key="größe/größe." + "名" * 40, rate=1e9, average_ns=1.0, program="p" * 50), make(pid=2**22, rate=None)]
    for width in range(1, 200):
        for line in Layout(SIGNS).lines(rows, ["!", ""], width):
            assert cells(line) <= width
    wide = Layout(SIGNS).lines(rows, ["!", ""], None)
    assert "名" * 40 in wide[1]


def test_narrow_windows_keep_what_matters():
    rows = [make(rate=100.0, average_ns=1e6, lifetime_average_ns=1e6)]
    header, line = Layout(SIGNS).lines(rows, [""], 36)
    assert header.split() == ["MEMBER", "CALLS/s", "AVG"]
    assert line.split() == ["shop.handle", "100", "1.00", "ms"]


def test_marks_and_their_reasons(folder):
    top = Top(1.0, SIGNS)
    rows = [make(pid=1, unclean=True), make(pid=2, busy=True), make(pid=3)]
    top.look(rows, Snapshot(0, rows, [], []), 0.0)
    top.press("n", 24)
    frame = top.frame(120, 24)
    assert [line.lstrip("\x1b[1m")[0] for line in frame[2:5]] == ["!", "!", " "]
    assert frame[-2] == "! 1 shop/shop.handle: ended in the middle of an update; one call may be half in"


def test_refused_counters_are_marked(folder):
    with Worker(folder, CODETIMER_MAX_COUNTERS="2"):
        result = run(folder, "top", "--interval", "0.1")
    assert all(line.startswith("! ") for line in result.stdout.splitlines()[1:])
    assert re.search(r"codetimer: ! \d+: counters that could not be made: 1, the last one shop/shop\.", result.stderr)


def test_names_cannot_drive_the_terminal():
    hostile = make(key="c/\x1b]0;owned\x07\nnext\udcff")
    line = Layout(SIGNS).lines([hostile], [""], None)[1]
    assert line.isprintable()
    assert r"\x1b]0;owned\x07\nnext\udcff" in line
    assert printable("é—", "ascii") == r"\xe9\u2014"


def test_three_digits():
    assert [number(value) for value in (0, 1.005, 9.994, 9.995, 99.94, 99.96, 1234.5)] == [
        "0.00", "1.00", "9.99", "10.0", "99.9", "100", "1,234",
    ]  # fmt: skip
    assert [duration(ns) for ns in (999.4, 999.6, 1_500_000, 61e9)] == ["999 ns", "1.00 µs", "1.50 ms", "61.0 s"]
    assert cut("abc", 2) == "a…"
