# SPDX-License-Identifier: MIT
"""Guards on_change and providers: each change is told, the application's own source is followed, and code of theirs
that raises, blocks or answers nonsense is told once and stops nothing but itself. Fails if a callback can prevent a
change, or if a blocked provider or callback ends the following."""

import re

import codetimer
import pytest
from live import program


@pytest.fixture
def folder(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path


# wait(true) waits for what must come true; told() returns what was logged since the last time.
START = """
import io, logging, queue, threading
log = io.StringIO()
logging.basicConfig(level="INFO", format="%(levelname)s %(message)s", stream=log)
def wait(true):
    deadline = time.monotonic() + 60
    while not true():
        if time.monotonic() > deadline: raise AssertionError(log.getvalue())
        time.sleep(0.005)
def told():
    text = log.getvalue(); log.seek(0); log.truncate()
    return text
from codetimer import following
following.FIRST_ANSWER = 60
settings = codetimer.configure()
"""


def check(folder, code, **more):
    """Runs code that ends with all well, and is not kept from ending."""
    with program(START + code + "\nsay('well')\n", folder, **more) as measured:
        line = measured.popen.stdout.readline()
        assert line == "well\n", measured.popen.stderr.read()
        measured.end()
        assert measured.popen.stderr.read() == ""


# ---- callbacks ----


def test_callbacks_are_told_of_each_change_by_whomever(folder):
    code = """
changes = queue.Queue()
@settings.on_change
def changed(one):
    changes.put((one.members, one.source, threading.current_thread().name))
assert changed.__name__ == "changed"
codetimer.timer("shop.f").counter.record(1)
with codetimer.timer("shop.f"): pass
codetimer.configure("a")
say(*changes.get(timeout=60))
say("now")
hear()
say(*changes.get(timeout=60))
assert settings.remove_on_change(changed) and not settings.remove_on_change(changed)
codetimer.configure("c")
again = queue.Queue()
settings.on_change(again.put)
wait(lambda: following.following.seen == codetimer.poll())
time.sleep(0.3)
assert again.empty()  # that change was before
codetimer.configure("d")
again.get(timeout=60)
assert changes.empty()
"""
    with program(START + code, folder) as measured:
        assert measured.hear() == "a configure codetimer callbacks"
        assert measured.hear() == "now"
        with codetimer.attach(measured.pid, directory=folder) as view:
            view.set_members("b")
        measured.say()
        assert measured.hear() == "b controller codetimer callbacks"
        measured.end()


def test_a_callback_that_raises_stays_and_prevents_nothing(folder):
    check(folder, """
calls = []
def worse(one): calls.append(1); raise SystemExit
def bad(one): calls.append(2); raise ValueError("the callback's own")
settings.on_change(worse)
settings.on_change(bad)
settings.on_change(lambda one: calls.append(3))
codetimer.configure("a")
wait(lambda: calls == [1, 2, 3])
assert settings.members == "a"
codetimer.configure("b")
wait(lambda: calls == [1, 2, 3] * 2)
wait(lambda: log.getvalue().count("WARNING on_change callback <function bad ") == 2)
text = told()
assert text.count("ValueError: the callback's own") == 2 and text.count("function worse") >= 2
""")


def test_a_callback_that_blocks_stops_no_following(folder):
    check(folder, """
following.PATIENCE = 0.2
entered, leave = threading.Event(), threading.Event()
others = queue.Queue()
def block(one): entered.set(); leave.wait()
settings.on_change(block)
settings.on_change(others.put)
codetimer.configure("a")
assert entered.wait(60)
class Provider:
    text = "p"
    def members(self): return self.text
codetimer.configure(provider=Provider())
wait(lambda: settings.members == "p")
Provider.text = "q"
wait(lambda: settings.members == "q")
wait(lambda: "has not returned for " in log.getvalue())
time.sleep(0.6)
assert told().count("has not returned") == 1 and others.empty()
leave.set()
assert others.get(timeout=60).members == "q"
leave.clear(); entered.clear()
codetimer.configure("z")
entered.wait(60)  # and blocks for ever
""")


def test_callback_may_use_everything(folder):
    check(folder, """
calls = []
def changed(one):
    calls.append(one.members)
    codetimer.poll()
    if len(calls) < 4: codetimer.configure(f"m{len(calls)}")
    else: one.remove_on_change(changed)
settings.on_change(changed)
codetimer.configure("m0")
wait(lambda: len(calls) == 4)
assert calls == ["m0", "m1", "m2", "m3"]
for wrong in None, 5, "x":
    try: settings.on_change(wrong)
    except TypeError as error: assert "callback must be a callable" in str(error)
    else: raise AssertionError
""")


# ---- providers ----


def test_a_provider_is_followed(folder):
    check(folder, """
class Provider:
    text = "p"
    asked = 0
    def members(self): self.asked += 1; return self.text
provider = Provider()
settings = codetimer.configure(provider=provider)
assert (settings.members, settings.source, settings.problem) == ("p", "provider", None)
assert settings.provider is provider
provider.text = "q"
wait(lambda: settings.members == "q")
codetimer.configure("mine")
seen = provider.asked
wait(lambda: provider.asked > seen + 2)
assert settings.members == "mine"  # what it says is not new
settings.reload()
assert settings.members == "q"
provider.text = None
seen = provider.asked
wait(lambda: provider.asked > seen + 2)
assert settings.members == "q"
settings.provider = None
seen = provider.asked + 1  # one may be under way
time.sleep(0.6)
assert provider.asked <= seen and settings.provider is None
assert "INFO members list now from provider" in told()
""")


def test_a_provider_that_subscribes_is_asked_only_when_told(folder):
    check(folder, """
class Provider:
    asked = 0
    def subscribe(self, changed): self.changed = changed
    def members(self): self.asked += 1; return f"m{self.asked}"
provider = Provider()
codetimer.configure(provider=provider)
time.sleep(0.8)
assert provider.asked == 1 and settings.members == "m1"
provider.changed()
wait(lambda: settings.members == "m2")
time.sleep(0.6)
assert provider.asked == 2
""")


def test_a_provider_that_fails_is_told_once_for_each_message(folder):
    check(folder, r"""
codetimer.configure("mine")
class Provider:
    what = KeyError("one")
    asked = 0
    def members(self):
        self.asked += 1
        if isinstance(self.what, BaseException): raise self.what
        return self.what
provider = Provider()
codetimer.configure(provider=provider)
assert settings.problem == "provider: KeyError: 'one'" and settings.members == "mine"
def expect(what, problem):
    provider.what = what
    wait(lambda: problem in str(settings.problem))
    seen = provider.asked
    wait(lambda: provider.asked > seen + 2)
    assert told().count("failed, the members list stays") == 1
    assert settings.members == "mine"
assert told().count("failed, the members list stays: KeyError: 'one'") == 1
expect(SystemExit(7), "provider: SystemExit: 7")
expect(5, "TypeError: members() returned 5 (int), not a str or None")
expect("x" * 65537, "ValueError: members must have at most 65,536 bytes")
expect("\ud800", "UnicodeEncodeError")
provider.what = "good"
wait(lambda: settings.members == "good" and settings.problem is None)
wait(lambda: "answers again" in log.getvalue())
""")


def test_a_provider_that_blocks_stops_nothing(folder):
    check(folder, """
following.PATIENCE = 0.2
following.FIRST_ANSWER = 0.2
leave = threading.Event()
class Blocked:
    def members(self): leave.wait(); return "late"
codetimer.configure("mine", provider=Blocked())
assert settings.members == "mine" and settings.problem is None
changes = queue.Queue()
settings.on_change(changes.put)
wait(lambda: "has not answered for 0 s, the members list stays" in log.getvalue())
codetimer.configure("yours")
assert changes.get(timeout=60).members == "yours"
time.sleep(0.6)
assert told().count("has not answered") == 1
class Other:
    def subscribe(self, changed): pass
    def members(self): return "other"
codetimer.configure(provider=Other())
wait(lambda: settings.members == "other")
leave.set()
time.sleep(0.6)
assert settings.members == "other"  # the answer of one that was replaced is not wanted any more
leave.clear()
codetimer.configure(provider=Blocked())  # for ever
""")


def test_where_one_is_needed_and_missing():
    with pytest.raises(LookupError, match=r"neither a file nor a provider is set; .* configure\(provider=\.\.\.\)"):
        codetimer.configure().reload()


def test_what_can_be_no_provider():
    class Wrong:
        members = "x"

    class Unsubscribable:
        subscribe = 5

        def members(self):
            return None

    for wrong in (5, "x", Wrong(), object()):
        with pytest.raises(TypeError, match=r"must have a method members\(\), which returns .* has none"):
            codetimer.configure(provider=wrong)
    with pytest.raises(TypeError, match=re.escape("not the class Unsubscribable: Unsubscribable()?")):
        codetimer.configure(provider=Unsubscribable)
    with pytest.raises(TypeError, match=r"subscribe\(changed\), not 5"):
        codetimer.configure(provider=Unsubscribable())
    assert codetimer.configure().provider is None
