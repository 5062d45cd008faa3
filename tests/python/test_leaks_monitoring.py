# SPDX-License-Identifier: MIT
"""Guards that measuring through sys.monitoring can begin and end for ever: the process does not grow. Fails if a cell,
a counter, a callback or the record of a call is kept. (Not under the default quarantine of AddressSanitizer.)"""

import gc
import os

import pytest
from codetimer import _codetimer
from monitoring import MODULE, counter, fresh, make, missing, monitored  # noqa: F401 (fresh is a fixture)

SUBJECT = "def f(): pass\ndef g(): f()\ndef h():\n    yield 1\n"

pytestmark = [
    missing,
    pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is read from /proc"),
]


def memory():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_starting_and_stopping_leaves_nothing():
    subject = make(SUBJECT)

    def churn():
        for _ in range(1_000):
            with monitored():
                subject.f(), subject.g(), list(subject.h())
                next(subject.h())
                _codetimer._monitoring_start(f"{MODULE}.f")

    churn()
    gc.collect()
    before = memory()
    churn()
    gc.collect()
    assert memory() - before < 1_000_000 and counter("h").in_flight == 0
