# SPDX-License-Identifier: MIT
"""Guards that test suites that know nothing of codetimer end as they do without it when every function is measured:
CPython's own, as far as the test package is installed, and that of attrs, where its source can be downloaded. Fails if
a single test ends in another way. See foreign_suites.py."""

import importlib.util
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

SCRIPT = str(Path(__file__).with_name("foreign_suites.py"))
ATTRS = "attrs==25.3.0"

# What is meant to differ: type(f) is not that of a function, and f.__wrapped__ is there.
KNOWN = {
    "FunctionPropertiesTest.test___builtins__": "makes a function by type(f)(code, globals)",
    "TestUnwrap.test_unwrap_one": "unwraps down to the measured function and further",
    "TestUnwrap.test_unwrap_several": "unwraps down to the measured function and further",
    "CoroutineTest.test_await_12": "that __await__ returns a coroutine is seen of exactly that type alone",
    "CoroutineTest.test_stack_in_coroutine_throw": "frames outside of what throws are linked through that type alone",
    "GeneratorStackTraceTest.test_throw_with_yield_from": "likewise",
}

SUITES = (
    "test_functools test_decorators test_property test_funcattrs test_descr test_dataclasses test_enum test_typing "
    "test_abc test_copy test_inspect test_types test_coroutines test_asyncgen test_generators test_contextlib "
    "test_contextlib_async"
).split()


def compare(*arguments, least):
    bare, measured = (end(*first, *arguments) for first in ([], ["--measured"]))
    known = {name for name in bare["outcomes"] if name.split(".", 2)[-1].removeprefix("test_inspect.") in KNOWN}
    differ = {
        name: (ending, measured["outcomes"].get(name))
        for name, ending in bare["outcomes"].items()
        if measured["outcomes"].get(name) != ending and name not in known
    }
    assert not differ
    assert len(bare["outcomes"]) == len(measured["outcomes"]) >= least and measured["calls"] >= least


def end(*arguments):
    command = [sys.executable, "-W", "ignore", SCRIPT, *arguments]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("suite", SUITES)
def test_cpython(suite, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = f"test.{suite}"
    if importlib.util.find_spec("test") is None or importlib.util.find_spec(name) is None:
        pytest.skip("the test package of this Python is not installed")
    if importlib.util.find_spec(name).submodule_search_locations and importlib.util.find_spec(f"{name}.{suite}"):
        name += f".{suite}"
    compare("cpython", name, least=10)


def pip(*arguments):
    """Whether that could be had from PyPI."""
    command = [sys.executable, "-m", "pip", *arguments, "-q", "--disable-pip-version-check"]
    return subprocess.run(command, capture_output=True, timeout=200).returncode == 0


@pytest.mark.skipif(
    sys.version_info < (3, 13) and not os.environ.get("CODETIMER_SLOW"),
    reason="takes a minute: run with the newest Python, or with CODETIMER_SLOW=1",
)
def test_attrs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if not pip("download", "--no-deps", "--no-binary", "attrs", "--dest", ".", ATTRS):
        pytest.skip(f"the source of {ATTRS} cannot be downloaded here")
    if not pip("install", "--target", "needed", "hypothesis", "cloudpickle"):
        pytest.skip("hypothesis, which the tests of attrs need, cannot be downloaded here")
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        file.extractall(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'needed'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    (source,) = (path for path in tmp_path.iterdir() if path.is_dir() and path.name.startswith("attrs"))
    compare("package", "attr", str(source), least=1000)
