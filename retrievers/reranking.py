"""Which pairs a reranker scores, in which requests, and where their scores go."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from retrievers.types import RESOLUTION, Floats, Pair, PairScores, Ranking, Reranker, ranked, rounded


class RerankPlan(NamedTuple):
    """Which pairs are scored, how they are sent, and where their scores go."""

    role: str
    """Of the keys in the cache."""
    texts: Sequence[str]
    """What the cache keys contain."""
    pairs: Sequence[Pair]
    requests: Sequence[Sequence[int]]
    rows: Sequence[Sequence[int]]
    """For each query, the positions of its pairs."""

    def part(self, request: Sequence[int], missing: npt.NDArray[np.bool_]) -> list[int]:
        """Return what is sent of a request: what is missing, or the whole where a score depends on its companions."""
        if self.role == "list":
            return list(request) if missing[list(request)].any() else []
        return [i for i in request if missing[i]]


def plan_of(lists: Sequence[Sequence[Pair]], reranker: Reranker) -> RerankPlan:
    """Plan how the pairs of some queries are scored."""
    return (_by_list if reranker.by_list else _by_pair)(lists, reranker)


def _by_pair(lists: Sequence[Sequence[Pair]], reranker: Reranker) -> RerankPlan:
    """Each distinct pair once, pairs of like length of all queries together."""
    distinct = sorted({pair for pairs in lists for pair in pairs}, key=lambda pair: (sum(map(len, pair)), pair))
    place = {pair: i for i, pair in enumerate(distinct)}
    texts = [_text_of(pair) for pair in distinct]
    rows = [[place[pair] for pair in one] for one in lists]
    return RerankPlan("pair", texts, distinct, list(reranker.batches(distinct)), rows)


def _by_list(lists: Sequence[Sequence[Pair]], reranker: Reranker) -> RerankPlan:
    """Each distinct list once, whole; the key of a pair names its list."""
    distinct = dict.fromkeys(tuple(pairs) for pairs in lists)
    starts: dict[tuple[Pair, ...], int] = {}
    flat: list[Pair] = []
    texts: list[str] = []
    for pairs in distinct:
        starts[pairs] = len(flat)
        flat += pairs
        digest = hashlib.blake2b("".join(map(_text_of, pairs)).encode("utf-8", "surrogatepass")).hexdigest()
        texts += [f"{digest} {_text_of(pair)}" for pair in pairs]
    requests = [[start + i for i in request] for pairs, start in starts.items() for request in reranker.batches(pairs)]
    rows = [list(range(starts[tuple(one)], starts[tuple(one)] + len(one))) for one in lists]
    return RerankPlan("list", texts, flat, requests, rows)


def _text_of(pair: Pair) -> str:
    query, document = pair
    return f"{len(query)} {query}{document}"


def no_scores(pairs: int) -> PairScores:
    """Room for the scores of so many pairs."""
    return PairScores(np.zeros(pairs), *np.zeros((2, pairs), dtype=np.int64))


def put(whole: PairScores, rows: Sequence[int], part: PairScores) -> None:
    """Put scores in their places."""
    for column, values in zip(whole, part, strict=True):
        column[rows] = values


def above_the_rest(candidates: Ranking, scores: Floats) -> Ranking:
    """Rank the first candidates by their scores; the others follow, each a step of rounding lower."""
    if not len(scores):
        return candidates
    step = 4 * RESOLUTION * max(float(np.abs(scores).max()), 1.0)
    beneath = float(scores.min()) - step * np.arange(1, len(candidates) - len(scores) + 1)
    return ranked(candidates.doc_ids, rounded(np.concatenate([scores, beneath])))
