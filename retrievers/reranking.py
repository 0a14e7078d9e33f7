"""Reranks rankings through the cache: each distinct pair is scored once, each finished request stored at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from retrievers.cache import Cache, keys
from retrievers.errors import BackendError
from retrievers.meter import Call, Meter, Stop, single_call
from retrievers.parallel import answers
from retrievers.types import RESOLUTION, Document, Floats, Pair, PairScores, Query, Ranking, Reranker, ranked

Contents = Callable[[Collection[str]], Mapping[str, Document]]
"""Gives documents by id."""


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
        scores = np.zeros(len(pairs))
        call = single_call(meter)
        for request in self.reranker.batches(pairs):
            scores[list(request)] = self._ask([pairs[i] for i in request], call).scores
        return above_the_rest(candidates, scores)

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
        asked = [
            [(query.text, documents[doc_id].content) for doc_id in ranking.doc_ids[:depth]]
            for query, ranking in zip(queries, rankings, strict=True)
        ]
        distinct = sorted({pair for pairs in asked for pair in pairs}, key=lambda pair: (sum(map(len, pair)), pair))
        scored = self._scores(distinct, meter)
        meter.count(lost_tokens=int(scored.lost.sum()))
        place = {pair: i for i, pair in enumerate(distinct)}
        reranked = []
        for query, ranking, pairs in zip(queries, rankings, asked, strict=True):
            rows = [place[pair] for pair in pairs]
            if scored.lost[rows].any():
                meter.note("truncated-pair", query.id)
            reranked.append(above_the_rest(ranking, scored.scores[rows]))
        return reranked

    def _scores(self, pairs: Sequence[Pair], meter: Meter) -> PairScores:
        """Score distinct pairs, those in the cache without the model."""
        fingerprint = self.reranker.fingerprint
        names = keys(fingerprint, "pair", (f"{len(query)} {query}{document}" for query, document in pairs))
        held, cached = self._cache.get_scores(names)
        meter.count(texts=len(held), cached=len(held))
        whole = PairScores(np.zeros(len(pairs)), *np.zeros((2, len(pairs)), dtype=np.int64))
        missing = np.ones(len(pairs), dtype=bool)
        missing[held] = False
        _put(whole, held.tolist(), cached)
        if missing.any():
            requests = self.reranker.batches(pairs)
            wanted = [some for request in requests if (some := [i for i in request if missing[i]])]

            def ask(some: list[int], stopped: Stop) -> PairScores:
                return self._ask([pairs[i] for i in some], Call(meter, stopped))

            for some, scored in answers(ask, wanted, width=self.reranker.concurrency):
                self._cache.put_scores(fingerprint, [names[i] for i in some], scored)
                meter.count(texts=len(some))
                _put(whole, some, scored)
        return whole

    def _ask(self, pairs: Sequence[Pair], call: Call) -> PairScores:
        """Send one request and check the answer."""
        scores, tokens, lost = self.reranker.score(pairs, call)
        if not len(scores) == len(tokens) == len(lost) == len(pairs):
            raise BackendError(f"{len(scores)} scores came back for {len(pairs)} pairs")
        if not np.isfinite(scores).all():
            raise BackendError("a score that is not finite came back")
        return PairScores(np.asarray(scores, dtype=np.float64), tokens, lost)


def _put(whole: PairScores, rows: Sequence[int], part: PairScores) -> None:
    for column, values in zip(whole, part, strict=True):
        column[rows] = values


def above_the_rest(candidates: Ranking, scores: Floats) -> Ranking:
    """Rank the first candidates by their scores; the others stand beneath, each a step of rounding lower."""
    if not len(scores):
        return candidates
    step = 4 * RESOLUTION * max(float(np.abs(scores).max()), 1.0)
    beneath = float(scores.min()) - step * np.arange(1, len(candidates) - len(scores) + 1)
    return ranked(candidates.doc_ids, np.concatenate([scores, beneath]))
