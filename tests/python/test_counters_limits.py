# SPDX-License-Identifier: MIT
"""Guards the measured program where counters come to their limits: too many, no memory, names of scripts,
sub-interpreters, forks, the end of the interpreter. Fails if a refusal reaches the program."""

import importlib.util
import os
import subprocess
import sys

import pytest
from conftest import LIBRARY

INTERPRETERS_MODULE = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"


# ---- too many ----


def test_a_hundred_thousand(script):
    done = script(
        "import codetimer, io\n"
        "ran = 0\n"
        "for i in range(100_000):\n"
        "    with codetimer.timer(f'shop.m{i}') as timer: ran += 1\n"
        "counters = codetimer.counters\n"
        "print(ran, len(counters), counters.capacity, counters.refused, counters.last_refused, timer.counter, timer)\n"
        "codetimer.report(file := io.StringIO())\n"
        "print(file.getvalue().count('shop.m'), file.getvalue().splitlines()[-1])\n"
        "counters['shop/shop.m0'].remove()\n"
        "print(codetimer.timer('shop.m99999').counter.listed, counters.refused)\n"
    )
    lines = done.stdout.decode().splitlines()
    assert lines[0] == "100000 16384 16384 83616 shop/shop.m99999 None <codetimer.timer 'shop.m99999', not measured>"
    assert lines[1].startswith("16385 83,616 refused (limit 16,384, CODETIMER_MAX_COUNTERS)")
    assert lines[2] == "True 83616"
    assert done.stderr.count(b"\n") == 1 and b"counter refused: shop/shop.m16384; " in done.stderr


def test_refused(script):
    done = script(
        "import codetimer\n"
        "first, second = codetimer.timer('first'), codetimer.timer('second')\n"
        "with first, second, second: pass\n"
        "print(first.counter.calls, second.counter, second, list(codetimer.counters), codetimer.counters.refused)\n"
        "try:\n"
        "    with second: raise ValueError('mine')\n"
        "except ValueError as error: print(error)\n"
        "print(codetimer.timer('first').counter == first.counter)\n",
        env={"CODETIMER_MAX_COUNTERS": "1"},
    )
    assert done.stdout.decode().splitlines() == [
        "1 None <codetimer.timer 'second', not measured> ['main/first'] 1",
        "mine",
        "True",
    ]


def test_no_memory(script):
    """Python's own allocator fails at the n-th request, for every n: an error at worst, never a crash."""
    pytest.importorskip("_testcapi")
    done = script(
        "import codetimer, _testcapi\n"
        "def use():\n"
        "    with codetimer.timer('test.memory') as timer:\n"
        "        with timer: pass\n"
        "    counter = timer.counter\n"
        "    if counter is None: raise MemoryError\n"
        "    counter.record(5)\n"
        "    earlier = counter.sample()\n"
        "    (counter.sample() - earlier).percentile(50)\n"
        "    list(codetimer.counters.items()), codetimer.counters['test.memory']\n"
        "    repr(counter), counter.sample().buckets\n"
        "use()\n"
        "failed = 0\n"
        "for n in range(400):\n"
        "    _testcapi.set_nomemory(n, n + 1)\n"
        "    try:\n"
        "        use()\n"
        "    except MemoryError:\n"
        "        failed += 1\n"
        "    finally:\n"
        "        _testcapi.remove_mem_hooks()\n"
        "print(failed > 20, codetimer.counters['test.memory'].in_flight)\n"
    )
    assert done.stdout == b"True 0\n", done.stderr


# ---- the name of the script ----


def run_program(*arguments, cwd):
    environment = os.environ | {"PYTHONPATH": LIBRARY}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, stdout=subprocess.PIPE, timeout=120, check=True)


def test_script_names(tmp_path):
    code = "import codetimer; print(codetimer.timer('x').counter.key)"
    (tmp_path / "pack").mkdir()
    for file in ("my.script.py", "pack/__init__.py", "pack/__main__.py", "pack/part.py"):
        (tmp_path / file).write_text(code if file != "pack/__init__.py" else "")

    def key(*arguments):
        return run_program(*arguments, cwd=tmp_path).stdout.decode().strip()

    assert key("-c", code) == "main/x"
    assert key("my.script.py") == key(str(tmp_path / "my.script.py")) == "my.script/x"
    assert key("-m", "pack") == "pack/x"
    assert key("-m", "pack.part") == "pack.part/x"


def test_script_name_in_a_spawned_child(tmp_path):
    (tmp_path / "parent.py").write_text(
        "import multiprocessing, codetimer\n"
        "def child(): print(codetimer.timer('x').counter.key, flush=True)\n"
        "if __name__ == '__main__':\n"
        "    process = multiprocessing.get_context('spawn').Process(target=child)\n"
        "    process.start(); process.join()\n"
    )
    assert run_program("parent.py", cwd=tmp_path).stdout == b"parent/x\n"


# ---- several interpreters, several processes ----

INTERPRETERS = """
import codetimer, sys, threading
if sys.version_info >= (3, 13):
    import _interpreters as interpreters
    create = lambda: interpreters.create("isolated")
    run = lambda one, code: interpreters.exec(one, code)
else:
    import _xxsubinterpreters as interpreters
    create, run = interpreters.create, interpreters.run_string
timer = codetimer.timer("shared", category="all")
code = '''
import sys; sys.path[:] = PATH
import codetimer
timer = codetimer.timer("shared", category="all")
for _ in range(100_000):
    with timer: pass
timer.counter.record(5, error=True)
assert codetimer.counters["shared"] == timer.counter
'''.replace("PATH", repr(sys.path))
ids = [create() for _ in range(3)]
failed = []
def work(one):
    try:
        if run(one, code) is not None: failed.append(one)
    except Exception as error: failed.append(error)
threads = [threading.Thread(target=work, args=(one,)) for one in ids]
for thread in threads: thread.start()
for _ in range(100_000):
    with timer: pass
for thread in threads: thread.join()
print(failed, timer.counter.calls, timer.counter.errors, timer.counter.in_flight)
for one in ids: interpreters.destroy(one)
print(timer.counter.calls, timer.counter.unclean)
again = create()
print(run(again, code), timer.counter.calls)
"""


@pytest.mark.skipif(importlib.util.find_spec(INTERPRETERS_MODULE) is None, reason="no module for sub-interpreters here")
def test_sub_interpreters(script):
    """Own interpreters (with a GIL each, from 3.12 on) count together; what one had counted stays when it ends."""
    done = script(INTERPRETERS)
    assert done.stdout.decode().splitlines() == ["[] 400003 3 0", "400003 False", "None 500004"], done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork(script):
    done = script(
        "import codetimer, os, threading, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "timer, stop = codetimer.timer('x'), threading.Event()\n"
        "def work():\n"
        "    while not stop.is_set():\n"
        "        with codetimer.timer('y'): pass\n"
        "        list(codetimer.counters)\n"
        "thread = threading.Thread(target=work)\n"
        "thread.start()\n"
        "for i in range(50):\n"
        "    with timer: pass\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        before = timer.counter.calls\n"
        "        with timer: pass\n"
        "        with codetimer.timer('new'): pass\n"
        "        good = timer.counter.calls == before + 1 and codetimer.counters['new'].calls == 1\n"
        "        os._exit(0 if good else 1)\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
        "stop.set()\n"
        "thread.join()\n"
        "print(timer.counter.calls, 'new' in codetimer.counters)\n"
    )
    assert done.stdout == b"50 False\n", done.stderr


def test_the_end_of_the_interpreter(script):
    done = script(
        "import codetimer, atexit\n"
        "timer = codetimer.timer('x')\n"
        "class Late:\n"
        "    def __init__(self): self.timer, self.counters, self.itself = timer, codetimer.counters, self\n"
        "    def __del__(self):\n"
        "        with self.timer: self.timer.counter.record(5)\n"
        "        self.counters['x'].remove()\n"
        "late = Late()\n"
        "timer.__enter__()\n"
        "atexit.register(lambda: print(timer.counter.in_flight))\n"
    )
    assert done.returncode == 0 and done.stdout == b"1\n" and done.stderr == b""


def test_imported_twice(script):
    done = script(
        "import codetimer, sys, gc\n"
        "first = codetimer.timer('x')\n"
        "for name in [name for name in sys.modules if name.startswith('codetimer')]: del sys.modules[name]\n"
        "old = codetimer\n"
        "import codetimer\n"
        "second = codetimer.timer('x')\n"
        "with first, second: pass\n"
        "print(first.counter.calls, second.counter.calls, first.counter == second.counter)\n"
        "del old; gc.collect()\n"
        "with first: pass\n"
        "print(second.counter.calls)\n"
    )
    assert done.stdout == b"2 2 False\n3\n" and done.stderr == b""
