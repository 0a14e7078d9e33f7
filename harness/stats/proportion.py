"""The exact interval of a proportion."""

from __future__ import annotations

from typing import NamedTuple

from scipy import special

from harness.stats.power import TARGET_POWER

SHARE_STEPS = 1_000
"""Steps of the share that a sign test detects."""


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


def sign_test_rejections(n: int, alpha: float = 0.05) -> int:
    """Return the fewest successes of n that a two-sided sign test at alpha rejects.

    n + 1 if not even n of n are enough.

    >>> sign_test_rejections(25), sign_test_rejections(5)
    (18, 6)
    """
    for successes in range(n // 2 + 1, n + 1):
        tail = float(special.bdtr(n - successes, n, 0.5))
        if 2 * tail <= alpha:
            return successes
    return n + 1


def sign_test_level(n: int, alpha: float = 0.05) -> float:
    """Return how often the two-sided sign test rejects if nothing differs.

    >>> round(sign_test_level(25), 4)
    0.0433
    """
    failures = n - sign_test_rejections(n, alpha)
    return 2 * float(special.bdtr(failures, n, 0.5)) if failures >= 0 else 0.0


def detectable_share(n: int, alpha: float = 0.05) -> float | None:
    """Return the smallest share above 1/2 that the sign test finds with power 0.80.

    None if no share is found so often. The share is rounded up to a thousandth.

    >>> detectable_share(25), detectable_share(5)
    (0.77, None)
    """
    failures = n - sign_test_rejections(n, alpha)
    if failures < 0:
        return None
    for step in range(SHARE_STEPS // 2, SHARE_STEPS + 1):
        share = step / SHARE_STEPS
        if float(special.bdtr(failures, n, 1 - share)) >= TARGET_POWER:
            return share
    return None
