"""What was seen of real servers, asked again of any: pytest -m server --qdrant http://localhost:6333 (conftest.py).

The tests of every store (test_stores*.py, test_filters_brute_force.py) are asked of them as well.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from retrievers.errors import InputError
from retrievers.ragged import AnyVectors
from retrievers.types import Ranking, Store, Vectors
from tests.support.store_places import Places

pytestmark = [pytest.mark.server, pytest.mark.slow]
RANDOM = np.random.default_rng(5)
ABOUT = 1e-5
"""Of the largest score: more than floats of 32 bits differ by between two engines."""


def filled(store: Store, vectors: AnyVectors, fields: Sequence[dict[str, str]] = ()) -> list[str]:
    ids = [f"d{number:06}" for number in range(len(vectors))]
    store.create(vectors.shape[1])
    for start in range(0, len(ids), 4096):
        some = slice(start, start + 4096)
        store.upsert(ids[some], vectors[some], fields[some])
    store.finish({})
    return ids


def units(count: int, dimensions: int = 64) -> Vectors:
    """Vectors that lie in heaps, as those of texts do."""
    centres = RANDOM.normal(size=(max(count // 50, 1), dimensions))
    made = centres[RANDOM.integers(0, len(centres), count)] + 0.7 * RANDOM.normal(size=(count, dimensions))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def products(queries: Vectors, documents: Vectors) -> Vectors:
    return queries.astype(np.float64) @ documents.T.astype(np.float64)


def check(rankings: Sequence[Ranking], scores: Vectors, ids: Sequence[str], limit: int) -> None:
    """The hits are the best, and in order, but where scores differ by less than floats do."""
    for row, ranking in zip(scores, rankings, strict=True):
        true, unit = dict(zip(ids, row.tolist(), strict=True)), ABOUT * float(np.abs(row).max())
        best = np.sort(row)[::-1][: len(ranking)]
        assert len(ranking) == min(limit, int((row > 0).sum()) if row.min() == 0 else len(ids))
        assert [true[id_] for id_ in ranking.doc_ids] == pytest.approx(best.tolist(), abs=unit)
        assert ranking.scores == pytest.approx(best.tolist(), abs=unit)


def test_a_large_collection_gives_what_edge_gives(places: Places) -> None:
    pytest.importorskip("qdrant_edge", reason="the extra `edge` is not installed")
    documents, queries = units(60_000, 384), units(400, 384)
    both = []
    for store in (places("--qdrant", documents=60_000), places("edge", documents=60_000)):
        filled(store, documents)
        both.append(store.search(queries, 100))
    same = sum(one.doc_ids == other.doc_ids for one, other in zip(*both, strict=True))
    assert same >= 396  # a pair is swapped where scores differ by less than a millionth
    for one, other in zip(*both, strict=True):
        assert one.scores == pytest.approx(other.scores, abs=ABOUT)


@pytest.mark.parametrize(
    ("options", "least"),
    [
        ({"m": 16}, 0.9),
        ({"quantization": "scalar"}, 0.9),
        ({"quantization": "product"}, 0.5),
        ({"quantization": "binary"}, 0.1),
    ],
)
def test_graphs_and_codes_are_built_and_find_most(places: Places, options: dict[str, object], least: float) -> None:
    store, documents, queries = places("--qdrant", **options), units(5000, 384), units(100, 384)
    filled(store, documents)
    exact = [set(one.doc_ids) for one in store.search(queries, 10, exact=True)]
    near = [set(one.doc_ids) for one in store.search(queries, 10)]
    found = sum(len(one & other) for one, other in zip(exact, near, strict=True)) / 1000
    assert least <= found <= 1
    assert store.facts["indexed_points"] == "5000"


@pytest.mark.parametrize("transport", ["--qdrant", "--qdrant-grpc"])
@pytest.mark.parametrize("key", ["no key of anybody", None])
def test_a_wrong_key_and_none_are_refused_with_the_remedy(
    places: Places, real: Callable[[str], str], key: str | None, transport: str
) -> None:
    real("--qdrant-key")
    with pytest.raises(InputError, match=r"the server refuses access .*set api_key"):
        places(transport, api_key=key).finished()


@pytest.mark.parametrize("stopped", [False, True])
def test_copies_on_several_nodes_rank_as_numpy_ranks(places: Places, real: Callable[[str], str], stopped: bool) -> None:
    """Six shards in two copies; last, another node is stopped amid the upload, and stays away."""
    store = places("--qdrant-cluster", shards=6, replication=2)
    stop = shlex.split(real("--qdrant-stop")) if stopped else []
    documents, queries = units(60_000, 384), units(400, 384)
    ids = [f"d{number:06}" for number in range(len(documents))]
    store.create(384)
    for start in range(0, len(ids), 4096):
        if stop and start == 12_288:
            subprocess.run(stop, check=True)
        store.upsert(ids[start : start + 4096], documents[start : start + 4096])
    store.finish({})
    check(store.search(queries, 10), products(queries, documents), ids, 10)
