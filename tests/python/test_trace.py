# SPDX-License-Identifier: MIT
"""Guards what the logger "codetimer" is told, and that telling it never disturbs the program. Fails if an event is
missing or twice, if increments come unasked, or if a handler's error or measuring gets into the measured code."""

import functools
import logging

import codetimer
import pytest


class Lines(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append((record.levelname, record.getMessage()))


@pytest.fixture
def log():
    logger = logging.getLogger("codetimer")
    handler, level = Lines(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler.lines
    codetimer.trace_increments(False)
    logger.removeHandler(handler)
    logger.setLevel(level)


def test_events(log):
    counter = codetimer.timer("test.trace").counter
    codetimer.timer("test.trace")
    counter.remove()
    counter.remove()
    codetimer.timer("test.trace").counter.remove()
    assert log == [
        ("INFO", "counter created: test/test.trace"),
        ("DEBUG", "counter already there: test/test.trace"),
        ("INFO", "counter removed: test/test.trace"),
        ("INFO", "counter created: test/test.trace"),
        ("INFO", "counter removed: test/test.trace"),
    ]


def test_no_increment_of_what_does_not_count(log):
    counter = codetimer.timer("test.trace").counter
    for _ in range(2):
        counter.record(2**63 - 1)
    codetimer.trace_increments(True)
    log.clear()
    counter.record(2**63 - 1)  # the total cannot hold it
    counter.record(0)
    counter.remove()
    counter.record(7)
    assert [line for _, line in log if "counter" in line] == [
        "counter test/test.trace incremented by 0 ns",
        "counter removed: test/test.trace",
    ]


def test_increments_when_asked_for(log):
    timer = codetimer.timer("test.trace")
    counter = timer.counter
    with timer:
        pass
    counter.record(5)
    assert len(log) == 1
    assert codetimer.trace_increments(True) is False
    log.clear()
    before = counter.total_ns
    with timer:
        pass
    assert log == [("DEBUG", f"counter test/test.trace incremented by {counter.total_ns - before} ns")]
    with pytest.raises(ValueError, match="mine"), timer:
        raise ValueError("mine")
    counter.record(5)
    assert len(log) == 3 and log[2] == ("DEBUG", "counter test/test.trace incremented by 5 ns")
    assert codetimer.trace_increments(False) is True
    counter.record(5)
    assert len(log) == 3
    counter.remove()


def test_increments_of_measured_functions(log):
    """Also of one that was measured before."""

    @codetimer.measured(name="test.trace")
    def fail():
        raise ValueError("mine")

    codetimer.trace_increments(True)
    log.clear()
    with pytest.raises(ValueError, match="mine"):
        fail()
    counter = codetimer.counters["test.trace"]
    assert log == [("DEBUG", f"counter test/test.trace incremented by {counter.total_ns} ns")] and counter.errors == 1
    counter.remove()


def test_no_increment_where_nothing_counts(log):
    timer = codetimer.timer("test.trace")
    codetimer.trace_increments(True)
    log.clear()
    with timer:
        timer.counter.reset()
    assert log == []
    timer.counter.remove()


def test_increments_obey_the_level(log):
    timer = codetimer.timer("test.trace")
    codetimer.trace_increments(True)
    logging.getLogger("codetimer").setLevel(logging.INFO)
    log.clear()
    with timer:
        pass
    assert log == [] and timer.counter.calls == 1
    timer.counter.remove()


def test_a_handler_that_measures(log):
    class Measuring(logging.Handler):
        def emit(self, record):
            with codetimer.timer("test.handler"):
                pass

    handler = Measuring()
    logging.getLogger("codetimer").addHandler(handler)
    codetimer.trace_increments(True)
    with codetimer.timer("test.trace"):
        pass
    logging.getLogger("codetimer").removeHandler(handler)
    assert len(log) == 2 and codetimer.counters["test.handler"].calls == 2
    codetimer.counters["test.trace"].remove()
    codetimer.counters["test.handler"].remove()


def test_a_filter_that_fails(log, monkeypatch):
    seen = []
    monkeypatch.setattr("sys.unraisablehook", seen.append)

    def fail(record):
        raise RuntimeError("in the filter")

    logger = logging.getLogger("codetimer")
    logger.addFilter(fail)
    codetimer.trace_increments(True)
    with pytest.raises(ValueError, match="mine"), codetimer.timer("test.trace"):
        raise ValueError("mine")
    logger.removeFilter(fail)
    assert [str(one.exc_value) for one in seen] == ["in the filter"] * 2
    assert codetimer.counters["test.trace"].errors == 1
    codetimer.counters["test.trace"].remove()


def test_ctrl_c_in_a_handler(log):
    def interrupt(record):
        logger.removeFilter(interrupt)
        raise KeyboardInterrupt

    logger = logging.getLogger("codetimer")
    logger.addFilter(interrupt)
    with pytest.raises(KeyboardInterrupt):
        codetimer.timer("test.trace")
        for _ in range(100):
            pass
    codetimer.counters["test.trace"].remove()


def test_logging_is_not_imported(script):
    done = script(
        "import codetimer, sys\n"
        "with codetimer.timer('x'): pass\n"
        "codetimer.counters['x'].remove()\n"
        "codetimer.trace_increments(True)\n"
        "with codetimer.timer('x'): pass\n"
        "print('logging' in sys.modules)"
    )
    assert done.stdout == b"False\n" and done.stderr == b""


def test_refusal_is_told_once(script):
    done = script(
        "import codetimer\n"
        "for i in range(5):\n"
        "    with codetimer.timer(f'm{i}'): pass\n"
        "print(codetimer.counters.refused)",
        env={"CODETIMER_MAX_COUNTERS": "2"},
    )
    assert done.stdout == b"3\n"
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("counter refused: main/m2; ") and "CODETIMER_MAX_COUNTERS" in line


def refusals(log):
    told = [line for level, line in log if level == "WARNING"]
    log.clear()
    return told


def test_a_name_that_is_not_taken(log):
    """What is measured keeps its name: another one is told, the same and none are not."""

    @codetimer.measured(name="a.one")
    def function():
        pass

    def again(what=function, **labels):
        assert codetimer.measured(what, **labels) is what
        return refusals(log)

    end = ", for what is measured already, as a/a.one, and stays so"
    assert again() == again(name="a.one") == again(category="a") == again(name="a.one", category="a") == []
    assert again(name="b.two") == ["name not taken: b.two" + end]
    assert again(category="b") == ["name not taken: b/a.one" + end]
    assert again(name="two", category="b") == ["name not taken: b/two" + end]
    assert again(property(function), name="b.two") == ["name not taken: b.two" + end]
    assert again(functools.wraps(function)(lambda: function()), category="b") == ["name not taken: b/a.one" + end]
    decorate = codetimer.measured(name="b.two")
    assert decorate(function) is function
    assert refusals(log) == ["name not taken: b.two" + end]


def test_methods_keep_their_names_in_a_measured_class(log):
    """What is said of the class is not said of those, so there is nothing to tell."""

    @codetimer.measured(category="shop")
    class Order:
        @codetimer.measured(name="own.total")
        def total(self):
            pass

        def plain(self):
            pass

    assert refusals(log) == []
    assert {"own/own.total"} == {key for key in codetimer.counters if key.endswith("own.total")}
    codetimer.measured(Order().total, name="other")
    assert refusals(log) == ["name not taken: other, for what is measured already, as own/own.total, and stays so"]
