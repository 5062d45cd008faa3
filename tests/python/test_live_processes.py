# SPDX-License-Identifier: MIT
"""Guards processes(), attach() and reap(): what lives, what is dead, and what cannot be read is told apart, each with
the right reason and the right exception. Fails if a file that is no segment is taken for one, or deleted."""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import codetimer
import pytest
from live import LIBRARY, START, environment, program, wait_until

MEASURES = """
@codetimer.measured
def f(): pass
for _ in range(7): f()
say("ready")
hear()
"""


@pytest.fixture
def folder(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path


def only(folder):
    (process,) = codetimer.processes(folder)
    return process


# ---- states ----


def test_a_live_process(folder):
    with program(MEASURES, folder) as measured:
        measured.hear()
        process = only(folder)
        assert (process.state, process.pid, process.uid) == ("live", measured.pid, os.getuid())
        assert process.host == f"Python {sys.version_info.major}.{sys.version_info.minor}"
        assert process.program == "python" and process.clock and process.counters == 1
        assert (process.refused, process.last_refused, process.reason) == (0, None, "")
        assert Path(process.path).name.startswith(f"{measured.pid}-{process.start_time}-")
        assert 0 <= process.heartbeat_age_ns < 60_000_000_000
        with pytest.raises(AttributeError):
            process.pid = 1
        measured.end()
    assert codetimer.processes(folder) == []


def test_the_program_is_the_script(folder):
    script = folder / "shop.py"
    script.write_text(f"import sys; sys.path.insert(0, {LIBRARY!r})\nimport os, codetimer\n" + """
@codetimer.measured
def f(): pass
f()
print("ready", flush=True)
input()
""")
    with program("", folder, command=[sys.executable, str(script)]) as measured:
        measured.hear()
        (process,) = [each for each in codetimer.processes(folder) if each.state == "live"]
        assert process.program == "shop"
        with codetimer.attach(process, directory=folder) as view:
            assert list(view.sample()) == ["shop/shop.f"]


def test_a_process_that_measures_nothing_publishes_nothing(folder):
    with program("import codetimer\nsay('ready')\nhear()", folder) as measured:
        measured.hear()
        assert codetimer.processes(folder) == []
        with pytest.raises(ProcessLookupError, match=f"process {measured.pid} publishes no counters"):
            codetimer.attach(measured.pid, directory=folder)


def test_killed_then_reaped(folder):
    with program(MEASURES, folder) as measured:
        measured.hear()
        with pytest.raises(PermissionError, match="its process lives"):
            codetimer.reap(only(folder).path)
        measured.popen.send_signal(signal.SIGKILL)
        measured.popen.wait(60)
    process = only(folder)
    assert (process.state, process.pid) == ("dead", measured.pid)
    with codetimer.attach(measured.pid, directory=folder) as view:
        assert view.sample()["__main__/__main__.f"].calls == 7 and view.process.state == "dead"
        for switch in (view.enable, view.disable, view.set_members):
            with pytest.raises(ProcessLookupError, match="has ended"):
                switch("*")
    codetimer.reap(process.path)
    assert codetimer.processes(folder) == []
    with pytest.raises(FileNotFoundError):
        codetimer.reap(process.path)


@pytest.mark.parametrize(("ending", "state"), [("os._exit(0)", "dead"), ("sys.exit(0)", None), ("pass", None)])
def test_ways_to_end(folder, ending, state):
    with program(MEASURES + ending, folder) as measured:
        measured.hear()
        assert only(folder).state == "live"
        measured.end()
    assert [process.state for process in codetimer.processes(folder)] == ([state] if state else [])


def test_kept(folder):
    with program(MEASURES, folder, CODETIMER_KEEP="1") as measured:
        measured.hear()
        measured.end()
    assert only(folder).state == "dead"


def test_publishing_switched_off(folder):
    with program(MEASURES, folder, CODETIMER_PUBLISH="0") as measured:
        measured.hear()
        assert codetimer.processes(folder) == []


def test_exec_leaves_a_dead_segment_that_is_not_mixed_with_the_new(folder):
    again = """
@codetimer.measured
def f(): pass
for _ in range(7): f()
if "again" in sys.argv:
    f()
    say("ready")
    hear()
else:
    os.execv(sys.executable, [sys.executable, sys.argv[0], "again"])
"""
    script = folder / "run" / "again.py"
    script.parent.mkdir()
    script.write_text("import os, sys, codetimer\ndef say(t): print(t, flush=True)\ndef hear(): input()\n" + again)
    segments = folder / "segments"
    segments.mkdir(mode=0o700)
    with program("", segments, command=[sys.executable, str(script)]) as measured:
        measured.hear()
        assert sorted(process.state for process in codetimer.processes(segments)) in (["dead", "live"], ["live"])
        with codetimer.attach(measured.pid, directory=segments) as view:
            assert view.sample()["again/again.f"].calls == 8
            assert [process.state for process in view.segments] == ["live"]


def test_a_dead_segment_beside_a_live_one_is_not_mixed_in(folder):
    with program(MEASURES, folder) as measured:
        measured.hear()
        path = Path(only(folder).path)
        path.with_name(path.name[:-1] + "7").write_bytes(path.read_bytes())  # nobody holds its lock
        assert sorted(process.state for process in codetimer.processes(folder)) == ["dead", "live"]
        for who in (measured.pid, *codetimer.processes(folder)):
            with codetimer.attach(who, directory=folder) as view:
                assert [process.path for process in view.segments] == [str(path)]
                assert view.sample()["__main__/__main__.f"].calls == 7


# ---- what is no segment ----


def test_files_that_are_no_segments(folder):
    (folder / "garbage").write_bytes(os.urandom(100_000))
    (folder / "empty").touch()
    (folder / "folder").mkdir()
    (folder / "link").symlink_to("garbage")
    (folder / "123-456-0").write_text("no segment")
    os.mkfifo(folder / "pipe")
    reasons = {Path(process.path).name: process for process in codetimer.processes(folder)}
    assert set(reasons) == {"garbage", "empty", "folder", "link", "123-456-0", "pipe"}
    for name, process in reasons.items():
        assert process.state == "unusable" and process.reason, name
        assert process[2:12] == (None,) * 10, name
        with pytest.raises(ValueError, match="cannot be attached to"):
            codetimer.attach(process, directory=folder)
        with pytest.raises((ValueError, OSError)):
            codetimer.reap(process.path)
        assert os.path.lexists(process.path)
    assert "link" in reasons["link"].reason
    assert "not a segment" in reasons["garbage"].reason
    with pytest.raises(ValueError, match="123-456-0: its length, 10 bytes"):
        codetimer.attach(123, directory=folder)


def test_a_segment_cut_to_any_length(folder):
    with program(MEASURES, folder) as measured:
        measured.hear()
        whole = Path(only(folder).path).read_bytes()
    cut = folder / "1-1-0"
    for length in [*range(0, len(whole), 4099), 1, 8, 200, 4095, len(whole) - 1]:
        for process in codetimer.processes(folder):
            Path(process.path).unlink()
        cut.write_bytes(whole[:length])
        process = only(folder)
        if process.state == "unusable":
            assert process.reason
            continue
        assert process.state == "dead" and process.reason == "its file is shorter than it should be"
        with codetimer.attach(measured.pid, directory=folder) as view:
            assert set(view.sample()) <= {"__main__/__main__.f"}
            _ = view.acknowledged, view.counters
            with contextlib.suppress(ValueError):
                assert view.members is None


def test_a_segment_cut_while_it_is_viewed(folder):
    with program(MEASURES, folder) as measured:
        measured.hear()
        whole = Path(only(folder).path).read_bytes()
    for process in codetimer.processes(folder):
        Path(process.path).unlink()
    copy = folder / "1-1-0"
    copy.write_bytes(whole)
    with codetimer.attach(measured.pid, directory=folder) as view:
        assert view.sample()
        os.truncate(copy, 4096)
        view.sample()
        assert view.process.state == "unusable" or view.process.reason
        copy.unlink()
        view.sample()


# ---- which process is meant ----


def test_arguments(folder):
    for wrong in (True, 1.0, "1", None, [1]):
        with pytest.raises(TypeError, match="pid must be a process id"):
            codetimer.attach(wrong, directory=folder)
    for wrong in (0, -1, 2**70):
        with pytest.raises(ValueError, match="pid must be a process id"):
            codetimer.attach(wrong, directory=folder)
    with pytest.raises(ProcessLookupError):
        codetimer.attach(2**31 - 1, directory=folder)
    with pytest.raises(TypeError):
        codetimer.processes(5.0)
    with pytest.raises(ValueError, match="too long"):
        codetimer.processes("x" * 5000)
    with pytest.raises(FileNotFoundError, match="there is no such folder"):
        codetimer.processes(folder / "missing")
    (folder / "file").touch()
    with pytest.raises(OSError):
        codetimer.processes(folder / "file")


def test_no_folder_yet_is_no_error(folder, monkeypatch):
    monkeypatch.setenv("CODETIMER_DIR", str(folder / "missing"))
    assert codetimer.processes() == []
    with pytest.raises(ProcessLookupError):
        codetimer.attach(os.getpid())


def test_a_folder_that_others_can_write_is_refused(folder, monkeypatch):
    folder.chmod(0o777)
    monkeypatch.setenv("CODETIMER_DIR", str(folder))
    with pytest.raises(PermissionError, match="CODETIMER_DIR"):
        codetimer.processes()


def test_ended_between_list_and_attach(folder):
    with program(MEASURES, folder) as measured:
        measured.hear()
        process = only(folder)
        measured.end()
    with pytest.raises(ProcessLookupError, match="has ended"):
        codetimer.attach(process, directory=folder)


def forge(whole, process, start_time):
    """The segment of a process with the same pid that began at another time."""
    old, new = (value.to_bytes(8, sys.byteorder) for value in (process.start_time, start_time))
    header = whole[:1024]
    assert header.count(old) == 1
    return header.replace(old, new) + whole[1024:]


def test_a_pid_that_was_used_again(folder):
    with program(MEASURES, folder) as measured:
        measured.hear()
        process = only(folder)
        whole = Path(process.path).read_bytes()
        older = folder / f"{measured.pid}-9-0"
        older.write_bytes(forge(whole, process, process.start_time + 1000))
        assert sorted(each.state for each in codetimer.processes(folder)) == ["dead", "live"]
        with codetimer.attach(measured.pid, directory=folder) as view:
            assert view.process.path == process.path
        with older.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # as a second container that shares the folder would
            with pytest.raises(ValueError, match="two processes with pid"):
                codetimer.attach(measured.pid, directory=folder)
            for each in codetimer.processes(folder):
                with codetimer.attach(each, directory=folder) as view:
                    assert view.process.path == each.path


# ---- users ----

AS_NOBODY = "import codetimer, collections.abc\nos.setgroups([])\nos.setgid(65534)\nos.setuid(65534)\n"


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become somebody else")
def test_root_reads_and_switches_another_users_process():
    folder = tempfile.mkdtemp(prefix="codetimer-test-", dir="/tmp")
    os.chown(folder, 65534, 65534)
    try:
        code = MEASURES + "while hear(): f(); say('called')"
        with program(code, folder, start=START + AS_NOBODY) as measured:
            measured.hear()
            process = only(folder)
            assert (process.state, process.uid) == ("live", 65534)
            with codetimer.attach(measured.pid, directory=folder) as view:
                assert view.sample()["__main__/__main__.f"].calls == 7
                view.disable("*")
                assert not view.sample()["__main__/__main__.f"].enabled
                view.set_members(None)
                assert view.sample()["__main__/__main__.f"].enabled
                os.truncate(process.path, 8192)
                view.sample()  # by copies: no SIGBUS
    finally:
        shutil.rmtree(folder)


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become somebody else")
def test_others_are_refused():
    folder = tempfile.mkdtemp(prefix="codetimer-test-", dir="/tmp")
    try:
        with program(MEASURES, folder) as measured:
            measured.hear()
            for mode, expected in ((0o700, "PermissionError"), (0o755, "unusable")):
                os.chmod(folder, mode)
                code = f"""{START}{AS_NOBODY}
try: print([process.state for process in codetimer.processes({folder!r})])
except OSError as error: print(type(error).__name__)
try: codetimer.attach({measured.pid}, directory={folder!r})
except OSError as error: print(type(error).__name__)
"""
                run = subprocess.run(
                    [sys.executable, "-c", code], capture_output=True, text=True, env=environment("/none"), timeout=60
                )
                assert expected in run.stdout and run.stdout.endswith("PermissionError\n"), run
    finally:
        shutil.rmtree(folder)


# ---- daemons ----


def test_a_daemon_that_closes_all_descriptors(folder):
    code = MEASURES + """
os.closerange(3, 1024)
file = os.open(hear(), os.O_RDWR | os.O_CREAT)
for i in range(3000):
    codetimer.timer(f"grown.n{i}").counter.record(5)
f()
say("grown")
hear()
"""
    other = folder.parent / "other"
    with program(code, folder) as measured:
        measured.hear()
        measured.say()
        measured.say(other)
        assert measured.hear() == "grown"
        with codetimer.attach(measured.pid, directory=folder) as view:
            samples = view.sample()
            assert len(samples) == 3001 and samples["grown/grown.n2999"].calls == 1
            assert samples["__main__/__main__.f"].calls == 8
        assert other.read_bytes() == b""


def test_a_deleted_file_is_published_again(folder):
    code = MEASURES + "while True:\n    f()\n    time.sleep(0.01)"
    with program(code, folder) as measured:
        measured.hear()
        with codetimer.attach(measured.pid, directory=folder) as view:
            Path(only(folder).path).unlink()
            assert view.process.reason == "its file is gone"
            measured.say()
            wait_until(lambda: codetimer.processes(folder))
        with codetimer.attach(measured.pid, directory=folder) as view:
            assert view.sample()["__main__/__main__.f"].calls > 7
