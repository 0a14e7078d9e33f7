"""Retrieval by an encoder's vectors of any form, out of one collection: encoder, store and passages together."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from retrievers import encoder_class
from retrievers.chunking import Chunks, pieces
from retrievers.derived import Cut
from retrievers.embedding import Embedder
from retrievers.filters import Condition, suffix_of
from retrievers.meter import Meter
from retrievers.model_tables import encoder_table
from retrievers.placeholders import expand, made, without_user
from retrievers.resources import Resources
from retrievers.stores import CSR, MEMORY, StoreOptions, open_store
from retrievers.stores.matrices import NumberFormat, QuantizedStore, bytes_a_vector
from retrievers.types import Document, Encoder, Query, Ranking, Retriever, Store, facts_of, is_model
from retrievers.vector_search import CorpusSize, VectorRetriever


@dataclass(frozen=True, slots=True)
class Smaller:
    """Vectors that follow from an encoder's."""

    dimensions: int | None = None
    """Leading numbers of each vector that are kept."""
    quantization: NumberFormat | None = None
    asked: Encoder | None = None
    """The encoder's model at the smaller size: what it gives must be what cutting gives."""
    derived_from: str = ""
    """The retriever whose vectors these are."""


class Called(NamedTuple):
    """What is shown of a retriever by vectors."""

    name: str = "vectors"
    """Of its collection in memory, and by which a server's retries are counted."""
    location: str = ""
    """Where the vectors are, as it is written."""


class Dense(Retriever):
    """The documents whose vectors are nearest to the query's; sparse vectors and those of tokens, too.

    Args:
        encoder: turns texts into vectors: a local model's name or folder, an object with `encode`, a function of texts,
            a table, or what embeds itself.
        store: where the vectors are, `${NAME}` expanded.
        chunk: how long documents are cut into passages.
        conditions: what queries want of documents.
        cut: which smaller vectors are made of the encoder's, if any are.
        named: what the retriever, and where its vectors are, is called.

    >>> Dense("sentence-transformers/all-MiniLM-L6-v2", chunk={"size": 800}).written()["chunk"]
    {'size': 800}
    """

    def __init__(
        self,
        encoder: Any,
        *,
        store: StoreOptions | Mapping[str, Any] | str = "",
        chunk: Chunks | Mapping[str, Any] | None = None,
        conditions: Sequence[Condition] = (),
        cut: Smaller | None = None,
        named: Called | None = None,
    ) -> None:
        table = None if is_model(encoder) else encoder_table(encoder)
        self._written: dict[str, Any] = {"encoder": table, "store": store, "chunk": chunk}
        self._encoder: Encoder | None = encoder if table is None else None
        options = {"location": store} if isinstance(store, str) and store else store or {}
        self.store = options if isinstance(options, StoreOptions) else StoreOptions(**expand(options))
        self._chunk = chunk
        self.conditions = tuple(conditions)
        self.cut = cut or Smaller()
        self._named = named or Called()
        self._resources: Resources
        self._search: VectorRetriever

    @property
    def encoder(self) -> Encoder:
        """What embeds; of a name, it is made when it is first asked for."""
        if self._encoder is None:
            options = dict(self._written["encoder"])
            self._encoder = made(encoder_class(options.pop("kind")), options)
        return self._encoder

    @cached_property
    def chunks(self) -> Chunks | None:
        """How documents are cut: by characters, or by the tokens of the encoder."""
        if self._chunk is None or isinstance(self._chunk, Chunks):
            return self._chunk
        table = {key: value for key, value in self._chunk.items() if value is not None}
        if table.get("unit", "characters") == "tokens":
            table["count"] = lambda texts: self.encoder.lengths(texts, "document").counts
        return Chunks(**table)

    def written(self) -> dict[str, Any]:
        """The table that would stand for it in an experiment file."""
        if self._written["encoder"] is None:
            return super().written()
        form = getattr(encoder_class(self._written["encoder"]["kind"]), "form", "dense")
        return {"kind": form, **{key: value for key, value in self._written.items() if value}}

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
        asked = None if self.cut.asked is None else Embedder(self.cut.asked, cache)
        cut = None
        if (self.cut.dimensions, self.cut.quantization) != (None, None):
            cut = Cut(whole, self.cut.dimensions, asked)
        count = operator.length_hint(documents)
        place = self.store.resolved(count, form)

        def describe(size: CorpusSize, facts: Mapping[str, str]) -> Mapping[str, str]:
            texts = size.texts or sum(1 for _ in pieces(documents, self.chunks))
            return {
                **facts_of(self.encoder),
                **({"derived_from": self.cut.derived_from} if self.cut.derived_from else {}),
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
        if self.cut.quantization:
            return QuantizedStore(self.cut.quantization)
        form, content, stores = self.encoder.form, self._named.name, self._resources.stores
        if self.store.resolved(count, form) not in (CSR, MEMORY):
            parts = self.chunks.suffix(documents) if self.chunks else ""
            size = "" if self.cut.dimensions is None else f"-cut{self.cut.dimensions}"
            held = f"{self.encoder.fingerprint_for('document')}-{self._resources.corpus_digest}"
            content = f"{held}{parts}{size}{suffix_of(self.conditions)}"
        key = self.store, content, self._named.name if self.store.on_server else ""
        if key not in stores:
            stores[key] = open_store(
                self.store, content, documents=count, folder=self._resources.folder, meter=meter, form=form
            )
        return stores[key]

    def _place(self, resolved: str) -> dict[str, str]:
        """Where the vectors are and how they are compared."""
        if self.cut.quantization:
            return {"store": MEMORY, "search": "exact", "quantization": self.cut.quantization}
        where = without_user(self._named.location or resolved)
        return {"store": where, "search": "approximate" if self.store.approximate else "exact"}

    def _sizes(self, size: CorpusSize, store: Mapping[str, str]) -> dict[str, str]:
        """Dimensions, texts, bytes that a search needs at hand; of ragged vectors the numbers or tokens of a text.

        Args:
            size: of the corpus and its vectors.
            store: what the store says of itself: how many of its points are indexed, where it says so.
        """
        texts, form = size.texts, self.encoder.form
        facts = {"dimensions": str(size.dimensions), "vectors": str(texts)}
        if self.cut.quantization:
            return {**facts, "vector_bytes": str(texts * bytes_a_vector(self.cut.quantization, size.dimensions))}
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
