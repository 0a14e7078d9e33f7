"""Fusion here, in Qdrant's client and in Qdrant itself: one result, with the constants that each of them counts by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from qdrant_client import models
from qdrant_client.hybrid.fusion import distribution_based_score_fusion
from qdrant_client.hybrid.fusion import reciprocal_rank_fusion as of_the_client

from harness.experiment import parse
from harness.pipeline import run
from harness.report.costs import costs_of
from harness.running.options import Options
from harness.running.plan import plan
from harness.running.reach import made_of
from retrievers.bm25 import BM25Retriever
from retrievers.errors import InputError
from retrievers.fusion import distribution_based_fusion, reciprocal_rank_fusion
from retrievers.meter import Meter
from retrievers.types import Document, Query, Ranking, ranked
from tests import layouts, small
from tests.qdrant_fake import fake_qdrant

some_rankings = st.lists(
    st.dictionaries(st.integers(0, 30), st.floats(-50, 50), max_size=12), min_size=1, max_size=4
).map(lambda lists: [ranked([str(id_) for id_ in one], list(one.values())) for one in lists])


def points(rankings: list[Ranking]) -> list[list[models.ScoredPoint]]:
    return [[models.ScoredPoint(id=int(id_), version=0, score=score) for id_, score in one] for one in rankings]


def as_ranking(fused: list[models.ScoredPoint]) -> dict[str, float]:
    return {str(point.id): point.score for point in fused}


@given(some_rankings, st.integers(1, 100))
def test_ranks_are_fused_as_in_the_client_where_k_is_the_constant_and_one_more(
    rankings: list[Ranking], constant: int
) -> None:
    ours = reciprocal_rank_fusion(rankings, 1000, constant=constant)
    theirs = as_ranking(of_the_client(points(rankings), limit=1000, ranking_constant_k=constant + 1))
    assert dict(ours) == pytest.approx(theirs, abs=3e-6)
    default = as_ranking(of_the_client(points(rankings), limit=1000))
    assert dict(reciprocal_rank_fusion(rankings, 1000, constant=1)) == pytest.approx(default, abs=3e-6)


@given(some_rankings)
def test_scores_are_fused_as_in_the_client(rankings: list[Ranking]) -> None:
    theirs = as_ranking(distribution_based_score_fusion(points(rankings), limit=1000))
    assert dict(distribution_based_fusion(rankings, 1000)) == pytest.approx(theirs, rel=1e-5, abs=1e-5)


def test_the_weights_of_bm25_add_up_to_its_scores() -> None:
    documents = [Document(str(number), "", text) for number, text in enumerate([*small.TEXTS.values(), "…"])]
    bm25 = BM25Retriever()
    bm25.index(documents, Meter())
    for _, text, _ in small.QUERIES:
        counts = bm25.counts(f"{text} {text} unheard-of")
        asked = np.zeros(bm25.weights().shape[1])
        asked[list(counts)] = list(counts.values())
        (ranking,) = bm25.search([Query("q", f"{text} {text} unheard-of")], 100, Meter())
        scores = bm25.weights() @ asked
        expected = ranked([bm25.ids[row] for row in np.flatnonzero(scores)], scores[np.flatnonzero(scores)])
        assert dict(ranking) == pytest.approx(dict(expected), rel=1e-5)


# Runs

BLOCKS = """
[[retrievers]]
name = "dense"
encoder = { kind = "hashing", dimensions = 64 }

[[retrievers]]
name = "bm25"
kind = "bm25"
"""
OURS = '[[retrievers]]\nname = "ours-{0}"\nkind = "fusion"\nof = ["dense", "bm25"]\n{1}\n'
THEIRS = '[[retrievers]]\nname = "theirs-{0}"\nkind = "qdrant-fusion"\nof = ["dense", "bm25"]\n{1}\n{2}\n'
PAIRS = {
    "paper": ("constant = 60", "k = 61"),
    "server": ("constant = 1", ""),
    "scores": ('method = "dbsf"', 'method = "dbsf"'),
}


def experiment(folder: Path, store: str = "") -> Path:
    """A corpus of random words, so that hardly two documents have one score."""
    if not (folder / "data").exists():
        rng = np.random.default_rng(11)
        words = [f"word{number}" for number in range(400)]
        texts = [" ".join(rng.choice(words, rng.integers(20, 60))) for _ in range(90)]
        data = folder / "data"
        layouts.jsonl(data / "corpus.jsonl", [{"_id": f"d{i}", "text": text} for i, text in enumerate([*texts, " "])])
        asked = [*(" ".join(rng.choice(words, 6)) for _ in range(12)), "- -"]  # the last has no direction
        layouts.jsonl(data / "queries.jsonl", [{"_id": f"q{i}", "text": text} for i, text in enumerate(asked)])
        rows = [{"query-id": f"q{i}", "corpus-id": f"d{i}", "score": 1} for i in range(13)]
        layouts.table(data / "qrels" / "test.tsv", rows, delimiter="\t")
    blocks = BLOCKS + "".join(
        OURS.format(name, ours) + THEIRS.format(name, theirs, store) for name, (ours, theirs) in PAIRS.items()
    )
    return small.experiment(folder, retrievers=blocks, more="[latency]\nsample = 2", name=f"fused{len(store)}")


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("harness.pipeline.write_report", lambda results: None)


def same(ours: dict[str, Ranking], theirs: dict[str, Ranking]) -> None:
    """Equal but for float noise, and but for what ties at the depth."""
    for query_id, ranking in ours.items():
        other = dict(theirs[query_id])
        if not other:
            assert not len(ranking)
            continue
        assert list(other.values()) == pytest.approx(ranking.scores.tolist(), rel=1e-4)
        last = min(other.values()) * (1 + 1e-4)
        assert {hit.doc_id for hit in ranking if hit.score > last} <= other.keys()
        assert all(other[hit.doc_id] == pytest.approx(hit.score, rel=1e-4) for hit in ranking if hit.doc_id in other)


def test_what_qdrant_fuses_is_what_is_fused_here(tmp_path: Path) -> None:
    path = experiment(tmp_path)
    planned = {(row.retriever, row.stage) for row in plan(path, results=tmp_path).rows}
    assert planned == {("dense", "embed-documents"), ("dense", "embed-queries"), ("dense", "latency"),
                       *((f"theirs-{name}", "latency") for name in PAIRS)}  # fmt: skip
    results = run(path, Options(tmp_path / "out"))
    for name in PAIRS:
        same(results.rankings(f"ours-{name}"), results.rankings(f"theirs-{name}"))
        facts = results.manifest.retrievers[f"theirs-{name}"].provenance
        assert facts["vectors"] == "90"
        assert int(facts["vector_bytes"]) > 90 * 64 * 4
        assert results.manifest.ledger.retrievers[f"theirs-{name}"].notes["empty"] == ("d90",)
        assert results.manifest.ledger.retrievers[f"theirs-{name}"].notes["zero-vector-query"] == ("q12",)
        cost = costs_of(results)[f"theirs-{name}"]
        assert {stage.stage for stage in cost.stages} == {"embed-queries", "search"}
    said = [results.manifest.retrievers[f"theirs-{name}"].provenance["fusion"] for name in PAIRS]
    assert said == ["rrf, 1 / (61 + rank), ranks from 0", "rrf, 1 / (2 + rank), ranks from 0", "dbsf"]
    assert made_of("dense", parse(TABLES).retrievers) == ("q",)


def test_a_server_fuses_alike(tmp_path: Path) -> None:
    alone = run(experiment(tmp_path), Options(tmp_path / "out"))
    with fake_qdrant() as server:
        path = experiment(tmp_path, f'store = "{server.url}"')
        results = run(path, Options(tmp_path / "out"))
        again = run(path, Options(tmp_path / "out"))
    for name in PAIRS:
        same(alone.rankings(f"theirs-{name}"), results.rankings(f"theirs-{name}"))
        assert again.rankings(f"theirs-{name}") == results.rankings(f"theirs-{name}")
    assert all("hybrid-" in path for _, path in server.requests if path.startswith("/collections/"))


# Tables

TABLES: dict[str, Any] = {
    "name": "x", "dataset": "d", "primary": "RR", "measures": ["RR"],
    "retrievers": [{"name": "dense", "encoder": {"kind": "hashing"}}, {"name": "bm25", "kind": "bm25"},
                   {"name": "q", "kind": "qdrant-fusion", "of": ["dense", "bm25"]}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("number", "change", "message"),
    [
        (2, {"of": ["bm25", "dense"]}, "in this order"),
        (2, {"of": ["dense", "other"]}, "made of unknown 'other'"),
        (2, {"of": ["dense"]}, "retrievers[2].of"),
        (2, {"store": "edge"}, "in ':memory:' or on a server"),
        (2, {"store": {"location": "http://127.0.0.1:6333", "m": 16}}, "in ':memory:' or on a server"),
        (2, {"k": 0}, "retrievers[2].k"),
        (2, {"constant": 60}, "unknown key 'constant'"),
        (0, {"chunk": {"size": 100}}, "chunk is not for it"),
        (0, {"quantization": "int8"}, "quantization is not for it"),
        (1, {"chunk": {"size": 100}}, "chunk is not for it"),
        (1, {"filter": {"language": "en"}}, "filter is not for it"),
    ],
)
def test_what_cannot_be_fused_there_is_refused(number: int, change: dict[str, Any], message: str) -> None:
    blocks = [dict(block) for block in TABLES["retrievers"]]
    blocks[number] |= change
    with pytest.raises(InputError) as refused:
        parse({**TABLES, "retrievers": blocks})
    assert message in str(refused.value)
    assert len(refused.value.problems) == 1
