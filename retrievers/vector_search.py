"""Retrieval by vectors of any form: documents and queries become vectors, a store finds the nearest."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from retrievers.chunking import Chunks, best_passages, document_of, passages
from retrievers.errors import InputError
from retrievers.filters import Condition, shown, wanted
from retrievers.meter import Meter
from retrievers.ragged import AnyVectors, Form, form_of, numbers_of, with_direction
from retrievers.types import Document, Embedded, FilterValues, Query, Ranking, Retriever, Role, Store, ranked

Item = TypeVar("Item")
WINDOW = 16_384
"""Texts embedded together: requests are planned within a window, so that they do not depend on the cache."""
TOKENS_WINDOW = 1_024
"""The same where each token has a vector."""

COMPARED = 100
"""Queries for which an approximate search is compared with an exact one."""

NUMBERS = "numbers"
"""What a collection keeps among its notes: the vectors in it, the numbers of them all, and the texts that were read."""


class CorpusSize(NamedTuple):
    """How many texts there are, and how large their vectors are."""

    texts: int = 0
    """Documents, or passages, that are not blank; 0 in collections of before, which did not keep it."""
    dimensions: int = 0
    """Of a text's vector, or of a token's."""
    document_numbers: float = 0.0
    """Numbers that are kept of a document, or passage, on average; 0 where all have one vector."""
    query_numbers: float = 0.0


Describe = Callable[[CorpusSize, Mapping[str, str]], Mapping[str, str]]
"""How large the vectors are, and what the store says of itself -> what the manifest keeps of models and collection."""


class Embeds(Protocol):
    """Turns texts, none of them blank, into vectors in the same order: normally an `Embedder`."""

    @property
    def form(self) -> Form:
        """What stands for a text."""
        return "dense"

    def embed(self, texts: Sequence[str], role: Role, meter: Meter) -> Embedded:
        """Embed texts, normally through the cache."""

    def one(self, text: str, role: Role, meter: Meter) -> Embedded:
        """Embed one text past the cache."""


class QueryVectors(NamedTuple):
    """The vectors of some queries, and what each wants of documents."""

    vectors: AnyVectors
    wanted: Sequence[FilterValues] = ()
    """One a query, or nothing where all documents are searched."""

    def first(self, count: int) -> QueryVectors:
        """The same of the first queries."""
        return QueryVectors(self.vectors[:count], self.wanted[:count])


class VectorRetriever(Retriever):
    """Answers with the documents whose vectors lie nearest to the query's, in the way of their form (see `Store`).

    Blank documents are never embedded, and vectors of length zero have no direction: neither is ever retrieved, and a
    query with such a vector retrieves nothing. Documents are noted as "empty", "zero-vector", and "truncated" where the
    model did not read a text to its end (of passages: any of a document's); queries as "zero-vector-query",
    "truncated-query" and, of sparse vectors, "no-hit-query".

    Args:
        embedder: turns texts into vectors.
        open_store: opens the collection when the index is made, with the meter of that call.
        fresh: make the collection anew even where a finished one is there.
        chunks: cut documents into passages; a document then has its best passage's score.
        describe: what the manifest keeps, known once queries were embedded.
        conditions: what a query wants of documents, if not all are to be searched.
    """

    def __init__(
        self,
        embedder: Embeds,
        open_store: Callable[[Meter], Store],
        *,
        fresh: bool = False,
        chunks: Chunks | None = None,
        describe: Describe = lambda extent, facts: {},
        conditions: Sequence[Condition] = (),
    ) -> None:
        self._embedder = embedder
        self._open_store = open_store
        self._fresh = fresh
        self._chunks = chunks
        self._describe = describe
        self._conditions = tuple(conditions)
        self._extent = CorpusSize()
        self.store: Store
        """Known once the corpus was indexed."""

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the manifest keeps of the models and the collection."""
        return {**self._describe(self._extent, self.store.facts), **shown(self._conditions)}

    def index(self, documents: Iterable[Document], meter: Meter) -> None:
        """Embed the corpus window by window into the store, or use the finished collection that is there."""
        self.store = self._open_store(meter)
        notes = None if self._fresh else self.store.finished()
        if notes is None:
            notes = self._build(documents, meter)
        points, numbers, texts = map(int, [*notes.get(NUMBERS, ("0", "0")), "0"][:3])
        self._extent = CorpusSize(texts, document_numbers=numbers / points if points else 0.0)
        for kind, ids in notes.items():
            for document_id in ids if kind != NUMBERS else ():
                meter.note(kind, document_id)

    def search(self, queries: Sequence[Query], depth: int, meter: Meter) -> list[Ranking]:
        """Return one ranking of at most `depth` hits per query, in the order of the queries."""
        if not queries:
            return []
        with meter.stage("embed-queries", total=len({query.text for query in queries})):
            embedded = self._embedder.embed([query.text for query in queries], "query", meter)
            meter.count(lost_tokens=int(embedded.truncated_tokens.sum()))
        self._extent = self._extent._replace(
            dimensions=embedded.vectors.shape[1], query_numbers=numbers_of(embedded.vectors) / len(queries)
        )
        directed = with_direction(embedded.vectors)
        for query, truncated, has_direction in zip(queries, embedded.truncated_tokens, directed, strict=True):
            if truncated:
                meter.note("truncated-query", query.id)
            if not has_direction:
                meter.note("zero-vector-query", query.id)
        asked = QueryVectors(
            embedded.vectors[directed],
            [wanted(queries[i], self._conditions) for i in np.flatnonzero(directed).tolist() if self._conditions],
        )
        with meter.stage("search", total=len(queries)):
            rankings = self.nearest(asked, depth)
            meter.count(texts=len(queries))
        if self.store.approximate:
            self._compare_with_exact(asked.first(COMPARED), rankings[:COMPARED], depth, meter)
        answers = [ranked([], [])] * len(queries)
        for i, ranking in zip(np.flatnonzero(directed).tolist(), rankings, strict=True):
            answers[i] = ranking
            if not ranking.doc_ids and form_of(embedded.vectors) == "sparse":
                meter.note("no-hit-query", queries[i].id)
            elif self._conditions and not ranking.doc_ids:
                meter.note("nothing-matches-query", queries[i].id)
        return answers

    def answer(self, query: Query, depth: int, meter: Meter) -> Ranking:
        """Answer one query, its text embedded anew; embedding and search are stages of their own."""
        with meter.stage("embed-queries"):
            vectors = self._embedder.one(query.text, "query", meter).vectors
        with meter.stage("search"):
            asked = QueryVectors(vectors, [wanted(query, self._conditions)] if self._conditions else [])
            return self.nearest(asked, depth)[0] if with_direction(vectors)[0] else ranked([], [])

    def nearest(self, asked: QueryVectors, depth: int, *, exact: bool = False) -> list[Ranking]:
        """Return the documents nearest to each query's vectors, among those that are wanted."""

        def search(positions: list[int], limit: int) -> list[Ranking]:
            some = [asked.wanted[i] for i in positions] if asked.wanted else ()
            return self.store.search(asked.vectors[positions], limit, exact=exact, wanted=some)

        count = len(asked.vectors)
        return best_passages(search, count, depth) if self._chunks else search(list(range(count)), depth)

    def _compare_with_exact(
        self, asked: QueryVectors, approximate: Sequence[Ranking], depth: int, meter: Meter
    ) -> None:
        """Count how many of the exact hits an approximate search found, among the first 10 and within the depth."""
        with meter.stage("search-exact", total=len(asked.vectors)):
            exact = self.nearest(asked, depth, exact=True)
            meter.count(texts=len(asked.vectors))
            for name, cutoff in (("hits_at_10", 10), ("hits", depth)):
                pairs = [
                    (set(a.doc_ids[:cutoff]), set(b.doc_ids[:cutoff])) for a, b in zip(approximate, exact, strict=True)
                ]
                meter.count(
                    **{
                        f"exact_{name}": sum(len(b) for _, b in pairs),
                        f"shared_{name}": sum(len(a & b) for a, b in pairs),
                    }
                )

    def _build(self, documents: Iterable[Document], meter: Meter) -> dict[str, list[str]]:
        notes: dict[str, list[str]] = {"empty": [], "truncated": [], "zero-vector": []}
        corpus = _Counted(documents)
        texts = distinct = points = numbers = 0
        created = False
        for window in windows(self._texts(corpus, notes["empty"]), self._embedder.form):
            contents = [document.content for document in window]
            texts, distinct = texts + len(contents), distinct + len(set(contents))
            with meter.stage("embed-documents", total=corpus.expected(distinct)):
                embedded = self._embedder.embed(contents, "document", meter)
                meter.count(lost_tokens=int(embedded.truncated_tokens.sum()))
            notes["truncated"] += _ids(window, embedded.truncated_tokens > 0)
            directed = with_direction(embedded.vectors)
            points, numbers = points + int(directed.sum()), numbers + numbers_of(embedded.vectors)
            notes["zero-vector"] += _ids(window, ~directed)
            with meter.stage("index", total=corpus.expected(texts)):
                if not created:
                    self.store.create(embedded.vectors.shape[1], anew=self._fresh)
                    created = True
                kept = [window[i] for i in np.flatnonzero(directed).tolist()]
                self.store.upsert([one.id for one in kept], embedded.vectors[directed], self._fields(kept))
                meter.count(texts=int(directed.sum()))
        if not created:
            raise InputError("nothing to index: the corpus holds no document with any content")
        with meter.stage("index"):
            notes[NUMBERS] = [str(points), str(numbers), str(texts)]
            self.store.finish(notes)
        return notes

    def _fields(self, documents: Sequence[Document]) -> list[dict[str, str]]:
        """The fields of documents by which searches are narrowed; nothing where none are."""
        names = sorted({one.field for one in self._conditions})
        fields = [{name: one.fields[name] for name in names if name in one.fields} for one in documents]
        return fields if names else []

    def _texts(self, documents: Iterable[Document], empty: list[str]) -> Iterator[Document]:
        """Yield what is embedded: documents or their passages; blank ones go to the list."""
        for document in documents:
            if document.content.strip():
                yield from passages(document, self._chunks) if self._chunks else (document,)
            else:
                empty.append(document.id)


class _Counted:
    """A corpus that knows how far it was read, so that progress can say how many texts there will be."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._documents = documents
        self._total = operator.length_hint(documents)
        self._read = 0
        self._ended = False

    def __iter__(self) -> Iterator[Document]:
        for document in self._documents:
            self._read += 1
            yield document
        self._ended = True

    def expected(self, texts: int) -> int | None:
        """How many texts the corpus will give if `texts` came of what was read: exact at its end, None if unknown."""
        if self._ended:
            return texts
        return round(texts * self._total / self._read) if self._total else None


def _ids(window: Sequence[Document], chosen: npt.NDArray[np.bool_]) -> list[str]:
    """Return the ids of the chosen documents, or of those that have a chosen passage."""
    return list(dict.fromkeys(document_of(window[i].id) for i in np.flatnonzero(chosen).tolist()))


def window_of(form: Form) -> int:
    """Return how many texts are embedded together: fewer where each of their tokens has a vector.

    >>> window_of("dense"), window_of("multivector")
    (16384, 1024)
    """
    return TOKENS_WINDOW if form == "multivector" else WINDOW


def windows(items: Iterable[Item], form: Form) -> Iterator[list[Item]]:
    """Yield documents, or texts, as they are embedded together."""
    stream, size = iter(items), window_of(form)
    while window := list(islice(stream, size)):
        yield window
