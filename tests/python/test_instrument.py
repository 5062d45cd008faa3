# SPDX-License-Identifier: MIT
"""Guards instrument() and uninstrument(): what a members list reaches, that calls add up, that the list of the process
is followed, and that nothing is left behind. Fails if a function is missed or counted twice, if an attribute is not as
it was, or if somebody else's replacement is undone."""

import functools
import gc
import logging
import sys
import textwrap
import time
import weakref

import codetimer
import codetimer.instrumenting
import pytest
from instrumented import attributes, calls, modules, nothing_instrumented, replaces  # noqa: F401

SHOP = """
    import functools

    def fetch(x):
        return x

    def keep(function):
        @functools.wraps(function)
        def wrapper(*args):
            return function(*args)
        return wrapper

    @keep
    def kept(x):
        return x

    @functools.lru_cache
    def cached(x):
        return x

    def fail():
        raise ValueError

    double = lambda x: 2 * x
    alias = fetch

    class Order:
        def __init__(self, x):
            self._x = x

        def method(self):
            return self._x

        @staticmethod
        def static(x):
            return x

        @classmethod
        def made(cls, x):
            return cls(x)

        @property
        def price(self):
            return self._x

        @price.setter
        def price(self, x):
            self._x = x

        @functools.cached_property
        def once(self):
            return 1

        def __add__(self, other):
            return self

        def __call__(self):
            return 1

        class Line:
            def text(self):
                return "line"

    def use():
        order = Order.made(1)
        order.price = order.price + order.once + order.static(1) + order.method() + order()
        order + order
        Order.Line().text()
        fetch(1), alias(1), kept(1), cached(1), double(1)
        list(map(fetch, [1, 2]))
        try:
            fail()
        except ValueError:
            pass
"""

ONCE = (
    "use kept cached fail <lambda> Order.__init__ Order.method Order.static Order.made Order.price "
    "Order.once Order.__add__ Order.__call__ Order.Line.text"
).split()


def expected(times=1):
    counts = dict.fromkeys((f"shop.{name}" for name in ONCE), times)
    return counts | {"shop.fetch": 4 * times}


def shop_calls():
    """Where a setter has a member of its own, and what decorators themselves are, differs with the mechanism."""
    return {m: n for m, n in calls().items() if m in expected()}


@pytest.fixture
def shop(modules):  # noqa: F811
    return modules.load("shop", SHOP)


# ---- what is reached ----


@replaces
def test_every_kind_of_function(shop):
    codetimer.instrument("shop.*")
    shop.use()
    assert calls() == expected() | {"shop.Order.price.setter": 1}
    assert codetimer.counters["shop.fail"].errors == 1


def test_imported_later(modules):  # noqa: F811
    codetimer.instrument("shop.*")
    shop = modules.load("shop", SHOP)
    shop.use()
    shop.use()
    counts = calls()
    assert counts["shop.fetch"] == 8 and counts["shop.Order.method"] == 2


def test_names_taken_earlier(modules, shop):  # noqa: F811
    other = modules.load("other", "from shop import fetch as taken, Order as Taken")
    codetimer.instrument("shop.*")
    assert other.taken(3) == 3 and other.Taken(4).method() == 4
    assert calls() == {"shop.fetch": 1, "shop.Order.__init__": 1, "shop.Order.method": 1}


def test_only_what_is_selected(shop):
    codetimer.instrument("shop.Order.*;!*.method;!*__*")
    shop.use()
    assert {"shop.Order.static", "shop.Order.made", "shop.Order.Line.text"} <= set(calls())
    assert not {"shop.Order.method", "shop.Order.__init__", "shop.fetch"} & set(calls())


@replaces
def test_one_part_of_a_property(shop):
    before = attributes(shop, shop.Order)
    codetimer.instrument("shop.Order.price.setter")
    shop.use()
    assert calls() == {"shop.Order.price.setter": 1}
    codetimer.uninstrument()
    assert attributes(shop, shop.Order) == before


@replaces
def test_a_property_around_one_that_is_measured(modules, shop):  # noqa: F811
    codetimer.instrument("shop.Order.price;sub.*")
    sub = modules.load("sub", """
        from shop import Order
        class Sub(Order):
            @Order.price.setter
            def price(self, x):
                self._x = 2 * x
    """)
    order = sub.Sub(1)
    order.price = 5
    assert order.price == 10 and calls() == {"shop.Order.price": 1, "sub.Sub.price.setter": 1}
    codetimer.uninstrument()
    order.price = 5
    assert order.price == 10 and calls() == {"shop.Order.price": 1, "sub.Sub.price.setter": 1}


# ---- adding up, ending ----


def test_calls_add_up_and_the_same_text_is_one(shop):
    first = codetimer.instrument("shop.fetch")
    assert codetimer.instrument("shop.fetch") is first
    second = codetimer.instrument("shop.*")
    shop.fetch(1)
    assert calls() == {"shop.fetch": 1}
    assert second.uninstrument() and not second.uninstrument()
    shop.fetch(1)
    shop.double(1)
    assert calls() == {"shop.fetch": 2}
    assert codetimer.uninstrument("shop.*") == 0 and codetimer.uninstrument("shop.fetch") == 1
    shop.fetch(1)
    assert calls() == {"shop.fetch": 2}


def test_everything_is_as_it_was(shop):
    things = shop, shop.Order, shop.Order.Line
    before = attributes(*things)
    keys = [list(vars(thing)) for thing in things]
    with codetimer.instrument("shop.*") as made:
        shop.use()
        assert made.active and "shop.fetch" in made.reached
    assert attributes(*things) == before and [list(vars(thing)) for thing in things] == keys
    assert not made.active and made.reached == ()
    count = calls()
    shop.use()
    assert calls() == count


@replaces
def test_decorated_functions_stay_and_what_they_call_is_measured(shop):
    kept = shop.kept
    codetimer.instrument("shop.kept")
    assert shop.kept is kept and kept(1) == 1
    codetimer.instrumenting.follow()
    assert kept(1) == 1
    assert calls() == {"shop.kept": 2}


@replaces
def test_what_others_have_put_on_top_stays(shop):
    codetimer.instrument("shop.fetch;shop.Order.method")

    @functools.wraps(shop.fetch)
    def theirs(x, below=shop.fetch):
        return below(x)

    shop.fetch = theirs
    shop.Order.method = lambda self: 5
    codetimer.uninstrument()
    assert shop.fetch is theirs and shop.Order(1).method() == 5
    assert shop.fetch(1) == 1 and calls() == {}
    codetimer.instrument("shop.fetch")
    assert shop.fetch(1) == 1 and calls() == {"shop.fetch": 1}


@replaces
def test_taken_while_instrumented(modules, shop):  # noqa: F811
    bare = shop.fetch
    codetimer.instrument("shop.fetch")
    kept = shop.fetch
    other = modules.load("other", "from shop import fetch")
    codetimer.uninstrument()
    assert kept(1) == 1 and calls() == {}
    assert other.fetch is bare


@replaces
def test_a_kept_property_passes(shop, caplog):
    codetimer.instrument("shop.Order.price*")
    kept = vars(shop.Order)["price"]
    with caplog.at_level(logging.INFO, "codetimer"):
        codetimer.instrumenting.follow()  # nothing has changed
    assert "instrumented" not in caplog.text and vars(shop.Order)["price"] is kept
    codetimer.uninstrument()
    order = shop.Order(1)
    kept.fset(order, 2)
    assert kept.fget(order) == 2 and calls() == {}


@replaces
def test_nothing_lives_longer(modules):  # noqa: F811
    codetimer.instrument("shop.*;again.*")
    shop = modules.load("shop", SHOP)
    shop.use()
    gone = weakref.ref(shop), weakref.ref(shop.Order), weakref.ref(shop.use)
    codetimer.instrumenting.follow()
    del shop
    modules.names.remove("shop")
    del sys.modules["shop"]
    deadline = time.monotonic() + 60  # the thread that follows the list may be looking at it just now
    while any(reference() is not None for reference in gone) and time.monotonic() < deadline:
        gc.collect()
    assert [reference() for reference in gone] == [None] * 3
    codetimer.instrumenting.follow()


# ---- the list of the process ----


@pytest.fixture
def listed():
    codetimer.configure(members="")  # there may be one of another test
    yield
    codetimer.configure(members="*")


def test_the_list_of_the_process_is_followed(shop, listed):
    made = codetimer.instrument()
    assert made.members is None
    codetimer.configure(members="shop.fetch")
    codetimer.instrumenting.follow()
    shop.use()
    assert calls() == {"shop.fetch": 4}
    codetimer.configure(members="shop.double;shop.<lambda>")
    codetimer.instrumenting.follow()
    shop.use()
    assert calls() == {"shop.fetch": 4, "shop.<lambda>": 1}
    codetimer.configure(members="")
    codetimer.instrumenting.follow()
    shop.use()
    assert calls() == {"shop.fetch": 4, "shop.<lambda>": 1}


def test_without_a_list_nothing(script):
    code = """
        import codetimer, json
        made = codetimer.instrument()
        json.dumps(1)
        print(made.reached, made.matches, len(codetimer.counters))
    """
    done = script(textwrap.dedent(code))
    assert done.stdout.decode().split() == ["()", "()", "0"], done.stderr


# ---- what it says ----


def test_matches(shop):
    made = codetimer.instrument("shop.fetch;shop.nothing;!shop.fail;")
    assert made.matches == (("shop.fetch", 1, None), ("shop.nothing", 0, None), ("!shop.fail", 0, None))
    assert "shop.fetch" in repr(made)


@replaces
def test_unreachable(shop):
    gc.collect()  # the modules of other tests
    held = [shop.fetch]
    made = codetimer.instrument("shop.fetch;shop.double")
    assert made.unreachable == (("shop.fetch", "a list still has the bare function"),)
    del held


@pytest.mark.parametrize("wrong", [5, b"shop.*", ["shop.*"], True])
def test_wrong_types(wrong):
    with pytest.raises(TypeError, match="members must be a str"):
        codetimer.instrument(wrong)
    with pytest.raises(TypeError, match="members must be a str"):
        codetimer.uninstrument(wrong)


def test_too_long():
    with pytest.raises(ValueError, match="65,536"):
        codetimer.instrument("x" * 70_000)
