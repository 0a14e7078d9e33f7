"""Retrievers by vectors of any form, and their collections: an experiment's table -> what indexes and searches."""

from __future__ import annotations

from collections.abc import Mapping

from harness.experiment import Dense, Encoded, origin
from harness.running.components import Components, conditions_of, described
from harness.running.forecast import chunks_of
from harness.running.options import Shared, Stores
from retrievers.chunking import pieces
from retrievers.derived import Cut
from retrievers.filters import suffix_of
from retrievers.meter import Meter
from retrievers.placeholders import expand, without_user
from retrievers.ragged import Form
from retrievers.stores import CSR, MEMORY, StoreOptions, open_store
from retrievers.stores.matrices import NumberFormat, QuantizedStore, bytes_a_vector
from retrievers.types import Store
from retrievers.vector_search import CorpusSize, VectorRetriever


def vector_retriever(block: Encoded, components: Components, shared: Shared, stores: Stores) -> VectorRetriever:
    """Build what answers from a collection of an encoder's vectors, or of what follows from them.

    In memory each retriever has a collection of its own; elsewhere those of one content share it.

    Args:
        block: the retriever's table.
        components: its encoder, and the one that is asked for fewer dimensions.
        shared: what all retrievers of the run share.
        stores: those that are open; what is opened is added.
    """
    encoder = components.encoder
    if encoder is None:
        raise TypeError(f"{block.name} has no encoder")
    if block.chunk is not None and block.chunk.unit == "tokens" and not encoder.at_hand:
        _ = encoder.concurrency  # loads the model: its tokenizer, not an estimate, says where documents are cut
    dataset, chunks, conditions = shared.dataset, chunks_of(block, encoder), conditions_of(block.filter)
    options, form = StoreOptions(**expand(block.store)), encoder.form
    whole = shared.embedder(encoder)
    derived = isinstance(block, Dense) and (block.dimensions, block.quantization) != (None, None)
    asked = None if components.asked is None else shared.embedder(components.asked)
    cut = Cut(whole, _dimensions(block), asked) if derived else None

    def opened(meter: Meter) -> Store:
        if quantization := _quantization(block):
            return QuantizedStore(quantization)
        size = "" if _dimensions(block) is None else f"-cut{_dimensions(block)}"
        content = block.name
        if options.resolved(dataset.count, form) not in (CSR, MEMORY):
            parts = chunks.suffix(dataset.documents()) if chunks else ""
            content = (
                f"{encoder.fingerprint_for('document')}-{dataset.corpus_digest}{parts}{size}{suffix_of(conditions)}"
            )
        key = options, content, block.name if options.on_server else ""  # retries are counted by retriever
        if key not in stores:
            stores[key] = open_store(
                options, content, documents=dataset.count, folder=shared.stores, meter=meter, form=form
            )
        return stores[key]

    def describe(extent: CorpusSize, facts: Mapping[str, str]) -> Mapping[str, str]:
        texts = extent.texts or sum(1 for _ in pieces(dataset.documents(), chunks))
        return {
            **described(encoder),
            **({"derived_from": base} if (base := origin(block)) else {}),
            **({} if cut is None else cut.provenance),
            **_place(block, options.resolved(dataset.count, form), options),
            **facts,
            **_sizes(block, options, form, extent._replace(texts=texts), facts),
        }

    embedder = cut or whole
    return VectorRetriever(
        embedder,
        opened,
        fresh=shared.fresh or not encoder.lasting,
        chunks=chunks,
        describe=describe,
        conditions=conditions,
    )


def _dimensions(block: Encoded) -> int | None:
    """To how many dimensions vectors are cut; None where they stay as they are."""
    return block.dimensions if isinstance(block, Dense) else None


def _quantization(block: Encoded) -> NumberFormat | None:
    return block.quantization if isinstance(block, Dense) else None


def _place(block: Encoded, location: str, options: StoreOptions) -> dict[str, str]:
    """Where the vectors are and how they are compared."""
    if quantization := _quantization(block):
        return {"store": MEMORY, "search": "exact", "quantization": quantization}
    where = without_user(block.store.get("location") or location)
    return {"store": where, "search": "approximate" if options.approximate else "exact"}


def _sizes(
    block: Encoded, options: StoreOptions, form: Form, extent: CorpusSize, store: Mapping[str, str]
) -> dict[str, str]:
    """Dimensions, texts, bytes that a search needs at hand; of ragged vectors how many numbers or tokens a text has.

    Args:
        block: the retriever's table.
        options: of its store.
        form: of its vectors.
        extent: their size.
        store: what the store says of itself: how many of its points are indexed, where it says so.
    """
    texts = extent.texts
    facts = {"dimensions": str(extent.dimensions), "vectors": str(texts)}
    if quantization := _quantization(block):
        return {**facts, "vector_bytes": str(texts * bytes_a_vector(quantization, extent.dimensions))}
    if form == "dense":
        unindexed = int(store.get("points", 0)) - int(store.get("indexed_points", 0))
        indexed = texts - max(unindexed, 0)
        return {**facts, "vector_bytes": str(options.bytes_read(texts, extent.dimensions, indexed))}
    unit, width = ("nonzeros", 1) if form == "sparse" else ("tokens", extent.dimensions)
    return {
        **facts,
        "vector_bytes": str(options.bytes_of_numbers(texts * extent.document_numbers, form)),
        f"{unit}_per_text": f"{extent.document_numbers / width:.4g}",
        f"{unit}_per_query": f"{extent.query_numbers / width:.4g}",
    }
