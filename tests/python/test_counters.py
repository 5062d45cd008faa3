# SPDX-License-Identifier: MIT
"""Guards what counters, Counter and Sample show: the right values of the right counter, None where there is none, and
errors that say what was wrong. Fails if a value is mixed up with another, or a name reaches the core unchecked."""

import collections.abc
import copy
import itertools
import pickle

import codetimer
import pytest

numbers = itertools.count()

FIELDS = [
    "listed", "enabled", "generation", "calls", "errors", "cancelled", "total_ns", "active_ns", "average_ns", "min_ns",
    "max_ns", "in_flight", "anomalies", "unclean",
]  # fmt: skip


@pytest.fixture
def counter():
    made = codetimer.timer(f"test.n{next(numbers)}").counter
    yield made
    made.remove()


# ---- values ----


def test_without_calls(counter):
    assert counter.listed is True and counter.enabled is True and counter.unclean is False
    assert (counter.calls, counter.errors, counter.cancelled, counter.total_ns, counter.active_ns) == (0,) * 5
    assert (counter.in_flight, counter.anomalies) == (0, 0)
    assert counter.average_ns is counter.min_ns is counter.max_ns is counter.percentile(50) is None


def test_values(counter):
    counter.record(1000)
    counter.record(duration_ns=3000, error=True)
    counter.record(3001)
    assert (counter.calls, counter.errors, counter.total_ns, counter.min_ns, counter.max_ns) == (3, 1, 7001, 1000, 3001)
    assert counter.average_ns == 7001 / 3 and isinstance(counter.average_ns, float)
    assert counter.active_ns == 7001 and counter.in_flight == 0 and counter.cancelled == 0
    assert counter.percentile(0) <= counter.percentile(50) <= counter.percentile(100) == 3001


def test_sample_is_the_counter_at_one_moment(counter):
    counter.record(1000)
    before = codetimer.now_ns()
    sample = counter.sample()
    assert before <= sample.time_ns <= codetimer.now_ns()
    for field in (*FIELDS, "key", "category", "member"):
        assert getattr(sample, field) == getattr(counter, field), field
    assert sample.percentile(99) == counter.percentile(99)
    counter.record(1000)
    assert (sample.calls, counter.calls) == (1, 2)
    with pytest.raises(AttributeError):
        sample.calls = 5
    with pytest.raises(AttributeError):
        sample.other = 5


def test_buckets(counter):
    for duration in (0, 1, 2, 1024, 1025, 2**42, 2**42 + 1, 2**63 - 1):
        counter.record(duration)
    buckets = counter.sample().buckets
    assert len(buckets) == 338 and sum(buckets) == 8
    assert {i: n for i, n in enumerate(buckets) if n} == {0: 1, 1: 1, 8: 1, 80: 1, 81: 1, 336: 1, 337: 2}
    for i in range(2, 336):
        assert buckets[i] == sum(2 ** ((i - 1) / 8) < d <= 2 ** (i / 8) for d in (2, 1024, 1025))


def test_difference(counter):
    counter.record(50)
    earlier = counter.sample()
    counter.record(1000)
    counter.record(2000, error=True)
    later = counter.sample()
    for window in (later - earlier, later.difference(earlier)):
        assert (window.calls, window.errors, window.total_ns, window.average_ns) == (2, 1, 3000, 1500.0)
        assert 1000 / 1.0906 < window.min_ns <= 1000 and window.max_ns == 2000
        assert window.percentile(100) == 2000 and sum(window.buckets) == 2 and window.key == counter.key
    nothing = later - later
    assert nothing.calls == 0 and nothing.average_ns is nothing.min_ns is nothing.percentile(50) is None


def test_difference_refuses(counter):
    other = codetimer.timer(f"test.n{next(numbers)}").counter
    earlier = counter.sample()
    later = counter.sample()
    with pytest.raises(ValueError, match="one counter"):
        later - other.sample()
    with pytest.raises(ValueError, match="other way round"):
        earlier - later
    with pytest.raises(TypeError):
        later - 5
    with pytest.raises(TypeError, match=r"earlier must be a Sample, not None \(NoneType\)"):
        later.difference(None)
    counter.reset()
    with pytest.raises(ValueError, match="reset or removed"):
        counter.sample() - later
    other.remove()


def test_reset(counter):
    counter.record(1000, error=True)
    generation = counter.generation
    assert counter.reset() is True
    assert (counter.calls, counter.errors, counter.total_ns, counter.max_ns) == (0, 0, 0, None)
    assert counter.generation > generation
    counter.record(7)
    assert (counter.calls, counter.min_ns, counter.max_ns) == (1, 7, 7)


def test_remove(counter):
    counter.record(1000)
    assert counter.remove() is True and counter.remove() is False and counter.reset() is False
    counter.record(1000)
    assert counter.calls == 0 and counter.listed is False and counter.enabled is False
    assert counter.key not in codetimer.counters
    again = codetimer.timer(counter.member)
    counter.record(5)
    assert again.counter == counter and again.counter.calls == counter.calls == 1


@pytest.mark.parametrize("q", [-1, 100.001, float("nan"), float("inf"), 10**400])
def test_percentile_range(counter, q):
    counter.record(5)
    with pytest.raises(ValueError, match="q must be a number from 0 to 100, not "):
        counter.percentile(q)


@pytest.mark.parametrize("q", ["50", None, True, [50]])
def test_percentile_type(counter, q):
    with pytest.raises(TypeError, match="q must be a number from 0 to 100, not "):
        counter.sample().percentile(q)


@pytest.mark.parametrize("duration", [-1, 2**63, -(2**70), 2**70])
def test_record_range(counter, duration):
    with pytest.raises(ValueError, match="duration_ns must be an integer from 0 to 9223372036854775807, not "):
        counter.record(duration)
    assert counter.calls == 0


@pytest.mark.parametrize("duration", [1.0, "1", None, True])
def test_record_type(counter, duration):
    with pytest.raises(TypeError, match="duration_ns must be an integer from 0 to 9223372036854775807, not "):
        counter.record(duration)
    with pytest.raises(TypeError):
        counter.record(5, True)
    assert counter.calls == 0


# ---- objects ----


def test_identity(counter):
    other = codetimer.counters[counter.key]
    assert other is not counter and other == counter and hash(other) == hash(counter) and len({other, counter}) == 1
    assert counter != counter.key and counter != codetimer.timer("test.another").counter
    with pytest.raises(TypeError):
        counter < other  # noqa: B015


def test_repr(counter):
    counter.record(5)
    assert repr(counter) == f"<codetimer.Counter {counter.key!r}: 1 calls, 5 ns>"
    assert repr(counter.sample()) == f"<codetimer.Sample {counter.key!r}: 1 calls, 5 ns>"
    counter.remove()
    assert repr(counter) == f"<codetimer.Counter {counter.key!r}: 0 calls, 0 ns, removed>"


def test_made_by_the_library_only(counter):
    for kind in (codetimer.Counter, codetimer.Sample, type(codetimer.counters)):
        with pytest.raises(TypeError):
            kind()
    for thing in (counter, counter.sample()):
        with pytest.raises(TypeError):
            pickle.dumps(thing)
        with pytest.raises(TypeError):
            copy.copy(thing)


# ---- names ----


@pytest.mark.parametrize(
    ("name", "category", "key"),
    [
        ("shop.orders.handle", None, "shop/shop.orders.handle"),
        ("shop.handle", "group", "group/shop.handle"),
        ("a/b", "group", "group/a/b"),
        ("π;*\x1b[1m\n", "ß ;", "ß ;/π;*\x1b[1m\n"),
        ("\udc80", "\ud800", "\\ud800/\\udc80"),
        ("m" * 65535, "c" * 65535, "c" * 65535 + "/" + "m" * 65535),
    ],
)
def test_keys(name, category, key):
    made = codetimer.timer(name, category=category).counter
    assert (made.key, made.category, made.member) == (key, *key.split("/", 1))
    assert codetimer.counters[key] == codetimer.counters[made.member] == codetimer.counters[name] == made
    assert key in codetimer.counters and name in codetimer.counters and key in list(codetimer.counters)
    made.remove()


@pytest.mark.parametrize("name", ["", "a\0b", "m" * 65536, "ü" * 32768])
def test_wrong_names(name):
    before = len(codetimer.counters)
    with pytest.raises(ValueError, match="name"):
        codetimer.timer(name)
    assert len(codetimer.counters) == before


@pytest.mark.parametrize("category", ["", "a/b", "a\0b", "c" * 65536])
def test_wrong_categories(category):
    with pytest.raises(ValueError, match="category must have 1 to 65,535 bytes in UTF-8, and no '/' or NUL in it, "):
        codetimer.timer("test.wrong", category=category)
    with pytest.raises(TypeError, match=r"category must be a str or None, not b'x' \(bytes\)"):
        codetimer.timer("test.wrong", category=b"x")


def test_wrong_types():
    with pytest.raises(TypeError, match=r"name must be a str, not 5 \(int\)"):
        codetimer.timer(5)
    with pytest.raises(TypeError, match=r"help must be a str or None, not 5 \(int\)"):
        codetimer.timer("test.wrong", help=5)
    with pytest.raises(ValueError, match="help must have 1 to 65,535 bytes"):
        codetimer.timer("test.wrong", help="h" * 65536)
    with pytest.raises(TypeError):
        codetimer.timer("test.wrong", "category")
    assert "test/test.wrong" not in codetimer.counters


# ---- the mapping ----


def test_mapping(counter):
    counters = codetimer.counters
    assert isinstance(counters, collections.abc.Mapping)
    keys = list(counters)
    assert len(counters) == len(keys) == len(set(keys)) and counter.key in keys
    assert list(counters.keys()) == keys and list(counters.values()) == [counters[key] for key in keys]
    assert dict(counters.items()) == dict(counters) == {**counters} == {key: counters[key] for key in keys}
    assert counters.get(counter.key) == counter and counters.get("nothing") is None
    assert counters.get("nothing", 5) == counters.get("nothing", default=5) == 5
    assert repr(counters) == f"<codetimer.counters: {len(keys)}>"
    assert counters.capacity >= len(keys) and counters.refused == 0 and counters.last_refused is None


@pytest.mark.parametrize("key", ["nothing", "no/thing", "", "a\0b", "/", 5, None, b"x", ()])
def test_absent(key):
    with pytest.raises(KeyError) as raised:
        codetimer.counters[key]
    assert raised.value.args == (key,)
    assert key not in codetimer.counters and codetimer.counters.get(key) is None


def test_member_of_several():
    made = [codetimer.timer("test.shared", category=category).counter for category in ("one", "two")]
    with pytest.raises(KeyError, match=r"several counters; ask by key: \[.*'one/test.shared'.*\]") as raised:
        codetimer.counters["test.shared"]
    assert "'two/test.shared'" in str(raised.value)
    assert "test.shared" not in codetimer.counters and codetimer.counters.get("test.shared") is None
    assert codetimer.counters["two/test.shared"] == made[1]
    made[0].remove()
    assert codetimer.counters["test.shared"] == made[1]
    made[1].remove()


def test_a_key_goes_before_a_member():
    by_key = codetimer.timer("y", category="x").counter
    by_member = codetimer.timer("x/y", category="z").counter
    assert codetimer.counters["x/y"] == by_key
    by_key.remove()
    assert codetimer.counters["x/y"] == by_member
    by_member.remove()


def test_stable_while_it_changes(counter):
    seen = []
    for key in codetimer.counters:
        seen.append(key)
        codetimer.timer(f"test.more{len(seen)}")
    for key, made in codetimer.counters.items():
        assert made.key == key
        if key.startswith("test/test.more"):
            made.remove()
    assert not any(key.startswith("test/test.more") for key in codetimer.counters)
