"""The grid of queries."""

import math
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from harness.pages import visible_text
from harness.report.sections.failing_slices import failing_slices
from harness.report.sections.misses import group_queries, no_groups_reason
from harness.report.sections.page_budget import (
    BUDGET_STEPS,
    PageBudget,
    queries_that_fit,
)
from harness.report.sections.query_rows import (
    document_heading,
    field_values,
    score_ranges,
)
from harness.report.sections.slices import (
    ALL_QUERIES,
    labels_by_family,
    order_slices,
    slice_label,
)
from harness.report.templates import Section
from harness.report.view import View, runner_up

PRINTED_QUERIES = 2
"""Queries shown without scripts."""
PRINTED_HITS = 5
"""Hits of each ranking shown there, and ids per group."""
REMAINING_PAGE = "queries.html"
"""The second page, with the queries for which the report has no room."""
SCORE_DIGITS = 7
"""Of scores: less is the noise of sums."""
MAX_FILTER_SCORES = 120_000
"""Most scores of a page; if there are more, it has only the first measures."""
MAX_FILTER_SLICES = 80
"""Most slices to choose from.

They are those of the tests, then the most frequent values of fields.
"""


class RemainingQueries(NamedTuple):
    """The queries for which the page has no room."""

    view: View
    """Lists these queries only."""
    section: Section


def relevant_documents(view: View, index: int) -> list[tuple[str, int]]:
    """The relevant documents of a query with their grades, the highest first."""
    grades = view.grades[view.ids[index]]
    relevant = [(doc, grade) for doc, grade in grades.items() if grade > 0]
    return sorted(relevant, key=lambda graded: (-graded[1], graded[0]))


def remaining_queries(view: View, section: Section) -> RemainingQueries | None:
    """The queries that are not in the section of the page; None if it has all."""
    indices = tuple(i for i in view.order if i not in section.context["indices"])
    if not indices:
        return None
    remaining = replace(view, listed_queries=indices)
    return RemainingQueries(remaining, queries_section(remaining, has_own_page=True))


def queries_section(view: View, *, has_own_page: bool = False) -> Section:
    """The groups of failures, and the data of the query grid."""
    ranges = score_ranges(view)
    slices = failing_slices(view)
    groups = [*slices.groups, *group_queries(view)]
    page = queries_that_fit(view, groups, has_own_page=has_own_page)
    by_range = sorted(view.listed_queries, key=lambda i: (-ranges[i], view.ids[i]))
    is_complete = len(page.query_indices) == len(view.order)
    largest_budget = PageBudget(*BUDGET_STEPS[0], len(view.order))
    examples = [
        (group, [view.ids[i] for i in group.query_indices[:PRINTED_HITS]])
        for group in groups
    ]
    context = {
        "evidence": page.packed,
        "hits": PRINTED_HITS,
        "depth": view.resolved.depth,
        "retrievers": page.rows["retrievers"],
        "listed": len(page.rows["queries"]),
        "indices": frozenset(page.query_indices),
        "remaining": "" if is_complete or has_own_page else REMAINING_PAGE,
        "elsewhere": "report.html" if has_own_page else REMAINING_PAGE,
        "texts": page.packed_texts,
        "budget": page.budget,
        "is_complete": page.budget == largest_budget,
        "printed": [i for i in by_range[:PRINTED_QUERIES] if ranges[i] > 0],
        "relevant": relevant_documents,
        "document": partial(document_heading, view),
        "slices": slices,
        "groups": examples,
        "without": "" if groups else no_groups_reason(view),
    }
    return Section("queries", "Queries", context)


def filter_data(view: View) -> dict[str, Any]:
    """Return the scores and slices.

    Queries are in the order of the file, retrievers by their means.
    """
    measures = filter_measures(view)
    weights = view.scores.weights
    scores = {
        "all": ALL_QUERIES,
        "pair": {"a": view.evaluation.leader, "b": runner_up(view)},
        "measures": [view.names[measure].short for measure in measures],
        "left": len(view.measures) - len(measures),
        "retrievers": list(view.ranked),
        "ids": [visible_text(view.ids[i]) for i in view.order],
        "slices": list(filter_slices(view).items()),
        "values": [_filter_scores(view, measure) for measure in measures],
    }
    if weights is None:
        return scores
    return {"weights": [weights[i] for i in view.order], **scores}


def _filter_scores(view: View, measure: str) -> list[list[float | None]]:
    """Return the scores of each retriever on a measure, rounded; None if undefined."""
    order = list(view.order)
    scores_by_retriever = view.values_by_measure[measure]
    rows: list[list[float | None]] = []
    for retriever in view.ranked:
        scores = np.round(scores_by_retriever[retriever][order], SCORE_DIGITS).tolist()
        rows.append([None if math.isnan(score) else score for score in scores])
    return rows


def filter_measures(view: View) -> list[str]:
    """The measures that the filter can show: at least the first."""
    scores_per_measure = view.n * len(view.ranked)
    count = max(1, MAX_FILTER_SCORES // scores_per_measure)
    return list(view.measures[:count])


def filter_slices(view: View) -> dict[str, list[int]]:
    """Slice as the page names it -> its queries, as positions in the file's order."""
    slices = _tested_slices(view)
    fields = [field_values(view, view.ids[i]) for i in view.order]
    value_counts: Counter[str] = Counter()
    for query_values in fields:
        value_counts.update(query_values)
    for value, _ in value_counts.most_common(MAX_FILTER_SLICES):
        if value not in slices and len(slices) < MAX_FILTER_SLICES:
            slices[value] = [
                position
                for position, query_values in enumerate(fields)
                if value in query_values
            ]
    return slices


def _tested_slices(view: View) -> dict[str, list[int]]:
    """Return the slices of the tests, with their queries."""
    slices: dict[str, list[int]] = {}
    for family, labels in labels_by_family(view).items():
        labels_in_order = [labels[i] for i in view.order]
        for label in order_slices(family, labels_in_order):
            slices[slice_label(family, label)] = []
        for position, label in enumerate(labels_in_order):
            if label:
                slices[slice_label(family, label)].append(position)
    return slices
