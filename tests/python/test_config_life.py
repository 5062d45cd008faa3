# SPDX-License-Identifier: MIT
"""Guards the life of the threads that follow the members list: none where nobody needs one, one that keeps no program
alive and says nothing at its end however it ends, and a forked child and a subinterpreter that go on by themselves."""

import codetimer
import pytest
from live import program, wait_until


@pytest.fixture
def folder(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path


@pytest.fixture
def members(folder):
    path = folder / "members"
    path.write_text("*.f")
    return path


F, G = "__main__/__main__.f", "__main__/__main__.g"
TWO = """
import threading
@codetimer.measured
def f(): pass
@codetimer.measured
def g(): pass
f(); g()
"""


def enabled(view):
    return {key for key, counter in view.counters.items() if counter.enabled}


def run(folder, code, exit_code=0, **more):
    """What a program says that ends by itself, without a word on standard error."""
    with program(code, folder, **more) as measured:
        measured.popen.stdin.close()
        said = measured.popen.stdout.read()
        assert measured.popen.wait(60) == exit_code, measured.popen.stderr.read()
        assert measured.popen.stderr.read() == ""
    return said.split()


def test_no_thread_without_need(folder):
    code = TWO + """
codetimer.configure("*.f"); codetimer.configure(); codetimer.poll(); f()
say(threading.active_count(), "codetimer.following" in sys.modules)
"""
    assert run(folder, code) == ["1", "False"]


def test_one_thread_by_the_name_of_codetimer(folder, members):
    code = TWO + f"""
for _ in range(3): settings = codetimer.configure(file={str(members)!r})
settings.on_change(print)
say(*sorted(t.name for t in threading.enumerate()), *{{t.daemon for t in threading.enumerate()}})
"""
    assert run(folder, code) == ["MainThread", "codetimer", "False", "True"]
    assert run(folder, TWO + "say(*sorted(t.name for t in threading.enumerate()))", CODETIMER_CONFIG=str(members)) == [
        "MainThread", "codetimer"
    ]  # fmt: skip


PROVIDER = """
class Provider:
    def members(self):
        if BLOCK: time.sleep(3600)
        return "*.f"
def changed(settings):
    if BLOCK: time.sleep(3600)
codetimer.configure().on_change(changed)
codetimer.configure(file=FILE)
codetimer.configure("x", provider=Provider())
"""


ENDS = [
    "",
    "sys.exit(0)",
    "os._exit(0)",
    "threading.Thread(target=time.sleep, args=(0.1,)).start()",
    "import atexit; atexit.register(codetimer.configure, 'late')",
]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("block", [False, True])
def test_the_end_is_quiet(folder, members, end, block):
    code = f"BLOCK, FILE = {block}, {str(members)!r}\n" + TWO + PROVIDER + end
    assert run(folder, code) == []


def test_started_at_the_very_end(folder, members):
    code = TWO + f"""
import atexit
class Late:
    def __del__(self): codetimer.configure(file={str(members)!r})
late = Late()
late.self = late
atexit.register(codetimer.configure, file={str(members)!r})
"""
    with program(code, folder) as measured:
        measured.end()  # whether it can start one depends on the version; it ends in any case


FORK = TWO + """
settings = codetimer.configure(file=hear())
changes = []
settings.on_change(lambda one: changes.append(one.members))
def told():  # the callbacks run in a thread of their own, after the list is in force
    deadline = time.monotonic() + 60
    while changes[-1:] != ["*.g"] and time.monotonic() < deadline: time.sleep(0.01)
    return changes
read, write = os.pipe()
pid = os.fork()
if pid == 0:
    f(); g()
    say("child", os.getpid())
    os.close(write)
    os.read(read, 1)
    say("child", *told())
    sys.exit(0)
say("parent", os.getpid())
hear()
os.write(write, b"x")
os.waitpid(pid, 0)
say("parent", *told())
"""


def test_a_forked_child_goes_on(folder, members):
    with program(FORK, folder, PYTHONWARNINGS="ignore::DeprecationWarning") as measured:
        measured.say(members)
        pids = dict(measured.hear().split() for _ in range(2))
        with codetimer.attach(int(pids["parent"]), directory=folder) as parent:
            wait_until(lambda: any(process.pid == int(pids["child"]) for process in codetimer.processes(folder)), 60)
            with codetimer.attach(int(pids["child"]), directory=folder) as child:
                assert enabled(child) == enabled(parent) == {F}
                members.write_text("*.g")
                wait_until(lambda: enabled(child) == enabled(parent) == {G}, 60)
                wait_until(lambda: child.acknowledged and parent.acknowledged, 60)
        measured.say()
        said = [measured.hear(), measured.hear()]
        assert said == ["child *.g", "parent *.g"]
        measured.end()


SUBINTERPRETER = """
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
code = '''
import codetimer
with codetimer.timer("shop.f"): pass
settings = codetimer.configure(file=FILE)
assert settings.members == "*.f", settings.members
@settings.on_change
def changed(one): pass
class Provider:
    def members(self): return None
codetimer.configure(provider=Provider())
codetimer.poll()
'''.replace("FILE", repr(hear()))
# Before 3.12 this module refuses to end an interpreter that has threads.
for isolated in (False, True) if sys.version_info >= (3, 12) else (True, True):
    if sys.version_info >= (3, 13): one = interpreters.create("isolated" if isolated else "legacy")
    else: one = interpreters.create(isolated=isolated)
    failed = interpreters.run_string(one, code)
    assert failed is None, failed
    interpreters.destroy(one)
    say("done")
"""


def test_a_subinterpreter_follows_by_itself_and_ends(folder, members):
    with program(SUBINTERPRETER, folder, PYTHONWARNINGS="ignore") as measured:
        measured.say(members)
        assert measured.hear() == "done"
        assert measured.hear() == "done"
        measured.end()
        told = measured.popen.stderr.read()
    assert all("no thread to follow the members list" in line for line in told.splitlines()), told


def test_threads_do_not_pile_up(folder, members):
    """Providers that are replaced take their threads with them."""
    code = TWO + f"""
class Provider:
    def members(self): return None
settings = codetimer.configure(file={str(members)!r})
for _ in range(20): codetimer.configure(provider=Provider())
settings.provider = None
deadline = time.monotonic() + 60
while threading.active_count() > 2 and time.monotonic() < deadline: time.sleep(0.01)
say(threading.active_count())
"""
    assert run(folder, code) == ["2"]


def test_no_lock_is_held_in_the_child(folder, members):
    """Forks at any moment: each child can configure, read and end."""
    code = TWO + """
settings = codetimer.configure(file=hear())
settings.on_change(lambda one: None)
class Provider:
    def members(self): return "p"
codetimer.configure(provider=Provider())
for i in range(25):
    codetimer.configure(f"m{i}")
    pid = os.fork()
    if pid == 0:
        codetimer.configure(f"c{i}")
        codetimer.configure(provider=Provider())
        sys.exit(0 if settings.members == "p" else 3)
    assert os.waitpid(pid, 0)[1] == 0, i
"""
    with program(code, folder, PYTHONWARNINGS="ignore::DeprecationWarning") as measured:
        measured.say(members)
        measured.end()
