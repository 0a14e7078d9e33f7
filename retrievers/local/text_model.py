"""What the encoders of several vectors a text share: a model of sentence-transformers that treats roles in two ways."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from retrievers.errors import InputError, Problem, check_positive
from retrievers.fingerprints import fingerprint
from retrievers.local.models import Backend, Dtype, ModelInput, Replicas, Setup
from retrievers.local.sides import Library, is_trained_as, prompt_of, side_of, side_tokens, stored_prompt
from retrievers.local.weights import Weights
from retrievers.tokens import Tokens
from retrievers.types import Encoder, Role, runs


class TextOptions(NamedTuple):
    """How a model is loaded and read; the encoders' docstrings describe each."""

    model: str
    revision: str
    query_prompt: str | None
    document_prompt: str | None
    device: str
    dtype: Dtype
    batch_size: int
    backend: Backend
    trust_remote_code: bool


class TextModel:
    """A model that is loaded at its first use by one class of sentence-transformers."""

    def __init__(self, options: TextOptions, library: Library, kind: str) -> None:
        """Describe the model; raises InputError where its files are here and are of another sort of model.

        Args:
            options: of the encoder.
            library: the class of sentence-transformers.
            kind: of the encoder.
        """
        check_positive("encoder", batch_size=options.batch_size)
        self._options = options
        self._library: Library = library
        self._kind = kind
        self.weights = Weights(options.model, options.revision)
        self._check_trained()
        setup = Setup(self.weights, options.dtype, options.backend, options.trust_remote_code)
        self.replicas: Replicas[Any] = Replicas(setup, options.device, lambda device: self._load(setup, device))

    @property
    def batch_size(self) -> int:
        """Texts per request."""
        return self._options.batch_size

    def fingerprint(self, **parts: object) -> str:
        """Name all that changes a vector: the weights, the prompts, dtype, backend, and the parts that are given."""
        options = self._options
        return fingerprint(
            self._kind,
            self.weights.name,
            weights=self.weights.revision,
            prompts={"query": options.query_prompt, "document": options.document_prompt},
            dtype=options.dtype,
            backend=options.backend,
            **parts,
        )

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps: the model, where its weights come from, which they are, its prompts."""
        given: dict[Role, str | None] = {
            "query": self._options.query_prompt,
            "document": self._options.document_prompt,
        }
        prompts = {f"{role}_prompt": prompt for role, prompt in given.items() if prompt is not None}
        return {**self.weights.provenance, "dtype": self._options.dtype, "backend": self._options.backend, **prompts}

    @property
    def reads(self) -> int | None:
        """Tokens of a document that the model reads, as its files say; None where nobody knows, or it reads all."""
        folder = self.weights.snapshot
        limit = side_of(folder, "document").limit if folder else None
        return limit if limit is not None and limit < 1 << 31 else None

    def tokens(self, texts: Sequence[str], role: Role, *, whole: bool) -> Tokens:
        """Count the tokens that the model reads, or with `whole` all, without loading it."""
        folder, prompt = self.weights.snapshot, self._given(role)
        prompt = stored_prompt(folder, role) if prompt is None else prompt
        return side_tokens(folder, role, [prompt + text for text in texts], whole=whole)

    def read(self, model: Any, texts: Sequence[str], role: Role) -> ModelInput:
        """Turn texts into what a copy of the model is given."""
        prompt = self._given(role)
        return self.replicas.read(model, texts, prompt_of(model.prompts, role) if prompt is None else prompt, role)

    def _given(self, role: Role) -> str | None:
        return self._options.query_prompt if role == "query" else self._options.document_prompt

    def _load(self, setup: Setup, device: str) -> Any:
        model = setup.load(self._library, device)
        self._check_trained()  # of the hub's, the files are here now
        return model

    def _check_trained(self) -> None:
        folder = self.weights.snapshot
        if folder is not None and not is_trained_as(folder, self._library):
            what = f"{self.weights.model} is no {self._library}: layers with random weights would be put on top of it"
            raise InputError(Problem("model", what, f"name a model that was trained as a {self._library}"))


class TextModelEncoder(Encoder):
    """What every encoder over a `TextModel` answers alike; a kind adds its fingerprint and how it embeds."""

    def __init__(self, model: TextModel) -> None:
        """Take the model, which is loaded at its first use."""
        self._model = model

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
        """Split texts into runs of the batch size, so that texts of like length are padded together."""
        return runs(len(texts), self._model.batch_size)
