# SPDX-License-Identifier: MIT
"""Guards `codetimer serve`: the metrics are consistent and true, a real Prometheus sees it so, and no scrape fails."""

import contextlib
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import pytest
from cli_processes import SHORTEST_NS, Worker, command, environment, run, wait_for

pytest.importorskip("prometheus_client", reason="prometheus_client is not installed (the extra [prometheus])")

from codetimer.cli.metrics import BOUNDS, LONGEST_LABEL, label
from prometheus_client.parser import text_string_to_metric_families

CALLS = "codetimer_call_duration_seconds"


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "segments"
    place.mkdir(mode=0o700)
    return place


@contextlib.contextmanager
def serving(folder, *arguments, end=signal.SIGTERM):
    """The URL of the metrics."""
    server = subprocess.Popen(
        command("serve", "0", *arguments), env=environment(folder), stderr=subprocess.PIPE, text=True
    )
    try:
        yield re.search(r"http://\S+/metrics", server.stderr.readline())[0]
        server.send_signal(end)
        _, errors = server.communicate(timeout=60)
        assert (server.returncode, errors) == (0, "")  # it ended by that, and nothing went wrong before
    finally:
        server.kill()
        server.communicate()


def get(url):
    with urllib.request.urlopen(url, timeout=60) as response:
        assert response.status == 200
        return response.read().decode()


def scrape(url):
    """{(name, labels but le): value, or {le: value} for buckets}."""
    found = {}
    for family in text_string_to_metric_families(get(url)):
        for sample in family.samples:
            labels = dict(sample.labels)
            bound = labels.pop("le", None)
            name = (sample.name, tuple(sorted(labels.items())))
            if bound is None:
                assert name not in found, "a series twice"
                found[name] = sample.value
            else:
                found.setdefault(name, {})[bound] = sample.value
    return found


def of_member(found, name, member):
    return [value for (each, labels), value in found.items() if each == name and ("member", member) in labels]


# ---- the metrics ----


def test_histograms_are_consistent_and_true(folder):
    with Worker(folder) as worker, serving(folder) as url:
        for _ in range(3):
            before = worker.truth()
            found = scrape(url)
            after = worker.truth()
            check_histograms(found)
            (count,) = of_member(found, f"{CALLS}_count", "shop.handle")
            assert before.calls <= count <= after.calls
            time.sleep(0.2)  # more calls
        truth, second = worker.rest(), scrape(url)
        check_histograms(second)
        (count,), (total,) = (of_member(second, f"{CALLS}_{name}", "shop.handle") for name in ("count", "sum"))
        assert count == truth.calls > before.calls
        assert count * SHORTEST_NS / 1e9 <= total <= sum(end - began for began, end in worker.calls()) * 1.001 / 1e9
        (errors,), (failed,) = (
            of_member(second, "codetimer_errors_total", "shop.fail"),
            of_member(second, f"{CALLS}_count", "shop.fail"),
        )
        assert errors == failed == truth.calls
        assert of_member(second, f"{CALLS}_count", "shop.once") == [1]
        process = (("pid", str(worker.pid)), ("program", "-c"))
        assert {labels[-2][1] for _, labels in second if len(labels) > 1} == {process[0][1]}
        assert [value for (name, _), value in second.items() if name == "codetimer_up"] == [1]
        assert second["codetimer_reader_up", ()] == 1


def check_histograms(found):
    histograms = {labels: buckets for (name, labels), buckets in found.items() if name == f"{CALLS}_bucket"}
    assert histograms
    for labels, buckets in histograms.items():
        assert list(buckets) == BOUNDS
        counts = list(buckets.values())
        assert counts == sorted(counts)
        assert buckets["+Inf"] == found[f"{CALLS}_count", labels]
        longest = found["codetimer_max_seconds", labels]
        total = found[f"{CALLS}_sum", labels]
        assert total <= longest * (counts[-1] + 1)


def test_buckets_include_their_upper_bounds(folder):
    code = """
import codetimer, sys
with codetimer.timer("edge.f"):
    pass
counter = codetimer.counters["edge/edge.f"]
counter.reset()
for ns in (1, 1024, 1025, 2048, 2**20, 2**20 + 1, 2**36, 2**36 + 1, 2**50):
    counter.record(ns)
print("ready", flush=True)
sys.stdin.readline()
"""
    with Worker(folder, code), serving(folder) as url:
        (buckets,) = of_member(scrape(url), f"{CALLS}_bucket", "edge.f")
    counts = [buckets[bound] for bound in BOUNDS]
    assert (counts[0], counts[1], counts[9], counts[10], counts[11], counts[-2], counts[-1]) == (2, 4, 4, 5, 6, 7, 9)


def test_help_is_that_of_the_counters(folder):
    with Worker(folder), serving(folder) as url:
        assert f"# HELP {CALLS} How long calls of measured functions took. shop.handle: Handles an order.\n" in get(url)


def test_labels_are_bounded(folder):
    assert label("a" * LONGEST_LABEL) == "a" * LONGEST_LABEL
    assert len(label("a" * 65_535)) == LONGEST_LABEL
    assert label("a" * 1000 + "b") != label("a" * 1000 + "c")
    assert label("\udcff") == r"\udcff"
    code = r"""
import codetimer, time
for number in range(30):
    with codetimer.timer("many.%d \"\\\n é" % number + "x" * 1000):
        pass
print("ready", flush=True)
time.sleep(1000)
"""
    with Worker(folder, code), serving(folder, "--limit", "20") as url:
        found = scrape(url)
        assert len([name for name, _ in found if name == f"{CALLS}_count"]) == 20
        assert found["codetimer_left_out_counters", ()] == 10


def test_by_program_sums_never_fall(folder):
    """Processes come and go; the sums of their program only grow, and count every call once."""
    code = """
import codetimer, sys
@codetimer.measured(name="job.run")
def job():
    pass
for _ in range(10):
    job()
print("ready", flush=True)
sys.stdin.readline()
"""
    with serving(folder, "--by", "program") as url:
        counts = []
        for _ in range(3):
            with Worker(folder, code), Worker(folder, code) as second:
                found = scrape(url)
                (count,) = of_member(found, f"{CALLS}_count", "job.run")
                counts.append(count)
                assert not any(name == f"{CALLS}_count" and "pid" in dict(labels) for name, labels in found)
                second.process.communicate("\n")  # ends, and unlinks its segment
                counts += of_member(scrape(url), f"{CALLS}_count", "job.run")
            assert run(folder, "reap").returncode in (0, 1)
            counts += of_member(scrape(url), f"{CALLS}_count", "job.run")
        assert counts == [20] * 3 + [40] * 3 + [60] * 3


def test_by_program_a_deleted_segment_is_counted_once(folder):
    """Its process publishes it again, with the values that it had."""
    with Worker(folder) as worker, serving(folder, "--by", "program") as url:

        def count():
            return of_member(scrape(url), f"{CALLS}_count", "shop.once")

        assert count() == [1]
        for segment in folder.iterdir():
            segment.unlink()
        assert count() == [1]
        wait_for(lambda: run(folder, "list", worker.pid).returncode == 0, "the segment made anew")
        assert [count(), count()] == [[1], [1]]


def test_by_program_the_limit_holds(folder):
    """Also of counters that are no more, and while others come."""
    code = """
import codetimer, sys
for name in "bc":
    codetimer.timer(f"m.{name}").counter.record(1)
print("ready", flush=True)
sys.stdin.readline()
codetimer.timer("m.a").counter.record(1)
print("more", flush=True)
sys.stdin.readline()
codetimer.counters["m/m.a"].remove()
print("less", flush=True)
sys.stdin.readline()
"""
    with Worker(folder, code) as worker, serving(folder, "--by", "program", "--limit", "2") as url:
        for said in ("more", "less", ""):
            found = scrape(url)
            assert len([name for name, _ in found if name == f"{CALLS}_count"]) == 2
            assert [of_member(found, f"{CALLS}_count", member) for member in ("m.b", "m.c")] == [[1], [1]]
            assert found["codetimer_left_out_counters", ()] == (1 if said == "less" else 0)
            worker.process.stdin.write("\n")
            worker.process.stdin.flush()
            assert worker.process.stdout.readline().strip() == said


def test_ended_processes_go_when_reaped(folder):
    with serving(folder) as url:
        with Worker(folder):
            assert of_member(scrape(url), f"{CALLS}_count", "shop.once") == [1]
        found = scrape(url)
        assert of_member(found, f"{CALLS}_count", "shop.once") == [1]
        assert [value for (name, _), value in found.items() if name == "codetimer_up"] == [0]
        run(folder, "reap")
        found = scrape(url)
        assert of_member(found, f"{CALLS}_count", "shop.once") == []
        assert not [value for (name, _), value in found.items() if name == "codetimer_up"]


def test_scrapes_while_processes_fork_and_die(folder):
    code = """
import os, signal, sys, time
import codetimer

@codetimer.measured(name="job.run")
def job():
    time.sleep(0.005)

job()
print("ready", flush=True)
workers = set()
number = 0
while True:
    while len(workers) < 8:
        number += 1
        pid = os.fork()
        if pid == 0:
            for _ in range(20):
                job()
            if number % 2:
                os.kill(os.getpid(), signal.SIGKILL)
            os._exit(0)
        workers.add(pid)
    workers.discard(os.wait()[0])
"""
    with Worker(folder, code), serving(folder) as url:
        for _ in range(30):
            found = scrape(url)
            check_histograms(found)
            assert found["codetimer_reader_up", ()] == 1


def test_a_damaged_segment_is_counted(folder):
    (folder / "1-1-0").write_bytes(b"\0" * 10_000)
    with Worker(folder), serving(folder) as url:
        assert scrape(url)["codetimer_unusable_segments", ()] == 1


# ---- how it starts and ends ----


def test_port_in_use(folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run(folder, "serve", port)
    assert result.returncode == 1
    assert result.stderr == f"codetimer: cannot listen on {port}: Address already in use\n"


@pytest.mark.parametrize("address", ["x", "127.0.0.1:", "1.2.3.4:99999", "::1:80", "a b:1", "[::1:80"])
def test_wrong_addresses(folder, address):
    result = run(folder, "serve", address)
    assert result.returncode == 2 or "cannot listen" in result.stderr


def test_without_prometheus_client(folder, tmp_path):
    (tmp_path / "prometheus_client.py").write_text("raise ImportError('not here')\n")
    code = "import sys; from codetimer.cli import main; sys.exit(main(['serve', '0']))"
    more = environment(folder)
    more["PYTHONPATH"] = f"{tmp_path}:{more['PYTHONPATH']}"
    result = subprocess.run([sys.executable, "-c", code], env=more, capture_output=True, text=True, timeout=60)
    assert result.returncode == 1
    assert result.stderr == 'codetimer: serve needs prometheus_client: pip install "codetimer-native[prometheus]"\n'


def test_ctrl_c_ends_it(folder):
    with serving(folder, end=signal.SIGINT) as url:
        assert scrape(url)["codetimer_reader_up", ()] == 1


# ---- a real Prometheus ----

needs_prometheus = pytest.mark.skipif(
    not (shutil.which("prometheus") and shutil.which("promtool")),
    reason="prometheus and promtool are not installed (Debian package prometheus)",
)


@needs_prometheus
def test_promtool_has_nothing_to_say(folder):
    with Worker(folder), serving(folder) as url:
        text = get(url)
    result = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@contextlib.contextmanager
def prometheus(folder, target):
    """A Prometheus of our own that scrapes the target; yields a function from a query to its value."""
    config = folder / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
        f"scrape_configs: [{{job_name: codetimer, static_configs: [{{targets: ['{target}']}}]}}]\n"
    )
    arguments = [f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}"]

    def start():
        nonlocal address
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = f"127.0.0.1:{free.getsockname()[1]}"
        with open(folder / "log", "a") as log:
            more = [*arguments, f"--web.listen-address={address}"]
            return subprocess.Popen(["prometheus", *more], stdout=log, stderr=log, cwd=folder)

    def answers():
        nonlocal server
        if server.poll() is not None:  # somebody else took the port meanwhile
            server = start()
        with contextlib.suppress(OSError):
            return get(f"http://{address}/-/ready")

    address = ""
    server = start()

    def query(text):
        with contextlib.suppress(OSError):
            answer = get(f"http://{address}/api/v1/query?query={urllib.parse.quote(text)}")
            result = json.loads(answer)["data"]["result"]
            return float(result[0]["value"][1]) if result else 0
        return 0

    try:
        wait_for(answers, f"Prometheus: {(folder / 'log').read_text()}")
        yield query
    finally:
        server.terminate()
        server.wait(timeout=60)


@needs_prometheus
def test_a_real_prometheus_gets_the_truth(folder, tmp_path):
    place = tmp_path / "prometheus"
    place.mkdir()
    with Worker(folder) as worker, serving(folder) as url:
        with prometheus(place, urllib.parse.urlsplit(url).netloc) as query:
            member = '{member="shop.handle"}'
            wait_for(lambda: query(f"count_over_time({CALLS}_count{member}[5m])") > 3, "some scrapes")
            truth = worker.rest()
            wanted = (
                f"{CALLS}_sum{member} / {CALLS}_count{member} and {CALLS}_count{member} == {truth.calls}",
                f"histogram_quantile(0.5, {CALLS}_bucket{member})",
            )
            # Nothing changes any more; where a scrape took too long, there is nothing for a moment.
            average, median = wait_for(lambda: found if all(found := [query(text) for text in wanted]) else None)
            resets = query(f"resets({CALLS}_count{member}[5m])")
        durations = sorted(end - began for began, end in worker.calls())
        assert SHORTEST_NS / 1e9 <= average <= sum(durations) / truth.calls * 1.001 / 1e9
        lowest, highest = (bound_above(ns / 1e9) for ns in (SHORTEST_NS, durations[truth.calls // 2] * 1.001))
        assert lowest / 2 <= median <= highest
        assert resets == 0


def bound_above(seconds):
    return next(float(bound) for bound in BOUNDS if float(bound) >= seconds)
