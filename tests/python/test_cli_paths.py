# SPDX-License-Identifier: MIT
"""Guards the paths of the command line: both forms name the same counters, patterns work as in members lists, and what
is wrong with a path is said."""

import pytest
from codetimer.cli import paths

KEY = "shop/shop.orders.handle"


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        (r"\shop(shop.orders.handle)\average", True),
        (r"\shop(*)\p99", True),
        (r"\*(*handle)\rate", True),
        (r"\sh?p(shop.*;!shop.orders.*)\calls", False),
        (r"\shop(!shop.orders.*)\calls", False),
        (r"\shop(shop.other)\calls", False),
        (r"\other(*)\calls", False),
        ("shop/shop.orders.handle/average", True),
        ("*/*/in_flight", True),
        ("shop/shop.*/max", True),
        ("Shop/*/max", False),
        ("shop/handle/max", False),
    ],
)
def test_matches(text, matches):
    assert paths.parse(text).matches(KEY) == matches


def test_members_with_slashes_and_brackets():
    assert paths.parse("web/GET /a/b(c)/total").matches("web/GET /a/b(c)")
    assert paths.parse(r"\web(GET /a/b(c))\total").matches("web/GET /a/b(c)")
    assert not paths.parse("web/GET /a/total").matches("web/GET /a/b(c)")
    assert paths.parse(r"\web(a\*b)\total").matches("web/a*b")
    assert not paths.parse(r"\web(a\*b)\total").matches("web/a-b")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no path"),
        ("shop", "is no path"),
        ("shop/average", "is no path"),
        ("/x/average", "is no path"),
        (r"\shop\average", "is no path"),
        (r"\shop(x)", "is no path"),
        ("shop/x/mean", "no counter 'mean': it is one of average, active, calls, rate, errors, p50"),
        (r"\shop(x)\Average", "no counter 'Average'"),
        ("shop/x/", "no counter ''"),
        (r"\shop()\average", "selects nothing"),
        (r"\shop(a\b)\average", "the pattern"),
        ("shop/" + "x" * 70_000 + "/rate", "65,536"),
    ],
)
def test_wrong(text, said):
    with pytest.raises(ValueError, match=said.replace("(", r"\(")):
        paths.parse(text)


def test_each_once_in_order():
    found = paths.parse_all(["b/x/rate", "a/x/rate", "b/x/rate"])
    assert [path.text for path in found] == ["b/x/rate", "a/x/rate"]
