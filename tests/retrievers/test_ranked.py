"""Rankings have one order; fusion here and in Qdrant's client gives one result."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import example, given
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
from retrievers.types import RESOLUTION, Document, Query, ranked, rounded

SCORES = st.one_of(
    st.floats(-1e6, 1e6),
    st.sampled_from([0.0, 0.5, 0.5 + 1e-9, 1.0, -1.0, 5e-324, 1e300, 1.7e9, 1.7e9 - 10]),
    st.floats(-1e-9, 1e-9),
)
HITS = st.dictionaries(st.text(min_size=1, max_size=3), SCORES, max_size=12)


@given(HITS, st.randoms())
def test_scores_fall_as_they_were_given_and_equals_stand_by_descending_id_whatever_the_order_of_arrival(hits, random):
    ranking = ranked(list(hits), list(hits.values()))
    pairs = list(zip(ranking.scores.tolist(), ranking.doc_ids, strict=True))
    assert pairs == sorted(pairs, reverse=True) and {id_: score for score, id_ in pairs} == hits
    shuffled = list(hits.items())
    random.shuffle(shuffled)
    assert ranked([i for i, _ in shuffled], [s for _, s in shuffled]) == ranking


@given(st.lists(SCORES, max_size=12))
def test_scores_are_rounded_once_by_no_more_than_the_resolution(scores):
    once, most = rounded(scores), np.abs(scores).max(initial=0.0)
    assert rounded(once).tolist() == once.tolist()
    assert (np.abs(once - np.array(scores)) <= 0.5000001 * RESOLUTION * most + 5e-324).all()


def test_float_noise_between_engines_is_no_difference_of_ours_and_a_difference_of_others():
    assert ranked(["a", "b"], rounded([0.8000001, 0.8])).doc_ids == ("b", "a")
    assert ranked(["a", "b"], rounded([0.800001, 0.8])).doc_ids == ("a", "b")
    assert ranked(["a", "b"], [0.8000001, 0.8]).doc_ids == ("a", "b")
    with pytest.raises(ValueError, match="not finite"):
        ranked(["a"], [float("nan")])
    with pytest.raises(ValueError, match="2 ids for 1 scores"):
        ranked(["a", "b"], [1.0])
    assert not ranked(["a"], [1.0]).scores.flags.writeable


@given(st.lists(HITS.filter(bool), min_size=1, max_size=4))
def test_a_saved_run_is_ordered_as_score_double_orders_it(queries):
    with TemporaryDirectory() as folder:
        path, qrels = Path(folder) / "theirs.trec", Path(folder) / "qrels.trec"
        ids = [{f"d{n}": score for n, score in enumerate(one.values())} for one in queries]
        lines = [f"q{n} Q0 {doc} 1 {score!r} t\n" for n, one in enumerate(ids) for doc, score in one.items()]
        path.write_text("".join(lines))
        retriever = SavedRun(path=str(path))
        retriever.index([Document(doc, "", "x") for one in ids for doc in one], Meter())
        asked = [Query(f"q{n}", "x") for n in range(len(ids))]
        ours = [list(ranking.doc_ids) for ranking in retriever.search(asked, 100, Meter())]
        qrels.write_text("".join(f"{query.id} 0 d0 1\n" for query in asked))
        scored = score_runs(qrels, [path], parse_all(["RR"]), conventions=Conventions(precision="double"))
        assert ours == [scored.lists["theirs"]()[query.id] for query in asked]


some_rankings = st.lists(
    st.dictionaries(st.integers(0, 30), st.floats(-50, 50), max_size=12), min_size=1, max_size=4
).map(lambda lists: [ranked([str(id_) for id_ in one], list(one.values())) for one in lists])


@example([ranked(["0", "1"], [0.0, 3.8e-171])], 1)  # whose variance is 0 in 64 bits
@given(some_rankings, st.integers(1, 100))
def test_rankings_are_fused_as_in_the_client_where_k_is_the_constant_and_one_more(rankings, constant):
    for ours, theirs, noise in (
        (fuse(rankings, 999, constant=constant), partial(of_the_client, ranking_constant_k=constant + 1), 3e-6),
        (fuse(rankings, 999, constant=1), of_the_client, 3e-6),
        (fuse(rankings, 999, "dbsf"), distribution_based_score_fusion, 1e-5),
    ):
        points = [[models.ScoredPoint(id=int(id_), version=0, score=score) for id_, score in one] for one in rankings]
        found = {str(point.id): point.score for point in theirs(points, limit=999)}
        assert dict(ours) == pytest.approx(found, rel=1e-5, abs=noise)


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
def test_convex_combination_is_that_of_autorag(minimum, expected):
    ours = fuse(LISTS, 5, "convex", weights=(3, 7), minimum=minimum)
    assert list(ours.doc_ids) == list(expected)
    assert dict(ours) == pytest.approx(expected, abs=1e-6)


def test_weights_count_a_ranking_more_and_scores_alike_are_the_best():
    a, b = ranked(["x", "y"], [1, 1]), ranked(["y", "z"], [9, 8])
    assert dict(fuse([a, b], 3, weights=(0, 1))) == pytest.approx({"y": 1 / 61, "z": 1 / 62, "x": 0}, abs=1e-6)
    assert dict(fuse([a, b], 3, "convex")) == {"y": 1.0, "x": 0.5, "z": 0.0}
    assert dict(fuse([ranked([], []), b], 3, "convex", weights=(1, 1), minimum=(0, 8))) == {"y": 0.5, "z": 0.0}


@pytest.mark.parametrize(
    ("keys", "told"),
    [({"weights": [1]}, "weights has 1 numbers for 2 retrievers"), ({"weights": [0, 0]}, "weights are all 0"),
     ({"minimum": [0, -1]}, "minimum has no effect on rrf"),
     ({"method": "convex", "weights": [-1, 1]}, r"weights\[0\]: -1")],
)  # fmt: skip
def test_weights_that_do_not_fit_are_refused(keys, told):
    blocks = [
        *({"name": name, "kind": "bm25"} for name in "ab"),
        {"name": "h", "kind": "fusion", "of": ["a", "b"], **keys},
    ]
    with pytest.raises(InputError, match=told):
        parse({"name": "x", "dataset": "d", "primary": "RR", "measures": ["RR"], "retrievers": blocks})
