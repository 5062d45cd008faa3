# SPDX-License-Identifier: MIT
"""Guards what a controller that was stopped in the middle does to others: they say so after a second or two instead of
waiting for ever, and the measured process itself is not held up."""

import fcntl
import os
import struct
import time

import codetimer
import pytest

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
