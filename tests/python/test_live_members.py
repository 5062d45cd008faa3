# SPDX-License-Identifier: MIT
"""Guards Members against the cases that all languages share, and what it tells of its patterns."""

from pathlib import Path

import codetimer
import pytest

CASES = Path(__file__).resolve().parents[1] / "cases" / "members.tsv"


def cases():
    for line in CASES.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("# list"):
            yield line.split("\t")


@pytest.mark.skipif(not CASES.exists(), reason="the shared cases are not here: this is a source package")
def test_the_shared_cases():
    checked = 0
    for text, member, selected in cases():
        text = "" if text == "-" else text.replace("\\n", "\n").replace("\\s", " ")
        assert codetimer.Members(text).selects(member) == (selected == "1"), (text, member)
        checked += 1
    assert checked > 30


def test_patterns():
    members = codetimer.Members(" grün.x ;!b\nc\\x # comment")
    assert members.patterns == (
        ("grün.x", 1, None),
        ("!b", 9, None),
        ("c\\x", 12, "a backslash quotes only ; ! # * ? and itself"),
    )
    assert members.text == " grün.x ;!b\nc\\x # comment"
    assert repr(codetimer.Members("a")) == "codetimer.Members('a')"


def test_no_list_selects_all_and_an_empty_one_nothing():
    assert codetimer.Members(None).selects("x") and codetimer.Members(None).patterns == ()
    assert not codetimer.Members("").selects("x")


def test_arguments():
    for wrong in (5, b"x", ["x"]):
        with pytest.raises(TypeError, match="members must be a str or None"):
            codetimer.Members(wrong)
        with pytest.raises(TypeError, match="member must be a str"):
            codetimer.Members("x").selects(wrong)
    with pytest.raises(ValueError, match="65,536"):
        codetimer.Members("x" * 65_537)
    assert codetimer.Members("x" * 65_536).selects("x" * 65_536)
    with pytest.raises(TypeError):
        codetimer.Members()
    with pytest.raises(ValueError, match="surrogates"):
        codetimer.Members("\udc80")


def test_poll_takes_notice_where_nothing_is_measured():
    before = codetimer.poll()
    codetimer.configure(members="nothing.of.this.kind")
    once = codetimer.poll()
    assert once > before and codetimer.poll() == once
    codetimer.configure(members="*")
    assert codetimer.poll() > once
