"""Dense retrievers and their collections: an experiment's table -> what indexes and searches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.dataset import Dataset
from harness.experiment import Dense, expanded
from harness.records import StageLatency
from harness.running.components import Components, conditions_of, described
from harness.running.forecast import chunks_of
from harness.running.options import Watch
from retrievers.cache import Cache
from retrievers.chunking import pieces
from retrievers.dense import DenseRetriever, Extent
from retrievers.derived import Cut
from retrievers.embedding import Embedder, VectorSource
from retrievers.filters import suffix_of
from retrievers.meter import Budget, Meter
from retrievers.quantization import bytes_a_vector
from retrievers.remote.redaction import as_written
from retrievers.stores import MEMORY, QuantizedStore, StoreOptions, open_store
from retrievers.types import Encoder, Store


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


Stores = dict[tuple[StoreOptions, str, str], Store]
"""What a run has opened, to be closed at its end, by location and collection: one folder cannot be opened twice."""


def dense_retriever(block: Dense, components: Components, shared: Shared, stores: Stores) -> DenseRetriever:
    """Build what answers from a collection of an encoder's vectors, or of what follows from them.

    A collection is named after the retriever in memory, elsewhere after what is in it.

    Args:
        block: the retriever's table.
        components: its encoder, and the one that is asked for fewer dimensions.
        shared: what all retrievers of the run share.
        stores: those that are open; what is opened is added.
    """
    encoder, asked = components.encoder, components.asked
    if encoder is None:
        raise TypeError(f"{block.name} has no encoder")
    if block.chunk is not None and block.chunk.unit == "tokens" and not encoder.at_hand:
        _ = encoder.concurrency  # loads the model: its tokenizer, not an estimate, says where documents are cut
    dataset, chunks, conditions = shared.dataset, chunks_of(block, encoder), conditions_of(block.filter)
    options = StoreOptions(**expanded(block.store))
    whole = shared.embedder(encoder)
    derived = block.dimensions is not None or block.quantization is not None
    cut = Cut(whole, block.dimensions, None if asked is None else shared.embedder(asked)) if derived else None

    def opened(meter: Meter) -> Store:
        if block.quantization is not None:
            return QuantizedStore(block.quantization)
        size = "" if block.dimensions is None else f"-cut{block.dimensions}"
        inside = f"{encoder.fingerprint_for('document')}-{dataset.corpus_digest}{chunks.suffix if chunks else ''}{size}"
        inside += suffix_of(conditions)
        collection = block.name if options.resolved(dataset.count) == MEMORY else inside
        key = options, collection, block.name if options.on_server else ""  # retries are counted by retriever
        if key not in stores:
            stores[key] = open_store(options, collection, documents=dataset.count, folder=shared.stores, meter=meter)
        return stores[key]

    def describe(extent: Extent) -> Mapping[str, str]:
        dimensions = extent.dimensions
        points = sum(1 for _ in pieces(dataset.documents(), chunks))
        return {
            **described(encoder),
            **({"derived_from": block.derived_from} if block.derived_from else {}),
            **({} if cut is None else cut.provenance),
            **_store(block, dataset.count),
            "dimensions": str(dimensions),
            "vectors": str(points),
            "vector_bytes": str(_bytes(block, options, points, dimensions)),
        }

    embedder = cut or whole
    return DenseRetriever(embedder, opened, fresh=shared.fresh, chunks=chunks, describe=describe, conditions=conditions)


def _store(block: Dense, documents: int) -> dict[str, str]:
    """Where the vectors are and how they are compared."""
    if block.quantization is not None:
        return {"store": MEMORY, "search": "exact", "quantization": block.quantization}
    options = StoreOptions(**expanded(block.store))
    kind = "approximate" if options.approximate else "exact"
    return {"store": as_written(options.resolved(documents)), "search": kind}


def _bytes(block: Dense, options: StoreOptions, points: int, dimensions: int) -> int:
    """What a search needs at hand."""
    if block.quantization is not None:
        return points * bytes_a_vector(block.quantization, dimensions)
    return options.bytes_read(points, dimensions)
