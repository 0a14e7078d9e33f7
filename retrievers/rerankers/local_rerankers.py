"""Rerankers on this machine."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from retrievers.embedded import PairScores, Role
from retrievers.errors import InputError, Problem
from retrievers.local.local_model import LocalModel, TokenCounts
from retrievers.local.text_limits import (
    ModelClass,
    count_role_tokens,
    is_trained_as,
    prompt_of_role,
    stored_prompts,
)
from retrievers.meter import Call, Stop
from retrievers.model import Reranker, TextPair
from retrievers.options.tables import PositiveInt, TextOrObject
from retrievers.texts.token_estimate import Tokens


class LocalReranker(LocalModel, Reranker):
    """A reranker over a local model; a kind adds its fingerprint and how it scores."""

    table_name = "rerank"

    model: TextOrObject
    """A folder, or a name of the hub: of a cross-encoder with one output, for late interaction any embedding model."""
    candidate_depth: PositiveInt = Field(default=10, alias="depth")
    """How many candidates of each query are read again."""

    @property
    def depth(self) -> int:  # type: ignore[override]
        """How many candidates of each query are read again."""
        return self.candidate_depth

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps: the model, where its weights come from, which they are, and the depth."""
        return {**super().provenance, "depth": str(self.depth)}

    def count(self, texts: Sequence[str]) -> Tokens:
        """Count the tokens of texts, each as one side of a pair, without loading the model."""
        return count_role_tokens(self.weights.snapshot, "document", texts)


class CrossEncoderReranker(LocalReranker):
    """Orders the first `depth` candidates by a cross-encoder's raw score; the others keep their order beneath.

    Raw scores (logits), since the usual sigmoid makes ties of high ones and never changes an order.
    """

    kind = "cross-encoder"
    library = "CrossEncoder"

    @property
    def fingerprint(self) -> str:
        """All that changes a score: the weights, dtype and backend, and the prompt of a model that has one."""
        prompt = self.weights.default_prompt
        return self._named(**({"prompt": prompt} if prompt else {}))

    def score(self, pairs: Sequence[TextPair], call: Call) -> PairScores:
        """Score the pairs of one request."""
        if (outputs := self._loaded.model.num_labels) != 1:
            raise InputError(
                Problem(
                    "rerank.model",
                    f"{self.weights.name_as_written} has {outputs} outputs, not one",
                )
            )
        logits, tokens = self.logits(pairs, call.stopped)
        call.meter.count(calls=1, tokens=int(tokens.read.sum()))
        return PairScores(logits.reshape(len(pairs)), *tokens)

    @property
    def labels(self) -> Mapping[int, str]:
        """What the model's configuration calls its outputs; loads the model."""
        return getattr(self._loaded.model.config, "id2label", None) or {}

    def logits(
        self, pairs: Sequence[TextPair], stopped: Stop | None = None
    ) -> tuple[npt.NDArray[np.float64], TokenCounts]:
        """Return what the model gives each pair, before any activation, and the tokens that it read."""
        model = self._loaded.model
        prompt = (model.prompts or {}).get(model.default_prompt_name) or ""
        tokens = self._tokens([(prompt + first, second) for first, second in pairs])
        rows = self._run(pairs, tokens.read, self._call(model), stopped)
        return np.asarray(rows, dtype=np.float64), tokens

    def _call(self, model: Any) -> Any:
        import torch

        return partial(
            model.predict, activation_fn=torch.nn.Identity(), show_progress_bar=False
        )

    def _set_up(self, model: Any) -> None:
        self._call(model)([("a", "b")], batch_size=1)


class LateInteractionReranker(LocalReranker):
    """Orders candidates by how well each token of the query is met by some token of the document.

    The score is the mean, over the query's tokens, of the largest cosine with any of the document's: MaxSim of
    ColBERT (Khattab & Zaharia 2020). A MultiVectorEncoder, which was trained for it, reads queries and documents in
    the ways that its files name; any other sentence-transformers model lends its token vectors.
    """

    kind = "late-interaction"
    library = "SentenceTransformer"
    threaded = (
        False  # queries may be filled up, documents are not: one tokenizer for both
    )

    @property
    def fingerprint(self) -> str:
        """All that changes a score: the weights, dtype and backend."""
        return self._named(**({"trained": True} if self._trained else {}))

    def count(self, texts: Sequence[str]) -> Tokens:
        """Count the tokens of texts, each as one side of a pair, without loading the model."""
        prompt = (
            prompt_of_role(stored_prompts(self.weights.snapshot), "document")
            if self._trained
            else ""
        )
        return super().count([prompt + text for text in texts])

    def score(self, pairs: Sequence[TextPair], call: Call) -> PairScores:
        """Score the pairs of one request."""
        asked, candidates = zip(*pairs, strict=True)
        queries, first = self._side(asked, "query", call.stopped)
        documents, second = self._side(candidates, "document", call.stopped)
        scores = [
            float((q @ d.T).max(axis=1).mean())
            for q, d in zip(queries, documents, strict=True)
        ]
        tokens = TokenCounts(
            first.read + second.read, first.truncated + second.truncated
        )
        call.meter.count(calls=1, tokens=int(tokens.read.sum()))
        return PairScores(np.asarray(scores, dtype=np.float64), *tokens)

    @property
    def _trained(self) -> bool:
        """Whether the model was trained for late interaction, as its files say."""
        folder = self.weights.snapshot
        return folder is not None and is_trained_as(folder, "MultiVectorEncoder")

    def _class(self) -> ModelClass:
        return "MultiVectorEncoder" if self._trained else "SentenceTransformer"

    def _load(self) -> Any:
        model = super()._load()
        if (
            type(model).__name__ != self._class()
        ):  # of the hub's, the files are here only now
            what = f"{self.weights.name_as_written} is a MultiVectorEncoder, which was not known before its files were here"
            raise InputError(
                Problem("rerank.model", what, "run again: now it is known")
            )
        return model

    def _set_up(self, model: Any) -> None:
        """Nothing: it is called by one thread."""

    def _side(
        self, texts: Sequence[str], role: Role, stopped: Stop
    ) -> tuple[list[npt.NDArray[np.float32]], TokenCounts]:
        """Return the token vectors of one side of some pairs, of length 1, and the tokens that were read."""
        model = self._loaded.model
        prompt, task = (
            (prompt_of_role(model.prompts, role), {"task": role})
            if self._trained
            else ("", {})
        )
        encode = partial(
            model.encode,
            output_value="token_embeddings",
            show_progress_bar=False,
            **task,
        )
        tokens = self._tokens([prompt + text for text in texts], role)
        try:
            rows = self._run(
                texts, tokens.read, partial(encode, prompt=prompt), stopped
            )
        except KeyError:  # a static model
            raise InputError(
                Problem(
                    "rerank.model",
                    f"{self.weights.name_as_written} has no vectors of tokens",
                )
            ) from None
        vectors = [row.float().cpu().numpy() for row in rows]
        return [
            one / np.maximum(np.linalg.norm(one, axis=1, keepdims=True), 1e-12)
            for one in vectors
        ], tokens
