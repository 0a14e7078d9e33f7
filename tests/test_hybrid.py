"""Fusion here and in Qdrant's client: one result, with the constants that each of them counts by."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qdrant_client import models
from qdrant_client.hybrid.fusion import distribution_based_score_fusion
from qdrant_client.hybrid.fusion import reciprocal_rank_fusion as of_the_client

from harness.experiment import parse
from retrievers.errors import InputError
from retrievers.fusion import distribution_based_fusion, reciprocal_rank_fusion
from retrievers.types import Ranking, ranked

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


def test_the_hybrid_inside_qdrant_is_refused_with_what_to_use() -> None:
    block = {"name": "q", "kind": "qdrant-fusion", "of": ["dense", "bm25"]}
    with pytest.raises(InputError, match=r"retrievers\[0\]\.kind: 'qdrant-fusion' is retired \(use kind = \"fusion\""):
        parse({"name": "x", "dataset": "d", "primary": "RR", "measures": ["RR"], "retrievers": [block]})
