"""A vector for each token, through sentence-transformers: what late interaction compares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from retrievers.errors import InputError, Problem
from retrievers.local.max_sim import scored_tokens
from retrievers.local.models import Backend, Dtype
from retrievers.local.text_model import TextModel, TextModelEncoder, TextOptions
from retrievers.meter import Call
from retrievers.ragged import Form, TokenVectors
from retrievers.types import Embedded, Role

KIND = "multivector-encoder"


class LateInteractionEncoder(TextModelEncoder):
    """Gives each token a vector with a MultiVectorEncoder, such as ColBERT: a folder, or a model of the hub.

    It reads what sentence-transformers, PyLate and Stanford's ColBERT have saved. Nothing is loaded, and no heavy
    library imported, before the first `embed` (or `concurrency`).
    """

    form: ClassVar[Form] = "multivector"

    def __init__(
        self,
        model: str,
        *,
        revision: str = "",
        query_prompt: str | None = None,
        document_prompt: str | None = None,
        device: str = "auto",
        dtype: Dtype = "float32",
        batch_size: int = 32,
        backend: Backend = "torch",
        trust_remote_code: bool = False,
    ) -> None:
        """Describe the model.

        Args:
            model: a folder, or a name of the hub.
            revision: a commit, tag or branch of the hub; without one, what is on this machine, else the newest.
            query_prompt: put before every query; left out, what the model's files say.
            document_prompt: put before every document; left out, likewise.
            device: "cpu", "cuda:1", several with commas between, or "auto": every CUDA device, else the best there is.
            dtype: numbers inside the model.
            batch_size: texts per request.
            backend: "torch", or "onnx" (needs optimum with onnxruntime).
            trust_remote_code: run code that comes with the model.
        """
        options = TextOptions(
            model, revision, query_prompt, document_prompt, device, dtype, batch_size, backend, trust_remote_code
        )
        super().__init__(TextModel(options, "MultiVectorEncoder", KIND))

    @property
    def fingerprint(self) -> str:
        """All that changes a vector: the weights, the prompts, dtype, backend."""
        return self._model.fingerprint()

    def embed(self, texts: Sequence[str], role: Role, call: Call) -> Embedded:
        """Give each token of the texts a vector, on the next free copy of the model."""
        import torch

        with self._model.replicas.one(len(texts)) as model, torch.inference_mode():
            read = self._model.read(model, texts, role)
            tokens = scored_tokens(model, read.features, role, call.stopped)
        if tokens is None:
            raise InputError(Problem("encoder.model", f"{self._model.weights.model} has no vectors of tokens"))
        call.meter.count(calls=1, tokens=int(read.tokens.sum()))
        return Embedded(TokenVectors.of(tokens), read.tokens, read.truncated_tokens)
