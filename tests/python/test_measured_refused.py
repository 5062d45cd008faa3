# SPDX-License-Identifier: MIT
"""Guards what measured refuses, and in which words. Fails if it takes what it cannot measure, or measures what it
should leave."""

import functools

import codetimer
import measuring
import pytest
from codetimer import measured

fresh = measuring.fresh


# ---- what is refused ----


@pytest.mark.parametrize("value", [None, 3, "name", [], object(), staticmethod(3), property(3), functools])
def test_not_callable(value):
    with pytest.raises(TypeError, match="callable"):
        measured(value)


def test_a_str_is_told_how_to_name():
    with pytest.raises(TypeError, match=r"name as measured\(name=...\)\), not 'x' \(str\)"):
        measured("x")


def test_a_class_where_a_function_is_meant():
    class C: ...

    for value in (staticmethod(C), functools.partialmethod(C), functools.cached_property(C)):
        with pytest.raises(TypeError, match="a class cannot stand where a function"):
            measured(value)
    for label in ("name", "help"):
        with pytest.raises(TypeError, match=f"{label}= is for one function"):
            measured(**{label: "x"})(C)


@pytest.mark.parametrize("kind", [int, str, type, object, type(codetimer.counters), codetimer.Result])
def test_immutable_types(kind):
    with pytest.raises(TypeError, match="immutable type"):
        measured(kind)


@pytest.mark.parametrize(
    ("labels", "error"),
    [
        ({"name": ""}, ValueError),
        ({"name": 3}, TypeError),
        ({"name": b"x"}, TypeError),
        ({"name": "x" * 65536}, ValueError),
        ({"name": "a\0b"}, ValueError),
        ({"category": "a/b"}, ValueError),
        ({"category": ""}, ValueError),
        ({"category": 3}, TypeError),
        ({"help": 3}, TypeError),
        ({"title": "x"}, TypeError),
    ],
)
def test_wrong_labels(labels, error):
    with pytest.raises(error):
        measured(lambda: None, **labels)
    with pytest.raises(error):
        measured(**labels)(lambda: None)


ODD = ["a;b", "new\nline", "tab\t", "\x1b[31m", "ünïcode", "\ud800", "a b", "!x", "*", "x" * 65535]


@pytest.mark.parametrize("name", ODD)
def test_odd_names_are_names(name):
    fn = measured(lambda: 1, name=name, category="odd")
    assert fn() == 1
    (counter,) = codetimer.counters.values()
    assert counter.calls == 1 and (counter.member == name or name == "\ud800")


def test_types_cannot_be_made_or_subclassed():
    kind = type(measured(lambda: 1))
    for use in (lambda: kind(), lambda: type("S", (kind,), {}), lambda: setattr(kind, "x", 1)):
        with pytest.raises(TypeError):
            use()


# ---- no room ----


def test_full(tmp_path):
    source = """
        import os; os.environ["CODETIMER_MAX_COUNTERS"] = "2"
        import codetimer, logging
        lines = []
        handler = logging.Handler(); handler.emit = lambda record: lines.append(record.getMessage())
        logging.getLogger("codetimer").addHandler(handler)
        bare = [lambda i=i: i for i in range(100000)]
        fns = [codetimer.measured(fn, name=f"n.f{i}") for i, fn in enumerate(bare)]
        assert [f() for f in fns] == list(range(100000))
        assert all(a is b for a, b in zip(bare[2:], fns[2:]))
        class C:
            @codetimer.measured
            @property
            def p(self): return 1
        print(len(codetimer.counters), C().p, len(lines))
    """
    assert measuring.run(source, directory=tmp_path) == ["2", "1", "1"]


SHORT_OF_MEMORY = """
    import functools, logging, sys
    import _testcapi
    import codetimer
    lines = []
    handler = logging.Handler(); handler.emit = lambda record: lines.append(record.getMessage())
    logging.getLogger("codetimer").addHandler(handler)
    measured, short, enough = codetimer.measured, _testcapi.set_nomemory, _testcapi.remove_mem_hooks
    def function(): return 7
    class Class:
        def method(self): return 7
    def check_class(kind): return kind is Class and Class().method() == 7
    made = {
        "function": (lambda: (lambda: 7), lambda it: it() == 7),
        "object": (lambda: functools.partial(int, 7), lambda it: it() == 7),
        "property": (lambda: property(lambda self: 7), lambda it: type("C", (), {"p": it})().p == 7),
        "cached": (lambda: functools.cached_property(function), lambda it: type(it) is functools.cached_property),
        "static": (lambda: staticmethod(lambda: 7), lambda it: it() == 7),
        "class": (lambda: Class, check_class),
    }
    unmeasured = total = 0
    for k in range(1, 80):  # 0 is the interpreter's own, for the arguments
        for make, check in made.values():
            for stop in (k + 1, 0):
                fn = make()
                spare = [(i,) for i in range(9)]; del spare  # kept for the arguments of a call
                try:
                    short(k, stop)
                    got = measured(fn)
                finally:
                    enough()
                assert check(got), (k, stop, fn, got)
                unmeasured += got is fn
                total += 1
    measured(lambda: 1)
    print(total > unmeasured > 50, len(lines), "no memory" in lines[0])
    inner = "script.<lambda>.<locals>.<lambda>"
    names = (inner, "script.<lambda>", "script.function", "script.Class.method", "functools.partial.__call__")
    keys = [key.split("/") for key in codetimer.counters]
    print([key for key in keys if key[1] not in names or key[0] != key[1].split(".")[0]])
"""


def test_no_memory(tmp_path):
    """Whichever allocation fails: the function itself is returned, under no wrong name, and one line says so."""
    pytest.importorskip("_testcapi", reason="needs _testcapi, which lets allocations fail")
    assert measuring.run(SHORT_OF_MEMORY, directory=tmp_path) == ["True", "1", "True", "[]"]
