"""Slices: the leader against the others within each part of the queries."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from harness.evaluation.csv_views import slices_of
from harness.evaluation.verdict import Finding
from harness.report import text
from harness.report.charts import Figure, ForestRow, Section, paired_forest
from harness.report.view import View
from harness.stats.differences import SLACK, differences
from harness.stats.intervals import mean, student

FEWEST = 10
"""Fewest queries of a slice, here and in the tests."""
DRAWN = 3
"""Pairs with a panel; the tables have every pair with the leader."""
ALL = "all queries"
BY_LENGTH, LENGTHS = "query length", ("short", "medium", "long")
"""The family of slices by query length, and the start of their names."""
ONE_LENGTH = re.compile(r"\b(\d+) to \1\b")
"""A range of one length."""
UNIT = " characters)"
"""The unit of lengths: the table shows it; a chart has no room for it."""


class Slice(NamedTuple):
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
    rows: tuple[Slice, ...]
    """All queries first."""


def section(view: View) -> Section | None:
    """The leader against the others in every part of the queries; None without parts or others."""
    kinds = labels_of(view)
    if len(view.retrievers) < 2 or not kinds:
        return None
    pairs = [pair_of(view, view.evaluation.leader, other, kinds) for other in compared(view)]
    drawn = _forest(view, pairs[:DRAWN])
    turned = [sentence for pair in pairs for sentence in turns(view, pair)]
    context = {"pairs": pairs, "drawn": drawn, "left": len(pairs) - DRAWN, "turned": turned, "called": called}
    return Section("slices", "Slices", context, (drawn,))


def labels_of(view: View) -> dict[str, list[str]]:
    """Family -> each query's slice, for the families with at least two slices of ten queries."""
    kinds = slices_of([view.query(place).query for place in range(view.n)], view.settings.cluster)
    return {family: labels for family, labels in kinds.items() if len(_large(family, labels)) > 1}


def compared(view: View) -> list[str]:
    """The retrievers compared with the leader: the runner-up, the baseline, then the others by mean."""
    others = list(view.ranked[1:])
    second = [name for name in (view.baseline,) if name in others[1:]]
    return [*others[:1], *second, *(name for name in others[1:] if name not in second)]


def pair_of(view: View, a: str, b: str, kinds: Mapping[str, Sequence[str]]) -> SlicePair:
    """One pair over all queries and within every slice."""
    tested = _tests(view, a, b)
    rows = [slice_of(view, (a, b), list(range(view.n)), ("", ALL))]
    for family, labels in kinds.items():
        for kind in _large(family, labels):
            places = [place for place, label in enumerate(labels) if label == kind]
            rows.append(slice_of(view, (a, b), places, (family, kind))._replace(**tested.get((family, kind), {})))
    return SlicePair(a, b, tuple(rows))


def turns(view: View, pair: SlicePair) -> Iterator[str]:
    """The slices with a significant difference opposite to that of all queries."""
    whole, name = pair.rows[0], view.names[view.primary].short
    for row in pair.rows[1:]:
        if row.finding is None or row.difference * whole.difference >= 0:
            continue
        high = pair.a if row.difference > 0 else pair.b
        where, gap = f"On the {row.queries:,} queries of {called(row)}, {high}", f"{abs(row.difference):.3f}"
        if row.finding.verdict.separates:
            p = text.p_value(row.p_adjusted)
            yield f"{where} is ahead by {gap} in {name}, opposite to all queries (adjusted p {p})."


def carried(view: View, pair: SlicePair) -> Slice | None:
    """The smallest slice, of at most half the weight, without which the leader would not be ahead."""
    whole = pair.rows[0]
    total, least = whole.difference * whole.weight, SLACK * whole.weight
    small = (row for row in pair.rows[1:] if 2 * row.weight <= whole.weight)
    carriers = [row for row in small if total > least >= total - row.difference * row.weight]
    return min(carriers, key=lambda row: row.weight, default=None)


def called(row: Slice) -> str:
    """The name of a slice in a sentence.

    >>> called(Slice("field tags", "typo", 20, 20.0, 1, 18, 1, 0.0, None, None, None))
    'tags: typo'
    """
    return label_of(row.family, row.slice) if row.family else row.slice


def label_of(family: str, kind: str) -> str:
    """The name of a slice with its family.

    >>> label_of("field tags", "typo"), label_of("query length", "medium (20 to 20)")
    ('tags: typo', 'query length: medium (20 characters)')
    """
    if family == BY_LENGTH:
        kind = ONE_LENGTH.sub(r"\1", kind).replace(")", UNIT)
    kind = text.shortened(kind, 4_000)
    ends = kind if len(kind) <= 60 else f"{kind[:30].rstrip()}…{kind[-29:]}"  # long ones often differ only at the end
    return f"{text.shortened(divided(family), 40)}: {ends}"


def divided(family: str) -> str:
    """The field of a family of slices.

    >>> divided("field tags"), divided("query length")
    ('tags', 'query length')
    """
    return family.removeprefix("field ")


def kinds_of(family: str, labels: Sequence[str]) -> list[str]:
    """The slices of a family: lengths from short to long, others in the order of their first query.

    >>> kinds_of("query length", ["long (3 or more)", "", "short (up to 1)"])
    ['short (up to 1)', 'long (3 or more)']
    """
    kinds = [kind for kind in dict.fromkeys(labels) if kind]
    return sorted(kinds, key=lambda kind: LENGTHS.index(kind.split()[0])) if family == BY_LENGTH else kinds


def _large(family: str, labels: Sequence[str]) -> list[str]:
    """The slices with enough queries."""
    return [kind for kind in kinds_of(family, labels) if list(labels).count(kind) >= FEWEST]


def slice_of(view: View, pair: tuple[str, str], places: list[int], name: tuple[str, str]) -> Slice:
    """One pair within some of the queries.

    Args:
        view: with the scores.
        pair: of retrievers.
        places: indices of the queries, in any order.
        name: the family, and the slice.
    """
    kept = np.zeros(view.n, dtype=np.bool_)
    kept[places] = True
    a, b = (view.scores[view.primary][one][kept] for one in pair)  # in the order of their weights
    units, pairs = view.table.only(kept).units, differences(a, b)
    ends = student(pairs.values, view.settings.level, bounds=view.table.gap_range, units=units)[:2]
    record = (pairs.wins, len(a) - pairs.wins - pairs.losses, pairs.losses)
    return Slice(*name, len(a), float(units.totals.sum()), *record, mean(pairs.values, units.weights), *ends)


def _tests(view: View, a: str, b: str) -> dict[tuple[str, str], dict[str, Any]]:
    """The tests of a pair, in either order: (family, slice) -> result."""
    slices = {}
    for row in view.evaluation.tests:
        if {row.a, row.b} == {a, b} and row.note:
            turned = row.finding if row.finding is None or row.a == a else row.finding.swapped
            tested = {"p_adjusted": row.p_adjusted, "finding": turned, "p_wilcoxon": row.p_wilcoxon_adjusted}
            slices[row.family, row.note] = tested
    return slices


def _forest(view: View, pairs: Sequence[SlicePair]) -> Figure:
    """One panel per pair, on one axis."""
    name, leader = view.names[view.primary].short, pairs[0].a
    panels = {
        f"ahead of {text.shortened(pair.b, 30)}" if len(pairs) > 1 else "": [
            ForestRow(
                f"{text.shortened(called(row).replace(UNIT, ')'), 48)} ({row.queries:,})", called(row),
                row.difference, row.low, row.high, row.queries, f"{row.wins} / {row.ties} / {row.losses}",
            )
            for row in pair.rows
        ]
        for pair in pairs
    }  # fmt: skip
    means = "; ".join(
        f"{pair.b}: {', '.join(f'{called(row)} {text.signed(row.difference)}' for row in pair.rows)}" for pair in pairs
    )
    words = (
        "slices",
        f"{leader} − {', '.join(pair.b for pair in pairs)} in {name}, by slice, with "
        f"{100 * view.settings.level:g} % intervals",
        f"Mean difference of each slice, right of zero {leader} is better. {means}.",
        f"{name}: right of 0 {leader} is better",
    )
    return paired_forest(words, panels, view.settings.margin)


PLACES = {20: section}
