"""Search among the documents that match: by payload filters in every store, by a mask in BM25, alike in all.

One index holds all documents, whatever is wanted of them: words are as rare as they are among all documents, as in a
search engine that filters.
"""

import json
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from retrievers.cache import Resources
from retrievers.meter import Meter
from retrievers.ranking import Mask, asked_until
from retrievers.types import Document, FilterValues, Query, Ranking, Retriever, ranked


class Condition(NamedTuple):
    """What one field of a document must hold."""

    field: str
    values: tuple[str, ...] = ()
    """One of these; or, where there are none, what the query's own field holds."""
    query_field: str = ""


def conditions_of(table: Mapping[str, Any]) -> list[Condition]:
    """Return what a table of fields asks of documents.

    >>> [one.values or one.query_field for one in conditions_of({"tongue": ["ja", "de"], "owner": {"query": "user"}})]
    [('de', 'ja'), 'user']
    """
    conditions = []
    for name, value in table.items():
        own = value["query"] if isinstance(value, Mapping) else ""
        held = (
            () if own else (value,) if isinstance(value, str) else tuple(sorted(value))
        )
        conditions.append(Condition(name, held, own))
    return conditions


@runtime_checkable
class SupportsFilter(Protocol):
    """A retriever that can search among the documents that match."""

    def set_filter(self, conditions: Sequence[Condition]) -> None:
        """Take what queries want of documents; called once, before the corpus is indexed."""


class Filtered(Retriever):
    """Another retriever, searched among the documents whose fields match; asked for more hits until enough do.

    Args:
        retriever: not indexed yet.
        conditions: field -> its value, several of them, or `{"query": field}`, the query's own; or a list of
            conditions.

    >>> from retrievers import BM25
    >>> Filtered(BM25(), {"language": "ja"}).written()
    {'kind': 'bm25', 'filter': {'language': ['ja']}}
    """

    def __init__(
        self, retriever: Retriever, conditions: Mapping[str, Any] | Sequence[Condition]
    ) -> None:
        given = (
            conditions_of(conditions) if isinstance(conditions, Mapping) else conditions
        )
        self.retriever, self._conditions = retriever, tuple(given)
        self._rows: dict[str, int] = {}
        self._values = FieldValues(one.field for one in self._conditions)

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the retriever says of itself, and the filter."""
        return {**self.retriever.provenance, **shown(self._conditions)}

    def written(self) -> dict[str, Any]:
        """Its table in an experiment file."""
        return {**self.retriever.written(), "filter": table_of(self._conditions)}

    def check(self) -> None:
        """Look for what the retriever needs."""
        self.retriever.check()

    def use(self, resources: Resources) -> None:
        """Hand on what the retrievers of a run share."""
        self.retriever.use(resources)

    def index(self, documents: Iterable[Document], meter: Meter) -> None:
        """Index the whole corpus, and keep the fields that are asked for."""
        for row, document in enumerate(documents):
            self._rows[document.id] = row
            self._values.add(document.fields)
        self.retriever.index(documents, meter)

    def search(
        self, queries: Sequence[Query], depth: int, meter: Meter
    ) -> list[Ranking]:
        """Return each query's hits among the documents that match; none, with a note, where no document does."""
        for query in queries:
            if not self._values.matching(wanted(query, self._conditions)).any():
                meter.note("nothing-matches-query", query.id)

        return self._enough(
            queries, depth, lambda some, size: self.retriever.search(some, size, meter)
        )

    def answer(self, query: Query, depth: int, meter: Meter) -> Ranking:
        """Answer one query; it is asked again for more where too few hits match."""
        return self._enough(
            [query],
            depth,
            lambda some, size: [self.retriever.answer(some[0], size, meter)],
        )[0]

    def _enough(
        self,
        queries: Sequence[Query],
        depth: int,
        ask: Callable[[list[Query], int], list[Ranking]],
    ) -> list[Ranking]:
        return asked_until(
            lambda positions, size: ask(
                [queries[position] for position in positions], size
            ),
            len(queries),
            depth,
            lambda at, found, size: self._settled(queries[at], found, size, depth),
        )

    def _settled(
        self, query: Query, found: Ranking, size: int, depth: int
    ) -> Ranking | None:
        """The hits that match; None where there may be more of them."""
        matching = self._values.matching(wanted(query, self._conditions))
        hits = [
            hit
            for hit in found
            if (row := self._rows.get(hit.doc_id)) is not None and matching[row]
        ]
        kept = ranked([hit.doc_id for hit in hits], [hit.score for hit in hits], depth)
        return (
            kept
            if len(kept) == depth or len(found) < size or size >= len(self._rows)
            else None
        )


class FieldValues:
    """Which documents hold what in some fields, or, where none are named, in all that they are given with."""

    def __init__(self, names: Iterable[str] | None = None) -> None:
        self._names = None if names is None else set(names)
        self._rows: dict[tuple[str, str], array[int]] = {}
        self._count = 0

    def add(self, fields: Mapping[str, str]) -> None:
        """Take in the fields of the next document."""
        for name in (
            fields.keys() if self._names is None else self._names & fields.keys()
        ):
            self._rows.setdefault((name, fields[name]), array("q")).append(self._count)
        self._count += 1

    def matching(self, wanted: FilterValues) -> Mask:
        """Return for each document, in the order in which they were taken in, whether it holds what is wanted."""
        met = np.zeros(self._count, dtype=np.int64)
        for name, values in wanted:
            for value in set(values):
                met[np.asarray(self._rows.get((name, value), ()), dtype=np.int64)] += 1
        return np.asarray(met == len(wanted))

    def masks(self, wanted: Iterable[FilterValues]) -> list[Mask]:
        """Return which documents each query may find; nothing where that is every one."""
        wanted = list(wanted)
        masks = {one: self.matching(one) for one in set(wanted)}
        return [masks[one] for one in wanted]


def wanted(query: Query, conditions: Iterable[Condition]) -> FilterValues:
    """Return what a query wants of documents; a field that the query lacks can be held by no document.

    >>> wanted(Query("q", "text", {"lang": "ja"}), [Condition("language", query_field="lang")])
    (('language', ('ja',)),)
    """
    own = ((one, query.fields.get(one.query_field, "")) for one in conditions)
    return tuple(
        sorted(
            (one.field, one.values or ((value,) if value else ())) for one, value in own
        )
    )


def shown(conditions: Iterable[Condition]) -> dict[str, str]:
    """Return what the manifest keeps of a filter; nothing where there is none.

    >>> shown([Condition("language", ("de", "ja"))])
    {'filter': '{"language": ["de", "ja"]}'}
    """
    table = table_of(conditions)
    return {"filter": json.dumps(table, ensure_ascii=False)} if table else {}


def table_of(conditions: Iterable[Condition]) -> dict[str, Any]:
    """Return the table of fields that asks for this."""
    return {
        one.field: list(one.values) or {"query": one.query_field} for one in conditions
    }
