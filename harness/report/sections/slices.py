"""The leader within slices of the queries."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from harness.evaluation.query_slices import slice_labels
from harness.evaluation.verdict import Finding
from harness.report.charts.figure import Figure
from harness.report.charts.forest import ForestRow, forest_figure
from harness.report.escape import shorten_text
from harness.report.numbers import difference_text, power_p_text
from harness.report.templates import Section
from harness.report.view import View
from harness.stats.differences import SCORE_TOLERANCE, paired_differences
from harness.stats.intervals import mean, student_interval

MIN_SLICE_QUERIES = 10
"""Fewest queries of a slice, here and in the tests."""
DRAWN_SLICE_PAIRS = 3
"""Pairs with a panel; the tables have every pair with the leader."""
ALL_QUERIES = "all queries"
LENGTH_FAMILY, LENGTH_SLICES = "query length", ("short", "medium", "long")
"""The family of slices by query length, and the start of their names."""
EQUAL_LENGTHS = re.compile(r"\b(\d+) to \1\b")
"""A range of one length."""
LENGTH_UNIT = " characters)"
"""The unit of lengths: the table shows it; a chart has no room for it."""


class SliceComparison(NamedTuple):
    """One retriever against another within one part of the queries."""

    family: str
    """The field that divides the queries; "" for all queries."""
    slice: str
    queries: int
    weight: float
    """The sum of the query weights; their number if all weights are equal."""
    wins: int
    """Queries on which the first scores higher."""
    ties: int
    losses: int
    difference: float
    """Mean of the first minus mean of the second."""
    low: float | None
    """Both ends are None if no interval can be estimated."""
    high: float | None
    p_adjusted: float | None = None
    """Of the deciding test, within the family of slices; None if the pair was not tested."""
    finding: Finding | None = None
    """The finding about the first, by the rule of every verdict; None if nothing was tested."""
    p_wilcoxon: float | None = None
    """Of the exact signed-rank test, adjusted in the same way."""


class SlicePair(NamedTuple):
    """The leader against another, slice by slice."""

    a: str
    b: str
    rows: tuple[SliceComparison, ...]
    """All queries first."""


def slices_section(view: View) -> Section | None:
    """The leader against the others in every part of the queries; None without parts or others."""
    kinds = labels_by_family(view)
    if len(view.retrievers) < 2 or not kinds:
        return None
    pairs = [
        compare_slices(view, view.evaluation.leader, other, kinds)
        for other in compared_retrievers(view)
    ]
    drawn = _forest(view, pairs[:DRAWN_SLICE_PAIRS])
    turned = [sentence for pair in pairs for sentence in reversed_slices(view, pair)]
    context = {
        "pairs": pairs,
        "drawn": drawn,
        "left": len(pairs) - DRAWN_SLICE_PAIRS,
        "turned": turned,
        "called": slice_name,
    }
    return Section("slices", "Slices", context, (drawn,))


def labels_by_family(view: View) -> dict[str, list[str]]:
    """Family -> each query's slice, for the families with at least two slices of ten queries."""
    kinds = slice_labels(
        [view.query(place).query for place in range(view.n)], view.settings.cluster
    )
    return {
        family: labels
        for family, labels in kinds.items()
        if len(_large(family, labels)) > 1
    }


def compared_retrievers(view: View) -> list[str]:
    """The retrievers compared with the leader: the runner-up, the baseline, then the others by mean."""
    others = list(view.ranked[1:])
    second = [name for name in (view.baseline,) if name in others[1:]]
    return [*others[:1], *second, *(name for name in others[1:] if name not in second)]


def compare_slices(
    view: View, a: str, b: str, kinds: Mapping[str, Sequence[str]]
) -> SlicePair:
    """One pair over all queries and within every slice."""
    tested = _tests(view, a, b)
    rows = [compare_slice(view, (a, b), list(range(view.n)), ("", ALL_QUERIES))]
    for family, labels in kinds.items():
        for kind in _large(family, labels):
            places = [place for place, label in enumerate(labels) if label == kind]
            rows.append(
                compare_slice(view, (a, b), places, (family, kind))._replace(
                    **tested.get((family, kind), {})
                )
            )
    return SlicePair(a, b, tuple(rows))


def reversed_slices(view: View, pair: SlicePair) -> Iterator[str]:
    """The slices with a significant difference opposite to that of all queries."""
    whole, name = pair.rows[0], view.names[view.primary].short
    for row in pair.rows[1:]:
        if row.finding is None or row.difference * whole.difference >= 0:
            continue
        high = pair.a if row.difference > 0 else pair.b
        where, gap = (
            f"On the {row.queries:,} queries of {slice_name(row)}, {high}",
            f"{abs(row.difference):.3f}",
        )
        if row.finding.verdict.shows_difference:
            p = power_p_text(row.p_adjusted)
            yield f"{where} is ahead by {gap} in {name}, opposite to all queries (adjusted p {p})."


def decisive_slice(view: View, pair: SlicePair) -> SliceComparison | None:
    """The smallest slice, of at most half the weight, without which the leader would not be ahead."""
    whole = pair.rows[0]
    total, least = whole.difference * whole.weight, SCORE_TOLERANCE * whole.weight
    small = (row for row in pair.rows[1:] if 2 * row.weight <= whole.weight)
    carriers = [
        row for row in small if total > least >= total - row.difference * row.weight
    ]
    return min(carriers, key=lambda row: row.weight, default=None)


def slice_name(row: SliceComparison) -> str:
    """The name of a slice in a sentence.

    >>> slice_name(SliceComparison("field tags", "typo", 20, 20.0, 1, 18, 1, 0.0, None, None, None))
    'tags: typo'
    """
    return slice_label(row.family, row.slice) if row.family else row.slice


def slice_label(family: str, kind: str) -> str:
    """The name of a slice with its family.

    >>> slice_label("field tags", "typo"), slice_label("query length", "medium (20 to 20)")
    ('tags: typo', 'query length: medium (20 characters)')
    """
    if family == LENGTH_FAMILY:
        kind = EQUAL_LENGTHS.sub(r"\1", kind).replace(")", LENGTH_UNIT)
    kind = shorten_text(kind, 4_000)
    ends = (
        kind if len(kind) <= 60 else f"{kind[:30].rstrip()}…{kind[-29:]}"
    )  # long ones often differ only at the end
    return f"{shorten_text(slice_field(family), 40)}: {ends}"


def slice_field(family: str) -> str:
    """The field of a family of slices.

    >>> slice_field("field tags"), slice_field("query length")
    ('tags', 'query length')
    """
    return family.removeprefix("field ")


def order_slices(family: str, labels: Sequence[str]) -> list[str]:
    """The slices of a family: lengths from short to long, others in the order of their first query.

    >>> order_slices("query length", ["long (3 or more)", "", "short (up to 1)"])
    ['short (up to 1)', 'long (3 or more)']
    """
    kinds = [kind for kind in dict.fromkeys(labels) if kind]
    return (
        sorted(kinds, key=lambda kind: LENGTH_SLICES.index(kind.split()[0]))
        if family == LENGTH_FAMILY
        else kinds
    )


def _large(family: str, labels: Sequence[str]) -> list[str]:
    """The slices with enough queries."""
    return [
        kind
        for kind in order_slices(family, labels)
        if list(labels).count(kind) >= MIN_SLICE_QUERIES
    ]


def compare_slice(
    view: View, pair: tuple[str, str], places: list[int], name: tuple[str, str]
) -> SliceComparison:
    """One pair within some of the queries.

    Args:
        view: with the scores.
        pair: of retrievers.
        places: indices of the queries, in any order.
        name: the family, and the slice.
    """
    kept = np.zeros(view.n, dtype=np.bool_)
    kept[places] = True
    a, b = (
        view.values_by_measure[view.primary][one][kept] for one in pair
    )  # in the order of their weights
    units, pairs = view.scores.select_queries(kept).units, paired_differences(a, b)
    ends = student_interval(
        pairs.values, view.settings.level, bounds=view.scores.gap_range, units=units
    )[:2]
    record = (pairs.wins, len(a) - pairs.wins - pairs.losses, pairs.losses)
    return SliceComparison(
        *name,
        len(a),
        float(units.totals.sum()),
        *record,
        mean(pairs.values, units.weights),
        *ends,
    )


def _tests(view: View, a: str, b: str) -> dict[tuple[str, str], dict[str, Any]]:
    """The tests of a pair, in either order: (family, slice) -> result."""
    slices = {}
    for row in view.evaluation.tests:
        if {row.a, row.b} == {a, b} and row.note:
            turned = (
                row.finding
                if row.finding is None or row.a == a
                else row.finding.swapped
            )
            tested = {
                "p_adjusted": row.p_adjusted,
                "finding": turned,
                "p_wilcoxon": row.p_wilcoxon_adjusted,
            }
            slices[row.family, row.note] = tested
    return slices


def _forest(view: View, pairs: Sequence[SlicePair]) -> Figure:
    """One panel per pair, on one axis."""
    name, leader = view.names[view.primary].short, pairs[0].a
    panels = {
        f"ahead of {shorten_text(pair.b, 30)}" if len(pairs) > 1 else "": [
            ForestRow(
                f"{shorten_text(slice_name(row).replace(LENGTH_UNIT, ')'), 48)} ({row.queries:,})",
                slice_name(row),
                row.difference,
                row.low,
                row.high,
                row.queries,
                f"{row.wins} / {row.ties} / {row.losses}",
            )
            for row in pair.rows
        ]
        for pair in pairs
    }
    means = "; ".join(
        f"{pair.b}: {', '.join(f'{slice_name(row)} {difference_text(row.difference)}' for row in pair.rows)}"
        for pair in pairs
    )
    words = (
        "slices",
        f"{leader} − {', '.join(pair.b for pair in pairs)} in {name}, by slice, with "
        f"{100 * view.settings.level:g} % intervals",
        f"Mean difference of each slice, right of zero {leader} is better. {means}.",
        f"{name}: right of 0 {leader} is better",
    )
    return forest_figure(words, panels, view.settings.margin)
