"""What models on this machine share: their options, how they are loaded and on how many threads, what they read."""

from __future__ import annotations

import importlib
import importlib.util
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue
from threading import Lock
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from retrievers.costs import Tokens
from retrievers.errors import BackendError, InputError, Problem, check_positive
from retrievers.local.model_files import (
    UNLIMITED,
    Library,
    Weights,
    is_trained_as,
    loading,
    prompt_of,
    side_of,
    side_tokens,
    stored_prompts,
)
from retrievers.meter import Call, Stop
from retrievers.ragged import AnyVectors
from retrievers.types import Counts, Embedded, Encoder, Model, Pair, Reranker, Role, fingerprint, runs

Dtype = Literal["float32", "float16", "bfloat16"]
Backend = Literal["torch", "onnx"]

WORKERS = 8
"""Requests under way on a processor, at most: more would wait for one another in Python."""


class Setup(NamedTuple):
    """How a local model is loaded."""

    weights: Weights
    dtype: Dtype
    backend: Backend
    trust_remote_code: bool

    @property
    def shareable(self) -> bool:
        """Whether several threads may use one copy of the model.

        onnx has threads of its own, and code that comes with a model may keep things between calls.
        """
        return self.backend == "torch" and not self.trust_remote_code

    def load(self, kind: str, device: str) -> Any:
        """Load the model onto a device, by a class of sentence-transformers, such as "CrossEncoder".

        Raises:
            InputError: the backend is not installed.
        """
        if self.weights.held is not None:
            return self.weights.held.eval()
        if self.backend == "onnx" and importlib.util.find_spec("onnxruntime") is None:
            raise InputError(Problem("backend", "onnx is not installed", "pip install 'sentence-transformers[onnx]'"))
        library: Any = importlib.import_module("sentence_transformers")
        return getattr(library, kind)(
            self.weights.location,
            device=device,
            trust_remote_code=self.trust_remote_code,
            revision=self.weights.hub_revision,
            backend=self.backend,
            **({"model_kwargs": {"dtype": self.dtype}} if self.backend == "torch" else {}),
        ).eval()


class ModelInput(NamedTuple):
    """Texts, or pairs of texts, as a model is given them."""

    features: Mapping[str, Any]
    tokens: Counts
    truncated_tokens: Counts
    """Tokens beyond the model's limit."""


class Replicas:
    """A model that is loaded at its first use: once for each device, and used by several threads of a processor.

    On a processor, requests run side by side, each on its share of the cores: the cores then wait for each other
    once a request, and not at each step of it.
    """

    def __init__(self, setup: Setup, devices: str, load: Callable[[str], Any]) -> None:
        """Describe the model.

        Args:
            setup: what is loaded.
            devices: names with commas between, or "auto": every CUDA device, else the best there is.
            load: loads the model onto a device.
        """
        self._setup = setup
        self._devices = devices
        self._load = load
        self._loading = Lock()
        self._reading = Lock()
        self._count = 0
        self._cores = 1
        self._free: SimpleQueue[Any] = SimpleQueue()

    def __len__(self) -> int:
        import torch

        with self._loading:
            if not self._count:
                names = _devices(self._devices)
                with loading(self._setup.weights.model), _without_bars():
                    copies = [self._load(name) for name in names]
                self._cores = torch.get_num_threads()
                at_once = min(self._cores, WORKERS) if self._setup.shareable and names == ["cpu"] else 1
                self._count = len(copies) * at_once
                for copy in copies * at_once:
                    self._free.put(copy)
        return self._count

    @contextmanager
    def one(self, texts: int) -> Iterator[Any]:
        """Lend the next copy that is free to a request of so many texts; a text alone gets all cores."""
        import torch

        count = len(self)  # loads them
        model = self._free.get()
        torch.set_num_threads(self._cores if texts == 1 else max(1, self._cores // count))
        try:
            yield model
        except RuntimeError as failure:  # how torch says that memory is short, or that a kernel failed
            message = str(failure).strip().splitlines()[:1]
            raise BackendError(
                f"{self._setup.weights.name}: {' '.join(message)[:300]} (a smaller batch_size may help)"
            ) from None
        finally:
            torch.set_num_threads(self._cores)  # threads to come begin with what was set last
            self._free.put(model)

    def read(
        self, model: Any, texts: Sequence[str] | Sequence[tuple[str, str]], prompt: str = "", role: Role | None = None
    ) -> ModelInput:
        """Turn texts, or pairs, into what the model is given; only what reaches its limit is tokenised once more.

        Args:
            model: the copy that will be given them.
            texts: or pairs.
            prompt: put before each text.
            role: of the texts, where the model reads queries and documents in two ways.
        """
        asked = {**({"prompt": prompt} if prompt else {}), **({"task": role} if role else {})}
        with self._reading:  # a tokenizer serves one thread at a time
            features = model.preprocess(list(texts), **asked)
            tokens = _tokens(features, len(texts))
            truncated = np.zeros(len(texts), dtype=np.int64)
            reader = _reader(model, role)
            full = [] if reader.limit is None else np.flatnonzero(tokens >= reader.limit).tolist()
            if full:
                long = [(prompt + one,) if isinstance(one, str) else one for one in map(texts.__getitem__, full)]
                sides = map(list, zip(*long, strict=True))
                whole = reader.tokenizer(
                    *sides, truncation=False, padding=False, verbose=False, add_special_tokens=reader.special
                )
                truncated[full] = [len(ids) for ids in whole["input_ids"]]
                truncated[full] = np.maximum(truncated[full] - tokens[full], 0)
        return ModelInput(features, tokens, truncated)


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
        self._dtype, self._backend, self._batch_size = dtype, backend, batch_size
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
            what = f"{self._weights.model} is no {self.library}: layers with random weights would be put on top of it"
            raise InputError(Problem("model", what, f"name a model that was trained as a {self.library}"))


class LocalEncoder(LocalModel, Encoder):
    """An encoder over a local model; a kind adds its fingerprint, and what it makes of one request."""

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

    def batches(self, texts: Sequence[str], role: Role) -> Iterable[Sequence[int]]:
        """Split texts into runs of the batch size, so that texts of like length are padded together."""
        return runs(len(texts), self._batch_size)

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
        self._depth = depth

    @property
    def depth(self) -> int:
        """How many candidates of each query are read again."""
        return self._depth

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps: the model, where its weights come from, which they are, and the depth."""
        return {**super().provenance, "depth": str(self._depth)}

    def count(self, texts: Sequence[str]) -> Tokens:
        """Count the tokens of texts, each as one side of a pair, without loading the model."""
        return side_tokens(self._weights.snapshot, "document", texts)

    def batches(self, pairs: Sequence[Pair]) -> Iterable[Sequence[int]]:
        """Split pairs into runs of the batch size, so that pairs of like length are padded together."""
        return runs(len(pairs), self._batch_size)


class _Reader(NamedTuple):
    """What reads the texts of a role."""

    tokenizer: Any
    limit: int | None
    special: bool = True
    """Whether the marks of the tokenizer are put around a text."""


def _reader(model: Any, role: Role | None) -> _Reader:
    if role is None:
        return _Reader(model.tokenizer, model.max_seq_length)
    module = model[0]
    if hasattr(module, "sub_modules"):  # a Router, with a way for each role
        ways, named = module.sub_modules, module.route_mappings
        asked = [named.get(key) for key in ((role, "text"), (role, None), (None, "text"), (None, None))]
        module = ways[next(filter(None, [*asked, role if role in ways else None, module.default_route]))][0]
    expansion = getattr(module, "query_expansion", None) if role == "query" else None
    fixed = expansion["length"] if expansion and expansion["strategy"] == "fixed" else None
    limits = [fixed or getattr(module, f"{role}_length", None), module.max_seq_length]
    limit = min((limit for limit in limits if limit is not None), default=None)
    return _Reader(module.tokenizer, limit, special=type(module).__name__ != "SparseStaticEmbedding")


def _tokens(features: Mapping[str, Any], count: int) -> Counts:
    """Return the tokens of each text, as the model is given them: from a mask, or a static model's offsets."""
    if "attention_mask" in features:
        return np.asarray(features["attention_mask"].sum(dim=1).tolist(), dtype=np.int64)
    if "offsets" in features:
        starts = features["offsets"].tolist()
        ends = [*starts[1:], len(features["input_ids"])]
        return np.asarray(ends, dtype=np.int64) - np.asarray(starts, dtype=np.int64)
    return np.zeros(count, dtype=np.int64)


@contextmanager
def _without_bars() -> Iterator[None]:
    logging: Any = importlib.import_module("transformers.utils.logging")
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _devices(wanted: str) -> list[str]:
    if wanted != "auto":
        return [name.strip() for name in wanted.split(",")]
    import torch
    from sentence_transformers.util import get_device_name

    count = torch.cuda.device_count()
    return [f"cuda:{i}" for i in range(count)] if count else [get_device_name()]
