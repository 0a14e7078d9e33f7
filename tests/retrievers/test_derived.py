"""Retrievers that follow from one embedding: smaller vectors and numbers, measured against independent programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.evaluation.costs import costs_of
from harness.experiment import parse
from harness.pipeline import run
from harness.running.forecast import Options
from retrievers.embedding import cut
from retrievers.stores.matrices import QuantizedStore, calibrated, from_bytes, to_bits, to_bytes
from retrievers.types import Vectors, ranked, rounded
from tests.support import small, tiny
from tests.support.servers import OpenAIProvider, serving
from tests.support.small import ends, planned, refusal

pytestmark = pytest.mark.slow

PAID = """
[[retrievers]]
name = "paid"
encoder = {{ kind = "openai", model = "text-embedding-3-small", base_url = "{url}", api_key = "${{KEY}}", price = 2 }}
derive = {{ dimensions = [64], quantization = ["int8", "binary"]{more} }}
"""
ALL = ("paid", "paid-int8", "paid-binary", "paid-64", "paid-64-int8", "paid-64-binary")
PRICE = 2e-6


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KEY", "test-key-0123456789")


def vectors(seed: int, count: int, dimensions: int) -> Vectors:
    return np.random.default_rng(seed).normal(size=(count, dimensions)).astype(np.float32)


class Stubborn(OpenAIProvider):
    """Gives other vectors where it is asked for fewer dimensions."""

    def vectors(self, texts: Any, fault: str) -> Any:
        made = super().vectors(texts, fault)
        return made[:, ::-1].copy() if "dimensions" in self.requests[-1]["body"] else made


# Numbers


@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 40))
def test_levels_and_bits_are_those_of_sentence_transformers(seed: int, count: int, dimensions: int) -> None:
    from sentence_transformers.util.quantization import quantize_embeddings

    some, others = vectors(seed, count, dimensions), vectors(seed + 1, 5, dimensions)
    ranges = np.stack([some.min(axis=0), some.max(axis=0)])
    for each in (some, others):  # what lies outside of the calibrated range included
        theirs = quantize_embeddings(each, "uint8", ranges=ranges).astype(np.int16)
        ours = to_bytes(each, calibrated(some)) - theirs  # half a step apart
        assert ours.min() >= 0 and ours.max() <= 1
        np.testing.assert_array_equal(to_bits(each), quantize_embeddings(each, "ubinary"))


@given(st.integers(0, 2**32), st.integers(2, 60))
def test_noise_in_an_embedding_moves_no_extreme_to_another_level(seed: int, count: int) -> None:
    """Each dimension has a smallest and a largest number: on the edge of a level, 1e-7 moved scores by 2e-4."""
    some = vectors(seed, count, 12)
    noise = np.random.default_rng(seed).uniform(-1e-7, 1e-7, some.shape).astype(np.float32)
    buckets = calibrated(some)
    for extremes, level in ((some == some.min(axis=0), 0), (some == some.max(axis=0), 255)):
        codes = to_bytes(some + noise, buckets)
        assert (codes[extremes] == level).all()


@given(st.integers(0, 2**32), st.integers(2, 40))
def test_a_level_stands_for_a_number_within_half_a_step(seed: int, count: int) -> None:
    some = vectors(seed, count, 7)
    buckets = calibrated(some)
    far = np.abs(from_bytes(to_bytes(some, buckets), buckets) - some)
    rounding = 4 * np.finfo(np.float32).eps * np.abs(some).max()  # of numbers that are close together
    assert (far <= buckets.steps * 0.5 + rounding).all()


@pytest.mark.parametrize("limit", [1, 7, 300])
@pytest.mark.parametrize("quantization", ["int8", "binary", "binary-dot"])
def test_a_search_ranks_as_each_pair_compared_by_itself(
    quantization: Any, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks smaller than the collection, and many ties among so few bits."""
    monkeypatch.setattr("retrievers.stores.matrices.DOCUMENTS", 64)
    monkeypatch.setattr("retrievers.stores.matrices.QUERIES", 3)
    documents, queries = vectors(1, 200, 12), vectors(2, 8, 12)
    documents[150:] = documents[:50]  # and documents that are the same
    ids = [f"d{number}" for number in range(200)]
    store = QuantizedStore(quantization)
    store.create(12)
    store.upsert(ids[:120], documents[:120])
    store.upsert(ids[120:], documents[120:])
    store.finish({})
    units = documents / np.linalg.norm(documents, axis=1, keepdims=True)
    asked = queries / np.linalg.norm(queries, axis=1, keepdims=True)
    signs = np.where(units > 0, 1.0, -1.0)
    starts, ends = units[:120].min(axis=0), units[:120].max(axis=0)
    for query, ranking in zip(asked, store.search(queries, limit), strict=True):
        if quantization == "int8":
            steps = (ends - starts) / 255
            levels = np.clip(np.floor((units - starts) / steps + 0.5), 0, 255)
            scores = (starts + levels * steps) @ query
        elif quantization == "binary":
            scores = np.array([1 - 2 * np.count_nonzero((row > 0) != (query > 0)) / 12 for row in units])
        else:
            scores = np.array([sum(q * s for q, s in zip(query, row, strict=True)) / 12**0.5 for row in signs])
        expected = ranked(ids, rounded(scores), limit)
        assert ranking.scores == pytest.approx(expected.scores, abs=3e-6)
        if quantization == "binary":  # its scores have no noise
            assert ranking.doc_ids == expected.doc_ids


@given(st.integers(0, 2**32), st.integers(1, 16))
def test_what_is_cut_has_length_one_and_its_own_direction(seed: int, dimensions: int) -> None:
    some = vectors(seed, 9, 16)
    some[0] = 0
    kept = cut(some, dimensions)
    assert kept.shape == (9, dimensions)
    assert not kept[0].any()
    np.testing.assert_allclose(np.linalg.norm(kept[1:], axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(kept[1:] * np.linalg.norm(some[1:, :dimensions], axis=1, keepdims=True),
                               some[1:, :dimensions], rtol=1e-5)  # fmt: skip


# Runs


def test_one_embedding_pays_for_all(tmp_path: Path) -> None:
    with serving(OpenAIProvider()) as provider:
        path = small.experiment(tmp_path, retrievers=PAID.format(url=provider.url, more=""))
        found = planned(path, results=tmp_path / "out")
        assert not provider.requests
        results = run(path, Options(tmp_path / "out", max_cost=1.0))
        asked = [request["body"].get("dimensions") for request in provider.requests]
        costs, spent = costs_of(results), results.costs.groupby("retriever")["usd"].sum()
        again = run(path, Options(tmp_path / "out"))
        assert len(provider.requests) == len(asked) == 3  # documents, queries, and the documents at 64 as a proof
    assert sorted(asked, key=str) == [64, None, None]
    rows = {(row.retriever, row.stage): row.texts for row in found.rows}
    assert rows == {("paid", "embed-documents"): 6, ("paid", "embed-queries"): 6, ("paid-64", "embed-documents"): 6}
    assert found.total()["calls"] == 3
    assert all(row.usd == pytest.approx(row.tokens * PRICE) for row in found.rows)
    assert tuple(results.retrievers) == ALL
    assert all(spent[name] == 0 for name in ALL if name not in ("paid", "paid-64"))
    assert spent["paid-64"] > 0
    for name in ALL:
        assert again.rankings(name) == results.rankings(name)
        facts = results.manifest.retrievers[name].provenance
        assert facts.get("derived_from") == (None if name == "paid" else "paid")
        assert facts.get("cut_from") == ("128" if "64" in name else None)
        assert ("least_cosine_with_asked" in facts) is ("64" in name)
    assert [costs[name].vector_bytes for name in ALL] == [6 * size for size in (512, 128, 16, 256, 64, 8)]
    a_million = costs["paid"].usd_per_million
    assert a_million
    assert [costs[name].usd_per_million for name in ALL] == pytest.approx([a_million] * 6)  # embedded whole every time


def test_a_service_that_gives_something_else_is_not_believed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(Stubborn()) as provider:
        path = small.experiment(tmp_path, retrievers=PAID.format(url=provider.url, more=""))
        shown = ends(capsys, 3, "run", path, "--results", tmp_path / "out")
        message = "cutting to 64 dimensions differs from the service's own vectors of that size: it gave others"
        assert " ".join(shown.err.split()).count(message) == 3  # of each retriever with 64 dimensions one
        trusting = small.experiment(
            tmp_path, retrievers=PAID.format(url=provider.url, more=", proof = false"), name="trusting"
        )
        before = len(provider.requests)
        results = run(trusting, Options(tmp_path / "out"))
        assert tuple(results.retrievers) == ALL
        assert len(provider.requests) == before  # everything was paid for before


def test_where_the_first_fails_the_others_do_not_ask(tmp_path: Path) -> None:
    with serving(OpenAIProvider(always="expired")) as provider:
        blocks = PAID.format(url=provider.url, more="") + '[[retrievers]]\nname = "bm25"\nkind = "bm25"\n'
        results = run(small.experiment(tmp_path, retrievers=blocks), Options(tmp_path / "out"))
        assert len(provider.requests) == 1
    assert list(results.retrievers) == ["bm25"]
    assert "needs paid, which failed" in str(results.manifest.failed["paid-64-binary"])


def test_cutting_here_is_cutting_in_the_model(tmp_path: Path) -> None:
    model = tiny.bi_encoder(tmp_path / "tiny").as_posix()
    encoder = f'kind = "sentence-transformers", model = "{model}", device = "cpu"'
    blocks = f'[[retrievers]]\nname = "m"\nencoder = {{ {encoder} }}\nderive = {{ dimensions = [8] }}\n'
    blocks += f'[[retrievers]]\nname = "own"\nencoder = {{ {encoder}, truncate_dim = 8 }}\n'
    results = run(small.experiment(tmp_path, retrievers=blocks), Options(tmp_path / "out"))
    for query_id, ranking in results.rankings("m-8").items():
        own = results.rankings("own")[query_id]
        assert dict(ranking) == pytest.approx(dict(own), abs=1e-5)


def test_a_filter_and_passages_hold_for_what_is_derived(tmp_path: Path) -> None:
    block = '[[retrievers]]\nname = "{}"\nencoder = {{ kind = "hashing", dimensions = 64 }}\nchunk = {{ size = 20 }}\n'
    blocks = block.format("h") + 'derive = { quantization = ["binary-dot"] }\n'
    results = run(small.experiment(tmp_path, retrievers=blocks), Options(tmp_path / "out"))
    facts = {name: results.manifest.retrievers[name].provenance for name in ("h", "h-binary-dot")}
    assert facts["h"]["vectors"] == facts["h-binary-dot"]["vectors"]
    assert int(facts["h"]["vectors"]) > 6
    assert int(facts["h-binary-dot"]["vector_bytes"]) == int(facts["h"]["vectors"]) * 8
    assert all(set(ranking.doc_ids) <= set(small.TEXTS) for ranking in results.rankings("h-binary-dot").values())


# Tables


BASE: dict[str, Any] = {
    "name": "x", "dataset": "d", "primary": "RR", "measures": ["RR"],
    "retrievers": [{"name": "m", "encoder": {"kind": "hashing"}}],
}  # fmt: skip


def derived(more: dict[str, Any], *others: dict[str, Any]) -> dict[str, Any]:
    return {**BASE, "retrievers": [{**BASE["retrievers"][0], **more}, *others]}


def test_what_a_table_stands_for_reads_back_as_itself() -> None:
    experiment = parse(derived({"derive": {"dimensions": [64], "quantization": ["int8"]}, "chunk": {"size": 9}}))
    assert [block.name for block in experiment.retrievers] == ["m", "m-int8", "m-64", "m-64-int8"]
    written = experiment.resolved()
    assert all("derive" not in table and table["chunk"]["size"] == 9 for table in written["retrievers"])
    again = {key: value for key, value in written.items() if value is not None}
    again["retrievers"] = [
        {key: value for key, value in table.items() if value is not None} for table in written["retrievers"]
    ]
    assert parse(again).resolved() == written


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (derived({"derive": {}}), "names neither dimensions nor quantization"),
        (derived({"derive": {"dimensions": [0]}}), "greater than or equal to 1"),
        (derived({"derive": {"dimensions": [8, 8]}}), "names 8 twice"),
        (derived({"derive": {"quantization": ["int4"]}}), "int4"),
        (derived({"derive": {"dimension": [8]}}), "did you mean 'dimensions'"),
        (derived({"derive": {"dimensions": [8]}}, {"name": "m-8", "kind": "bm25"}), "'m-8' occurs twice"),
        (derived({"quantization": "int8", "store": {"location": "edge", "m": 16}}), "searched exactly"),
        (derived({"derived_from": "n"}), "uses unknown 'n'"),
        (
            {**BASE, "retrievers": [{"name": "b", "kind": "bm25", "derive": {"dimensions": [8]}}]},
            "unknown key 'derive'",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_once(tables: dict[str, Any], message: str) -> None:
    refused = refusal(parse, tables)
    assert message in str(refused)
    assert len(refused.problems) == 1


def test_more_dimensions_than_there_are_fail_alone(tmp_path: Path) -> None:
    blocks = '[[retrievers]]\nname = "h"\nencoder = { kind = "hashing", dimensions = 64 }\n'
    results = small.ran(tmp_path, retrievers=blocks + "derive = { dimensions = [65] }\n")
    assert list(results.retrievers) == ["h"]
    assert "have 64 dimensions: 65 cannot be kept" in str(results.manifest.failed["h-65"])
