# SPDX-License-Identifier: MIT
"""Guards: a Result says in every form the same, cannot be changed, and its parts have the documented types."""

import gc
import io
import json
import pickle
import weakref

import codetimer
import pytest

ATTRIBUTES = [
    "name", "n", "calls", "elapsed_ns", "per_call_ns", "batches_ns", "batches_calls", "cycles", "cycles_kind",
    "cycles_source", "cycles_reason", "gc_collections", "gc_labels", "interrupted", "notes", "priority", "clock",
]  # fmt: skip


@pytest.fixture
def result():
    return codetimer.time("Name \ud800", 5000, list, file=io.StringIO())


def test_attributes(result):
    types = {name: type(getattr(result, name)) for name in ATTRIBUTES}
    assert types == {
        "name": str, "n": int, "calls": int, "elapsed_ns": int, "per_call_ns": float, "batches_ns": tuple,
        "batches_calls": tuple, "cycles": int, "cycles_kind": str, "cycles_source": str, "cycles_reason": str,
        "gc_collections": tuple, "gc_labels": tuple, "interrupted": type(None), "notes": tuple, "priority": str,
        "clock": str,
    }  # fmt: skip
    assert [name for name in dir(result) if not name.startswith("_")] == sorted([*ATTRIBUTES, "to_dict", "to_json"])


def test_to_dict_has_the_attributes_in_order(result):
    values = result.to_dict()
    assert list(values) == ATTRIBUTES
    for name in ATTRIBUTES:
        value = getattr(result, name)
        assert values[name] == (list(value) if isinstance(value, tuple) else value)


def test_to_json_gives_the_dict_back(result):
    text = result.to_json()
    assert text.isascii() and "\n" not in text
    assert json.loads(text) == result.to_dict()


def test_str_and_repr(result):
    assert str(result).startswith("Name \\") and str(result).endswith("\n\n")
    assert repr(result).startswith("Name \\") and "\n" not in repr(result)
    assert "5,000 calls" in repr(result)


@pytest.mark.parametrize("name", ["n", "name", "new"])
def test_it_cannot_be_changed(result, name):
    with pytest.raises(AttributeError):
        setattr(result, name, 1)
    with pytest.raises((AttributeError, TypeError)):
        delattr(result, name)
    with pytest.raises(TypeError):
        setattr(codetimer.Result, name, 1)


def test_only_time_makes_one(result):
    with pytest.raises(TypeError):
        codetimer.Result()
    with pytest.raises(TypeError):
        type("Sub", (codetimer.Result,), {})
    with pytest.raises(TypeError):
        pickle.dumps(result)
    assert codetimer.Result.__module__ == "codetimer"


def test_the_name_may_refer_back():
    class Name(str):
        pass

    name = Name("cycle")
    name.result = codetimer.time(name, 1, int, file=io.StringIO())
    codetimer.time("", 0, int)  # drops last_result
    gone = weakref.ref(name)
    del name
    gc.collect()
    assert gone() is None


def test_everything_has_a_docstring():
    for name in codetimer.__all__:
        if name != "__version__":
            assert getattr(codetimer, name).__doc__, name
    for name in [*ATTRIBUTES, "to_dict", "to_json"]:
        assert getattr(codetimer.Result, name).__doc__, name
