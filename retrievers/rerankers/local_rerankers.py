"""Reranking on this machine: by a cross-encoder, or by matching the tokens of query and document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrievers.costs import Tokens
from retrievers.errors import InputError, Problem
from retrievers.local.forward import ModelInput, ScoredTokens, Setup, max_sim, outputs, token_vectors
from retrievers.local.model_files import is_trained_as, prompt_of, stored_prompts
from retrievers.local.models import LocalReranker
from retrievers.meter import Call
from retrievers.types import Pair, PairScores, Role


class CrossEncoderReranker(LocalReranker):
    """Orders the first `depth` candidates by a cross-encoder's raw score; the others keep their order beneath.

    Raw scores (logits), since the usual sigmoid makes ties of high ones and never changes an order.
    """

    kind = "cross-encoder"
    library = "CrossEncoder"

    @property
    def fingerprint(self) -> str:
        """All that changes a score: the weights, dtype and backend, and the prompt of a model that has one."""
        prompt = self._weights.default_prompt
        return self._named(**({"prompt": prompt} if prompt else {}))

    def score(self, pairs: Sequence[Pair], call: Call) -> PairScores:
        """Score the pairs of one request on the next free copy of the model."""
        import torch

        with self._replicas.one(len(pairs)) as model, torch.inference_mode():
            if model.num_labels != 1:
                what = f"{self._weights.model} has {model.num_labels} outputs, not one"
                raise InputError(Problem("rerank.model", what))
            read = self._replicas.read(model, pairs, model.prompts.get(model.default_prompt_name) or "")
            scores = outputs(model, read.features, "scores", call.stopped).double().reshape(len(pairs)).cpu().numpy()
        call.meter.count(calls=1, tokens=int(read.tokens.sum()))
        return PairScores(scores, read.tokens, read.truncated_tokens)


class LateInteractionReranker(LocalReranker):
    """Orders candidates by how well each token of the query is met by some token of the document.

    The score is the mean, over the query's tokens, of the largest cosine with any of the document's: MaxSim of
    ColBERT (Khattab & Zaharia 2020). A MultiVectorEncoder, which was trained for it, reads queries and documents in
    the ways that its files name; any other sentence-transformers model lends its token vectors.
    """

    kind = "late-interaction"
    library = "SentenceTransformer"

    @property
    def fingerprint(self) -> str:
        """All that changes a score: the weights, dtype and backend."""
        return self._named(**({"trained": True} if self._trained else {}))

    def count(self, texts: Sequence[str]) -> Tokens:
        """Count the tokens of texts, each as one side of a pair, without loading the model."""
        prompt = prompt_of(stored_prompts(self._weights.snapshot), "document") if self._trained else ""
        return super().count([prompt + text for text in texts])

    def score(self, pairs: Sequence[Pair], call: Call) -> PairScores:
        """Score the pairs of one request on the next free copy of the model."""
        import torch

        with self._replicas.one(len(pairs)) as model, torch.inference_mode():
            asked, candidates = zip(*pairs, strict=True)
            (queries, first), (documents, second) = (
                self._side(model, asked, "query"), self._side(model, candidates, "document")
            )  # fmt: skip
            scores = max_sim(queries, documents) / queries.mask.sum(dim=1)
        tokens = first.tokens + second.tokens
        call.meter.count(calls=1, tokens=int(tokens.sum()))
        return PairScores(scores.double().cpu().numpy(), tokens, first.truncated_tokens + second.truncated_tokens)

    @property
    def _trained(self) -> bool:
        """Whether the model was trained for late interaction, as its files say."""
        folder = self._weights.snapshot
        return folder is not None and is_trained_as(folder, "MultiVectorEncoder")

    def _load(self, setup: Setup, device: str) -> Any:
        trained = self._trained
        model = setup.load("MultiVectorEncoder" if trained else "SentenceTransformer", device)
        if self._trained != trained:  # of the hub's, the files are here only now
            what = f"{self._weights.model} is a MultiVectorEncoder, which was not known before its files were here"
            raise InputError(Problem("rerank.model", what, "run again: now it is known"))
        return model

    def _side(self, model: Any, texts: Sequence[str], role: Role) -> tuple[ScoredTokens, ModelInput]:
        """Return the vectors of one side of some pairs, of length 1, and what was read."""
        import torch

        if self._trained:
            read = self._replicas.read(model, texts, prompt_of(model.prompts, role), role)
            tokens = token_vectors(model, read.features, role)
        else:
            read = self._replicas.read(model, texts)
            tokens = token_vectors(model, read.features)
        if tokens is None:
            raise InputError(Problem("rerank.model", f"{self._weights.model} has no vectors of tokens"))
        vectors = torch.nn.functional.normalize(tokens.vectors, dim=2)
        return ScoredTokens(vectors, tokens.mask), read
