"""Retrievers with smaller vectors of one embedding, checked by other programs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.evaluation.costs import retriever_costs
from harness.experiment import parse_experiment
from harness.pipeline import run
from harness.running.options import RunOptions
from retrievers.stores.quantized import (
    QuantizedStore,
    calibrate_levels,
    dequantize_bytes,
    quantize_to_bits,
    quantize_to_bytes,
)
from retrievers.types import ranked, round_scores, stored_facts
from tests.support import small, tiny
from tests.support.servers import OpenAIProvider, serving
from tests.support.small import ends, planned, refusal

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_cache")]

ALL = ("paid", "paid-int8", "paid-binary", "paid-64", "paid-64-int8", "paid-64-binary")
PRICE = 2e-6


def paid(url, more=""):
    encoder = (
        'kind = "openai", model = "text-embedding-3-small", '
        f'base_url = "{url}", price = 2'
    )
    derived = f'dimensions = [64], quantization = ["int8", "binary"]{more}'
    return (
        f'[[retrievers]]\nname = "paid"\nencoder = {{ {encoder} }}\n'
        f"derive = {{ {derived} }}\n"
    )


def vectors(seed, count, dimensions):
    return (
        np.random.default_rng(seed).normal(size=(count, dimensions)).astype(np.float32)
    )


seeds = st.integers(0, 2**32)


@given(seeds, st.integers(1, 60), st.integers(1, 40))
def test_levels_and_bits_are_those_of_sentence_transformers(seed, count, dimensions):
    from sentence_transformers.util.quantization import quantize_embeddings

    calibrating = vectors(seed, count, dimensions)
    others = vectors(seed + 1, 5, dimensions)
    ranges = np.stack([calibrating.min(axis=0), calibrating.max(axis=0)])
    for batch in (
        calibrating,
        others,
    ):  # what lies outside of the calibrated range included
        theirs = quantize_embeddings(batch, "uint8", ranges=ranges).astype(np.int16)
        ours = (
            quantize_to_bytes(batch, calibrate_levels(calibrating)) - theirs
        )  # half a step apart
        assert ours.min() >= 0 and ours.max() <= 1
        np.testing.assert_array_equal(
            quantize_to_bits(batch), quantize_embeddings(batch, "ubinary")
        )


@given(seeds, st.integers(2, 60))
def test_a_level_is_within_half_a_step_of_its_number_and_extremes_resist_noise(
    seed, count
):
    """If extremes were on the edge of a level, 1e-7 would move scores by 2e-4."""
    numbers = vectors(seed, count, 12)
    buckets = calibrate_levels(numbers)
    far = np.abs(
        dequantize_bytes(quantize_to_bytes(numbers, buckets), buckets) - numbers
    )
    rounding = (
        4 * np.finfo(np.float32).eps * np.abs(numbers).max()
    )  # of numbers that are close together
    assert (far <= buckets.steps * 0.5 + rounding).all()
    noise = (
        np.random.default_rng(seed)
        .uniform(-1e-7, 1e-7, numbers.shape)
        .astype(np.float32)
    )
    codes = quantize_to_bytes(numbers + noise, buckets)
    for extremes, level in (
        (numbers == numbers.min(axis=0), 0),
        (numbers == numbers.max(axis=0), 255),
    ):
        assert (codes[extremes] == level).all()


def int8(units, query):
    starts = units[:120].min(axis=0)
    ends = units[:120].max(axis=0)
    steps = (ends - starts) / 255
    return (
        starts + np.clip(np.floor((units - starts) / steps + 0.5), 0, 255) * steps
    ) @ query


def binary(units, query):
    return np.array(
        [1 - 2 * np.count_nonzero((row > 0) != (query > 0)) / 12 for row in units]
    )


def binary_dot(units, query):
    return (
        np.array(
            [
                sum(q * (1 if s > 0 else -1) for q, s in zip(query, row, strict=True))
                for row in units
            ]
        )
        / 12**0.5
    )


@pytest.mark.parametrize("limit", [1, 7, 300])
@pytest.mark.parametrize("score", [int8, binary, binary_dot])
def test_a_search_ranks_as_single_comparisons_do(score, limit, monkeypatch):
    """Blocks smaller than the collection, and many ties among so few bits."""
    monkeypatch.setattr("retrievers.stores.quantized.MAX_CODE_PRODUCTS", 3 * 200)
    documents = vectors(1, 200, 12)
    queries = vectors(2, 8, 12)
    documents[150:] = documents[:50]  # and documents that are the same
    ids = [f"d{number}" for number in range(200)]
    store = QuantizedStore(score.__name__.replace("_", "-"))
    store.create(12)
    store.upsert(ids[:120], documents[:120])
    store.upsert(ids[120:], documents[120:])
    store.finish({})
    units, query_units = (
        side / np.linalg.norm(side, axis=1, keepdims=True)
        for side in (documents, queries)
    )
    for query, ranking in zip(query_units, store.search(queries, limit), strict=True):
        expected = ranked(ids, round_scores(score(units, query)), limit)
        assert ranking.scores == pytest.approx(expected.scores, abs=3e-6)
        if score is binary:  # its scores have no noise
            assert ranking.doc_ids == expected.doc_ids


def test_one_embedding_pays_for_all(tmp_path):
    with serving(OpenAIProvider()) as provider:
        path = small.experiment(tmp_path, retrievers=paid(provider.url))
        plan = planned(path, results=tmp_path / "out")
        assert not provider.requests
        results = run(path, RunOptions(tmp_path / "out", max_cost=1.0))
        dimensions = [
            request["body"].get("dimensions") for request in provider.requests
        ]
        costs = retriever_costs(results)
        spent = results.costs.groupby("retriever")["usd"].sum()
        again = run(path, RunOptions(tmp_path / "out"))
        assert (
            len(provider.requests) == len(dimensions) == 3
        )  # documents, queries, and the documents at 64 as a proof
    assert sorted(dimensions, key=str) == [64, None, None]
    rows = {(row.retriever, row.stage): row.texts for row in plan.rows}
    assert rows == {
        ("paid", "embed-documents"): 6,
        ("paid", "embed-queries"): 6,
        ("paid-64", "embed-documents"): 6,
    }
    assert plan.total().calls == 3
    assert all(row.usd == pytest.approx(row.tokens * PRICE) for row in plan.rows)
    assert tuple(results.retrievers) == ALL
    assert [name for name in ALL if spent[name] > 0] == ["paid", "paid-64"]
    for name in ALL:
        assert again.rankings(name) == results.rankings(name)
        facts = stored_facts(results.manifest.retrievers[name].provenance)
        assert facts.get("derived_from") == (None if name == "paid" else "paid")
        assert facts.get("cut_from") == ("128" if "64" in name else None)
        assert ("least_cosine_with_asked" in facts) is ("64" in name)
        assert costs[name].usd_per_million == pytest.approx(
            costs["paid"].usd_per_million
        )  # embedded whole every time
    assert [costs[name].vector_bytes for name in ALL] == [
        6 * size for size in (512, 128, 16, 256, 64, 8)
    ]
    assert costs["paid"].usd_per_million


class Stubborn(OpenAIProvider):
    """Gives other vectors where it is asked for fewer dimensions."""

    def vectors(self, texts, fault):
        vectors = super().vectors(texts, fault)
        if "dimensions" in self.requests[-1]["body"]:
            return vectors[:, ::-1].copy()
        return vectors


def test_a_service_whose_smaller_vectors_differ_is_refused(tmp_path, capsys):
    with serving(Stubborn()) as provider:
        path = small.experiment(tmp_path, retrievers=paid(provider.url))
        output = ends(capsys, 3, "run", path, "--results", tmp_path / "out")
        message = (
            "cutting to 64 dimensions differs from the service's own vectors "
            "of that size: the service gave others"
        )
        assert (
            " ".join(output.err.split()).count(message) == 3
        )  # of each retriever with 64 dimensions one
        trusting = small.experiment(
            tmp_path, retrievers=paid(provider.url, ", proof = false"), name="trusting"
        )
        before = len(provider.requests)
        assert run(trusting, RunOptions(tmp_path / "out")).retrievers == ALL
        assert len(provider.requests) == before  # everything was paid for before


def test_cutting_equals_the_models_own_and_too_many_dimensions_fail_alone(
    tmp_path,
):
    model = tiny.bi_encoder(tmp_path / "tiny").as_posix()
    encoder = f'kind = "sentence-transformers", model = "{model}", device = "cpu"'
    blocks = (
        f'[[retrievers]]\nname = "m"\nencoder = {{ {encoder} }}\n'
        "derive = { dimensions = [8, 65] }\n"
    )
    blocks += (
        f'[[retrievers]]\nname = "own"\nencoder = {{ {encoder}, truncate_dim = 8 }}\n'
    )
    results = small.ran(tmp_path, retrievers=blocks)
    for query_id, ranking in results.rankings("m-8").items():
        assert dict(ranking) == pytest.approx(
            dict(results.rankings("own")[query_id]), abs=1e-5
        )
    assert list(results.retrievers) == ["m", "m-8", "own"]
    assert "have 32 dimensions: 65 cannot be kept" in str(
        dict(results.manifest.failed)["m-65"]
    )


def experiment(more, *others, encoder=True):
    block = {
        "name": "m",
        **({"encoder": {"kind": "hashing"}} if encoder else {"kind": "bm25"}),
        **more,
    }
    return {
        "name": "x",
        "dataset": "d",
        "primary": "RR",
        "measures": ["RR"],
        "retrievers": [block, *others],
    }


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (experiment({"derive": {}}), "names neither dimensions nor quantization"),
        (experiment({"derive": {"dimensions": [8, 8]}}), "names 8 twice"),
        (experiment({"derive": {"dimension": [8]}}), "did you mean 'dimensions'"),
        (
            experiment(
                {"derive": {"dimensions": [8]}}, {"name": "m-8", "kind": "bm25"}
            ),
            "'m-8' occurs twice",
        ),
        (
            experiment(
                {"quantization": "int8", "store": {"location": "edge", "m": 16}}
            ),
            "searched exactly",
        ),
        (experiment({"derived_from": "n"}), "uses unknown 'n'"),
        (
            experiment({"derive": {"dimensions": [8]}}, encoder=False),
            "unknown key 'derive'",
        ),
    ],
)
def test_options_without_a_meaning_are_one_message(table, message):
    refused = refusal(parse_experiment, table)
    assert message in str(refused) and len(refused.problems) == 1
