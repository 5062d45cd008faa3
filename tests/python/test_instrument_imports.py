# SPDX-License-Identifier: MIT
"""Guards the import system while something is instrumented: what is imported later is measured from its first call
on, and everything else about imports is as without: specs, loaders, tracebacks, errors, resources, reload. Fails if a
module is missed, if an import behaves in another way, or if anything of ours stays."""

import importlib
import importlib.resources
import importlib.util
import inspect
import pickle
import pkgutil
import subprocess
import sys
import threading
import traceback
import zipfile

import codetimer
import codetimer.instrumenting
import pytest
from instrumented import calls, modules, nothing_instrumented  # noqa: F401


def test_packages_cycles_and_names_taken_while_importing(modules):  # noqa: F811
    modules.write("cyc.__init__", "from cyc.a import f")
    modules.write("cyc.a", "def f(): return g() + 1\nimport cyc.b\nfrom cyc.b import g, taken")
    modules.write("cyc.b", "from cyc.a import f\nTAKEN = f\ndef taken(): return f()\ndef g(): return 1")
    codetimer.instrument("cyc.*")
    import cyc

    assert cyc.f() == 2 and cyc.b.taken() == 2 and cyc.a.taken() == 2
    assert calls() == {"cyc.a.f": 3, "cyc.b.g": 3, "cyc.b.taken": 2}


def test_namespace_packages_and_import_module(modules):  # noqa: F811
    modules.write("space.inner.leaf", "def f(): return 1")
    codetimer.instrument("space.*")
    assert importlib.import_module("space.inner.leaf").f() == 1
    assert sys.modules["space"].__spec__.loader is not None
    assert calls() == {"space.inner.leaf.f": 1}


def test_what_a_module_knows_of_itself(modules):  # noqa: F811
    modules.write("known.__init__", "")
    (modules.folder / "known" / "text.txt").write_text("text")
    modules.write("known.leaf", "def f():\n    return 1\n")
    bare = importlib.util.find_spec("known.leaf")
    codetimer.instrument("known.*")
    found = importlib.util.find_spec("known.leaf")
    leaf = importlib.import_module("known.leaf")
    assert found == bare and type(found) is type(bare) and type(found.loader) is type(bare.loader)
    assert leaf.__spec__ == bare and leaf.__loader__ is leaf.__spec__.loader
    assert pickle.loads(pickle.dumps(leaf.__spec__)) == bare
    assert bare.loader.get_source("known.leaf") == inspect.getsource(leaf)
    assert inspect.getsource(leaf.f) == "def f():\n    return 1\n"
    assert importlib.resources.files("known").joinpath("text.txt").read_text() == "text"
    assert pkgutil.resolve_name("known.leaf:f") is leaf.f
    assert leaf.f() == 1 and calls() == {"known.leaf.f": 1}


def test_zip_archives(modules, monkeypatch):  # noqa: F811
    path = modules.folder / "some.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("zipped.py", "def f(): return 1")
    modules.names.append("zipped")
    monkeypatch.syspath_prepend(str(path))
    codetimer.instrument("zipped.*")
    assert importlib.import_module("zipped").f() == 1 and calls() == {"zipped.f": 1}


def failing(modules):  # noqa: F811
    modules.write("failing.__init__", "import failing.leaf")
    modules.write("failing.leaf", "def f(): return 1\ndef g(): raise KeyError(f())\ng()")
    try:
        importlib.import_module("failing")
    except KeyError as error:
        return traceback.format_exc(), [frame.name for frame in traceback.extract_tb(error.__traceback__)]


@pytest.mark.parametrize("text", ["failing.*", "other.*"])
def test_errors_are_what_they_are(modules, text):  # noqa: F811
    bare = failing(modules)
    codetimer.instrument(text)
    assert failing(modules) == bare
    assert "failing" not in sys.modules and "failing.leaf" not in sys.modules
    with pytest.raises(ModuleNotFoundError) as missing:
        importlib.import_module("failing_not_there")
    assert missing.value.name == "failing_not_there"
    modules.write("wrong", "def f(:")
    with pytest.raises(SyntaxError):
        importlib.import_module("wrong")


def test_reload(modules):  # noqa: F811
    codetimer.instrument("again.*")
    again = modules.load("again", "def f(): return 1\nclass C:\n    def m(self): return 1\n")
    assert again.f() == 1 == again.C().m()
    modules.write("again", "def f(): return 222\nclass C:\n    def m(self): return 222\ndef new(): return 3\n")
    assert importlib.reload(again) is again
    assert again.f() == 222 == again.C().m() and again.new() == 3
    assert calls() == {"again.f": 2, "again.C.m": 2, "again.new": 1}
    codetimer.uninstrument()
    assert importlib.reload(again).f() == 222 and calls()["again.f"] == 2


def test_somebody_else_watches_too(modules):  # noqa: F811
    import importlib._bootstrap as bootstrap

    original = bootstrap._load_unlocked
    codetimer.instrument("watched.*")
    ours = bootstrap._load_unlocked
    seen = []

    def theirs(spec):
        seen.append(spec.name)
        return ours(spec)

    bootstrap._load_unlocked = theirs
    try:
        assert modules.load("watched", "def f(): return 1").f() == 1 and calls() == {"watched.f": 1}
        codetimer.uninstrument()
        assert bootstrap._load_unlocked is theirs
        assert modules.load("watched2", "def f(): return 1").f() == 1 and calls() == {"watched.f": 1}
        codetimer.instrument("watched3.*")
        assert modules.load("watched3", "def f(): return 1").f() == 1
        codetimer.uninstrument()
        assert calls() == {"watched.f": 1, "watched3.f": 1}
    finally:
        bootstrap._load_unlocked = original
    assert seen == ["watched", "watched2", "watched3"]


def test_extension_and_builtin_modules(script):
    code = (
        "import codetimer\n"
        "codetimer.instrument('zlib.crc32;_json.*')\n"
        "import zlib, _json\n"
        "zlib.crc32(b'x'), _json.encode_basestring('a')\n"
        "print(sorted((c.member, c.calls) for c in codetimer.counters.values() if c.calls))\n"
    )
    done = script(code)
    assert done.stdout.decode() == "[('_json.encode_basestring', 1), ('zlib.crc32', 1)]\n", done.stderr


def test_main_by_its_name(modules):  # noqa: F811
    """python -m: codetimer does not run it, but it may instrument itself; the functions are found by follow()."""
    path = modules.write("runs.__main__", """
        import codetimer, codetimer.instrumenting
        codetimer.instrument("runs.*")
        def f():
            return 1
        codetimer.instrumenting.follow()
        f()
        print({c.member: c.calls for c in codetimer.counters.values() if c.calls})
    """)
    done = subprocess.run(
        [sys.executable, "-m", "runs"], cwd=path.parent.parent, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "{'runs.f': 1}\n", done.stderr


def test_no_import_waits(modules):  # noqa: F811
    modules.write("waiting", "def f(): return 1\n")
    codetimer.instrument("waiting.*")
    thread = threading.Thread(target=importlib.import_module, args=("waiting",))
    with codetimer.instrumenting._alone():
        thread.start()
        thread.join(60)
        assert not thread.is_alive()
    assert sys.modules["waiting"].f() == 1 and calls() == {"waiting.f": 1}


def test_threads_that_import_while_others_instrument(modules):  # noqa: F811
    """Neither waits for the other: an import never stands in line for the lock, and no module is missed in the end."""
    names = [f"many{i}" for i in range(24)]
    for name in names:
        modules.write(name, "import time\ndef f(): return 1\n")
    codetimer.instrument("many*")
    failed = []

    def load(mine):
        try:
            for name in mine:
                importlib.import_module(name)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=load, args=(names[i::4],)) for i in range(4)]
    for thread in threads:
        thread.start()
    for i in range(4):
        codetimer.instrument(f"other{i}.*").uninstrument()
    for thread in threads:
        thread.join()
    assert not failed
    for name in names:
        sys.modules[name].f()
    assert calls() == {f"{name}.f": 1 for name in names}
