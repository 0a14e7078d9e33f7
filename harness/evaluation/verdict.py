"""The verdict on two retrievers.

`decide_verdict` decides it by numbers that are corrected already. `Comparison` and
`TestRow` are the rows of comparisons.csv and tests.csv, where verdicts are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal, NamedTuple

TestRole = Literal["confirmatory", "exploratory"]


class Verdict(Enum):
    """The verdict on a against b."""

    BETTER = "better"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    UNDECIDED = "undecided"

    @property
    def shows_difference(self) -> bool:
        """Whether a difference was shown."""
        return self in (Verdict.BETTER, Verdict.WORSE)

    @property
    def swapped(self) -> Verdict:
        """The verdict on b against a."""
        if self is Verdict.BETTER:
            return Verdict.WORSE
        if self is Verdict.WORSE:
            return Verdict.BETTER
        return self


class Reason(Enum):
    """Why nothing was decided, or why two retrievers are equivalent.

    Its numbers are in the comparison.
    """

    NOTHING_MEASURED = "nothing measured"
    """Every score of the measure is 0."""
    IDENTICAL = "identical"
    """The rankings are the same on every query, down to the measure's cutoff."""
    NO_QUERY_DIFFERS = "no query differs"
    """The scores are the same on every query."""
    UNDEFINED = "undefined"
    """The t-test has no standard error: all differences may be equal."""
    TOO_FEW = "too few"
    """The smallest p that the differing queries could give is above the level."""
    NOT_SHOWN = "not shown"
    """The test could have shown a difference, and did not."""
    MODEL_ALONE = "model alone"
    """No person judged these queries."""
    ALPHA_SPENT = "alpha spent"
    """There are more queries than the last planned look had: its level is spent."""

    @property
    def helped_by_queries(self) -> bool:
        """Whether more queries like these could remove the reason."""
        return self not in (
            Reason.NO_QUERY_DIFFERS,
            Reason.IDENTICAL,
            Reason.UNDEFINED,
            Reason.ALPHA_SPENT,
        )


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on one pair."""

    verdict: Verdict
    reason: Reason | None = None
    """Why it is undecided, or equivalent because the rankings are identical.

    None for every other verdict.
    """
    negligible: bool = False
    """Whether the difference is also shown to be smaller than the margin."""

    @property
    def swapped(self) -> Finding:
        """The finding on b against a."""
        return replace(self, verdict=self.verdict.swapped)


class VerdictInput(NamedTuple):
    """The numbers that a verdict depends on."""

    p_adjusted: float
    """The corrected p of the deciding test."""
    p_minimum_adjusted: float | None
    """The smallest possible corrected p; None if there is no such bound."""
    sign: int
    """The sign of the tested difference, a - b: -1, 0 or 1."""
    reason: Reason | None
    """The reason that is known before any test; None if there is none.

    NOTHING_MEASURED, IDENTICAL, NO_QUERY_DIFFERS or UNDEFINED.
    """
    within_margin: bool = False
    """Whether equivalence was shown, by its own corrected tests."""


def decide_verdict(evidence: VerdictInput, alpha: float) -> Finding:
    """Return the verdict on a against b.

    A shown difference comes before shown equivalence: it is then called negligible.
    Swapping a and b swaps better and worse, and nothing else.

    >>> decide_verdict(VerdictInput(0.05, 0.001, 1, None), 0.05).verdict.name
    'BETTER'
    >>> decide_verdict(VerdictInput(0.0625, 0.0625, 1, None), 0.05).reason.name
    'TOO_FEW'
    """
    if evidence.reason is Reason.NOTHING_MEASURED:
        return Finding(Verdict.UNDECIDED, Reason.NOTHING_MEASURED)
    if evidence.p_adjusted <= alpha and evidence.sign:
        verdict = Verdict.BETTER if evidence.sign > 0 else Verdict.WORSE
        return Finding(verdict, negligible=evidence.within_margin)
    if evidence.within_margin:
        is_identical = evidence.reason is Reason.IDENTICAL
        return Finding(Verdict.EQUIVALENT, Reason.IDENTICAL if is_identical else None)
    if evidence.reason is not None:
        return Finding(Verdict.UNDECIDED, evidence.reason)
    smallest_p = evidence.p_minimum_adjusted
    if smallest_p is not None and smallest_p > alpha:
        return Finding(Verdict.UNDECIDED, Reason.TOO_FEW)
    return Finding(Verdict.UNDECIDED, Reason.NOT_SHOWN)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One row of comparisons.csv; None is an empty cell.

    Its column `verdict` is the finding in words.
    """

    measure: str
    a: str
    b: str
    n: int
    """How many queries have a value from both."""
    zeros: int
    """How many queries (or clusters) have equal scores: signed ranks drop them."""
    wins: int
    """How many queries a scores higher on."""
    ties: int
    losses: int
    mean_difference: float
    """mean(a) - mean(b)."""
    ci_low: float | None
    """Both ends are None if no interval can be estimated."""
    ci_high: float | None
    w_plus: float
    """Rank sum of the queries (or clusters) where a is ahead."""
    w_minus: float
    statistic: float
    """The smaller of the two rank sums."""
    p_value: float
    """The two-sided p of the deciding test."""
    p_adjusted: float
    """The p corrected within the measure."""
    p_minimum: float | None
    """The smallest possible p of the deciding test.

    None for the t-test, which has no such bound.
    """
    method: str
    """How the deciding test was computed.

    "exact" or "saddlepoint" (signed-rank); "enumerated", "convolved", "grid" or
    "saddlepoint" (randomization); "t", or "undefined" (p = 1) for a t-test of equal
    differences.
    """
    effect_size: float | None
    """Matched-pairs rank-biserial correlation.

    None if no query (or cluster) differs.
    """
    finding: Finding
    role: TestRole
    """Its role: "confirmatory" on the primary measure, else "exploratory"."""
    p_minimum_adjusted: float | None
    """The smallest possible adjusted p, the others as observed; None for the t-test."""
    p_randomization: float
    """The p of the two-sided sign-flip test of the mean."""
    ci_method: str
    """How the interval was computed, as in `Interval`."""
    p_randomization_adjusted: float
    """`p_randomization`, corrected like the p of the deciding test."""
    clusters: int | None
    """How many clusters, the units of all tests; None if every query is one."""
    p_wilcoxon: float | None
    """The two-sided p of the signed-rank test; None with weights."""
    p_wilcoxon_adjusted: float | None
    """`p_wilcoxon`, corrected like the p of the deciding test; None likewise."""

    @property
    def verdict(self) -> Verdict:
        """The verdict on a against b."""
        return self.finding.verdict

    @property
    def reason(self) -> Reason | None:
        """Why it is undecided, or equivalent: `Finding.reason`."""
        return self.finding.reason

    @property
    def wilcoxon_floor(self) -> float:
        """The smallest possible p of the signed-rank test."""
        nonzero = (self.clusters or self.n) - self.zeros
        return min(1.0, 2.0 ** (1 - nonzero))

    @property
    def differing_queries(self) -> int:
        """How many queries have scores that differ."""
        return self.wins + self.losses

    @property
    def swapped(self) -> Comparison:
        """The comparison of b with a."""
        return replace(
            self,
            a=self.b,
            b=self.a,
            wins=self.losses,
            losses=self.wins,
            mean_difference=0.0 - self.mean_difference,
            ci_low=_negated(self.ci_high),
            ci_high=_negated(self.ci_low),
            w_plus=self.w_minus,
            w_minus=self.w_plus,
            effect_size=_negated(self.effect_size),
            finding=self.finding.swapped,
        )


def _negated(number: float | None) -> float | None:
    """Return the opposite number, never -0.0."""
    return None if number is None else 0.0 - number


@dataclass(frozen=True, slots=True)
class TestRow:
    """One row of tests.csv; None is an empty cell.

    Its fields are the columns, in their order.
    """

    __test__ = False  # pytest: a row, no test class

    family: str
    """The family: "equivalence", "rerank uplift", "sweep", or a property of slices."""
    measure: str
    a: str
    b: str
    n: int
    """How many queries count; of a slice, those in it."""
    statistic: float | None
    """The statistic of the test; None if only its p is stored."""
    p_value: float
    p_adjusted: float
    """The p corrected within the family and the measure."""
    method: str
    note: str
    """The slice of the queries, or another note; empty otherwise."""
    mean_difference: float | None
    """mean(a) - mean(b)."""
    p_wilcoxon_adjusted: float | None = None
    """The p of the signed-rank test, corrected like `p_adjusted`.

    None with weights, and for rows without a verdict.
    """
    finding: Finding | None = None
    """The verdict, for rows that have one: those on rerankers."""
