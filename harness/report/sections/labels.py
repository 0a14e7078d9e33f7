"""What the labels rest on and leave open: how much is judged, what the rest could change, what a model adds."""

from __future__ import annotations

from collections.abc import Sequence

from harness.evaluation.labellers import combined, sentence
from harness.evaluation.unjudged import DifferenceBounds, unjudged_bounds_of
from harness.measures import parse
from harness.report.figures import Section
from harness.report.sections.tests import LOOKED_AT
from harness.report.view import View

PLACE = 71

SHARE = 0.999
"""Where less than this share of the top documents is judged, somebody should know what the rest could change."""


def section(view: View) -> Section | None:
    """Judged@k and the certain bounds beside each mean, and the estimate with a model's labels; None without labels."""
    if parse(view.primary).claimed:
        return None
    heads = {name: view.answers[name].heads for name in view.retrievers}
    many = view.n * len(view.comparisons[view.primary]) > LOOKED_AT
    ends = unjudged_bounds_of(view.results, heads, view.conclusion.leader if many else "")
    leader, pairs = view.conclusion.leader, _in_reading_order(view, ends.pairs)
    both = combined(view.results)
    sources = [labelled.labels.source for labelled in view.results.queries.values()]
    return Section(
        "labels",
        "Labels",
        {
            "ends": ends,
            "ranked": sorted(ends.means, key=lambda mean: view.ranked.index(mean.retriever)),
            "leading": [pair for pair in pairs if leader in (pair.a, pair.b)],
            "others": [pair for pair in pairs if leader not in (pair.a, pair.b)],
            "whole": all(mean.judged > SHARE for mean in ends.means),
            "bounded": any(mean.bounds is not None for mean in ends.means),
            "means": view.conclusion.means,
            "combined": both,
            "agreement": both.agreement if both else None,
            "sentences": [view.spoken(sentence(pair, both.measure)) for pair in both.pairs] if both else [],
            "people": sources.count("people"),
            "model": sources.count("model"),
            "mixed": sources.count("mixed"),
            "alone": not view.settings.by_people,
        },
        within="trust",
    )


def _in_reading_order(view: View, rows: Sequence[DifferenceBounds]) -> list[DifferenceBounds]:
    """The leader's pairs first, as `sections.tests` has them."""
    place = {name: i for i, name in enumerate(view.ranked)}
    turned = [_turned(row) if place[row.b] < place[row.a] else row for row in rows]
    return sorted(turned, key=lambda row: (place[row.a], place[row.b]))


def _turned(row: DifferenceBounds) -> DifferenceBounds:
    low, high = row.bounds.low, row.bounds.high
    return row._replace(a=row.b, b=row.a, bounds=row.bounds._replace(low=0.0 - high, high=0.0 - low))
