"""From numbers to one of a few words: what a comparison of two retrievers showed."""

from __future__ import annotations

from typing import NamedTuple

BETTER, WORSE, EQUIVALENT, UNDECIDED = "better", "worse", "equivalent", "undecided"
BUT_NEGLIGIBLE = " but negligible"

IDENTICAL = "identical on these queries"
NOTHING = "nothing was measured"
NO_DIFFERENCE = "no query differs"
DISAGREE = "ranks and means disagree"
UNDEFINED = "undefined, all differences are equal"
TOO_FEW = "too few queries"
NOT_SHOWN = "no difference shown"
MODEL_ALONE = "judged by a model alone"


class Evidence(NamedTuple):
    """What a verdict rests on."""

    p_adjusted: float
    """Of the deciding test."""
    p_mean: float
    """Of the sign-flip test of the mean, adjusted alike."""
    p_minimum_adjusted: float | None
    """What the deciding test could have given at best; None where it has no such bound."""
    rank_sign: int
    """-1, 0, 1: sign of w_plus - w_minus."""
    mean_sign: int
    """-1, 0, 1: sign of mean(a) - mean(b)."""
    state: str
    """NOTHING where every score of the measure is 0, IDENTICAL where the rankings are, NO_DIFFERENCE where the scores
    are, UNDEFINED where the deciding test is; else ""."""
    within_margin: bool
    """Whether equivalence was shown, by its own corrected tests."""


def verdict_on(evidence: Evidence, alpha: float) -> str:
    """Return the verdict on a against b: one word, and for "undecided" its reason after a colon.

    "better" and "worse" want both tests to reject, the deciding one and that of the mean, since the words speak of
    means, and a rank sum and a mean that point the same way; "but negligible" joins them where equivalence is shown
    as well. Swapping a and b swaps better and worse, no more.

    >>> verdict_on(Evidence(0.01, 0.02, 0.001, 1, 1, "", False), 0.05)
    'better'
    >>> verdict_on(Evidence(0.01, 0.2, 0.001, 1, 1, "", False), 0.05)
    'undecided: ranks and means disagree'
    >>> verdict_on(Evidence(0.0625, 0.0625, 0.0625, 1, 1, "", False), 0.05)
    'undecided: too few queries'
    """
    if evidence.state == NOTHING:
        return f"{UNDECIDED}: {NOTHING}"
    if max(evidence.p_adjusted, evidence.p_mean) <= alpha and evidence.rank_sign == evidence.mean_sign != 0:
        word = BETTER if evidence.mean_sign > 0 else WORSE
        return word + BUT_NEGLIGIBLE if evidence.within_margin else word
    if evidence.within_margin:
        return f"{EQUIVALENT}: {IDENTICAL}" if evidence.state == IDENTICAL else EQUIVALENT
    return f"{UNDECIDED}: {evidence.state or _reason(evidence, alpha)}"


def _reason(evidence: Evidence, alpha: float) -> str:
    if evidence.p_minimum_adjusted is not None and evidence.p_minimum_adjusted > alpha:
        return TOO_FEW
    if min(evidence.p_adjusted, evidence.p_mean) <= alpha or evidence.rank_sign != evidence.mean_sign:
        return DISAGREE
    return NOT_SHOWN
