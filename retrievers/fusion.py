"""Fusion of several retrievers' rankings, as a function of rankings alone."""

from __future__ import annotations

from collections.abc import Sequence

from retrievers.types import Ranking, ranked


def reciprocal_rank_fusion(rankings: Sequence[Ranking], depth: int, *, constant: float = 60) -> Ranking:
    """Fuse rankings of one query by the sum of 1 / (constant + rank) (Cormack, Clarke & Büttcher 2009).

    Args:
        rankings: one of each retriever; a document that one of them lacks gets nothing from it.
        depth: how many hits to keep.
        constant: 60 as in the paper (Qdrant's own fusion has 2).

    >>> from retrievers.types import ranked
    >>> a, b = ranked(["x", "y"], [2, 1]), ranked(["y", "z"], [9, 8])
    >>> [(hit.doc_id, round(hit.score, 6)) for hit in reciprocal_rank_fusion([a, b], 2)]
    [('y', 0.032522), ('x', 0.016393)]
    """
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, doc_id in enumerate(ranking.doc_ids, 1):
            scores[doc_id] = scores.get(doc_id, 0.0) + 1 / (constant + rank)
    return ranked(list(scores), list(scores.values()), depth)
