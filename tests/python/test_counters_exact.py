# SPDX-License-Identifier: MIT
"""Guards that counters tell the truth: no call is lost or counted twice with several threads, averages are exact,
percentiles lie within one bucket of the exact ones (tests/cases/durations.tsv, as C and Lua are held to). Fails if an
update can be interrupted, or a bucket's bound is off."""

import itertools
import sys
import threading
from pathlib import Path

import codetimer
import pytest

CASES = Path(__file__).parent.parent / "cases" / "durations.tsv"
THREADS, CALLS, COUNT = 4, 1_000_000, 1_000_000
SEED, MASK, BUCKET = 0x9E3779B97F4A7C15, (1 << 64) - 1, 2 ** (1 / 8)


@pytest.fixture
def timer():
    made = codetimer.timer("test.exact")
    yield made
    made.counter.remove()


@pytest.fixture(autouse=True)
def quick_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


def run_threads(body):
    threads = [threading.Thread(target=body) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_threads_recording(timer):
    counter = timer.counter

    def record():
        mine = codetimer.counters[counter.key]
        for _ in itertools.repeat(None, CALLS // 10):
            for _ in range(9):
                mine.record(3)
            mine.record(5, error=True)

    run_threads(record)
    calls = THREADS * CALLS
    assert (counter.calls, counter.errors, counter.total_ns) == (calls, calls // 10, calls // 10 * 32)
    assert (counter.in_flight, counter.average_ns, sum(counter.sample().buckets)) == (0, 3.2, calls)


def test_threads_timing(timer):
    def block():
        for _ in itertools.repeat(None, CALLS):
            with timer:
                pass

    samples, done = [], threading.Event()

    def watch():
        while not done.wait(0.01):
            samples.append(timer.counter.sample())

    watcher = threading.Thread(target=watch)
    watcher.start()
    run_threads(block)
    done.set()
    watcher.join()
    assert timer.counter.calls == THREADS * CALLS and timer.counter.in_flight == 0
    assert timer.counter.errors == timer.counter.cancelled == 0
    assert all(0 <= sample.in_flight <= THREADS and not sample.unclean for sample in samples)
    assert [sample.calls for sample in samples] == sorted(sample.calls for sample in samples)


def test_threads_opening_and_removing():
    names = [f"test.churn{i}" for i in range(20)]
    errors = []

    def churn():
        try:
            for i in range(20_000):
                made = codetimer.timer(names[i % len(names)])
                with made:
                    pass
                if i % 7 == 0:
                    made.counter.remove()
                if i % 100 == 0:
                    list(codetimer.counters.items())
        except Exception as error:
            errors.append(error)

    run_threads(churn)
    assert errors == []
    for name in names:
        if name in codetimer.counters:
            assert codetimer.counters[name].in_flight == 0
            codetimer.counters[name].remove()


def random_numbers():
    x = SEED
    while True:
        x ^= x >> 12
        x ^= (x << 25) & MASK
        x ^= x >> 27
        yield (x * 0x2545F4914F6CDD1D) & MASK


def lognormal(r):
    exponent = 655360 + 2 * ((r & 65535) + (r >> 16 & 65535) + (r >> 32 & 65535) + (r >> 48))
    return (65536 + (exponent & 65535)) << (exponent >> 16) >> 16


def bimodal(r):
    return 1_000_000 + (r & 1048575) if r >> 56 < 77 else 800 + (r & 255)


def constant(r):
    return 1234


def read_cases(name):
    rows = [line.split("\t") for line in CASES.read_text().splitlines() if not line.startswith("#")]
    cases = {what: int(value) for which, what, value in rows if which == name}
    return cases.pop("total"), {float(percent): exact for percent, exact in cases.items()}


@pytest.mark.skipif(not CASES.exists(), reason="the shared cases are not in the source package")
@pytest.mark.parametrize("distribution", [lognormal, bimodal, constant])
def test_percentiles(timer, distribution):
    print(f"seed {SEED:#x}")
    record = timer.counter.record
    for r in itertools.islice(random_numbers(), COUNT):
        record(distribution(r))
    sample = timer.counter.sample()
    total, percentiles = read_cases(distribution.__name__)
    assert (sample.calls, sample.total_ns, sample.average_ns) == (COUNT, total, total / COUNT)
    assert len(percentiles) >= 9
    for percent, exact in percentiles.items():
        assert exact / BUCKET <= sample.percentile(percent) <= exact * BUCKET, percent
    assert (sample.min_ns, sample.max_ns) == (percentiles[0], percentiles[100])
