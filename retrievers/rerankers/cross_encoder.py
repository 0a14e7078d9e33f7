"""Reranking by a cross-encoder, which reads the query together with each of the first candidates."""

from __future__ import annotations

from collections.abc import Sequence

from retrievers.errors import InputError, Problem
from retrievers.local.forward import outputs
from retrievers.local.models import LocalReranker
from retrievers.meter import Call
from retrievers.types import Pair, PairScores


class CrossEncoderReranker(LocalReranker):
    """Orders the first `depth` candidates by a cross-encoder's raw score; the others keep their order beneath.

    Raw scores (logits), since the usual sigmoid makes ties of high ones and never changes an order.
    """

    kind = "cross-encoder"
    library = "CrossEncoder"

    @property
    def fingerprint(self) -> str:
        """All that changes a score: the weights, dtype and backend."""
        return self._named()

    def score(self, pairs: Sequence[Pair], call: Call) -> PairScores:
        """Score the pairs of one request on the next free copy of the model."""
        import torch

        with self._replicas.one(len(pairs)) as model, torch.inference_mode():
            if model.num_labels != 1:
                what = f"{self._weights.model} has {model.num_labels} outputs, not one"
                raise InputError(Problem("rerank.model", what))
            read = self._replicas.read(model, pairs)
            scores = outputs(model, read.features, "scores", call.stopped).double().reshape(len(pairs)).cpu().numpy()
        call.meter.count(calls=1, tokens=int(read.tokens.sum()))
        return PairScores(scores, read.tokens, read.truncated_tokens)
