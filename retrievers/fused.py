"""Rankings of several retrievers fused into one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from retrievers.document import Document
from retrievers.meter import Meter
from retrievers.query import Query
from retrievers.ranking import Floats, Ranking, ranked, round_scores
from retrievers.retriever import Retriever

FusionMethod = Literal["rrf", "dbsf", "convex"]
"""By ranks, by scores of one scale, or by scores between the lowest and the highest of the query."""


@dataclass(frozen=True, eq=False)
class Fused(Retriever):
    """Fusion of other retrievers' rankings: by ranks, or by scores.

    >>> from retrievers import BM25
    >>> Fused([BM25(), BM25(b=0.7)], constant=10).to_config()
    {'kind': 'fusion', 'of': [{'kind': 'bm25'}, {'kind': 'bm25', 'b': 0.7}], 'constant': 10}
    """

    of: Sequence[Retriever]
    """What is fused."""
    method: FusionMethod = "rrf"
    """"rrf": 1 / (constant + rank) (Cormack, Clarke & Büttcher 2009). "dbsf": the score on a scale of its ranking's
    distribution, as Qdrant's (qdrant-client 1.20, `hybrid/fusion.py`). "convex": the score between the lowest and the
    highest, 0 to 1, the weights' sum being 1 (Bruch, Gai & Ingber 2023)."""
    constant: float = 60
    """Of "rrf", 60 as in the paper. Qdrant counts ranks from 0: its k = 61 is this 60, and its own k = 2 is this 1."""
    weights: tuple[float, ...] = ()
    """Of each ranking; left out, all alike."""
    minimum: tuple[float, ...] = ()
    """Of "convex": the lowest score that each retriever could give; left out, the lowest of its hits."""

    @property
    def parts(self) -> tuple[Retriever, ...]:
        """What is fused."""
        return tuple(self.of)

    def to_config(self) -> dict[str, Any]:
        """Its table in an experiment file."""
        options = {
            one.name: (getattr(self, one.name), one.default) for one in fields(self)[1:]
        }
        said = {
            name: value
            for name, (value, default) in options.items()
            if value != default
        }
        return {"kind": "fusion", "of": [part.to_config() for part in self.of], **said}

    def with_parts(self, parts: tuple[Retriever, ...]) -> Fused:
        """Return the same fusion of other parts."""
        return replace(self, of=parts)

    def index(self, documents: Iterable[Document], meter: Meter) -> None:
        """Index what is fused."""
        for part in self.parts:
            part.index(documents, meter)

    def search(
        self, queries: Sequence[Query], depth: int, meter: Meter
    ) -> list[Ranking]:
        """Return the fused rankings of all parts."""
        found = [part.search(queries, depth, meter) for part in self.parts]
        with meter.stage("fuse"):
            return [self.fuse(of_query, depth) for of_query in zip(*found, strict=True)]

    def answer(self, query: Query, depth: int, meter: Meter) -> Ranking:
        """Answer one query with every part, then fuse."""
        found = [part.answer(query, depth, meter) for part in self.parts]
        with meter.stage("fuse"):
            return self.fuse(found, depth)

    def fuse(self, rankings: Sequence[Ranking], depth: int) -> Ranking:
        """Fuse rankings of one query: a document's score is the weighted sum of what each ranking gives it.

        >>> a, b = ranked(["x", "y"], [2, 1]), ranked(["y", "z"], [9, 8])
        >>> [(hit.doc_id, round(hit.score, 6)) for hit in Fused(()).fuse([a, b], 2)]
        [('y', 0.032522), ('x', 0.016393)]
        >>> convex = Fused((), "convex", weights=(1, 3), minimum=(0, 0))
        >>> [(hit.doc_id, round(hit.score, 6)) for hit in convex.fuse([a, b], 3)]
        [('y', 0.875), ('z', 0.666667), ('x', 0.25)]
        """
        shares = list(map(float, self.weights)) or [1.0] * len(rankings)
        if self.method == "convex":
            shares = [share / sum(shares) for share in shares]
        sums: dict[str, float] = {}
        for place, (ranking, share) in enumerate(zip(rankings, shares, strict=True)):
            if self.method == "rrf":
                given = [
                    1 / (self.constant + rank) for rank in range(1, len(ranking) + 1)
                ]
            elif self.method == "dbsf":
                given = _by_distribution(ranking.scores)
            else:
                given = _between(
                    ranking.scores, self.minimum[place] if self.minimum else None
                )
            for doc_id, score in zip(ranking.doc_ids, given, strict=True):
                sums[doc_id] = sums.get(doc_id, 0.0) + share * score
        return ranked(list(sums), round_scores(list(sums.values())), depth)


def _by_distribution(scores: Floats) -> list[float]:
    """(s - m + 3 d) / 6 d, by the mean m and the sample standard deviation d; 0.5 where all are alike, or one."""
    if (
        len(scores) < 2
        or scores[0] == scores[-1]
        or not (spread := float(scores.std(ddof=1)))
    ):
        return [0.5] * len(scores)
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
