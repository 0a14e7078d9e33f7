"""A vector for each token, through sentence-transformers: what late interaction compares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from retrievers.errors import InputError, Problem
from retrievers.local.forward import scored_tokens
from retrievers.local.models import LocalEncoder
from retrievers.meter import Stop
from retrievers.ragged import Form, TokenVectors
from retrievers.types import Role


class LateInteractionEncoder(LocalEncoder):
    """Gives each token a vector with a MultiVectorEncoder, such as ColBERT: a folder, or a model of the hub.

    It reads what sentence-transformers, PyLate and Stanford's ColBERT have saved. Nothing is loaded, and no heavy
    library imported, before the first `embed` (or `concurrency`).
    """

    form: ClassVar[Form] = "multivector"
    kind = "multivector-encoder"
    library = "MultiVectorEncoder"

    @property
    def fingerprint(self) -> str:
        """All that changes a vector: the weights, the prompts, dtype, backend."""
        return self._named(prompts=self._prompts)

    def _vectors(self, model: Any, features: Mapping[str, Any], role: Role, stopped: Stop) -> TokenVectors:
        tokens = scored_tokens(model, features, role, stopped)
        if tokens is None:
            raise InputError(Problem("encoder.model", f"{self._weights.model} has no vectors of tokens"))
        return TokenVectors.of(tokens)
