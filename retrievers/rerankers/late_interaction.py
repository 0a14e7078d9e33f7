"""Reranking without a cross-encoder: the tokens of query and document, embedded apart, are matched one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from retrievers.errors import InputError, Problem, check_positive
from retrievers.fingerprints import fingerprint
from retrievers.local.late_interaction import ScoredTokens, max_sim, token_vectors
from retrievers.local.models import Backend, Dtype, Replicas, Setup
from retrievers.local.weights import Weights
from retrievers.meter import Call
from retrievers.tokens import Tokens, folder_tokens
from retrievers.types import Counts, Pair, PairScores, Reranker, runs


class _Side(NamedTuple):
    """One side of some pairs."""

    matched: ScoredTokens
    """Its vectors, of length 1."""
    tokens: Counts
    lost: Counts


class LateInteractionReranker(Reranker):
    """Orders candidates by how well each token of the query is met by some token of the document.

    The score is the mean, over the query's tokens, of the largest cosine with any of the document's: MaxSim of
    ColBERT (Khattab & Zaharia 2020), by the token vectors of any sentence-transformers model, which was not trained
    for it.
    """

    def __init__(
        self,
        model: str,
        *,
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
            model: a folder, or a name of the hub: an embedding model.
            depth: how many candidates of each query are read again.
            revision: a commit, tag or branch of the hub; without one, what is on this machine, else the newest.
            device: as for the sentence-transformers encoder.
            dtype: numbers inside the model.
            batch_size: pairs per request.
            backend: "torch", or "onnx" (needs optimum with onnxruntime).
            trust_remote_code: run code that comes with the model.
        """
        check_positive("rerank", depth=depth, batch_size=batch_size)
        self._depth = depth
        self._weights = Weights(model, revision)
        self._dtype: Dtype = dtype
        self._batch_size = batch_size
        self._backend: Backend = backend
        setup = Setup(self._weights, dtype, backend, trust_remote_code)
        self._replicas = Replicas(setup, device, partial(setup.load, "SentenceTransformer"))

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

    @property
    def depth(self) -> int:
        """How many candidates of each query are read again."""
        return self._depth

    @property
    def concurrency(self) -> int:
        """Requests at once: one for each device, several on a processor; loads the model."""
        return len(self._replicas)

    @property
    def at_hand(self) -> bool:
        """Whether the weights lie on this machine, so that the fingerprint needs no network."""
        return self._weights.at_hand

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps: the model, where its weights come from, which they are."""
        return {**self._weights.provenance, "dtype": self._dtype, "backend": self._backend, "depth": str(self.depth)}

    def count(self, texts: Sequence[str]) -> Tokens:
        """Count the tokens of texts, each as one side of a pair, without loading the model."""
        return folder_tokens(self._weights.snapshot, texts)

    def batches(self, pairs: Sequence[Pair]) -> Iterable[Sequence[int]]:
        """Split pairs into runs of `batch_size`, so that pairs of like length are padded together."""
        return runs(len(pairs), self._batch_size)

    def score(self, pairs: Sequence[Pair], call: Call) -> PairScores:
        """Score the pairs of one request on the next free copy of the model."""
        import torch

        with self._replicas.one(len(pairs)) as model, torch.inference_mode():
            queries, documents = (self._side(model, texts) for texts in zip(*pairs, strict=True))
            scores = max_sim(queries.matched, documents.matched) / queries.matched.mask.sum(dim=1)
        tokens = queries.tokens + documents.tokens
        call.meter.count(calls=1, tokens=int(tokens.sum()))
        return PairScores(scores.double().cpu().numpy(), tokens, queries.lost + documents.lost)

    def _side(self, model: Any, texts: Sequence[str]) -> _Side:
        import torch

        read = self._replicas.read(model, texts)
        tokens = token_vectors(model, read.features)
        if tokens is None:
            raise InputError(Problem("rerank.model", f"{self._weights.model} has no vectors of tokens"))
        vectors = torch.nn.functional.normalize(tokens.vectors, dim=2)
        return _Side(ScoredTokens(vectors, tokens.mask), read.tokens, read.lost)
