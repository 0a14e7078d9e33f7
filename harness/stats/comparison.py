"""One comparison of two retrievers on one measure: a row of comparisons.csv."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

from harness.stats.verdicts import BETTER, WORSE

TestRole = Literal["confirmatory", "exploratory"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One row of comparisons.csv: its fields are the columns, in their order; None is an empty cell."""

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
    """"exact" or "normal" (signed-rank), "enumerated" or "draws" (randomization), "t", "sign"; "undefined"
    (p = 1) for a t-test of equal differences."""
    effect_size: float | None
    """Matched-pairs rank-biserial correlation; None where no query differs."""
    verdict: str
    role: TestRole
    p_minimum_adjusted: float | None
    """The family's correction with this pair's p replaced by its floor, the others as observed; None under Tukey."""
    p_randomization: float
    """Of the two-sided sign-flip test of the mean."""
    ci_method: str
    p_randomization_adjusted: float
    """Corrected as the deciding test's p; under Tukey that is `p_adjusted`."""
    clusters: int | None
    """Clusters of queries, the units of all tests; None where none were declared."""

    @property
    def word(self) -> str:
        """The verdict without its reason."""
        return self.verdict.partition(":")[0]

    @property
    def reason(self) -> str:
        """Why it is undecided, or equivalent: "identical on these queries"; empty otherwise."""
        return self.verdict.partition(": ")[2]


def family(names: Sequence[str], baseline: str | None = None) -> list[tuple[str, str]]:
    """Return the pairs (a, b) of one family: each other against the baseline, else all pairs in the given order.

    >>> family(["x", "y", "z"])
    [('x', 'y'), ('x', 'z'), ('y', 'z')]
    >>> family(["x", "y", "z"], baseline="y")
    [('x', 'y'), ('z', 'y')]
    """
    if baseline is None:
        return list(combinations(names, 2))
    if baseline not in names:
        raise ValueError(f"the baseline {baseline!r} is not among {', '.join(names)}")
    return [(name, baseline) for name in names if name != baseline]


def swapped(row: Comparison) -> Comparison:
    """Return the same comparison seen from the other side."""
    verdict = row.verdict
    if verdict.startswith(BETTER):
        verdict = WORSE + verdict.removeprefix(BETTER)
    elif verdict.startswith(WORSE):
        verdict = BETTER + verdict.removeprefix(WORSE)
    return replace(
        row,
        a=row.b,
        b=row.a,
        wins=row.losses,
        losses=row.wins,
        mean_difference=0.0 - row.mean_difference,
        ci_low=None if row.ci_high is None else 0.0 - row.ci_high,
        ci_high=None if row.ci_low is None else 0.0 - row.ci_low,
        w_plus=row.w_minus,
        w_minus=row.w_plus,
        effect_size=None if row.effect_size is None else 0.0 - row.effect_size,
        verdict=verdict,
    )
