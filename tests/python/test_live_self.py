# SPDX-License-Identifier: MIT
"""Guards what a process says of itself, whether it publishes its counters and if not why; and that named tuples, of
which that is one, may be the last to go."""

import subprocess
import sys
from pathlib import Path

import codetimer
import pytest
from live import environment, program

ASKS = """
def why():
    try: codetimer.attach(os.getpid()).close()
    except OSError as error: return error.strerror
say(tuple(codetimer.segment_info()), why())
codetimer.timer("a.b").counter.record(1)
say(*codetimer.segment_info(), why())
say(codetimer.segment_info().reason == codetimer.segment_info()[2], type(codetimer.segment_info()).__name__)
hear()
"""


@pytest.fixture
def folder(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path


def test_a_process_says_itself_whether_it_publishes(folder):
    with program(ASKS, folder) as measured:
        reason = "nothing has been measured yet"
        assert measured.hear() == f"(False, None, '{reason}') process {measured.pid} publishes no counters: {reason}"
        assert measured.hear() == f"True {codetimer.processes(folder)[0].path}  None"
        assert measured.hear() == "True SegmentInfo"
    with program(ASKS, folder, CODETIMER_PUBLISH="0") as measured:
        measured.hear()
        said = measured.hear()
        assert said.startswith("False None ") and "CODETIMER_PUBLISH" in said and "has ended" not in said
    folder.chmod(0o777)
    with program(ASKS, folder) as measured:
        measured.hear()
        published, path, reason = measured.hear().split(" ", 2)
        assert (published, path) == ("False", "None")
        assert reason.startswith(f"the folder {folder} can be written by others")
    folder.chmod(0o700)


def test_named_tuples_outlive_the_dict_of_their_type(tmp_path):
    """At the end of an interpreter the collector clears it first; these tests leave tuples in cycles behind."""
    file = Path(__file__).with_name("test_cli_sampling.py")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file],
        capture_output=True,
        text=True,
        env=environment(tmp_path) | {"PYTEST_ADDOPTS": ""},
        timeout=120,
    )
    assert run.returncode == 0 and "Exception ignored" not in run.stdout + run.stderr and run.stderr == ""
