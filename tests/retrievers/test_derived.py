"""Retrievers derived from one embedding: cut and quantized vectors."""

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

VECTOR_BYTES = {
    "paid": 128 * 4,
    "paid-int8": 128,
    "paid-binary": 128 // 8,
    "paid-64": 64 * 4,
    "paid-64-int8": 64,
    "paid-64-binary": 64 // 8,
}
"""Retriever -> bytes of one vector."""
ALL = tuple(VECTOR_BYTES)
PRICE = 2e-6
"""Dollars per token: `price = 2` is per million."""
DIMENSIONS = 12
CALIBRATED = 120
"""Documents of the first upsert, by which int8's levels are set."""


def paid_retrievers_toml(url, more=""):
    """A paid encoder with the retrievers derived from it; `more` ends `derive`."""
    encoder = (
        'kind = "openai", model = "text-embedding-3-small", '
        f'base_url = "{url}", price = 2'
    )
    derived = f'dimensions = [64], quantization = ["int8", "binary"]{more}'
    return (
        f'[[retrievers]]\nname = "paid"\nencoder = {{ {encoder} }}\n'
        f"derive = {{ {derived} }}\n"
    )


def random_vectors(seed, count, dimensions):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, dimensions)).astype(np.float32)


SEEDS = st.integers(0, 2**32)


@given(SEEDS, st.integers(1, 60), st.integers(1, 40))
def test_levels_and_bits_are_those_of_sentence_transformers(seed, count, dimensions):
    from sentence_transformers.util.quantization import quantize_embeddings

    calibrating = random_vectors(seed, count, dimensions)
    # Some of their numbers are outside the calibrated range.
    others = random_vectors(seed + 1, 5, dimensions)
    ranges = np.stack([calibrating.min(axis=0), calibrating.max(axis=0)])
    levels = calibrate_levels(calibrating)
    for batch in (calibrating, others):
        theirs = quantize_embeddings(batch, "uint8", ranges=ranges).astype(np.int16)
        # Ours rounds to the nearest level, theirs down.
        level_differences = quantize_to_bytes(batch, levels) - theirs
        assert level_differences.min() >= 0 and level_differences.max() <= 1
        np.testing.assert_array_equal(
            quantize_to_bits(batch), quantize_embeddings(batch, "ubinary")
        )


@given(SEEDS, st.integers(2, 60))
def test_a_level_is_within_half_a_step_of_its_number_and_extremes_resist_noise(
    seed, count
):
    """If extremes were on the edge of a level, 1e-7 would move scores by 2e-4."""
    numbers = random_vectors(seed, count, DIMENSIONS)
    buckets = calibrate_levels(numbers)
    restored = dequantize_bytes(quantize_to_bytes(numbers, buckets), buckets)
    # Steps of numbers that are close together are near float32's own rounding.
    rounding = 4 * np.finfo(np.float32).eps * np.abs(numbers).max()
    assert (np.abs(restored - numbers) <= buckets.steps * 0.5 + rounding).all()
    rng = np.random.default_rng(seed)
    noise = rng.uniform(-1e-7, 1e-7, numbers.shape).astype(np.float32)
    codes = quantize_to_bytes(numbers + noise, buckets)
    for extremes, level in (
        (numbers == numbers.min(axis=0), 0),
        (numbers == numbers.max(axis=0), 255),
    ):
        assert (codes[extremes] == level).all()


def int8(units, query):
    lowest = units[:CALIBRATED].min(axis=0)
    highest = units[:CALIBRATED].max(axis=0)
    steps = (highest - lowest) / 255
    levels = np.clip(np.floor((units - lowest) / steps + 0.5), 0, 255)
    return (lowest + levels * steps) @ query


def binary(units, query):
    differing_bits = np.count_nonzero((units > 0) != (query > 0), axis=1)
    return 1 - 2 * differing_bits / DIMENSIONS


def binary_dot(units, query):
    signs = np.where(units > 0, 1, -1)
    return signs @ query / DIMENSIONS**0.5


@pytest.fixture
def searched_and_expected(monkeypatch):
    """Returns the rankings of a quantized search and those of single comparisons.

    Blocks are smaller than the collection, and there are many ties among so few bits.
    """
    monkeypatch.setattr("retrievers.stores.quantized.MAX_CODE_PRODUCTS", 3 * 200)
    documents = random_vectors(1, 200, DIMENSIONS)
    queries = random_vectors(2, 8, DIMENSIONS)
    documents[150:] = documents[:50]  # and documents that are the same
    ids = [f"d{number}" for number in range(200)]
    units, query_units = (
        side / np.linalg.norm(side, axis=1, keepdims=True)
        for side in (documents, queries)
    )

    def rankings(score, limit):
        store = QuantizedStore(score.__name__.replace("_", "-"))
        store.create(DIMENSIONS)
        store.upsert(ids[:CALIBRATED], documents[:CALIBRATED])
        store.upsert(ids[CALIBRATED:], documents[CALIBRATED:])
        store.finish({})
        expected = [
            ranked(ids, round_scores(score(units, query)), limit)
            for query in query_units
        ]
        return zip(store.search(queries, limit), expected, strict=True)

    return rankings


@pytest.mark.parametrize("limit", [1, 7, 300])
@pytest.mark.parametrize("score", [int8, binary, binary_dot])
def test_a_search_scores_as_single_comparisons_do(score, limit, searched_and_expected):
    for ranking, expected in searched_and_expected(score, limit):
        assert ranking.scores == pytest.approx(expected.scores, abs=3e-6)


@pytest.mark.parametrize("limit", [1, 7, 300])
def test_a_binary_search_ranks_as_single_comparisons_do(limit, searched_and_expected):
    """Its scores have no noise; those of the others may swap two documents."""
    for ranking, expected in searched_and_expected(binary, limit):
        assert ranking.doc_ids == expected.doc_ids


@pytest.mark.parametrize("quantization", ["int8", "binary", "binary-dot"])
def test_scores_do_not_depend_on_the_other_queries(quantization):
    store = QuantizedStore(quantization)
    store.create(48)
    store.upsert([f"d{number}" for number in range(300)], random_vectors(1, 300, 48))
    store.finish({})
    queries = random_vectors(2, 11, 48)
    alone = [store.search(query[None], 100)[0] for query in queries]
    assert store.search(queries, 100) == alone


def test_one_embedding_pays_for_all(tmp_path):
    with serving(OpenAIProvider()) as provider:
        path = small.experiment(tmp_path, retrievers=paid_retrievers_toml(provider.url))
        plan = planned(path, results=tmp_path / "out")
        assert not provider.requests
        results = run(path, RunOptions(tmp_path / "out", max_cost=1.0))
        dimensions = [
            request["body"].get("dimensions") for request in provider.requests
        ]
        costs = retriever_costs(results)
        spent = results.costs.groupby("retriever")["usd"].sum()
        again = run(path, RunOptions(tmp_path / "out"))
        # Documents, queries, and the documents at 64 to verify the cut vectors.
        assert len(provider.requests) == len(dimensions) == 3
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
        assert costs[name].vector_bytes == 6 * VECTOR_BYTES[name]
        # The full vector of a new document is paid for, whatever is kept of it.
        assert costs[name].usd_per_million == pytest.approx(
            costs["paid"].usd_per_million
        )
    assert costs["paid"].usd_per_million


class OtherSmallVectors(OpenAIProvider):
    """Gives other vectors if fewer dimensions are requested."""

    def vectors(self, texts, fault):
        full = super().vectors(texts, fault)
        if "dimensions" in self.requests[-1]["body"]:
            return full[:, ::-1].copy()
        return full


def test_a_service_whose_smaller_vectors_differ_is_refused(tmp_path, capsys):
    with serving(OtherSmallVectors()) as provider:
        path = small.experiment(tmp_path, retrievers=paid_retrievers_toml(provider.url))
        output = ends(capsys, 3, "run", path, "--results", tmp_path / "out")
    message = (
        "cutting to 64 dimensions differs from the service's own vectors "
        "of that size: the service gave others"
    )
    # One for each retriever with 64 dimensions.
    assert " ".join(output.err.split()).count(message) == 3


def test_without_the_proof_vectors_are_cut_and_nothing_more_is_requested(tmp_path):
    with serving(OtherSmallVectors()) as provider:
        toml = paid_retrievers_toml(provider.url, ", proof = false")
        path = small.experiment(tmp_path, retrievers=toml)
        results = run(path, RunOptions(tmp_path / "out"))
        assert results.retrievers == ALL
        assert len(provider.requests) == 2  # the documents, and the queries


@pytest.fixture
def tiny_encoder(tmp_path):
    """The table of a model with 32 dimensions; its last brace is missing."""
    model = tiny.bi_encoder(tmp_path / "tiny").as_posix()
    return f'{{ kind = "sentence-transformers", model = "{model}", device = "cpu"'


def test_cutting_equals_the_models_own(tmp_path, tiny_encoder):
    toml = (
        f'[[retrievers]]\nname = "m"\nencoder = {tiny_encoder} }}\n'
        "derive = { dimensions = [8] }\n"
        f'[[retrievers]]\nname = "own"\nencoder = {tiny_encoder}, truncate_dim = 8 }}\n'
    )
    results = small.ran(tmp_path, retrievers=toml)
    own_rankings = results.rankings("own")
    for query_id, ranking in results.rankings("m-8").items():
        assert dict(ranking) == pytest.approx(dict(own_rankings[query_id]), abs=1e-5)


def test_too_many_dimensions_fail_alone(tmp_path, tiny_encoder):
    toml = (
        f'[[retrievers]]\nname = "m"\nencoder = {tiny_encoder} }}\n'
        "derive = { dimensions = [8, 65] }\n"
    )
    results = small.ran(tmp_path, retrievers=toml)
    assert list(results.retrievers) == ["m", "m-8"]
    ((failed, reason),) = results.manifest.failed
    assert failed == "m-65"
    assert "have 32 dimensions: 65 cannot be kept" in reason


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
