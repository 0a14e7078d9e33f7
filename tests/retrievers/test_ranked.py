"""Rankings have one order; fusion here and in Qdrant's client gives one result."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from qdrant_client import models
from qdrant_client.hybrid.fusion import distribution_based_score_fusion
from qdrant_client.hybrid.fusion import reciprocal_rank_fusion as of_the_client

from harness.evaluation.runs import Conventions, score_runs
from harness.experiment import parse
from harness.measures import parse_all
from retrievers.errors import InputError
from retrievers.external import SavedRun
from retrievers.meter import Meter
from retrievers.ranking import fuse
from retrievers.types import RESOLUTION, Document, Query, Ranking, ranked, rounded

SCORES = st.one_of(
    st.floats(-1e6, 1e6),
    st.sampled_from([0.0, 0.5, 0.5 + 1e-9, 1.0, -1.0, 5e-324, 1e300, 1.7e9, 1.7e9 - 10]),
    st.floats(-1e-9, 1e-9),
)
HITS = st.dictionaries(st.text(min_size=1, max_size=3), SCORES, max_size=12)


@given(HITS)
def test_scores_fall_and_equals_stand_by_descending_id(hits: dict[str, float]) -> None:
    ranking = ranked(list(hits), list(hits.values()))
    assert sorted(ranking.doc_ids) == sorted(hits)
    pairs = list(zip(ranking.scores.tolist(), ranking.doc_ids, strict=True))
    assert pairs == sorted(pairs, reverse=True)


@given(HITS)
def test_ranking_keeps_every_score_as_it_was_given(hits: dict[str, float]) -> None:
    assert {hit.doc_id: hit.score for hit in ranked(list(hits), list(hits.values()))} == hits


@given(HITS)
def test_rounding_again_changes_nothing(hits: dict[str, float]) -> None:
    once = rounded(list(hits.values()))
    assert rounded(once).tolist() == once.tolist()


@given(HITS, st.randoms())
def test_the_order_of_arrival_does_not_matter(hits: dict[str, float], random: object) -> None:
    shuffled = list(hits.items())
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert ranked([i for i, _ in shuffled], [s for _, s in shuffled]) == ranked(list(hits), list(hits.values()))


@given(HITS)
def test_scores_move_by_no_more_than_the_resolution(hits: dict[str, float]) -> None:
    scores = np.array(list(hits.values()))
    largest = np.abs(scores).max(initial=0.0)
    assert (np.abs(rounded(scores) - scores) <= 0.5000001 * RESOLUTION * largest + 5e-324).all()


def test_float_noise_between_engines_is_no_difference_of_ours_and_a_difference_of_others() -> None:
    assert ranked(["a", "b"], rounded([0.8000001, 0.8])).doc_ids == ("b", "a")
    assert ranked(["a", "b"], rounded([0.800001, 0.8])).doc_ids == ("a", "b")
    assert ranked(["a", "b"], [0.8000001, 0.8]).doc_ids == ("a", "b")


@given(st.lists(HITS.filter(bool), min_size=1, max_size=4))
def test_a_saved_run_is_ordered_as_score_double_orders_it(queries: list[dict[str, float]]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "theirs.trec"
        ids = [{f"d{n}": score for n, score in enumerate(one.values())} for one in queries]
        lines = [f"q{n} Q0 {doc} 1 {score!r} t\n" for n, one in enumerate(ids) for doc, score in one.items()]
        path.write_text("".join(lines))
        retriever = SavedRun(path=str(path))
        retriever.index([Document(doc, "", "x") for one in ids for doc in one], Meter())
        asked = [Query(f"q{n}", "x") for n in range(len(ids))]
        ours = [list(ranking.doc_ids) for ranking in retriever.search(asked, 100, Meter())]
        qrels = Path(folder) / "qrels.trec"
        qrels.write_text("".join(f"{query.id} 0 d0 1\n" for query in asked))
        scored = score_runs(qrels, [path], parse_all(["RR"]), conventions=Conventions(precision="double"))
        assert ours == [scored.lists["theirs"]()[query.id] for query in asked]


def test_what_is_no_ranking_is_refused() -> None:
    with pytest.raises(ValueError, match="not finite"):
        ranked(["a"], [float("nan")])
    with pytest.raises(ValueError, match="2 ids for 1 scores"):
        ranked(["a", "b"], [1.0])
    assert not ranked(["a"], [1.0]).scores.flags.writeable
    assert np.array_equal(ranked([], []).scores, [])


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
    ours = fuse(rankings, 1000, constant=constant)
    theirs = as_ranking(of_the_client(points(rankings), limit=1000, ranking_constant_k=constant + 1))
    assert dict(ours) == pytest.approx(theirs, abs=3e-6)
    default = as_ranking(of_the_client(points(rankings), limit=1000))
    assert dict(fuse(rankings, 1000, constant=1)) == pytest.approx(default, abs=3e-6)


@given(some_rankings)
def test_scores_are_fused_as_in_the_client(rankings: list[Ranking]) -> None:
    theirs = as_ranking(distribution_based_score_fusion(points(rankings), limit=1000))
    assert dict(fuse(rankings, 1000, "dbsf")) == pytest.approx(theirs, rel=1e-5, abs=1e-5)


LISTS = [  # scores of AutoRAG's own test, tests/autorag/nodes/retrieval/test_hybrid_base.py
    ranked([f"id-{i}" for i in (1, 2, 3, 4, 5)], [5, 3, 1, 0.4, 0.2]),
    ranked([f"id-{i}" for i in (1, 4, 3, 5, 2)], [6, 2, 1, 0.5, 0.1]),
]


@pytest.mark.parametrize(
    ("minimum", "expected"),
    [  # AutoRAG 22b23d44, hybrid_cc.py: fuse_per_query(…, weight=0.3, top_k=5), "mm" and "tmm" (minima -1 and 0)
        ((), {"id-1": 1.0, "id-4": 0.23792373, "id-2": 0.175, "id-3": 0.15677966, "id-5": 0.04745763}),
        ((-1, 0), {"id-1": 1.0, "id-4": 0.30333333, "id-3": 0.21666667, "id-2": 0.21166667, "id-5": 0.11833333}),
    ],
)
def test_convex_combination_is_that_of_autorag(minimum: tuple[float, ...], expected: dict[str, float]) -> None:
    ours = fuse(LISTS, 5, "convex", weights=(3, 7), minimum=minimum)
    assert list(ours.doc_ids) == list(expected)
    assert dict(ours) == pytest.approx(expected, abs=1e-6)


def test_weights_count_a_ranking_more_and_scores_alike_are_the_best() -> None:
    a, b = ranked(["x", "y"], [1, 1]), ranked(["y", "z"], [9, 8])
    assert dict(fuse([a, b], 3, weights=(0, 1))) == pytest.approx({"y": 1 / 61, "z": 1 / 62, "x": 0}, abs=1e-6)
    assert dict(fuse([a, b], 3, "convex")) == {"y": 1.0, "x": 0.5, "z": 0.0}
    assert dict(fuse([ranked([], []), b], 3, "convex", weights=(1, 1), minimum=(0, 8))) == {"y": 0.5, "z": 0.0}


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"weights": [1]}, "weights has 1 numbers for 2 retrievers"),
        ({"weights": [0, 0]}, "weights are all 0"),
        ({"minimum": [0, -1]}, "minimum has no effect on rrf"),
        ({"method": "convex", "weights": [-1, 1]}, r"weights\[0\]: -1"),
    ],
)
def test_weights_that_do_not_fit_are_refused(keys: dict[str, object], told: str) -> None:
    blocks = [
        {"name": "a", "kind": "bm25"},
        {"name": "b", "kind": "bm25"},
        {"name": "h", "kind": "fusion", "of": ["a", "b"], **keys},
    ]
    with pytest.raises(InputError, match=told):
        parse({"name": "x", "dataset": "d", "primary": "RR", "measures": ["RR"], "retrievers": blocks})
