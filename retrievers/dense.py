"""The nearest neighbours of a query by vectors."""

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from retrievers import encoder_class
from retrievers.conditions import Condition, QueryFilters, filter_facts, filter_values
from retrievers.document import Document
from retrievers.embedder import Embedder, split_windows
from retrievers.errors import InputError, Problem
from retrievers.identity import collection_content
from retrievers.meter import Meter
from retrievers.model import Encoder, is_model, model_facts
from retrievers.options.placeholders import instantiate, redact_url_users
from retrievers.options.python_objects import encoder_table
from retrievers.options.tables import validated
from retrievers.query import Query
from retrievers.ragged import AnyVectors, count_numbers, nonzero_rows, vector_form
from retrievers.ranking import Ranking, ranked
from retrievers.resources import Resources, own_resources
from retrievers.retriever import Retriever
from retrievers.store import Store
from retrievers.stores.open import open_store
from retrievers.stores.options import CSR_LOCATION, MEMORY_LOCATION, StoreOptions
from retrievers.stores.quantized import NumberFormat, QuantizedStore, bytes_per_vector
from retrievers.texts.chunking import (
    Chunk,
    document_of_passage,
    passages_in_context,
    rank_by_best_passage,
)

MAX_COMPARED_QUERIES = 100
"""Queries for which an approximate search is compared with an exact one."""
COLLECTION_NUMBERS_NOTE = "numbers"
"""What a collection keeps among its notes: the vectors in it, the numbers of them all, and the texts that were read:
documents, or passages, that are not blank."""


@dataclass(frozen=True, slots=True)
class VectorReduction:
    """Vectors that follow from an encoder's."""

    dimensions: int | None = None
    """Leading numbers of each vector that are kept."""
    quantization: NumberFormat | None = None
    native_encoder: Encoder | None = None
    """The encoder's model at the smaller size: what it gives must be what cutting gives."""
    derived_from: str = ""
    """The retriever whose vectors these are."""


class Dense(Retriever):
    """The documents whose vectors are nearest to the query's; sparse vectors and those of tokens, too.

    Blank documents are never embedded, and vectors of length zero have no direction: neither is ever retrieved, and a
    query with such a vector retrieves nothing. Documents are noted as "empty", "zero-vector", and "truncated" where the
    model did not read a text to its end (of passages: any of a document's); queries as "zero-vector-query",
    "truncated-query" and, of sparse vectors, "no-hit-query".

    Args:
        encoder: turns texts into vectors: a local model's name or folder, an object with `encode`, a function of texts,
            a table, or what embeds itself.
        store: where the vectors are, as an experiment has it.
        chunk: how long documents are cut into passages; a document then has its best passage's score.
        conditions: what queries want of documents, if not all are to be searched.
        reduction: which smaller vectors are computed from the encoder's, if any.
        name: of its collection in memory, and by which a server's retries are counted.

    >>> Dense("sentence-transformers/all-MiniLM-L6-v2", chunk={"size": 800}).to_config()["chunk"]
    {'size': 800}
    """

    def __init__(
        self,
        encoder: Any,
        *,
        store: StoreOptions | Mapping[str, Any] | str = "",
        chunk: Chunk | Mapping[str, Any] | None = None,
        conditions: Sequence[Condition] = (),
        reduction: VectorReduction | None = None,
        name: str = "vectors",
    ) -> None:
        self._given, self._chunk, self._name = encoder, chunk, name
        self._encoder: Encoder | None = encoder if is_model(encoder) else None
        kind = (
            type(encoder)
            if is_model(encoder)
            else encoder_class(encoder_table(encoder).get("kind", ""))
        )
        late = chunk.late if isinstance(chunk, Chunk) else (chunk or {}).get("late")
        if late and not getattr(kind, "supports_late_chunking", False):
            what = "needs the vectors of a document's tokens, which this encoder does not give"
            raise InputError(
                Problem(
                    "chunk.late",
                    what,
                    "use a sentence-transformers model, or leave late out",
                )
            )
        self._written = {"store": store, "chunk": chunk}
        options = store if isinstance(store, Mapping) else {"location": store or None}
        self.store = (
            store if isinstance(store, StoreOptions) else StoreOptions(**options)
        )
        self.conditions = tuple(conditions)
        self.reduction = reduction or VectorReduction()
        self._texts = self._dimensions = 0
        self._of_document = self._of_query = 0.0
        """Numbers that are kept of a document, or passage, and of a query, on average."""
        self._resources: Resources
        self._embeds: Embedder
        self._collection: Store

    @property
    def encoder(self) -> Encoder:
        """What embeds; of a name, it is made when it is first asked for."""
        if self._encoder is None:
            options = encoder_table(self._given)
            self._encoder = instantiate(encoder_class(options.pop("kind")), options)
        return self._encoder

    @cached_property
    def chunks(self) -> Chunk | None:
        """How documents are cut: by characters, or by the tokens of the encoder."""
        if self._chunk is None:
            return None
        chunk = (
            self._chunk
            if isinstance(self._chunk, Chunk)
            else validated(Chunk, self._chunk, "chunk")
        )
        return (
            chunk.with_token_counter(self.encoder.count_whole)
            if chunk.unit == "tokens"
            else chunk
        )

    def to_config(self) -> dict[str, Any]:
        """Its table in an experiment file."""
        table = encoder_table(self._given)
        form = getattr(encoder_class(table["kind"]), "form", "dense")
        return {
            "kind": form,
            "encoder": table,
            **{key: value for key, value in self._written.items() if value},
        }

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps of the model and the collection, once queries were answered."""
        facts = self._collection.facts
        return {
            **model_facts(self.encoder),
            **(
                {"derived_from": self.reduction.derived_from}
                if self.reduction.derived_from
                else {}
            ),
            **self._embeds.provenance,
            **self._place,
            **facts,
            **self._size_facts(facts),
            **filter_facts(self.conditions),
        }

    def setup(self, resources: Resources) -> None:
        """Take the run's cache and its collections."""
        self._resources = resources

    def index(self, documents: Iterable[Document], meter: Meter) -> None:
        """Embed the corpus window by window into the store, or use the finished collection that is there."""
        if not hasattr(self, "_resources"):
            self.setup(own_resources(self, ()))
        if (
            self.chunks is not None
            and self.chunks.unit == "tokens"
            and not self.encoder.at_hand
        ):
            _ = self.encoder.concurrency  # loads the model: its tokenizer, not an estimate, says where documents end
        self._embeds = Embedder(
            self.encoder,
            self._resources.cache,
            self.reduction.dimensions,
            self.reduction.native_encoder,
        )
        self._collection = self._opened(documents, meter)
        notes = None if self._fresh else self._collection.finished()
        if (
            notes is None or len(notes.get(COLLECTION_NUMBERS_NOTE, ())) < 3
        ):  # collections of before did not keep them all
            notes = self._build(documents, meter)
        points, numbers, self._texts = map(int, notes[COLLECTION_NUMBERS_NOTE])
        self._of_document = numbers / max(points, 1)
        for kind, ids in notes.items():
            for document_id in ids if kind != COLLECTION_NUMBERS_NOTE else ():
                meter.note(kind, document_id)

    def search(
        self, queries: Sequence[Query], depth: int, meter: Meter
    ) -> list[Ranking]:
        """Return one ranking of at most `depth` hits per query, in the order of the queries."""
        if not queries:
            return []
        with meter.stage("embed-queries", total=len({query.text for query in queries})):
            embedded = self._embeds.embed(
                [query.text for query in queries], "query", meter
            )
            meter.count(lost_tokens=int(embedded.truncated_tokens.sum()))
        vectors = embedded.vectors
        self._dimensions, self._of_query = (
            vectors.shape[1],
            count_numbers(vectors) / len(queries),
        )
        directed = nonzero_rows(vectors)
        for query, truncated, has_direction in zip(
            queries, embedded.truncated_tokens, directed, strict=True
        ):
            if truncated:
                meter.note("truncated-query", query.id)
            if not has_direction:
                meter.note("zero-vector-query", query.id)
        asked = [queries[i] for i in np.flatnonzero(directed).tolist()]
        filters = [
            filter_values(query, self.conditions) for query in asked if self.conditions
        ]
        with meter.stage("search", total=len(queries)):
            rankings = self._nearest(vectors[directed], filters, depth)
            meter.count(texts=len(queries))
        if self._collection.approximate:
            with meter.stage("search-exact", total=len(asked[:MAX_COMPARED_QUERIES])):
                exact = self._nearest(
                    vectors[directed][:MAX_COMPARED_QUERIES],
                    filters[:MAX_COMPARED_QUERIES],
                    depth,
                    exact=True,
                )
                _count_shared(rankings[:MAX_COMPARED_QUERIES], exact, depth, meter)
        for query, ranking in zip(asked, rankings, strict=True):
            if not ranking.doc_ids and vector_form(vectors) == "sparse":
                meter.note("no-hit-query", query.id)
            elif self.conditions and not ranking.doc_ids:
                meter.note("nothing-matches-query", query.id)
        found = iter(rankings)
        return [
            next(found) if has_direction else ranked([], [])
            for has_direction in directed.tolist()
        ]

    def answer(self, query: Query, depth: int, meter: Meter) -> Ranking:
        """Answer one query, its text embedded anew; embedding and search are stages of their own."""
        with meter.stage("embed-queries"):
            vectors = self._embeds.embed_uncached(query.text, "query", meter).vectors
        with meter.stage("search"):
            filters = [filter_values(query, self.conditions)] if self.conditions else []
            return (
                self._nearest(vectors, filters, depth)[0]
                if nonzero_rows(vectors)[0]
                else ranked([], [])
            )

    def _nearest(
        self,
        vectors: AnyVectors,
        filters: QueryFilters,
        depth: int,
        *,
        exact: bool = False,
    ) -> list[Ranking]:
        """Return the documents nearest to each query's vectors, among those that its filter leaves."""

        def search(positions: list[int], limit: int) -> list[Ranking]:
            some = [filters[i] for i in positions] if filters else ()
            return self._collection.search(
                vectors[positions], limit, exact=exact, query_filters=some
            )

        count = len(vectors)
        return (
            rank_by_best_passage(search, count, depth)
            if self.chunks
            else search(list(range(count)), depth)
        )

    def _build(
        self, documents: Iterable[Document], meter: Meter
    ) -> dict[str, list[str]]:
        notes: dict[str, list[str]] = {"empty": [], "truncated": [], "zero-vector": []}
        total, read = operator.length_hint(documents), 0

        def counted() -> Iterator[Document]:
            nonlocal read
            for document in documents:
                read += 1
                if not document.content.strip():
                    notes["empty"].append(document.id)
                yield document

        def expected(texts: int) -> int | None:
            """How many texts all documents give, if so many came of those that were read."""
            return round(texts * total / read) if total else None

        texts = distinct = points = numbers = 0
        texts_of = passages_in_context(
            counted(), self.chunks, contextual=self.encoder.contextual
        )
        for some in split_windows(texts_of, self.encoder.form):
            window, wholes = (
                [piece for piece, _ in some],
                [whole for _, whole in some if whole],
            )
            # A document that is read whole begins with its title: its passages need none.
            contents = [
                piece.text if whole and self.chunks else piece.content
                for piece, whole in some
            ]
            distinct += len(
                set(zip(contents, wholes, strict=True)) if wholes else set(contents)
            )
            with meter.stage("embed-documents", total=expected(distinct)):
                embedded = self._embeds.embed(contents, "document", meter, wholes)
                meter.count(lost_tokens=int(embedded.truncated_tokens.sum()))
            notes["truncated"] += _ids(window, embedded.truncated_tokens > 0)
            directed = nonzero_rows(embedded.vectors)
            points, numbers = (
                points + int(directed.sum()),
                numbers + count_numbers(embedded.vectors),
            )
            notes["zero-vector"] += _ids(window, ~directed)
            with meter.stage("index", total=expected(texts + len(contents))):
                if not texts:
                    self._collection.create(embedded.vectors.shape[1], anew=self._fresh)
                kept = [window[i] for i in np.flatnonzero(directed).tolist()]
                self._collection.upsert(
                    [one.id for one in kept],
                    embedded.vectors[directed],
                    self._fields(kept),
                )
                meter.count(texts=len(kept))
            texts += len(contents)
        if not texts:
            raise InputError(
                "nothing to index: the corpus holds no document with any content"
            )
        with meter.stage("index"):
            notes[COLLECTION_NUMBERS_NOTE] = [str(points), str(numbers), str(texts)]
            self._collection.finish(notes)
        return notes

    def _fields(self, documents: Sequence[Document]) -> list[dict[str, str]]:
        """The fields of documents by which searches are narrowed; nothing where none are."""
        names = sorted({one.field for one in self.conditions})
        return (
            [
                {name: one.fields[name] for name in names if name in one.fields}
                for one in documents
            ]
            if names
            else []
        )

    @property
    def _fresh(self) -> bool:
        """Whether the collection is made anew even where a finished one is there."""
        return self._resources.fresh or not self.encoder.is_cacheable

    def _opened(self, documents: Iterable[Document], meter: Meter) -> Store:
        """The collection: in memory one of its own, elsewhere those of one content are one."""
        count, form = operator.length_hint(documents), self.encoder.form
        place = self.store.resolve_location(count, form)
        exactness = {"search": "approximate" if self.store.approximate else "exact"}
        self._place: dict[str, str] = {"store": redact_url_users(place), **exactness}
        if self.reduction.quantization:
            self._place = {
                "store": MEMORY_LOCATION,
                "search": "exact",
                "quantization": self.reduction.quantization,
            }
            return QuantizedStore(self.reduction.quantization)
        content, stores = self._name, self._resources.stores
        if place not in (CSR_LOCATION, MEMORY_LOCATION):
            parts = self.chunks.suffix(documents) if self.chunks else ""
            fields = [one.field for one in self.conditions]
            held = (
                self.encoder.fingerprint_for("document"),
                self._resources.corpus_digest,
            )
            content = collection_content(
                *held, parts=parts, dimensions=self.reduction.dimensions, fields=fields
            )
        key = self.store, content, self._name if self.store.on_server else ""
        if key not in stores:
            stores[key] = open_store(
                self.store,
                content,
                documents=count,
                folder=self._resources.folder,
                meter=meter,
                form=form,
            )
        return stores[key]

    def _size_facts(self, store: Mapping[str, str]) -> dict[str, str]:
        """Dimensions, texts, bytes that a search needs at hand; of ragged vectors the numbers or tokens of a text.

        Args:
            store: what the store says of itself: how many of its points are indexed, where it says so.
        """
        texts, dimensions, form = self._texts, self._dimensions, self.encoder.form
        if self.reduction.quantization:
            size = texts * bytes_per_vector(self.reduction.quantization, dimensions)
        elif form == "dense":
            unindexed = int(store.get("points", 0)) - int(
                store.get("indexed_points", 0)
            )
            size = self.store.search_bytes(texts, dimensions, texts - max(unindexed, 0))
        else:
            size = self.store.bytes_of_numbers(texts * self._of_document, form)
        facts = {
            "dimensions": str(dimensions),
            "vectors": str(texts),
            "vector_bytes": str(size),
        }
        if form == "dense":
            return facts
        unit, width = ("nonzeros", 1) if form == "sparse" else ("tokens", dimensions)
        of_text, of_query = (
            f"{self._of_document / width:.4g}",
            f"{self._of_query / width:.4g}",
        )
        return {**facts, f"{unit}_per_text": of_text, f"{unit}_per_query": of_query}


def _ids(window: Sequence[Document], chosen: npt.NDArray[np.bool_]) -> list[str]:
    """Return the ids of the chosen documents, or of those that have a chosen passage."""
    return list(
        dict.fromkeys(
            document_of_passage(window[i].id) for i in np.flatnonzero(chosen).tolist()
        )
    )


def _count_shared(
    approximate: Sequence[Ranking], exact: Sequence[Ranking], depth: int, meter: Meter
) -> None:
    """Count how many of the exact hits an approximate search found, among the first 10 and within the depth."""
    counts = {"texts": len(exact)}
    for name, cutoff in (("hits_at_10", 10), ("hits", depth)):
        pairs = [
            (set(a.doc_ids[:cutoff]), set(b.doc_ids[:cutoff]))
            for a, b in zip(approximate, exact, strict=True)
        ]
        counts[f"exact_{name}"] = sum(len(b) for _, b in pairs)
        counts[f"shared_{name}"] = sum(len(a & b) for a, b in pairs)
    meter.count(**counts)
