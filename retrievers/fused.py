"""Rankings of several retrievers fused into one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any, Literal, NamedTuple, get_args

from retrievers.document import Document
from retrievers.errors import InputError, Problem, did_you_mean
from retrievers.meter import Meter
from retrievers.passage import Passage
from retrievers.query import Query
from retrievers.ranking import Floats, Ranking, ranked, round_scores
from retrievers.retriever import Retriever, check_retriever
from retrievers.texts.passage_ranking import PASSAGE_SEPARATOR

FusionMethod = Literal["rrf", "dbsf", "convex"]
"""Fusion by ranks, or by scores on one of two scales: see `Fused.method`."""


class _SummedPoints(NamedTuple):
    """Hits before they are ordered."""

    ids: list[str]
    """Documents; or passages, by a key of their own."""
    scores: Floats
    """One for each id: the weighted sum of its points in all rankings."""


@dataclass(frozen=True, eq=False)
class Fused(Retriever):
    """Fusion of other retrievers' rankings: by ranks, or by scores.

    Without parts it only fuses rankings that `fuse` is given.

    Raises:
        InputError: the method is unknown, a part is no retriever, or the numbers do not
            fit the method and the parts.

    >>> from retrievers import BM25
    >>> Fused([BM25()], constant=10).to_config()
    {'kind': 'fusion', 'of': [{'kind': 'bm25'}], 'constant': 10}
    """

    of: Sequence[Retriever]
    """The retrievers that are fused."""
    method: FusionMethod = "rrf"
    """"rrf": 1 / (constant + rank) (Cormack, Clarke & Büttcher 2009). "dbsf": (score -
    mean + 3 deviations) / 6 deviations, of its ranking, as Qdrant's (qdrant-client
    1.20, `hybrid/fusion.py`). "convex": the score between the lowest and the highest, 0
    to 1, the weights' sum being 1 (Bruch, Gai & Ingber 2023)."""
    constant: float = 60
    """For "rrf", 60 as in the paper. Qdrant counts ranks from 0: its k = 61 is this 60,
    and its default, k = 2, is this 1."""
    weights: tuple[float, ...] = ()
    """One for each ranking; empty if all have the same."""
    minimum: tuple[float, ...] = ()
    """For "convex": the lowest score that each retriever could give; empty for the
    lowest of its hits. A hit with this score adds 0, a lower one less."""

    def __post_init__(self) -> None:
        """Check the options; without parts `fuse` checks how many numbers there are."""
        if self.method not in get_args(FusionMethod):
            problem = f"{self.method!r} is not a method of fusion"
            remedy = did_you_mean(str(self.method), get_args(FusionMethod))
            raise InputError(Problem("method", problem, remedy))
        _check_numbers("constant", [self.constant], "more than 0", lambda n: n > 0)
        if not isinstance(self.of, list | tuple):
            problem = f"{self.of!r:.60} is not a list"
            raise InputError(Problem("of", problem, "give a list of retrievers"))
        for part in self.of:
            check_retriever("of", part)
        _check_numbers("weights", self.weights, "0 or more", lambda n: n >= 0)
        _check_numbers("minimum", self.minimum, "a finite number", lambda _: True)
        _check_any_weight(self.weights)
        if self.of:
            check_fusion_numbers(
                self.method, self.weights, self.minimum, part_count=len(self.of)
            )

    @property
    def answers_here(self) -> bool:
        """Whether it calls no other program: it only combines rankings."""
        return True

    @property
    def parts(self) -> tuple[Retriever, ...]:
        """The retrievers that are fused."""
        return tuple(self.of)

    def to_config(self) -> dict[str, Any]:
        """Return its table in an experiment file."""
        table: dict[str, Any] = {
            "kind": "fusion",
            "of": [part.to_config() for part in self.of],
        }
        for option in fields(self):
            option_value = getattr(self, option.name)
            if option.name != "of" and option_value != option.default:
                table[option.name] = option_value
        return table

    def with_parts(self, parts: tuple[Retriever, ...]) -> Fused:
        """Return the same fusion of other parts."""
        return replace(self, of=parts)

    def index(self, documents: Iterable[Document], meter: Meter) -> None:
        """Index all parts."""
        for part in self.parts:
            part.index(documents, meter)

    def search(
        self, queries: Sequence[Query], depth: int, meter: Meter
    ) -> list[Ranking]:
        """Return the fused rankings of all parts, each searched to the same depth."""
        rankings_by_part = [part.search(queries, depth, meter) for part in self.parts]
        with meter.stage("fuse"):
            rankings_by_query = zip(*rankings_by_part, strict=True)
            return [self.fuse(rankings, depth) for rankings in rankings_by_query]

    def answer(self, query: Query, depth: int, meter: Meter) -> Ranking:
        """Rank for one query with every part, then fuse."""
        rankings = [part.answer(query, depth, meter) for part in self.parts]
        with meter.stage("fuse"):
            return self.fuse(rankings, depth)

    def fuse(self, rankings: Sequence[Ranking], depth: int) -> Ranking:
        """Fuse rankings of one query.

        A document's score is the weighted sum of its points in the rankings that have
        it; of equal scores the greater id is first, as in every ranking. If all
        rankings with hits have passages, these are fused by the same rule, with the
        same `minimum`: passages with the same place in the same document are one. The
        best `depth` of them stay, also of documents that do not.

        Raises:
            InputError: there are not as many rankings as `weights` or `minimum`; or no
                hit of a ranking is above its `minimum`, but some are below.

        >>> a, b = ranked(["x", "y"], [2, 1]), ranked(["y", "z"], [9, 8])
        >>> [(hit.doc_id, round(hit.score, 6)) for hit in Fused(()).fuse([a, b], 2)]
        [('y', 0.032522), ('x', 0.016393)]
        >>> convex = Fused((), "convex", weights=(1, 3), minimum=(0, 0))
        >>> [(hit.doc_id, round(hit.score, 6)) for hit in convex.fuse([a, b], 3)]
        [('y', 0.875), ('z', 0.666667), ('x', 0.25)]
        """
        check_fusion_numbers(
            self.method, self.weights, self.minimum, part_count=len(rankings)
        )
        fused = ranked(*self._sum_points(rankings), depth)
        # If no ranking has a hit, all are asked whether they have passages.
        with_hits = [ranking for ranking in rankings if len(ranking)] or rankings
        if any(ranking.passages is None for ranking in with_hits):
            return fused
        passage_lists = [ranking.passages or () for ranking in rankings]
        return fused.with_passages(self._fuse_passages(passage_lists, depth))

    def _fuse_passages(
        self, passage_lists: Sequence[tuple[Passage, ...]], depth: int
    ) -> list[Passage]:
        """Fuse the passages of one query."""
        passage_by_key: dict[str, Passage] = {}
        rankings: list[Ranking] = []
        for passages in passage_lists:
            keys: list[str] = []
            for passage in passages:
                keys.append(PASSAGE_SEPARATOR.join(map(str, passage.span)))
                passage_by_key.setdefault(keys[-1], passage)
            rankings.append(ranked(keys, [passage.score for passage in passages]))
        fused = ranked(*self._sum_points(rankings), depth)
        return [passage_by_key[key]._replace(score=score) for key, score in fused]

    def _sum_points(self, rankings: Sequence[Ranking]) -> _SummedPoints:
        """Return every hit with the weighted sum of its points, in no order."""
        weights = list(map(float, self.weights)) or [1.0] * len(rankings)
        if self.method == "convex":
            weights = [weight / sum(weights) for weight in weights]
        sums: dict[str, float] = {}
        weighted_rankings = zip(rankings, weights, strict=True)
        for part_number, (ranking, weight) in enumerate(weighted_rankings):
            points = self._points(ranking, part_number)
            for doc_id, document_points in zip(ranking.doc_ids, points, strict=True):
                sums[doc_id] = sums.get(doc_id, 0.0) + weight * document_points
        return _SummedPoints(list(sums), round_scores(list(sums.values())))

    def _points(self, ranking: Ranking, part_number: int) -> list[float]:
        """Return the points of each hit of a part's ranking, before the weight."""
        if self.method == "rrf":
            ranks = range(1, len(ranking) + 1)
            return [1 / (self.constant + rank) for rank in ranks]
        if self.method == "dbsf":
            return _scale_by_distribution(ranking.scores)
        if not self.minimum:
            return _scale_by_range(ranking.scores, minimum=None)
        minimum = self.minimum[part_number]
        _check_minimum(minimum, ranking.scores, part_number)
        return _scale_by_range(ranking.scores, minimum)


def check_fusion_numbers(
    method: FusionMethod,
    weights: Sequence[float],
    minimum: Sequence[float],
    *,
    part_count: int,
) -> None:
    """Refuse weights and minima that do not fit the method, or the number of parts.

    Raises:
        InputError: they are refused.
    """
    if len(minimum) and method != "convex":
        problem = f'has no effect on {method}; it is for method = "convex"'
        raise InputError(Problem("minimum", problem, "leave it out"))
    for key, numbers in (("weights", weights), ("minimum", minimum)):
        if len(numbers) not in (0, part_count):
            problem = f"has {len(numbers)} numbers for {part_count} retrievers"
            raise InputError(Problem(key, problem, "give one for each of `of`"))
    _check_any_weight(weights)


def _check_any_weight(weights: Sequence[float]) -> None:
    """Raise InputError if there are weights, and all are 0."""
    if len(weights) and not any(weights):
        raise InputError(Problem("weights", "are all 0", "one must be above"))


def _check_numbers(
    key: str,
    numbers: Any,
    range_text: str,
    is_allowed: Callable[[float], bool],
) -> None:
    """Raise InputError unless it is a list of finite numbers that are allowed."""
    if not isinstance(numbers, list | tuple):
        problem = f"{numbers!r:.60} is not a list"
        raise InputError(Problem(key, problem, "give one number for each of `of`"))
    for number in numbers:
        is_number = isinstance(number, Real)
        # A whole number may be larger than any float.
        is_finite = is_number and abs(number) <= sys.float_info.max
        if not is_finite or not is_allowed(number):
            problem = f"{number!r:.60} is not allowed"
            raise InputError(Problem(key, problem, f"give {range_text}"))


def _check_minimum(minimum: float, scores: Floats, part_number: int) -> None:
    """Refuse a minimum that no hit is above, but some are below.

    The scale from it to the highest score would reverse the order of the hits, or have
    no width.

    Raises:
        InputError: it is refused.
    """
    if not len(scores) or scores[-1] >= minimum or scores[0] > minimum:
        return
    span = f"{scores[-1]:g} to {scores[0]:g}"
    problem = f"is {minimum:g}, and no hit of a query scores more ({span})"
    remedy = (
        "give the lowest score that this retriever of `of` can have, "
        "or leave minimum out"
    )
    raise InputError(Problem(f"minimum[{part_number}]", problem, remedy))


def _scale_by_distribution(scores: Floats) -> list[float]:
    """Return (score - mean + 3 deviations) / 6 deviations.

    It uses the sample standard deviation; 0.5 if there is one score, or all are equal.
    """
    if len(scores) < 2 or scores[0] == scores[-1]:
        return [0.5] * len(scores)
    deviation = float(scores.std(ddof=1))
    if not deviation:  # the squares of tiny differences are 0
        return [0.5] * len(scores)
    low = float(scores.mean()) - 3 * deviation
    return [(score - low) / (6 * deviation) for score in scores.tolist()]


def _scale_by_range(scores: Floats, minimum: float | None) -> list[float]:
    """Return (score - lowest) / (highest - lowest) of each score.

    In a range of no width: without a minimum all scores are the highest, so each is 1;
    with one, all are the lowest that was possible, so each is 0.

    Args:
        scores: in descending order.
        minimum: the lowest of the range; None for the lowest of the scores.
    """
    if not len(scores):
        return []
    low = float(scores[-1]) if minimum is None else minimum
    high = float(scores[0])
    if low == high:
        return [1.0 if minimum is None else 0.0] * len(scores)
    return [(score - low) / (high - low) for score in scores.tolist()]
