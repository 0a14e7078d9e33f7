"""Local models, through sentence-transformers: a vector a text, a weight for each word, a vector for each token."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from retrievers.errors import InputError, Problem, check_positive
from retrievers.local.forward import outputs, scored_tokens
from retrievers.local.model_files import prompt_of, stored_prompts
from retrievers.local.models import LocalEncoder
from retrievers.meter import Stop
from retrievers.ragged import Form, SparseVectors, TokenVectors
from retrievers.types import Role, Vectors

_E5 = re.compile(r"(multilingual-)?e5-(small|base|large)(-v2|-unsupervised)?", re.IGNORECASE)
"""Models trained with "query: " and "passage: " that do not say so in their files (Wang et al. 2022, 2024)."""


class SentenceTransformerEncoder(LocalEncoder):
    """Embeds with a SentenceTransformer: a folder, the `offline` package, or a model of the hub.

    Nothing is loaded, and no heavy library imported, before the first `embed` (or `concurrency`).
    """

    kind = "sentence-transformers"
    library = "SentenceTransformer"
    by_role = False

    def __init__(
        self, model: str, *, query_prompt: str | None = None, document_prompt: str | None = None,
        query_prompt_name: str = "", document_prompt_name: str = "", normalize: bool = True,
        truncate_dim: int | None = None, **options: Any,
    ) -> None:  # fmt: skip
        """Describe the model.

        Args:
            model: a folder, or a name of the hub.
            query_prompt: put before every query; left out, what the model's files say, and e5's "query: ".
            document_prompt: put before every document; left out, likewise, and e5's "passage: ".
            query_prompt_name: a prompt that the model's own configuration names, for queries: "s2p_query".
            document_prompt_name: likewise, for documents.
            normalize: scale vectors to length 1.
            truncate_dim: keep so many leading dimensions (Matryoshka models).
            options: of every local model.
        """
        check_positive(self.where, truncate_dim=truncate_dim)
        known = ("query: ", "passage: ") if _E5.fullmatch(Path(model).name) else (None, None)
        self._defaults: dict[Role, str | None] = {"query": known[0], "document": known[1]}
        given: dict[Role, str | None] = {"query": query_prompt, "document": document_prompt}
        self._names: dict[Role, str] = {"query": query_prompt_name, "document": document_prompt_name}
        if both := [role for role in given if given[role] is not None and self._names[role]]:
            raise InputError(Problem(f"encoder.{both[0]}_prompt", "stands beside a name of one", "write one"))
        super().__init__(model, **options)
        self._prompts = {role: self._defaults[role] if text is None else text for role, text in given.items()}
        if self._weights.snapshot is not None:
            for role in given:
                self._prompt(role, stored_prompts(self._weights.snapshot))  # a name that the model lacks is told now
        self._normalize = normalize
        self._truncate_dim = truncate_dim

    @property
    def fingerprint(self) -> str:
        """All that changes a vector: the weights, the prompts, normalisation, dimensions, dtype, backend."""
        return self._of(self._prompts, self._names)

    def fingerprint_for(self, role: Role) -> str:
        """All that changes a vector in this role: not the prompt of the other."""
        unnamed: dict[Role, str] = {"query": "", "document": ""}
        return self._of(self._defaults | {role: self._prompts[role]}, unnamed | {role: self._names[role]})

    def _of(self, prompts: Mapping[Role, str | None], names: Mapping[Role, str]) -> str:
        own = {"prompt_names": names} if any(names.values()) else {}
        return self._named(prompts=prompts, **own, normalize=self._normalize, truncate_dim=self._truncate_dim)

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps: the model, where its weights come from, which they are."""
        dimensions = {} if self._truncate_dim is None else {"dimensions": str(self._truncate_dim)}
        return {**super().provenance, **dimensions}

    def _shown(self) -> Mapping[Role, str | None]:
        """The prompts that are sent, the model's own among them."""
        snapshot, held = self._weights.snapshot, self._weights.held
        own = getattr(held, "prompts", {}) if snapshot is None else stored_prompts(snapshot)
        return {role: self._prompt(role, own) for role in self._prompts}

    def _vectors(self, model: Any, features: Mapping[str, Any], role: Role, stopped: Stop) -> Vectors:
        import torch

        embeddings = outputs(model, features, "sentence_embedding", stopped)[:, : self._truncate_dim]
        if self._normalize:
            embeddings = torch.nn.functional.normalize(embeddings, dim=1)
        vectors: Vectors = embeddings.cpu().numpy()
        return vectors

    def _prompt(self, role: Role, own: Mapping[str, str | None]) -> str | None:
        """What is put before a text: as the experiment says it, or by its name, or as the model's files have it.

        Empty ones of the model's are passed over: the library writes them for "query" and "document" where a model has
        "passage" alone.
        """
        if name := self._names[role]:
            if name not in own:
                known = ", ".join(map(repr, own)) or "none"
                what = f"the model's configuration has no prompt {name!r}"
                raise InputError(Problem(f"encoder.{role}_prompt_name", what, f"it has {known}"))
            return own[name]
        if self._prompts[role] is not None:
            return self._prompts[role]
        return prompt_of({key: prompt for key, prompt in own.items() if prompt}, role) or None


class LearnedSparseEncoder(LocalEncoder):
    """Weighs words with a SparseEncoder, such as SPLADE: a folder, or a model of the hub.

    Queries and documents go the ways that the model has for them, also where queries need no inference. Nothing is
    loaded, and no heavy library imported, before the first `embed` (or `concurrency`).
    """

    form: ClassVar[Form] = "sparse"
    kind = "sparse-encoder"
    library = "SparseEncoder"

    def __init__(self, model: str, *, max_active_dims: int | None = None, **options: Any) -> None:
        """Describe the model.

        Args:
            model: a folder, or a name of the hub.
            max_active_dims: keep so many of the largest weights of a text; left out, what the model's files say.
            options: of every local encoder.
        """
        check_positive(self.where, max_active_dims=max_active_dims)
        super().__init__(model, **options)
        self._max_active_dims = max_active_dims

    @property
    def fingerprint(self) -> str:
        """All that changes a vector: the weights, the prompts, how many are kept, dtype, backend."""
        return self._named(prompts=self._prompts, max_active_dims=self._max_active_dims)

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps: the model, where its weights come from, which they are."""
        most = {} if self._max_active_dims is None else {"max_active_dims": str(self._max_active_dims)}
        return {**super().provenance, **most}

    def _vectors(self, model: Any, features: Mapping[str, Any], role: Role, stopped: Stop) -> SparseVectors:
        """The weights of one request; of a model that compares by cosine, scaled to length 1."""
        import torch
        from sentence_transformers.util import select_max_active_dims

        most = model.max_active_dims if self._max_active_dims is None else self._max_active_dims
        cut = {} if most is None else {"max_active_dims": most}
        weights = outputs(model, features, "sentence_embedding", stopped, **cut)
        if most is not None:
            weights = select_max_active_dims(weights, max_active_dims=most)
        if model.similarity_fn_name == "cosine":
            weights = torch.nn.functional.normalize(weights, dim=1)
        elif model.similarity_fn_name != "dot":
            what = f"the model compares vectors by {model.similarity_fn_name}: only dot and cosine are searched by"
            raise InputError(Problem("encoder.model", what))
        return SparseVectors.of(weights.cpu().numpy())


class LateInteractionEncoder(LocalEncoder):
    """Gives each token a vector with a MultiVectorEncoder, such as ColBERT: a folder, or a model of the hub.

    It reads what sentence-transformers, PyLate and Stanford's ColBERT have saved. Nothing is loaded, and no heavy
    library imported, before the first `embed` (or `concurrency`).
    """

    form: ClassVar[Form] = "multivector"
    kind = "multivector-encoder"
    library = "MultiVectorEncoder"

    def _vectors(self, model: Any, features: Mapping[str, Any], role: Role, stopped: Stop) -> TokenVectors:
        tokens = scored_tokens(model, features, role, stopped)
        if tokens is None:
            raise InputError(Problem("encoder.model", f"{self._weights.model} has no vectors of tokens"))
        return TokenVectors.of(tokens)
