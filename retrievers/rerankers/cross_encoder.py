"""Reranking: a cross-encoder reads the query together with each of the first candidates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Literal

import numpy as np

from retrievers.cache import Cache, Scored, keys
from retrievers.errors import BackendError, InputError, Problem
from retrievers.fingerprints import fingerprint
from retrievers.local.forward import outputs
from retrievers.local.models import Backend, Dtype, Replicas, Setup
from retrievers.local.weights import Weights
from retrievers.meter import Meter
from retrievers.parallel import answers
from retrievers.types import RESOLUTION, Document, Query, Ranking, ranked

Pair = tuple[str, str]


class CrossEncoderReranker:
    """Orders the first `depth` candidates by a cross-encoder's raw score; the others keep their order beneath.

    Raw scores (logits), since the usual sigmoid makes ties of high ones and never changes an order.
    """

    _kind: Literal["SentenceTransformer", "CrossEncoder"] = "CrossEncoder"

    def __init__(
        self,
        model: str,
        *,
        content: Callable[[Collection[str]], Mapping[str, Document]],
        cache: Cache,
        meter: Meter,
        depth: int = 10,
        revision: str = "",
        device: str = "auto",
        dtype: Dtype = "float32",
        batch_size: int = 32,
        backend: Backend = "torch",
        trust_remote_code: bool = False,
    ) -> None:
        """Describe the model; nothing is loaded before the first pair that is not cached.

        Args:
            model: a folder, or a name of the hub, with one output.
            content: gives documents by id.
            cache: keeps the scores.
            meter: where counts go.
            depth: how many candidates of each query are read again.
            revision: a commit, tag or branch of the hub; without one, what is on this machine, else the newest.
            device: as for the sentence-transformers encoder.
            dtype: numbers inside the model.
            batch_size: pairs per request.
            backend: "torch", or "onnx" (needs optimum with onnxruntime).
            trust_remote_code: run code that comes with the model.
        """
        for name, value in (("depth", depth), ("batch_size", batch_size)):
            if value < 1:
                raise InputError(Problem(f"rerank.{name}", f"{value} is below 1"))
        self.depth = depth
        self._content = content
        self._cache = cache
        self._meter = meter
        self._weights = Weights(model, revision)
        self._dtype: Dtype = dtype
        self._batch_size = batch_size
        self._backend: Backend = backend
        setup = Setup(self._weights, dtype, backend, trust_remote_code)
        self._replicas = Replicas(setup, device, partial(setup.load, self._kind))

    @property
    def fingerprint(self) -> str:
        """All that changes a score: the weights, dtype and backend."""
        return fingerprint(
            "cross-encoder",
            self._weights.name,
            weights=self._weights.revision,
            dtype=self._dtype,
            backend=self._backend,
        )

    @property
    def at_hand(self) -> bool:
        """Whether the weights lie on this machine, so that the fingerprint needs no network."""
        return self._weights.at_hand

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps: the model, where its weights come from, which they are."""
        return {**self._weights.provenance, "dtype": self._dtype, "backend": self._backend, "depth": str(self.depth)}

    def rerank(self, query: Query, candidates: Ranking) -> Ranking:
        """Rerank one query's candidates with the cache bypassed, as latency is measured."""
        head = candidates.doc_ids[: self.depth]
        documents = self._content(head)
        pairs = [(query.text, documents[doc_id].content) for doc_id in head]
        parts = [self._score(pairs[i : i + self._batch_size]) for i in range(0, len(pairs), self._batch_size)]
        return _above(candidates, np.concatenate([part.scores for part in parts]) if parts else np.empty(0))

    def rerank_all(self, queries: Sequence[Query], rankings: Sequence[Ranking]) -> list[Ranking]:
        """Rerank every query's candidates through the cache, pairs of like length of all queries together.

        Counts `texts` (distinct pairs), `cached`, `calls`, `tokens` and `lost_tokens`; notes the queries of which a
        pair was truncated, as "truncated-pair".

        Raises:
            BackendError: a score is not finite.
        """
        documents = self._content({doc_id for ranking in rankings for doc_id in ranking.doc_ids[: self.depth]})
        asked = [
            [(query.text, documents[doc_id].content) for doc_id in ranking.doc_ids[: self.depth]]
            for query, ranking in zip(queries, rankings, strict=True)
        ]
        distinct = sorted({pair for pairs in asked for pair in pairs}, key=lambda pair: (sum(map(len, pair)), pair))
        scored = self._scores(distinct)
        self._meter.count(lost_tokens=int(scored.lost.sum()))
        place = {pair: i for i, pair in enumerate(distinct)}
        found = []
        for query, ranking, pairs in zip(queries, rankings, asked, strict=True):
            rows = [place[pair] for pair in pairs]
            if scored.lost[rows].any():
                self._meter.note("truncated-pair", query.id)
            found.append(_above(ranking, scored.scores[rows]))
        return found

    def _scores(self, pairs: Sequence[Pair]) -> Scored:
        """Score distinct pairs, those in the cache without the model."""
        name = self.fingerprint
        names = keys(name, "pair", (f"{len(query)} {query}{document}" for query, document in pairs))
        held, cached = self._cache.get_scores(names)
        self._meter.count(texts=len(held), cached=len(held))
        whole = Scored(np.zeros(len(pairs)), *np.zeros((2, len(pairs)), dtype=np.int64))
        missing = np.ones(len(pairs), dtype=bool)
        missing[held] = False
        _put(whole, held.tolist(), cached)
        if missing.any():
            size = self._batch_size
            requests = [np.flatnonzero(missing[i : i + size]) + i for i in range(0, len(pairs), size)]
            wanted = [some.tolist() for some in requests if len(some)]

            def ask(some: list[int]) -> Scored:
                return self._score([pairs[i] for i in some])

            for some, scored in answers(ask, wanted, width=len(self._replicas), stopped=self._meter.stopped):
                self._cache.put_scores(name, [names[i] for i in some], scored)
                self._meter.count(texts=len(some))
                _put(whole, some, scored)
        return whole

    def _score(self, pairs: Sequence[Pair]) -> Scored:
        """Score the pairs of one request on the next free copy of the model."""
        import torch

        with self._replicas.one(len(pairs)) as model, torch.inference_mode():
            if model.num_labels != 1:
                what = f"{self._weights.model} has {model.num_labels} outputs, not one"
                raise InputError(Problem("rerank.model", what))
            read = self._replicas.read(model, pairs)
            scores = outputs(model, read.features, "scores").double().reshape(len(pairs)).cpu().numpy()
        if not np.isfinite(scores).all():
            raise BackendError(f"the cross-encoder {self._weights.model} gave a score that is not finite")
        self._meter.count(calls=1, tokens=int(read.tokens.sum()))
        return Scored(scores, read.tokens, read.lost)


def _put(whole: Scored, rows: Sequence[int], part: Scored) -> None:
    for column, values in zip(whole, part, strict=True):
        column[rows] = values


def _above(candidates: Ranking, scores: np.ndarray) -> Ranking:
    """Rank the first candidates by their scores; the others stand beneath, each a step of rounding lower."""
    if not len(scores):
        return candidates
    step = 4 * RESOLUTION * max(float(np.abs(scores).max()), 1.0)
    beneath = float(scores.min()) - step * np.arange(1, len(candidates) - len(scores) + 1)
    return ranked(candidates.doc_ids, np.concatenate([scores, beneath]))
