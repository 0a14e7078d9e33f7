"""Whether the cache is still true: rows undamaged, and vectors as the models give them today."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from harness.experiment import Dense, expanded, load
from harness.running.check import checked_data
from retrievers import encoder_class
from retrievers.cache import Cache, default_path
from retrievers.embedding import Embedder
from retrievers.meter import Meter

DRIFTED = 1e-3
"""Largest 1 - cosine that rounding explains, across machines and batch shapes; beyond, it is another model."""
SAMPLE = 100
"""Documents that are embedded again for each model."""


class Drifted(NamedTuple):
    """How far one model's vectors have moved since they were cached."""

    retriever: str
    compared: int
    """Cached documents that were embedded again."""
    largest: float
    """1 - cosine."""
    mean: float

    def sentence(self) -> str:
        """The same in words."""
        if not self.compared:
            return f"{self.retriever}: none of its documents is cached"
        return f"{self.retriever}: {self.compared} vectors embedded again, largest 1 - cosine {self.largest:.2g}"


def drifts(experiment: str | Path, *, sample: int = SAMPLE) -> Iterator[Drifted]:
    """Embed a sample of the documents that are cached again, with each model of an experiment, and compare.

    The cache stays as it is. Equal encoders are asked once.

    Args:
        experiment: its file.
        sample: documents for each model.

    Raises:
        InputError: the experiment, its data or its environment is at fault.
        BackendError: a model failed for good.
    """
    loaded = load(experiment)
    dataset = checked_data(loaded).dataset
    asked = []
    with Cache(default_path()) as cache:
        for block in loaded.experiment.retrievers:
            if not isinstance(block, Dense) or block.encoder in asked:
                continue
            asked.append(block.encoder)
            meter = Meter()
            cls: Any = encoder_class(block.encoder.kind)
            embedder = Embedder(cls(**expanded(block.encoder.options), meter=meter), cache, meter=meter)
            texts = (document.content for document in dataset.documents() if document.content.strip())
            found = embedder.drift(texts, "document", sample=sample)
            yield Drifted(block.name, found.compared, found.largest, found.mean)
