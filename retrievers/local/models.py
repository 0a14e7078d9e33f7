"""What models on this machine share: their options, what they are called, what they read of a text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from retrievers.costs import Tokens
from retrievers.errors import InputError, Problem, check_positive
from retrievers.local.forward import Backend, Dtype, Replicas, Setup
from retrievers.local.model_files import (
    UNLIMITED,
    Library,
    Weights,
    is_trained_as,
    prompt_of,
    side_of,
    side_tokens,
    stored_prompts,
)
from retrievers.meter import Call, Stop
from retrievers.ragged import AnyVectors
from retrievers.types import Embedded, Encoder, Model, Reranker, Role, fingerprint


class LocalModel(Model):
    """What encoders and rerankers share that run a model on this machine: it is loaded at its first use."""

    kind: ClassVar[str]
    """In the fingerprint."""
    library: ClassVar[Library]
    where: ClassVar[str] = "encoder"
    """The table of the experiment in which the options stand."""

    def __init__(
        self, model: str, *, revision: str = "", device: str = "auto", dtype: Dtype = "float32", batch_size: int = 32,
        backend: Backend = "torch", trust_remote_code: bool = False,
    ) -> None:  # fmt: skip
        """Describe the model; raises InputError where its files are here and are of another sort of model.

        Args:
            model: a folder, or a name of the hub.
            revision: a commit, tag or branch of the hub; without one, what is on this machine, else the newest.
            device: "cpu", "cuda:1", several with commas between, or "auto": every CUDA device, else the best there is.
            dtype: numbers inside the model; bfloat16 is faster on processors that have it.
            batch_size: texts, or pairs, per request.
            backend: "torch", or "onnx" (needs optimum with onnxruntime).
            trust_remote_code: run code that comes with the model.
        """
        check_positive(self.where, batch_size=batch_size)
        self._weights = Weights(model, revision)
        self._dtype, self._backend, self.request_size = dtype, backend, batch_size
        self._check_trained()
        setup = Setup(self._weights, dtype, backend, trust_remote_code)
        self._replicas = Replicas(setup, device, partial(self._load, setup))

    def _named(self, **parts: object) -> str:
        """The name of all that changes what comes out: the weights, dtype, backend, and the parts that are given."""
        weights = self._weights
        return fingerprint(
            self.kind, weights.name, weights=weights.revision, dtype=self._dtype, backend=self._backend, **parts
        )

    @property
    def concurrency(self) -> int:
        """Requests at once: one for each device, several on a processor; loads the model."""
        return len(self._replicas)

    @property
    def at_hand(self) -> bool:
        """Whether the weights are on this machine, so that the fingerprint needs no network."""
        return self._weights.at_hand

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps: the model, where its weights come from, which they are."""
        return {**self._weights.provenance, "dtype": self._dtype, "backend": self._backend}

    def _load(self, setup: Setup, device: str) -> Any:
        model = setup.load(self.library, device)
        self._check_trained()  # of the hub's, the files are here now
        return model

    def _check_trained(self) -> None:
        folder = self._weights.snapshot
        if folder is not None and not is_trained_as(folder, self.library):
            why = "layers with random weights would be put on top of it"
            if self.library == "SentenceTransformer":
                why = "it scores pairs, as a reranker does, and its numbers of single texts mean nothing"
            what = f"{self._weights.model} is not a {self.library}: {why}"
            raise InputError(Problem("model", what, f"name a model that was trained as a {self.library}"))


class LocalEncoder(LocalModel, Encoder):
    """An encoder over a local model; a kind adds what it makes of one request."""

    by_role: ClassVar[bool] = True
    """Whether the model itself reads queries and documents in two ways."""

    def __init__(
        self, model: str, *, query_prompt: str | None = None, document_prompt: str | None = None, **options: Any
    ) -> None:
        """Describe the model.

        Args:
            model: a folder, or a name of the hub.
            query_prompt: put before every query; left out, what the model's files say.
            document_prompt: put before every document; left out, likewise.
            options: of every local model.
        """
        super().__init__(model, **options)
        self._prompts: dict[Role, str | None] = {"query": query_prompt, "document": document_prompt}

    @property
    def fingerprint(self) -> str:
        """All that changes a vector: the weights, the prompts, dtype, backend."""
        return self._named(prompts=self._prompts)

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps: the model, where its weights come from, which they are, its prompts."""
        prompts = {f"{role}_prompt": prompt for role, prompt in self._shown().items() if prompt is not None}
        return {**super().provenance, **prompts}

    @property
    def reads(self) -> int | None:
        """Tokens of a document that the model reads, as its files say; None where nobody knows, or it reads all."""
        folder = self._weights.snapshot
        limit = side_of(folder, "document").limit if folder else None
        return limit if limit is not None and limit < UNLIMITED else None

    def count(self, texts: Sequence[str], role: Role) -> Tokens:
        """Count the tokens that the model would read, without loading it; estimated where it is not on this machine."""
        return self._tokens(texts, role, whole=False)

    def lengths(self, texts: Sequence[str], role: Role) -> Tokens:
        """Count the tokens of whole texts, as `count` does."""
        return self._tokens(texts, role, whole=True)

    def embed(self, texts: Sequence[str], role: Role, call: Call) -> Embedded:
        """Embed the texts on the next free copy of the model."""
        import torch

        with self._replicas.one(len(texts)) as model, torch.inference_mode():
            prompt = self._prompt(role, model.prompts) or ""
            read = self._replicas.read(model, texts, prompt, role if self.by_role else None)
            vectors = self._vectors(model, read.features, role, call.stopped)
        call.meter.count(calls=1, tokens=int(read.tokens.sum()))
        return Embedded(vectors, read.tokens, read.truncated_tokens)

    @abstractmethod
    def _vectors(self, model: Any, features: Mapping[str, Any], role: Role, stopped: Stop) -> AnyVectors:
        """Return the vectors of one request, gradients being off."""

    def _shown(self) -> Mapping[Role, str | None]:
        """The prompts that the manifest keeps: what the experiment says."""
        return self._prompts

    def _tokens(self, texts: Sequence[str], role: Role, *, whole: bool) -> Tokens:
        folder = self._weights.snapshot
        prompt = (self._prompts[role] if folder is None else self._prompt(role, stored_prompts(folder))) or ""
        return side_tokens(folder, role, [prompt + text for text in texts], whole=whole)

    def _prompt(self, role: Role, own: Mapping[str, str | None]) -> str | None:
        """What is put before a text: what the experiment says, else the model's `own`."""
        return prompt_of(own, role) if self._prompts[role] is None else self._prompts[role]


class LocalReranker(LocalModel, Reranker):
    """A reranker over a local model; a kind adds its fingerprint and how it scores."""

    where = "rerank"

    def __init__(self, model: str, *, depth: int = 10, **options: Any) -> None:
        """Describe the model; nothing is loaded before the first pair that is not cached.

        Args:
            model: a folder, or a name of the hub: of a cross-encoder with one output, for late interaction any
                embedding model.
            depth: how many candidates of each query are read again.
            options: of every local model.
        """
        check_positive(self.where, depth=depth)
        super().__init__(model, **options)
        self.depth = depth

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps: the model, where its weights come from, which they are, and the depth."""
        return {**super().provenance, "depth": str(self.depth)}

    def count(self, texts: Sequence[str]) -> Tokens:
        """Count the tokens of texts, each as one side of a pair, without loading the model."""
        return side_tokens(self._weights.snapshot, "document", texts)
