"""Queries that a difference needs.

The model of power: differences with the observed standard deviation, tested by a
two-sided t-test at the smallest level of the family, with power 0.80. Nothing is
planned from the observed mean difference.
"""

import math
from bisect import bisect_left

from scipy import special

from harness.stats.differences import PairedDifferences
from harness.stats.intervals import standard_deviation

TARGET_POWER = 0.80
"""The power that plans are for, usual since Cohen (1988)."""
MIN_POWER_DIFFERENCES = 10
"""Non-zero differences below which nothing is said of power."""
MAX_POWER_QUERIES = 1_000_000
"""Queries beyond which no number is given."""
EFFECT_TOLERANCE = 1e-9
"""Relative tolerance of a detectable effect."""


def t_power(effect: float, n: int, alpha: float) -> float:
    """Return the power of the two-sided paired t-test, from the noncentral t.

    Args:
        effect: the true mean difference divided by the differences' standard deviation.
        n: queries (or clusters) that both have a score for, 2 or more.
        alpha: two-sided level.

    >>> round(t_power(0.5, 34, 0.05), 4)
    0.8078
    """
    # By the lower tail: 1 - alpha / 2 would be 1 for a small alpha.
    edge = -float(special.stdtrit(n - 1, alpha / 2))
    centre = effect * math.sqrt(n)
    power = float(1 - special.nctdtr(n - 1, centre, edge))
    if math.isnan(power):  # scipy's limit; only the observed deviation matters there
        ratio = centre / edge
        power = float(special.chdtr(n - 1, (n - 1) * ratio * ratio))
    wrong_side = float(special.nctdtr(n - 1, centre, -edge))
    if math.isnan(wrong_side):  # scipy gives NaN below 1e-6
        return power
    return power + wrong_side


def queries_for_effect(effect: float, alpha: float = 0.05) -> int | None:
    """Return the smallest number of queries with power 0.80; None above 1,000,000.

    Args:
        effect: the true mean difference divided by the differences' standard deviation;
            > 0.
        alpha: two-sided level.

    Raises:
        ValueError: the effect is not above 0.

    >>> queries_for_effect(0.5), queries_for_effect(0.2)
    (34, 199)
    """
    if not effect > 0:
        raise ValueError(f"the effect {effect} is not above 0")
    sizes = range(2, MAX_POWER_QUERIES + 1)
    index = bisect_left(sizes, TARGET_POWER, key=lambda n: t_power(effect, n, alpha))
    return sizes[index] if index < len(sizes) else None


def detectable_effect(n: int, alpha: float = 0.05) -> float:
    """Return the smallest effect that n queries find with power 0.80; n >= 2.

    It is a mean difference in standard deviations.

    >>> round(detectable_effect(34), 3)
    0.495
    """
    high = 1.0
    while t_power(high, n, alpha) < TARGET_POWER:
        high *= 2
    low = 0.0
    # Importing scipy.optimize takes longer than all of these steps.
    while high - low > EFFECT_TOLERANCE * high:
        middle = (low + high) / 2
        if t_power(middle, n, alpha) < TARGET_POWER:
            low = middle
        else:
            high = middle
    return high


def queries_needed(
    differences: PairedDifferences, difference: float, alpha: float
) -> int | None:
    """Return how many queries find a true mean difference with power 0.80.

    MAX_POWER_QUERIES + 1 if that many are not enough. None below ten non-zero
    differences, and if all are equal: nothing is said of power then.

    Args:
        differences: the observed ones, of clusters' means if clusters are declared;
            their mean is not used.
        difference: the one that must not be missed; > 0, in points of the measure.
        alpha: two-sided level, divided by the rows of the family.
    """
    nonzero = differences.wins + differences.losses
    if nonzero < MIN_POWER_DIFFERENCES or differences.is_constant:
        return None
    effect = difference / standard_deviation(differences.values)
    return queries_for_effect(effect, alpha) or MAX_POWER_QUERIES + 1
