"""The exact interval of a proportion."""

from __future__ import annotations

from typing import NamedTuple

from scipy import special


class ProportionInterval(NamedTuple):
    """The ends of an interval of a proportion."""

    low: float
    high: float


def clopper_pearson(
    successes: int, trials: int, alpha: float = 0.05
) -> ProportionInterval:
    """Return the interval of Clopper and Pearson (1934): it covers at least 1 - alpha.

    Each end is the proportion at which so many successes, or more (or fewer), have the
    chance alpha / 2.

    Args:
        successes: from 0 to `trials`.
        trials: 0 if nothing was tried: then every proportion is possible.
        alpha: two-sided.

    >>> [round(end, 4) for end in clopper_pearson(17, 22)]
    [0.5463, 0.9218]
    """
    failures = trials - successes
    low = 0.0
    high = 1.0
    if successes:
        low = float(special.betaincinv(successes, failures + 1, alpha / 2))
    if failures:
        high = float(special.betaincinv(successes + 1, failures, 1 - alpha / 2))
    return ProportionInterval(low, high)
