"""Learned sparse vectors, through sentence-transformers: a weight for each word of a vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from retrievers.errors import InputError, Problem, check_positive
from retrievers.local.forward import outputs
from retrievers.local.models import LocalEncoder
from retrievers.meter import Stop
from retrievers.ragged import Form, SparseVectors
from retrievers.types import Role


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
