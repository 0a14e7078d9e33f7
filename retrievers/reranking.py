"""Reranks rankings through the cache: each distinct pair is scored once, each finished request stored at once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from retrievers.cache import Cache, keys
from retrievers.errors import BackendError
from retrievers.meter import Call, Meter, Stop, single_call
from retrievers.retrying import answers
from retrievers.types import RESOLUTION, Document, Floats, Pair, PairScores, Query, Ranking, Reranker, ranked, rounded

Contents = Callable[[Collection[str]], Mapping[str, Document]]
"""Gives documents by id."""


class _Plan(NamedTuple):
    """Which pairs are scored, how they are sent, and where their scores go."""

    role: str
    """Of the keys in the cache."""
    texts: Sequence[str]
    """What the keys are made of."""
    pairs: Sequence[Pair]
    requests: Callable[[], Iterable[Sequence[int]]]
    rows: Sequence[Sequence[int]]
    """For each query, the positions of its pairs."""

    def part(self, request: Sequence[int], missing: npt.NDArray[np.bool_]) -> list[int]:
        """Return what is sent of a request: what is missing, or the whole where a score depends on its companions."""
        if self.role == "list":
            return list(request) if missing[list(request)].any() else []
        return [i for i in request if missing[i]]


class CachedReranker:
    """A reranker with its cache and the documents that it reads.

    The first `depth` candidates stand in the order of their scores, the others keep their order beneath them.
    """

    def __init__(self, reranker: Reranker, cache: Cache, contents: Contents) -> None:
        self.reranker = reranker
        self._cache = cache
        self._contents = contents

    def rerank(self, query: Query, candidates: Ranking, meter: Meter) -> Ranking:
        """Rerank one query's candidates with the cache bypassed, as latency is measured."""
        head = candidates.doc_ids[: self.reranker.depth]
        documents = self._contents(head)
        pairs = [(query.text, documents[doc_id].content) for doc_id in head]
        return above_the_rest(candidates, self._ask_all(pairs, single_call(meter)).scores)

    def rerank_all(self, queries: Sequence[Query], rankings: Sequence[Ranking], meter: Meter) -> list[Ranking]:
        """Rerank every query's candidates through the cache, pairs of like length of all queries together.

        The meter counts `texts` (distinct pairs), `cached` and `lost_tokens`, and notes the queries of which a pair
        was truncated, as "truncated-pair"; the reranker itself counts calls, tokens and dollars in it.

        Raises:
            BackendError: a request failed for good (what the others brought is stored), or its scores are too few or
                too many, or not finite.
        """
        depth = self.reranker.depth
        documents = self._contents({doc_id for ranking in rankings for doc_id in ranking.doc_ids[:depth]})
        lists = [
            [(query.text, documents[doc_id].content) for doc_id in ranking.doc_ids[:depth]]
            for query, ranking in zip(queries, rankings, strict=True)
        ]
        plan = (_by_list if self.reranker.by_list else _by_pair)(lists, self.reranker)
        scored = self._scores(plan, meter)
        meter.count(lost_tokens=int(scored.truncated_tokens.sum()))
        reranked = []
        for query, ranking, rows in zip(queries, rankings, plan.rows, strict=True):
            if scored.truncated_tokens[rows].any():
                meter.note("truncated-pair", query.id)
            reranked.append(above_the_rest(ranking, scored.scores[rows]))
        return reranked

    def _scores(self, plan: _Plan, meter: Meter) -> PairScores:
        """Score distinct pairs, those in the cache without the model."""
        fingerprint, pairs = self.reranker.fingerprint, plan.pairs
        names = keys(fingerprint, plan.role, plan.texts)
        held, cached = self._cache.get_scores(names)
        whole = PairScores(np.zeros(len(pairs)), *np.zeros((2, len(pairs)), dtype=np.int64))
        missing = np.ones(len(pairs), dtype=bool)
        missing[held] = False
        wanted = [some for request in plan.requests() if (some := plan.part(request, missing))] if missing.any() else []
        for some in wanted:
            missing[some] = True  # of a list that is not whole, all is asked again
        kept = ~missing[held]
        meter.count(texts=int(kept.sum()), cached=int(kept.sum()))
        _put(whole, held.tolist(), cached)

        def ask(some: list[int], stopped: Stop) -> PairScores:
            return self._ask([pairs[i] for i in some], Call(meter, stopped))

        for some, scored in answers(ask, wanted, width=self.reranker.concurrency if wanted else 1):
            self._cache.put_scores(fingerprint, [names[i] for i in some], scored)
            meter.count(texts=len(some))
            _put(whole, some, scored)
        return whole

    def _ask_all(self, pairs: Sequence[Pair], call: Call) -> PairScores:
        whole = PairScores(np.zeros(len(pairs)), *np.zeros((2, len(pairs)), dtype=np.int64))
        for request in self.reranker.batches(pairs):
            _put(whole, request, self._ask([pairs[i] for i in request], call))
        return whole

    def _ask(self, pairs: Sequence[Pair], call: Call) -> PairScores:
        """Send one request and check the answer."""
        scores, tokens, truncated = self.reranker.score(pairs, call)
        if not len(scores) == len(tokens) == len(truncated) == len(pairs):
            raise BackendError(f"{len(scores)} scores came back for {len(pairs)} pairs")
        if not np.isfinite(scores).all():
            raise BackendError("a score that is not finite came back")
        return PairScores(np.asarray(scores, dtype=np.float64), tokens, truncated)


def _by_pair(lists: Sequence[Sequence[Pair]], reranker: Reranker) -> _Plan:
    """Each distinct pair once, pairs of like length of all queries together."""
    distinct = sorted({pair for pairs in lists for pair in pairs}, key=lambda pair: (sum(map(len, pair)), pair))
    place = {pair: i for i, pair in enumerate(distinct)}
    texts = [_text_of(pair) for pair in distinct]
    return _Plan(
        "pair", texts, distinct, lambda: reranker.batches(distinct), [[place[p] for p in one] for one in lists]
    )


def _by_list(lists: Sequence[Sequence[Pair]], reranker: Reranker) -> _Plan:
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

    def requests() -> Iterator[Sequence[int]]:
        for pairs, start in starts.items():
            yield from ([start + i for i in request] for request in reranker.batches(pairs))

    rows = [list(range(starts[tuple(one)], starts[tuple(one)] + len(one))) for one in lists]
    return _Plan("list", texts, flat, requests, rows)


def _text_of(pair: Pair) -> str:
    query, document = pair
    return f"{len(query)} {query}{document}"


def _put(whole: PairScores, rows: Sequence[int], part: PairScores) -> None:
    for column, values in zip(whole, part, strict=True):
        column[rows] = values


def above_the_rest(candidates: Ranking, scores: Floats) -> Ranking:
    """Rank the first candidates by their scores; the others stand beneath, each a step of rounding lower."""
    if not len(scores):
        return candidates
    step = 4 * RESOLUTION * max(float(np.abs(scores).max()), 1.0)
    beneath = float(scores.min()) - step * np.arange(1, len(candidates) - len(scores) + 1)
    return ranked(candidates.doc_ids, rounded(np.concatenate([scores, beneath])))
