"""A local model at work: loaded once for each device, given texts, run over a request in passes."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from retrievers.errors import BackendError, InputError, Problem
from retrievers.local.model_files import Weights, loading
from retrievers.meter import Stop
from retrievers.types import Counts, Role

if TYPE_CHECKING:
    import numpy.typing as npt
    import torch

Dtype = Literal["float32", "float16", "bfloat16"]
Backend = Literal["torch", "onnx"]

WORKERS = 8
"""Requests under way on a processor, at most: more would wait for one another in Python."""
PASS = 2048
"""Tokens, padding included, that a processor treats at once: what passes from layer to layer stays in its cache."""


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
            prompt: put before each text, or the first of a pair.
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
                sides_of = [(one,) if isinstance(one, str) else one for one in map(texts.__getitem__, full)]
                long = [(prompt + first, *second) for first, *second in sides_of]
                sides = map(list, zip(*long, strict=True))
                whole = reader.tokenizer(
                    *sides, truncation=False, padding=False, verbose=False, add_special_tokens=reader.special
                )
                truncated[full] = [len(ids) for ids in whole["input_ids"]]
                truncated[full] = np.maximum(truncated[full] - tokens[full], 0)
        return ModelInput(features, tokens, truncated)


def outputs(
    model: Any, features: Mapping[str, Any], name: str, stopped: Stop | None = None, **options: Any
) -> torch.Tensor:
    """Run a model over one request and return one of its outputs: a row a text, 32-bit floats.

    On a processor texts of like length go together, up to PASS tokens.

    Args:
        model: of sentence-transformers.
        features: what it is given.
        name: of the output.
        stopped: tells before each pass whether the run was interrupted.
        options: of the model's own `forward`.

    Raises:
        BackendError: the run was interrupted.
    """
    import torch

    rows, parts = [], []
    for some, part in passes(features, model.device.type, stopped):
        rows.append(some)
        parts.append(model(moved(part, model.device), **options)[name].float())
    joined = torch.cat(parts)
    return joined[torch.argsort(torch.cat(rows)).to(joined.device)]


def passes(
    features: Mapping[str, Any], device: str, stopped: Stop | None = None
) -> Iterator[tuple[torch.Tensor, Mapping[str, Any]]]:
    """Yield rows, and their features without the columns that are padding in all of them.

    Raises:
        BackendError: before a further pass, where the run was interrupted.
    """
    import torch

    mask = features.get("attention_mask")
    if mask is None or device != "cpu":
        yield torch.arange(len(features["offsets"] if mask is None else mask)), features
        return
    lengths = mask.sum(dim=1)
    order = torch.argsort(lengths, descending=True, stable=True)
    padded_left = not bool(mask[:, 0].all())
    start = 0
    while start < len(order):
        if stopped is not None and stopped.interrupted:
            raise BackendError("stopped, since the run was interrupted")
        longest = max(1, int(lengths[order[start]]))
        rows = order[start : start + max(1, PASS // longest)]
        columns = slice(-longest, None) if padded_left else slice(longest)
        yield (
            rows,
            {
                key: value[rows][:, columns] if isinstance(value, torch.Tensor) and value.shape == mask.shape else value
                for key, value in features.items()
            },
        )
        start += len(rows)


def moved(features: Mapping[str, Any], device: torch.device) -> dict[str, Any]:
    """Return the features with every tensor on the device."""
    return {name: value.to(device) if hasattr(value, "to") else value for name, value in features.items()}


class ScoredTokens(NamedTuple):
    """The tokens of some texts."""

    vectors: torch.Tensor
    """(texts, length, dimensions)."""
    mask: torch.Tensor
    """(texts, length): which are scored; the others are padding, or marks that the model leaves out."""


def token_vectors(model: Any, features: Mapping[str, Any], role: Role | None = None) -> ScoredTokens | None:
    """Run a model over one request; None where it has no vectors of tokens.

    Args:
        model: of sentence-transformers.
        features: what it is given.
        role: of the texts, where the model treats queries and documents in two ways.
    """
    output = model(moved(features, model.device), **({"task": role} if role else {}))
    if "token_embeddings" not in output:
        return None
    return ScoredTokens(output["token_embeddings"].float(), output["attention_mask"].bool())


def scored_tokens(
    model: Any, features: Mapping[str, Any], role: Role, stopped: Stop | None = None
) -> list[npt.NDArray[np.float32]] | None:
    """Return the (tokens, dimensions) of each text that are scored; None where the model has no vectors of tokens.

    On a processor documents of like length go together. Queries stay together: what a model fills them up with, and
    scores, looks like padding.
    """
    device = model.device.type if role == "document" else ""
    texts: dict[int, npt.NDArray[np.float32]] = {}
    for rows, part in passes(features, device, stopped):
        tokens = token_vectors(model, part, role)
        if tokens is None:
            return None
        for row, vectors, mask in zip(rows.tolist(), tokens.vectors.cpu(), tokens.mask.cpu(), strict=True):
            texts[row] = vectors[mask].numpy()
    return [texts[row] for row in range(len(texts))]


def max_sim(queries: ScoredTokens, documents: ScoredTokens) -> torch.Tensor:
    """Return MaxSim of some pairs (Khattab & Zaharia 2020): the sum, over the query's tokens, of the largest product.

    Args:
        queries: the queries of the pairs; their vectors have length 1.
        documents: the documents of the pairs, likewise.

    Returns:
        (pairs,)
    """
    import torch

    products = torch.einsum("pqd,pkd->pqk", queries.vectors, documents.vectors)
    best = products.masked_fill(~documents.mask[:, None, :], -1).amax(dim=2)
    return (best * queries.mask).sum(dim=1)


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
