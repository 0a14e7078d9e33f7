"""The rows of the grid of queries."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from harness.pages import visible_text
from harness.report.escape import shorten_text
from harness.report.ranking_digests import EMPTY_RANKING
from harness.report.sections.failing_slices import property_texts
from harness.report.sections.misses import QueryGroup
from harness.report.sections.rerankers import Reranking
from harness.report.view import View
from harness.wording.agent_trace import trace_sentence
from retrievers.types import Floats

MissCauses = Mapping[int, Mapping[str, str]]
"""Index of a query -> retriever -> why it missed."""


class QueryFacts(NamedTuple):
    """The facts that rows show beyond scores and rankings."""

    groups: Sequence[QueryGroup]
    """The groups of failures."""
    rerankings: Mapping[str, Reranking]
    """Reranked retriever -> its first stage."""
    miss_causes: MissCauses


class QueryRows(NamedTuple):
    """Some queries of the grid."""

    rows: dict[str, Any]
    """The JSON of the page: retrievers, documents and queries."""
    documents: list[str]
    """The ids of the documents in the lists, in the order of their numbers."""


def score_ranges(view: View) -> list[float]:
    """The range of the retrievers' scores on each query, on the primary measure."""
    scores = list(view.values_by_measure[view.primary].values())
    ranges: list[float] = np.ptp(np.column_stack(scores), axis=1).tolist()
    return ranges


def document_heading(view: View, doc: str) -> list[str]:
    """The id and title of a document."""
    document = view.results.documents.get(doc)
    title = shorten_text(document.title, 120) if document else ""
    return [visible_text(doc), title]


def field_values(view: View, query_id: str) -> list[str]:
    """A query's fields as the filters name them; tags in one field are separate."""
    values: list[str] = []
    for key, text in view.results.queries[query_id].query.fields.items():
        tags = filter(None, map(str.strip, str(text).split(",")))
        values.extend(shorten_text(f"{key}: {tag}", 80) for tag in tags)
    return values


def collect_query_rows(
    view: View, indices: Sequence[int], facts: QueryFacts, hits: int
) -> QueryRows:
    """Some queries, and the documents in their lists.

    Args:
        view: the results.
        indices: of the queries.
        facts: that the rows show.
        hits: number of hits of each ranking.
    """
    builder = _RowBuilder(
        view,
        facts,
        hits,
        # Each document is numbered by its first appearance.
        document_numbers=defaultdict[str, int](count().__next__),
        members={group.key: frozenset(group.query_indices) for group in facts.groups},
        ceilings=_ceilings(view, facts.rerankings),
        properties=property_texts(view),
    )
    queries = [builder.build_row(i) for i in indices]
    documents = list(builder.document_numbers)
    rows = {
        "retrievers": [
            _retriever_row(view, retriever, facts.rerankings.get(retriever))
            for retriever in view.ranked
        ],
        "documents": [document_heading(view, doc) for doc in documents],
        "queries": queries,
    }
    return QueryRows(rows, documents)


def _ceilings(view: View, rerankings: Mapping[str, Reranking]) -> dict[int, Floats]:
    """Return the number of a reranked retriever -> its ceilings."""
    ceilings: dict[int, Floats] = {}
    for retriever, reranking in rerankings.items():
        if reranking.ceiling is not None:
            ceilings[view.ranked.index(retriever)] = reranking.ceiling
    return ceilings


@dataclass(frozen=True, slots=True)
class _RowBuilder:
    """Builds the rows of queries."""

    view: View
    facts: QueryFacts
    hits: int
    document_numbers: defaultdict[str, int]
    """Document id -> its number."""
    members: Mapping[str, frozenset[int]]
    """Key of a group -> the indices of its queries."""
    ceilings: Mapping[int, Floats]
    """Number of a reranked retriever -> its ceilings."""
    properties: Mapping[str, list[str]]
    """Query -> its properties in words."""

    def build_row(self, i: int) -> dict[str, Any]:
        """Return the row of the query at an index."""
        view = self.view
        query_id = view.ids[i]
        digests = [view.ranking_digests[retriever] for retriever in view.ranked]
        rankings = [
            digest.top_hits.get(query_id, EMPTY_RANKING).doc_ids[: self.hits]
            for digest in digests
        ]
        scores = view.values_by_measure[view.primary]
        row: dict[str, Any] = {
            "id": visible_text(query_id),
            "text": visible_text(view.results.queries[query_id].query.text),
            "fields": field_values(view, query_id),
            "properties": self.properties.get(query_id, []),
            "groups": [key for key, indices in self.members.items() if i in indices],
            "scores": [round(float(scores[name][i]), 6) for name in view.ranked],
            "lists": [self._numbers(documents) for documents in rankings],
            "judged": [],
        }
        ranks = [digest.relevant_ranks.get(query_id, {}) for digest in digests]
        for doc in self._judged_documents(query_id, rankings):
            grade = view.grades[query_id][doc]
            doc_ranks = [ranks_by_doc.get(doc, 0) for ranks_by_doc in ranks]
            row["judged"].append([self.document_numbers[doc], grade, doc_ranks])
        if i in self.facts.miss_causes:
            causes = self.facts.miss_causes[i]
            row["why"] = [
                [view.ranked.index(name), cause] for name, cause in causes.items()
            ]
        traces = self._traces(query_id)
        if traces:
            row["did"] = traces
        if self.ceilings:
            row["ceilings"] = {
                number: round(float(ceilings[i]), 6)
                for number, ceilings in self.ceilings.items()
            }
        return row

    def _traces(self, query_id: str) -> list[tuple[int, str]]:
        """Return the numbers of agents, with what each did in the first trial."""
        traces: list[tuple[int, str]] = []
        for number, retriever in enumerate(self.view.ranked):
            top_hits = self.view.ranking_digests[retriever].top_hits
            trace = top_hits.get(query_id, EMPTY_RANKING).trace
            if trace is not None:
                traces.append((number, visible_text(trace_sentence(trace))))
        return traces

    def _numbers(self, documents: Sequence[str]) -> list[int]:
        return [self.document_numbers[doc] for doc in documents]

    def _judged_documents(
        self, query_id: str, rankings: Sequence[Sequence[str]]
    ) -> list[str]:
        """Return the relevant documents, and the irrelevant ones that were retrieved.

        The highest grade is first.
        """
        grades = self.view.grades[query_id]
        retrieved = set().union(*rankings)
        documents = [doc for doc in grades if grades[doc] > 0 or doc in retrieved]
        return sorted(documents, key=lambda doc: (-grades[doc], doc))


def _retriever_row(
    view: View, retriever: str, reranking: Reranking | None
) -> dict[str, Any]:
    if reranking is None:
        return {"name": retriever}
    return {
        "name": retriever,
        "before": view.ranked.index(reranking.first_stage),
        "depth": reranking.depth,
        "bounded": reranking.ceiling is not None,
    }
