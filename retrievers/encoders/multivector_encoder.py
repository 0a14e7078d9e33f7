"""A vector for each token, through sentence-transformers: what late interaction compares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from retrievers.errors import InputError, Problem
from retrievers.local.forward import scored_tokens
from retrievers.local.models import LocalEncoder
from retrievers.meter import Call
from retrievers.ragged import Form, TokenVectors
from retrievers.types import Embedded, Role


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

    def embed(self, texts: Sequence[str], role: Role, call: Call) -> Embedded:
        """Give each token of the texts a vector, on the next free copy of the model."""
        import torch

        with self._replicas.one(len(texts)) as model, torch.inference_mode():
            read = self._replicas.read(model, texts, self._prompt(role, model.prompts) or "", role)
            tokens = scored_tokens(model, read.features, role, call.stopped)
        if tokens is None:
            raise InputError(Problem("encoder.model", f"{self._weights.model} has no vectors of tokens"))
        call.meter.count(calls=1, tokens=int(read.tokens.sum()))
        return Embedded(TokenVectors.of(tokens), read.tokens, read.truncated_tokens)
