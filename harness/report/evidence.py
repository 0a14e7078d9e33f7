"""What stands beside the verdicts on the page, and the comparisons in words."""

from __future__ import annotations

from harness.report.pairs import in_reading_order
from harness.report.view import View
from harness.scoring.evidence import PairEvidence, evidence, pairs_by_weight
from harness.scoring.overlap import answers_of
from harness.stats.words import counted, pair_sentence


def beside(view: View) -> list[PairEvidence]:
    """Return the evidence on the pairs, the leader's first; on all of them unless that would take minutes."""
    pairs = pairs_by_weight(view.ranked, view.baseline, view.n)
    lists = {name: answers_of(view.results, name) for name in view.retrievers}
    return evidence(view.scores[view.primary], pairs, lists=lists, settings=view.settings, facts=view.facts)


def left_out(view: View, shown: int) -> str:
    """Return how many pairs are not looked at, and why; "" where none are left out."""
    others = len(view.retrievers) * (len(view.retrievers) - 1) // 2 - shown
    if not others:
        return ""
    stand = "is" if others == 1 else "are"
    return (
        f"{counted(others, 'pair')} {stand} left out: with {view.n:,} queries each they would take minutes. The "
        "leader's pairs come first, then the baseline's."
    )


def in_words(view: View) -> list[str]:
    """Return each comparison of the primary measure as a sentence."""
    rows = in_reading_order(view, view.comparisons[view.primary])
    return [view.spoken(pair_sentence(row, view.settings)) for row in rows]


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
