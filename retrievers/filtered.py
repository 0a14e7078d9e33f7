"""A search among the documents that match."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from retrievers.conditions import (
    Condition,
    FieldValues,
    conditions_table,
    filter_facts,
    filter_values,
    parse_conditions,
)
from retrievers.document import Document
from retrievers.meter import Meter
from retrievers.query import Query
from retrievers.ranking import Ranking, ranked, search_until_settled
from retrievers.resources import Resources
from retrievers.retriever import Retriever


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
    >>> Filtered(BM25(), {"language": "ja"}).to_config()
    {'kind': 'bm25', 'filter': {'language': ['ja']}}
    """

    def __init__(
        self, retriever: Retriever, conditions: Mapping[str, Any] | Sequence[Condition]
    ) -> None:
        given = (
            parse_conditions(conditions)
            if isinstance(conditions, Mapping)
            else conditions
        )
        self.retriever, self._conditions = retriever, tuple(given)
        self._rows: dict[str, int] = {}
        self._values = FieldValues(one.field for one in self._conditions)

    @property
    def provenance(self) -> Mapping[str, str]:
        """What the retriever says of itself, and the filter."""
        return {**self.retriever.provenance, **filter_facts(self._conditions)}

    def to_config(self) -> dict[str, Any]:
        """Its table in an experiment file."""
        return {
            **self.retriever.to_config(),
            "filter": conditions_table(self._conditions),
        }

    def check(self) -> None:
        """Look for what the retriever needs."""
        self.retriever.check()

    def setup(self, resources: Resources) -> None:
        """Hand on what the retrievers of a run share."""
        self.retriever.setup(resources)

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
            if not self._values.matching(filter_values(query, self._conditions)).any():
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
        return search_until_settled(
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
        matching = self._values.matching(filter_values(query, self._conditions))
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
