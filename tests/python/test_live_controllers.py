# SPDX-License-Identifier: MIT
"""Guards what a controller that was stopped in the middle does to others: they say so after a second or two instead of
waiting for ever, and neither the measured process itself nor another thread of theirs is held up."""

import contextlib
import fcntl
import os
import struct
import threading
import time

import codetimer
import pytest
from live import program, wait_until

F_OFD_SETLK = 37


def calls_at_once(fn):
    start = time.monotonic()
    fn()
    return time.monotonic() - start < 0.5


@pytest.mark.skipif(struct.calcsize("P") != 8, reason="the layout of struct flock is that of 64-bit Linux")
def test_a_stopped_controller_is_told_of():
    measured = codetimer.measured(lambda: None, name="controllers.measured")
    measured()
    (process,) = [one for one in codetimer.processes() if one.pid == os.getpid() and one.state == "live"][:1]
    held = os.open(process.path, os.O_RDWR)
    try:
        fcntl.fcntl(held, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0))
        with codetimer.attach(os.getpid()) as view:
            with pytest.raises(OSError, match="another controller"):
                view.disable("controllers.*")
            tries = [calls_at_once(measured)]
            while not tries[-1] and len(tries) < 5:  # the machine may be busy
                time.sleep(1.1)  # a second after the last one, a call looks after the members list
                tries.append(calls_at_once(measured))
            assert tries[-1]
            assert view.sample()["controllers/controllers.measured"].calls == 1 + len(tries)
    finally:
        os.close(held)


HOLDER = """
import fcntl, struct
file = os.open(hear(), os.O_RDWR)
fcntl.fcntl(file, 37, struct.pack("hhlli", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0))  # F_OFD_SETLK
say("held")
hear()  # as a controller that is stopped half-way
"""


def disable_while_it_is_held(pid, folder):
    """How others are told, and whether it was switched in the end: a controller waits for a second or two only."""

    def disable():
        with contextlib.suppress(OSError):
            view.disable("f")

    def refusal(use):
        try:
            use()
        except RuntimeError as error:
            return str(error)
        return None

    with codetimer.attach(pid, directory=folder) as view, program(HOLDER, folder) as holder:
        holder.say(view.process.path)
        holder.hear()
        waiting = threading.Thread(target=disable)
        waiting.start()
        wait_until(lambda: refusal(view.sample) is not None or not waiting.is_alive())
        told = [refusal(use) for use in (view.sample, lambda: view.process, view.close)]
        holder.end()
        waiting.join()
        return told, not view.closed and not any(one.enabled for one in view.counters.values())


def test_a_controller_that_has_to_wait_lets_other_threads_run(tmp_path):
    """One try in ten is enough: on a busy machine this thread may come too late to see the other one wait."""
    tmp_path.chmod(0o700)
    wanted = ["the view is in use by another thread: give each thread its own"] * 3, True
    with program("codetimer.measured(lambda: None, name='f')()\nsay('ready')\nhear()", tmp_path) as measured:
        measured.hear()
        for _ in range(10):
            with codetimer.attach(measured.pid, directory=tmp_path) as view:
                view.enable("f")
            found = disable_while_it_is_held(measured.pid, tmp_path)
            if found == wanted:
                break
        assert found == wanted
