"""The time of single queries."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from harness.evaluation.costs import RetrieverCost, retriever_costs
from harness.preflight.latency_queries import latency_queries
from harness.records import Results
from harness.running.latency import measure_latency
from retrievers.model import Model
from retrievers.types import Query
from tests.support import small
from tests.support.servers import Answering, running

OFF = "[latency]\nsample = 0"
ALL = "[latency]"
ENDPOINT = """
[[retrievers]]
name = "ours"
kind = "http"
url = "{}"
body = {{ q = "{{query}}" }}
ids = "ids"
"""


class SearchService(Answering):
    """A search service that answers the first requests, then with an error."""

    requests = 0
    answered = 1000

    def do_POST(self) -> None:
        """Answer with one document, or with an error for good."""
        self.rfile.read(int(self.headers["Content-Length"]))
        cls = type(self)
        cls.requests += 1
        body = json.dumps({"ids": ["apple"]}).encode()
        self.send(200 if cls.requests <= cls.answered else 403, body)


@pytest.fixture
def service() -> type[SearchService]:
    class Service(SearchService):
        requests = 0

    return Service


def costs(folder: Path, **options: Any) -> dict[str, RetrieverCost]:
    return retriever_costs(small.ran(folder, **options))


def timed_stages(results: Results) -> dict[str, list[str]]:
    costs_by_retriever = retriever_costs(results)
    return {
        name: [stage.stage for stage in cost.stages]
        for name, cost in costs_by_retriever.items()
    }


def test_what_answers_here_for_nothing_is_timed_by_default(tmp_path: Path) -> None:
    assert timed_stages(small.ran(tmp_path)) == {
        "bm25": ["search"],
        "hashing": ["embed-queries", "search"],
        "hybrid": ["embed-queries", "search", "fuse"],
    }


def test_a_retriever_over_one_without_a_time_is_not_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time is a sum, which cannot be shown."""
    monkeypatch.setattr(Model, "is_loaded", property(lambda model: False))
    results = small.ran(tmp_path)
    assert timed_stages(results) == {"bm25": ["search"], "hashing": [], "hybrid": []}
    assert {row.retriever for row in results.cost_rows if row.stage == "latency"} == {
        "bm25"
    }


def test_a_sample_of_0_times_nothing(tmp_path: Path) -> None:
    assert {cost.p95 for cost in costs(tmp_path, more=OFF).values()} == {None}


def test_a_bare_table_takes_the_default_sample(tmp_path: Path) -> None:
    timed = [
        retriever for retriever, cost in costs(tmp_path, more=ALL).items() if cost.p95
    ]
    assert timed == ["bm25", "hashing", "hybrid"]


def test_a_rerun_has_the_first_times_also_with_other_measures(tmp_path: Path) -> None:
    first = costs(tmp_path)
    path = small.experiment(tmp_path)
    path.write_text(path.read_text().replace('"P@2", ', ""))
    again = retriever_costs(small.run(path, small.RunOptions(tmp_path / "out")))
    assert {name: cost.stages for name, cost in again.items()} == {
        name: cost.stages for name, cost in first.items()
    }
    assert [cost.measured_at for cost in again.values()] == [
        cost.measured_at for cost in first.values()
    ]


def test_labels_that_come_later_leave_the_first_times(tmp_path: Path) -> None:
    small.dataset(tmp_path / "data", labelled=False)
    path = small.experiment(tmp_path)
    options = small.RunOptions(tmp_path / "out")
    first = retriever_costs(small.run(path, options))
    shutil.rmtree(tmp_path / "data")
    small.dataset(tmp_path / "data", labelled=True)
    labelled = retriever_costs(small.run(path, options))
    assert [(cost.p95, cost.measured_at) for cost in labelled.values()] == [
        (cost.p95, cost.measured_at) for cost in first.values()
    ]
    assert [retriever for retriever, cost in first.items() if cost.p95] == [
        "bm25",
        "hashing",
        "hybrid",
    ]


def test_a_retriever_with_other_options_is_timed_anew(tmp_path: Path) -> None:
    first = costs(tmp_path, retrievers=small.BM25)["bm25"]
    changed = costs(tmp_path, retrievers=f"{small.BM25}k1 = 1.2\n")["bm25"]
    assert changed.p95 != first.p95


def test_a_service_has_the_times_of_the_requests_of_the_run(
    tmp_path: Path, service: type[SearchService]
) -> None:
    with running(service) as server:
        table = ENDPOINT.format(f"http://127.0.0.1:{server.server_port}/")
        first = costs(tmp_path, retrievers=small.BM25 + table)["ours"]
        again = costs(tmp_path, retrievers=small.BM25 + table)["ours"]
    assert service.requests == len(small.QUERIES)
    assert [stage.stage for stage in first.stages] == ["search"]
    assert (again.stages, again.measured_at) == (first.stages, first.measured_at)


def test_a_declared_sample_also_requests_services_again(
    tmp_path: Path, service: type[SearchService]
) -> None:
    with running(service) as server:
        table = ENDPOINT.format(f"http://127.0.0.1:{server.server_port}/")
        costs(tmp_path, retrievers=small.BM25 + table, more="[latency]\nsample = 4")
    assert service.requests == len(small.QUERIES) + 3 + 4  # three warm up


def test_a_timed_request_that_fails_leaves_the_times_of_the_run(
    tmp_path: Path, service: type[SearchService]
) -> None:
    service.answered = len(small.QUERIES)
    with running(service) as server:
        table = ENDPOINT.format(f"http://127.0.0.1:{server.server_port}/")
        results = small.ran(tmp_path, retrievers=small.BM25 + table, more=ALL)
    assert results.retrievers == ("bm25", "ours")
    assert retriever_costs(results)["ours"].p95
    assert "403" in results.manifest.retrievers["ours"].provenance.answers.not_timed


def test_a_rerun_from_the_cache_with_the_service_gone_is_no_failure(
    tmp_path: Path, service: type[SearchService]
) -> None:
    with running(service) as server:
        table = ENDPOINT.format(f"http://127.0.0.1:{server.server_port}/")
        first = small.ran(tmp_path, retrievers=small.BM25 + table)
    again = small.ran(tmp_path, retrievers=small.BM25 + table)
    assert again.rankings("ours") == first.rankings("ours")


def test_a_missing_price_and_a_missing_time_say_why(
    tmp_path: Path, service: type[SearchService], call: small.Call
) -> None:
    """In a new folder, the cache answers in place of the service."""
    with running(service) as server:
        table = ENDPOINT.format(f"http://127.0.0.1:{server.server_port}/")
        path = small.experiment(tmp_path, retrievers=small.BM25 + table)
        price = "The price of ours is unknown: nothing says what its searches cost."
        time = "The latency of ours was not measured: the cache answered."
        first = call("run", path, "--results", tmp_path / "out", code=0).out
    assert price in first
    assert time not in first
    again = call("run", path, "--results", tmp_path / "new", code=0).out
    assert price in again
    assert f"{time} Add [latency] to measure it." in " ".join(again.split())


def test_percentiles_are_those_of_the_timed_queries() -> None:
    queries = [Query(f"q{number}", "words") for number in range(4)]
    seconds = {"q0": 0.1, "q1": 0.2, "q2": 0.3, "q3": 0.4}
    latency = measure_latency(
        latency_queries(queries, 20), lambda query: {"search": seconds[query.id]}
    )["search"]
    assert latency.p50_ms == pytest.approx(250)
    assert latency.p95_ms == pytest.approx(385)  # 0.3 + 0.85 (0.4 - 0.3)


@pytest.mark.parametrize(("max_seconds", "timed"), [(0, 1), (math.inf, 4)])
def test_no_further_query_is_timed_after_the_limit(
    max_seconds: float, timed: int
) -> None:
    queries = [Query(f"q{number}", "words") for number in range(4)]
    ids: list[str] = []

    def time_query(query: Query) -> dict[str, float]:
        ids.append(query.id)
        return {"search": 0.1}

    measure_latency(latency_queries(queries, 4), time_query, max_seconds=max_seconds)
    warm_ups = 3 if max_seconds else 0
    assert len(ids) == warm_ups + timed
