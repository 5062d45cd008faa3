# SPDX-License-Identifier: MIT
"""Guards that codetimer run is python to the program: the same bytes on both streams and the same exit status for each
program of a table, whatever it looks at and however it ends."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import zipfile

import pytest
from running import both, finish, run, start

# Each is a script that prints what it sees of where it runs, or ends in its own way.
SCRIPTS = {
    "names": """
        import sys
        print(list(globals()), __name__, __doc__, __file__, __cached__, __package__, __spec__, type(__loader__))
        print(__builtins__, __loader__.name, __loader__.path, sys.modules["__main__"].__dict__ is globals())
        print(sys.argv, sys.path, sys.flags, sys.warnoptions, sys._xoptions, sys.executable, sys.stdin.mode)
        print(sys._getframe().f_back, sys._getframe().f_lineno, getattr(__builtins__, "_", None))
        """,
    "main": """
        if __name__ == "__main__":
            print("main")
        """,
    "depth": """
        import functools, sys
        def level(n=0):
            try: return level(n + 1)
            except RecursionError: return n
        @functools.lru_cache
        def through_c(n): return n and through_c(n - 1)
        print(level() in range(900, 1000), sys.getrecursionlimit())
        """,
    "levels": """
        import sys
        deepest = 0
        def level(n):
            global deepest
            deepest = n
            level(n + 1)
        sys.setrecursionlimit(500)
        level(1)
        """,
    "stack": """
        import traceback, warnings
        traceback.print_stack()
        warnings.warn("beyond the stack", stacklevel=2)
        warnings.warn("here")
        def f(): warnings.warn("at the call", stacklevel=2)
        f()
        """,
    "raises": """
        print("before")
        def f(x):
            return 1 / x
        class Odd(Exception):
            pass
        try:
            f(0)
        except ZeroDivisionError as error:
            raise Odd("chained") from error
        """,
    "raises_a_group": "print('to be flushed first')\nraise BaseExceptionGroup('g', [KeyError(1), KeyboardInterrupt()])",
    "raises_after_output": "import sys\nprint('x' * 100)\nsys.stderr.write('y')\nraise RuntimeError",
    "syntax": "print('never')\nx = = 1\n",
    "syntax_at_the_end": "def f(:\n",
    "indentation": "def f():\n\tpass\n        pass\n",
    "warns_of_syntax": "x = 1\nif x is 1: print('y')\nassert (x, 'always')\nprint('\\d')\n",
    "null_byte": "print(1)\n\0\n",
    "not_utf8": b"# \xff\nprint(1)\n",
    "latin1": "# -*- coding: latin-1 -*-\nprint(ascii('\xe4'))\n".encode("latin-1"),
    "unknown_coding": "# -*- coding: nonsense -*-\nprint(1)\n",
    "bom": b"\xef\xbb\xbfprint(1)\r\nprint(2)\r",
    "empty": "",
    "future": "from __future__ import annotations\ndef f(x: nonsense): pass\nprint(f.__annotations__)\n",
    "annotations": "x: int = 1\nprint(__annotations__)\nprint(eval('lambda: 0').__code__.co_flags)",
    "exit": "import sys; sys.exit()",
    "exit_0": "import sys; sys.exit(0)",
    "exit_3": "import sys; sys.exit(3)",
    "exit_large": "import sys; sys.exit(2**40 + 5)",
    "exit_negative": "import sys; sys.exit(-1)",
    "exit_str": "import sys; sys.exit('a message')",
    "exit_tuple": "import sys; sys.exit((1, 2))",
    "exit_true": "import sys; sys.exit(True)",
    "exit_raised": "raise SystemExit",
    "exit_builtin": "exit(4)",
    "exit_at_once": "import os; print('lost'); os._exit(9)",
    "exit_in_atexit": "import atexit, sys; atexit.register(sys.exit, 7); print(1)",
    "raises_in_atexit": "import atexit; atexit.register(lambda: 1 / 0); print(1)",
    "aborts": "import os; os.abort()",
    "interrupted": "import signal; print(1); signal.raise_signal(signal.SIGINT); print(2)",
    "interrupted_deep": """
        import os, signal
        def f(): os.kill(os.getpid(), signal.SIGINT); [None for _ in range(100000)]
        try: f()
        finally: print("cleaned up")
        """,
    "interrupted_and_caught": """
        import signal
        try: signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt: print("caught")
        """,
    "interrupted_by_hand": "raise KeyboardInterrupt('by hand')",
    "interrupted_by_a_child": "class K(KeyboardInterrupt): pass\nraise K",
    "interrupt_ignored": "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); raise KeyboardInterrupt",
    "terminated": "import os, signal; print(signal.getsignal(15), flush=True); os.kill(os.getpid(), signal.SIGTERM)",
    "handles": """
        import signal
        print([signal.getsignal(each) for each in (signal.SIGINT, signal.SIGPIPE, signal.SIGHUP, signal.SIGUSR1)])
        signal.signal(signal.SIGUSR1, lambda number, frame: print(number, frame.f_code.co_name, frame.f_back))
        signal.raise_signal(signal.SIGUSR1)
        """,
    "atexit_order": """
        import atexit, sys, threading, time
        class Last:
            def __del__(self): print("finalized", flush=True)
        last = Last()
        def at_end(which): print(which, "__file__" in globals(), __name__, last is not None)
        atexit.register(at_end, "first")
        atexit.register(at_end, "second")
        threading._register_atexit(print, "of threads")
        started = threading.Event()
        def late():
            started.wait()
            threading.main_thread().join(60)
            print("the thread ends", threading.main_thread().is_alive())
        threading.Thread(target=late).start()
        started.set()
        print("the script ends")
        """,
    "daemon": """
        import threading
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        print(threading.current_thread() is threading.main_thread(), [
            each.daemon for each in threading.enumerate() if each.name != "codetimer"])
        """,
    "raises_in_a_thread": """
        import threading
        thread = threading.Thread(target=lambda: 1 / 0, name="t")
        thread.start()
        thread.join()
        """,
    "excepthook": """
        import sys
        def hook(kind, value, traceback):
            frames = []
            while traceback: frames.append(traceback.tb_frame.f_code.co_name); traceback = traceback.tb_next
            print(kind, value, frames, sys.last_value is value)
        sys.excepthook = hook
        def f(): raise ValueError(1)
        f()
        """,
    "excepthook_raises": "import sys\nsys.excepthook = lambda *_: 1 / 0\nraise ValueError(1)",
    "traceback_object": """
        import traceback, inspect
        def f():
            print([frame.function for frame in inspect.stack()])
            raise ValueError(1)
        try: f()
        except ValueError as error:
            traceback.print_exc()
            print(error.__traceback__.tb_frame.f_back, error.__context__)
        """,
    "profiles": """
        import sys
        seen = []
        sys.setprofile(lambda frame, event, arg: event[1] == "_" or seen.append((event, frame.f_code.co_name)))
        def f(): return 1
        f()
        sys.setprofile(None)
        print(seen)
        """,
    "stdin": "import sys; print(sys.stdin.read(), sys.stdin.buffer.raw.fileno())",
    "input": "print(input('? '), input())\nprint(input())",
    "stderr_closed": "import sys; sys.stderr.close(); print(1); sys.exit('lost')",
    "stdout_closed": "import sys; sys.stdout.close(); raise ValueError",
    "stdout_broken": "import os; print(1); os.close(1)",
    "descriptors": "import os; print(sorted(os.listdir('/proc/self/fd')))",
    "environment": "import os; print({k: v for k, v in os.environ.items() if not k.startswith('CODETIMER_')})",
    "directory": "import os; print(os.getcwd(), os.path.dirname(__file__))",
    "resources": "f = open(__file__)\ndel f\n",
    "unraisable": """
        class Broken:
            def __del__(self): 1 / 0
        Broken()
        """,
    "faulthandler": """
        import faulthandler, sys
        def f(): faulthandler.dump_traceback(all_threads=False)
        f()
        """,
    "fork": """
        import os, sys
        print("once", flush=True)
        if os.fork() == 0: print("child"); sys.exit(5)
        print(os.waitstatus_to_exitcode(os.wait()[1]))
        """,
    "execs": "import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'print(1)'])",
    "context": "import contextvars; print(list(contextvars.copy_context().items()))",
    "asyncgen": """
        import asyncio
        async def numbers():
            try:
                for i in range(3): yield i
            finally: print("closed")
        async def main():
            async for i in numbers(): print(i)
            raise RuntimeError("out of it")
        asyncio.run(main())
        """,
}


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def write(folder, name, source):
    path = folder / f"{name}.py"
    path.write_bytes(source if isinstance(source, bytes) else textwrap.dedent(source).encode())
    return path.name


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts(name, folder):
    script = write(folder, name, SCRIPTS[name])
    bare, measured = both([script, "-m", "--report", "x y"], folder, given=b"first\nsecond\n")
    assert measured == bare


def test_the_table_shows_something(folder):
    """A table in which every program failed alike would show nothing."""
    assert run([write(folder, "names", SCRIPTS["names"])], folder).out.startswith("['__name__', '__doc__',")
    assert run([write(folder, "exit_3", SCRIPTS["exit_3"])], folder) == (3, "", "")
    assert run([write(folder, "interrupted", SCRIPTS["interrupted"])], folder).code == -signal.SIGINT
    assert run([write(folder, "raises", SCRIPTS["raises"])], folder).err.endswith("Odd: chained\n")


@pytest.mark.parametrize(
    "flags",
    ["-O", "-OO", "-W error", "-X dev", "-X utf8=0", "-u", "-b", "-E", "-s", "-S", "-B -q", "-X importtime", "-I"],
)
def test_flags(flags, folder):
    words = flags.split()
    if not {"-I", "-E"}.isdisjoint(words) and run(["x"], folder, flags=words).err.find("No module named") >= 0:
        pytest.skip("codetimer is on PYTHONPATH alone, which this flag ignores")
    seen = "sys.flags, sys._xoptions, sys.path, __debug__, __doc__"
    script = write(folder, "flags", f"import sys; print({seen})\nassert 0")
    bare, measured = both([script], folder, flags=words)
    assert (measured.code, measured.out) == (bare.code, bare.out)
    assert measured.err.splitlines()[-4:] == bare.err.splitlines()[-4:]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.11 has -P")
def test_safe_path(folder):
    script = write(folder, "names", SCRIPTS["names"])
    (folder / "place").mkdir()
    write(folder / "place", "__main__", SCRIPTS["names"])
    for words in ([script], ["-m", "json.tool", "--help"], ["place"], ["-"]):
        bare, measured = both(words, folder, flags=["-P"], given=b"import sys; print(sys.path)")
        assert measured == bare and not bare.code, words


# ---- other ways to name a program ----


def test_paths(folder):
    (folder / "sub").mkdir()
    script = write(folder / "sub", "names", SCRIPTS["names"])
    (folder / "link.py").symlink_to(f"sub/{script}")
    (folder / "far.py").symlink_to("link.py")
    (folder / "no_ending").write_text("import sys; print(__file__, sys.argv)")
    paths = f"sub/{script}", f"./sub/{script}", f"sub/../sub/{script}", f"{folder}/sub/{script}", "link.py", "far.py"
    for path in (*paths, "./no_ending"):
        bare, measured = both([path, "-c"], folder)
        assert measured == bare and "-c" in bare.out, path


def test_compiled(folder):
    script = write(folder, "compiled", textwrap.dedent(SCRIPTS["names"]) + "def f(): raise ValueError\nf()\n")
    code = f"import py_compile; py_compile.compile({script!r}, 'alone.pyc')"
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
    bare, measured = both(["alone.pyc"], folder)
    assert measured == bare and "ValueError" in bare.err
    (folder / "bad.pyc").write_bytes(b"garbage")
    bare, measured = both(["bad.pyc"], folder)
    assert measured == bare and bare.code == 1


def test_standard_input(folder):
    given = b"import sys\nprint(sys.argv, sys.path[0], __file__, list(globals()), sys.stdin.read())\ndef f(): g()\nf()"
    bare, measured = both(["-", "-x"], folder, given=given)
    assert measured == bare and "NameError" in bare.err
    bare, measured = both(["-"], folder, given=b"")
    assert measured == bare == (0, "", "")
    bare, measured = both(["-"], folder, given=b"x = = 1")
    assert measured == bare and "SyntaxError" in bare.err


PACKAGE = """
import sys
print(list(globals()), __name__, __file__, __cached__, __package__, __spec__.name, type(__loader__).__name__)
print(sys.argv, sys.path[0])
def f():
    raise ValueError(__name__)
f()
"""


def test_modules(folder):
    package = folder / "package"
    package.mkdir()
    for name in ("__main__", "module"):
        write(package, name, PACKAGE)
    write(package, "__init__", "import sys; print(sys.argv, __name__, 'main' in sys.modules)")
    write(folder, "broken", "1 / 0")
    write(folder, "malformed", "x = = 1")
    (folder / "namespace").mkdir()
    (folder / "failing").mkdir()
    write(folder / "failing", "__init__", "import nonsense")
    good = "package", "package.module", "package.__main__", "this"
    bad = "broken", "malformed", "namespace", "failing", "failing.x", "nonsense", "package.nonsense", "nonsense.x"
    for module in (*good, *bad, "sys", "package.module.py", ".x"):
        bare, measured = both(["-m", module, "-m", "x"], folder)
        assert measured == bare, module
    bare, measured = both(["-mpackage", "x"], folder)
    assert measured == bare and "package/__main__.py', 'x']" in bare.out


def test_folders_and_archives(folder):
    place = folder / "place"
    place.mkdir()
    write(place, "__main__", "import helper\n" + PACKAGE)
    write(place, "helper", "print(__name__, __file__)")
    with zipfile.ZipFile(folder / "app.pyz", "w") as archive:
        for each in place.glob("*.py"):
            archive.write(each, each.name)
    (folder / "empty").mkdir()
    with zipfile.ZipFile(folder / "empty.zip", "w"):
        pass
    for name in ("place", "./place/", "app.pyz", "empty", "empty.zip", str(place)):
        bare, measured = both([name, "-x"], folder)
        assert measured == bare, name
        shutil.rmtree(place / "__pycache__", ignore_errors=True)


def test_a_program_that_cannot_be_opened(folder):
    (folder / "closed.py").touch(mode=0o000)
    for name in ("nowhere.py", "no/where.py", *(["closed.py"] if os.getuid() else [])):
        bare, measured = both([name], folder)
        assert measured.err.startswith(f"codetimer: can't open file '{folder}/{name}': [Errno ")
        assert (measured.code, measured.out) == (bare.code, bare.out) == (2, "")
        assert measured.err.partition(": ")[2] == bare.err.partition(": ")[2]


# ---- from outside ----


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals(number, folder):
    """Their effect while the program sleeps; it says so before, and the traceback may name either line."""
    script = write(folder, "sleeps", "import time\nprint('ready', flush=True)\nwhile True: time.sleep(60)\n")
    ends = []
    for measured in (False, True):
        popen = start([script], folder, measured=measured)
        assert popen.stdout.readline() == b"ready\n"
        popen.send_signal(number)
        ends.append(finish(popen))
    bare, measured = ends
    assert measured.code == bare.code == -number
    assert measured.err.splitlines()[-1:] == bare.err.splitlines()[-1:]
    assert measured.err.count("File ") == bare.err.count("File ")


def test_streams_that_are_closed(folder):
    script = write(folder, "streams", "import os, sys; os.write(9, repr((sys.stdin, sys.stdout, sys.stderr)).encode())")
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        ends = []
        for how in ("", "-m codetimer run"):
            line = f"exec {sys.executable} {how} {script} 9>said {closed}"
            code = f"import os; os.execv('/bin/sh', ['sh', '-c', {line!r}])"
            ends.append((run(["-c", code], folder, measured=False), (folder / "said").read_text()))
        assert ends[0] == ends[1], closed
        assert "None" in ends[0][1]


def test_modules_are_those_of_python(folder):
    """A program may have modules of its own that are called as those that codetimer needs."""
    script = write(folder, "modules", "import sys; print(*sorted(sys.modules))")
    code = "import sys; sys.argv[0] = 'codetimer'; from codetimer.__main__ import main; main()"
    bare = run([script], folder, measured=False).out.split()
    measured = run(["-c", code, "run", "--report", script], folder, measured=False).out.split()
    extra = {each for each in set(measured) - set(bare) if each.partition(".")[0] != "codetimer"}
    assert set(bare) <= set(measured)
    assert not extra & set("argparse ast asyncio importlib.util inspect json logging pkgutil runpy".split())
