# SPDX-License-Identifier: MIT
"""Guards: initialize says what it obtained, and what it changed is put back exactly, by the thread that changed it; the
clock and the cycles are described without invented values. Every test runs where priority may be refused."""

import os
import sys
import threading

import codetimer
import pytest


def raw():
    return os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), os.sched_getaffinity(0)


def test_it_is_obtained_and_put_back():
    before = raw()
    with codetimer.initialize() as environment:
        priority = environment.priority
        assert priority.requested == "high" and priority.previous == f"nice {before[0]}"
        if priority.status == "CT_OK":
            assert (
                raw()[0] == min(before[0], -10) and priority.effective == f"nice {raw()[0]}" and priority.reason == ""
            )
        else:
            assert priority.status == "CT_EPERM" and raw() == before and priority.reason
        assert priority.restored is False
    assert raw() == before
    assert environment.priority.restored is True


def test_restore_is_idempotent():
    before = raw()
    environment = codetimer.initialize("highest")
    assert [environment.restore() for _ in range(3)] == [True] * 3
    assert raw() == before


def test_they_nest():
    before = raw()
    with codetimer.initialize():
        middle = raw()
        with codetimer.initialize("highest", cpu=min(os.sched_getaffinity(0))):
            pass
        assert raw() == middle
    assert raw() == before


def test_none_leaves_the_priority():
    before = raw()
    with codetimer.initialize(None) as environment:
        assert raw() == before
        assert environment.priority.requested is None and environment.priority.cpu is None


def test_a_cpu():
    cpu = max(os.sched_getaffinity(0))
    with codetimer.initialize(priority=None, cpu=cpu) as environment:
        assert os.sched_getaffinity(0) == {cpu}
        assert (environment.priority.cpu, environment.priority.cpu_status) == (cpu, "CT_OK")


def test_a_cpu_that_is_not_there_is_a_fact():
    before = raw()
    with codetimer.initialize(None, 2**31 - 1) as environment:
        assert environment.priority.cpu_status != "CT_OK"
        assert raw() == before


def test_another_thread_is_refused():
    def restore():
        try:
            environment.restore()
        except RuntimeError as error:
            errors.append(str(error))

    errors = []
    environment = codetimer.initialize()
    during = raw()
    thread = threading.Thread(target=restore)
    thread.start()
    thread.join()
    assert "another thread" in errors[0]
    assert raw() == during
    assert environment.restore() is True


def test_an_exception_on_its_way_is_not_replaced():
    def leave(*raised):
        try:
            outcomes.append(environment.__exit__(*raised))
        except RuntimeError as error:
            outcomes.append(type(error))

    outcomes = []
    environment = codetimer.initialize()
    for raised in (ZeroDivisionError, ZeroDivisionError(), None), (None, None, None):
        thread = threading.Thread(target=leave, args=raised)
        thread.start()
        thread.join()
    environment.restore()
    assert outcomes == [None, RuntimeError]


def test_what_someone_else_changed_is_left(script):
    code = """
import codetimer, os
e = codetimer.initialize()
if e.priority.status == "CT_OK":
    os.setpriority(os.PRIO_PROCESS, 0, 3)
    assert e.restore() is False
    assert os.getpriority(os.PRIO_PROCESS, 0) == 3
"""
    done = script(code)
    assert (done.returncode, done.stderr) == (0, b"")


def test_dropping_it_restores_nothing(script):
    code = """
import codetimer, os
was = codetimer.initialize().priority
print(was.effective == f"nice {os.getpriority(os.PRIO_PROCESS, 0)}")
"""
    assert script(code).stdout == b"True\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become nobody")
def test_an_unprivileged_user(script):
    code = """
import codetimer, os, resource
resource.setrlimit(resource.RLIMIT_NICE, (0, 0))
resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))
os.setgroups([]); os.setgid(65534); os.setuid(65534)
for level in "high", "highest", "realtime":
    with codetimer.initialize(level) as e:
        p = e.priority
        assert (p.status, p.previous, p.effective) == ("CT_EPERM", "nice 0", "nice 0"), p
        assert p.reason, p
        assert "nice 0" in str(e), str(e)
    assert e.restore() is True
    assert os.getpriority(os.PRIO_PROCESS, 0) == 0
print(codetimer.time("Unprivileged", 1000, int).priority)
"""
    done = script(code)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"Unprivileged\n") and done.stdout.endswith(b"nice 0\n")


def test_a_run_says_its_priority():
    with codetimer.initialize() as environment:
        assert codetimer.time("", 1, int).priority == environment.priority.effective
    assert codetimer.time("", 1, int).priority == environment.priority.previous


def test_texts():
    with codetimer.initialize(None) as environment:
        assert str(environment).splitlines()[0].startswith("Priority: ")
        assert repr(environment).startswith("<codetimer.Environment: nice ")


def test_it_cannot_be_changed():
    with codetimer.initialize(None) as environment:
        for name in "priority", "clock", "new":
            with pytest.raises(AttributeError):
                setattr(environment, name, 1)
    with pytest.raises(TypeError):
        codetimer.Environment()


def test_clock_info():
    clock = codetimer.clock_info()
    assert clock._fields if hasattr(clock, "_fields") else clock.n_fields == 5
    assert clock.source in ("tsc", "cntvct", "monotonic", "monotonic (system call)", "qpc", "mach")
    assert clock.resolution_ns > 0 and clock.read_cost_ns > 0 and clock.reason
    assert clock.frequency_hz is None or clock.frequency_hz > 1e6
    assert codetimer.initialize(None).clock.source == clock.source


@pytest.mark.parametrize("choice", ["monotonic", "tsc"])
def test_the_choice_of_clock(choice, script):
    done = script(
        "import codetimer\nprint(codetimer.clock_info().source)\ncodetimer.time('x', 9, int)",
        env={"CODETIMER_CLOCK": choice},
    )
    assert done.returncode == 0 and (choice == "tsc" or done.stdout.startswith(b"monotonic"))


def test_thread_cycles():
    cycles = codetimer.thread_cycles()
    assert cycles.kind in ("core", "reference", "none")
    assert (cycles.value is None) == (cycles.kind == "none")
    assert (cycles.reason == "") == (cycles.kind == "core")
    if cycles.value is not None:
        assert codetimer.thread_cycles().value > cycles.value


def test_now_ns():
    readings = [codetimer.now_ns() for _ in range(10_000)]
    assert readings == sorted(readings) and readings[0] < readings[-1]


def test_infos_are_tuples_by_name():
    for info in codetimer.clock_info(), codetimer.thread_cycles(), codetimer.initialize(None).priority:
        assert len(info) == type(info).n_fields and type(info).__module__ == "codetimer"
        with pytest.raises(AttributeError):
            info.reason = ""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux words")
def test_module_version():
    assert codetimer.__version__.count(".") == 2
