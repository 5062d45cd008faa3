# SPDX-License-Identifier: MIT
"""The C extension of codetimer; everything else about the package is in pyproject.toml.

The extension is the C core and the Python binding compiled as one, so that nothing is needed at run time. The version
is read from core/codetimer.h, where every build file reads it.
"""

import re
import sys
from glob import glob
from pathlib import Path

from setuptools import Extension, setup

SYSTEM = {"win32": "windows", "cygwin": "windows", "darwin": "macos"}.get(sys.platform, "linux")
FAMILIES = [SYSTEM] if SYSTEM == "windows" else [SYSTEM, "posix"]


def version() -> str:
    found = re.search(r'^#define CT_VERSION "(.+)"$', Path("core/codetimer.h").read_text("utf-8"), re.MULTILINE)
    if found is None:
        raise SystemExit("setup.py: core/codetimer.h does not define CT_VERSION")
    return found.group(1)


def files(*patterns: str) -> list[str]:
    return sorted(path for pattern in patterns for path in glob(pattern))


extension = Extension(
    "codetimer._codetimer",
    sources=files("core/*.c", *(f"core/platform/*_{family}.c" for family in FAMILIES), "bindings-python/*.c"),
    depends=files("core/*.h", "core/platform/*.h", "bindings-python/*.h"),
    include_dirs=["core"],
    extra_compile_args=["/std:c11"] if SYSTEM == "windows" else ["-std=c11", "-O2", "-fvisibility=hidden"],
    libraries=["m"] if SYSTEM == "linux" else [],
)

setup(version=version(), ext_modules=[extension])
