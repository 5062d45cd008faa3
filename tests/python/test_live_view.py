# SPDX-License-Identifier: MIT
"""Guards View and configure: what is read from outside is what the program measured, switching acts at once, and the
measured process gets no thread and no descriptor from being measured or watched."""

import itertools
import json
import os
import threading
import time

import codetimer
import pytest
from live import command, descriptors, program, sample, threads, wait_until

F = "__main__/__main__.f"

# It knows of each call of f how long it took, seen from inside and from outside: what is measured lies between the two.
LOOP = """
import json, random, threading
random.seed(4)
stop = False
calls, inside, outside = 0, [], []
@codetimer.measured(help="sleeps")
def f():
    start = time.perf_counter_ns()
    time.sleep(random.uniform(0.0005, 0.0015))
    inside.append(time.perf_counter_ns() - start)
@codetimer.measured
def g(): pass
def loop():
    global calls
    while not stop:
        start = time.perf_counter_ns()
        f()
        outside.append(time.perf_counter_ns() - start)
        calls += 1
thread = threading.Thread(target=loop)
say("ready")
hear()
thread.start()
g()
say("running")
while (line := hear()) == "facts":
    say(calls)
stop = True
thread.join()
say(json.dumps([inside, outside, codetimer.counters["__main__.f"].calls]))
hear()
"""


@pytest.fixture
def folder(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path


@pytest.fixture
def running(folder):
    with program(LOOP, folder) as measured:
        measured.hear()
        measured.say()
        measured.hear()
        yield measured


# ---- reading ----


def test_true_averages_and_nothing_added_to_the_process(folder):
    with program(LOOP, folder) as measured:
        measured.hear()
        before = descriptors(measured.pid), threads(measured.pid)
        measured.say()
        measured.hear()
        with codetimer.attach(measured.pid, directory=folder) as view:
            first = view.sample()[F]
            wait_until(lambda: view.sample()[F].calls > first.calls + 300)
            second = view.sample()[F]
            assert (descriptors(measured.pid), threads(measured.pid) - 1) == before  # 1: the program's own
            measured.say("stop")
            inside, outside, counted = json.loads(measured.hear())
            last = view.sample()[F]
        assert last.calls == counted == len(inside) == len(outside) == sum(last.buckets)
        assert 0.999 * sum(inside) <= last.total_ns <= 1.001 * sum(outside)
        assert last.average_ns == pytest.approx(last.total_ns / counted) and type(last) is codetimer.Sample
        window, those = second - first, slice(first.calls, second.calls)
        inside, outside = sorted(inside[those]), sorted(outside[those])
        assert window.calls == len(inside) > 300
        assert 0.999 * sum(inside) <= window.total_ns <= 1.001 * sum(outside)
        half = window.calls // 2
        assert 0.95 * inside[half - 1] <= window.percentile(50) <= 1.05 * outside[half + 1]  # 5 %: a bucket


def test_counters_and_their_help(running, folder):
    with codetimer.attach(running.pid, directory=folder) as view:
        infos = view.counters
        assert infos == {F: (F, True, "sleeps"), F[:-1] + "g": (F[:-1] + "g", True, "")}
        assert view.sample().keys() == infos.keys()
        assert type(infos[F]) is codetimer.CounterInfo


def test_without_buckets(running, folder):
    with codetimer.attach(running.pid, directory=folder) as view:
        wait_until(lambda: view.sample()[F].calls > 5)
        quick = view.sample(buckets=False)[F]
        assert quick.calls > 5 and quick.percentile(50) is None and not any(quick.buckets)
        assert view.sample(True)[F].percentile(50) > 0


def test_removed_and_reset(folder):
    code = """
a, b = (codetimer.timer(name).counter for name in "ab")
a.record(5); b.record(5)
say("ready")
hear()
a.remove(); b.reset(); b.record(7)
say("done")
hear()
"""
    with program(code, folder) as measured:
        measured.hear()
        with codetimer.attach(measured.pid, directory=folder) as view:
            before = view.sample()
            assert {key.rpartition("/")[2] for key in before} == {"a", "b"}
            measured.say()
            measured.hear()
            (key, after), = view.sample().items()
            assert (after.calls, after.total_ns) == (1, 7) and key.endswith("/b")
            with pytest.raises(ValueError, match="was reset"):
                _ = after - before[key]


def test_names_of_all_kinds(folder):
    names = ["grün.x", "a\x1b[31m\nb", "x" * 60_000, "\udc80.y", "a/b/c;d!e#f*g?h\\"]
    code = """
for i, name in enumerate(eval(hear())):
    codetimer.timer(name, category='k').counter.record(i)
say(1)
hear()
"""
    with program(code, folder) as measured:
        measured.say(ascii(names))
        measured.hear()
        with codetimer.attach(measured.pid, directory=folder) as view:
            samples = view.sample()
            expected = ["k/" + name.encode("utf-8", "backslashreplace").decode() for name in names]
            assert [samples[key].total_ns for key in expected] == list(range(len(names)))
            assert list(view.counters) == list(samples)


def test_many_counters(folder):
    code = """
for i in range(20_000):
    codetimer.timer(f"many.n{i}").counter.record(i) if i < 16_384 else codetimer.timer(f"many.n{i}")
say(1)
hear()
"""
    with program(code, folder) as measured:
        measured.hear()
        with codetimer.attach(measured.pid, directory=folder) as view:
            samples = view.sample(buckets=False)
            assert len(samples) == 16_384 and sum(each.total_ns for each in samples.values()) == sum(range(16_384))
            process = view.process
            assert process.counters == 16_384 and process.refused == 20_000 - 16_384
            assert process.last_refused == "many/many.n19999"


# ---- switching ----


def facts(measured):
    measured.say("facts")
    return int(measured.hear().split()[0])


def test_disable_and_enable_act_at_once(running, folder):
    with codetimer.attach(running.pid, directory=folder) as view:
        wait_until(lambda: view.sample()[F].calls > 5)
        view.disable("*.f")
        disabled = view.sample()[F]
        assert not disabled.enabled and not view.counters[F].enabled
        before = facts(running)
        wait_until(lambda: facts(running) > before + 20)  # it goes on, unmeasured
        uncounted = view.sample()[F].calls
        assert uncounted <= disabled.calls + 1
        view.enable("*.f")
        before = facts(running)
        wait_until(lambda: facts(running) > before + 20)
        after = facts(running)
        assert view.sample()[F].calls - uncounted >= after - before - 1  # all but the one that was under way
        assert view.members == "*;*.f"
        wait_until(lambda: view.acknowledged)


def test_set_members(running, folder):
    with codetimer.attach(running.pid, directory=folder) as view:
        assert view.members is None
        for text, f, g in (("*.f", True, False), ("", False, False), ("!*.f", False, True), (None, True, True)):
            view.set_members(text)
            assert view.members == text
            assert [info.enabled for info in view.counters.values()] == [f, g], text
        for wrong in (5, b"x", ["x"]):
            for switch in (view.enable, view.disable, view.set_members):
                with pytest.raises(TypeError, match="members must be a str"):
                    switch(wrong)
        with pytest.raises(TypeError):
            view.enable(None)
        for switch in (view.enable, view.disable, view.set_members):
            with pytest.raises(ValueError, match="65,536"):
                switch("x" * 65_537)
        view.set_members("y" * 65_000)
        with pytest.raises(ValueError, match="65,536"):
            view.enable(";".join(f"{i:>600}" for i in range(2)) + "z" * 600)
        assert view.members == "y" * 65_000


def test_a_wrong_pattern_is_told(running, folder, caplog):
    """As the command line tells it; what would be skipped is not half done."""
    with codetimer.attach(running.pid, directory=folder) as view:
        view.set_members("*.f")
        for switch in (view.enable, view.disable):
            for text, what in (
                ("*.g;ä\\q", r"the pattern 'ä\\\\q' at 4 is wrong: a backslash quotes only "),
                ("ä*;!;", r"the pattern '!' at 3 is wrong: nothing follows"),
            ):
                with pytest.raises(ValueError, match=what):
                    switch(text)
                assert view.members == "*.f"
        with caplog.at_level("INFO", "codetimer"):
            view.set_members("*.g;x\\q")
        (record,) = caplog.records
        assert record.levelname == "WARNING"
        assert record.getMessage().startswith("members pattern skipped: 'x\\\\q' at byte 4: a backslash quotes only ")
        assert [info.enabled for info in view.counters.values()] == [False, True]


def test_members_from_the_environment_and_from_inside(folder):
    code = """
settings = codetimer.configure()
say(settings.members, settings.source)
@codetimer.measured
def f(): pass
@codetimer.measured
def g(): pass
f(); g()
say([counter.calls for counter in codetimer.counters.values()])
say(settings.matches)
hear()
settings = codetimer.configure(members="g*; *.g; f\\\\")
f(); g()
say([counter.calls for counter in codetimer.counters.values()], settings.source, settings.matches)
hear()
say(settings.members, settings.source)
codetimer.configure("*")
say(settings.source)
"""
    with program(code, folder, CODETIMER_MEASURE="*.f") as measured:
        assert measured.hear() == "*.f environment"
        assert measured.hear() == "[1, 0]"
        assert measured.hear() == "[('*.f', 1, None)]"
        with codetimer.attach(measured.pid, directory=folder) as view:
            assert view.members == "*.f"
            measured.say()
            problem = "'it ends in a backslash, which quotes nothing'"
            assert measured.hear() == f"[1, 1] configure [('g*', 0, None), ('*.g', 1, None), ('f\\\\', 0, {problem})]"
            view.enable("*.f")
            measured.say()
            assert measured.hear().endswith(";*.f controller")
            assert measured.hear() == "configure"
        measured.end()
        told = measured.popen.stderr.read()
        assert "members pattern skipped: 'f\\\\' at byte 9: " + problem[1:-1] in told


def test_what_is_skipped_of_the_environment_is_told_once(folder):
    code = 'for name in "a.f", "a.g": codetimer.timer(name).counter.record(1)\nsay("ready")\n'
    for text, told in (
        ("a\\b;*.f;a\\", ["skipped: 'a\\\\b' at byte 0: ", "skipped: 'a\\\\' at byte 8: "]),
        ("*.f;" + "x" * 65_530 + ";*.g;y\\", ["skipped: CODETIMER_MEASURE has 65541 bytes"]),
        ("*.f", []),
    ):
        with program(code, folder, CODETIMER_MEASURE=text) as measured:
            assert measured.hear() == "ready"
            measured.end()
            lines = measured.popen.stderr.read().splitlines()
        assert len(lines) == len(told), lines
        assert all(part in line for part, line in zip(told, lines, strict=True)), lines


def test_configure_arguments():
    for wrong in (5, b"x", ["x"]):
        with pytest.raises(TypeError, match="members must be a str"):
            codetimer.configure(wrong)
    with pytest.raises(ValueError, match="65,536"):
        codetimer.configure("x" * 65_537)
    assert repr(codetimer.configure()).startswith("<codetimer.Settings: members ")


# ---- the life of a view ----


def test_closed(running, folder):
    with codetimer.attach(running.pid, directory=folder) as view:
        assert not view.closed and repr(view) == f"<codetimer.View of process {running.pid}: 2 counters>"
    assert view.closed and repr(view) == "<codetimer.View closed>"
    view.close()
    for use in (
        view.sample, lambda: view.process, lambda: view.segments, lambda: view.counters, lambda: view.members,
        lambda: view.acknowledged, lambda: view.enable("*"), view.__enter__,
    ):  # fmt: skip
        with pytest.raises(ValueError, match="the view is closed"):
            use()
    with pytest.raises(TypeError):
        codetimer.View()


def test_a_view_leaves_no_descriptor(running, folder):
    before = os.listdir("/proc/self/fd")
    for _ in range(5):
        with codetimer.attach(running.pid, directory=folder) as view:
            view.sample()
            view.enable("*")
            codetimer.processes(folder)
    assert os.listdir("/proc/self/fd") == before


def test_two_controllers_at_once(running, folder):
    def switch(names):
        with codetimer.attach(running.pid, directory=folder) as view:
            for name, _ in zip(itertools.cycle(names), range(50), strict=False):
                view.enable(name)

    with codetimer.attach(running.pid, directory=folder) as view:
        view.set_members("none")
        both = [threading.Thread(target=switch, args=(names,)) for names in (["a", "b"], ["c", "d"])]
        for each in both:
            each.start()
        for each in both:
            each.join()
        assert sorted(view.members.split(";")) == ["a", "b", "c", "d", "none"]


def test_a_controller_that_is_killed_leaves_a_whole_text(running, folder):
    code = f"""
with codetimer.attach({running.pid}, directory={str(folder)!r}) as view:
    say("go")
    while True:
        view.set_members("a" * 30000); view.set_members("b" * 60000)
"""
    for delay in (0.0, 0.003, 0.01, 0.02, 0.05):
        with program(code, folder) as controller:
            controller.hear()
            time.sleep(delay)
            controller.popen.kill()
            controller.popen.wait()
        with codetimer.attach(running.pid, directory=folder) as view:
            assert view.members in (None, "*.f", "a" * 30000, "b" * 60000)  # it may have been killed before the first
            view.set_members("*.f")
            assert view.members == "*.f" and view.counters[F].enabled


def state_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def test_a_stopped_process_is_still_read(running, folder):
    os.kill(running.pid, 19)
    try:
        wait_until(lambda: state_of(running.pid) == "T")  # the signal has to arrive first
        found = sample(running.pid, folder, F)
        again = sample(running.pid, folder, F)
        assert found.calls == again.calls
        assert command(folder, "list").stdout.count("live") == 1
    finally:
        os.kill(running.pid, 18)
