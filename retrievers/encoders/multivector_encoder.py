"""A vector for each token, through sentence-transformers: what late interaction compares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from retrievers.errors import InputError, Problem
from retrievers.local.late_interaction import scored_tokens
from retrievers.local.models import Backend, Dtype
from retrievers.local.text_model import TextModel, TextOptions
from retrievers.meter import Call
from retrievers.ragged import Form, TokenVectors
from retrievers.tokens import Tokens
from retrievers.types import Embedded, Encoder, Role, runs

KIND = "multivector-encoder"


class LateInteractionEncoder(Encoder):
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
        self._model = TextModel(options, "MultiVectorEncoder", KIND)
        self._batch_size = batch_size

    @property
    def fingerprint(self) -> str:
        """All that changes a vector: the weights, the prompts, dtype, backend."""
        return self._model.fingerprint()

    @property
    def at_hand(self) -> bool:
        """Whether the weights are on this machine, so that the fingerprint needs no network."""
        return self._model.weights.at_hand

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps: the model, where its weights come from, which they are."""
        return self._model.provenance

    def count(self, texts: Sequence[str], role: Role) -> Tokens:
        """Count the tokens that the model would read, without loading it; estimated where it is not on this machine."""
        return self._model.tokens(texts, role, whole=False)

    @property
    def reads(self) -> int | None:
        """Tokens of one document that the model reads, as its files say; None where they are not on this machine."""
        return self._model.reads

    def lengths(self, texts: Sequence[str], role: Role) -> Tokens:
        """Count the tokens of whole texts, as `count` does."""
        return self._model.tokens(texts, role, whole=True)

    @property
    def concurrency(self) -> int:
        """Requests at once: one for each device, several on a processor; loads the model."""
        return len(self._model.replicas)

    def batches(self, texts: Sequence[str], role: Role) -> Iterable[Sequence[int]]:
        """Split texts into runs of `batch_size`, so that texts of like length are padded together."""
        return runs(len(texts), self._batch_size)

    def embed(self, texts: Sequence[str], role: Role, call: Call) -> Embedded:
        """Give each token of the texts a vector, on the next free copy of the model."""
        import torch

        with self._model.replicas.one(len(texts)) as model, torch.inference_mode():
            read = self._model.read(model, texts, role)
            tokens = scored_tokens(model, read.features, role)
        if tokens is None:
            raise InputError(Problem("encoder.model", f"{self._model.weights.model} has no vectors of tokens"))
        call.meter.count(calls=1, tokens=int(read.tokens.sum()))
        return Embedded(TokenVectors.of(tokens), read.tokens, read.lost)
