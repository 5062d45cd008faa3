# SPDX-License-Identifier: MIT
"""Guards our place among the tools of sys.monitoring: one free id that is given back, other tools' ids, events and
DISABLEs untouched, coverage, cProfile, tracers and debuggers beside it undisturbed. Fails if an event of another tool
is lost or comes again."""

import contextlib
import cProfile
import io
import pdb
import pstats
import sys

import pytest
from codetimer import _codetimer
from conftest import run_script
from monitoring import MODULE, calls, fresh, make, missing, monitored  # noqa: F401 (fresh is a fixture)

pytestmark = missing


@contextlib.contextmanager
def taken(*ids):
    for tool in ids:
        sys.monitoring.use_tool_id(tool, f"tool{tool}")
    try:
        yield
    finally:
        for tool in ids:
            sys.monitoring.set_events(tool, 0)
            sys.monitoring.free_tool_id(tool)


def test_the_first_free_id():
    for others, ours in ((), 3), ((3,), 4):
        with taken(*others), monitored():
            assert _codetimer._monitoring_info()["tool"] == ours
            assert sys.monitoring.get_tool(ours) == "codetimer"
        assert sys.monitoring.get_tool(ours) is None


def test_our_id_is_as_new_for_the_next_user():
    subject, seen = make("def f(): pass\ndef g(): pass\n"), []
    with monitored(f"{MODULE}.f"):
        subject.f(), subject.g()
    with taken(3):
        sys.monitoring.register_callback(3, sys.monitoring.events.PY_START, lambda code, at: seen.append(code.co_name))
        sys.monitoring.set_events(3, sys.monitoring.events.PY_START)
        subject.f(), subject.g()
        sys.monitoring.set_events(3, 0)
        sys.monitoring.register_callback(3, sys.monitoring.events.PY_START, None)
    assert [name for name in seen if name in "fg"] == ["f", "g"]


def test_no_free_id():
    with taken(3, 4):
        with pytest.raises(RuntimeError, match=r"no free tool id.*3 is used by 'tool3' and 4 by 'tool4'.*stop one"):
            _codetimer._monitoring_start("*")
        assert _codetimer._monitoring_info()["tool"] is None
    with monitored():
        make("def f(): pass\n").f()
    assert calls() == {"f": 1}


def test_wrong_arguments_change_nothing():
    for arguments in (), (5,), (b"x",), ("a" * 65_537,), ("x", 5):
        with pytest.raises((TypeError, ValueError)):
            _codetimer._monitoring_start(*arguments)
    assert _codetimer._monitoring_info()["tool"] is None


def test_events_of_another_tool_are_neither_lost_nor_repeated():
    subject = make("def f(): return 1\ndef g(): return f()\n")
    events, seen = sys.monitoring.events, []
    with taken(4):

        def on_start(code, at):
            seen.append(code.co_name)
            return sys.monitoring.DISABLE if code.co_name == "f" else None

        sys.monitoring.register_callback(4, events.PY_START, on_start)
        for function in (subject.f, subject.g):
            sys.monitoring.set_local_events(4, function.__code__, events.PY_START)
        subject.g(), subject.g()
        with monitored(f"{MODULE}.none"):
            subject.g()
            _codetimer._monitoring_start(f"{MODULE}.*")
            subject.g()
            _codetimer._monitoring_start(f"{MODULE}.g")
            subject.g()
        subject.g()
        for function in (subject.f, subject.g):
            assert sys.monitoring.get_local_events(4, function.__code__) == events.PY_START
        sys.monitoring.register_callback(4, events.PY_START, None)
    assert seen == ["g", "f", "g", "g", "g", "g", "g"]
    assert calls() == {"f": 1, "g": 2}


def test_another_tool_has_all_events_start_anew():
    subject = make("def f(): pass\ndef g(): pass\n")
    with monitored(f"{MODULE}.f"):
        for _ in range(3):
            subject.f(), subject.g()
            sys.monitoring.restart_events()
    assert calls() == {"f": 3}


def test_our_id_is_taken_from_us():
    """What somebody else does with our id is an end of the measuring, not of the program."""
    subject = make("def f(): pass\ndef g(): pass\n")
    _codetimer._monitoring_start(f"{MODULE}.*")
    subject.f()
    sys.monitoring.set_events(3, 0)
    sys.monitoring.free_tool_id(3)
    subject.f(), subject.g()
    _codetimer._monitoring_update()
    _codetimer._monitoring_stop()
    with monitored():
        subject.f()
    assert calls()["f"] >= 2


def test_callbacks_are_for_the_interpreter():
    with monitored():
        ours = [sys.monitoring.register_callback(3, 1 << bit, None) for bit in range(4)]
        for callback in filter(None, ours):
            for arguments in (), (1,), (1, 2), (None, None, None):
                with contextlib.suppress(TypeError):
                    callback(*arguments)
    for callback in filter(None, ours):
        callback(test_no_free_id.__code__, 0)


# ---- other tools ----

COVERED = """
import sys, types
import coverage
cover = coverage.Coverage(data_file=None, include=["*/covered.py"])
{before}
cover.start()
{after}
import covered
for _ in range(3): covered.f(1), covered.f(0)
{end}
cover.stop()
print(sorted(cover.get_data().lines(covered.__file__)))
import codetimer
print([c.calls for c in codetimer.counters.values() if c.member == "covered.f"])
"""

START = 'from codetimer import _codetimer; _codetimer._monitoring_start("covered.*")'


@pytest.mark.parametrize("core", ["sysmon", "ctrace", "pytrace"])
@pytest.mark.parametrize("first", [True, False])
def test_coverage(core, first, tmp_path):
    pytest.importorskip("coverage")
    source = "def f(x):\n    if x:\n        return 1\n    return g()\ndef g():\n    return 2\n"
    (tmp_path / "covered.py").write_text(source)
    end = "_codetimer._monitoring_stop()"
    code = COVERED.format(before=START if first else "", after="" if first else START, end=end)
    environment = {"COVERAGE_CORE": core}
    done = run_script(f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n" + code, "-W", "ignore", env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().splitlines() == ["[1, 2, 3, 4, 5, 6]", "[6]"]


def test_profiler():
    subject = make("def f(): g()\ndef g(): pass\n")
    profile = cProfile.Profile()
    with monitored():
        subject.f()
        profile.enable()
        subject.f()
        profile.disable()
        subject.f()
    assert calls() == {"f": 3, "g": 3}
    counts = {key[2]: value[0] for key, value in pstats.Stats(profile).stats.items()}
    assert (counts["f"], counts["g"]) == (1, 1)


def test_trace_functions():
    subject = make("def f(): g()\ndef g(): pass\n")
    traced, profiled = [], []

    def trace(frame, event, argument):
        traced.append((frame.f_code.co_name, event))
        return trace

    with monitored():
        before = sys.gettrace(), sys.getprofile()
        sys.settrace(trace)
        sys.setprofile(lambda frame, event, argument: profiled.append((frame.f_code.co_name, event)))
        subject.f()
        sys.setprofile(before[1])
        sys.settrace(before[0])
        subject.f()
    assert calls() == {"f": 2, "g": 2}
    for name in "f", "g":
        assert (name, "call") in traced and (name, "return") in traced
        assert profiled.count((name, "call")) == profiled.count((name, "return")) == 1


def test_debugger():
    subject = make("def f():\n    x = g()\n    return x\ndef g(): return 2\n")
    before = sys.gettrace()
    commands, output = io.StringIO("step\n" * 4 + "continue\n"), io.StringIO()
    with monitored():
        debugger = pdb.Pdb(stdin=commands, stdout=output, nosigint=True, readrc=False)
        debugger.use_rawinput = False
        debugger.prompt = ""
        assert debugger.runcall(subject.f) == 2
    sys.settrace(before)
    assert calls() == {"f": 1, "g": 1} and "g()" in output.getvalue()
