# SPDX-License-Identifier: MIT
"""Guards which functions are measured through sys.monitoring, and when that changes: code that was seen before is found
again, what is switched off has no events, nothing is measured twice, nothing keeps code alive, and the end of a thread,
process or interpreter leaves nothing. Fails if a change of the list reaches only code that is new."""

import gc
import logging
import os
import sys
import weakref

import codetimer
import pytest
from codetimer import _codetimer
from conftest import run_script
from measuring import run
from monitoring import MODULE, calls, counter, fresh, make, missing, monitored  # noqa: F401 (fresh is a fixture)

pytestmark = missing

SUBJECT = "def f(): pass\ndef g(): f()\ndef h():\n    yield 1\n"


def info(name):
    return _codetimer._monitoring_info()[name]


def local_events(function):
    return sys.monitoring.get_local_events(info("tool"), function.__code__)


def run_all(subject, number=1):
    for _ in range(number):
        subject.f(), subject.g(), list(subject.h())


# ---- the selection ----


def test_another_selection_reaches_code_seen_before():
    subject = make(SUBJECT)
    with monitored(f"{MODULE}.f"):
        run_all(subject, 300)
        assert calls() == {"f": 600} and info("measured") == 1
        _codetimer._monitoring_start(f"{MODULE}.g;{MODULE}.h")
        run_all(subject, 10)
        assert calls() == {"f": 600, "g": 10, "h": 10}
        assert not local_events(subject.f) and local_events(subject.g) and local_events(subject.h)
        _codetimer._monitoring_start(f"{MODULE}.*")
        run_all(subject)
    assert calls() == {"f": 602, "g": 11, "h": 11}


def test_many_changes():
    subject = make(SUBJECT)
    expected = 0
    with monitored(""):
        for turn in range(100):
            on = turn % 3 == 0
            _codetimer._monitoring_start(f"{MODULE}.f" if on else "none")
            subject.f()
            expected += on
            assert counter("f").calls == expected
    assert info("tool") is None


def test_the_list_of_the_process_switches():
    subject = make(SUBJECT)
    with monitored():
        run_all(subject)
        codetimer.configure(f"!{MODULE}.f")
        _codetimer._monitoring_update()
        assert not local_events(subject.f) and local_events(subject.g)
        run_all(subject)
        assert calls() == {"f": 2, "g": 2, "h": 2}
        codetimer.configure("*")
        _codetimer._monitoring_update()
        run_all(subject)
    assert calls() == {"f": 4, "g": 3, "h": 3}


def test_switched_off_from_outside_without_an_update():
    """The first call that finds its counter disabled switches its own events off."""
    subject = make(SUBJECT)
    with monitored():
        subject.f()
        codetimer.configure("none")
        subject.f()
        assert not local_events(subject.f) and info("measured") == 0
        assert sys.monitoring.get_events(info("tool")) == sys.monitoring.events.PY_START
    assert calls() == {"f": 1}


def test_follows_the_list_of_the_process():
    subject = make(SUBJECT)
    codetimer.configure(f"{MODULE}.f")
    with monitored(None):
        run_all(subject)
        assert calls() == {"f": 2}
        codetimer.configure(f"{MODULE}.*;!{MODULE}.f")
        _codetimer._monitoring_update()
        run_all(subject)
        assert calls() == {"f": 2, "g": 1, "h": 1} and info("members") is None
    assert [key for key in codetimer.counters if "monitoring" in key] == []


def test_without_a_list_nothing_is_followed():
    code = """if 1:
        import codetimer
        from codetimer import _codetimer
        def f(): pass
        _codetimer._monitoring_start(None)
        f()
        print(len(codetimer.counters), _codetimer._monitoring_info()["measured"])
    """
    done = run_script(code)
    assert done.stdout.split() == [b"0", b"0"], done.stderr


def test_removed_and_back():
    subject = make(SUBJECT)
    with monitored(f"{MODULE}.f"):
        subject.f()
        counter("f").remove()
        subject.f(), subject.f()
        assert calls() == {}
        _codetimer._monitoring_start(f"{MODULE}.f")
        subject.f()
        assert calls() == {"f": 1}
        counter("f").reset()
        subject.f(), subject.f()
    assert calls() == {"f": 2}


def test_patterns_that_match_nothing_or_everything():
    subject = make(SUBJECT)
    with monitored("nothing.at.all"):
        run_all(subject)
        assert info("measured") == 0
    with monitored("*"):
        run_all(subject)
        sorted(logging.root.manager.loggerDict)
    assert calls() == {"f": 2, "g": 1, "h": 1}
    assert not [key for key in codetimer.counters if key.startswith("codetimer/")]


def test_main_is_named_after_its_file(tmp_path):
    code = (
        "import codetimer\nfrom codetimer import _codetimer\ndef f(): pass\n"
        "_codetimer._monitoring_start('worker.*')\nf()\nprint(*codetimer.counters)\n"
    )
    assert run(code, name="worker.py", directory=tmp_path) == ["worker/worker.f"]


@pytest.mark.parametrize("members", ["codetimer.*", "*"])
def test_codetimer_itself_is_left_out(members):
    with monitored(members):
        codetimer.time("", 200, make(SUBJECT).f)
    assert not [key for key in codetimer.counters if key.startswith("codetimer/")]


# ---- beside measured ----


def test_what_is_decorated_counts_once():
    subject = make("def f(): pass\nclass T:\n    def m(self): pass\n    @property\n    def p(self): pass\n")
    early = codetimer.measured(subject.f)
    with monitored():
        late = codetimer.measured(subject.T)
        early(), subject.f(), late().m(), late().p
    assert calls() == {"f": 1, "T.m": 1, "T.p": 1}


def test_decorated_while_it_is_measured():
    subject = make(SUBJECT)
    with monitored():
        subject.f()
        stand_in = codetimer.measured(subject.f)
        stand_in(), stand_in()
    assert calls() == {"f": 3}


# ---- the log ----


def told_of(caplog, what):
    """Others are telling the log, too: of the members list."""
    return [message for record in caplog.records if what in (message := record.getMessage())]


def test_the_log_is_told_between_calls_only(caplog):
    """A handler may need a lock that the function is called under."""
    caplog.set_level(logging.INFO, logger="codetimer")
    subject = make(SUBJECT)
    with monitored():
        subject.f()
        assert told_of(caplog, "counter created") == []
        _codetimer._monitoring_update()
        _codetimer._monitoring_update()
    assert told_of(caplog, "counter created") == ["counter created: subject/subject.f"]


def test_increments_are_told(caplog):
    caplog.set_level(logging.DEBUG, logger="codetimer")
    subject = make(SUBJECT)
    codetimer.trace_increments(True)
    try:
        with monitored():
            subject.g(), list(subject.h())
    finally:
        codetimer.trace_increments(False)
    told = [message.rsplit(" by ", 1)[0] for message in told_of(caplog, "increment")]
    assert told == [f"counter subject/subject.{name} incremented" for name in ("f", "g", "h")]
    assert calls() == {"f": 1, "g": 1, "h": 1}


# ---- life ----


def test_nothing_keeps_code_alive():
    with monitored():
        seen = info("seen")
        for number in range(500):
            subject = make(f"def f{number % 10}(): return {number}\ndef unmeasured(): pass\n")
            subject.__dict__[f"f{number % 10}"](), subject.unmeasured()
            gone = weakref.ref(subject.unmeasured.__code__)
            del subject
            gc.collect(0) if number % 50 else gc.collect()
        gc.collect()
        assert gone() is None and info("seen") - seen < 60
    assert sum(calls().values()) == 1_000


def test_codes_that_go_in_mid_measuring():
    with monitored():
        for _ in range(200):
            subject = make("def f(step): step()\n")
            subject.f(subject.__dict__.clear)
            del subject
            gc.collect(0)
    assert calls() == {"f": 200}


def test_full():
    """What there is no room for runs unmeasured, and is switched off."""
    code = """if 1:
        import codetimer
        from codetimer import _codetimer
        source = "".join(f"def f{i}(): return {i}\\n" for i in range(20))
        names = {"__name__": "full"}
        exec(source, names)
        _codetimer._monitoring_start("full.*")
        for _ in range(5):
            assert [names[f"f{i}"]() for i in range(20)] == list(range(20))
        _codetimer._monitoring_update()
        print(len(codetimer.counters), _codetimer._monitoring_info()["measured"])
    """
    done = run_script(code, env={"CODETIMER_MAX_COUNTERS": "7"})
    assert done.stdout.split() == [b"7", b"7"] and b"counter refused" in done.stderr, done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork():
    subject = make("def outer(step): return step()\ndef inner(): pass\n")
    with monitored():
        subject.inner()
        child = subject.outer(os.fork)
        if child == 0:
            subject.inner(), subject.outer(int)
            good = calls() == {"inner": 1, "outer": 1} and counter("outer").in_flight == 0
            os._exit(0 if good else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert calls() == {"outer": 1, "inner": 1}


def test_end_of_the_process_while_it_measures():
    code = """if 1:
        import atexit, sys, threading
        from codetimer import _codetimer
        class Late:
            def __del__(self): late()
        def late(): return [x for x in (1, 2)]
        def suspended():
            try:
                yield Late()
            finally:
                late()
        def wait(event): event.wait()
        _codetimer._monitoring_start("*")
        kept = suspended(); next(kept)
        sys.kept = Late()
        atexit.register(late)
        threading.Thread(target=wait, args=(threading.Event(),), daemon=True).start()
        late()
        print("end")
    """
    done = run_script(code)
    assert done.returncode == 0 and done.stdout.split() == [b"end"] and done.stderr == b""


@pytest.mark.parametrize("end", ["pass", "_codetimer._monitoring_stop()"])
def test_other_interpreters(end):
    interpreters = pytest.importorskip("_xxsubinterpreters" if sys.version_info < (3, 13) else "_interpreters")
    code = f"""if 1:
        import json, codetimer
        from codetimer import _codetimer
        def f(): return json.loads("[1]")
        _codetimer._monitoring_start("*")
        for _ in range(5): f()
        assert codetimer.counters["json.loads"].calls >= 5
        {end}
    """
    subject = make(SUBJECT)
    with monitored():
        subject.f()
        other = interpreters.create()
        failed = interpreters.run_string(other, code)
        interpreters.destroy(other)
        subject.f()
    assert failed is None and calls() == {"f": 2}
