"""The nearest neighbours of a query by vectors.

An encoder turns the corpus into a collection of a store (`retrievers.vector_index`), or
a finished collection is used. Queries are embedded, and searched in it. If documents
are cut, a search finds passages, and a document has the place of its best one
(`retrievers.texts.passage_ranking`). `retrievers.embedder` calls the encoder.
"""

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from retrievers import encoder_class
from retrievers.conditions import (
    GivenConditions,
    QueryFilters,
    conditions_table,
    conditions_text,
    filter_values,
    read_conditions,
)
from retrievers.document import Document
from retrievers.embedder import Embedder
from retrievers.errors import InputError, Problem
from retrievers.facts import RetrieverFacts, VectorFacts
from retrievers.identity import collection_content
from retrievers.meter import Meter
from retrievers.model import Encoder, is_encoder, model_facts
from retrievers.options.placeholders import instantiate, redact_url_users
from retrievers.options.python_objects import encoder_table
from retrievers.options.tables import validated
from retrievers.query import Query
from retrievers.ragged import AnyVectors, count_numbers, nonzero_rows
from retrievers.ranking import Ranking, ranked
from retrievers.resources import Resources, own_resources
from retrievers.retriever import Retriever
from retrievers.store import Store
from retrievers.stores.open import open_store
from retrievers.stores.options import (
    MEMORY_LOCATION,
    StoreOptions,
)
from retrievers.stores.quantized import QuantizedStore, bytes_per_vector
from retrievers.texts.chunking import Chunk
from retrievers.texts.passage_ranking import rank_by_best_passage
from retrievers.texts.placed_passages import PassagePlaces
from retrievers.vector_index import (
    COLLECTION_NUMBERS_NOTE,
    CollectionBuilder,
    CollectionNumbers,
)
from retrievers.vector_reduction import VectorReduction

MAX_COMPARED_QUERIES = 100
"""Queries for which an approximate search is compared with an exact one."""


class Dense(Retriever):
    """Ranks documents by how near their vectors are to the query's, in any form.

    Blank documents are never embedded, and vectors of length zero have no direction:
    neither is ever retrieved, and a query with such a vector retrieves nothing.
    Documents are noted as "empty", "zero-vector", and "truncated" if the model did not
    read a text to its end (of passages: any of a document's); queries as
    "zero-vector-query", "truncated-query" and, for sparse vectors, "no-hit-query".

    Args:
        encoder: turns texts into vectors: a local model's name or folder, an object
            with `encode`, a function of texts, a table, or an encoder.
        store: where the vectors are, as in an experiment file.
        chunk: how long documents are cut into passages; a document then has the score
            of its best passage.
        conditions: what queries require of documents, as for `Filtered`; empty if all
            are searched.
        reduction: the smaller vectors that are computed from the encoder's, if any.
        name: keeps its collection in memory, and its connection to a server, apart from
            those of the run's other retrievers.

    >>> model = "sentence-transformers/all-MiniLM-L6-v2"
    >>> Dense(model, chunk={"size": 800}).to_config()["chunk"]
    {'size': 800}
    """

    def __init__(
        self,
        encoder: Any,
        *,
        store: StoreOptions | Mapping[str, Any] | str | Path = "",
        chunk: Chunk | Mapping[str, Any] | None = None,
        conditions: GivenConditions = (),
        reduction: VectorReduction | None = None,
        name: str = "vectors",
    ) -> None:
        self._encoder_source = encoder
        self._encoder: Encoder | None = encoder if is_encoder(encoder) else None
        _refuse_late_chunking(encoder, chunk)
        self._chunk = chunk
        self._store_source = str(store) if isinstance(store, Path) else store
        self.store = _store_options(self._store_source)
        self.conditions = read_conditions(conditions)
        self.reduction = reduction or VectorReduction()
        self._name = name
        self._text_count = 0
        """Documents, or passages, that are embedded."""
        self._numbers_per_text = 0.0
        """Numbers of the vectors of a document, or passage, on average."""
        self._dimensions = 0
        """Dimensions of the vectors that were searched last; 0 before a search."""
        self._numbers_per_query = 0.0
        self._location_facts = VectorFacts()
        """Where the vectors are, and how they are searched; set with the collection."""
        self._resources: Resources | None = None
        # `index` sets these two, before any search.
        self._embedder: Embedder
        self._collection: Store

    @property
    def encoder(self) -> Encoder:
        """The encoder, which is created on first use."""
        if self._encoder is None:
            options = encoder_table(self._encoder_source)
            self._encoder = instantiate(encoder_class(options.pop("kind")), options)
            _refuse_late_chunking(self._encoder, self._chunk)
        return self._encoder

    @property
    def answers_here(self) -> bool:
        """Whether the model runs here and is loaded, and no server has the vectors."""
        is_here = self.encoder.runs_here and not self.store.on_server
        return is_here and self.encoder.is_loaded

    @cached_property
    def chunks(self) -> Chunk | None:
        """How documents are cut: by characters, or by the encoder's tokens."""
        chunk = self._chunk
        if chunk is None:
            return None
        if not isinstance(chunk, Chunk):
            chunk = validated(Chunk, chunk, "chunk")
        if chunk.unit != "tokens":
            return chunk
        return chunk.with_token_counter(self.encoder.count_whole)

    def to_config(self) -> dict[str, Any]:
        """Return its table in an experiment file.

        Its vectors are those of its own encoder, also if they were derived from another
        retriever's.
        """
        encoder_options = encoder_table(self._encoder_source)
        form = getattr(encoder_class(encoder_options["kind"]), "form", "dense")
        table = {"kind": form, "encoder": encoder_options}
        if isinstance(self._store_source, StoreOptions):
            table["store"] = self._store_source.model_dump(exclude_unset=True)
        elif self._store_source:
            table["store"] = self._store_source
        if self.conditions:
            table["filter"] = conditions_table(self.conditions)
        if self._chunk:
            table["chunk"] = self._chunk
        if self.reduction.dimensions is not None:
            table["dimensions"] = self.reduction.dimensions
            table["proof"] = self.reduction.native_encoder is not None
        if self.reduction.quantization is not None:
            table["quantization"] = self.reduction.quantization
        return table

    @property
    def facts(self) -> RetrieverFacts:
        """What the manifest records of the model and the collection after a search."""
        return RetrieverFacts(
            model=model_facts(self.encoder),
            vectors=self._with_sizes(
                replace(
                    self._location_facts,
                    derived_from=self.reduction.derived_from,
                    cut_from=self._embedder.cut_from,
                    least_cosine=self._embedder.least_cosine,
                    collection=self._collection.facts,
                )
            ),
            conditions=conditions_text(self.conditions),
        )

    def setup(self, resources: Resources) -> None:
        """Receive the run's cache and its collections."""
        self._resources = resources

    @property
    def _run_resources(self) -> Resources:
        if self._resources is None:
            raise RuntimeError("index or setup comes before a search")
        return self._resources

    def index(self, documents: Iterable[Document], meter: Meter) -> None:
        """Embed the corpus into the store, or use the finished collection in it."""
        documents = self._with_resources(documents)
        cuts_by_tokens = self.chunks is not None and self.chunks.unit == "tokens"
        if cuts_by_tokens and not self.encoder.at_hand:
            # Its tokenizer, not an estimate, must cut the documents.
            self.encoder.load()
        self._embedder = Embedder(
            self.encoder,
            self._run_resources.cache,
            self.reduction.dimensions,
            self.reduction.native_encoder,
        )
        self._collection = self._open_collection(documents, meter)
        notes = None if self._fresh else self._collection.finished()
        numbers = None if notes is None else CollectionNumbers.from_notes(notes)
        if notes is None or numbers is None:  # also if an earlier version built it
            builder = CollectionBuilder(
                self._collection,
                self._embedder,
                chunks=self.chunks,
                filter_fields=self._filter_fields,
                anew=self._fresh,
            )
            notes = builder.build(documents, meter)
            numbers = builder.numbers
        self._text_count = numbers.text_count
        self._numbers_per_text = numbers.number_count / max(numbers.point_count, 1)
        for kind, document_ids in notes.items():
            if kind != COLLECTION_NUMBERS_NOTE:
                for document_id in document_ids:
                    meter.note(kind, document_id)

    def _with_resources(self, documents: Iterable[Document]) -> Iterable[Document]:
        """Return the documents; outside a run, set up resources of its own before.

        Only passages are looked up in the documents later, which are then kept in
        memory.
        """
        if self._resources is not None:
            return documents
        self._resources = own_resources(self, documents if self.chunks else ())
        return self._resources.corpus if self.chunks else documents

    def search(
        self, queries: Sequence[Query], depth: int, meter: Meter
    ) -> list[Ranking]:
        """Return one ranking of at most `depth` hits per query, in their order."""
        if not queries:
            return []
        texts = [query.text for query in queries]
        with meter.stage("embed-queries", total=len(set(texts))):
            embedded = self._embedder.embed(texts, "query", meter)
            meter.count(lost_tokens=int(embedded.truncated_tokens.sum()))
        vectors = embedded.vectors
        self._dimensions = vectors.shape[1]
        self._numbers_per_query = count_numbers(vectors) / len(queries)
        has_direction = nonzero_rows(vectors)
        for i, query in enumerate(queries):
            if embedded.truncated_tokens[i]:
                meter.note("truncated-query", query.id)
            if not has_direction[i]:
                meter.note("zero-vector-query", query.id)
        usable_queries = [queries[i] for i in np.flatnonzero(has_direction).tolist()]
        usable_vectors = vectors[has_direction]
        filters = self._query_filters(usable_queries)
        with meter.stage("search", total=len(queries)):
            rankings = self._nearest(usable_vectors, filters, depth)
            meter.count(texts=len(queries))
        if self.chunks:
            self._passage_places.note_changed(meter)
        if self._collection.approximate:
            self._compare_with_exact(
                rankings, usable_vectors, filters, depth, meter=meter
            )
        self._note_empty_rankings(usable_queries, rankings, meter)
        usable_rankings = iter(rankings)
        return [
            next(usable_rankings) if is_usable else ranked([], [])
            for is_usable in has_direction.tolist()
        ]

    def answer(self, query: Query, depth: int, meter: Meter) -> Ranking:
        """Rank for one query without the cache; embedding is a stage of its own."""
        with meter.stage("embed-queries"):
            embedded = self._embedder.embed_uncached(query.text, "query", meter)
        vectors = embedded.vectors
        self._dimensions = vectors.shape[1]
        with meter.stage("search"):
            if not nonzero_rows(vectors)[0]:
                return ranked([], [])
            return self._nearest(vectors, self._query_filters([query]), depth)[0]

    def _note_empty_rankings(
        self, queries: Sequence[Query], rankings: Sequence[Ranking], meter: Meter
    ) -> None:
        """Note queries without hits, with the likely reason."""
        for query, ranking in zip(queries, rankings, strict=True):
            if ranking.doc_ids:
                continue
            if self.encoder.form == "sparse":
                meter.note("no-hit-query", query.id)
            elif self.conditions:
                meter.note("nothing-matches-query", query.id)

    def _query_filters(self, queries: Sequence[Query]) -> QueryFilters:
        """Return what each query requires of documents; empty without conditions."""
        if not self.conditions:
            return []
        return [filter_values(query, self.conditions) for query in queries]

    def _nearest(
        self,
        vectors: AnyVectors,
        filters: QueryFilters,
        depth: int,
        *,
        exact: bool = False,
    ) -> list[Ranking]:
        """Return the documents nearest to each query's vectors, of those that match.

        Args:
            vectors: the queries' vectors.
            filters: what each query requires; empty if all documents match.
            depth: documents of each query, at most.
            exact: whether every vector is compared.
        """

        def search(positions: list[int], limit: int) -> list[Ranking]:
            query_filters = [filters[i] for i in positions] if filters else ()
            return self._collection.search(
                vectors[positions], limit, exact=exact, query_filters=query_filters
            )

        if self.chunks:
            place = self._passage_places.place
            return rank_by_best_passage(search, len(vectors), depth, place)
        return search(list(range(len(vectors))), depth)

    def _compare_with_exact(
        self,
        rankings: Sequence[Ranking],
        vectors: AnyVectors,
        filters: QueryFilters,
        depth: int,
        *,
        meter: Meter,
    ) -> None:
        """Count the hits of the first queries that an exact search has, too."""
        compared = slice(MAX_COMPARED_QUERIES)
        approximate_rankings = rankings[compared]
        with meter.stage("search-exact", total=len(approximate_rankings)):
            exact_rankings = self._nearest(
                vectors[compared], filters[compared], depth, exact=True
            )
            _count_shared_hits(approximate_rankings, exact_rankings, depth, meter)

    @cached_property
    def _passage_places(self) -> PassagePlaces:
        """Places of passages in their documents."""
        assert self.chunks is not None
        resources = self._run_resources
        return PassagePlaces(resources.corpus, self.chunks, resources.count_tokens)

    @property
    def _filter_fields(self) -> list[str]:
        """The fields of documents that conditions use."""
        return sorted({condition.field for condition in self.conditions})

    @property
    def _fresh(self) -> bool:
        """Whether the collection is built again even if it is finished.

        Earlier vectors of an encoder without a complete fingerprint may be others.
        """
        return self._run_resources.fresh or not self.encoder.is_cacheable

    def _open_collection(self, documents: Iterable[Document], meter: Meter) -> Store:
        """Return the opened collection, and set the facts about where it is.

        In memory each retriever has its own; elsewhere retrievers share the collection
        with the same content.
        """
        document_count = operator.length_hint(documents)
        form = self.encoder.form
        located_options = self.store.at_location(document_count, form)
        if self.reduction.quantization:
            self._location_facts = VectorFacts(
                store=MEMORY_LOCATION,
                search="exact",
                quantization=self.reduction.quantization,
            )
            return QuantizedStore(self.reduction.quantization)
        self._location_facts = VectorFacts(
            store=redact_url_users(str(located_options.location)),
            search="approximate" if self.store.approximate else "exact",
        )
        content = self._name
        if not located_options.in_process:
            content = collection_content(
                self.encoder.fingerprint_for("document"),
                self._run_resources.corpus_digest,
                parts=self.chunks.suffix(documents) if self.chunks else "",
                dimensions=self.reduction.dimensions,
                fields=self._filter_fields,
            )
        stores = self._run_resources.stores
        # On a server each retriever has a connection, since that counts its retries.
        key = (self.store, content, self._name if self.store.on_server else "")
        if key not in stores:
            stores[key] = open_store(
                self.store,
                content,
                documents=document_count,
                folder=self._run_resources.folder,
                meter=meter,
                form=form,
            )
        return stores[key]

    def _with_sizes(self, facts: VectorFacts) -> VectorFacts:
        """Return facts with the size of the vectors: number, dimensions, bytes.

        For sparse vectors and those of tokens also the numbers, or tokens, of a text.
        """
        texts = self._text_count
        dimensions = self._dimensions
        form = self.encoder.form
        if self.reduction.quantization:
            size = texts * bytes_per_vector(self.reduction.quantization, dimensions)
        elif form == "dense":
            indexed = texts - facts.collection.unindexed_points
            size = self.store.search_bytes(texts, dimensions, indexed)
        else:
            size = self.store.bytes_of_numbers(texts * self._numbers_per_text, form)
        facts = replace(facts, dimensions=dimensions, texts=texts, size_bytes=size)
        if form == "sparse":
            return replace(
                facts,
                nonzeros_per_text=self._numbers_per_text,
                nonzeros_per_query=self._numbers_per_query,
            )
        if form == "multivector":
            return replace(
                facts,
                tokens_per_text=self._numbers_per_text / dimensions,
                tokens_per_query=self._numbers_per_query / dimensions,
            )
        return facts


def _refuse_late_chunking(
    encoder: Any, chunk: Chunk | Mapping[str, Any] | None
) -> None:
    """Raise InputError if late chunking is set for an encoder that cannot do it."""
    is_late = isinstance(chunk, Chunk) and chunk.late
    if isinstance(chunk, Mapping):
        is_late = bool(chunk.get("late"))
    if not is_late:
        return
    if is_encoder(encoder):
        is_able = type(encoder).supports_late_chunking and encoder.has_token_vectors
    else:
        kind = encoder_class(encoder_table(encoder).get("kind", ""))
        is_able = getattr(kind, "supports_late_chunking", False)
    if not is_able:
        problem = (
            "needs the vectors of a document's tokens, which this encoder does not give"
        )
        remedy = "use a sentence-transformers model that is not static, or leave it out"
        raise InputError(Problem("chunk.late", problem, remedy))


def _store_options(store: StoreOptions | Mapping[str, Any] | str) -> StoreOptions:
    """Return the options of a store that is given as a table or a location."""
    if isinstance(store, StoreOptions):
        return store
    if isinstance(store, Mapping):
        return StoreOptions(**store)
    return StoreOptions(location=store or None)


def _count_shared_hits(
    approximate: Sequence[Ranking], exact: Sequence[Ranking], depth: int, meter: Meter
) -> None:
    """Count exact hits, and how many of them the approximate ones are.

    Both to rank 10, and to `depth`.
    """
    counts = {"texts": len(exact)}
    for name, cutoff in (("hits_at_10", 10), ("hits", depth)):
        exact_count = 0
        shared_count = 0
        for approximate_ranking, exact_ranking in zip(approximate, exact, strict=True):
            approximate_hits = set(approximate_ranking.doc_ids[:cutoff])
            exact_hits = set(exact_ranking.doc_ids[:cutoff])
            exact_count += len(exact_hits)
            shared_count += len(approximate_hits & exact_hits)
        counts[f"exact_{name}"] = exact_count
        counts[f"shared_{name}"] = shared_count
    meter.count(**counts)
