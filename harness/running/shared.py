"""What all retrievers of one run share, and what the run has opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.dataset import Dataset
from harness.records import StageLatency
from harness.running.options import Watch
from retrievers.cache import Cache
from retrievers.embedding import Embedder, VectorSource
from retrievers.meter import Budget
from retrievers.stores import StoreOptions
from retrievers.types import Encoder, Store

Stores = dict[tuple[StoreOptions, str, str], Store]
"""What a run has opened, to be closed at its end, by location and content: one folder cannot be opened twice."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What all retrievers of one run share."""

    dataset: Dataset
    cache: Cache
    stores: Path
    """Where edge collections live from run to run."""
    depth: int
    budget: Budget
    watch: Watch = lambda name, meter: None

    fresh: bool = False
    """Index anew what a store holds."""
    exclude_self: bool = False
    """Keep the document with a query's id out of that query's answers."""
    sample: int = 0
    """Queries timed one at a time; 0: none."""
    latencies: Mapping[str, Mapping[str, StageLatency]] = field(default_factory=dict)
    """Retriever -> stage -> what was measured before: kept, so that a warm run loads no model."""
    source: VectorSource | None = None
    """Vectors that were embedded elsewhere."""
    probe: int = 0
    """Cached texts that a remote model embeds again before anything new."""

    def embedder(self, encoder: Encoder) -> Embedder:
        """Return an encoder with the places where its vectors may lie."""
        return Embedder(encoder, self.cache, self.source, probe=self.probe)
