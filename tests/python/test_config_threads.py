# SPDX-License-Identifier: MIT
"""Guards what the threads that follow the members list leave to the program: its signals, blocked or not, also in what
is forked in a provider; and that a fork does not wait for a thread that is a greenlet of the one that forks. Fails if a
blocked signal ends the program, if a signal stays blocked, or if the fork waits."""

import importlib.util
import signal
import sys

import pytest
from live import program
from running import both, run

pytestmark = pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="this system blocks no signals")


@pytest.fixture
def folder(tmp_path):
    tmp_path.chmod(0o700)
    (tmp_path / "members").write_text("*.f")
    return tmp_path


ONE = f"{int(getattr(signal, 'SIGUSR1', 0))}\n"
WAITS = {
    "sigwait": "print(int(signal.sigwait({signal.SIGUSR1, signal.SIGTERM})))",
    "sigtimedwait": "print(signal.sigtimedwait({signal.SIGUSR1, signal.SIGTERM}, 60).si_signo)",
    "sigpending": "print(*map(int, signal.sigpending()))",
    "signalfd": """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
mask = ctypes.create_string_buffer(128)
libc.sigemptyset(mask)
libc.sigaddset(mask, signal.SIGUSR1)
print(int.from_bytes(os.read(libc.signalfd(-1, mask, 0), 128)[:4], sys.byteorder))
""",
}
FOLLOWS = """
import codetimer, threading
codetimer.configure(file="members").on_change(print)
class Provider:
    def members(self): return None
codetimer.configure(provider=Provider())
assert {t.name for t in threading.enumerate()} >= {"codetimer", "codetimer provider"}
"""
START = "import os, signal, sys"
BLOCK = "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM})"
FORK = "if os.fork(): sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))"
SEND = "os.kill(os.getpid(), signal.SIGUSR1)"


def write(folder, *lines):
    script = folder / "script.py"
    script.write_text("\n".join(lines))
    return script.name


@pytest.mark.parametrize("wait", WAITS)
def test_a_blocked_signal_is_waited_for(folder, wait):
    """Under codetimer run, whose thread began before the program blocked it."""
    if wait in ("signalfd", "sigtimedwait") and sys.platform != "linux":
        pytest.skip("this is of Linux")
    bare, measured = both([write(folder, START, BLOCK, SEND, WAITS[wait])], folder)
    assert measured == bare == (0, ONE, "")


@pytest.mark.parametrize("wait", ["sigwait", "sigpending"])
def test_a_blocked_signal_beside_all_our_threads(folder, wait):
    ended = run([write(folder, START, FOLLOWS, BLOCK, SEND, WAITS[wait])], folder, measured=False)
    assert ended == (0, ONE, "")


@pytest.mark.parametrize("lines", [(BLOCK, FORK), (FORK, BLOCK)], ids=["before", "after"])
@pytest.mark.parametrize("beside", ["", FOLLOWS], ids=["alone", "beside"])
def test_in_a_forked_child(folder, beside, lines):
    script = write(folder, START, beside, *lines, SEND, WAITS["sigwait"])
    bare, measured = both([script], folder, flags=["-W", "ignore"])
    assert measured == bare == (0, ONE, "")


def test_the_program_keeps_its_own(folder):
    """What the starting thread blocks stays as it is; and a signal that nobody blocks still ends the program."""
    code = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
codetimer.configure(file=os.environ["MEMBERS"])
say(*signal.pthread_sigmask(signal.SIG_BLOCK, ()))
hear()
"""
    with program(code, folder, MEMBERS=str(folder / "members")) as measured:
        assert measured.hear() == str(signal.SIGUSR2)
        measured.popen.send_signal(signal.SIGTERM)
        assert measured.popen.wait(60) == -signal.SIGTERM


@pytest.mark.parametrize("raised", [False, True])
def test_put_back_where_the_start_fails(folder, raised):
    """No thread can be started; or the handler of a signal that came meanwhile raises."""
    code = """
import signal, threading
start = threading.Thread.start
def fail(thread):
    assert signal.SIGUSR1 in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    signal.raise_signal(signal.SIGUSR1) if RAISED else None
    raise RuntimeError("can't start new thread")
def handle(*_): raise KeyError("handler")
signal.signal(signal.SIGUSR1, handle)
threading.Thread.start = fail
try: codetimer.configure(file=os.environ["MEMBERS"])
except KeyError as error: say(error)
say(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
"""
    with program(f"RAISED = {raised}\n" + code, folder, MEMBERS=str(folder / "members")) as measured:
        if raised:
            assert measured.hear() == "'handler'"
        assert measured.hear() == "set()"
        measured.end()


def test_a_child_forked_in_a_provider_blocks_nothing(folder):
    code = """
import signal
class Provider:
    forked = False
    def members(self):
        if self.forked: return None
        self.forked = True
        inside = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        pid = os.fork()
        if pid == 0:
            say(signal.SIGTERM in inside, *signal.pthread_sigmask(signal.SIG_BLOCK, ()))
            os._exit(0)
        os.waitpid(pid, 0)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
codetimer.configure(provider=Provider())
hear()
"""
    with program(code, folder, PYTHONWARNINGS="ignore") as measured:
        assert measured.hear() == f"True {signal.SIGUSR2!s}"
        measured.end()


# ---- threads that are greenlets ----


def test_a_fork_does_not_wait_for_a_greenlet(folder):
    """Which says that it is the thread it runs in; whether it waits is seen by how it waits, not by the time."""
    code = """
import threading
from codetimer import forking
codetimer.configure(file=os.environ["MEMBERS"])
thread, = (each for each in threading.enumerate() if each.name == "codetimer")
thread._native_id = threading.get_native_id()
waited = []
wait_for, forking._wait_for = forking._wait_for, waited.append
for _ in range(2):
    pid = os.fork()
    if pid == 0: os._exit(0)
    os.waitpid(pid, 0)
    say(len(waited))
"""
    with program(code, folder, MEMBERS=str(folder / "members"), PYTHONWARNINGS="error") as measured:
        assert [measured.hear(), measured.hear()] == ["0", "1"]  # the second thread is one
        measured.end()


@pytest.mark.skipif(importlib.util.find_spec("gevent") is None, reason="gevent is not installed here")
def test_gevent(folder):
    code = """
from gevent import monkey; monkey.patch_all()
import gevent, os, time
from codetimer import forking
import codetimer
@codetimer.measured
def f(): pass
f()
codetimer.configure(file="members")
forking._wait_for = print
pid = os.fork()
if pid == 0: os._exit(0)
os.waitpid(pid, 0)
open("members", "w").write("!*")
until = time.monotonic() + 60
while codetimer.counters["script.f"].enabled and time.monotonic() < until: gevent.sleep(0.01)
print(codetimer.counters["script.f"].enabled)
"""
    script = folder / "script.py"
    script.write_text(code)
    ended = run([script.name], folder, measured=False)
    assert (ended.code, ended.out, ended.err) == (0, "False\n", "")
