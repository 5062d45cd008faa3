# SPDX-License-Identifier: MIT
"""Guards the special methods of measured objects: what Python looks up on the type is answered by the bare object,
and nothing is claimed that it has not. Fails if one is lost, or if an abstract class takes one for another."""

import collections.abc
import contextlib
import functools

import measuring
import pytest
from codetimer import measured

fresh = measuring.fresh


class Rich:
    """A callable object with the methods that Python looks up on the type."""

    def __init__(self, *items):
        self.items, self.events = list(items), []

    def __call__(self): ...
    def __eq__(self, other): return isinstance(other, Rich) and self.items == other.items
    def __lt__(self, other): return self.items < other.items
    def __hash__(self): return hash(tuple(self.items))
    def __bool__(self): return self.items != [1]
    def __len__(self): return len(self.items)
    def __getitem__(self, i): return self.items[i]
    def __setitem__(self, i, value): self.items[i] = value
    def __delitem__(self, i): del self.items[i]
    def __contains__(self, x): return x in self.items
    def __iter__(self): return iter(self.items)

    def __enter__(self):
        self.events.append("enter")
        return self

    def __exit__(self, kind, value, traceback):
        self.events.append(kind)
        return True


class Poor:
    def __call__(self): ...


class Unhashable(Poor):
    def __eq__(self, other): return self is other


NAMES = ("Sized", "Container", "Iterable", "Hashable", "Callable", "Iterator")
ABCS = [getattr(collections.abc, name) for name in NAMES]
ABCS += [contextlib.AbstractContextManager, collections.abc.Collection, collections.abc.Reversible]


def test_special_methods():
    bare = Rich(1, 2)
    k = measured(bare)
    assert bool(k) is True and bool(measured(Rich(1))) is False and bool(measured(Poor())) is True
    assert len(k) == 2 and k[0] == 1 and k[-1] == 2 and k[:1] == [1] and 1 in k and 9 not in k
    assert list(k) == [1, 2] == [*k] and list(reversed(k)) == [2, 1]
    assert k == k and k == bare and bare == k and k == Rich(1, 2) == k and k != Rich(1) and (k != bare) is False
    assert k == measured(Rich(1, 2), name="other") and k < Rich(3) and Rich(0) < k and sorted([Rich(3), k])[0] is k
    assert hash(k) == hash(bare) and {k: 1}[bare] == {bare: 1}[k] == 1
    k[0] = 5
    del k[1]
    assert bare.items == [5]
    with k as entered:
        raise ValueError
    assert entered is k and bare.events == ["enter", ValueError]


def test_special_methods_that_are_not_there():
    bare = Poor()
    k = measured(bare)
    assert k == bare == k and k != Poor() and k != 5 and hash(k) == hash(bare)
    uses = (len, iter, lambda k: k[0], lambda k: 1 in k, lambda k: k < k, lambda k: k.__enter__, reversed)
    for use in uses:
        for one in (bare, k):
            with pytest.raises((TypeError, AttributeError)):
                use(one)
    with pytest.raises((TypeError, AttributeError)), k:
        pass
    with pytest.raises(TypeError, match="unhashable"):
        hash(measured(Unhashable()))


@pytest.mark.parametrize("bare", [Rich(1), Poor(), Unhashable(), functools.partial(Rich), len, [].append, print])
def test_abstract_types(bare):
    k = measured(bare, name="abstract")
    assert type(k).__name__ in ("MeasuredObject", "MeasuredDescriptor")
    for kind in ABCS:
        assert isinstance(k, kind) is isinstance(bare, kind), kind
    for name in ("__len__", "__iter__", "__getitem__", "__contains__", "__enter__", "__bool__", "__setitem__"):
        assert hasattr(type(k), name) is hasattr(type(bare), name), name


def test_comparison_of_bound_ones():
    items = []
    assert measured(items.append) == items.append and hash(measured(items.append)) == hash(items.append)
