# SPDX-License-Identifier: MIT
"""Guards configure(file=): an edit takes effect in a program whose main thread is blocked, whatever way it is made;
what cannot be used is told once, changes nothing and harms nothing; the last writer wins. Fails if the file is looked
after by measured calls alone, or if half of a text is ever in force."""

import os
import re
import time

import codetimer
import pytest
from live import command, program, wait_until


@pytest.fixture
def folder(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path


@pytest.fixture
def members(folder):
    return folder / "members"


def replace(path, text):
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    new.rename(path)


# Two functions, called once; the main thread is then blocked in join() for as long as the test does not write.
BLOCKED = """
import logging, threading
logging.basicConfig(level="INFO", format="%(message)s")
settings = codetimer.configure(file=sys.argv[1]) if len(sys.argv) > 1 else codetimer.configure()
@codetimer.measured(name="shop.f")
def f(): pass
@codetimer.measured(name="shop.g")
def g(): pass
f(); g()
say("ready")
thread = threading.Thread(target=hear)
thread.start()
thread.join()
say(settings.source, settings.file, settings.problem)
"""


def blocked(folder, path, **more):
    return program(BLOCKED.replace("sys.argv[1]", repr(str(path))).replace("len(sys.argv) > 1", "True"), folder, **more)


def enabled(view):
    return {key for key, counter in view.counters.items() if counter.enabled}


F, G = "shop/shop.f", "shop/shop.g"


def test_edits_take_effect_while_the_main_thread_is_blocked(folder, members):
    members.write_text("*.f")
    with blocked(folder, members) as measured:
        assert measured.hear() == "ready"
        with codetimer.attach(measured.pid, directory=folder) as view:
            assert enabled(view) == {F}
            members.write_text("*.g")  # in place
            wait_until(lambda: enabled(view) == {G}, 60)
            replace(members, "# both\r\nshop.*\r\n")
            wait_until(lambda: enabled(view) == {F, G}, 60)
            members.unlink()
            members.write_bytes(b"\xef\xbb\xbf*.f")
            wait_until(lambda: enabled(view) == {F}, 60)
            assert view.members == "*.f" and view.acknowledged
            members.write_text("")
            wait_until(lambda: enabled(view) == set(), 60)
            members.unlink()
            real = folder / "real"
            real.write_text("*.g")
            members.symlink_to(real)
            wait_until(lambda: enabled(view) == {G}, 60)
            other = folder / "other"
            other.write_text("*.f")
            link = folder / "link"
            link.symlink_to(other)
            link.rename(members)
            wait_until(lambda: enabled(view) == {F}, 60)
        measured.say()
        assert measured.hear() == f"file {members} {members} None"
        measured.end()


def test_relative_and_missing_at_first(folder, members):
    code = BLOCKED.replace("settings = ", f"os.chdir({str(folder)!r}); settings = ", 1)
    code = code.replace("sys.argv[1]", "'members'").replace("len(sys.argv) > 1", "True")
    code = code.replace('say("ready")', 'say("ready"); os.chdir("/")')
    with program(code, folder, CODETIMER_MEASURE="*.g") as measured:
        assert measured.hear() == "ready"
        with codetimer.attach(measured.pid, directory=folder) as view:
            assert enabled(view) == {G}  # of the environment, as long as there is no file
            replace(members, "*.f")
            wait_until(lambda: enabled(view) == {F}, 60)
        measured.say()
        assert measured.hear() == f"file {members} {members} None"
        measured.end()
        told = measured.popen.stderr.read()
    assert told.count("there is no such file") == 1 and f"members list read from the file {members}" in told


@pytest.mark.parametrize("wins", [True, False])
def test_named_by_the_environment(folder, members, wins):
    members.write_text("*.f")
    code = BLOCKED if wins else BLOCKED.replace("codetimer.configure()", "codetimer.configure(members='*')")
    with program(code, folder, CODETIMER_MEASURE="*.g", CODETIMER_CONFIG=str(members)) as measured:
        assert measured.hear() == "ready"
        with codetimer.attach(measured.pid, directory=folder) as view:
            assert enabled(view) == ({F} if wins else {F, G})
            replace(members, "*.g")
            wait_until(lambda: enabled(view) == {G}, 60)
        measured.end()


# ---- what cannot be used ----


def make_directory(path):
    path.mkdir()


def make_fifo(path):
    os.mkfifo(path)


def make_long(path):
    with path.open("wb") as file:
        file.truncate(10 << 20)


BAD = {
    "it is a directory, not a regular file": make_directory,
    "it is a pipe, not a regular file": make_fifo,
    "it has 10,485,760 bytes, and a members list at most 65,536": make_long,
    "it is no text in UTF-8: byte 2 is a NUL": lambda path: path.write_bytes(b"*\0"),
    "it is in UTF-16 or UTF-32, as its first 2 bytes say: save it as UTF-8":
        lambda path: path.write_bytes("*.g".encode("utf-16")),
    "it is no text in UTF-8: byte 3 does not belong there": lambda path: path.write_bytes(b"*.\xff"),
}  # fmt: skip


def remove(path):
    path.rmdir() if path.is_dir() else path.unlink()


def test_what_cannot_be_used_is_told_once_and_changes_nothing(folder, members):
    code = """
import logging
logging.basicConfig(level="INFO", format="%(message)s")
settings = codetimer.configure(file=hear())
@codetimer.measured(name="shop.f")
def f(): pass
say("ready")
while (wanted := hear()):
    deadline = time.monotonic() + 60
    while str(settings.problem) != wanted and time.monotonic() < deadline: f(); time.sleep(0.005)
    time.sleep(0.6)
    say(settings.problem, settings.members)
"""
    members.write_text("*.f")
    with program(code, folder) as measured:
        measured.say(members)
        assert measured.hear() == "ready"
        for reason, make in BAD.items():
            remove(members)
            make(members)
            problem = f"file {members}: {reason}"
            measured.say(problem)
            assert measured.hear() == f"{problem} *.f"
        remove(members)
        members.write_text("*.f")
        measured.say("None")
        assert measured.hear() == "None *.f"
        measured.say()
        measured.end()
        told = measured.popen.stderr.read()
    for reason in BAD:
        assert told.count(reason) == 1, told
    assert told.count("can be used again") >= 1


def test_unreadable(folder, members):
    if os.geteuid() == 0:
        pytest.skip("root reads every file; tests/core/real_config asks somebody else")
    members.write_text("*")
    members.chmod(0)
    settings = "settings = codetimer.configure(file=hear())\nsay(settings.problem)\n"
    with program(settings, folder) as measured:
        measured.say(members)
        assert measured.hear().endswith("it cannot be opened: Permission denied")


# ---- one that never rests ----


def test_a_thousand_replacements_a_second(folder, members):
    """Each list is one letter over and over; some are taken, and none is a mixture."""
    texts = [f"shop.{letter * 3000}" for letter in "abcdefgh"]
    members.write_text("shop.*")
    with blocked(folder, members) as measured:
        assert measured.hear() == "ready"
        with codetimer.attach(measured.pid, directory=folder) as view:
            seen, replaced, begun = set(), 0, time.monotonic()
            while time.monotonic() < begun + 2 or len(seen) < 3:
                assert time.monotonic() < begun + 120
                replace(members, texts[replaced % len(texts)])
                replaced += 1
                seen.add(view.members)
                time.sleep(0.0005)
            assert seen <= {"shop.*", *texts}
            replace(members, "*.g")
            wait_until(lambda: enabled(view) == {G}, 60)
        print(f"{replaced} replacements, {len(seen)} lists seen")
        measured.say()
        assert measured.hear() == f"file {members} {members} None"
        measured.end()


# ---- who wins ----


def test_a_file_writes_only_when_it_changes(folder, members):
    members.write_text("*.f")
    with blocked(folder, members) as measured:
        assert measured.hear() == "ready"
        assert command(folder, "enable", str(measured.pid), "*.g").returncode == 0
        with codetimer.attach(measured.pid, directory=folder) as view:
            members.touch()
            replace(members, "*.f")
            time.sleep(1)  # looks are made; none of them may change anything
            assert enabled(view) == {F, G} and view.members == "*.f;*.g"
            members.write_text("*.f ")
            wait_until(lambda: enabled(view) == {F}, 60)
        measured.end()


def test_settings_file(folder, members):
    code = """
settings = codetimer.configure(file=hear())
say(settings.members)
say(codetimer.configure(file=""), codetimer.configure().file)
import pathlib
settings.file = pathlib.Path(hear())
say(settings.file, settings.members)
settings.reload()
codetimer.configure("x")
say(settings.members)
settings.reload()
say(settings.members, settings.source)
del settings.file
say(settings.file, settings.members)
settings.file = None
try: settings.reload()
except LookupError as error: say(error)
"""
    members.write_text("a")
    with program(code, folder) as measured:
        measured.say(members)
        assert measured.hear() == "a"
        assert measured.hear() == f"<codetimer.Settings: members 'a' from file {members}> None"
        members.write_text("b")
        measured.say(members)
        assert measured.hear() == f"{members} b"
        assert measured.hear() == "x"
        assert measured.hear() == f"b file {members}"
        assert measured.hear() == "None b"
        assert re.search(r"neither a file nor a provider is set; .* configure\(provider=", measured.hear())
        measured.end()


def test_arguments():
    for wrong in (5, 1.5, ["x"], True):
        with pytest.raises(TypeError, match=r"file must be a path \(str or os.PathLike\) or None, not"):
            codetimer.configure(file=wrong)
    with pytest.raises(ValueError, match="null"):
        codetimer.configure(file="a\0b")
    with pytest.raises(ValueError, match="the path of the file is too long"):
        codetimer.configure(file="x" * 5000)
    with pytest.raises(TypeError, match="members must be a str"):
        codetimer.configure(5, "/nowhere")
    assert codetimer.configure().file is None
