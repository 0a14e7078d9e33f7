"""Retrievers by sparse vectors and by vectors of tokens: an experiment's table -> what indexes and searches."""

from __future__ import annotations

from collections.abc import Mapping

from harness.experiment import Encoded, expanded
from harness.running.components import Components, conditions_of, described
from harness.running.dense import Shared, Stores
from harness.running.forecast import chunks_of
from retrievers.chunking import pieces
from retrievers.dense import DenseRetriever, Extent, window_of
from retrievers.filters import suffix_of
from retrievers.meter import Meter
from retrievers.ragged import Form
from retrievers.remote.redaction import as_written
from retrievers.stores import CSR, MEMORY, StoreOptions, open_store
from retrievers.types import Store


def ragged_retriever(block: Encoded, components: Components, shared: Shared, stores: Stores) -> DenseRetriever:
    """Build what answers from a collection of vectors of unequal size.

    A collection is named after the retriever in memory, elsewhere after what is in it.

    Args:
        block: the retriever's table.
        components: its encoder.
        shared: what all retrievers of the run share.
        stores: those that are open; what is opened is added.
    """
    encoder = components.encoder
    if encoder is None:
        raise TypeError(f"{block.name} has no encoder")
    if block.chunk is not None and block.chunk.unit == "tokens" and not encoder.at_hand:
        _ = encoder.concurrency  # loads the model: its tokenizer, not an estimate, says where documents are cut
    dataset, chunks, form, conditions = (
        shared.dataset,
        chunks_of(block, encoder),
        encoder.form,
        conditions_of(block.filter),
    )
    options = StoreOptions(**expanded(block.store))

    def opened(meter: Meter) -> Store:
        inside = (
            f"{encoder.fingerprint}-{dataset.corpus_digest}{chunks.suffix if chunks else ''}{suffix_of(conditions)}"
        )
        collection = block.name if options.resolved(dataset.count, form) in (CSR, MEMORY) else inside
        key = options, collection, block.name if options.on_server else ""  # retries are counted by retriever
        if key not in stores:
            stores[key] = open_store(
                options, collection, documents=dataset.count, folder=shared.stores, meter=meter, form=form
            )
        return stores[key]

    def describe(extent: Extent) -> Mapping[str, str]:
        texts = sum(1 for _ in pieces(dataset.documents(), chunks))
        place = {"store": as_written(options.resolved(dataset.count, form)), "search": "exact"}
        return {**described(encoder), **place, **sizes(options, form, texts, extent)}

    return DenseRetriever(
        shared.embedder(encoder),
        opened,
        fresh=shared.fresh,
        chunks=chunks,
        describe=describe,
        window=window_of(form),
        conditions=conditions,
    )


def sizes(store: StoreOptions, form: Form, texts: int, extent: Extent) -> Mapping[str, str]:
    """Describe vectors: dimensions, texts, bytes; of sparse ones the numbers that are not 0, else tokens, of a text.

    Args:
        store: where they are.
        form: of the vectors.
        texts: documents, or passages, that have vectors.
        extent: how large vectors are.

    >>> sizes(StoreOptions("edge"), "sparse", 2, Extent(100, 3.5, 2.0))["nonzeros_per_text"]
    '3.5'
    """
    facts = {"dimensions": str(extent.dimensions), "vectors": str(texts)}
    if form == "dense":
        return {**facts, "vector_bytes": str(store.bytes_read(texts, extent.dimensions))}
    unit, width = ("nonzeros", 1) if form == "sparse" else ("tokens", extent.dimensions)
    return {
        **facts,
        "vector_bytes": str(store.bytes_of_numbers(texts * extent.document_numbers, form)),
        f"{unit}_per_text": f"{extent.document_numbers / width:.4g}",
        f"{unit}_per_query": f"{extent.query_numbers / width:.4g}",
    }
