# SPDX-License-Identifier: MIT
"""Guards: a Result says in every form the same, cannot be changed, and its parts have the documented types."""

import gc
import io
import json
import pickle
import platform
import time
import weakref

import codetimer
import pytest

ATTRIBUTES = [
    "name", "n", "calls", "elapsed_ns", "automatic", "budget_ns", "warmup_calls", "warmup_ns", "per_call_ns",
    "interval_low_ns", "interval_high_ns", "min_ns", "q1_ns", "q3_ns", "max_ns", "mad_ns", "outliers_mild",
    "outliers_severe", "net_low_ns", "net_high_ns", "overheads", "batches_ns", "batches_calls", "cycles",
    "cycles_kind", "cycles_source", "cycles_reason", "usage", "gc_collections", "gc_labels", "gc_time", "memory",
    "interrupted", "notes", "priority", "clock", "resolution_ns",
]  # fmt: skip


@pytest.fixture
def result():
    return codetimer.time("Name \ud800", 5000, list, file=io.StringIO())


@pytest.fixture(scope="module")
def complete():
    """Each call is a batch of its own."""
    return codetimer.time("", 8, lambda: time.sleep(0.002), gc_time=True, memory=True)


def test_attributes(complete):
    types = {name: type(getattr(complete, name)) for name in ATTRIBUTES}
    assert types == dict.fromkeys(ATTRIBUTES, float) | {
        "name": str, "n": int, "calls": int, "elapsed_ns": int, "automatic": bool, "budget_ns": type(None),
        "warmup_calls": int, "warmup_ns": int, "outliers_mild": int, "outliers_severe": int, "overheads": tuple,
        "batches_ns": tuple, "batches_calls": tuple, "cycles": int, "cycles_kind": str, "cycles_source": str,
        "cycles_reason": str, "usage": codetimer.Usage, "gc_collections": tuple, "gc_labels": tuple,
        "gc_time": codetimer.GCTime, "memory": codetimer.Memory, "interrupted": type(None), "notes": tuple,
        "priority": str, "clock": str,
    }  # fmt: skip
    assert [name for name in dir(complete) if not name.startswith("_")] == sorted([*ATTRIBUTES, "to_dict", "to_json"])


UNKNOWN_WITH_FEW_BATCHES = [
    "interval_low_ns", "interval_high_ns", "min_ns", "q1_ns", "q3_ns", "max_ns", "mad_ns", "outliers_mild",
    "outliers_severe", "net_low_ns", "net_high_ns",
]  # fmt: skip


def test_what_is_not_known_is_none():
    few = codetimer.time("", 5, lambda: time.sleep(0.002))
    assert {getattr(few, name) for name in UNKNOWN_WITH_FEW_BATCHES} == {None}
    assert (few.gc_time, few.memory, few.budget_ns) == (None, None, None)
    assert codetimer.time("", 0, int).per_call_ns is None


def test_the_spread_agrees_with_the_batches(complete):
    per_call = sorted(complete.batches_ns)
    assert len(per_call) == 8 and complete.batches_calls == (1,) * 8
    assert (complete.min_ns, complete.max_ns) == (per_call[0], per_call[-1])
    assert complete.per_call_ns == (per_call[3] + per_call[4]) / 2
    assert (complete.interval_low_ns, complete.interval_high_ns) == (per_call[0], per_call[-1])
    assert complete.min_ns <= complete.q1_ns <= complete.per_call_ns <= complete.q3_ns <= complete.max_ns


def test_net_is_what_is_left_of_an_empty_call(complete):
    python, c = complete.overheads
    assert (python.label, c.label) == ("empty Python function", "empty C function")
    assert 0 < python.low_ns <= python.high_ns and 0 < c.low_ns <= c.high_ns
    assert complete.net_low_ns == complete.interval_low_ns - python.high_ns
    assert complete.net_high_ns == complete.interval_high_ns - python.low_ns
    other = codetimer.time("", 1, int)
    assert other.overheads == (c, python)


def plain(value):
    if isinstance(value, tuple) and hasattr(value, "n_fields"):
        return {name: plain(part) for name, part in zip(value.__match_args__, value, strict=True)}
    return [plain(part) for part in value] if isinstance(value, tuple) else value


def test_to_dict_has_the_attributes_in_order(result, complete):
    for one in (result, complete):
        assert one.to_dict() == {name: plain(getattr(one, name)) for name in ATTRIBUTES}
        assert list(one.to_dict()) == ATTRIBUTES


def test_to_json_gives_the_dict_back(result, complete):
    for one in (result, complete):
        text = one.to_json()
        assert text.isascii() and text.find("\n") == len(text) - 1
        document = json.loads(text)
        name = one.name.encode("utf-8", "backslashreplace").decode()
        memory = document["results"][0]["memory"]
        if memory is not None:
            assert memory.pop("kinds") == {}
        assert document["results"] == [one.to_dict() | {"name": name}]
        assert document["codetimer"] == 1 and document["host"] == f"Python {platform.python_version()}"


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
