"""Whether the cache is still true: rows undamaged, and vectors as the models give them today."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from harness.english import counted
from harness.experiment import Encoded, load
from harness.running.check import prepare
from harness.running.components import canonical
from harness.running.forecast import chunks_of
from retrievers.cache import Cache, default_path
from retrievers.chunking import pieces
from retrievers.embedding import Embedder

SAMPLE = 100
"""Documents, or passages, that are embedded again for each model."""


class Drifted(NamedTuple):
    """How far one model's vectors have moved since they were cached."""

    retriever: str
    compared: int
    """Cached documents, or passages, that were embedded again."""
    largest: float
    """1 - cosine."""
    mean: float
    moved: int
    """Vectors that lie further away than rounding explains."""

    def sentence(self) -> str:
        """The same in words."""
        if not self.compared:
            return f"{self.retriever}: none of its documents is cached"
        vectors = counted(self.compared, "vector")
        return f"{self.retriever}: {vectors} embedded again, largest 1 - cosine {self.largest:.2g}"


def drifts(experiment: str | Path, *, sample: int = SAMPLE, code: bool = True) -> Iterator[Drifted]:
    """Embed a sample of what is cached again, as a run would embed it, and compare; the cache stays as it is.

    Equal encoders that cut documents alike are asked once.

    Args:
        experiment: its file.
        sample: documents, or passages of them, for each model.
        code: whether the experiment may name code that is run.

    Raises:
        InputError: the experiment, its data or its environment is at fault.
        BackendError: a model failed for good.
    """
    loaded = load(experiment, code=code)
    dataset, _, components = prepare(loaded)
    asked = set()
    with Cache(default_path()) as cache:
        for block in loaded.experiment.retrievers:
            encoder = components[block.name].encoder
            if not isinstance(block, Encoded) or encoder is None:
                continue
            key = canonical({"encoder": block.encoder.written(), "chunk": block.chunk and block.chunk.model_dump()})
            if key in asked:
                continue
            asked.add(key)
            texts = (piece.content for piece in pieces(dataset.documents(), chunks_of(block, encoder)))
            drift = Embedder(encoder, cache).drift(texts, "document", sample=sample)
            yield Drifted(block.name, drift.compared, drift.largest, drift.mean, drift.moved)
