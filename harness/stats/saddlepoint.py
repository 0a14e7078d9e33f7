"""The saddlepoint approximation of a sum with random signs."""

import math

import numpy as np
from scipy import special

from harness.stats.differences import SCORE_TOLERANCE, Floats
from harness.stats.signed_rank import SMALLEST

NEAR_CENTRE = 1e-3
"""Standard deviations from the centre below which the saddlepoint's formula is 0/0."""
TILT_TOLERANCE = 1e-13
"""Relative tolerance of the saddlepoint."""


def saddlepoint_chance(sizes: Floats, limit: float) -> float:
    """Return the chance of a sum of at most the limit, by the saddlepoint.

    Lugannani & Rice (1980), for the sum of sizes with random signs, whose cumulants are
    K(t) = sum log cosh(t d); never below the chance of a single subset.

    >>> from harness.stats.signed_rank import lower_tail
    >>> steps = np.arange(1, 41)
    >>> round(saddlepoint_chance(steps / 40, 36 / 40) / lower_tail(steps, 36), 2)
    0.92
    """
    d = sizes[::-1]
    total = math.fsum(d)
    observed = total - 2 * limit
    smallest_chance = max(math.ldexp(1.0, -len(d)), SMALLEST)
    if observed >= total * (1 - SCORE_TOLERANCE):
        return smallest_chance
    z = observed / math.sqrt(float(d @ d))
    if z < NEAR_CENTRE:  # there the sum is normal
        return float(special.ndtr(-z))
    t = _saddlepoint(d, observed)
    cumulant = float((t * d + np.log1p(np.exp(-2 * t * d)) - math.log(2)).sum())
    w = math.sqrt(max(2 * (t * observed - cumulant), SCORE_TOLERANCE))
    scaled_deviation = t * math.sqrt(float((d**2 * (1 - np.tanh(t * d) ** 2)).sum()))
    density = math.exp(-w * w / 2) / math.sqrt(2 * math.pi)
    chance = float(special.ndtr(-w)) + density * (1 / scaled_deviation - 1 / w)
    return max(chance, smallest_chance)


def _saddlepoint(d: Floats, observed: float) -> float:
    """Return the t at which K'(t) = sum d tanh(t d) is the observed sum.

    Args:
        d: sizes of the differences, largest first.
        observed: below the sum of the sizes.
    """
    low = 0.0
    high = 1.0 / float(d[0])
    while float(d @ np.tanh(high * d)) < observed:
        low = high
        high = 2 * high
    while high - low > TILT_TOLERANCE * high:
        middle = (low + high) / 2
        if float(d @ np.tanh(middle * d)) < observed:
            low = middle
        else:
            high = middle
    return high
