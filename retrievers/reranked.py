"""The first hits put into a better order.

A first stage finds the hits. Distinct pairs of a query and a hit's text are planned
into requests, scored through the cache, and the scored hits ordered; all others stay
below them. `retrievers.model` has the protocol of rerankers, `rerankers/` each kind.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from retrievers import reranker_class
from retrievers.document import Document
from retrievers.embedded import PairScores
from retrievers.errors import BackendError
from retrievers.facts import RerankerFacts, RetrieverFacts
from retrievers.identity import text_keys
from retrievers.meter import Call, Meter, Stop, single_call
from retrievers.model import Reranker, TextPair, is_reranker, load_model, model_facts
from retrievers.options.placeholders import instantiate
from retrievers.options.python_objects import reranker_table
from retrievers.passage import Passage
from retrievers.query import Query
from retrievers.ranking import SCORE_RESOLUTION, Floats, Ranking, ranked, round_scores
from retrievers.resources import Resources, own_resources
from retrievers.retriever import Retriever, check_retriever, read_facts
from retrievers.services.concurrency import completed

PairPositions = Sequence[Sequence[int]]
"""Groups of pairs, as positions in `_ScoringPlan.pairs`."""


class _ScoringPlan(NamedTuple):
    """The pairs of several queries, and how they are scored."""

    pairs: Sequence[TextPair]
    """The distinct pairs; of a listwise reranker all pairs of each distinct list."""
    keys: Sequence[bytes]
    """The pairs' keys in the cache, all different."""
    request_positions: PairPositions
    """The pairs of each request."""
    query_positions: PairPositions
    """The pairs of each query, in the order of its hits."""


class Reranked(Retriever):
    """Another retriever, its first hits put into a better order.

    Args:
        retriever: the first stage, which finds the hits.
        reranker: scores pairs of a query and a document: a CrossEncoder's name, folder
            or object, a table, or a reranker.
        depth: how many hits of each query are reranked; None for the reranker's own
            depth, or 10. A search may return more hits: the others stay below them.

    >>> from retrievers import BM25
    >>> reranked = Reranked(BM25(), "cross-encoder/ms-marco-MiniLM-L6-v2", depth=20)
    >>> reranked.to_config()["rerank"]["depth"]
    20
    """

    def __init__(
        self, retriever: Retriever, reranker: Any, *, depth: int | None = None
    ) -> None:
        check_retriever("retriever", retriever)
        self._first_stage = retriever
        self._reranker_source = reranker
        self._depth = depth
        self._reranker: Reranker | None = None
        self._resources: Resources | None = None
        if is_reranker(reranker) and depth is None:
            self._reranker = reranker
        else:
            self._reranker_table()  # raises InputError for what is no model

    @property
    def reranker(self) -> Reranker:
        """The reranker, which is created on first use."""
        if self._reranker is None:
            options = self._reranker_table()
            self._reranker = instantiate(reranker_class(options.pop("kind")), options)
        return self._reranker

    @property
    def answers_here(self) -> bool:
        """Whether the reranker runs on this machine, and its model is loaded."""
        return self.reranker.runs_here and self.reranker.is_loaded

    def to_config(self) -> dict[str, Any]:
        """Return its table in an experiment file."""
        return {
            "kind": "rerank",
            "of": self._first_stage.to_config(),
            "rerank": self._reranker_table(),
        }

    def _reranker_table(self) -> dict[str, Any]:
        return reranker_table(self._reranker_source, self._depth)

    @property
    def parts(self) -> tuple[Retriever, ...]:
        """The first stage."""
        return (self._first_stage,)

    @property
    def facts(self) -> RetrieverFacts:
        """What the first stage uses, and the reranker, in place of one below it."""
        reranker = RerankerFacts(
            model=model_facts(self.reranker), depth=self.reranker.depth
        )
        return replace(read_facts(self._first_stage), reranker=reranker)

    def with_parts(self, parts: tuple[Retriever, ...]) -> Reranked:
        """Return a reranked retriever with this reranker and another first stage."""
        return Reranked(parts[0], self.reranker)

    def check(self) -> None:
        """Check the reranker's requirements, such as a key."""
        self.reranker.check()

    def setup(self, resources: Resources) -> None:
        """Receive the run's cache, and its documents, which the reranker reads."""
        self._resources = resources

    @property
    def _run_resources(self) -> Resources:
        if self._resources is None:
            raise RuntimeError("index or setup comes before a search")
        return self._resources

    def index(self, documents: Iterable[Document], meter: Meter) -> None:
        """Index the first stage."""
        if self._resources is None:
            self._resources = own_resources(self, documents)
            documents = self._resources.corpus
        self._first_stage.index(documents, meter)

    def search(
        self, queries: Sequence[Query], depth: int, meter: Meter
    ) -> list[Ranking]:
        """Return each query's hits, the first of them ordered by the reranker.

        Args:
            queries: they are searched together.
            depth: how many hits the first stage finds.
            meter: times and counts the stages.
        """
        candidates = self._first_stage.search(queries, depth, meter)
        pair_counts = [min(self.reranker.depth, len(ranking)) for ranking in candidates]
        with meter.stage("rerank", total=sum(pair_counts)):
            return self.rerank(queries, candidates, meter)

    def answer(self, query: Query, depth: int, meter: Meter) -> Ranking:
        """Rank for one query; its scores are neither read from the cache nor stored."""
        candidates = self._first_stage.answer(query, depth, meter)
        with meter.stage("rerank"):
            return self.rerank_alone(query, candidates, meter)

    def rerank_alone(self, query: Query, candidates: Ranking, meter: Meter) -> Ranking:
        """Rerank one query's hits without the cache, as latency is measured."""
        load_model(self.reranker, meter)
        [pairs] = self._query_pairs([query], [candidates])
        scores = np.zeros(len(pairs))
        for positions in self.reranker.batches(pairs):
            request_pairs = [pairs[i] for i in positions]
            scored = self._send_request(request_pairs, single_call(meter))
            scores[list(positions)] = scored.scores
        return rank_reranked_first(candidates, scores)

    def rerank(
        self, queries: Sequence[Query], candidates: Sequence[Ranking], meter: Meter
    ) -> list[Ranking]:
        """Rerank every query's hits through the cache.

        Pairs of similar length from all queries share requests, unless the reranker is
        listwise. The first hits, up to the reranker's `depth`, are ordered by their
        scores, the others stay in their order below them. The meter counts `texts`
        (distinct pairs), `cached` and `lost_tokens`, and notes the queries with a pair
        that was truncated, as "truncated-pair"; the reranker counts calls, tokens and
        dollars in it.

        Raises:
            BackendError: a request failed for good (the other scores are stored), or
                its scores are too few or too many, or not finite.
        """
        plan = self._plan(self._query_pairs(queries, candidates))
        scored = self._score_pairs(plan, meter)
        meter.count(lost_tokens=int(scored.truncated_tokens.sum()))
        reranked = []
        for query, ranking, positions in zip(
            queries, candidates, plan.query_positions, strict=True
        ):
            if scored.truncated_tokens[positions].any():
                meter.note("truncated-pair", query.id)
            reranked.append(rank_reranked_first(ranking, scored.scores[positions]))
        return reranked

    def _query_pairs(
        self, queries: Sequence[Query], candidates: Sequence[Ranking]
    ) -> list[list[TextPair]]:
        """Return the pairs of each query and its first hits."""
        first_hits = [ranking.doc_ids[: self.reranker.depth] for ranking in candidates]
        distinct_ids = set().union(*first_hits)
        documents = self._run_resources.corpus.contents(distinct_ids)
        pairs_by_query = []
        for query, doc_ids in zip(queries, first_hits, strict=True):
            pairs = [(query.text, documents[doc_id].content) for doc_id in doc_ids]
            pairs_by_query.append(pairs)
        return pairs_by_query

    def _plan(self, pairs_by_query: Sequence[Sequence[TextPair]]) -> _ScoringPlan:
        """Return the distinct pairs of all queries, and how they are scored."""
        if self.reranker.is_listwise:
            return self._plan_lists(pairs_by_query)
        distinct = sorted(set().union(*pairs_by_query), key=_request_order)
        position_of_pair = {pair: i for i, pair in enumerate(distinct)}
        pair_texts = map(_pair_text, distinct)
        query_positions = [
            list(map(position_of_pair.__getitem__, pairs)) for pairs in pairs_by_query
        ]
        return _ScoringPlan(
            pairs=distinct,
            keys=text_keys(self.reranker.fingerprint, "pair", pair_texts),
            request_positions=list(self.reranker.batches(distinct)),
            query_positions=query_positions,
        )

    def _plan_lists(self, pairs_by_query: Sequence[Sequence[TextPair]]) -> _ScoringPlan:
        """Return the plan for a reranker whose scores depend on the whole list.

        Each distinct list occurs once. A pair's key depends on its list; and, since two
        documents of a list may have one text but not one score, on which of the equal
        pairs it is.
        """
        start_of_list: dict[tuple[TextPair, ...], int] = {}
        key_texts: list[str] = []
        pairs: list[TextPair] = []
        request_positions: list[list[int]] = []
        for distinct_list in dict.fromkeys(map(tuple, pairs_by_query)):
            start = len(pairs)
            start_of_list[distinct_list] = start
            request_positions.extend(
                _shift_positions(positions, start)
                for positions in self.reranker.batches(distinct_list)
            )
            list_text = "".join(map(_pair_text, distinct_list))
            encoded_text = list_text.encode("utf-8", "surrogatepass")
            digest = hashlib.blake2b(encoded_text).hexdigest()
            occurrences: Counter[TextPair] = Counter()
            for pair in distinct_list:
                repetition = f"-{occurrences[pair]}" if pair in occurrences else ""
                occurrences[pair] += 1
                key_texts.append(f"{digest}{repetition} {_pair_text(pair)}")
            pairs += distinct_list
        query_positions = []
        for query_pairs in pairs_by_query:
            start = start_of_list[tuple(query_pairs)]
            query_positions.append(range(start, start + len(query_pairs)))
        keys = text_keys(self.reranker.fingerprint, "list", key_texts)
        return _ScoringPlan(pairs, keys, request_positions, query_positions)

    def _score_pairs(self, plan: _ScoringPlan, meter: Meter) -> PairScores:
        """Return the pairs' scores: those in the cache, and those that are requested.

        Each answer is cached at once, so a stopped run resumes.
        """
        cache = self._run_resources.cache
        pair_count = len(plan.pairs)
        all_scores = PairScores(
            scores=np.zeros(pair_count),
            tokens=np.zeros(pair_count, dtype=np.int64),
            truncated_tokens=np.zeros(pair_count, dtype=np.int64),
        )
        cached_positions, cached_scores = cache.get_scores(plan.keys)
        _set_scores(all_scores, cached_positions.tolist(), cached_scores)
        missing = set(range(pair_count)).difference(cached_positions.tolist())
        requests = self._missing_requests(plan, missing)
        sent_count = sum(map(len, requests))
        cached_count = pair_count - sent_count
        # The others are added to `texts` when their scores arrive: it is the progress.
        meter.count(texts=cached_count, cached=cached_count)
        if not requests:
            return all_scores
        load_model(self.reranker, meter)

        def send(positions: list[int], stopped: Stop) -> PairScores:
            pairs = [plan.pairs[i] for i in positions]
            return self._send_request(pairs, Call(meter, stopped))

        answers = completed(send, requests, width=self.reranker.concurrency)
        for positions, scored in answers:
            keys = [plan.keys[i] for i in positions]
            cache.put_scores(self.reranker.fingerprint, keys, scored)
            meter.count(texts=len(positions))
            _set_scores(all_scores, positions, scored)
        return all_scores

    def _missing_requests(
        self, plan: _ScoringPlan, missing: set[int]
    ) -> list[list[int]]:
        """Return the positions of the pairs to send, request by request.

        Cached pairs are left out; but a listwise request is sent whole if any of its
        pairs is missing, since each score depends on the whole list.
        """
        requests = []
        for planned_positions in plan.request_positions:
            positions = [i for i in planned_positions if i in missing]
            if positions and self.reranker.is_listwise:
                positions = list(planned_positions)
            if positions:
                requests.append(positions)
        return requests

    def _send_request(self, pairs: Sequence[TextPair], call: Call) -> PairScores:
        """Send one request and check the answer."""
        scores, tokens, truncated = self.reranker.score(pairs, call)
        if not len(scores) == len(tokens) == len(truncated) == len(pairs):
            raise BackendError(
                f"returned {len(scores)} scores, with {len(tokens)} and "
                f"{len(truncated)} counts of tokens, for {len(pairs)} pairs"
            )
        not_finite = np.flatnonzero(~np.isfinite(scores))
        if len(not_finite):
            number = int(not_finite[0]) + 1
            problem = f"the score of pair {number} of {len(scores)} is NaN or infinity"
            raise BackendError(problem)
        return PairScores(np.asarray(scores, dtype=np.float64), tokens, truncated)


def _set_scores(
    all_scores: PairScores, positions: Sequence[int], scored: PairScores
) -> None:
    """Write scores, tokens and truncated tokens of some pairs into those of all."""
    for all_numbers, numbers in zip(all_scores, scored, strict=True):
        all_numbers[list(positions)] = numbers


def _shift_positions(positions: Iterable[int], start: int) -> list[int]:
    """Return positions in a list as positions among those of all lists."""
    return [start + i for i in positions]


def _request_order(pair: TextPair) -> tuple[int, TextPair]:
    """Return the sorting key by which pairs of similar length share requests."""
    query, document = pair
    return len(query) + len(document), pair


def _pair_text(pair: TextPair) -> str:
    """Return one text for a pair, different for every pair."""
    query, document = pair
    return f"{len(query)} {query}{document}"


def rank_reranked_first(candidates: Ranking, scores: Floats) -> Ranking:
    """Rank the first candidates by their scores: as many as there are scores.

    The others follow below them, in their order. Passages follow their documents: those
    of the first document come first, in the order that they had.
    """
    if not len(scores):
        return candidates
    # Four rounding steps apart, so that `round_scores` never ties them; as if the
    # largest score were 1 or more, since all of them may be 0.
    step = 4 * SCORE_RESOLUTION * max(float(np.abs(scores).max()), 1.0)
    unscored_count = len(candidates) - len(scores)
    lower_scores = float(scores.min()) - step * np.arange(1, unscored_count + 1)
    all_scores = np.concatenate([scores, lower_scores])
    reranked = ranked(candidates.doc_ids, round_scores(all_scores))
    reranked = reranked.with_trace(candidates.trace)
    if candidates.passages is None:
        return reranked
    return reranked.with_passages(_order_by_document(candidates.passages, reranked))


def _order_by_document(
    passages: Sequence[Passage], ranking: Ranking
) -> Iterator[Passage]:
    """Yield passages in the order of their documents, with the documents' scores.

    Passages of documents that were not among the candidates come last, in their order,
    with the last document's score.
    """
    rank_by_document = {doc_id: rank for rank, doc_id in enumerate(ranking.doc_ids)}
    last_score = float(ranking.scores[-1])

    def rank(passage: Passage) -> int:
        return rank_by_document.get(passage.document, len(ranking))

    scores = dict(ranking)
    for passage in sorted(passages, key=rank):
        yield passage._replace(score=scores.get(passage.document, last_score))
