# SPDX-License-Identifier: MIT
"""Guards instrument() against what it may find in a program: classes of every make, functions that are wrapped, cached
or dispatched, things that run code when they are looked at, lists that select everything or codetimer itself. Fails if
such a thing behaves other than before, is looked into, or is not as it was afterwards."""

import copy
import gc
import importlib
import logging
import pickle
import sys
from pathlib import Path

import codetimer
import codetimer.instrumenting
import pytest
from instrumented import attributes, calls, modules, nothing_instrumented, replaces  # noqa: F401

ODD = Path(__file__).with_name("odd.py").read_text("utf-8")

CLASSES = "Frozen Slots Meta Strict Color Abstract Concrete Speaks Point Named Dispatch Base Derived Effect".split()


@pytest.fixture
def odd(modules):  # noqa: F811
    return modules.load("odd", ODD)


def everything(odd):
    return attributes(odd, *map(odd.__dict__.get, CLASSES))


def test_odd_things_behave_and_are_as_they_were(odd):
    odd.use()
    before = everything(odd)
    with codetimer.instrument("odd.*"):
        assert odd.use() == "used"
        codetimer.instrumenting.follow()
        assert odd.use() == "used"
        counted = calls()
    assert everything(odd) == before
    for member in "Frozen.twice Slots.get Strict.method Color.label Concrete.must Named.sum Derived.greet".split():
        assert counted.get(f"odd.{member}", 0) >= 2, member
    assert counted["odd.measured"] == 3 and counted["odd.Base.greet"] >= 4
    assert not odd.LOOKED or set(odd.LOOKED) <= {"method", "made"}


def test_imported_while_instrumented(modules):  # noqa: F811
    codetimer.instrument("odd.*")
    odd = modules.load("odd", ODD)
    assert odd.use() == "used"
    codetimer.uninstrument()
    count = calls()
    assert odd.use() == "used"
    assert {m: n for m, n in calls().items() if m != "odd.measured"} == {
        m: n for m, n in count.items() if m != "odd.measured"
    }


@replaces
def test_what_dataclass_generates_is_told_of(odd):
    made = codetimer.instrument("odd.Frozen.*")
    assert "odd.Frozen.twice" in made.reached
    assert dict(made.unreachable)["odd.Frozen.__eq__"] == "it has no source: it is generated, as by dataclass"


def test_identity_pickling_copying(odd):
    with codetimer.instrument("odd.*"):
        for function in (odd.plain, odd.Frozen.twice, odd.measured):
            assert pickle.loads(pickle.dumps(function)) is function and copy.deepcopy(function) is function
        assert pickle.loads(pickle.dumps(odd.Color.RED)) is odd.Color.RED
        assert odd.Derived.greet is odd.Derived.__dict__["greet"]
        kept = odd.plain
    again = pickle.loads(pickle.dumps(kept))
    assert again is odd.plain or again is kept


@replaces
def test_the_metaclass_has_the_name(modules):  # noqa: F811
    odd = modules.load("odd", ODD + """
class Shadowed(metaclass=Meta):
    def forbidden(self):
        return 1
""")
    made = codetimer.instrument("odd.Shadowed.*")
    assert made.unreachable == (("odd.Shadowed.forbidden", "the metaclass has an attribute forbidden"),)
    assert odd.Shadowed().forbidden() == 1


@replaces
def test_delicate_methods_only_by_their_whole_name(modules):  # noqa: F811
    odd = modules.load("odd", """
        class Delicate:
            def __setattr__(self, name, value):
                object.__setattr__(self, name, value)
            def __getattribute__(self, name):
                return object.__getattribute__(self, name)
    """)
    codetimer.instrument("odd.*")
    odd.Delicate().x = 1
    assert calls() == {}
    codetimer.instrument("odd.Delicate.__setattr__")
    odd.Delicate().x = 1
    assert calls() == {"odd.Delicate.__setattr__": 1}


# ---- what is in sys.modules ----


def test_entries_that_are_no_modules_and_lazy_ones(modules, monkeypatch, tmp_path):  # noqa: F811
    modules.write("lazy", "def f(): return 1\nraise AssertionError('loaded')")
    spec = importlib.util.find_spec("lazy")
    spec.loader = importlib.util.LazyLoader(spec.loader)
    lazy = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(lazy)
    getting = modules.load("getting", """
        def __getattr__(name):
            raise AssertionError(name)
        def f():
            return 1
    """)

    class Loud:
        __slots__ = ()

        def __getattribute__(self, name):
            raise AssertionError(name)

    monkeypatch.setitem(sys.modules, "lazy", lazy)
    monkeypatch.setitem(sys.modules, "loud", Loud())
    monkeypatch.setitem(sys.modules, "none", None)
    monkeypatch.setitem(sys.modules, "text", "text")
    made = codetimer.instrument("getting.*;lazy.*;loud.*;none.*;text.*")
    assert getting.f() == 1 and calls() == {"getting.f": 1}
    assert made.uninstrument()


def test_kept_by_the_bare_function(modules):  # noqa: F811
    """A list, dict or registry in which the program has put the bare function finds it by what stands in for it."""
    odd = modules.load("odd", """
        import atexit
        class C:
            def m(self): return 1
        def f(): return 1
        def run(): pass
        instance = C()
        LIST, DICT = [f, instance.m], {f: "f", C.m: "m"}
        def look():
            assert f in LIST and instance.m in LIST and DICT[f] == "f" and DICT[C.m] == "m"
            LIST.remove(instance.m)
            LIST.append(instance.m)
    """)
    with codetimer.instrument("odd.*"):
        odd.look()
        assert odd.f == odd.LIST[0] and hash(odd.f) == hash(odd.LIST[0])
        assert odd.f != odd.run and odd.f != 1
    odd.look()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="there is no sys.monitoring")
def test_without_a_free_tool(modules, caplog):  # noqa: F811
    odd = modules.load("odd", ODD)
    before = everything(odd)
    taken = [tool for tool in range(6) if sys.monitoring.get_tool(tool) is None]
    for tool in taken:
        sys.monitoring.use_tool_id(tool, "another")
    try:
        codetimer.instrument("odd.*")
        assert odd.use() == "used" and calls()["odd.plain"] >= 1 and everything(odd) != before
        codetimer.uninstrument()
    finally:
        for tool in taken:
            sys.monitoring.free_tool_id(tool)
    assert "functions are replaced" in caplog.text and everything(odd) == before


def test_functions_defined_later(modules):  # noqa: F811
    later = modules.load("later", "def f(): return 1")
    codetimer.instrument("later.*")
    exec("def g(): return 2", later.__dict__)
    codetimer.instrumenting.follow()
    assert later.g() == 2 and calls() == {"later.g": 1}


@replaces
def test_what_a_class_forbids_is_told(modules, caplog):  # noqa: F811
    modules.load("odd", """
        import functools
        class Mine(functools.cached_property):
            def __setattr__(self, name, value):
                if name == "func" and name in self.__dict__: raise AttributeError(f"{name} is mine")
                super().__setattr__(name, value)
        class C:
            @Mine
            def price(self):
                return 1
    """)
    with caplog.at_level(logging.INFO, "codetimer"):
        made = codetimer.instrument("odd.C.price")
    ((member, reason),) = made.unreachable
    assert member == "odd.C.price" and "func is mine" in reason
    assert "not instrumented: 1: odd.C.price" in caplog.text


# ---- lists ----


def test_codetimer_itself(caplog):
    things = codetimer, codetimer.instrumenting.standins, codetimer.instrumenting.Instrumented
    before = attributes(*things)
    made = codetimer.instrument("codetimer.*")
    codetimer.instrument("codetimer.*")
    assert made.reached == () and attributes(*things) == before
    assert caplog.text.count("codetimer itself is not instrumented") <= 1


def test_the_name_of_a_module(caplog):
    assert codetimer.instrument("logging.handlers").reached == codetimer.instrument("logging").reached == ()
    assert "write logging.*" in caplog.text


def test_patterns_that_match_nothing_or_are_wrong(caplog):
    made = codetimer.instrument("no.such.*;!;# nothing")
    texts = [text for text, _, _ in made.matches]
    assert texts[0] == "no.such.*" and made.reached == () == made.unreachable
    assert [problem for _, _, problem in made.matches if problem]
    assert "members pattern skipped: '!' at 10: nothing follows" in caplog.text
    assert codetimer.instrument("").matches == ()


EVERYTHING = """
import codetimer, sys
codetimer.instrument("*")
import json, argparse, decimal, asyncio, email.message, http.client, xml.dom.minidom, sqlite3, logging.handlers
import concurrent.futures, dataclasses, typing, unittest.mock, tempfile, subprocess, pathlib

text = json.dumps({"a": [1, 2.5, None, {"b": "c"}]}, indent=2)
assert json.loads(text)["a"][1] == 2.5

async def main():
    return await asyncio.gather(*(asyncio.sleep(0, i) for i in range(3)))

assert asyncio.run(main()) == [0, 1, 2]
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    assert sum(pool.map(len, ["a", "bb"])) == 3
assert xml.dom.minidom.parseString("<a><b/></a>").documentElement.tagName == "a"
assert argparse.ArgumentParser().parse_args([]) == argparse.Namespace()
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "x")
    path.write_text("y")
    assert [p.name for p in path.parent.iterdir()] == ["x"]
assert subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, text=True).stdout == "1\\n"
calls = sum(counter.calls for counter in codetimer.counters.values())
codetimer.uninstrument()
assert calls > 1000, calls
print("done")
"""


def test_everything(script):
    """The standard library runs measured, in a process of its own."""
    done = script(EVERYTHING)
    assert done.stdout == b"done\n", done.stderr


def test_a_failure_of_ours_reaches_nobody(modules, monkeypatch, caplog):  # noqa: F811
    codetimer.instrument("broken.*")
    monkeypatch.setattr(codetimer.instrumenting, "Sweep", None)
    assert modules.load("broken", "def f(): return 1").f() == 1
    codetimer.instrumenting.follow()
    monkeypatch.undo()
    gc.collect()
    assert "could not follow" in caplog.text
