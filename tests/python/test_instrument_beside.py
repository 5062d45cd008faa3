# SPDX-License-Identifier: MIT
"""Guards that tools which look at a program themselves go on working where it is instrumented, and instrument beside
them: pytest with its rewritten assertions, cProfile, pdb, coverage where it is installed, multiprocessing, threads, and
forked children. Fails if one of them sees another program, or a call is missed."""

import importlib.util
import subprocess
import sys
import textwrap

import pytest
from instrumented import modules, nothing_instrumented  # noqa: F401

SHOP = """
    def fetch(x):
        return x + 1

    def total(items):
        return sum(fetch(item) for item in items)

    class Order:
        def __init__(self, items):
            self.items = items
        def price(self):
            return total(self.items)
"""


@pytest.fixture
def run(modules):  # noqa: F811
    modules.write("shop", SHOP)

    def run(*arguments, **files):
        for name, source in files.items():
            (modules.folder / f"{name}.py").write_text(textwrap.dedent(source), "utf-8")
        return subprocess.run(
            [sys.executable, *arguments], cwd=modules.folder, capture_output=True, text=True, timeout=100
        )

    return run


CONFTEST = """
    import codetimer

    codetimer.instrument("shop.*;test_shop.*")

    def pytest_sessionfinish(session):
        counted = {c.member: c.calls for c in codetimer.counters.values() if c.calls}
        print("\\nCOUNTED", counted.get("shop.fetch"), counted.get("shop.Order.price"), counted.get("test_shop.helper"))
"""

TESTS = """
    import pytest, shop

    def helper(x):
        return x

    @pytest.fixture
    def order():
        return shop.Order([1, 2])

    def test_price(order):
        assert order.price() == helper(5)

    def test_wrong(order):
        assert order.price() == 6, "told"

    @pytest.mark.parametrize("x", [1, 2])
    def test_each(x, monkeypatch):
        monkeypatch.setattr(shop, "fetch", lambda y: 10 * y)
        assert shop.total([x]) == 10 * x
"""


def test_pytest(run):
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:assertion", conftest="", test_shop=TESTS)
    assert "1 failed, 3 passed" in done.stdout, done.stdout
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", conftest=CONFTEST, test_shop=TESTS)
    assert "1 failed, 3 passed" in done.stdout, done.stdout
    assert "assert 5 == 6" in done.stdout and "AssertionError: told" in done.stdout
    assert "COUNTED 4 2 1" in done.stdout, done.stdout


PROFILED = """
    import cProfile, pstats, codetimer, shop
    codetimer.instrument("shop.*")
    profile = cProfile.Profile()
    profile.enable()
    shop.Order([1, 2, 3]).price()
    profile.disable()
    calls = {name: row[1] for (_, _, name), row in pstats.Stats(profile).stats.items()}
    print(calls["fetch"], calls["price"], calls["total"])
    print(codetimer.counters["shop.fetch"].calls, codetimer.counters["shop.Order.price"].calls)
"""


def test_cprofile(run):
    done = run("profiled.py", profiled=PROFILED)
    assert done.stdout.split() == ["3", "1", "1", "3", "1"], done.stderr


STEPPED = """
    import codetimer, pdb, shop, sys
    codetimer.instrument("shop.*")
    class Input:
        lines = iter(["step", "step", "where", "args", "return", "continue"])
        def readline(self):
            return next(self.lines) + "\\n"
    debugger = pdb.Pdb(stdin=Input(), stdout=sys.stdout, nosigint=True, readrc=False)
    debugger.use_rawinput = False
    debugger.prompt = ""
    debugger.set_trace()
    x = shop.fetch(41)
    print(x, codetimer.counters["shop.fetch"].calls)
"""


def test_pdb(run):
    done = run("stepped.py", stepped=STEPPED)
    assert done.stdout.splitlines()[-1] == "42 1", done.stderr
    assert "fetch(x)" in done.stdout or "x = 41" in done.stdout, done.stdout


TRACED = """
    import codetimer, shop, sys, threading
    codetimer.instrument("shop.*")
    lines = []
    def trace(frame, event, arg):
        if frame.f_code.co_filename.endswith("shop.py"):
            lines.append((event, frame.f_code.co_name))
        return trace
    sys.settrace(trace)
    shop.fetch(1)
    sys.settrace(None)
    print(lines)
    threads = [threading.Thread(target=lambda: [shop.fetch(i) for i in range(1000)]) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    print(codetimer.counters["shop.fetch"].calls)
"""


def test_settrace_and_threads(run):
    done = run("traced.py", traced=TRACED)
    seen = [("call", "fetch"), ("line", "fetch"), ("return", "fetch")]
    assert done.stdout.splitlines() == [str(seen), "4001"], done.stderr


@pytest.mark.skipif(importlib.util.find_spec("coverage") is None, reason="coverage is not installed")
@pytest.mark.parametrize("core", ["ctrace", "pytrace", "sysmon"])
def test_coverage(run, core, monkeypatch):
    if core == "sysmon" and sys.version_info < (3, 12):
        pytest.skip("there is no sys.monitoring")
    monkeypatch.setenv("COVERAGE_CORE", core)
    covered = """
        import codetimer
        codetimer.instrument("shop.*")
        import shop
        shop.Order([1]).price()
        print(codetimer.counters["shop.fetch"].calls)
    """
    done = run("-m", "coverage", "run", "--include", "shop.py", "covered.py", covered=covered)
    assert done.stdout == "1\n", done.stderr
    report = run("-m", "coverage", "report")
    assert "shop.py" in report.stdout and "100%" in report.stdout, report.stdout


FORKED = """
    import codetimer, codetimer.instrumenting, concurrent.futures, functools, multiprocessing, os, shop

    def calls(_=None):
        return codetimer.counters["shop.fetch"].calls if "shop.fetch" in codetimer.counters else 0

    def price(items):
        return shop.Order(items).price(), calls()

    if __name__ == "__main__":
        codetimer.instrument("shop.*")
        shop.fetch(1)
        child = os.fork()
        if child == 0:
            codetimer.instrumenting.follow()
            shop.fetch(1)
            os._exit(10 + calls())
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), calls())
        with multiprocessing.get_context("fork").Pool(1) as pool:
            print(pool.map(shop.fetch, [1, 2]), pool.apply(price, ([1, 2],)))
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            print(pool.map(shop.fetch, [1, 2]), pool.map(shop.Order([1, 2]).price.__func__, [shop.Order([3])]))
        print(calls())
"""


def test_children(run):
    done = run("forked.py", forked=FORKED)
    assert done.stdout.splitlines() == ["11 1", "[2, 3] (5, 4)", "[2, 3] [4]", "1"], done.stderr
