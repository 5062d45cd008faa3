# SPDX-License-Identifier: MIT
"""Guards the files of `codetimer time`: whole or not at all, readable for those who they are for, and a report that is
there whatever becomes of them."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_processes import environment, run

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")


@pytest.fixture
def folder(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path


def printed(folder, *arguments):
    ended = run(folder, "time", *arguments, cwd=folder)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    return ended.stdout


# ---- formats ----


def test_json(folder):
    """The schema and what it says of where it was made; the file and the text are the same."""
    document = json.loads(printed(folder, "-n", "100", "--format", "json", "--json", "r.json", "pass"))
    assert document["codetimer"] == 1 and document["host"].startswith("Python 3.") and document["machine"]
    assert document["results"][0]["name"] == "pass" and document["results"][0]["calls"] == 100
    saved = json.loads((folder / "r.json").read_text())
    assert saved["results"] == document["results"]


def test_csv(folder):
    rows = list(csv.DictReader(io.StringIO(printed(folder, "-n", "7", "-r", "2", "--format", "csv", "'a,\"b'"))))
    assert [(row["name"], row["calls"]) for row in rows] == [("'a,\"b'", "7")] * 2


def test_markdown(folder):
    lines = printed(folder, "-n", "7", "--format", "markdown", "1 | 2").splitlines()
    assert lines[0].startswith("| Name | Calls | Per Call |") and lines[2].startswith(r"| 1 \| 2 | 7 |")


def test_comparison_in_all_formats(folder):
    for format in ("json", "csv", "markdown", "pyperf"):
        ended = run(folder, "compare", "-t", "0.05", "--format", format, "pass", "1")
        assert (ended.returncode, ended.stderr) == (0, "") and len(ended.stdout) > 100
        assert format in ("csv", "markdown") or json.loads(ended.stdout)


def test_what_the_stream_cannot_encode(folder):
    ended = run(folder, "time", "-n", "9", "--format", "csv", "'ü'", env={"PYTHONIOENCODING": "ascii"})
    assert ended.returncode == 0 and "'\\xfc'" in ended.stdout


def pyperf(folder, *arguments):
    """Its output, which must come without a complaint."""
    pytest.importorskip("pyperf")
    ended = subprocess.run(
        [sys.executable, "-m", "pyperf", *arguments],
        env=environment(folder), cwd=folder, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stdout


def test_pyperf_reads_our_files(folder):
    for name, statement in (("a.json", "sum(range(10))"), ("b.json", "sum(range(10_000))")):
        arguments = ("-t", "0.5", "--name", "sum", "--format", "pyperf", statement)
        (folder / name).write_text(printed(folder, *arguments))
    assert "Mean +- std dev: " in pyperf(folder, "show", "a.json")
    assert "x slower" in pyperf(folder, "compare_to", "a.json", "b.json")
    assert "#" in pyperf(folder, "hist", "a.json")
    assert "number of values" in pyperf(folder, "stats", "a.json").lower()


def test_pyperf_reads_several_runs(folder):
    (folder / "r.json").write_text(printed(folder, "-t", "0.05", "-r", "2", "--format", "pyperf", "sum(range(100))"))
    assert "sum(range(100)) #2" in pyperf(folder, "show", "r.json")


# ---- saving ----


def test_saved_whole(folder):
    """In place of what was there; its permissions stay, a link stays a link, and nothing else is left behind."""
    (folder / "there.json").write_text("before")
    (folder / "there.json").chmod(0o640)
    (folder / "link.json").symlink_to("there.json")
    printed(folder, "-n", "5", "--json", "link.json", "pass")
    assert (folder / "link.json").is_symlink() and (folder / "there.json").stat().st_mode & 0o777 == 0o640
    assert json.loads((folder / "there.json").read_text())["codetimer"] == 1
    assert sorted(path.name for path in folder.iterdir()) == ["link.json", "there.json"]


def test_new_file_has_the_usual_permissions(folder):
    printed(folder, "-n", "5", "--json", "r.json", "pass")
    (folder / "plain").touch()
    assert (folder / "r.json").stat().st_mode == (folder / "plain").stat().st_mode


@needs_full
def test_full_disk(folder):
    """The report is printed, the reason is told, the exit code is 1."""
    ended = run(folder, "time", "-n", "5", "--json", FULL, "pass")
    assert ended.returncode == 1 and "Calls:          5\n" in ended.stdout
    assert ended.stderr == "codetimer: /dev/full could not be saved: No space left on device; nothing of it was kept\n"


@needs_full
@pytest.mark.parametrize("format", ["text", "json", "csv", "markdown", "pyperf"])
def test_full_standard_output(folder, format):
    with FULL.open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "codetimer", "-n", "500", "--format", format, "--json", folder / "r.json", "pass"],
            env=environment(folder), stdout=full, stderr=subprocess.PIPE, text=True, timeout=60,
        )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (1, "codetimer: No space left on device\n")


def test_no_room_leaves_what_was_there(folder):
    """As by a full disk: a file cannot grow beyond the limit."""
    code = """
import resource, signal, sys
from codetimer.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
sys.exit(main(["time", "-n", "5", "--json", "r.json", "pass"]))
"""
    (folder / "r.json").write_text("before")
    ended = subprocess.run(
        [sys.executable, "-c", code], env=environment(folder), capture_output=True, text=True, cwd=folder, timeout=60
    )
    assert ended.returncode == 1 and "Calls:          5\n" in ended.stdout
    assert ended.stderr == "codetimer: r.json could not be saved: File too large; nothing of it was kept\n"
    assert (folder / "r.json").read_text() == "before" and os.listdir(folder) == ["r.json"]


@pytest.mark.parametrize(
    ("path", "code", "said"),
    [
        ("no/r.json", 1, "no/r.json: there is no folder "),
        (".", 1, ". is a folder"),
        ("", 2, "--json needs the name of a file"),
        ("-", 2, "to standard output: --format json"),
    ],
)
def test_refused_before_anything_is_measured(folder, path, code, said):
    ended = run(folder, "time", "--json", path, "print('ran')", cwd=folder)
    assert (ended.returncode, ended.stdout) == (code, "") and said in ended.stderr


def test_not_written_after_an_error(folder):
    ended = run(folder, "time", "-n", "5", "--json", "r.json", "1 / 0", cwd=folder)
    assert ended.returncode == 1 and "r.json was not written, since the statement failed" in ended.stderr
    assert os.listdir(folder) == []
