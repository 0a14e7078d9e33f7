"""What local models share: one copy per device, and counting what they read."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import numpy as np

from retrievers.encoders.weights import Weights, loading
from retrievers.errors import BackendError, InputError, Problem
from retrievers.types import Counts

if TYPE_CHECKING:
    import torch

Dtype = Literal["float32", "float16", "bfloat16"]
Backend = Literal["torch", "onnx"]
Model = TypeVar("Model")


class Replicas(Generic[Model]):
    """A model that is loaded at its first use, once for each device."""

    def __init__(self, weights: Weights, devices: str, load: Callable[[str], Model]) -> None:
        """Take device names with commas between, or "auto": every CUDA device, else the best there is."""
        self._weights = weights
        self._devices = devices
        self._load = load
        self._lock = Lock()
        self._count = 0
        self._free: SimpleQueue[Model] = SimpleQueue()

    def __len__(self) -> int:
        with self._lock:
            if not self._count:
                with loading(self._weights.model), _without_bars():
                    copies = [self._load(device) for device in _devices(self._devices)]
                for copy in copies:
                    self._free.put(copy)
                self._count = len(copies)
        return self._count

    @contextmanager
    def one(self) -> Iterator[Model]:
        """Lend the next copy that is free."""
        len(self)  # loads them
        model = self._free.get()
        try:
            yield model
        except RuntimeError as failure:  # how torch says that memory is short, or that a kernel failed
            said = str(failure).strip().splitlines()[:1]
            raise BackendError(
                f"{self._weights.name}: {' '.join(said)[:300]} (a smaller batch_size may help)"
            ) from None
        finally:
            self._free.put(model)


def options(weights: Weights, dtype: Dtype, backend: Backend) -> dict[str, Any]:
    """Return the keyword arguments with which sentence-transformers loads the weights.

    Raises:
        InputError: the backend is not installed.
    """
    if backend == "onnx" and importlib.util.find_spec("onnxruntime") is None:
        raise InputError(Problem("backend", "onnx is not installed", "pip install 'sentence-transformers[onnx]'"))
    kind = {"model_kwargs": {"dtype": dtype}} if backend == "torch" else {}
    return {"revision": weights.hub_revision, "backend": backend, **kind}


def moved(features: Mapping[str, Any], device: torch.device) -> dict[str, Any]:
    """Return the features with every tensor on the device."""
    return {name: value.to(device) if hasattr(value, "to") else value for name, value in features.items()}


def tokens_read(features: Mapping[str, Any], count: int) -> Counts:
    """Return the tokens of each text, as the model is given them: from a mask, or a static model's offsets."""
    if "attention_mask" in features:
        return np.asarray(features["attention_mask"].sum(dim=1).tolist(), dtype=np.int64)
    if "offsets" in features:
        starts = features["offsets"].tolist()
        ends = [*starts[1:], len(features["input_ids"])]
        return np.asarray(ends, dtype=np.int64) - np.asarray(starts, dtype=np.int64)
    return np.zeros(count, dtype=np.int64)


def tokens_lost(model: Any, texts: tuple[Sequence[str], ...], tokens: Counts) -> Counts:
    """Return the tokens beyond the model's limit; only texts that reach the limit are tokenised once more.

    Args:
        model: a SentenceTransformer or a CrossEncoder.
        texts: the texts, with their prompts; for pairs, the first and the second texts.
        tokens: what the model was given of each.
    """
    lost = np.zeros(len(tokens), dtype=np.int64)
    limit = model.max_seq_length
    full = [] if limit is None else np.flatnonzero(tokens >= limit).tolist()
    if full:
        sides = ([side[i] for i in full] for side in texts)
        whole = model.tokenizer(*sides, truncation=False, padding=False, verbose=False)
        lost[full] = [len(ids) for ids in whole["input_ids"]]
        lost[full] -= tokens[full]
    return lost


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
