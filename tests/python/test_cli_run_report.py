# SPDX-License-Identifier: MIT
"""Guards what codetimer run measures and says: which functions without being told, exact counts of a program's own
functions from its first line on, the report after every kind of end and only once, and clear refusals."""

import signal
import sys
import textwrap

import codetimer
import pytest
from live import command, wait_until
from running import Ended, finish, run, start

SHOP = """
import functools, sys

def plain(x, *, y=1): return x
def recursive(n): return n and recursive(n - 1)
def failing(): raise ValueError
def never(): pass
def numbers():
    yield 1
    yield 2

@functools.lru_cache
def cached(x): return x

@functools.wraps(plain)
def named(x): return x

class Shop:
    def __init__(self): self.orders = []
    def order(self, what): self.orders.append(what); return self
    @staticmethod
    def static(x): return x
    @classmethod
    def made(cls): return cls()
    @property
    def size(self): return len(self.orders)
    def __len__(self): return self.size
    def __new__(cls): return super().__new__(cls)
    def __init_subclass__(cls): cls.sub = True
    def __class_getitem__(cls, item): return item

class Sub(Shop):
    def order(self, what): return super().order(what)

if __name__ == "__main__":
    for i in range(3): plain(i, y=2)
    plain(*(1,), **{"y": 3}); list(map(plain, "ab")); sorted("ba", key=plain)
    recursive(4)
    for i in range(2):
        try: failing()
        except ValueError: pass
    cached(1), cached(1), cached(2)
    named(1)
    shop = Shop()
    bound = shop.order
    bound(1), bound(2)
    shop.order(3).static(4), Shop.static(5), Shop.made(), len(shop), shop.size
    Sub().order(1), Sub.sub, Shop[1]
"""
COUNTS = {
    "plain": 8, "recursive": 5, "failing": 2, "cached": 2, "Shop.__init__": 3, "Shop.order": 4, "Shop.static": 2,
    "Shop.made": 1, "Shop.size": 2, "Shop.__len__": 1, "Sub.order": 1,
}  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def write(folder, name, source):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(textwrap.dedent(source))
    return name


def table(text, errors=False):
    """The calls (and errors) of each row of a report."""
    rows = {}
    lines = iter(text.splitlines())
    assert any(line.startswith("Member ") for line in lines), text
    for line in lines:
        name, *rest = line.split()
        if not line.startswith("codetimer: ") and len(rest) > 6:
            calls, failed = (int(each.replace(",", "")) for each in (rest[0], rest[-2]))
            rows[name] = (calls, failed) if errors else calls
    return rows


def without(names, *rest):
    return {name: calls for name, calls in names.items() if not name.startswith(rest)}


# ---- what is measured ----


def test_functions_of_the_script(folder):
    """From the first call on, also what the script calls in the line after its definition."""
    ended = run(["--report", write(folder, "shop.py", SHOP)], folder)
    assert (ended.code, ended.out) == (0, "")
    counts = table(ended.err)
    shop = "shop.Shop."
    skipped = ("shop.named", f"{shop}__new__", f"{shop}__init_subclass__", f"{shop}__class_getitem__", "shop.<")
    assert without(counts, *skipped) == {f"shop.{name}": calls for name, calls in COUNTS.items()}
    assert table(ended.err, errors=True)["shop.failing"] == (2, 2)


def test_functions_inside_functions(folder):
    script = """
        def outer(n):
            def inner(): return n
            return inner
        for i in range(3): outer(i)()
        """
    counts = table(run(["--report", write(folder, "nest.py", script)], folder).err)
    assert counts == {"nest.outer": 3, "nest.outer.<locals>.inner": 3}


def test_the_same_for_a_module_of_a_package(folder):
    write(folder, "pack/__init__.py", "def helper(): pass\n")
    write(folder, "pack/other.py", "def far(): pass\n")
    write(folder, "pack/__main__.py", "from pack import helper, other\nhelper(), other.far(), other.far()\n" + SHOP)
    counts = table(run(["--report", "-m", "pack"], folder).err)
    own = {f"pack.{name}": calls for name, calls in COUNTS.items()} | {"pack.helper": 1, "pack.other.far": 2}
    assert {name: counts.get(name) for name in own} == own


def test_a_folder_and_standard_input(folder):
    source = "def f(): pass\nfor i in range(3): f()\n"
    write(folder, "place/__main__.py", source)
    assert table(run(["--report", "place"], folder).err) == {"__main__.f": 3}
    assert table(run(["--report", "-"], folder, given=source.encode()).err) == {"<stdin>.f": 3}


@pytest.mark.parametrize("name", ["a;b.py", "a!b*.py", "#.py", ".hidden.py", "no_ending", "two.dots.py", "a\\b.py"])
def test_odd_names(name, folder):
    script = write(folder, name, "def f(): pass\nf()\n")
    ended = run(["--report", "--", script], folder)
    assert list(table(ended.err).values()) == [1] and "matched no function" not in ended.err


def test_members_that_are_asked_for(folder):
    script = write(folder, "shop.py", SHOP + "    import json; json.dumps([1])\n")
    ended = run(["--measure", "shop.Shop.*;!*.order;json.dumps;nowhere.*;!never.*", "--report", script], folder)
    counts = table(ended.err)
    assert counts["json.dumps"] == 1 and counts["shop.Shop.static"] == 2
    assert not [name for name in counts if name.endswith("order") or name == "shop.plain"]
    assert "\ncodetimer: pattern 'nowhere.*' matched no function that was called\n" in ended.err
    assert ended.err.count("matched no function") == 1
    bare = "codetimer: shop.Shop.__new__ could not be measured, or not everywhere: type makes a static"
    assert (bare in ended.err) == (sys.version_info < (3, 12))
    ended = run(["--measure=shop.plain", "--report", script], folder)
    assert table(ended.err) == {"shop.plain": 8}


def test_what_is_out_of_reach_is_named(folder):
    write(folder, "helper.py", "def hidden(): pass\ndef plain(): pass\nkept = [hidden]\ndel hidden\n")
    source = "import helper\ndef f(): pass\nkept = [f]\nf(), helper.kept[0](), helper.plain()\n"
    script = write(folder, "keeps.py", source)
    ended = run(["--measure", "helper.*;keeps.*", "--report", script], folder)
    said = [line for line in ended.err.splitlines() if line.startswith("codetimer: ")]
    counts = table(ended.err)
    if sys.version_info < (3, 12):
        assert len(said) == 1 and said[0].startswith("codetimer: helper.hidden could not be measured, or not")
        assert counts == {"keeps.f": 1, "helper.plain": 1}
    else:
        assert not said and counts == {"keeps.f": 1, "helper.plain": 1, "helper.hidden": 1}


def test_the_environment_is_obeyed(folder):
    script = write(folder, "shop.py", SHOP)
    assert table(run(["--report", script], folder, env={"CODETIMER_MEASURE": "shop.plain"}).err) == {"shop.plain": 8}
    write(folder, "members.txt", "shop.failing\n")
    assert table(run(["--report", script], folder, env={"CODETIMER_CONFIG": "members.txt"}).err) == {"shop.failing": 2}
    both = {"CODETIMER_MEASURE": "shop.cached"}
    assert table(run(["--measure", "shop.failing", "--report", script], folder, env=both).err) == {"shop.failing": 2}


def test_a_configuration_file(folder):
    script = write(folder, "shop.py", SHOP)
    write(folder, "members.txt", "shop.recursive  # a comment\nshop.nowhere\n")
    ended = run(["--config", "members.txt", "--report", script], folder)
    assert table(ended.err) == {"shop.recursive": 5}
    assert "pattern 'shop.nowhere' matched no function that was called" in ended.err


def test_a_configuration_file_that_is_missing(folder):
    ended = run(["--config", "members.txt", "--report", write(folder, "shop.py", SHOP)], folder)
    assert table(ended.err) == {}
    assert f"codetimer: file {folder / 'members.txt'}: there is no such file\n" in ended.err
    assert "matched no function" not in ended.err


def test_decorated_functions_go_on_being_counted(folder):
    script = """
        import codetimer
        @codetimer.measured(name="elsewhere.g")
        def g(): pass
        def f(): g()
        f(), f()
        """
    counts = table(run(["--report", write(folder, "decorated.py", script)], folder).err)
    assert counts["elsewhere.g"] == 2 and counts["decorated.f"] == 2


def test_switched_from_outside(folder):
    script = """
        import os, sys, threading
        def first(): return 1
        def second(): return 2
        print(os.getpid(), flush=True)
        over = threading.Event()
        threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
        while not over.wait(0.001): first(), second()
        """
    popen = start(["--measure", "loops.first", "--report", write(folder, "loops.py", script)], folder)
    segments = folder / "segments"
    pid = int(popen.stdout.readline())

    def calls(name):
        with codetimer.attach(pid, directory=segments) as view:
            sample = view.sample().get(f"loops/loops.{name}")
            return sample.calls if sample is not None else 0

    def appears(name):
        try:
            return calls(name) > 3
        except ProcessLookupError:
            return False

    wait_until(lambda: appears("first"))
    assert calls("second") == 0
    command(segments, "enable", str(pid), "loops.second")
    wait_until(lambda: appears("second"))
    ended = finish(popen)
    assert ended.code == 0 and set(table(ended.err)) == {"loops.first", "loops.second"}


# ---- the report ----


def test_only_where_it_is_asked_for(folder):
    script = write(folder, "quiet.py", "def f(): print(1)\nf()\n")
    assert run([script], folder) == Ended(0, "1\n", "")
    assert run([script, "--report"], folder) == Ended(0, "1\n", "")


ENDS = {
    "exception": ("raise ValueError('x')", 1),
    "exit": ("sys.exit(3)", 3),
    "exit_str": ("sys.exit('bye')", 1),
    "interrupted": ("signal.raise_signal(signal.SIGINT)", -signal.SIGINT),
    "interrupted_by_hand": ("raise KeyboardInterrupt", -signal.SIGINT),
    "closed": ("sys.stdout.close()", 0),
}


@pytest.mark.parametrize("name", ENDS)
def test_after_every_end(name, folder):
    end, code = ENDS[name]
    script = f"import signal, sys\ndef f(): pass\nf(), f()\nprint('out', flush=True)\n{end}\n"
    ended = run(["--report", write(folder, "ends.py", script)], folder)
    assert (ended.code, ended.out) == (code, "out\n")
    assert table(ended.err[ended.err.index("Member ") :]) == {"ends.f": 2}


def test_not_where_python_does_nothing_either(folder):
    for end in ("os._exit(4)", "os.kill(os.getpid(), signal.SIGTERM)", "os.execv('/bin/true', ['true'])"):
        script = f"import os, signal\ndef f(): pass\nf()\n{end}\n"
        ended = run(["--report", write(folder, "ends.py", script)], folder)
        assert (ended.out, ended.err) == ("", "")


def test_what_the_program_does_at_its_end_is_in_it(folder):
    script = """
        import atexit, threading
        def f(who): return who
        atexit.register(f, "at exit")
        class Last:
            def call(self): f("in a thread")
        go = threading.Event()
        thread = threading.Thread(target=lambda: (threading.main_thread().join(60), Last().call()))
        thread.start()
        """
    counts = table(run(["--report", write(folder, "late.py", script)], folder).err)
    assert (counts["late.f"], counts["late.Last.call"]) == (2, 1)


def test_children_do_not_report(folder):
    script = """
        import multiprocessing, os, sys
        def f(): pass
        def work(n): return n
        if __name__ == "__main__":
            f()
            if os.fork() == 0:
                f()
                sys.exit(0)
            os.wait()
            with multiprocessing.get_context("fork").Pool(2) as pool: print(pool.map(work, range(4)))
        """
    ended = run(["--report", write(folder, "forks.py", script)], folder)
    assert ended.out == "[0, 1, 2, 3]\n" and ended.err.count("Member ") == 1
    assert table(ended.err) == {"forks.f": 1}


def test_into_a_file(folder):
    script = write(folder, "files.py", "import os\ndef f(): pass\nf()\nos.chdir('/')\nprint('out')\n")
    for words in (["--to", "report.txt"], ["--report", f"--to={folder}/report.txt"]):
        assert run([*words, script], folder) == Ended(0, "out\n", "")
        assert table((folder / "report.txt").read_text()) == {"files.f": 1}
    for place in ("no/report.txt", "."):
        ended = run(["--to", place, script], folder)
        assert ended.code == 2 and ended.out == "" and ended.err.startswith("codetimer: can't open file '")


def test_a_report_that_cannot_be_written(folder):
    script = write(folder, "full.py", "def f(): pass\nf()\n")
    ended = run(["--to", "/dev/full", script], folder)
    assert ended.code == 0 and "the report could not be written: [Errno 28]" in ended.err
    script = write(folder, "gone.py", "import sys\nsys.stderr.close()\n")
    assert run(["--report", script], folder) == Ended(0, "", "")
    script = write(folder, "none.py", "import sys\nsys.stderr = None\n")
    assert run(["--report", script], folder) == Ended(0, "", "")


# ---- usage ----


WRONG = {
    "the program is missing": [],
    "the program is missing: script.py": ["--report"],
    "argument --measure: expected one argument": ["--measure"],
    "argument -m: expected one argument": ["-m"],
    "unrecognized option: --nonsense": ["--nonsense", "x.py"],
    "unrecognized option: --report=yes": ["--report=yes", "x.py"],
    "unrecognized option: -x": ["-x", "x.py"],
    "the pattern": ["--measure", "a\\", "x.py"],
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_usage(message, folder):
    write(folder, "x.py", "print(1)")
    ended = run(WRONG[message], folder)
    assert ended.code == 2 and ended.out == ""
    assert ended.err.startswith(f"codetimer: run: {message}") and "\nusage: codetimer run [OPTION]" in ended.err


def test_help(folder):
    for words in (["--help"], ["-h"], ["--report", "--help"]):
        ended = run(words, folder)
        assert ended.code == 0 and ended.err == "" and ended.out.startswith("usage: codetimer run [OPTION]...")
        assert all(option in ended.out for option in ("--measure", "--config", "--report", "--to", "-m"))
    assert "\n    run " in command(folder, "--help").stdout
