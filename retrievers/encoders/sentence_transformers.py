"""Encoders of sentence-transformers.

One class for each form of vectors: dense, sparse, one for each token.
`local_encoder.py` has what they share, with how a request is embedded.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from retrievers.embedded import Embedded, Role
from retrievers.encoders.local_encoder import LocalEncoder
from retrievers.errors import BackendError, InputError, Problem
from retrievers.facts import ModelFacts
from retrievers.local.forward_pass import (
    EncodedText,
    counts_tokens,
    encode_texts,
    grouping_lengths,
)
from retrievers.local.model_class import has_token_vectors
from retrievers.local.padding import padded_behind
from retrievers.local.text_limits import (
    UNLIMITED_TOKENS,
    RoleReading,
    count_tokens,
    stored_prompts,
)
from retrievers.meter import Call
from retrievers.options.placeholders import expand
from retrievers.options.tables import PositiveInt
from retrievers.ragged import (
    AnyVectors,
    SparseVectors,
    TokenVectors,
    VectorForm,
    unit_rows,
)
from retrievers.texts.token_estimate import Counts

_E5_NAME = re.compile(
    r"(multilingual-)?e5-(small|base|large)(-v2|-unsupervised)?", re.IGNORECASE
)
"""Models trained with "query: " and "passage: ", of which their files have nothing
(Wang et al. 2022, 2024)."""


class SentenceTransformerEncoder(LocalEncoder):
    """Embeds with a SentenceTransformer: a folder, the `offline` package, or a model of
    the hub.

    Nothing is loaded, and no large library imported, before the first `embed` (or
    `concurrency`).
    """  # noqa: D205

    kind = "sentence-transformers"
    class_name = "SentenceTransformer"
    supports_late_chunking: ClassVar[bool] = True

    query_prompt: str | None = None
    """Put before every query; left out, what the model's files say, and e5's
    "query: "."""
    document_prompt: str | None = None
    """Put before every document; left out, likewise, and e5's "passage: "."""
    query_prompt_name: str = ""
    """A prompt that the model's own configuration names, for queries: "s2p_query"."""
    document_prompt_name: str = ""
    """Likewise, for documents."""
    normalize: bool = True
    """Scale vectors to length 1."""
    truncate_dim: PositiveInt | None = None
    """Keep so many leading dimensions (Matryoshka models)."""

    def model_post_init(self, _: object) -> None:
        """Check the prompts, and the model's files if they are on this machine.

        Raises:
            InputError: a prompt is set twice, or unknown; or the files are of another
                type of model.
        """
        given_prompts = super()._prompts
        for role, prompt in given_prompts.items():
            if prompt is not None and self._prompt_names[role]:
                problem = "is given twice: by name and as text"
                raise InputError(
                    Problem(f"encoder.{role}_prompt", problem, "write one")
                )
        super().model_post_init(None)
        if self.weights.snapshot is not None:
            model_prompts = stored_prompts(self.weights.snapshot)
            for role in given_prompts:
                self._prompt(role, model_prompts)  # raises for an unknown name

    @property
    def has_token_vectors(self) -> bool:
        """Whether the model gives a vector for each token; a static model does not."""
        folder = self.weights.snapshot
        return folder is None or has_token_vectors(folder)

    @property
    def _prompt_names(self) -> Mapping[Role, str]:
        return {
            "query": expand(self.query_prompt_name),
            "document": expand(self.document_prompt_name),
        }

    @property
    def _default_prompts(self) -> Mapping[Role, str | None]:
        """The prompts that the model's family is trained with."""
        if _E5_NAME.fullmatch(Path(expand(self.model)).name):
            return {"query": "query: ", "document": "passage: "}
        return {"query": None, "document": None}

    @property
    def _prompts(self) -> Mapping[Role, str | None]:
        """The experiment's prompts, or those of the model's family."""
        prompts = dict(super()._prompts)
        for role, default_prompt in self._default_prompts.items():
            if prompts[role] is None:
                prompts[role] = default_prompt
        return prompts

    @property
    def fingerprint(self) -> str:
        """All that changes a vector: weights, prompts, normalisation, dimensions."""
        return self._fingerprint_with(self._prompts, self._prompt_names)

    def fingerprint_for(self, role: Role) -> str:
        """Return all that changes a vector in this role, without the other's prompt."""
        prompts = {**self._default_prompts, role: self._prompts[role]}
        names: dict[Role, str] = {"query": "", "document": ""}
        names[role] = self._prompt_names[role]
        return self._fingerprint_with(prompts, names)

    def _fingerprint_with(
        self, prompts: Mapping[Role, str | None], names: Mapping[Role, str]
    ) -> str:
        """Return the fingerprint with these prompts and names of prompts."""
        options: dict[str, Any] = {"prompts": prompts}
        if any(names.values()):
            options["prompt_names"] = names
        return self._fingerprint_of(
            **options, normalize=self.normalize, truncate_dim=self.truncate_dim
        )

    @property
    def facts(self) -> ModelFacts:
        """What the manifest records: the model, and the source of its weights."""
        return replace(super().facts, dimensions=self.truncate_dim)

    def _recorded_prompts(self) -> Mapping[Role, str | None]:
        """Return the prompts that are sent, also the model's own."""
        model_prompts = getattr(self.weights.model_object, "prompts", {})
        if self.weights.snapshot is not None:
            model_prompts = stored_prompts(self.weights.snapshot)
        return {role: self._prompt(role, model_prompts) for role in self._prompts}

    def embed(self, texts: Sequence[str], role: Role, call: Call) -> Embedded:
        """Embed the texts of one request; each is tokenised once."""
        if not self._counts_tokens:
            return super().embed(texts, role, call)
        model = self._loaded.model
        prompt = self._prompt(role, model.prompts) or ""
        reading = self._reading(role)
        lengths = np.zeros(len(texts), dtype=np.int64)  # a static model pads nothing
        if reading.limit < UNLIMITED_TOKENS:
            lengths = grouping_lengths(texts, reading.limit)

        def encode(batch: Sequence[str], *, batch_size: int) -> list[EncodedText]:
            return encode_texts(model, batch, prompt=prompt, role=role)

        rows = self._run(texts, lengths, encode, call.stopped)
        read_counts = np.array([row.tokens for row in rows], dtype=np.int64)
        call.meter.count(calls=1, tokens=int(read_counts.sum()))
        vectors = [row.vector[: self.truncate_dim] for row in rows]
        truncated = self._count_truncated(texts, read_counts, prompt, reading)
        return Embedded(self._vectors(vectors), read_counts, truncated)

    @cached_property
    def _counts_tokens(self) -> bool:
        """Whether a forward pass shows the tokens of each text; loads the model."""
        loaded = self._loaded
        return not loaded.workers and counts_tokens(loaded.model)

    def _count_truncated(
        self,
        texts: Sequence[str],
        read_counts: Counts,
        prompt: str,
        reading: RoleReading,
    ) -> Counts:
        """Return the tokens beyond the limit; only texts that reach it are counted."""
        truncated = np.zeros(len(texts), dtype=np.int64)
        positions = np.flatnonzero(read_counts >= reading.limit)
        if len(positions):
            whole_texts = [prompt + texts[i] for i in positions.tolist()]
            whole_counts = count_tokens(
                reading.tokenizer, whole_texts, special=reading.adds_special_tokens
            )
            truncated[positions] = np.maximum(whole_counts - read_counts[positions], 0)
        return truncated

    def embed_passages(
        self, passages: Sequence[str], documents: Sequence[str], call: Call
    ) -> Embedded:
        """Embed passages by late chunking (Günther et al. 2024).

        A passage's vector is the mean of its tokens' vectors in the document, at the
        place where its text occurs first. A passage that the model does not read in its
        document is embedded alone, and all of its tokens are counted as truncated.

        Raises:
            BackendError: the tokenizer is written in Python, and has no such places.
        """
        if not hasattr(self._loaded.tokenizer, "encode_batch_fast"):
            raise BackendError(
                f"{self.weights.name}: its tokenizer does not show where tokens are in "
                "a text, as late chunking needs: leave out chunk.late"
            )
        prompt = self._prompt("document", self._loaded.model.prompts) or ""
        token_vectors = self._token_vectors(
            list(dict.fromkeys(documents)), prompt, call
        )
        mean_vectors = [
            self._mean_vector(token_vectors[document], prompt, document, passage)
            for passage, document in zip(passages, documents, strict=True)
        ]
        unread = np.array([vector is None for vector in mean_vectors])
        unread_passages = [passages[i] for i in np.flatnonzero(unread).tolist()]
        if unread_passages:
            embedded = self.embed(unread_passages, "document", call)
            lone_vectors = np.asarray(embedded.vectors)
            for i, vector in zip(np.flatnonzero(unread), lone_vectors, strict=True):
                mean_vectors[i] = vector
        tokens = self._count_read(list(passages)).read
        return Embedded(self._vectors(mean_vectors), tokens, unread * tokens)

    def _token_vectors(
        self, documents: Sequence[str], prompt: str, call: Call
    ) -> dict[str, Any]:
        """Return the token vectors of each document, read whole."""
        tokens = self._count_read([prompt + document for document in documents])
        encode = partial(
            self._loaded.model.encode_document,
            prompt=prompt,
            show_progress_bar=False,
            output_value="token_embeddings",
            convert_to_numpy=False,
        )
        with padded_behind(self._loaded.model):
            rows = self._run(documents, tokens.read, encode, call.stopped)
        call.meter.count(calls=1, tokens=int(tokens.read.sum()))
        return dict(zip(documents, rows, strict=True))

    def _mean_vector(
        self, token_vectors: Any, prompt: str, document: str, passage: str
    ) -> Any:
        """Return the mean vector of a passage's tokens.

        None if the passage is not in the document, or was not read to its end.
        """
        spans = self._loaded.tokenizer.encode(prompt + document).offsets
        if len(spans) != len(token_vectors):
            # The document's end was cut off: the last vector is that of the end mark.
            spans = spans[: len(token_vectors) - 1]
        start = document.find(passage) + len(prompt)
        end = start + len(passage)
        positions = []
        for position, (token_start, token_end) in enumerate(spans):
            if start <= token_start < token_end <= end:
                positions.append(position)
        last_end = max((token_end for _, token_end in spans), default=0)
        is_in_document = start >= len(prompt)
        if not is_in_document or not positions or last_end < end:
            return None
        mean = token_vectors[positions].mean(0)
        return mean.float().numpy()[: self.truncate_dim]

    def _with_options(
        self, encode: Callable[..., Any], model: Any
    ) -> Callable[..., Any]:
        return partial(encode, truncate_dim=self.truncate_dim)

    def _vectors(self, rows: Sequence[Any]) -> AnyVectors:
        """Return vectors, scaled if they are to be.

        The library would scale a bfloat16 vector in bfloat16.

        Raises:
            BackendError: they have fewer dimensions than are to be kept.
        """
        vectors = np.stack(rows).astype(np.float32)
        dimensions = vectors.shape[1]
        if self.truncate_dim is not None and dimensions < self.truncate_dim:
            raise BackendError(
                f"the model's vectors have {dimensions} dimensions: "
                f"{self.truncate_dim} cannot be kept"
            )
        return unit_rows(vectors) if self.normalize else vectors

    def _prompt(
        self, role: Role, model_prompts: Mapping[str, str | None]
    ) -> str | None:
        """Return the text before a role's texts.

        It is the model's prompt that the experiment names; else the experiment's own,
        that of the model's family (e5), or the model's for the role, the first that
        there is. Empty ones of the model's do not count: the library adds them for
        "query" and "document" if a model has only "passage".

        Raises:
            InputError: the model has no prompt with the name.
        """
        name = self._prompt_names[role]
        if not name:
            prompts = {key: prompt for key, prompt in model_prompts.items() if prompt}
            return super()._prompt(role, prompts) or self._prompts[role]
        if name not in model_prompts:
            problem = f"the model's configuration has no prompt {name!r}"
            remedy = f"it has {', '.join(map(repr, model_prompts)) or 'none'}"
            raise InputError(Problem(f"encoder.{role}_prompt_name", problem, remedy))
        return model_prompts[name]


class LearnedSparseEncoder(LocalEncoder):
    """Weighs words with a SparseEncoder, such as SPLADE: a folder, or a model of the
    hub.

    Queries and documents are encoded by the model's own functions for them, also if
    queries need no inference. Nothing is loaded, and no large library imported, before
    the first `embed` (or `concurrency`).
    """  # noqa: D205

    form: ClassVar[VectorForm] = "sparse"
    kind = "sparse-encoder"
    class_name = "SparseEncoder"

    max_active_dims: PositiveInt | None = None
    """Keep so many of the largest weights of a text; left out, what the model's files
    say."""

    @property
    def _kind_options(self) -> Mapping[str, object]:
        return {"max_active_dims": self.max_active_dims}

    def _with_options(
        self, encode: Callable[..., Any], model: Any
    ) -> Callable[..., Any]:
        if model.similarity_fn_name not in ("cosine", "dot"):
            problem = (
                f"the model compares vectors by {model.similarity_fn_name}: "
                "only dot and cosine are searched by"
            )
            raise InputError(Problem("encoder.model", problem))
        return partial(
            encode,
            max_active_dims=self.max_active_dims,
            convert_to_sparse_tensor=False,
            save_to_cpu=True,
        )

    def _vectors(self, rows: Sequence[Any]) -> AnyVectors:
        """Return the weights, at length 1 if the model compares by cosine."""
        import torch

        weights = torch.stack(list(rows)).float()
        if self._loaded.model.similarity_fn_name == "cosine":
            weights = torch.nn.functional.normalize(weights, dim=1)
        return SparseVectors.from_dense(weights.numpy())


class LateInteractionEncoder(LocalEncoder):
    """Gives each token a vector with a MultiVectorEncoder, such as ColBERT: a folder,
    or a model of the hub.

    It reads what sentence-transformers, PyLate and Stanford's ColBERT have saved.
    Nothing is loaded, and no large library imported, before the first `embed` (or
    `concurrency`).
    """  # noqa: D205

    form: ClassVar[VectorForm] = "multivector"
    kind = "multivector-encoder"
    class_name = "MultiVectorEncoder"
    # Queries are padded, documents are not, with one tokenizer for both.
    threaded: ClassVar[bool] = False

    def _with_options(
        self, encode: Callable[..., Any], model: Any
    ) -> Callable[..., Any]:
        return partial(encode, convert_to_numpy=True)

    def _vectors(self, rows: Sequence[Any]) -> AnyVectors:
        matrices = [row.astype(np.float32, copy=False) for row in rows]
        return TokenVectors.from_matrices(matrices)
