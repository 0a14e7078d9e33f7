"""What the comparison of two retrievers shows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal, NamedTuple

TestRole = Literal["confirmatory", "exploratory"]


class Verdict(Enum):
    """What was shown of a against b."""

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
        """The same seen from the other side."""
        return {Verdict.BETTER: Verdict.WORSE, Verdict.WORSE: Verdict.BETTER}.get(
            self, self
        )


class Reason(Enum):
    """Why nothing was decided, or why two retrievers are equivalent; its numbers are in the comparison."""

    NOTHING_MEASURED = "nothing measured"
    """Every score of the measure is 0."""
    IDENTICAL = "identical"
    """The rankings are the same on every query."""
    NO_QUERY_DIFFERS = "no query differs"
    """The scores are the same on every query."""
    UNDEFINED = "undefined"
    """The t-test of differences that are all equal."""
    TOO_FEW = "too few"
    """The smallest p that the differing queries could give is above the level."""
    NOT_SHOWN = "not shown"
    """The test could have shown a difference, and did not."""
    MODEL_ALONE = "model alone"
    """No person judged these queries."""
    ALPHA_SPENT = "alpha spent"
    """More queries were asked than the last planned look had: its level is spent."""

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
    """Of "undecided", and of "equivalent" where the rankings are identical."""
    negligible: bool = False
    """Whether a difference that was shown is also shown to be smaller than the margin."""

    @property
    def swapped(self) -> Finding:
        """The same seen from the other side."""
        return replace(self, verdict=self.verdict.swapped)


class VerdictInput(NamedTuple):
    """What a verdict rests on."""

    p_adjusted: float
    """Of the deciding test."""
    p_minimum_adjusted: float | None
    """What it could have given at best; None where it has no such bound."""
    sign: int
    """-1, 0, 1: of what it tests, a - b."""
    reason: Reason | None
    """NOTHING_MEASURED, IDENTICAL, NO_QUERY_DIFFERS or UNDEFINED where that is known before any test."""
    within_margin: bool = False
    """Whether equivalence was shown, by its own corrected tests."""


def decide_verdict(evidence: VerdictInput, alpha: float) -> Finding:
    """Return the verdict on a against b. Swapping a and b swaps better and worse, no more.

    >>> decide_verdict(VerdictInput(0.05, 0.001, 1, None), 0.05).verdict.name
    'BETTER'
    >>> decide_verdict(VerdictInput(0.0625, 0.0625, 1, None), 0.05).reason.name
    'TOO_FEW'
    """
    if evidence.reason is Reason.NOTHING_MEASURED:
        return Finding(Verdict.UNDECIDED, Reason.NOTHING_MEASURED)
    if evidence.p_adjusted <= alpha and evidence.sign:
        return Finding(
            Verdict.BETTER if evidence.sign > 0 else Verdict.WORSE,
            negligible=evidence.within_margin,
        )
    if evidence.within_margin:
        return Finding(
            Verdict.EQUIVALENT,
            Reason.IDENTICAL if evidence.reason is Reason.IDENTICAL else None,
        )
    too_few = (
        evidence.p_minimum_adjusted is not None and evidence.p_minimum_adjusted > alpha
    )
    return Finding(
        Verdict.UNDECIDED,
        evidence.reason or (Reason.TOO_FEW if too_few else Reason.NOT_SHOWN),
    )


SIGNED_COLUMNS = {
    "mean_difference": "mean_difference",
    "ci_low": "ci_high",
    "ci_high": "ci_low",
    "effect_size": "effect_size",
}
"""Column -> the one whose value, with the other sign, it has from the other side."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One row of comparisons.csv, whose column `verdict` holds the finding in words; None is an empty cell."""

    measure: str
    a: str
    b: str
    n: int
    """Queries."""
    zeros: int
    """Differences that the signed-rank test dropped: of queries, or of clusters where these are declared."""
    wins: int
    """Queries where a scores higher."""
    ties: int
    losses: int
    mean_difference: float
    """mean(a) - mean(b)."""
    ci_low: float | None
    """Both ends None where no interval can be estimated."""
    ci_high: float | None
    w_plus: float
    w_minus: float
    statistic: float
    p_value: float
    """Of the deciding test, two-sided."""
    p_adjusted: float
    """Corrected within the measure."""
    p_minimum: float | None
    """The smallest p that the deciding test could have given; None for the t-test, which has no such bound."""
    method: str
    """"exact" or "saddlepoint" (signed-rank); "enumerated", "convolved", "draws" or "saddlepoint" (randomization); "t",
    or "undefined" (p = 1) for a t-test of equal differences."""
    effect_size: float | None
    """Matched-pairs rank-biserial correlation; None where no query differs."""
    finding: Finding
    role: TestRole
    p_minimum_adjusted: float | None
    """The family's correction with this pair's p replaced by its floor, the others as observed."""
    p_randomization: float
    """Of the two-sided sign-flip test of the mean."""
    ci_method: str
    p_randomization_adjusted: float
    """Corrected as the deciding test's p."""
    clusters: int | None
    """Clusters of queries, the units of all tests; None where none were declared."""
    p_wilcoxon: float | None
    """Of the exact signed-rank test, two-sided; None with weights."""
    p_wilcoxon_adjusted: float | None
    """Corrected as the deciding test's p."""

    @property
    def verdict(self) -> Verdict:
        """What was shown of a against b."""
        return self.finding.verdict

    @property
    def reason(self) -> Reason | None:
        """Why it is undecided, or equivalent."""
        return self.finding.reason

    @property
    def wilcoxon_floor(self) -> float:
        """The smallest p that the signed-rank test could have given."""
        return min(1.0, 2.0 ** (1 - ((self.clusters or self.n) - self.zeros)))

    @property
    def differing_queries(self) -> int:
        """Queries whose scores differ."""
        return self.wins + self.losses

    @property
    def swapped(self) -> Comparison:
        """The same comparison seen from the other side."""
        opposite = {
            "a": "b",
            "b": "a",
            "wins": "losses",
            "losses": "wins",
            "w_plus": "w_minus",
            "w_minus": "w_plus",
        }
        changed = {name: getattr(self, other) for name, other in opposite.items()}
        for name, other in SIGNED_COLUMNS.items():
            value = getattr(self, other)
            changed[name] = None if value is None else 0.0 - value
        return replace(self, **changed, finding=self.finding.swapped)


@dataclass(frozen=True, slots=True)
class TestRow:
    """One row of tests.csv: its fields are the columns, in their order; None is an empty cell."""

    __test__ = False  # pytest: a row, no test class

    family: str
    measure: str
    a: str
    b: str
    n: int
    """Queries."""
    statistic: float | None
    p_value: float
    p_adjusted: float
    """Within the family, and within one measure."""
    method: str
    note: str
    """Which queries, where not all of them; what else there is to know of a row; empty otherwise."""
    mean_difference: float | None
    """mean(a) - mean(b)."""
    p_wilcoxon_adjusted: float | None = None
    """Of the exact signed-rank test, corrected as p; empty with weights, and where no verdict is given."""
    finding: Finding | None = None
    """Of slices and rerankers, by the rule of every verdict; `wording` writes it."""
