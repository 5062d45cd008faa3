# SPDX-License-Identifier: MIT
"""Guards: the Python and the Lua module, each with a core of its own inside, live in one process and both measure.

CODETIMER_LUA_CPATH names the pattern under which the built Lua module is found, such as build/lua/5.4/?.so.
"""

import ctypes
import os
from pathlib import Path

import codetimer
import pytest

CODE = b"""
package.cpath = os.getenv("CODETIMER_LUA_CPATH")
local codetimer = require "codetimer"
local calls = 0
local result = codetimer.time("", 1000, function() calls = calls + 1 end)
assert(calls == 1000 and result.calls == 1000 and result.elapsed_ns > 0)
return string.format("%d", codetimer.now_ns())
"""


@pytest.fixture
def lua():
    cpath = os.environ.get("CODETIMER_LUA_CPATH", "")
    if not Path(cpath.replace("?", "codetimer")).is_file():
        pytest.skip("CODETIMER_LUA_CPATH does not name a built Lua module")
    try:
        library = ctypes.CDLL("liblua5.4.so.0", ctypes.RTLD_GLOBAL)
    except OSError as error:
        pytest.skip(f"no Lua library: {error}")
    library.luaL_newstate.restype = ctypes.c_void_p
    library.lua_tolstring.restype = ctypes.c_char_p
    return library


def run_lua(library, code):
    """The text that a chunk returns in a state of its own, or its error message as a failure."""
    state = ctypes.c_void_p(library.luaL_newstate())
    try:
        library.luaL_openlibs(state)
        failed = library.luaL_loadstring(state, code) or library.lua_pcallk(state, 0, 1, 0, ctypes.c_ssize_t(0), None)
        text = library.lua_tolstring(state, -1, None)
        assert not failed, text
        return text
    finally:
        library.lua_close(state)


def test_both_time_in_one_process(lua):
    codetimer.time("", 1, int)
    before = codetimer.now_ns()
    moments = []
    result = codetimer.time("", 5, lambda: moments.append(run_lua(lua, CODE)))
    assert result.calls == 5 and len(moments) == 5
    assert result.elapsed_ns <= codetimer.now_ns() - before
    assert moments == sorted(moments, key=int)
