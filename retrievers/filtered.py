"""A search among the documents that match.

For retrievers that cannot filter by themselves (those that can are `SupportsFilter`):
more and more hits are requested, and those that do not match left out. `conditions.py`
says what matches.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from retrievers.conditions import (
    Condition,
    FieldValues,
    GivenConditions,
    conditions_table,
    conditions_text,
    filter_values,
    read_conditions,
)
from retrievers.document import Document
from retrievers.errors import InputError, Problem
from retrievers.facts import RetrieverFacts
from retrievers.meter import Meter
from retrievers.query import Query
from retrievers.ranking import Ranking, ranked, search_until_settled
from retrievers.resources import Resources
from retrievers.retriever import Retriever, check_retriever, read_facts


@runtime_checkable
class SupportsFilter(Protocol):
    """A retriever that can search among the documents that match."""

    def set_filter(self, conditions: Sequence[Condition]) -> None:
        """Set the filter; called once, before the corpus is indexed."""


class Filtered(Retriever):
    """Searches another retriever for documents whose fields match.

    It requests more hits until enough of them match, or there are no more: for a query
    that no document matches, the whole corpus. `repeatable` is that of the retriever
    that it filters, and a run reads it there.

    Args:
        retriever: not indexed yet, and without a filter.
        conditions: field -> its value, several of them, or `{"query": field}`, the
            query's own; or a list of conditions.

    Raises:
        InputError: the retriever has a filter, or as by `read_conditions`.

    >>> from retrievers import BM25
    >>> Filtered(BM25(), {"language": "ja"}).to_config()
    {'kind': 'bm25', 'filter': {'language': ['ja']}}
    """

    def __init__(self, retriever: Retriever, conditions: GivenConditions) -> None:
        check_retriever("retriever", retriever)
        if isinstance(retriever, Filtered) or getattr(retriever, "conditions", None):
            remedy = "name all fields in one filter"
            raise InputError(Problem("filter", "the retriever has one", remedy))
        self.retriever = retriever
        self._conditions = read_conditions(conditions)
        self._rows: dict[str, int] = {}
        """Document id -> the document's position in the corpus."""
        self._values = FieldValues(condition.field for condition in self._conditions)

    @property
    def answers_here(self) -> bool:
        """Whether the retriever that it filters answers here."""
        return self.retriever.answers_here

    @property
    def facts(self) -> RetrieverFacts:
        """What the retriever uses, and the filter."""
        facts = read_facts(self.retriever)
        return replace(facts, conditions=conditions_text(self._conditions))

    def to_config(self) -> dict[str, Any]:
        """Return its table in an experiment file.

        Raises:
            InputError: the retriever has parts, which an experiment filters each.
        """
        if self.retriever.parts:
            problem = "an experiment has none over retrievers that are combined"
            raise InputError(Problem("filter", problem, "filter each part"))
        return {
            **self.retriever.to_config(),
            "filter": conditions_table(self._conditions),
        }

    def check(self) -> None:
        """Check the retriever's requirements."""
        self.retriever.check()

    def setup(self, resources: Resources) -> None:
        """Pass the run's resources to the retriever."""
        self.retriever.setup(resources)

    def index(self, documents: Iterable[Document], meter: Meter) -> None:
        """Index the whole corpus, and store the fields that conditions use.

        The documents are read twice.
        """
        for row, document in enumerate(documents):
            self._rows[document.id] = row
            self._values.add(document.fields)
        self.retriever.index(documents, meter)

    def search(
        self, queries: Sequence[Query], depth: int, meter: Meter
    ) -> list[Ranking]:
        """Return each query's hits among the documents that match.

        A query for which no document matches has none, and is noted.
        """
        for query in queries:
            if not self._values.matching(filter_values(query, self._conditions)).any():
                meter.note("nothing-matches-query", query.id)

        def search_some(some_queries: list[Query], limit: int) -> list[Ranking]:
            return self.retriever.search(some_queries, limit, meter)

        return self._search_until_enough(queries, depth, search_some)

    def answer(self, query: Query, depth: int, meter: Meter) -> Ranking:
        """Rank for one query, with further requests if too few hits match."""

        def answer_again(_: list[Query], limit: int) -> list[Ranking]:
            return [self.retriever.answer(query, limit, meter)]

        [ranking] = self._search_until_enough([query], depth, answer_again)
        return ranking

    def _search_until_enough(
        self,
        queries: Sequence[Query],
        depth: int,
        search: Callable[[list[Query], int], list[Ranking]],
    ) -> list[Ranking]:
        """Return matching hits, requesting more until they are enough.

        Args:
            queries: the queries.
            depth: matching hits of each query.
            search: returns the hits of some queries, up to a limit.
        """

        def search_positions(positions: list[int], limit: int) -> list[Ranking]:
            return search([queries[position] for position in positions], limit)

        def matching_hits(position: int, hits: Ranking, limit: int) -> Ranking | None:
            matching = self._matching_hits(queries[position], hits, depth)
            has_all_hits = len(hits) < limit or limit >= len(self._rows)
            is_enough = has_all_hits or len(matching) == depth
            if is_enough and _has_passages(matching, hits, depth, limit):
                return matching
            return None

        return search_until_settled(
            search_positions, len(queries), depth, matching_hits
        )

    def _matching_hits(self, query: Query, ranking: Ranking, depth: int) -> Ranking:
        """Return the first `depth` hits that match a query's filter."""
        matches = self._values.matching(filter_values(query, self._conditions))
        hits = []
        for hit in ranking:
            row = self._rows.get(hit.doc_id)
            if row is not None and matches[row]:  # None: no document has this id
                hits.append(hit)
        matching = ranked(
            [hit.doc_id for hit in hits], [hit.score for hit in hits], depth
        ).with_trace(ranking.trace)
        if ranking.passages is None:
            return matching
        matching_ids = {hit.doc_id for hit in hits}
        passages = [
            passage for passage in ranking.passages if passage.document in matching_ids
        ]
        return matching.with_passages(passages[:depth])


def _has_passages(matching: Ranking, hits: Ranking, depth: int, limit: int) -> bool:
    """Whether hits that match have as many passages as they may, or all that came."""
    if matching.passages is None or hits.passages is None:
        return True
    return len(matching.passages) == depth or len(hits.passages) < limit
