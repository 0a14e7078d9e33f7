"""The hybrid inside Qdrant: an experiment's table -> what indexes and searches."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack

from harness.experiment import QdrantFusion, Standalone, expanded
from harness.running.components import described, whole_retriever
from harness.running.shared import Shared
from retrievers.bm25 import BM25Retriever
from retrievers.fingerprints import fingerprint
from retrievers.hybrid import QdrantFusionRetriever
from retrievers.meter import Meter
from retrievers.stores import MEMORY, StoreOptions
from retrievers.stores.hybrid import HybridStore
from retrievers.types import Encoder

SPARSE_BYTES = 8
"""Of one term of one document: its number and its weight."""


def hybrid_retriever(
    block: QdrantFusion, lexical: Standalone, encoder: Encoder, shared: Shared, closing: ExitStack
) -> QdrantFusionRetriever:
    """Build what answers from one collection in which Qdrant fuses two searches.

    Args:
        block: the retriever's table.
        lexical: that of the BM25 retriever whose options it has.
        encoder: of the dense retriever.
        shared: what all retrievers of the run share.
        closing: closes the collection with the run.
    """
    bm25 = whole_retriever(lexical)
    if not isinstance(bm25, BM25Retriever):
        raise TypeError(f"{lexical.name} is no BM25")
    options, dataset = StoreOptions(**expanded(block.store)), shared.dataset

    def opened(meter: Meter) -> HybridStore:
        corpus, document = dataset.corpus_digest, encoder.fingerprint_for("document")
        inside = fingerprint("hybrid", document, corpus=corpus, bm25=bm25.fingerprint)
        collection = inside if options.on_server else block.name
        store = HybridStore(options, collection, block.method, block.k, meter=meter)
        closing.callback(store.close)
        return store

    def describe(dimensions: int) -> Mapping[str, str]:
        documents, terms = bm25.weights().shape[0], bm25.weights().nnz
        return {
            **described(encoder),
            "bm25": bm25.fingerprint,
            "fusion": f"rrf, 1 / ({block.k} + rank), ranks from 0" if block.method == "rrf" else "dbsf",
            "store": StoreOptions(**block.store).location or MEMORY,  # `${NAME}` stays as it is
            "search": "exact",
            "dimensions": str(dimensions),
            "vectors": str(documents),
            "vector_bytes": str(4 * dimensions * documents + SPARSE_BYTES * terms),
        }

    return QdrantFusionRetriever(shared.embedder(encoder), bm25, opened, describe)
