"""Retrieval by an encoder's vectors of any form, out of one collection: encoder, store and passages together."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from retrievers.chunking import Chunks, pieces
from retrievers.derived import Cut
from retrievers.embedding import Embedder
from retrievers.filters import Condition, suffix_of
from retrievers.meter import Meter
from retrievers.placeholders import without_user
from retrievers.resources import Resources
from retrievers.stores import CSR, MEMORY, StoreOptions, open_store
from retrievers.stores.matrices import NumberFormat, QuantizedStore, bytes_a_vector
from retrievers.types import Document, Encoder, Query, Ranking, Retriever, Store, facts_of
from retrievers.vector_search import CorpusSize, VectorRetriever


@dataclass(eq=False)
class Dense(Retriever):
    """The documents whose vectors are nearest to the query's; sparse vectors and those of tokens, too."""

    encoder: Encoder
    """What turns texts into vectors."""
    store: StoreOptions = field(default_factory=StoreOptions)
    """Where the vectors are, `${NAME}` expanded."""
    chunks: Chunks | None = None
    """How long documents are cut into passages."""
    conditions: tuple[Condition, ...] = ()
    """What queries want of documents."""
    dimensions: int | None = None
    """Leading numbers of each vector that are kept."""
    quantization: NumberFormat | None = None
    asked: Encoder | None = None
    """The encoder's model at the smaller size: what it gives must be what cutting gives."""
    derived_from: str = ""
    """The retriever whose vectors these are."""
    location: str = ""
    """Where the vectors are, as it is written."""
    name: str = "vectors"
    """Of its collection in memory, and by which a server's retries are counted."""
    _resources: Resources = field(init=False, repr=False)
    _search: VectorRetriever = field(init=False, repr=False)

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps of the model and the collection, once queries were answered."""
        return self._search.provenance

    def use(self, resources: Resources) -> None:
        """Take the run's cache and its collections."""
        self._resources = resources

    def index(self, documents: Iterable[Document], meter: Meter) -> None:
        """Embed the corpus into the store, or use the finished collection that is there."""
        if self.chunks is not None and self.chunks.unit == "tokens" and not self.encoder.at_hand:
            _ = self.encoder.concurrency  # loads the model: its tokenizer, not an estimate, says where documents end
        cache, form = self._resources.cache, self.encoder.form
        whole = Embedder(self.encoder, cache)
        asked = None if self.asked is None else Embedder(self.asked, cache)
        cut = None
        if (self.dimensions, self.quantization) != (None, None):
            cut = Cut(whole, self.dimensions, asked)
        count = operator.length_hint(documents)
        place = self.store.resolved(count, form)

        def describe(size: CorpusSize, facts: Mapping[str, str]) -> Mapping[str, str]:
            texts = size.texts or sum(1 for _ in pieces(documents, self.chunks))
            return {
                **facts_of(self.encoder),
                **({"derived_from": self.derived_from} if self.derived_from else {}),
                **({} if cut is None else cut.provenance),
                **self._place(place),
                **facts,
                **self._sizes(size._replace(texts=texts), facts),
            }

        def opened(meter: Meter) -> Store:
            return self._opened(documents, count, meter)

        self._search = VectorRetriever(
            cut or whole,
            opened,
            fresh=self._resources.fresh or not self.encoder.lasting,
            chunks=self.chunks,
            describe=describe,
            conditions=self.conditions,
        )
        self._search.index(documents, meter)

    def search(self, queries: Sequence[Query], depth: int, meter: Meter) -> list[Ranking]:
        """Return the nearest documents of each query."""
        return self._search.search(queries, depth, meter)

    def answer(self, query: Query, depth: int, meter: Meter) -> Ranking:
        """Answer one query, its text embedded anew."""
        return self._search.answer(query, depth, meter)

    def _opened(self, documents: Iterable[Document], count: int, meter: Meter) -> Store:
        """The collection: in memory one of its own, elsewhere those of one content are one."""
        if self.quantization:
            return QuantizedStore(self.quantization)
        form, content, stores = self.encoder.form, self.name, self._resources.stores
        if self.store.resolved(count, form) not in (CSR, MEMORY):
            parts = self.chunks.suffix(documents) if self.chunks else ""
            size = "" if self.dimensions is None else f"-cut{self.dimensions}"
            held = f"{self.encoder.fingerprint_for('document')}-{self._resources.corpus_digest}"
            content = f"{held}{parts}{size}{suffix_of(self.conditions)}"
        key = self.store, content, self.name if self.store.on_server else ""
        if key not in stores:
            stores[key] = open_store(
                self.store, content, documents=count, folder=self._resources.folder, meter=meter, form=form
            )
        return stores[key]

    def _place(self, resolved: str) -> dict[str, str]:
        """Where the vectors are and how they are compared."""
        if self.quantization:
            return {"store": MEMORY, "search": "exact", "quantization": self.quantization}
        where = without_user(self.location or resolved)
        return {"store": where, "search": "approximate" if self.store.approximate else "exact"}

    def _sizes(self, size: CorpusSize, store: Mapping[str, str]) -> dict[str, str]:
        """Dimensions, texts, bytes that a search needs at hand; of ragged vectors the numbers or tokens of a text.

        Args:
            size: of the corpus and its vectors.
            store: what the store says of itself: how many of its points are indexed, where it says so.
        """
        texts, form = size.texts, self.encoder.form
        facts = {"dimensions": str(size.dimensions), "vectors": str(texts)}
        if self.quantization:
            return {**facts, "vector_bytes": str(texts * bytes_a_vector(self.quantization, size.dimensions))}
        if form == "dense":
            unindexed = int(store.get("points", 0)) - int(store.get("indexed_points", 0))
            indexed = texts - max(unindexed, 0)
            return {**facts, "vector_bytes": str(self.store.bytes_read(texts, size.dimensions, indexed))}
        unit, width = ("nonzeros", 1) if form == "sparse" else ("tokens", size.dimensions)
        return {
            **facts,
            "vector_bytes": str(self.store.bytes_of_numbers(texts * size.document_numbers, form)),
            f"{unit}_per_text": f"{size.document_numbers / width:.4g}",
            f"{unit}_per_query": f"{size.query_numbers / width:.4g}",
        }
