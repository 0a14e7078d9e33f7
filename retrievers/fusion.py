"""Fusion of several retrievers' rankings, as a function of rankings alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from retrievers.types import Ranking, ranked, rounded

FusionMethod = Literal["rrf", "dbsf"]
"""By ranks, or by scores of one scale."""


def reciprocal_rank_fusion(rankings: Sequence[Ranking], depth: int, *, constant: float = 60) -> Ranking:
    """Fuse rankings of one query by the sum of 1 / (constant + rank) (Cormack, Clarke & Büttcher 2009).

    Args:
        rankings: one of each retriever; a document that one of them lacks gets nothing from it.
        depth: how many hits to keep.
        constant: 60 as in the paper. Qdrant counts ranks from 0, so that its k = 61 is this 60, and its own k = 2 is
            this 1.

    >>> from retrievers.types import ranked
    >>> a, b = ranked(["x", "y"], [2, 1]), ranked(["y", "z"], [9, 8])
    >>> [(hit.doc_id, round(hit.score, 6)) for hit in reciprocal_rank_fusion([a, b], 2)]
    [('y', 0.032522), ('x', 0.016393)]
    """
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, doc_id in enumerate(ranking.doc_ids, 1):
            scores[doc_id] = scores.get(doc_id, 0.0) + 1 / (constant + rank)
    return ranked(list(scores), rounded(list(scores.values())), depth)


def distribution_based_fusion(rankings: Sequence[Ranking], depth: int) -> Ranking:
    """Fuse rankings of one query by the sum of their scores, each ranking's brought to one scale.

    A score s becomes (s - m + 3 d) / 6 d, by the mean m and the sample standard deviation d of its ranking; scores that
    are alike, and a single one, become 0.5. As Qdrant's "dbsf" does (qdrant-client 1.20, `hybrid/fusion.py`).

    Args:
        rankings: one of each retriever; a document that one of them lacks gets nothing from it.
        depth: how many hits to keep.

    >>> from retrievers.types import ranked
    >>> a, b = ranked(["x", "y"], [2, 1]), ranked(["y"], [9])
    >>> [(hit.doc_id, round(hit.score, 6)) for hit in distribution_based_fusion([a, b], 2)]
    [('y', 0.882149), ('x', 0.617851)]
    """
    sums: dict[str, float] = {}
    for ranking in rankings:
        alike = len(ranking) < 2 or ranking.scores[0] == ranking.scores[-1]
        spread = 0.0 if alike else float(ranking.scores.std(ddof=1))
        low = float(ranking.scores.mean()) - 3 * spread if len(ranking) else 0.0
        for doc_id, score in ranking:
            sums[doc_id] = sums.get(doc_id, 0.0) + ((score - low) / (6 * spread) if spread else 0.5)
    return ranked(list(sums), rounded(list(sums.values())), depth)
