# SPDX-License-Identifier: MIT
"""Guards live counters where processes multiply: a child counts from zero in a file of its own, exactly, and writes
nothing into its parent's; both languages of a process are joined. Fails if a fork loses or doubles a single call."""

import ctypes.util
import http.client
import importlib.util
import os
import signal
import sys
import threading
from pathlib import Path

import codetimer
import pytest
from live import program

CHILDREN = 16
F = "__main__/__main__.f"


@pytest.fixture
def folder(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path


def all_samples(folder):
    """The samples of each live process."""
    found = {}
    for process in codetimer.processes(folder):
        if process.state == "live":
            with codetimer.attach(process, directory=folder) as view:
                found[process.pid] = view.sample()
    return found


FORKS = """
import random
random.seed(7)
@codetimer.measured
def f(): pass
@codetimer.measured
def parent_only(): pass
for _ in range(1000): f()
parent_only()
say("ready")
hear()
read, write = os.pipe()
children = []
for i in range(16):
    calls = random.randrange(1, 20_000)
    pid = os.fork()
    if pid == 0:
        os.close(write)
        for _ in range(calls): f()
        codetimer.timer(f"child.n{i}").counter.record(i)
        say("done")
        os.read(read, 1)
        os._exit(0) if i % 2 else sys.exit(0)
    children.append((pid, calls))
say(children)
hear()
os.close(write)
for pid, _ in children: os.waitpid(pid, 0)
say("over")
hear()
f()
"""


def test_sixteen_forked_children(folder):
    with program(FORKS, folder) as measured:
        measured.hear()
        (process,) = codetimer.processes(folder)
        before = Path(process.path).read_bytes()
        measured.say()
        lines = [measured.hear() for _ in range(CHILDREN + 1)]
        children = dict(eval(next(line for line in lines if line != "done")))
        samples = all_samples(folder)
        assert samples.keys() == children.keys() | {measured.pid}
        assert Path(process.path).read_bytes() == before
        assert samples[measured.pid][F].calls == 1000
        for i, (pid, calls) in enumerate(children.items()):
            assert samples[pid][F].calls == sum(samples[pid][F].buckets) == calls
            assert samples[pid][f"child/child.n{i}"].total_ns == i
            assert samples[pid]["__main__/__main__.parent_only"].calls == 0
        measured.say()
        assert measured.hear() == "over"
        states = {each.pid: each.state for each in codetimer.processes(folder)}
        expected = {pid: "dead" for i, pid in enumerate(children) if i % 2}  # the others ended cleanly
        assert states == expected | {measured.pid: "live"}
        assert Path(process.path).read_bytes() == before


def test_a_child_outlives_its_parent(folder):
    code = """
@codetimer.measured
def f(): pass
f()
if os.fork() == 0:
    for _ in range(5): f()
    say(os.getpid())
    hear()
    f()
    say("again")
    hear()
    os._exit(0)
hear()
os._exit(0)
"""
    with program(code, folder) as measured:
        child = int(measured.hear())
        os.kill(measured.pid, signal.SIGKILL)
        measured.popen.wait()
        assert {each.pid: each.state for each in codetimer.processes(folder)} == {measured.pid: "dead", child: "live"}
        measured.say()
        assert measured.hear() == "again"
        with codetimer.attach(child, directory=folder) as view:
            assert view.sample()[F].calls == 6
        os.kill(child, signal.SIGKILL)


def test_forks_while_threads_count(folder):
    code = """
import threading
@codetimer.measured
def f(): pass
stop = False
def count():
    while not stop: f()
threads = [threading.Thread(target=count) for _ in range(3)]
for thread in threads: thread.start()
for i in range(60):
    pid = os.fork()
    if pid == 0:
        for _ in range(100): f()
        os._exit(0 if codetimer.counters["__main__.f"].calls == 100 else 1)
    assert os.waitpid(pid, 0)[1] == 0, i
stop = True
for thread in threads: thread.join()
say("done")
"""
    with program(code, folder) as measured:
        assert measured.hear() == "done"


POOL = """
import multiprocessing
import os, sys
import codetimer

@codetimer.measured
def f(i):
    return os.getpid()

if __name__ == "__main__":
    f(0)
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(3) as pool:
        pids = pool.map(f, range(300), chunksize=5)
        print({pid: pids.count(pid) for pid in set(pids)}, flush=True)
        sys.stdin.readline()
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(folder, method):
    script = folder / "pool.py"
    script.write_text(POOL)
    segments = folder / "segments"
    segments.mkdir(mode=0o700)
    with program("", segments, command=[sys.executable, str(script), method]) as measured:
        counted = eval(measured.hear())
        assert sum(counted.values()) == 300
        samples = all_samples(segments)
        for pid, calls in counted.items():
            assert samples[pid]["pool/pool.f"].calls == calls, pid
        assert samples[measured.pid]["pool/pool.f"].calls == 1


# ---- a pre-fork server under load ----

APP = """
import codetimer

@codetimer.measured
def handle(environ):
    return environ["PATH_INFO"].encode()

handle({"PATH_INFO": "in the master"})

def app(environ, start_response):
    body = handle(environ)
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""


@pytest.mark.skipif(importlib.util.find_spec("gunicorn") is None, reason="gunicorn is not installed here")
@pytest.mark.parametrize("preload", [True, False])
def test_gunicorn(folder, preload):
    (folder / "shop.py").write_text(APP)
    segments = folder / "segments"
    segments.mkdir(mode=0o700)
    line = [sys.executable, "-m", "gunicorn", "--chdir", str(folder), "-w", "4", "-b", "127.0.0.1:0", "shop:app"]
    line += ["--preload"] if preload else []
    with program("", segments, command=line) as server:
        port = 0
        while not port:
            text = server.popen.stderr.readline()
            assert text, "gunicorn ended"
            port = int(text.partition("127.0.0.1:")[2].split()[0]) if "Listening at" in text else 0
        drain = threading.Thread(target=server.popen.stderr.read)
        drain.start()
        requests = load(port)
        samples = all_samples(segments)
        master = samples.pop(server.pid, None)
        assert (master is not None) == preload
        if preload:
            assert master["shop/shop.handle"].calls == 1
        made = 0 if preload else len(samples)  # each worker imported the application
        assert sum(each["shop/shop.handle"].calls for each in samples.values()) == requests + made
        assert len(samples) >= 2
        server.popen.terminate()
        server.popen.wait(60)
        drain.join()
    assert codetimer.processes(segments) == []


def load(port):
    answers = []

    def ask():
        for i in range(100):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", f"/{i}")
            answers.append(connection.getresponse().read() == f"/{i}".encode())
            connection.close()

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 600 and all(answers)
    return len(answers)


# ---- two languages ----

BOTH = """
import ctypes
lua = ctypes.CDLL("liblua5.4.so.0", ctypes.RTLD_GLOBAL)
lua.luaL_newstate.restype = ctypes.c_void_p
lua.lua_tolstring.restype = ctypes.c_char_p
state = ctypes.c_void_p(lua.luaL_newstate())
lua.luaL_openlibs(state)
def run(code):
    failed = lua.luaL_loadstring(state, code) or lua.lua_pcallk(state, 0, 1, 0, ctypes.c_ssize_t(0), None)
    assert not failed, lua.lua_tolstring(state, -1, None)
run(b'''
package.cpath = os.getenv("TEST_LUA_CPATH")
codetimer = require "codetimer"
shared = codetimer.measured(function() end, "shop.shared")
only = codetimer.measured(function() end, "shop.lua")
for i = 1, 30 do shared() end
only()
''')
@codetimer.measured(name="shop.shared", help="of Python")
def shared(): pass
@codetimer.measured(name="shop.python")
def only(): pass
for _ in range(12): shared()
only()
say("ready")
while hear():
    shared()
    run(b"shared()")
    say("called")
"""


def lua_module():
    root = Path(__file__).resolve().parents[2]
    pattern = os.environ.get("CODETIMER_LUA_CPATH", f"{root}/build/lua/5.4/?.so")
    return pattern if Path(pattern.replace("?", "codetimer")).is_file() else None


def has_lua_library():
    try:
        ctypes.CDLL("liblua5.4.so.0")
    except OSError:
        return False
    return True


@pytest.mark.skipif(lua_module() is None or not has_lua_library(), reason="the Lua module or liblua5.4 is not here")
def test_two_languages_in_one_process(folder):
    with program(BOTH, folder, TEST_LUA_CPATH=lua_module() or "") as measured:
        measured.hear()
        assert len(codetimer.processes(folder)) == 2
        with codetimer.attach(measured.pid, directory=folder) as view:
            assert len(view.segments) == 2 and len({process.host for process in view.segments}) == 2
            samples = view.sample()
            assert {key: each.calls for key, each in samples.items()} == {
                "shop/shop.shared": 42, "shop/shop.lua": 1, "shop/shop.python": 1
            }  # fmt: skip
            assert sum(samples["shop/shop.shared"].buckets) == 42
            assert view.counters["shop/shop.shared"].help == "of Python"
            view.disable("*.shared")
            measured.say("call")
            measured.hear()
            assert view.sample()["shop/shop.shared"].calls == 42
            view.enable("*.shared")
            measured.say("call")
            measured.hear()
            later = view.sample()["shop/shop.shared"]
            assert later.calls == 44 and (later - samples["shop/shop.shared"]).calls == 2
        measured.popen.kill()
        measured.popen.wait()
    assert [each.state for each in codetimer.processes(folder)] == ["dead", "dead"]
