# SPDX-License-Identifier: MIT
"""Guards what list and watch say of a counter whose writer was in the way: that it was, and never a value that nobody
has measured."""

import json
from datetime import datetime, timezone

import codetimer
from codetimer.cli import main
from codetimer.cli.sampling import make_row
from codetimer.cli.watch import Cell, JsonLines


class Busy:
    """A view whose counters are in their writer's hands."""

    members, acknowledged, segments = None, True, ()

    def __init__(self):
        codetimer.timer("cli.busy").counter.reset()
        key = codetimer.timer("cli.busy").counter.key
        self._sample = codetimer.counters[key].sample()
        self.busy = frozenset([key])
        self.counters = {key: codetimer.CounterInfo((key, True, ""))}

    def sample(self):
        return {self._sample.key: self._sample}

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


def test_list_invents_no_value_of_a_busy_counter(monkeypatch, capsys):
    monkeypatch.setattr(codetimer, "attach", lambda pid, directory: Busy())
    assert main(["list", "1"]) == 0
    shown = capsys.readouterr()
    (row,) = (line for line in shown.out.splitlines() if "cli.busy" in line)
    assert row.split() == ["yes", "cli/cli.busy", "(busy)", *["—"] * 7] and "its writer was in the way" in shown.err
    assert main(["list", "1", "--json"]) == 0
    (counter,) = json.loads(capsys.readouterr().out)["counters"]
    assert counter["busy"] is True and counter["calls"] is counter["total_ns"] is counter["p50_ns"] is None


def test_watch_has_no_value_of_a_busy_counter(capsys):
    sample = codetimer.timer("cli.busy").counter.sample()
    process = codetimer.Process(("", "live", 7, 1, 0, "p", "", "", 1, 0, None, 0, ""))
    cells = {
        Cell(7, 1, sample.key, "calls"): make_row(process, sample, sample, busy=True),
        Cell(8, 1, sample.key, "calls"): make_row(process, sample, None)._replace(unclean=True, pid=8),
    }
    JsonLines().line(datetime.now(timezone.utc), list(cells), cells)
    busy, unclean = json.loads(capsys.readouterr().out)["values"]
    assert (busy["busy"], busy["value"]) == (True, None) and (unclean["busy"], unclean["unclean"]) == (False, True)
