"""Beside the verdicts and never instead of them: probabilities, effect sizes, and what two rankings have in common."""

from __future__ import annotations

from typing import NamedTuple

from harness.report.view import View
from harness.scoring.overlap import RankingsOverlap, overlaps
from harness.stats import Details, details, differences
from harness.stats.signed_rank import signed_rank_of
from harness.stats.words import pair_sentence

MOST = 50_000
"""Pairs times queries that are looked at: more would take minutes."""


class PairEvidence(NamedTuple):
    """What there is to say about a pair beside its verdict, on the primary measure."""

    a: str
    b: str
    details: Details
    effect_size: float | None
    """The rank-biserial correlation; None if no query differs."""
    overlap: RankingsOverlap
    """Of the rankings as deep as they were kept, over all queries that were asked."""


def evidence(view: View) -> list[PairEvidence]:
    """Return the evidence on every pair, compared or not; none where that would take minutes."""
    names = view.retrievers
    if len(names) * (len(names) - 1) // 2 * view.n > MOST:
        return []
    scores, units = view.scores[view.primary], view.facts.units(view.n)
    rows = []
    for common in overlaps(view.results):
        a, b = scores[common.a], scores[common.b]
        pairs, by_unit = differences(a, b), differences(units.means(a), units.means(b))
        ranks = signed_rank_of(by_unit, zeros=view.settings.zeros)
        rows.append(
            PairEvidence(common.a, common.b, details(pairs, by_unit, units, view.settings), ranks.effect_size, common)
        )
    return rows


def in_words(view: View) -> list[str]:
    """Return each comparison of the primary measure as a sentence."""
    return [view.spoken(pair_sentence(row, view.settings)) for row in view.comparisons[view.primary]]


def chance(share: float | None) -> str:
    """Return a share of random draws as a percentage: draws show nothing to be certain.

    >>> chance(0.984), chance(1.0), chance(0.0), chance(None)
    ('98 %', '> 99 %', '< 1 %', '–')
    """
    if share is None:
        return "–"
    if not 0.005 <= share <= 0.995:
        return "< 1 %" if share < 0.5 else "> 99 %"
    return f"{100 * share:.0f} %"
