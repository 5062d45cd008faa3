# SPDX-License-Identifier: MIT
"""Guards: a comparison calls its candidates in turns and nothing else, finds a difference that is there, and says the
same in every form; wrong arguments are refused before anything runs."""

import collections
import functools
import gc
import io
import itertools
import json
import pickle
import types

import codetimer
import pytest

ATTRIBUTES = [
    "baseline", "results", "ratios", "twin", "resolution", "verdict", "rounds", "rounds_tied",
    "rounds_disturbed", "budget_ns", "elapsed_ns", "interrupted", "notes",
]  # fmt: skip
METHODS = ["ratio", "interval", "different", "verdict_of", "to_dict", "to_json"]


def work(n):
    def body():
        total = 0
        for i in range(n):
            total += i
        return total

    return body


def compare(candidates, **kwargs):
    return codetimer.compare(candidates, **({"file": io.StringIO(), "budget": 0.05} | kwargs))


@pytest.fixture(scope="module")
def comparison():
    """Three candidates, of which one takes ten times as long; with rounds enough, however busy the machine is."""
    for budget in (0.2, 0.5, 1, 2, 5, 10, 20):
        found = compare({"a": work(50), "b": work(50), "slow": work(500)}, baseline="b", budget=budget, gc_time=True)
        if found.different("slow") and found.different("slow", "a"):
            return found
    pytest.fail("no difference found")


# ---- what it finds ----


def test_a_difference_of_ten_times_is_found(comparison):
    low, high = comparison.interval("slow")
    assert low <= comparison.ratio("slow") <= high
    assert 3 < comparison.ratio("slow") < 30
    assert comparison.different("slow") and comparison.different("slow", "a") and comparison.different("a", "slow")
    assert comparison.ratio("a", "slow") == pytest.approx(1 / comparison.ratio("slow", "a"))
    assert "slow is" in comparison.verdict_of("slow") and "slower than b" in comparison.verdict_of("slow")
    assert "faster than slow" in comparison.verdict_of("a", "slow")


def test_the_baseline_is_itself(comparison):
    assert (comparison.baseline, comparison.ratio("b"), comparison.interval("b")) == ("b", 1.0, (1.0, 1.0))
    assert not comparison.different("b") and not comparison.twin.different
    assert comparison.ratios["b"].ratio == 1.0


def test_attributes_agree(comparison):
    assert list(comparison.results) == list(comparison.ratios) == ["a", "b", "slow"]
    for name, result in comparison.results.items():
        assert type(result) is codetimer.Result and result.name == name
        assert sum(result.batches_calls) == result.calls > 0 and result.gc_time == (0, 0, 0)
        ratio = comparison.ratios[name]
        assert ratio[:3] == (comparison.ratio(name), *comparison.interval(name))
        assert ratio.different is comparison.different(name) and ratio.reason is None
    assert comparison.resolution == max(ratio.resolved for ratio in comparison.ratios.values()) > 0
    assert comparison.verdict == f"{comparison.verdict_of('a')}\n{comparison.verdict_of('slow')}"
    assert 0 <= comparison.rounds_tied <= comparison.rounds
    assert comparison.elapsed_ns > 0 and comparison.interrupted is None


def test_all_its_forms(comparison):
    lines = str(comparison).splitlines()
    assert lines[0].startswith("Candidate") and [line.split()[0] for line in lines[1:4]] == ["a", "b", "slow"]
    assert all(sentence in str(comparison) for sentence in comparison.verdict.splitlines())
    assert repr(comparison).startswith("<codetimer.Comparison of ('a', 'b', 'slow'): ") and "\n" not in repr(comparison)
    values = comparison.to_dict()
    assert list(values) == ATTRIBUTES
    assert values["results"]["a"] == comparison.results["a"].to_dict()
    assert values["ratios"]["slow"]["ratio"] == comparison.ratio("slow")
    assert json.loads(json.dumps(values)) == values
    document = json.loads(comparison.to_json())
    assert document["results"] == list(values["results"].values())
    assert [ratio["ratio"] for ratio in document["comparison"]["ratios"]] == [
        ratio["ratio"] for ratio in values["ratios"].values()
    ]
    assert sorted(name for name in dir(comparison) if name[0] != "_") == sorted(ATTRIBUTES + METHODS)
    for name in ATTRIBUTES + METHODS:
        assert getattr(codetimer.Comparison, name).__doc__, name


def test_it_cannot_be_changed_or_made(comparison):
    with pytest.raises(AttributeError):
        comparison.rounds = 5
    with pytest.raises(TypeError):
        codetimer.Comparison()
    with pytest.raises(TypeError):
        pickle.dumps(comparison)


def test_names_that_are_not_there(comparison):
    for call in (comparison.ratio, comparison.interval, comparison.different, comparison.verdict_of):
        with pytest.raises(KeyError, match="no candidate 'x'"):
            call("x")
        with pytest.raises(KeyError):
            call("a", "x")
        with pytest.raises(TypeError):
            call()
    assert comparison.ratio(a="a", b=None) == comparison.ratio("a")


def test_results_live_as_long_as_they_are_held():
    results = compare({"a": int, "b": float}).results
    gc.collect()
    assert results["a"].calls > 0 and results["b"].name == "b"
    assert [overhead.label for overhead in results["a"].overheads] == ["empty C function", "empty Python function"]


# ---- what is called ----


def test_nobody_else_is_called():
    counts = [itertools.count(), itertools.count()]
    comparison = compare({"a": counts[0].__next__, "b": counts[1].__next__})
    a, b = (next(count) for count in counts)
    results = comparison.results
    assert results["b"].calls + results["b"].warmup_calls == b
    assert results["a"].calls + results["a"].warmup_calls <= a  # the twin calls it too
    assert results["b"].automatic is False


def test_python_functions_keep_all_that_their_calls_see():
    """They are called as copies, at several places in memory."""

    def make(tag):
        def fn(a=[], *, key=tag):  # noqa: B006
            seen[key].add((id(fn), fn.__qualname__, a is fn.__defaults__[0], fn.mark, tag))
            return (lambda: sum(x for x in a))()

        fn.mark = tag * 2
        return fn

    seen = collections.defaultdict(set)
    a, b = make("a"), make("b")
    a.__qualname__ = "renamed"
    compare({"a": a, "b": b})
    assert seen["a"] == {(id(a), "renamed", True, "aa", "a")}
    assert seen["b"] == {(id(b), b.__qualname__, True, "bb", "b")}


def test_one_function_under_two_names():
    fn = work(20)
    comparison = compare({"a": fn, "b": fn})
    assert comparison.results["a"].calls > 0 and comparison.results["b"].calls > 0


class Names(str):
    pass


@pytest.mark.parametrize("names", [("ä", "\ud800"), ("a\nb", "\x1b[31m"), ("n\0l", "n"), (Names("x"), "y" * 5000)])
def test_odd_names(names):
    comparison = compare(dict(zip(names, (int, float), strict=True)))
    assert list(comparison.results) == list(names)
    assert comparison.results[names[0]].name is names[0]
    text = str(comparison)
    assert "\x1b" not in text and "a\nb" not in text
    assert json.loads(comparison.to_json()) and comparison.verdict_of(names[1])


def test_thirty_two_candidates():
    comparison = compare({str(i): int for i in range(32)}, budget=0.2)
    assert len(comparison.results) == 32 and len(comparison.verdict.splitlines()) == 31


def test_a_mapping_that_is_no_dict():
    comparison = compare(types.MappingProxyType({"a": int, "b": float}))
    assert list(comparison.results) == ["a", "b"]
    assert list(compare(collections.UserDict(a=int, b=float)).results) == ["a", "b"]


def test_a_generator_function_is_noted():
    def generator():
        yield

    comparison = compare({"a": generator, "b": int})
    assert "a is a generator function: only the creation of its generators was timed" in comparison.notes


# ---- what is refused ----


@pytest.fixture
def refused():
    """The message of a refusal; nothing is called or kept."""

    def refuse(error, candidates, **kwargs):
        with pytest.raises(error) as caught:
            codetimer.compare(candidates, **kwargs)
        assert caught.type is error
        return str(caught.value)

    last = codetimer.last_comparison()
    yield refuse
    assert codetimer.last_comparison() is last


def never():
    raise AssertionError("called")


async def coroutine_function():
    pass


async def async_generator_function():
    yield


@pytest.mark.parametrize("candidates", [None, 5, "ab", [never, never], (("a", never), ("b", never)), never, {1, 2}])
def test_no_mapping(candidates, refused):
    assert "candidates must be a dict {name: function}" in refused(TypeError, candidates)


@pytest.mark.parametrize("count", [0, 1, 33, 1000])
def test_too_few_or_too_many(count, refused):
    assert f"2 to 32, not {count}" in refused(ValueError, {str(i): never for i in range(count)})


@pytest.mark.parametrize("name,error", [(1, TypeError), (b"a", TypeError), (None, TypeError), ("", ValueError)])
def test_wrong_names(name, error, refused):
    assert "the name of a candidate must" in refused(error, {"a": never, name: never})


@pytest.mark.parametrize(
    "fn,message",
    [
        (5, "must be callable"),
        (None, "must be callable"),
        (coroutine_function, "must not be a coroutine function"),
        (functools.partial(coroutine_function), "must not be a coroutine function"),
        (async_generator_function, "must not be an async generator function"),
    ],
)
def test_wrong_functions(fn, message, refused):
    assert f"the candidate 'it' {message}" in refused(TypeError, {"a": never, "it": fn})


@pytest.mark.parametrize("baseline", ["c", 1, b"a", "", "A"])
def test_wrong_baselines(baseline, refused):
    message = refused(ValueError, {"a": never, "b": never}, baseline=baseline)
    assert "baseline must be the name of a candidate" in message and "('a', 'b')" in message


@pytest.mark.parametrize("budget,error", [(0, ValueError), (-1, ValueError), (float("nan"), ValueError),
                                          (float("inf"), ValueError), ("1", TypeError), (True, TypeError)])  # fmt: skip
def test_wrong_budgets(budget, error, refused):
    assert "budget must be a number of seconds above 0" in refused(error, {"a": never, "b": never}, budget=budget)


def test_wrong_files_and_keywords(refused):
    assert "file must have a write(str) method" in refused(TypeError, {"a": never, "b": never}, file=5)
    assert "'n'" in refused(TypeError, {"a": never, "b": never}, n=5)
    with pytest.raises(TypeError):
        codetimer.compare()
    with pytest.raises(TypeError):
        codetimer.compare({"a": never}, {"b": never})
