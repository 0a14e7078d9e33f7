"""What the page's filter looks through: every query's score on every measure, and the slices that it can choose."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from harness.report import text
from harness.report.browsed import fields_of
from harness.report.sections.slices import ALL, kinds_of, label_of, labels_of
from harness.report.view import View, second

VALUES = 120_000
"""Scores that a page holds; beyond, it keeps the first measures: the primary one always."""
SLICES = 80
"""Slices that can be chosen: those of the tests, then the most frequent values of fields."""


def client_filter(view: View) -> dict[str, Any]:
    """Return the scores and slices, queries in the order of the file, retrievers by their means."""
    measures, weights = chosen_measures(view), view.evaluation.scores.weights
    places = list(view.order)
    return {
        **({"weights": [weights[i] for i in places]} if weights is not None else {}),
        "all": ALL,
        "pair": [view.ranked.index(view.conclusion.leader), view.ranked.index(second(view))],
        "measures": [view.names[measure].short for measure in measures],
        "left": len(view.measures) - len(measures),
        "retrievers": list(view.ranked),
        "ids": [text.visible(view.ids[i]) for i in places],
        "slices": filter_slices(view),
        "values": [
            [
                [
                    None if math.isnan(value) else value
                    for value in np.round(view.scores[measure][name][places], 6).tolist()
                ]
                for name in view.ranked
            ]
            for measure in measures
        ],
    }


def chosen_measures(view: View) -> list[str]:
    """The measures that the filter can show."""
    size = view.n * len(view.ranked)
    return [measure for i, measure in enumerate(view.measures) if not i or size * (i + 1) <= VALUES]


def filter_slices(view: View) -> dict[str, list[int]]:
    """Slice as the page names it -> places of its queries in the order of the file."""
    members: dict[str, list[int]] = {}
    for family, labels in labels_of(view).items():
        members |= {label_of(family, kind): [] for kind in kinds_of(family, [labels[i] for i in view.order])}
        for place, i in enumerate(view.order):
            if labels[i]:
                members[label_of(family, labels[i])].append(place)
    fields = [fields_of(view, view.ids[i]) for i in view.order]
    for value, _ in Counter(value for values in fields for value in values).most_common(SLICES):
        if value not in members and len(members) < SLICES:
            members[value] = [place for place, values in enumerate(fields) if value in values]
    return members
