"""Encoders of sentence-transformers."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from retrievers.embedded import Embedded, Role
from retrievers.encoders.local_encoder import LocalEncoder
from retrievers.errors import InputError, Problem
from retrievers.local.text_limits import stored_prompts
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

_E5 = re.compile(
    r"(multilingual-)?e5-(small|base|large)(-v2|-unsupervised)?", re.IGNORECASE
)
"""Models trained with "query: " and "passage: " that do not say so in their files (Wang et al. 2022, 2024)."""


class SentenceTransformerEncoder(LocalEncoder):
    """Embeds with a SentenceTransformer: a folder, the `offline` package, or a model of the hub.

    Nothing is loaded, and no heavy library imported, before the first `embed` (or `concurrency`).
    """

    kind = "sentence-transformers"
    library = "SentenceTransformer"
    supports_late_chunking: ClassVar[bool] = True

    query_prompt: str | None = None
    """Put before every query; left out, what the model's files say, and e5's "query: "."""
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
        """Describe the model; raises InputError."""
        given = super()._prompts
        if both := [
            role for role in given if given[role] is not None and self._names[role]
        ]:
            raise InputError(
                Problem(
                    f"encoder.{both[0]}_prompt",
                    "is given twice: by name and as text",
                    "write one",
                )
            )
        super().model_post_init(None)
        if self.weights.snapshot is not None:
            for role in given:
                self._prompt(
                    role, stored_prompts(self.weights.snapshot)
                )  # a name that the model lacks is told now

    @property
    def _names(self) -> Mapping[Role, str]:
        return {
            "query": expand(self.query_prompt_name),
            "document": expand(self.document_prompt_name),
        }

    @property
    def _defaults(self) -> Mapping[Role, str | None]:
        e5 = _E5.fullmatch(Path(expand(self.model)).name)
        return {
            "query": "query: " if e5 else None,
            "document": "passage: " if e5 else None,
        }

    @property
    def _prompts(self) -> Mapping[Role, str | None]:
        return {
            role: self._defaults[role] if text is None else text
            for role, text in super()._prompts.items()
        }

    @property
    def fingerprint(self) -> str:
        """All that changes a vector: the weights, the prompts, normalisation, dimensions, dtype, backend."""
        return self._of(self._prompts, self._names)

    def fingerprint_for(self, role: Role) -> str:
        """All that changes a vector in this role: not the prompt of the other."""
        names: dict[Role, str] = {"query": "", "document": "", role: self._names[role]}
        return self._of({**self._defaults, role: self._prompts[role]}, names)

    def _of(self, prompts: Mapping[Role, str | None], names: Mapping[Role, str]) -> str:
        own = {"prompt_names": names} if any(names.values()) else {}
        return self._named(
            prompts=prompts,
            **own,
            normalize=self.normalize,
            truncate_dim=self.truncate_dim,
        )

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps: the model, where its weights come from, which they are."""
        dimensions = (
            {} if self.truncate_dim is None else {"dimensions": str(self.truncate_dim)}
        )
        return {**super().provenance, **dimensions}

    def _shown(self) -> Mapping[Role, str | None]:
        """The prompts that are sent, the model's own among them."""
        snapshot, held = self.weights.snapshot, self.weights.model_object
        own = (
            getattr(held, "prompts", {})
            if snapshot is None
            else stored_prompts(snapshot)
        )
        return {role: self._prompt(role, own) for role in self._prompts}

    def embed_passages(
        self, passages: Sequence[str], documents: Sequence[str], call: Call
    ) -> Embedded:
        """Embed passages by late chunking (Günther et al. 2024): the mean of the document's token vectors over each.

        A passage that the model does not read in its document is embedded alone, and counted as truncated.
        """
        model = self._loaded.model
        prompt = self._prompt("document", model.prompts) or ""
        wholes = list(dict.fromkeys(documents))
        tokens = self._tokens([prompt + whole for whole in wholes])
        read = partial(
            model.encode_document,
            prompt=prompt,
            show_progress_bar=False,
            output_value="token_embeddings",
            convert_to_numpy=False,
        )
        rows = dict(
            zip(wholes, self._run(wholes, tokens.read, read, call.stopped), strict=True)
        )
        call.meter.count(calls=1, tokens=int(tokens.read.sum()))
        found = [
            self._within(rows[whole], prompt, whole, one)
            for one, whole in zip(passages, documents, strict=True)
        ]
        unread = np.array([one is None for one in found])
        alone = [
            passage for passage, one in zip(passages, found, strict=True) if one is None
        ]
        more = iter(
            np.asarray(self.embed(alone, "document", call).vectors) if alone else []
        )
        counts = self._tokens(list(passages)).read
        return Embedded(
            self._vectors([next(more) if one is None else one for one in found]),
            counts,
            unread * counts,
        )

    def _within(self, row: Any, prompt: str, whole: str, passage: str) -> Any:
        """The mean vector of a passage's tokens among those of its document; None where they were not all read."""
        spans = self._loaded.tokenizer.encode(prompt + whole).offsets
        spans = (
            spans if len(spans) == len(row) else spans[: len(row) - 1]
        )  # its end was cut off
        start = whole.find(passage) + len(prompt)
        end = start + len(passage)
        inside = [place for place, (a, b) in enumerate(spans) if start <= a < b <= end]
        if start < len(prompt) or not inside or max(b for _, b in spans) < end:
            return None
        return row[inside].mean(0).float().numpy()[: self.truncate_dim]

    def _wanted(self, model: Any) -> dict[str, Any]:
        return {"truncate_dim": self.truncate_dim}

    def _vectors(self, rows: Sequence[Any]) -> AnyVectors:
        """The vectors of one request; scaled here, since the library scales a bfloat16 vector in bfloat16."""
        vectors = np.stack(rows).astype(np.float32)
        return unit_rows(vectors) if self.normalize else vectors

    def _prompt(self, role: Role, own: Mapping[str, str | None]) -> str | None:
        """What is put before a text: as the experiment says it, or by its name, or as the model's files have it.

        Empty ones of the model's are passed over: the library writes them for "query" and "document" where a model has
        "passage" alone.
        """
        name = self._names[role]
        if not name:
            return (
                super()._prompt(
                    role, {key: prompt for key, prompt in own.items() if prompt}
                )
                or self._prompts[role]
            )
        if name not in own:
            known, what = (
                ", ".join(map(repr, own)) or "none",
                f"the model's configuration has no prompt {name!r}",
            )
            raise InputError(
                Problem(f"encoder.{role}_prompt_name", what, f"it has {known}")
            )
        return own[name]


class LearnedSparseEncoder(LocalEncoder):
    """Weighs words with a SparseEncoder, such as SPLADE: a folder, or a model of the hub.

    Queries and documents go the ways that the model has for them, also where queries need no inference. Nothing is
    loaded, and no heavy library imported, before the first `embed` (or `concurrency`).
    """

    form: ClassVar[VectorForm] = "sparse"
    kind = "sparse-encoder"
    library = "SparseEncoder"

    max_active_dims: PositiveInt | None = None
    """Keep so many of the largest weights of a text; left out, what the model's files say."""

    @property
    def _own(self) -> Mapping[str, object]:
        return {"max_active_dims": self.max_active_dims}

    def _wanted(self, model: Any) -> dict[str, Any]:
        if model.similarity_fn_name not in ("cosine", "dot"):
            what = f"the model compares vectors by {model.similarity_fn_name}: only dot and cosine are searched by"
            raise InputError(Problem("encoder.model", what))
        return {**self._own, "convert_to_sparse_tensor": False, "save_to_cpu": True}

    def _vectors(self, rows: Sequence[Any]) -> AnyVectors:
        """The weights of one request; of a model that compares by cosine, scaled to length 1."""
        import torch

        weights = torch.stack(list(rows)).float()
        if self._loaded.model.similarity_fn_name == "cosine":
            weights = torch.nn.functional.normalize(weights, dim=1)
        return SparseVectors.from_dense(weights.numpy())


class LateInteractionEncoder(LocalEncoder):
    """Gives each token a vector with a MultiVectorEncoder, such as ColBERT: a folder, or a model of the hub.

    It reads what sentence-transformers, PyLate and Stanford's ColBERT have saved. Nothing is loaded, and no heavy
    library imported, before the first `embed` (or `concurrency`).
    """

    form: ClassVar[VectorForm] = "multivector"
    kind = "multivector-encoder"
    library = "MultiVectorEncoder"
    threaded: ClassVar[bool] = (
        False  # queries are filled up, documents are not: one tokenizer for both
    )

    def _wanted(self, model: Any) -> dict[str, Any]:
        return {"convert_to_numpy": True}

    def _vectors(self, rows: Sequence[Any]) -> AnyVectors:
        return TokenVectors.from_matrices(
            [row.astype(np.float32, copy=False) for row in rows]
        )
