"""Fusion of several retrievers' rankings, as a function of rankings alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from retrievers.types import Floats, Ranking, ranked, rounded

FusionMethod = Literal["rrf", "dbsf", "convex"]
"""By ranks, by scores of one scale, or by scores between the lowest and the highest of the query."""


def fuse(
    rankings: Sequence[Ranking],
    depth: int,
    method: FusionMethod = "rrf",
    *,
    constant: float = 60,
    weights: Sequence[float] = (),
    minimum: Sequence[float] = (),
) -> Ranking:
    """Fuse rankings of one query: a document's score is the weighted sum of what each ranking gives it.

    Args:
        rankings: one of each retriever; a document that one of them lacks gets nothing from it.
        depth: how many hits to keep.
        method: "rrf": 1 / (constant + rank) (Cormack, Clarke & Büttcher 2009). "dbsf": the score on a scale of its
            ranking's distribution, as Qdrant's (qdrant-client 1.20, `hybrid/fusion.py`). "convex": the score between
            the lowest and the highest, 0 to 1, the weights' sum being 1 (Bruch, Gai & Ingber 2023).
        constant: of "rrf", 60 as in the paper. Qdrant counts ranks from 0, so that its k = 61 is this 60, and its own
            k = 2 is this 1.
        weights: of each ranking; left out, all alike.
        minimum: of "convex": the lowest score that each retriever could give; left out, the lowest of its hits.

    >>> from retrievers.types import ranked
    >>> a, b = ranked(["x", "y"], [2, 1]), ranked(["y", "z"], [9, 8])
    >>> [(hit.doc_id, round(hit.score, 6)) for hit in fuse([a, b], 2)]
    [('y', 0.032522), ('x', 0.016393)]
    >>> [(hit.doc_id, round(hit.score, 6)) for hit in fuse([a, b], 3, "convex", weights=[1, 3], minimum=[0, 0])]
    [('y', 0.875), ('z', 0.666667), ('x', 0.25)]
    """
    shares = [1.0] * len(rankings) if not weights else [float(weight) for weight in weights]
    if method == "convex":
        shares = [share / sum(shares) for share in shares]
    sums: dict[str, float] = {}
    for place, (ranking, share) in enumerate(zip(rankings, shares, strict=True)):
        if method == "rrf":
            given = [1 / (constant + rank) for rank in range(1, len(ranking) + 1)]
        elif method == "dbsf":
            given = _by_distribution(ranking.scores)
        else:
            given = _between(ranking.scores, minimum[place] if minimum else None)
        for doc_id, score in zip(ranking.doc_ids, given, strict=True):
            sums[doc_id] = sums.get(doc_id, 0.0) + share * score
    return ranked(list(sums), rounded(list(sums.values())), depth)


def _by_distribution(scores: Floats) -> list[float]:
    """(s - m + 3 d) / 6 d, by the mean m and the sample standard deviation d; 0.5 where all are alike, or one."""
    if len(scores) < 2 or scores[0] == scores[-1]:
        return [0.5] * len(scores)
    spread = float(scores.std(ddof=1))
    low = float(scores.mean()) - 3 * spread
    return [(score - low) / (6 * spread) for score in scores.tolist()]


def _between(scores: Floats, minimum: float | None) -> list[float]:
    """(s - lowest) / (highest - lowest); 1 where all hits are alike and nothing says what the lowest could be."""
    if not len(scores):
        return []
    low, high = float(scores[-1]) if minimum is None else minimum, float(scores[0])
    if low == high:
        return [1.0 if minimum is None else 0.0] * len(scores)
    return [(score - low) / (high - low) for score in scores.tolist()]
