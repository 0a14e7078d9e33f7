"""What stands beside the verdicts on the page, and the comparisons in words."""

from __future__ import annotations

from harness.english import counted
from harness.evaluation.evidence import PairEvidence, evidence, pairs_by_weight
from harness.evaluation.wording import pair_sentence
from harness.report.pairs import in_reading_order
from harness.report.view import View


def pair_evidence(view: View) -> list[PairEvidence]:
    """Return the evidence on the pairs, the leader's first; on all of them unless that would take minutes."""
    pairs = pairs_by_weight(view.ranked, view.baseline, view.n)
    return evidence(view.evaluation.scores, pairs, view.settings)


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
