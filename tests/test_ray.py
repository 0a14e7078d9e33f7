"""The same vectors from a Ray cluster: two nodes on this machine, workers and nodes that are killed.

Slow (a cluster takes some ten seconds to start): one test for each thing that a cluster can do to a run.
"""

import json
import os
import socket
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from harness import pipeline
from harness.running.options import Options
from harness.running.ray_engine import embed_on_cluster
from retrievers.errors import InputError
from tests.ray_cluster import KILLS
from tests.servers import OpenAIProvider, serving
from tests.test_embed import ASKED, FEW, hashed, priced, with_vectors
from tests.test_kill import DOCUMENTS, QUERIES, corpus, experiment

pytestmark = [
    pytest.mark.skipif(find_spec("ray") is None, reason="the extra `ray` is not installed"),
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="Ray's test cluster and /proc are wanted"),
]


def on_cluster(path: Path, url: str, fault: str = "none", *limit: float) -> dict:
    command = [sys.executable, "-m", "tests.ray_cluster", str(path), url, fault, *map(str, limit)]
    place = str(Path(__file__).parents[1])
    quiet = {**os.environ, "RAY_DEDUP_LOGS": "0", "RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": place}
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, cwd=place, env=quiet, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    # Ray writes lines of its own where a run is ended early.
    answer: dict = json.loads(next(line for line in reversed(done.stdout.splitlines()) if line.startswith("{")))
    return answer


def test_two_nodes_give_the_rankings_of_one_run(tmp_path):
    path, url = hashed(tmp_path), str(tmp_path / "parts")
    alone = pipeline.run(path, Options(tmp_path / "alone"))
    told = on_cluster(path, url, "command")["embedded"]
    assert sum(row["texts"] for row in told) > FEW + ASKED
    assert not any(row["present"] for row in told)
    os.environ["HARNESS_CACHE"] = str(tmp_path / "cold")
    imported = pipeline.run(hashed(tmp_path, f'[vectors]\nfrom = "{url}"'), Options(tmp_path / "imported"))
    assert imported.manifest.ledger.retrievers["whole"].counts["embed-documents"]["imported"] == FEW
    for name in ("whole", "cut"):
        ours, theirs = (one.folder / "rankings" / f"{name}.jsonl" for one in (imported, alone))
        assert ours.read_bytes() == theirs.read_bytes()


@pytest.mark.parametrize("fault", ["worker", "node"])
def test_what_is_killed_pays_again_for_requests_in_flight_only(tmp_path, fault):
    corpus(tmp_path / "data")
    url = str(tmp_path / "parts")
    with serving(OpenAIProvider(latency=0.05)) as provider:
        path = experiment(tmp_path, provider.url)
        ended = on_cluster(path, url, fault)
        assert "error" not in ended, ended
        times = Counter(provider.embedded)
    assert len(times) == DOCUMENTS + QUERIES
    in_flight = 4 * (2 + 1)  # batch x (concurrency + what lies ready: retrievers.retrying)
    assert ended["killed"] == (KILLS if fault == "worker" else 0)
    assert sum(times.values()) - len(times) <= max(ended["killed"], 1) * in_flight
    os.environ["HARNESS_CACHE"] = str(tmp_path / "cold")
    results = pipeline.run(with_vectors(path, url), Options(tmp_path / "results"))
    assert results.manifest.ledger.retrievers["api"].counts["embed-documents"]["imported"] == DOCUMENTS


def test_a_limit_holds_for_the_whole_cluster(tmp_path):
    corpus(tmp_path / "data")
    with serving(OpenAIProvider()) as provider:
        path = priced(experiment(tmp_path, provider.url))
        assert "max-cost" in on_cluster(path, str(tmp_path / "parts"), "none", 0.0003)["error"]
        assert 0 < len(provider.embedded) < DOCUMENTS + QUERIES


def test_what_a_node_lacks_is_one_message(tmp_path):
    corpus(tmp_path / "data")
    path = experiment(tmp_path, "${EMBED_URL}")
    told = on_cluster(path, str(tmp_path / "parts"), "unset")["error"]
    assert "EMBED_URL" in told
    assert "Traceback" not in told


def test_an_address_where_no_cluster_is_is_one_message(tmp_path):
    with socket.socket() as taken, pytest.raises(InputError, match=r"--address: no Ray cluster at 127\.0\.0\.1:"):
        taken.bind(("127.0.0.1", 0))  # and does not listen
        embed_on_cluster(hashed(tmp_path), str(tmp_path / "parts"), address=f"127.0.0.1:{taken.getsockname()[1]}")
