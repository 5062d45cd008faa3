# SPDX-License-Identifier: MIT
"""Guards what codetimer compare takes from a file: no verdict on numbers that cannot be, and no traceback."""

import json

import pytest
from codetimer.cli import Refused
from codetimer.cli.beside import read


def file_of(folder, **numbers):
    text = json.dumps({"codetimer": 1, "results": [{"name": "x", "per_call_ns": 5, **numbers}]})
    path = folder / "a.json"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ({"net_low_ns": 9, "net_high_ns": 1}, "net_low_ns of 'x' is above net_high_ns; was it edited"),
        ({"interval_low_ns": 9, "interval_high_ns": 1}, "interval_low_ns of 'x' is above interval_high_ns"),
        (
            {"interval_low_ns": 6, "interval_high_ns": 7},
            "per_call_ns of 'x' is 5.0, outside of its interval, 6.0 to 7.0; was it edited",
        ),
        ({"interval_low_ns": 3, "interval_high_ns": 4}, "outside of its interval, 3.0 to 4.0"),
        ({"interval_high_ns": 4}, "outside of its interval, 0 to 4.0"),
        ({"interval_low_ns": 6}, "outside of its interval, 6.0 to any"),
        ({"per_call_ns": 10**400}, "a number of 'x' is too large for one"),
    ],
)
def test_numbers_that_cannot_be(tmp_path, numbers, said):
    with pytest.raises(Refused, match=said):
        read(file_of(tmp_path, **numbers))


def test_numbers_that_can(tmp_path):
    numbers = {"interval_low_ns": 5, "interval_high_ns": 5, "net_low_ns": 0, "net_high_ns": 0}
    assert read(file_of(tmp_path, **numbers)).results == {"x": (5, 5, 5, 0, 0)}
    assert read(file_of(tmp_path, net_low_ns=3)).results == {"x": (5, None, None, 3, None)}
