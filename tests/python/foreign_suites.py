# SPDX-License-Identifier: MIT
"""Runs test suites that know nothing of codetimer, bare or with every function measured, and tells how each test ended.

    python foreign_suites.py cpython test.test_functools            CPython's own, from the installed test package
    python foreign_suites.py package sortedcontainers DIRECTORY     a source package of PyPI, unpacked, by pytest

With --measured first: of CPython's suites, each function that is defined inside a test is measured, innermost; of a
package, all functions and classes of all its modules are, before its tests are imported.
"""

import ast
import importlib
import json
import pkgutil
import sys
import unittest

OUTCOMES = {}


def measure(thing):
    """As a decorator."""
    import codetimer

    return codetimer.measured(thing)


# ---- suites of CPython ----


class Marker(ast.NodeTransformer):
    """Adds the decorator, nearest to the function, to all functions inside functions, also to methods there."""

    depth = 0

    def visit_FunctionDef(self, node):
        inside, self.depth = self.depth, self.depth + 1
        self.generic_visit(node)
        self.depth = inside
        if inside:
            node.decorator_list.append(ast.Name("__measure__", ast.Load()))
        return node

    visit_AsyncFunctionDef = visit_FunctionDef


def load(name, measured):
    """The module, made anew from its source."""
    module = importlib.import_module(name)
    if not measured:
        return module
    with open(module.__file__, encoding="utf-8") as file:
        tree = Marker().visit(ast.parse(file.read()))
    module.__dict__["__measure__"] = measure
    exec(compile(ast.fix_missing_locations(tree), module.__file__, "exec"), module.__dict__)
    return module


class Result(unittest.TestResult):
    def stopTest(self, test):
        for kind in ("failures", "errors", "skipped"):
            texts = [text for t, text in getattr(self, kind) if getattr(t, "test_case", t) is test]
            if texts:
                print(test.id(), *texts, file=sys.stderr)
                OUTCOMES[test.id()] = kind
        OUTCOMES.setdefault(test.id(), "passed")
        super().stopTest(test)


def run_cpython(name, measured):
    suite = unittest.defaultTestLoader.loadTestsFromModule(load(name, measured))
    suite.run(Result())


# ---- packages ----


def measure_modules(package):
    """All that the modules of a package define; a function that several of them have stays one."""
    names = [name for _, name, _ in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
    modules = [package, *(importlib.import_module(name) for name in names)]
    done = {}
    for module in modules:
        for name, value in list(vars(module).items()):
            where = getattr(value, "__module__", None)
            if callable(value) and isinstance(where, str) and where.split(".")[0] == package.__name__:
                done.setdefault(id(value), measure(value))
                setattr(module, name, done[id(value)])


class Recorder:
    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            OUTCOMES[report.nodeid] = report.outcome


def run_package(name, directory, measured):
    import pytest

    sys.path.insert(0, directory)
    for source in (f"{directory}/src", directory):
        sys.path.insert(0, source)
    package = importlib.import_module(name)
    assert package.__file__.startswith(directory), package.__file__
    if measured:
        measure_modules(package)
    options = ["-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", directory, "-W", "ignore"]
    pytest.main([*options, f"{directory}/tests"], plugins=[Recorder()])


def main(arguments):
    measured = arguments[0] == "--measured"
    kind, *rest = arguments[measured:]
    {"cpython": run_cpython, "package": run_package}[kind](*rest, measured)
    calls = 0
    if measured:
        import codetimer

        calls = sum(counter.calls for counter in codetimer.counters.values())
    print("\n" + json.dumps({"outcomes": OUTCOMES, "calls": calls}))


if __name__ == "__main__":
    main(sys.argv[1:])
