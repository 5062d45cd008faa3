# SPDX-License-Identifier: MIT
"""What every test is held to: the process is afterwards as it was before (threads, descriptors, priority, affinity,
collector), and the helpers that the test files share."""

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import codetimer
import pytest

# Where codetimer was imported from, for scripts that run in a process of their own.
LIBRARY = str(Path(codetimer.__file__).parent.parent)

# Under a leak checker this process is checked at its end. What programs that it starts leave behind at theirs is not
# ours to free, as Python does so itself, and their standard error is compared.
if "ASAN_OPTIONS" in os.environ:
    os.environ["ASAN_OPTIONS"] += ":detect_leaks=0"


def state():
    return {
        "threads": [thread for thread in threading.enumerate() if thread.name != "codetimer"],  # that one stays
        "descriptors": sorted(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else [],
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "policy": os.sched_getscheduler(0),
        "affinity": os.sched_getaffinity(0),
        "gc": (gc.isenabled(), gc.get_threshold(), len(gc.callbacks)),
        "stdout": sys.stdout,
    }


@pytest.fixture(autouse=True)
def nothing_left_changed():
    codetimer.thread_cycles()  # opens what the thread keeps open
    before = state()
    yield
    assert state() == before


def run_script(code, *options, env=None, **kwargs):
    """Runs Python code in a new process, without the colour settings of this one."""
    environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "TERM")}
    environment |= {"PYTHONPATH": LIBRARY} | (env or {})
    kwargs.setdefault("stdout", subprocess.PIPE)
    return subprocess.run(
        [sys.executable, *options, "-c", code], env=environment, stderr=subprocess.PIPE, timeout=120, **kwargs
    )


@pytest.fixture
def script():
    return run_script
