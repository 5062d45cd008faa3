# SPDX-License-Identifier: MIT
"""Guards instrument() for C functions, which have to be named: all of a module by "math.*", one by "math.sqrt", one
of builtins by its whole name; never by "*". Fails if one is missed, is measured without being named, or is not put
back."""

import builtins
import math
import os
import random
import zlib

import codetimer
import pytest
from instrumented import attributes, calls, modules, nothing_instrumented  # noqa: F401


def test_one_and_all_of_a_module():
    before = attributes(math)
    with codetimer.instrument("math.sqrt"):
        assert math.sqrt(4) == 2 and math.floor(1.5) == 1 and math.sqrt.__name__ == "sqrt"
        assert repr(math.sqrt) == "<built-in function sqrt>"
        assert calls() == {"math.sqrt": 1}
        with codetimer.instrument("math.*;!*.floor"):
            assert math.sqrt(4) == 2 and math.floor(1.5) == 1 and math.ceil(1.5) == 2
        assert math.ceil(1.5) == 2 and math.sqrt(9) == 3
    assert attributes(math) == before and math.sqrt(4) == 2
    assert calls() == {"math.sqrt": 3, "math.ceil": 1}


def test_names_taken_earlier_and_in_classes(modules):  # noqa: F811
    user = modules.load("user", "from zlib import crc32\nclass C:\n    check = crc32\n    from math import floor\n")
    before = attributes(user, user.C)
    with codetimer.instrument("zlib.*"):
        assert user.crc32(b"x") == user.C().check(b"x") == zlib.crc32(b"x")
        assert calls()["zlib.crc32"] == 3
    assert attributes(user, user.C) == before


def test_errors_count_and_arguments_pass():
    with codetimer.instrument("math.*"), pytest.raises(ValueError, match="math domain error"):
        math.sqrt(-1)
    assert codetimer.counters["math.sqrt"].errors == 1
    with codetimer.instrument("builtins.sorted"):
        assert sorted([1, 3, 2], reverse=True, key=lambda x: x) == [3, 2, 1]


@pytest.mark.parametrize("text", ["*", "m*", "*sqrt", "builtins.*", "!math.floor", "json.*"])
def test_not_without_being_named(script, text):
    """Neither by a pattern that begins with a wildcard nor, of builtins, by one that has any."""
    code = f"""if True:
        import codetimer, math, json, builtins
        codetimer.instrument({text!r})
        math.sqrt(1), len("x"), json.dumps("x")
        functions = math.sqrt, len, print, __import__, json.encoder.c_make_encoder
        kinds = {{type(function).__name__ for function in functions}}
        print(sorted(kinds))
    """
    done = script(code)
    assert done.stdout.decode() == "['builtin_function_or_method', 'type']\n", done.stderr


def test_builtins_by_their_whole_name():
    bare = builtins.len
    with codetimer.instrument("builtins.len"):
        assert len("abc") == 3
    assert builtins.len is bare
    assert calls()["builtins.len"] >= 1


def test_by_the_name_of_another_module():
    """os.getpid says that it is of posix: either name does."""
    own = f"{os.getpid.__module__}.getpid"
    with codetimer.instrument("os.getpid"):
        os.getpid()
    with codetimer.instrument(own):
        os.getpid()
    assert calls() == {"os.getpid": 1, own: 1}


def test_methods_of_hidden_objects():
    with codetimer.instrument("random.*"):
        assert 0 <= random.random() < 1 and random.randint(1, 1) == 1
        state = random.getstate()
        random.setstate(state)
    counted = calls()
    assert counted["random.Random.randint"] == 1
    assert sum(n for member, n in counted.items() if member.endswith("Random.random")) == 1
    assert random.random.__self__ is random._inst and type(random.randint).__name__ == "method"


def test_immutable_types_are_told():
    made = codetimer.instrument("zlib.*;datetime.datetime.now;_json.Scanner.*")
    reasons = dict(made.unreachable)
    assert reasons["datetime.datetime.now"] == "the methods of an immutable type cannot be replaced"
    assert zlib.crc32(b"") == 0
    decompress = zlib.decompressobj()
    assert decompress.decompress(zlib.compress(b"x")) == b"x"
    assert calls()["zlib.compress"] == 1 and calls()["zlib.decompressobj"] == 1
