# SPDX-License-Identifier: MIT
"""Guards which exceptions count as cancelled: those of asyncio and of trio, GeneratorExit, and groups of nothing else.
Fails if one of them counts as an error, or an error as cancelled."""

import asyncio
import builtins
import contextlib
import sys

import codetimer
import measuring
import pytest
from codetimer import measured

fresh = measuring.fresh
Group, Errors = (getattr(builtins, name, None) for name in ("BaseExceptionGroup", "ExceptionGroup"))  # since 3.11


def outcome(name):
    counter = codetimer.counters[f"a.{name}"]
    return counter.calls, counter.errors, counter.cancelled, counter.in_flight


@pytest.fixture
def work():
    @measured(name="a.work")
    async def work(*, fail):
        await asyncio.sleep(0)
        raise fail

    return work


def test_trio_by_its_module(work, monkeypatch):
    """Found in what is imported; trio itself is not."""

    class Cancelled(BaseException): ...

    module = type(sys)("trio")
    module.Cancelled = Cancelled
    call = work(fail=Cancelled())
    monkeypatch.setitem(sys.modules, "trio", module)
    with pytest.raises(Cancelled):
        asyncio.run(call)
    assert outcome("work") == (1, 0, 1, 0)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exception groups are of 3.11")
def test_groups(work):
    """As nurseries raise them; a group is cancelled where all in it were."""
    cancelled = asyncio.CancelledError()
    inner = Group("inner", [cancelled, GeneratorExit()])
    cases = {
        "all": (Group("all", [cancelled, inner]), (1, 0, 1, 0)),
        "some": (Group("some", [inner, ValueError()]), (2, 1, 1, 0)),
        "none": (Group("none", [KeyboardInterrupt()]), (3, 2, 1, 0)),
        "errors": (Errors("errors", [ValueError()]), (4, 3, 1, 0)),
    }
    for group, expected in cases.values():
        coroutine = work(fail=group)
        coroutine.send(None)
        with pytest.raises(type(group)):
            coroutine.send(None)
        assert outcome("work") == expected
    timer = codetimer.timer("a.timer")
    for group, _ in cases.values():
        with contextlib.suppress(BaseException), timer:
            raise group
    assert outcome("timer") == (4, 3, 1, 0)
