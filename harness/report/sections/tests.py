"""All pairwise tests as a matrix and as tables, the other families, and the statistics of every measure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.english import counted
from harness.evaluation.csv_views import test_cells
from harness.evaluation.evaluation import wilcoxon_floors
from harness.evaluation.evidence import PairEvidence, evidence, pairs_by_weight
from harness.evaluation.families import slices_of
from harness.evaluation.verdict import Comparison
from harness.evaluation.wording import (
    SIGNS,
    pair_sentence,
    reason_words,
    settings_sentence,
    significance_sentence,
    verdict_word,
)
from harness.report import charts, text
from harness.report.elements import Figure, Section, figure
from harness.report.heat_map import HeatGrid, heat_map
from harness.report.sections.slices import FEWEST, divided, label_of, slice_of
from harness.report.view import View, second
from harness.stats.heterogeneity import small_slices

PLACE = 80

FAMILIES = {
    "equivalence": "Equivalence within the margin",
    "query length": "Slices by query length",
    "rerank uplift": "Reranked against its first stage",
}
"""What the families of tests.csv are called; those of fields follow from what they divide."""
LOOKED_AT = 4_000
"""Pairs times queries that the page looks at: half a second; `harness compare --json` has more of them."""
ROWS = 60
"""Rows of an exploratory family that the page shows, or those of the leader and the baseline: it is not an archive."""
NUMBERS = frozenset({"n", "statistic", "p_value", "p_adjusted", "mean_difference", "p_wilcoxon_adjusted"})
"""Columns of tests.csv that hold numbers."""
GROWN = 12
"""Numbers of queries at which the leader's difference is drawn."""
RANKS = (1, 2, 3, 4, 6, 11, 21, 101)
"""Where the bars of the histogram of first relevant ranks begin."""
SMALL = 20
"""Slices that are too small to be tested and are named: a field may have another value for each query."""


def section(view: View) -> Section:
    """The statistics of every measure; of two retrievers or more their tests, the rows of every family."""
    summary = view.evaluation.summary
    statistics = [
        (view.names[measure], [(name, summary[measure][name]) for name in view.ranked if name in summary[measure]])
        for measure in view.measures
    ]
    best = {measure: max(row.mean for row in summary[measure].values()) for measure in view.measures}
    drawn, tested = (_dots(view), _first_ranks(view)), tests(view) if len(view.retrievers) > 1 else {"families": []}
    growth = (tested["growth"],) if tested.get("growth") else ()
    return Section(
        "tests",
        "Tests and measures" if tested["families"] else "Measures",
        {**tested, "statistics": statistics, "best": best, "charts": drawn},
        (*growth, *drawn),
    )


def tests(view: View) -> dict[str, Any]:
    """The matrix of the primary measure, the rows of every family, the other tests."""
    beside, small, families = pair_evidence(view), _small_slices(view), other_families(view)
    return {
        "settings": text.visible(settings_sentence(view.settings)),
        "columns": (view.baseline,) if view.baseline else view.ranked[1:],
        "shown": _significant(view, view.comparisons[view.primary]),
        "matrix": matrix(view),
        "families": [
            (
                view.names[measure],
                shown,
                _significant(view, rows),
                len(rows) - len(shown),
                wilcoxon_floors(rows, view.settings),
            )
            for measure, rows in view.comparisons.items()
            if (shown := _listed(view, rows)) or not rows
        ],
        "evidence": beside,
        "growth": _growth(view),
        "evidence_left_out": left_out(view, len(beside)),
        "in_words": in_words(view, _listed(view, view.comparisons[view.primary])),
        "other": families,
        "small_slices": small[:SMALL],
        "small_left": len(small[SMALL:]),
        "other_left": len(view.evaluation.tests) - sum(map(len, families.values())),
        "numeric": NUMBERS,
        "signs": SIGNS,
        "word": verdict_word,
        "reason": reason_words,
    }


def other_families(view: View) -> dict[str, list[dict[str, Any]]]:
    """The rows of every family beside the comparisons, each with the columns in which any row of it has a value."""
    by_family: dict[str, list[dict[str, Any]]] = {}
    for test in view.evaluation.tests:
        by_family.setdefault(test.family, []).append(test_cells(test))
    shown = {}
    for family, rows in by_family.items():
        kept = [name for name in rows[0] if name != "family" and any(row[name] not in (None, "") for row in rows)]
        some = [row for row in rows if len(rows) <= ROWS or _about(view, row["a"], row["b"])]
        shown[_called(family)] = [
            {name: "" if row[name] is None and name not in NUMBERS else row[name] for name in kept} for row in some
        ]
    return shown


def _growth(view: View) -> Figure | None:
    """The leader against the next on the first queries of one order that is drawn by chance, and on more and more."""
    a, b = view.evaluation.leader, second(view)
    order = np.random.default_rng(view.settings.seed).permutation(view.n).tolist()
    sizes = np.unique(np.geomspace(FEWEST, view.n, GROWN).round().astype(int)).tolist() if view.n > FEWEST else []
    found = [slice_of(view, (a, b), order[:size], ("", "")) for size in sizes]
    if not any(one.low is not None for one in found):
        return None
    rows = [charts.ForestRow("", "", one.difference, one.low, one.high, one.queries, "") for one in found]
    said = "; ".join(
        f"{one.queries:,}: {text.signed(one.difference)} ({text.between_signed((one.low, one.high))})" for one in found
    )
    name, margin = view.names[view.primary].short, view.settings.margin
    return figure(
        "growth",
        f"{a} − {b} in {name} as queries are added in an order drawn by chance (seed {view.settings.seed}), with "
        f"{100 * view.settings.level:g} % intervals",
        f"Mean difference on the first queries: {said}.",
        lambda width: charts.growth(rows, f"queries, of {view.n:,}", margin, width),
    )


def _listed(view: View, rows: Sequence[Comparison]) -> list[Comparison]:
    """The rows of a measure that the page lists: of many those of the leader; the matrix has each pair of the first."""
    return in_reading_order(view, [row for row in rows if len(rows) <= ROWS or _about(view, row.a, row.b)])


def _about(view: View, a: object, b: object) -> bool:
    """Whether a row is of the leader or of the baseline."""
    return not {view.evaluation.leader, view.baseline}.isdisjoint((a, b))


def _small_slices(view: View) -> list[tuple[str, int]]:
    """The slices with too few queries to be tested, and how many these are."""
    kinds = slices_of([view.query(place).query for place in range(view.n)], view.settings.cluster)
    return [
        (label_of(family, kind), number)
        for family, labels in kinds.items()
        if len(set(labels)) > 1
        for kind, number in small_slices(labels).items()
    ]


def _significant(view: View, rows: Sequence[Comparison]) -> str:
    return view.spoken(significance_sentence(rows, view.settings))


def _called(family: str) -> str:
    """What a family of tests.csv is called on the page.

    >>> _called("field tags"), _called("query length")
    ('Slices by tags', 'Slices by query length')
    """
    if family.startswith("field "):
        return f"Slices by {divided(family)}"
    return FAMILIES.get(family, family)


def matrix(view: View) -> list[tuple[str, list[Comparison | None]]]:
    """Rows and columns by their mean: how the row's retriever stands against the column's; each pair once."""
    cells = {}
    for row in view.comparisons[view.primary]:
        cells[row.a, row.b], cells[row.b, row.a] = row, row.swapped
    if view.baseline:
        return [(a, [cells.get((a, view.baseline))]) for a in view.ranked if a != view.baseline]
    return [
        (a, [cells.get((a, b)) if at > place else None for at, b in enumerate(view.ranked) if at])
        for place, a in enumerate(view.ranked[:-1])
    ]


def in_reading_order(view: View, rows: Sequence[Comparison]) -> list[Comparison]:
    """The leader's pairs first, then those of the next; a is the one with the higher mean on the primary measure."""
    place = {name: i for i, name in enumerate(view.ranked)}
    turned = [row.swapped if place[row.b] < place[row.a] else row for row in rows]
    return sorted(turned, key=lambda row: (place[row.a], place[row.b]))


def pair_evidence(view: View) -> list[PairEvidence]:
    """Return the evidence on the pairs, the leader's first; on all of them unless the page would wait for it."""
    pairs = pairs_by_weight(view.ranked, view.baseline, view.n, LOOKED_AT)
    return evidence(view.table, pairs)


def left_out(view: View, shown: int) -> str:
    """Return how many pairs are not looked at, and why; "" where none are left out."""
    others = len(view.retrievers) * (len(view.retrievers) - 1) // 2 - shown
    if not others:
        return ""
    stand = "is" if others == 1 else "are"
    return (
        f"{counted(others, 'pair')} {stand} left out: with {view.n:,} queries each the page would wait for "
        "them. The leader's pairs come first, then the baseline's."
    )


def in_words(view: View, rows: Sequence[Comparison]) -> list[str]:
    """Return comparisons of the primary measure as sentences."""
    return [view.spoken(pair_sentence(row, view.settings)) for row in rows]


def _first_ranks(view: View) -> Figure:
    """On how many queries each retriever has its first relevant hit at which rank."""
    lows = [low for low in RANKS if low <= view.resolved.depth]
    highs = [*(low - 1 for low in lows[1:]), view.resolved.depth]
    heads = [f"{low}" if low == high else f"{low} to {high}" for low, high in zip(lows, highs, strict=True)]
    counts = {
        (row, column): int(((view.answers[name].first >= low) & (view.answers[name].first <= high)).sum())
        for row, name in enumerate(view.ranked)
        for column, (low, high) in enumerate([*zip(lows, highs, strict=True), (math.inf, math.inf)])
    }
    axes = ("retriever", "\t".join(view.ranked)), ("rank of the first relevant hit", "\t".join([*heads, "none"]))
    early = "; ".join(f"{name} {counts[row, 0]}" for row, name in enumerate(view.ranked))
    return figure(
        "first-ranks",
        f"Queries by the rank of their first relevant hit, of {view.n:,}",
        f"Queries whose first hit is relevant: {early}.",
        lambda width: heat_map(HeatGrid(*axes, counts, shown=text.count), width),
    )


def _dots(view: View) -> Figure:
    summary = view.evaluation.summary
    shown = {view.names[one].short: [charts.dot_of(*row) for row in summary[one].items()] for one in view.measures}
    best = {measure: max(dots, key=lambda dot: dot.mean) for measure, dots in shown.items()}
    leaders = (f"{measure}: {dot.retriever} {text.score(dot.mean)}" for measure, dot in best.items())
    return figure(
        "measures",
        f"Means of every measure with their {100 * view.settings.level:g} % intervals",
        f"The highest mean of each measure: {'; '.join(leaders)}.",
        lambda width: charts.dots(view.ranked, shown, view.marks, width),
    )
