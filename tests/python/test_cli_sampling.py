# SPDX-License-Identifier: MIT
"""Guards the rows that all viewers show: a window is the difference of two samples, and where there is no window, or no
call in it, a value is None and never 0."""

import itertools
import os
import signal
import time
from pathlib import Path

import codetimer
import pytest
from codetimer.cli import paths
from codetimer.cli.sampling import Sampler, _Watched, make_row
from live import program, wait_until

WINDOW = ("rate", "average_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns", "share")
numbers = itertools.count()
PROCESS = codetimer.Process(("p", "live", 5, 6, 7, "shop", "Python 3", "tsc", 1, 0, None, 0, ""))


@pytest.fixture
def folder(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path


@pytest.fixture
def counter():
    made = codetimer.timer(f"rows.n{next(numbers)}").counter
    yield made
    made.remove()


def test_the_first_look_has_no_window(counter):
    counter.record(1000, error=True)
    row = make_row(PROCESS, counter.sample(), None, help="of use")
    assert [getattr(row, field) for field in ("window_ns", "window_calls", *WINDOW)] == [None] * 9
    assert (row.pid, row.start_time, row.program, row.host) == (5, 6, "shop", "Python 3")
    assert (row.lifetime_average_ns, row.calls, row.errors, row.total_ns, row.in_flight) == (1000, 1, 1, 1000, 0)
    assert (row.category, row.member, row.help, row.enabled, row.reset) == ("rows", row.key[5:], "of use", True, False)


def test_a_window(counter):
    counter.record(10_000_000)
    before = counter.sample()
    for duration in (1000, 2000, 3000, 6000):
        counter.record(duration)
    time.sleep(0.01)
    after = counter.sample()
    row = make_row(PROCESS, after, before)
    seconds = (after.time_ns - before.time_ns) / 1e9
    assert row.window_ns == after.time_ns - before.time_ns and row.window_calls == 4
    assert row.rate == pytest.approx(4 / seconds) and row.share == pytest.approx(12_000 / (seconds * 1e9))
    assert row.average_ns == 3000 and row.p50_ns == pytest.approx(2000, rel=0.1)
    assert row.p90_ns == pytest.approx(6000, rel=0.1) and row.p99_ns == pytest.approx(6000, rel=0.1)
    assert 6000 <= row.max_ns <= 6000 * 1.1
    assert row.lifetime_average_ns == after.average_ns and row.calls == 5
    assert paths.parse("*/*/average").value(row) == 3000 and paths.value(row, "total") == 10_012_000
    assert [paths.value(row, name) is not None for name in paths.COUNTERS] == [True] * len(paths.COUNTERS)


def test_no_call_is_none_and_not_0(counter):
    counter.record(1000)
    before = counter.sample()
    row = make_row(PROCESS, counter.sample(), before)
    assert row.window_calls == 0 and [getattr(row, field) for field in WINDOW] == [None] * 7
    assert row.calls == 1


def test_a_reset_has_no_window(counter):
    counter.record(1000)
    before = counter.sample()
    counter.reset()
    counter.record(5)
    row = make_row(PROCESS, counter.sample(), before)
    assert row.reset and row.window_calls is None and row.rate is None and row.calls == 1


def test_a_busy_writer_has_no_window(counter):
    counter.record(1000)
    before = counter.sample()
    counter.record(1000)
    row = make_row(PROCESS, counter.sample(), before, busy=True)
    assert row.busy and row.window_calls is None and row.average_ns is None


def test_a_counter_that_could_never_be_read_has_no_row(counter):
    counter.record(1000)

    class View:
        def __init__(self):
            self.process, self.busy = PROCESS, frozenset([counter.key])
            self.counters = {counter.key: codetimer.CounterInfo((counter.key, True, ""))}

        def sample(self):
            return {counter.key: counter.sample()}

    watched = _Watched(View())
    assert list(watched.sample()) == []
    watched.view.busy = frozenset()
    (row,) = watched.sample()
    assert row.calls == 1 and row.window is None
    watched.view.busy = frozenset([counter.key])
    counter.record(1000)
    (row,) = watched.sample()
    assert row.busy and row.calls == 1


CODE = """
count = codetimer.timer("a.n").counter.record
count(5)
say("ready")
while (line := hear()):
    exec(line)
    say("done")
"""


def do(measured, line):
    measured.say(line)
    assert measured.hear() == "done"


def test_processes_come_and_go(folder):
    with Sampler(directory=str(folder)) as sampler:
        assert sampler.sample().rows == []
        with program(CODE, folder) as first:
            first.hear()
            assert [(row.pid, row.calls, row.window_calls) for row in sampler.sample().rows] == [(first.pid, 1, None)]
            do(first, "count(7); count(7)")
            (row,) = sampler.sample().rows
            assert (row.window_calls, row.average_ns, row.live) == (2, 7, True)
            with program(CODE, folder) as second:
                second.hear()
                do(first, "codetimer.timer('a.new').counter.record(3)")
                rows = sampler.sample().rows
                assert [(row.pid, row.member) for row in rows] == sorted((row.pid, row.member) for row in rows)
                assert {(row.pid, row.member, row.window_calls) for row in rows} == {
                    (first.pid, "a.n", 0), (first.pid, "a.new", None), (second.pid, "a.n", None)
                }  # fmt: skip
                do(first, "codetimer.counters['a.new'].remove()")
                second.end()
            assert [(row.pid, row.member) for row in sampler.sample().rows] == [(first.pid, "a.n")]
        assert sampler.sample().rows == []


def test_only_some_and_those_that_ended_meanwhile(folder):
    with program(CODE, folder) as first, program(CODE, folder) as second:
        first.hear()
        second.hear()
        with Sampler(directory=str(folder), pids=[second.pid]) as sampler:
            assert [row.pid for row in sampler.sample().rows] == [second.pid]
        with Sampler(directory=str(folder)) as sampler, Sampler(directory=str(folder), dead=True) as patient:
            assert len(sampler.sample().rows) == len(patient.sample().rows) == 2
            first.popen.send_signal(signal.SIGKILL)
            first.popen.wait()
            assert [row.pid for row in sampler.sample().rows] == [second.pid]
            for _ in range(2):
                live = {row.pid: (row.live, row.calls) for row in patient.sample().rows}
                assert live == {first.pid: (False, 1), second.pid: (True, 1)}
        with Sampler(directory=str(folder), dead=True) as late:
            assert [row.pid for row in late.sample().rows] == [second.pid]


def test_what_cannot_be_read_is_told(folder):
    (folder / "1-1-0").write_text("garbage")
    with program(CODE, folder) as measured, Sampler(directory=str(folder)) as sampler:
        measured.hear()
        snapshot = sampler.sample()
        assert [row.pid for row in snapshot.rows] == [measured.pid] == [each.pid for each in snapshot.processes]
        assert [Path(process.path).name for process in snapshot.problems] == ["1-1-0"]
    with pytest.raises(OSError), Sampler(directory=str(folder / "missing")) as sampler:
        sampler.sample()


def test_a_file_made_anew_is_followed(folder):
    with program(CODE, folder) as measured, Sampler(directory=str(folder)) as sampler:
        measured.hear()
        assert len(sampler.sample().rows) == 1
        for process in codetimer.processes(folder):
            os.unlink(process.path)
        assert sampler.sample().rows == []

        def again():
            do(measured, "with codetimer.timer('a.n'): pass")
            return codetimer.processes(folder)

        wait_until(again)
        (row,) = sampler.sample().rows
        do(measured, "count(9)")
        assert sampler.sample().rows[0].calls == row.calls + 1


def test_nothing_is_left_open(folder):
    before = os.listdir("/proc/self/fd")
    with program(CODE, folder) as measured:
        measured.hear()
        inside = os.listdir("/proc/self/fd")
        with Sampler(directory=str(folder)) as sampler:
            sampler.sample()
            sampler.sample()
        assert os.listdir("/proc/self/fd") == inside
    assert len(os.listdir("/proc/self/fd")) == len(before)
