# SPDX-License-Identifier: MIT
"""How long code takes, how many CPU cycles it costs, and what the garbage collector did meanwhile.

import codetimer
codetimer.initialize()
codetimer.time("String Concat", 100_000, lambda: s + "a")
"""

from codetimer._codetimer import (
    ClockInfo,
    Environment,
    Priority,
    Result,
    ThreadCycles,
    __version__,
    clock_info,
    initialize,
    last_result,
    now_ns,
    thread_cycles,
    time,
)

__all__ = [
    "ClockInfo",
    "Environment",
    "Priority",
    "Result",
    "ThreadCycles",
    "__version__",
    "clock_info",
    "initialize",
    "last_result",
    "now_ns",
    "thread_cycles",
    "time",
]
