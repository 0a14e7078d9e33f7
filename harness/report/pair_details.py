"""Pairs of retrievers in the order in which the page lists them, in words, and what stands beside their verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from harness.english import counted
from harness.evaluation.evidence import PairEvidence, evidence, pairs_by_weight
from harness.evaluation.unjudged import DifferenceBounds
from harness.evaluation.verdict import Comparison
from harness.evaluation.wording import pair_sentence
from harness.report.view import View

LOOKED_AT = 4_000
"""Pairs times queries that the page looks at: half a second; `harness compare --json` has more of them."""


def in_reading_order(view: View, rows: Sequence[Comparison]) -> list[Comparison]:
    """The leader's pairs first, then those of the next; whoever has the higher mean on the primary measure is a."""
    place = {name: i for i, name in enumerate(view.ranked)}
    turned = [row.swapped if place[row.b] < place[row.a] else row for row in rows]
    return sorted(turned, key=lambda row: (place[row.a], place[row.b]))


def open_in_reading_order(view: View, rows: Sequence[DifferenceBounds]) -> list[DifferenceBounds]:
    """The same of what unjudged documents could change."""
    place = {name: i for i, name in enumerate(view.ranked)}
    turned = [_turned(row) if place[row.b] < place[row.a] else row for row in rows]
    return sorted(turned, key=lambda row: (place[row.a], place[row.b]))


def _turned(row: DifferenceBounds) -> DifferenceBounds:
    low, high = row.bounds.low, row.bounds.high
    return row._replace(a=row.b, b=row.a, bounds=row.bounds._replace(low=0.0 - high, high=0.0 - low))


def pair_evidence(view: View) -> list[PairEvidence]:
    """Return the evidence on the pairs, the leader's first; on all of them unless the page would wait for it."""
    pairs = pairs_by_weight(view.ranked, view.baseline, view.n, LOOKED_AT)
    return evidence(view.evaluation.scores, pairs, view.settings)


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
