# SPDX-License-Identifier: MIT
"""Guards: other threads go on during a run, several threads, forked children and interpreters can measure at once."""

import ctypes
import functools
import io
import itertools
import os
import sys
import threading
import time
import traceback

import codetimer
import pytest

# Another thread does 200 pieces of Python work and only then stops the run: where it cannot run, the run never ends.
GO_ON = """
import codetimer, itertools, os, signal, threading, time
def work():
    for i in range(200):
        sum(range(1000))
        time.sleep(0.0001)
    os.kill(os.getpid(), signal.SIGINT)
thread = threading.Thread(target=work)
thread.start()
counter = itertools.count()
try:
    codetimer.time("Long", 2**62, {fn})
except KeyboardInterrupt:
    print(codetimer.last_result().interrupted)
thread.join()
"""


@pytest.mark.parametrize(
    "fn", ["counter.__next__", "lambda: None", "memoryview(bytes(10**6)).tobytes", "sorted(range(10)).sort"]
)
def test_other_threads_go_on(fn, script):
    done = script(GO_ON.format(fn=fn))
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.endswith(b"interrupted\n")


def value_of(counter):
    """What an itertools.count gives next, without taking it."""
    return int(repr(counter)[len("count(") : -1])


def count_slow_calls_between_turns():
    """A million calls of nanoseconds, then some of milliseconds: how many of these another thread waits for at most."""

    def watch():
        last = 0
        while runs.is_alive():
            time.sleep(0.001)
            now = value_of(slow)
            steps.append(now - last)
            last = now

    steps, slow = [], itertools.count()
    body = itertools.chain(itertools.repeat(0, 1_000_000), map(sum, itertools.repeat(range(400_000)), slow))
    runs = threading.Thread(target=codetimer.time, args=("", 1_000_100, functools.partial(next, body)))
    runs.start()
    watch()
    runs.join()
    return max(steps)


def test_others_get_in_where_calls_turn_slow():
    """Not as many calls as would have been quick before. One time in ten is enough: the machine may be busy."""
    assert any(count_slow_calls_between_turns() <= 10 for _ in range(10))


class Stop(Exception):
    pass


def send_stop(thread, counter):
    while value_of(counter) < 100_000:
        time.sleep(0.001)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Stop))


def test_an_exception_of_another_thread_arrives():
    """PyThreadState_SetAsyncExc, as debuggers and timeouts use it. Where it does not arrive, fn ends by itself."""
    for _ in range(5):
        counter = itertools.count()
        fn = functools.partial(next, map(max, counter, itertools.repeat(0, 30_000_000)))
        sender = threading.Thread(target=send_stop, args=(threading.get_ident(), counter))
        sender.start()
        with pytest.raises(Stop) as caught:
            codetimer.time("", 2**62, fn)
        sender.join()
        result = codetimer.last_result()
        assert (result.calls, result.interrupted) == (next(counter), "Stop")
        assert len(traceback.extract_tb(caught.value.__traceback__)) == 1


def test_a_run_in_each_of_several_threads():
    def measure(i):
        counter = itertools.count()
        results[i] = codetimer.time("", 200_000 + i, counter.__next__), next(counter)

    results = {}
    threads = [threading.Thread(target=measure, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {i: (result.calls, calls) for i, (result, calls) in results.items()} == {
        i: (200_000 + i,) * 2 for i in range(4)
    }
    assert codetimer.last_result() in [result for result, _ in results.values()]


def test_reports_of_threads_do_not_mix():
    stream = io.StringIO()
    threads = [threading.Thread(target=codetimer.time, args=("T", 100, int), kwargs={"file": stream}) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    blocks = stream.getvalue().split("\n\n")
    assert len(blocks) == 9 and all(block.startswith("T\n    Calls:") for block in blocks[:8])


def test_fn_starts_threads():
    def fn():
        thread = threading.Thread(target=codetimer.time, args=("", 10, int))
        thread.start()
        thread.join()

    assert codetimer.time("", 20, fn).calls == 20


def test_fn_forks_and_the_child_leaves():
    def fn():
        child = os.fork()
        if child == 0:
            os._exit(3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3

    assert codetimer.time("", 5, fn).calls == 5


def test_fn_forks_and_the_child_carries_on():
    def fn():
        nonlocal calls, child
        calls += 1
        if calls == 3:
            child = os.fork()

    calls, child, parent = 0, None, os.getpid()
    result = codetimer.time("", 1000, fn)
    if os.getpid() != parent:
        os._exit(7 if (calls, result.calls) == (1000, 1000) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert (calls, result.calls) == (1000, 1000)


def test_a_forked_child_measures():
    child = os.fork()
    if child == 0:
        good = False
        try:
            with codetimer.initialize(None):
                good = codetimer.time("", 1000, int).calls == 1000 and codetimer.now_ns() > 0
        finally:
            os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


INTERPRETERS = """
import sys, threading
if sys.version_info >= (3, 13):
    import _interpreters as interpreters
    create = lambda: interpreters.create("isolated")
    run = lambda id, code: interpreters.run_string(id, code)
else:
    import _xxsubinterpreters as interpreters
    create = lambda: interpreters.create(isolated=True)
    run = lambda id, code: interpreters.run_string(id, code)
code = '''
import codetimer, itertools
assert codetimer.last_result() is None
for _ in range(20):
    counter = itertools.count()
    result = codetimer.time("", 50_000, counter.__next__)
    assert result.calls == next(counter) == 50_000
    calls = []
    assert codetimer.time("", 5000, lambda: calls.append([])).calls == len(calls)
assert codetimer.last_result().calls == 5000
codetimer.time("Own", 7, int)
'''
import codetimer
def work():
    id = create()
    failed = run(id, code)
    if failed is not None: print("failed", failed)
    interpreters.destroy(id)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
exec(code.replace("assert codetimer.last_result() is None", ""))
for thread in threads: thread.join()
assert codetimer.last_result().name == "Own"
"""


@pytest.mark.skipif(sys.version_info < (3, 12), reason="interpreters with a GIL of their own exist since 3.12")
def test_interpreters_with_their_own_gil(script):
    done = script(INTERPRETERS)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b"Own\n") == 4 and b"failed" not in done.stdout


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="before 3.12, interpreters share the GIL")
def test_interpreters_that_share_the_gil(script):
    code = INTERPRETERS.replace("sys.version_info >= (3, 13)", "False").replace("isolated=True", "isolated=False")
    done = script(code)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b"Own\n") == 4
