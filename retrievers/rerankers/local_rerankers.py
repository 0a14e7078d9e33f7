"""Rerankers on this machine.

A cross-encoder reads a query with a document and returns a score. Late interaction
reads each alone, and compares the vectors of their tokens. `local/local_model.py` loads
the models and divides a request into calls.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field

from retrievers.embedded import PairScores, Role
from retrievers.errors import InputError, Problem
from retrievers.facts import Fact, ModelFacts
from retrievers.local.local_model import LocalModel, TokenCounts
from retrievers.local.model_class import ModelClass, has_token_vectors, is_trained_as
from retrievers.local.padding import padded_behind
from retrievers.local.text_limits import (
    count_role_tokens,
    prompt_of_role,
    stored_prompts,
)
from retrievers.meter import Call, Stop
from retrievers.model import Reranker, TextPair
from retrievers.options.tables import PositiveInt, TextOrObject
from retrievers.texts.token_estimate import Tokens

MIN_VECTOR_LENGTH = 1e-12
"""Shorter vectors of tokens stay shorter than 1: no division by zero."""


class LocalReranker(LocalModel, Reranker):
    """A reranker with a local model; a kind adds its fingerprint and how it scores."""

    table_name = "rerank"

    model: TextOrObject
    """A folder, or a name of the hub: of a cross-encoder with one output, for late
    interaction any embedding model."""
    candidate_depth: PositiveInt = Field(default=10, alias="depth")
    """How many candidates of each query are read again."""

    @property
    def depth(self) -> int:  # type: ignore[override]
        """How many candidates of each query are scored."""
        return self.candidate_depth

    @property
    def facts(self) -> ModelFacts:
        """What the manifest records: the model, its weights' source, and the depth."""
        facts = super().facts
        depth = Fact("depth", str(self.depth))
        return replace(facts, settings=(*facts.settings, depth))

    def count(self, texts: Sequence[str]) -> Tokens:
        """Return the tokens of texts, each as one side of a pair.

        The model is not loaded.
        """
        return count_role_tokens(self.weights.snapshot, "document", texts)


class CrossEncoderReranker(LocalReranker):
    """Orders the first `depth` candidates by a cross-encoder's raw score; the others
    keep their order beneath.

    Raw scores (logits) are used, since the usual sigmoid makes ties of high ones and
    never changes an order.
    """  # noqa: D205

    kind = "cross-encoder"
    class_name = "CrossEncoder"

    @property
    def fingerprint(self) -> str:
        """All that changes a score: weights, dtype, backend, and the model's prompt."""
        prompt = self.weights.default_prompt
        return self._fingerprint_of(**({"prompt": prompt} if prompt else {}))

    def score(self, pairs: Sequence[TextPair], call: Call) -> PairScores:
        """Score the pairs of one request."""
        outputs = self._loaded.model.num_labels
        if outputs != 1:
            problem = f"{self.weights.name_as_written} has {outputs} outputs, not one"
            raise InputError(Problem("rerank.model", problem))
        logits, tokens = self.logits(pairs, call.stopped)
        call.meter.count(calls=1, tokens=int(tokens.read.sum()))
        return PairScores(logits.reshape(len(pairs)), tokens.read, tokens.truncated)

    @property
    def labels(self) -> Mapping[int, str]:
        """The names of the outputs in the model's configuration; loads the model."""
        return getattr(self._loaded.model.config, "id2label", None) or {}

    def logits(
        self, pairs: Sequence[TextPair], stopped: Stop | None = None
    ) -> tuple[npt.NDArray[np.float64], TokenCounts]:
        """Return the outputs for each pair, before any activation, and its tokens."""
        model = self._loaded.model
        prompt = (model.prompts or {}).get(model.default_prompt_name) or ""
        tokens = self._count_read(
            [(prompt + query, document) for query, document in pairs]
        )
        predict = self._predict_function(model)
        rows = self._run(pairs, tokens.read, predict, stopped)
        return np.asarray(rows, dtype=np.float64), tokens

    def _predict_function(self, model: Any) -> Any:
        """Return the library's function that scores pairs."""
        import torch

        return partial(
            model.predict, activation_fn=torch.nn.Identity(), show_progress_bar=False
        )

    def _warm_up(self, model: Any) -> None:
        self._predict_function(model)([("a", "b")], batch_size=1)


class _TokenMatrices(NamedTuple):
    """The token vectors of some texts, at length 1."""

    matrices: list[npt.NDArray[np.float32]]
    tokens: TokenCounts


class LateInteractionReranker(LocalReranker):
    """Orders candidates by how well each token of the query is met by some token of the
    document.

    The score is the mean, over the query's tokens, of the largest cosine with any of
    the document's: MaxSim of ColBERT (Khattab & Zaharia 2020), which has the sum in
    place of the mean, and so the same order. A MultiVectorEncoder, which was trained
    for it, reads queries and documents as its files define; any other
    sentence-transformers model supplies its token vectors.
    """  # noqa: D205

    kind = "late-interaction"
    class_name = "SentenceTransformer"
    # Queries may be padded, documents are not, with one tokenizer for both.
    threaded = False

    def model_post_init(self, _: object) -> None:
        """Check the model's files, if they are on this machine.

        Raises:
            InputError: they are of another type of model, or of a static one.
        """
        super().model_post_init(None)
        folder = self.weights.snapshot
        if folder is not None and not has_token_vectors(folder):
            raise InputError(self._no_token_vectors())

    def _no_token_vectors(self) -> Problem:
        problem = f"{self.weights.name_as_written} has no vectors of tokens"
        remedy = "it is a static model: name one that reads texts whole"
        return Problem("rerank.model", problem, remedy)

    @property
    def fingerprint(self) -> str:
        """All that changes a score: the weights, dtype and backend."""
        options = {"trained": True} if self._is_trained else {}
        return self._fingerprint_of(**options)

    def count(self, texts: Sequence[str]) -> Tokens:
        """Return the tokens of texts, each as one side of a pair.

        The model is not loaded.
        """
        prompt = ""
        if self._is_trained:
            prompts = stored_prompts(self.weights.snapshot)
            prompt = prompt_of_role(prompts, "document")
        return super().count([prompt + text for text in texts])

    def score(self, pairs: Sequence[TextPair], call: Call) -> PairScores:
        """Score the pairs of one request."""
        query_texts = [query for query, _ in pairs]
        document_texts = [document for _, document in pairs]
        queries = self._token_matrices(query_texts, "query", call.stopped)
        documents = self._token_matrices(document_texts, "document", call.stopped)
        scores = []
        for query, document in zip(queries.matrices, documents.matrices, strict=True):
            cosines = query @ document.T
            scores.append(float(cosines.max(axis=1).mean()))
        tokens = queries.tokens.read + documents.tokens.read
        call.meter.count(calls=1, tokens=int(tokens.sum()))
        return PairScores(
            scores=np.asarray(scores, dtype=np.float64),
            tokens=tokens,
            truncated_tokens=queries.tokens.truncated + documents.tokens.truncated,
        )

    @property
    def _is_trained(self) -> bool:
        """Whether the model was trained for late interaction, by its files."""
        folder = self.weights.snapshot
        return folder is not None and is_trained_as(folder, "MultiVectorEncoder")

    def _class(self) -> ModelClass:
        return "MultiVectorEncoder" if self._is_trained else "SentenceTransformer"

    def _load(self) -> Any:
        model = super()._load()
        # The files of a model of the hub are on this machine only now.
        if type(model).__name__ != self._class():
            problem = (
                f"{self.weights.name_as_written} is a MultiVectorEncoder, "
                "which was not known before its files were here"
            )
            raise InputError(
                Problem("rerank.model", problem, "run again: now it is known")
            )
        return model

    def _warm_up(self, model: Any) -> None:
        """Do nothing: only one thread calls the model."""

    def _token_matrices(
        self, texts: Sequence[str], role: Role, stopped: Stop
    ) -> _TokenMatrices:
        """Return the token vectors of one side of some pairs.

        Raises:
            InputError: the model has no vectors of tokens; its files may not show it.
        """
        model = self._loaded.model
        prompt = ""
        options: dict[str, Any] = {}
        if self._is_trained:
            prompt = prompt_of_role(model.prompts, role)
            options["task"] = role
        encode = partial(
            model.encode,
            output_value="token_embeddings",
            show_progress_bar=False,
            prompt=prompt,
            **options,
        )
        tokens = self._count_read([prompt + text for text in texts], role)
        try:
            with padded_behind(model):
                rows = self._run(texts, tokens.read, encode, stopped)
        except KeyError:  # a static model
            raise InputError(self._no_token_vectors()) from None
        matrices = []
        for row in rows:
            vectors = row.float().cpu().numpy()
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            matrices.append(vectors / np.maximum(lengths, MIN_VECTOR_LENGTH))
        return _TokenMatrices(matrices, tokens)
