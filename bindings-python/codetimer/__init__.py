# SPDX-License-Identifier: MIT
"""How long code takes, how many CPU cycles it costs, and what the garbage collector did meanwhile.

import codetimer
codetimer.initialize()
codetimer.time("String Concat", 100_000, lambda: s + "a")
"""

from codetimer._codetimer import (
    ClockInfo,
    Counter,
    Environment,
    Priority,
    Result,
    Sample,
    ThreadCycles,
    __version__,
    clock_info,
    counters,
    initialize,
    last_result,
    measured,
    now_ns,
    report,
    thread_cycles,
    time,
    timer,
    trace_increments,
)

__all__ = [
    "ClockInfo",
    "Counter",
    "Environment",
    "Priority",
    "Result",
    "Sample",
    "ThreadCycles",
    "__version__",
    "clock_info",
    "counters",
    "initialize",
    "last_result",
    "measured",
    "now_ns",
    "report",
    "thread_cycles",
    "time",
    "timer",
    "trace_increments",
]
