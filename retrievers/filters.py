"""Retrieval among the documents that match: alike in BM25 and in every store, since the others are not in the index.

One index is made for each set of values that the queries ask for, so words are as rare as they are among the matching
documents, and an approximate search never has to look past documents that do not match.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from retrievers.meter import Meter
from retrievers.types import Document, Query, Ranking, Retriever, ranked

Wanted = tuple[tuple[str, tuple[str, ...]], ...]
"""Field -> the values of which a document must have one, as sorted pairs."""


class Condition(NamedTuple):
    """What one field of a document must hold."""

    field: str
    values: tuple[str, ...] = ()
    """One of these; or, where there are none, what the query's own field holds."""
    query_field: str = ""


class FilteredRetriever(Retriever):
    """Lets a retriever of its own answer the queries that want the same values."""

    def __init__(self, make: Callable[[str], Retriever], conditions: Sequence[Condition]) -> None:
        """Take what makes a retriever for one set of values, by a name for that set, and the conditions."""
        self._make, self._conditions = make, tuple(conditions)
        self._made: dict[Wanted, Retriever | None] = {}
        self._documents: Iterable[Document] = ()

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the first retriever says, and the filter."""
        first = next((one for one in self._made.values() if one is not None), None)
        written = {one.field: list(one.values) or {"query": one.query_field} for one in self._conditions}
        shown = json.dumps(written, ensure_ascii=False)
        return {**(first.provenance if first else {}), "filter": shown, "indexes": str(len(self._made))}

    def index(self, documents: Iterable[Document], meter: Meter) -> None:
        """Keep the corpus: indexes are made when it is known what the queries want."""
        self._documents = documents

    def search(self, queries: Sequence[Query], depth: int, meter: Meter) -> list[Ranking]:
        """Return each query's hits among the documents that match; none, with a note, where no document does."""
        groups: dict[Wanted, list[int]] = {}
        answers: list[Ranking] = [ranked([], [])] * len(queries)
        for place, query in enumerate(queries):
            groups.setdefault(wanted(query, self._conditions), []).append(place)
        for values, places in groups.items():
            retriever = self._retriever(values, meter)
            if retriever is None:
                for place in places:
                    meter.note("nothing-matches-query", queries[place].id)
                continue
            some = retriever.search([queries[place] for place in places], depth, meter)
            for place, ranking in zip(places, some, strict=True):
                answers[place] = ranking
        return answers

    def answer(self, query: Query, depth: int, meter: Meter) -> Ranking:
        """Answer one query from the index of its values."""
        retriever = self._retriever(wanted(query, self._conditions), meter)
        return ranked([], []) if retriever is None else retriever.answer(query, depth, meter)

    def _retriever(self, values: Wanted, meter: Meter) -> Retriever | None:
        if values not in self._made:
            retriever = None
            if next(iter(matching(self._documents, values)), None) is not None:
                retriever = self._make(name_of(values))
                retriever.index(Matching(self._documents, values), meter)
            self._made[values] = retriever
        return self._made[values]


class Matching:
    """The documents of a corpus that match, read anew each time."""

    def __init__(self, documents: Iterable[Document], values: Wanted) -> None:
        self._documents, self._values = documents, values

    def __iter__(self) -> Iterator[Document]:
        return matching(self._documents, self._values)


def wanted(query: Query, conditions: Iterable[Condition]) -> Wanted:
    """What a query wants of documents; a field that the query lacks can be held by no document.

    >>> wanted(Query("q", "text", {"lang": "ja"}), [Condition("language", query_field="lang")])
    (('language', ('ja',)),)
    """
    pairs = []
    for one in conditions:
        own = query.fields.get(one.query_field, "")
        pairs.append((one.field, one.values or ((own,) if own else ())))
    return tuple(sorted(pairs))


def matching(documents: Iterable[Document], values: Wanted) -> Iterator[Document]:
    """Yield the documents whose fields hold one of the wanted values each."""
    for document in documents:
        if all(document.fields.get(field) in some for field, some in values):
            yield document


def name_of(values: Wanted) -> str:
    """Name a set of values, for a collection."""
    return hashlib.sha256(json.dumps(values, ensure_ascii=False).encode()).hexdigest()[:16]
