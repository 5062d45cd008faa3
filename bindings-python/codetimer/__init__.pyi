# SPDX-License-Identifier: MIT

from codetimer._codetimer import (
    ClockInfo as ClockInfo,
    Environment as Environment,
    Priority as Priority,
    Result as Result,
    ThreadCycles as ThreadCycles,
    __version__ as __version__,
    clock_info as clock_info,
    initialize as initialize,
    last_result as last_result,
    now_ns as now_ns,
    thread_cycles as thread_cycles,
    time as time,
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
