"""The grid of queries."""

import math
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from harness.pages import visible_text
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


def relevant_documents(view: View, place: int) -> list[tuple[str, int]]:
    """The relevant documents of a query with their grades, the highest first."""
    judged = view.grades[view.ids[place]]
    return sorted(
        ((d, g) for d, g in judged.items() if g > 0),
        key=lambda item: (-item[1], item[0]),
    )


def remaining_queries(view: View, shown: Section) -> tuple[View, Section] | None:
    """The section of the queries for which the page has no room; None if it has all."""
    left = tuple(place for place in view.order if place not in shown.context["places"])
    others = replace(view, listed_queries=left)
    return (others, queries_section(others, whole=True)) if left else None


def queries_section(view: View, *, whole: bool = False) -> Section:
    """The groups of failures, and the data of the query grid."""
    distances, alike = score_ranges(view), group_queries(view)
    held = queries_that_fit(view, alike, whole=whole)
    most = sorted(view.listed_queries, key=lambda i: (-distances[i], view.ids[i]))[
        :PRINTED_QUERIES
    ]
    context = {
        "evidence": held.packed,
        "hits": PRINTED_HITS,
        "depth": view.resolved.depth,
        "retrievers": held.rows["retrievers"],
        "held": len(held.rows["queries"]),
        "places": frozenset(held.query_indices),
        "rest": REMAINING_PAGE
        if len(held.query_indices) < len(view.order) and not whole
        else "",
        "elsewhere": "report.html" if whole else REMAINING_PAGE,
        "texts": held.packed_texts,
        "kept": held.budget,
        "whole": held.budget == PageBudget(*BUDGET_STEPS[0], len(view.order)),
        "printed": [i for i in most if distances[i] > 0],
        "gold": relevant_documents,
        "document": partial(document_heading, view),
        "groups": [
            (group, [view.ids[place] for place in group.query_indices[:PRINTED_HITS]])
            for group in alike
        ],
        "without": "" if alike else no_groups_reason(view),
    }
    return Section("queries", "Queries", context)


SCORE_DIGITS = 7
"""Of scores: less is the noise of sums."""
MAX_FILTER_SCORES = 120_000
"""Most scores of a page; if there are more, it keeps the first measures."""
MAX_FILTER_SLICES = 80
"""Most slices to choose from: those of the tests, then the most frequent values of fields."""


def filter_data(view: View) -> dict[str, Any]:
    """Return the scores and slices, queries in the order of the file, retrievers by their means."""
    measures, weights = filter_measures(view), view.scores.weights
    places = list(view.order)
    return {
        **({"weights": [weights[i] for i in places]} if weights is not None else {}),
        "all": ALL_QUERIES,
        "pair": {"a": view.evaluation.leader, "b": runner_up(view)},
        "measures": [view.names[measure].short for measure in measures],
        "left": len(view.measures) - len(measures),
        "retrievers": list(view.ranked),
        "ids": [visible_text(view.ids[i]) for i in places],
        "slices": list(filter_slices(view).items()),
        "values": [
            [
                [None if math.isnan(value) else value for value in row]
                for row in np.round(
                    [
                        view.values_by_measure[measure][name][places]
                        for name in view.ranked
                    ],
                    SCORE_DIGITS,
                ).tolist()
            ]
            for measure in measures
        ],
    }


def filter_measures(view: View) -> list[str]:
    """The measures that the filter can show."""
    size = view.n * len(view.ranked)
    return [
        measure
        for i, measure in enumerate(view.measures)
        if not i or size * (i + 1) <= MAX_FILTER_SCORES
    ]


def filter_slices(view: View) -> dict[str, list[int]]:
    """Slice as the page names it -> places of its queries in the order of the file."""
    members: dict[str, list[int]] = {}
    for family, labels in labels_by_family(view).items():
        members |= {
            slice_label(family, kind): []
            for kind in order_slices(family, [labels[i] for i in view.order])
        }
        for place, i in enumerate(view.order):
            if labels[i]:
                members[slice_label(family, labels[i])].append(place)
    fields = [field_values(view, view.ids[i]) for i in view.order]
    for value, _ in Counter(value for values in fields for value in values).most_common(
        MAX_FILTER_SLICES
    ):
        if value not in members and len(members) < MAX_FILTER_SLICES:
            members[value] = [
                place for place, values in enumerate(fields) if value in values
            ]
    return members
