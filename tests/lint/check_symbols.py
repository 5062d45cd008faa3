# SPDX-License-Identifier: MIT
"""Guards what is visible from outside: check_symbols.py BUILD PYTHON_LIB.

libcodetimer.so exports exactly the functions of codetimer.h and its chapters; the bindings export one entry point each,
so that both can live in one process; inside the core every name that is not static begins with ct_.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import tree


def symbols(path: Path, *options: str) -> set[str]:
    output = subprocess.run(["nm", "--defined-only", *options, str(path)], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in output.stdout.splitlines() if re.match(r"[0-9a-f]+ [A-Z] ", line)}


def expect(path: Path, seen: set[str], wanted: set[str]) -> None:
    for name in sorted(seen - wanted):
        tree.found(path.name, 0, f"exports {name}, which it should not")
    for name in sorted(wanted - seen):
        tree.found(path.name, 0, f"does not export {name}")


def one(folder: Path, pattern: str) -> Path:
    paths = sorted(folder.glob(pattern))
    if not paths:
        sys.exit(f"{folder}/{pattern}: not built")
    return paths[0]


build, python_lib = Path(sys.argv[1]), Path(sys.argv[2])
headers = "\n".join(tree.text(path) for path in tree.files(".h", under="core/codetimer"))
declared = set(re.findall(r"^CT_API [^;(]*?\b(ct_\w+)\(", headers, re.MULTILINE))

library = one(build, "libcodetimer.so.*.*")
expect(library, symbols(library, "-D"), declared)
lua = one(build, "lua/*/codetimer.so")
expect(lua, symbols(lua, "-D"), {"luaopen_codetimer", "luaopen_codetimer_native"})
python = one(python_lib, "codetimer/*.so")
expect(python, symbols(python, "-D"), {"PyInit_" + python.name.split(".")[0]})

static = one(build, "libcodetimer.a")
for symbol in sorted(symbols(static, "-g")):
    if not symbol.startswith("ct_"):
        tree.found(static.name, 0, f"{symbol}: names inside the core begin with ct_ (or are static)")
tree.finish()
