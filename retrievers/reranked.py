"""The first hits put into a better order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from retrievers import reranker_class
from retrievers.document import Document
from retrievers.embedded import PairScores
from retrievers.errors import BackendError
from retrievers.identity import text_keys
from retrievers.meter import Call, Meter, Stop, single_call
from retrievers.model import Reranker, TextPair, is_model, model_facts
from retrievers.options.placeholders import instantiate
from retrievers.options.python_objects import reranker_table
from retrievers.query import Query
from retrievers.ranking import SCORE_RESOLUTION, Floats, Ranking, ranked, round_scores
from retrievers.resources import Resources, own_resources
from retrievers.retriever import Retriever
from retrievers.services.concurrency import completed

PairPositions = Sequence[Sequence[int]]
RERANKER_DEPTH_FACT = "reranker depth"
"""What the manifest keeps of a reranker: how many hits of a query it read."""


class Reranked(Retriever):
    """Another retriever, its first hits put into a better order.

    Args:
        retriever: finds them.
        reranker: scores pairs of a query and a document: a CrossEncoder's name, folder or object, a table, or what
            scores pairs itself.
        depth: how many hits of each query are read again; left out, what the reranker says, else 10.

    >>> from retrievers import BM25
    >>> Reranked(BM25(), "cross-encoder/ms-marco-MiniLM-L6-v2", depth=20).to_config()["rerank"]["depth"]
    20
    """

    def __init__(
        self, retriever: Retriever, reranker: Any, *, depth: int | None = None
    ) -> None:
        self._of = retriever
        self._given = reranker, depth
        self._reranker: Reranker | None = (
            reranker if is_model(reranker) and depth is None else None
        )
        if self._reranker is None:
            reranker_table(reranker, depth)  # refuses what is none
        self._resources: Resources

    @property
    def reranker(self) -> Reranker:
        """What scores pairs; of a name, it is made when it is first asked for."""
        if self._reranker is None:
            options = reranker_table(*self._given)
            self._reranker = instantiate(reranker_class(options.pop("kind")), options)
        return self._reranker

    def to_config(self) -> dict[str, Any]:
        """Its table in an experiment file."""
        return {
            "kind": "rerank",
            "of": self._of.to_config(),
            "rerank": reranker_table(*self._given),
        }

    @property
    def parts(self) -> tuple[Retriever, ...]:
        """What finds the hits."""
        return (self._of,)

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the first stage says of itself, and the reranker."""
        model = {
            f"reranker {key}": value
            for key, value in model_facts(self.reranker).items()
        }
        return {
            **self._of.provenance,
            **model,
            RERANKER_DEPTH_FACT: str(self.reranker.depth),
        }

    def with_parts(self, parts: tuple[Retriever, ...]) -> Reranked:
        """Return the same reranker of another retriever's hits."""
        return Reranked(parts[0], self.reranker)

    def check(self) -> None:
        """Look for what the reranker needs, such as a key."""
        self.reranker.check()

    def setup(self, resources: Resources) -> None:
        """Take the run's cache, and its documents, which the reranker reads."""
        self._resources = resources

    def index(self, documents: Iterable[Document], meter: Meter) -> None:
        """Index the first stage."""
        if not hasattr(self, "_resources"):
            self.setup(own_resources(self, documents))
            documents = self._resources.corpus
        self._of.index(documents, meter)

    def search(
        self, queries: Sequence[Query], depth: int, meter: Meter
    ) -> list[Ranking]:
        """Return each query's hits, the first of them in the order of the reranker's scores."""
        before = self._of.search(queries, depth, meter)
        with meter.stage(
            "rerank",
            total=sum(min(self.reranker.depth, len(ranking)) for ranking in before),
        ):
            return self.rerank(queries, before, meter)

    def answer(self, query: Query, depth: int, meter: Meter) -> Ranking:
        """Answer one query, past every cache."""
        before = self._of.answer(query, depth, meter)
        with meter.stage("rerank"):
            return self.rerank_alone(query, before, meter)

    def rerank_alone(self, query: Query, before: Ranking, meter: Meter) -> Ranking:
        """Rerank one query's hits with the cache bypassed, as latency is measured."""
        [pairs] = self._pairs([query], [before])
        scores = np.zeros(len(pairs))
        for request in self.reranker.batches(pairs):
            scores[list(request)] = self._ask(
                [pairs[i] for i in request], single_call(meter)
            ).scores
        return rank_reranked_first(before, scores)

    def rerank(
        self, queries: Sequence[Query], before: Sequence[Ranking], meter: Meter
    ) -> list[Ranking]:
        """Rerank every query's hits through the cache, pairs of like length of all queries together.

        The first `depth` hits are in the order of their scores, the others keep their order beneath them. The meter
        counts `texts` (distinct pairs), `cached` and `lost_tokens`, and notes the queries with a pair that was
        truncated, as "truncated-pair"; the reranker itself counts calls, tokens and dollars in it.

        Raises:
            BackendError: a request failed for good (what the others brought is stored), or its scores are too few or
                too many, or not finite.
        """
        names, pairs, requests, rows = self._plan(self._pairs(queries, before))
        scored = self._scores(names, pairs, requests, meter)
        meter.count(lost_tokens=int(scored.truncated_tokens.sum()))
        for query, own in zip(queries, rows, strict=True):
            if scored.truncated_tokens[own].any():
                meter.note("truncated-pair", query.id)
        return [
            rank_reranked_first(one, scored.scores[own])
            for one, own in zip(before, rows, strict=True)
        ]

    def _pairs(
        self, queries: Sequence[Query], before: Sequence[Ranking]
    ) -> list[list[TextPair]]:
        """The texts of each query and its first hits."""
        heads = [ranking.doc_ids[: self.reranker.depth] for ranking in before]
        documents = self._resources.corpus.contents(
            {doc_id for head in heads for doc_id in head}
        )
        contents = [[documents[doc_id].content for doc_id in head] for head in heads]
        return [
            [(query.text, one) for one in own]
            for query, own in zip(queries, contents, strict=True)
        ]

    def _plan(
        self, lists: Sequence[Sequence[TextPair]]
    ) -> tuple[list[bytes], list[TextPair], PairPositions, PairPositions]:
        """Return the names of pairs in the cache, the pairs, those of each request, and those of each query.

        Each distinct pair once, pairs of like length of all queries together. Where a score depends on its companions,
        each distinct list once, whole: the name of a pair then is of its list, too.
        """
        model = self.reranker
        if not model.is_listwise:
            distinct = sorted(
                {pair for one in lists for pair in one},
                key=lambda pair: (sum(map(len, pair)), pair),
            )
            place = {pair: i for i, pair in enumerate(distinct)}
            names = text_keys(model.fingerprint, "pair", map(_text_of, distinct))
            return (
                names,
                distinct,
                list(model.batches(distinct)),
                [[place[pair] for pair in one] for one in lists],
            )
        starts: dict[tuple[TextPair, ...], int] = {}
        texts, pairs, requests = list[str](), list[TextPair](), list[list[int]]()
        for whole in dict.fromkeys(map(tuple, lists)):
            starts[whole] = len(pairs)
            requests += [
                [len(pairs) + i for i in request] for request in model.batches(whole)
            ]
            digest = hashlib.blake2b(
                "".join(map(_text_of, whole)).encode("utf-8", "surrogatepass")
            ).hexdigest()
            texts += [f"{digest} {_text_of(pair)}" for pair in whole]
            pairs += whole
        rows = [
            range(starts[tuple(one)], starts[tuple(one)] + len(one)) for one in lists
        ]
        return text_keys(model.fingerprint, "list", texts), pairs, requests, rows

    def _scores(
        self,
        names: Sequence[bytes],
        pairs: Sequence[TextPair],
        requests: PairPositions,
        meter: Meter,
    ) -> PairScores:
        """Score distinct pairs, those in the cache without the model; each finished request is stored at once."""
        cache = self._resources.cache
        held, cached = cache.get_scores(names)
        whole = PairScores(
            np.zeros(len(pairs)), *np.zeros((2, len(pairs)), dtype=np.int64)
        )

        def put(rows: Sequence[int], part: PairScores) -> None:
            for column, values in zip(whole, part, strict=True):
                column[list(rows)] = values

        def ask(some: list[int], stopped: Stop) -> PairScores:
            return self._ask([pairs[i] for i in some], Call(meter, stopped))

        put(held.tolist(), cached)
        missing = set(range(len(pairs))).difference(held.tolist())
        for request in requests if self.reranker.is_listwise else ():
            missing.update(
                request if not missing.isdisjoint(request) else ()
            )  # of a list, all is asked again
        wanted = [
            some
            for request in requests
            if (some := [i for i in request if i in missing])
        ]
        meter.count(texts=len(pairs) - len(missing), cached=len(pairs) - len(missing))
        for some, scored in completed(
            ask, wanted, width=self.reranker.concurrency if wanted else 1
        ):
            cache.put_scores(
                self.reranker.fingerprint, [names[i] for i in some], scored
            )
            meter.count(texts=len(some))
            put(some, scored)
        return whole

    def _ask(self, pairs: Sequence[TextPair], call: Call) -> PairScores:
        """Send one request and check the answer."""
        scores, tokens, truncated = self.reranker.score(pairs, call)
        if not len(scores) == len(tokens) == len(truncated) == len(pairs):
            raise BackendError(f"{len(scores)} scores came back for {len(pairs)} pairs")
        if not np.isfinite(scores).all():
            raise BackendError("a score that is not finite came back")
        return PairScores(np.asarray(scores, dtype=np.float64), tokens, truncated)


def _text_of(pair: TextPair) -> str:
    query, document = pair
    return f"{len(query)} {query}{document}"


def rank_reranked_first(candidates: Ranking, scores: Floats) -> Ranking:
    """Rank the first candidates by their scores; the others follow beneath, each a step of rounding lower."""
    if not len(scores):
        return candidates
    step = 4 * SCORE_RESOLUTION * max(float(np.abs(scores).max()), 1.0)
    beneath = float(scores.min()) - step * np.arange(
        1, len(candidates) - len(scores) + 1
    )
    return ranked(candidates.doc_ids, round_scores(np.concatenate([scores, beneath])))
