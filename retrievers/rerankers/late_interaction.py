"""Reranking without a cross-encoder: the tokens of query and document, embedded apart, are matched one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from retrievers.cache import Scored
from retrievers.errors import InputError, Problem
from retrievers.fingerprints import fingerprint
from retrievers.local.forward import moved
from retrievers.rerankers.cross_encoder import CrossEncoderReranker, Pair
from retrievers.types import Counts

if TYPE_CHECKING:
    import torch


class _Side(NamedTuple):
    """The tokens of one side of some pairs."""

    vectors: torch.Tensor
    """(pairs, length, dimensions), of length 1."""
    mask: torch.Tensor
    """(pairs, length): what is no padding."""
    tokens: Counts
    lost: Counts


class LateInteractionReranker(CrossEncoderReranker):
    """Orders candidates by how well each token of the query is met by some token of the document.

    The score is the mean, over the query's tokens, of the largest cosine with any of the document's: MaxSim of
    ColBERT (Khattab & Zaharia 2020), by the token vectors of any sentence-transformers model, which was not trained
    for it. It takes the options of a cross-encoder; `model` is an embedding model.
    """

    _kind = "SentenceTransformer"

    @property
    def fingerprint(self) -> str:
        """All that changes a score: the weights, dtype and backend."""
        return fingerprint(
            "late-interaction",
            self._weights.name,
            weights=self._weights.revision,
            dtype=self._dtype,
            backend=self._backend,
        )

    def _score(self, pairs: Sequence[Pair]) -> Scored:
        import torch

        with self._replicas.one(len(pairs)) as model, torch.inference_mode():
            queries, documents = (self._side(model, texts) for texts in zip(*pairs, strict=True))
            cosines = torch.einsum("pqd,pkd->pqk", queries.vectors, documents.vectors)
            best = cosines.masked_fill(~documents.mask[:, None, :], -1).amax(dim=2)
            scores = (best * queries.mask).sum(dim=1) / queries.mask.sum(dim=1)
        tokens = queries.tokens + documents.tokens
        self._meter.count(calls=1, tokens=int(tokens.sum()))
        return Scored(scores.double().cpu().numpy(), tokens, queries.lost + documents.lost)

    def _side(self, model: Any, texts: Sequence[str]) -> _Side:
        import torch

        read = self._replicas.read(model, texts)
        found = model(moved(read.features, model.device))
        if "token_embeddings" not in found:
            raise InputError(Problem("rerank.model", f"{self._weights.model} has no vectors of tokens"))
        vectors = torch.nn.functional.normalize(found["token_embeddings"].float(), dim=2)
        return _Side(vectors, found["attention_mask"].bool(), read.tokens, read.lost)
