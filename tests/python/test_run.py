# SPDX-License-Identifier: MIT
"""Guards: fn is called exactly n times, whatever ends the run; what ends it comes out as it is; the figures agree."""

import _thread
import functools
import gc
import itertools
import signal
import sys
import time
import traceback
import warnings

import codetimer
import pytest

COUNTS = (0, 1, 2, 7, 63, 64, 65, 1000, 1000003)


def counting():
    def fn():
        nonlocal calls
        calls += 1

    calls = 0
    return fn, lambda: calls


@pytest.mark.parametrize("n", COUNTS)
def test_exactly_n_calls_of_python(n):
    fn, calls = counting()
    result = codetimer.time("", n, fn)
    assert (calls(), result.n, result.calls) == (n, n, n)
    assert sum(result.batches_calls) == n


@pytest.mark.parametrize("n", COUNTS)
def test_exactly_n_calls_of_c(n):
    counter = itertools.count()
    result = codetimer.time("", n, counter.__next__)
    assert (next(counter), result.calls) == (n, n)


class WithoutVectorcall:
    calls = 0

    def __call__(self):
        self.calls += 1


@pytest.mark.parametrize("n", (0, 1, 7, 1000))
def test_exactly_n_calls_of_other_callables(n):
    fn = WithoutVectorcall()
    codetimer.time("", n, fn)
    codetimer.time("", n, functools.partial(fn))
    codetimer.time("", n, fn.__call__)
    assert fn.calls == 3 * n
    assert codetimer.time("", n, int).calls == n


@pytest.mark.parametrize("at", [*range(300), 5000, 999_999])
def test_an_error_at_call_k_of_python(at, capsys):
    def fn():
        nonlocal calls
        calls += 1
        if calls > at:
            raise error

    calls, error = 0, ValueError("mine")
    with pytest.raises(ValueError) as caught:
        codetimer.time("Fails", 1_000_000, fn)
    result = codetimer.last_result()
    assert caught.value is error and error.__context__ is None and error.__cause__ is None
    assert (result.calls, result.n, calls) == (at, 1_000_000, at + 1)
    assert result.interrupted == "ValueError"
    assert f"{at:,} of 1,000,000 (ValueError)" in capsys.readouterr().out
    frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert frames == ["test_an_error_at_call_k_of_python", "fn"]


@pytest.mark.parametrize("at", (0, 1, 2, 63, 64, 65, 1000, 99_999))
def test_an_error_at_call_k_of_c(at):
    with pytest.raises(StopIteration):
        codetimer.time("", 100_000, iter(range(at)).__next__)
    assert codetimer.last_result().calls == at
    assert codetimer.last_result().interrupted == "StopIteration"


def test_arguments_missing_is_an_error_of_the_first_call():
    with pytest.raises(TypeError, match="missing 1 required positional argument") as caught:
        codetimer.time("", 1000, lambda x: x)
    assert codetimer.last_result().calls == 0
    assert len(traceback.extract_tb(caught.value.__traceback__)) == 1


@pytest.mark.parametrize(
    "error,word", [(KeyboardInterrupt, "interrupted"), (SystemExit, "SystemExit"), (GeneratorExit, "GeneratorExit")]
)
def test_what_is_no_exception_ends_the_run_too(error, word):
    def fn():
        raise error

    with pytest.raises(error):
        codetimer.time("", 9, fn)
    assert codetimer.last_result().interrupted == word


def test_an_exception_name_that_is_no_text():
    class Meta(type):
        __name__ = property(lambda cls: 5)

    class Odd(Exception, metaclass=Meta):
        pass

    def fn():
        raise Odd

    with pytest.raises(Odd):
        codetimer.time("", 9, fn)
    assert codetimer.last_result().interrupted == "error"


def interrupted_by_signal(fn):
    """Ends a run of fn by a signal whose handler raises, during its calls."""

    def handler(number, frame):
        raise KeyboardInterrupt

    codetimer.time("", 0, fn)
    previous = signal.signal(signal.SIGALRM, handler)
    try:
        delay = 0.05
        while codetimer.last_result().calls == 0:
            signal.setitimer(signal.ITIMER_REAL, delay)
            delay *= 2
            with pytest.raises(KeyboardInterrupt):
                codetimer.time("", 2**62, fn)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    return codetimer.last_result()


def test_calls_completed_before_a_signal():
    for _ in range(5):
        counter = itertools.count()
        result = interrupted_by_signal(counter.__next__)
        assert (result.calls, result.interrupted) == (next(counter), "interrupted")
        fn, calls = counting()
        result = interrupted_by_signal(fn)
        assert (result.calls, result.interrupted) == (calls(), "interrupted")


CTRL_C = """
import codetimer, itertools, os, signal, sys, threading, time
def send():
    time.sleep(0.1)
    global sent
    sent = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)
counter = itertools.count()
fn = {fn}
thread = threading.Thread(target=send)
thread.start()
try:
    codetimer.time("Long", 2**62, fn)
except KeyboardInterrupt:
    print(time.monotonic() - sent)
    assert codetimer.last_result().interrupted == "interrupted"
    thread.join()
"""


# Calls of nanoseconds, then of milliseconds.
TURNS_SLOW = "itertools.chain(itertools.repeat(0, 10**6), map(sum, itertools.repeat(range(100_000)))).__next__"


@pytest.mark.parametrize(
    "fn",
    ["counter.__next__", "lambda: None", "memoryview(bytes(10**6)).tobytes", "lambda: sum(range(1000))", TURNS_SLOW],
)
def test_ctrl_c_arrives_at_once(fn, script, capsys):
    latencies = []
    while not latencies or (min(latencies) >= 0.05 and len(latencies) < 10):  # the machine may be busy
        done = script(CTRL_C.format(fn=fn))
        assert done.returncode == 0, done.stderr
        output = done.stdout.decode()
        assert "(interrupted)" in output
        latencies.append(float(output.split()[-1]))
    with capsys.disabled():
        print(f" {min(latencies) * 1000:.1f} ms", end="")
    assert min(latencies) < 0.05


@pytest.mark.parametrize("error,word", [(KeyboardInterrupt, "interrupted"), (ZeroDivisionError, "ZeroDivisionError")])
def test_an_exception_before_the_first_call(error, word, capsys):
    """A signal comes during the full collection: the finalizer of a piece of garbage sends it (in C, for in Python code
    the handler would be called at once, and its exception lost)."""

    class Garbage:
        __del__ = staticmethod(functools.partial(_thread.interrupt_main, signal.SIGALRM))

        def __init__(self):
            self.me = self

    def handler(number, frame):
        raise error

    fn, calls = counting()
    last = codetimer.time("", 1, int)
    previous = signal.signal(signal.SIGALRM, handler)
    try:
        gc.collect()
        Garbage()
        with pytest.raises(error):
            codetimer.time("Early", 100, fn)
    finally:
        signal.signal(signal.SIGALRM, previous)
    result = codetimer.last_result()
    assert result is not last
    assert (calls(), result.calls, result.n, result.interrupted) == (0, 0, 100, word)
    assert capsys.readouterr().out.startswith(f"Early\n    Calls:          0 of 100 ({word})\n")
    assert set(result.gc_collections) == {0} and result.notes == ()


def test_all_calls_come_from_one_place():
    """As in a loop: what is shown once for each place that calls fn is shown once in a run, and again in the next."""

    def fn():
        frame = sys._getframe(1)
        places.add((frame.f_code.co_filename, frame.f_lineno, id(frame.f_globals)))
        warnings.warn("mine", UserWarning, stacklevel=2)

    places = set()
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        codetimer.time("", 1000, fn)
        assert (len(shown), len(places)) == (1, 1)
        codetimer.time("", 1, fn)
        assert len(shown) == 2


def test_figures_agree():
    result = codetimer.time("", 20_000, lambda: None)
    assert len(result.batches_ns) == len(result.batches_calls)
    assert sum(result.batches_ns) == result.elapsed_ns > 0
    assert min(a / b for a, b in zip(result.batches_ns, result.batches_calls, strict=True)) <= result.per_call_ns
    assert result.cycles > 0 and result.cycles_kind in ("core", "reference")


def test_elapsed_is_the_time_inside_the_calls():
    result = codetimer.time("", 3, lambda: time.sleep(0.02))
    assert result.elapsed_ns >= 60_000_000
    assert result.per_call_ns >= 20_000_000


def test_no_call_has_no_price():
    result = codetimer.time("", 0, int)
    assert (result.elapsed_ns, result.per_call_ns, result.batches_ns, result.interrupted) == (0, None, (), None)


def test_a_result_of_many_calls_is_no_larger():
    ctypes = pytest.importorskip("ctypes")
    fields = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    info = type("Info", (ctypes.Structure,), {"_fields_": [(field, ctypes.c_size_t) for field in fields]})
    mallinfo2 = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if mallinfo2 is None:
        pytest.skip("needs glibc's mallinfo2")
    mallinfo2.restype = info

    def size(n):
        codetimer.time("", n, fn)  # warm
        kept = [None]
        gc.collect()
        before = mallinfo2().uordblks
        kept[0] = codetimer.time("", n, fn)
        held = mallinfo2().uordblks
        assert len(kept[0].batches_ns) <= 1024
        last = codetimer.time("", 0, fn)
        del last
        return held - before, sys.getsizeof(kept[0])

    fn = {}.clear
    small, large = size(10**3), size(10**7)
    assert large == small


def test_last_result_before_the_first(script):
    done = script(
        "import codetimer; print(codetimer.last_result()); codetimer.time('', 1, int); print(codetimer.last_result().n)"
    )
    assert done.stdout.split() == [b"None", b"1"]


def test_time_inside_time():
    inner = []
    outer = codetimer.time("", 10, lambda: inner.append(codetimer.time("", 100, int)))
    assert [result.calls for result in inner] == [100] * 10
    assert outer.calls == 10 and codetimer.last_result() is outer
    assert outer.elapsed_ns > sum(result.elapsed_ns for result in inner)


def test_fn_that_drops_itself():
    def fn():
        for holder in holders:
            holder.clear()

    holders = [[]]
    holders[0].append(fn)
    assert codetimer.time("", 1000, holders[0][0]).calls == 1000
