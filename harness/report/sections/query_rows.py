"""The rows of the grid of queries."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import count as numbered
from typing import Any

import numpy as np

from harness.pages import visible_text
from harness.report.escape import shorten_text
from harness.report.ranking_digests import EMPTY_RANKING
from harness.report.sections.misses import QueryGroup
from harness.report.sections.rerankers import Reranking
from harness.report.view import View

MissCauses = Mapping[int, Mapping[str, str]]
"""Index of a query -> retriever -> why it missed."""


def score_ranges(view: View) -> list[float]:
    """The range of the retrievers' scores on each query, on the primary measure."""
    distances: list[float] = np.ptp(
        np.column_stack(list(view.values_by_measure[view.primary].values())), axis=1
    ).tolist()
    return distances


def document_heading(view: View, doc: str) -> list[str]:
    """The id and title of a document."""
    kept = view.results.documents.get(doc)
    return [visible_text(doc), shorten_text(kept.title, 120) if kept else ""]


def field_values(view: View, query_id: str) -> list[str]:
    """A query's fields as the filters name them; tags in one field are separate."""
    fields = view.results.queries[query_id].query.fields
    return [
        shorten_text(f"{key}: {part.strip()}", 80)
        for key, value in fields.items()
        for part in str(value).split(",")
        if part.strip()
    ]


def collect_query_rows(
    view: View,
    places: Sequence[int],
    about: tuple[Sequence[QueryGroup], Mapping[str, Reranking], MissCauses],
    hits: int,
) -> tuple[dict[str, Any], list[str]]:
    """Some queries, and the documents in their lists."""
    failing, reruns, why = about
    numbers = defaultdict[str, int](
        numbered().__next__
    )  # each document is numbered by its first appearance
    scored = [view.values_by_measure[view.primary][name] for name in view.ranked]
    members = {group.key: frozenset(group.query_indices) for group in failing}
    ceilings = [
        (view.ranked.index(name), rerun.ceiling)
        for name, rerun in reruns.items()
        if rerun.ceiling is not None
    ]
    queries = []
    for i in places:
        qid, judged = view.ids[i], view.grades[view.ids[i]]
        lists = [
            view.ranking_digests[name].top_hits.get(qid, EMPTY_RANKING).doc_ids[:hits]
            for name in view.ranked
        ]
        retrieved = (
            set().union(*lists) if min(judged.values(), default=1) <= 0 else frozenset()
        )
        ranks = [
            view.ranking_digests[name].relevant_ranks.get(qid, {})
            for name in view.ranked
        ]
        graded = sorted(
            (
                (doc, grade)
                for doc, grade in judged.items()
                if grade > 0 or doc in retrieved
            ),
            key=lambda item: (-item[1], item[0]),
        )
        queries.append(
            {
                "id": visible_text(qid),
                "text": visible_text(view.results.queries[qid].query.text),
                "fields": field_values(view, qid),
                "groups": [key for key, places in members.items() if i in places],
                "scores": [round(float(values[i]), 6) for values in scored],
                "lists": [list(map(numbers.__getitem__, docs)) for docs in lists],
                "judged": [
                    [numbers[doc], grade, [of.get(doc, 0) for of in ranks]]
                    for doc, grade in graded
                ],
                **(
                    {
                        "why": [
                            [view.ranked.index(name), said]
                            for name, said in why[i].items()
                        ]
                    }
                    if i in why
                    else {}
                ),
                **(
                    {
                        "ceilings": {
                            place: round(float(values[i]), 6)
                            for place, values in ceilings
                        }
                    }
                    if ceilings
                    else {}
                ),
            }
        )
    evidence = {
        "retrievers": [_named(view, name, reruns.get(name)) for name in view.ranked],
        "documents": [document_heading(view, doc) for doc in numbers],
        "queries": queries,
    }
    return evidence, list(numbers)


def _named(view: View, name: str, rerun: Reranking | None) -> dict[str, Any]:
    if rerun is None:
        return {"name": name}
    bounded = rerun.ceiling is not None
    return {
        "name": name,
        "before": view.ranked.index(rerun.first_stage),
        "depth": rerun.depth,
        "bounded": bounded,
    }
