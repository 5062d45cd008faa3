# SPDX-License-Identifier: MIT
"""Guards that whole programs end under codetimer run as they do without it: the tests of the standard library for json
and argparse with all functions of these modules measured; pytest, a web server, process pools, event loops, pickles."""

import importlib.util
import re
import signal
import sys
import textwrap
import urllib.request

import pytest
from running import both, finish, run, start
from test_cli_run_report import table

SUITES = ("test.test_json", "test.test_argparse")


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def write(folder, name, source):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(textwrap.dedent(source))
    return name


def without_times(ended):
    return ended._replace(
        out=re.sub(r"\b\d+(\.\d+)? ?(s|sec|seconds|nsec|usec|msec)\b", "…", ended.out),
        err=re.sub(r"\bin \d+\.\d+s", "…", ended.err),
    )


@pytest.mark.skipif(
    importlib.util.find_spec("test") is None or any(importlib.util.find_spec(name) is None for name in SUITES),
    reason="the test package of this Python is not installed",
)
def test_the_standard_library(folder):
    words = ["-m", "unittest", "-v", *SUITES]
    options = ["--measure", "json.*;argparse.*", "--to", "report.txt"]
    bare = start(words, folder, measured=False, env={"PYTHONHASHSEED": "0"})
    measured = start([*options, *words], folder, env={"PYTHONHASHSEED": "0"})
    bare, measured = (without_times(finish(each, timeout=300)) for each in (bare, measured))
    assert bare.code == 0 and "\nOK" in bare.err, bare.err[-2000:]
    assert (measured.code, measured.out) == (bare.code, bare.out)
    assert sorted(measured.err.splitlines()) == sorted(bare.err.splitlines())
    counts = table((folder / "report.txt").read_text())
    assert counts["json.dumps"] > 100 and counts["argparse.ArgumentParser.parse_known_args"] > 1000
    assert len(counts) > 100 and all(name.startswith(("json.", "argparse.")) for name in counts)
    print(len(counts), "functions,", sum(counts.values()), "calls,", re.search(r"Ran \d+ tests", bare.err)[0])


def test_pytest(folder):
    write(folder, "shop.py", "def price(n):\n    return n * 2\n")
    write(folder, "test_shop.py", """
        import pytest, shop
        @pytest.fixture
        def three(): return 3
        @pytest.mark.parametrize("n", [1, 2, 3])
        def test_price(n, three): assert shop.price(n) == 2 * n
        def test_wrong(three): assert shop.price(three) == 7
        class TestMore:
            def test_raises(self):
                with pytest.raises(TypeError): shop.price(None)
        """)  # fmt: skip
    words = ["-m", "pytest", "-p", "no:cacheprovider", "-q", "--rootdir=.", "-c", "/dev/null"]
    bare = run(words, folder, measured=False)
    measured = run(["--measure", "shop.*;test_shop.*", "--to", "report.txt", *words], folder)
    assert without_times(measured) == without_times(bare) and bare.code == 1
    assert table((folder / "report.txt").read_text())["shop.price"] == 5


def test_timeit(folder):
    bare, measured = both(["-m", "timeit", "-n", "100", "-r", "1", "-s", "x = 1", "x + 1"], folder)
    assert without_times(measured) == without_times(bare) and "100 loops" in bare.out


def test_http_server(folder):
    (folder / "page.txt").write_text("here")
    ends = []
    for measured in (False, True):
        popen = start(
            ["-m", "http.server", "0", "--bind", "127.0.0.1"], folder, measured=measured, flags=["-u"]
        )
        address = re.search(rb"\((http://127\.0\.0\.1:\d+)/\)", popen.stdout.readline())[1].decode()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{address}/page.txt", timeout=60) as answer:
            assert answer.read() == b"here"
        popen.send_signal(signal.SIGINT)
        ended = finish(popen)
        ends.append((ended.code, ended.out, re.sub(r"\[.*?\]", "[]", ended.err)))
    assert ends[0] == ends[1] and ends[0][0] == 0 and "Keyboard interrupt received" in ends[0][1]


POOL = """
import multiprocessing, sys
class Order:
    def __init__(self, n): self.n = n
    def double(self): return self.n * 2
    def __eq__(self, other): return self.n == other.n
def work(order): return type(order).__qualname__, order.double(), __name__
if __name__ == "__main__":
    for method in sys.argv[1:]:
        context = multiprocessing.get_context(method)
        with context.Pool(2) as pool:
            print(method, pool.map(work, map(Order, range(3))))
            try: pool.apply(work, (None,))
            except AttributeError as error: print(error)
        pool.join()
        parent, child = context.Pipe()
        process = context.Process(target=child.send, args=(Order(7),))
        process.start()
        print(parent.recv() == Order(7))
        process.join()
        print(process.exitcode)
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_pools(method, folder):
    write(folder, "pools.py", POOL)
    for words in (["pools.py", method], ["-m", "pools", method]):
        bare, measured = both(words, folder)
        assert measured == bare and bare.out.endswith("True\n0\n"), words


def test_forks_in_a_program_of_one_thread(folder):
    """Python warns of forks where there are more; that somebody is awake for the members list is no reason to."""
    script = write(folder, "forks.py", """
        import multiprocessing, os
        def work(n): return n
        def fork():
            return os.fork()
        for i in range(20):
            if (os.fork if i % 2 else fork)() == 0:
                os._exit(work(i))
            print(os.waitstatus_to_exitcode(os.wait()[1]))
        process = multiprocessing.get_context("fork").Process(target=work, args=(1,))
        process.start()
        process.join()
        print(process.exitcode)
        """)  # fmt: skip
    bare, measured = both([script], folder, flags=["-W", "always"])
    assert measured == bare and not bare.err


def test_asyncio(folder):
    script = write(folder, "loops.py", """
        import asyncio, contextlib
        async def work(n):
            await asyncio.sleep(0)
            return n
        async def numbers():
            for i in range(3):
                await asyncio.sleep(0)
                yield i
        @contextlib.asynccontextmanager
        async def context():
            yield "in"
        async def failing():
            raise ValueError("here")
        async def main():
            print(await asyncio.gather(*map(work, range(5))))
            print([i async for i in numbers()])
            async with context() as inside: print(inside)
            task = asyncio.create_task(asyncio.sleep(60))
            await asyncio.sleep(0)
            task.cancel()
            try: await task
            except asyncio.CancelledError: print("cancelled")
            print(asyncio.iscoroutinefunction(work))
            await failing()
        asyncio.run(main())
        """)  # fmt: skip
    bare, measured = both([script], folder)
    assert measured == bare and "ValueError: here" in bare.err


def test_things_that_are_defined_in_the_script(folder):
    script = write(folder, "things.py", """
        import abc, collections, contextlib, copy, dataclasses, enum, functools, inspect, pickle, typing
        @dataclasses.dataclass(order=True, frozen=True)
        class Point:
            x: int
            y: int = 2
            def length(self) -> float: return (self.x ** 2 + self.y ** 2) ** .5
        class Color(enum.Enum):
            RED = 1
            BLUE = 2
            def shout(self): return self.name + "!"
            @classmethod
            def first(cls): return cls.RED
        class Pair(typing.NamedTuple):
            a: int
            def total(self): return self.a
        class Base(abc.ABC):
            @abc.abstractmethod
            def method(self): ...
        class Named(typing.Protocol):
            def name(self) -> str: ...
        class Meta(type):
            def __new__(meta, name, bases, space): return super().__new__(meta, name, bases, space)
            def __call__(cls, *args): return super().__call__(*args)
        class Made(metaclass=Meta):
            __slots__ = ("value",)
            def __init__(self, value): self.value = value
            def __getattr__(self, name): raise AttributeError(name)
            def __enter__(self): return self
            def __exit__(self, *error): return True
        @functools.singledispatch
        def kind(x): return "any"
        @kind.register
        def _(x: int): return "int"
        @contextlib.contextmanager
        def inside():
            yield 1
        def documented(a: int, b: str = "x", *args, **rest) -> None: "Says something."
        def default(x=[]): return x
        print(Point(1), Point(1) < Point(2), Point(3, 4).length(), Color.first().shout(), Pair(1).total(), list(Color))
        for thing in (Point(1), Color.RED, Pair(2), documented, Point.length, Color.first):
            print(pickle.loads(pickle.dumps(thing)) == thing, copy.deepcopy(thing) == thing)
        try: Base()
        except TypeError as error: print(error)
        with inside() as one, Made(2) as made: print(one, made.value, kind(1), kind(""), hasattr(made, "no"))
        print(inspect.signature(documented), inspect.getsource(documented), inspect.getdoc(documented))
        print(typing.get_type_hints(documented), documented.__name__, documented.__code__.co_firstlineno, default())
        print(inspect.getsourcelines(Color.shout), Named.__abstractmethods__, Color.shout.__qualname__)
        try: documented()
        except TypeError as error: print(error)
        help(documented)
        """)  # fmt: skip
    bare, measured = both([script], folder)
    assert measured == bare and not bare.err


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.11 has task groups")
def test_task_groups(folder):
    script = write(folder, "groups.py", """
        import asyncio
        async def work(n):
            await asyncio.sleep(0)
            if n == 2: raise ValueError(n)
        async def main():
            async with asyncio.TaskGroup() as group:
                for n in range(4): group.create_task(work(n))
        asyncio.run(main())
        """)  # fmt: skip
    bare, measured = both([script], folder)
    assert measured == bare and "ExceptionGroup" in bare.err
