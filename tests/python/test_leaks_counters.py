# SPDX-License-Identifier: MIT
"""Guards that counters can be made, used and removed for ever: the process does not grow. Fails if a handle, a slot or
an object is kept. (Not under the default quarantine of AddressSanitizer, where freed blocks look like growth.)"""

import contextlib
import gc
import os

import codetimer
import pytest

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is read from /proc")


def memory():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_million_made_and_removed():
    def churn(calls):
        for i in range(calls):
            timer = codetimer.timer(f"test.churn{i % 1000}")
            with timer:
                pass
            timer.counter.remove()

    churn(20_000)
    gc.collect()
    before, listed = memory(), len(codetimer.counters)
    churn(1_000_000)
    gc.collect()
    assert memory() - before < 2_000_000 and len(codetimer.counters) == listed


def test_objects_leave_nothing():
    timer = codetimer.timer("test.leave")
    timer.counter.record(5)

    def churn():
        for _ in range(20_000):
            counter = codetimer.counters["test.leave"]
            sample = counter.sample()
            (sample - sample).percentile(50), sample.buckets, repr(counter), hash(counter), counter == timer.counter
            with timer:
                pass
            for wrong in ("", "a\0b", 5):
                with contextlib.suppress(TypeError, ValueError):
                    codetimer.timer(wrong)

    churn()
    gc.collect()
    before = memory()
    churn()
    gc.collect()
    assert memory() - before < 1_000_000
    timer.counter.remove()
