"""The chance that a random subset has a small sum.

The tail of a test by flipped signs: the sizes are the absolute differences, and the
limit is the smaller one of two sums, of the positive and of the negative ones.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from harness.stats.differences import SCORE_TOLERANCE, Floats, Integers
from harness.stats.rank_sum_tails import with_subsets
from harness.stats.saddlepoint import saddlepoint_chance

MAX_LISTED_SUBSETS = 100_000
"""Subsets of the sizes that are listed one by one."""
MAX_CONVOLVED_STEPS = 50_000
"""Steps in the limit, up to which multiples of one step are counted."""
MAX_CONVOLVED_BATCH = 500
"""Sizes whose subsets are counted before they become probabilities.

The number of all 2^500 subsets is still a float.
"""
GRID_STEPS = 20_000
"""Steps of the grid up to the limit."""
FINE_GRID_STEPS = 40_000
"""Steps of a finer grid, for many sizes of which few carry the sum."""
MAX_GRID_SIZES = 300
"""Sizes up to which the grid is used whatever they are."""
MIN_EFFECTIVE_SIZES = 200
"""(sum d^2)^2 / sum d^4, of more sizes d, from which on the saddlepoint is used."""
MIN_FAST_SIZES = 60
"""Sizes from which on the saddlepoint is used if it has to be fast."""


class Tail(NamedTuple):
    """The chances of a sum of a random subset."""

    at_most: float
    """The chance of a sum of at most the limit, or equal to it up to float noise."""
    below: float
    """The chance of a sum below the limit by more than float noise.

    The grid and the saddlepoint know no single sums: there it is `at_most`.
    """
    method: str


def subset_tail(
    sizes: Floats, limit: float, slack: float, *, fast: bool = False
) -> Tail:
    """Return the chances that a random subset's sum is at most or below a limit.

    Each size is in the subset with probability 1/2. The first method that fits:

    - *enumerated* if at most 100,000 subsets are within the limit;
    - *convolved* if all sizes are multiples of one step, and the limit is at most
      50,000 of them;
    - *grid*, with a step of a 20,000th of the limit, up to 300 sizes;
    - *grid*, of a 40,000th, while (sum d^2)^2 / sum d^4 of the sizes d is below 200: of
      normal ones up to about 600;
    - *saddlepoint*.

    The last three are within 1 % of finer grids and of enumeration by halves (the grid
    within 4 % for 50 large and 350 tiny sizes).

    Args:
        sizes: ascending, above zero.
        limit: the sum of one of the subsets, at most half of all.
        slack: float noise of a sum, above zero.
        fast: whether the saddlepoint is used in place of the grid from 60 sizes on.

    >>> subset_tail(np.array([1.0, 2.0, 3.0]), limit=3.0, slack=1e-9)
    Tail(at_most=0.625, below=0.375, method='enumerated')
    """
    sums = _list_subset_sums(sizes, limit + slack)
    if sums is not None:
        below = np.count_nonzero(sums <= limit - slack)
        return Tail(
            math.ldexp(len(sums), -len(sizes)),
            math.ldexp(below, -len(sizes)),
            "enumerated",
        )
    steps = _whole_steps(sizes, limit, slack / max(1, len(sizes)))
    if steps is not None:
        step = float(sizes[0]) / int(steps[0])
        chances = _subset_chances(steps, math.floor((limit + slack) / step + 0.5))
        sums_below = math.ceil(limit / step - 0.5)
        below_limit = float(chances[:sums_below].sum())
        return Tail(float(chances.sum()), below_limit, "convolved")
    if fast and len(sizes) >= MIN_FAST_SIZES:
        chance = saddlepoint_chance(sizes, limit)
        return Tail(chance, chance, "saddlepoint")
    grid_steps = _grid_steps(sizes)
    if grid_steps is None:
        chance = saddlepoint_chance(sizes, limit)
        return Tail(chance, chance, "saddlepoint")
    chance = _grid_chance(sizes, limit, grid_steps)
    return Tail(chance, chance, "grid")


def _grid_steps(sizes: Floats) -> int | None:
    """Return the steps of the grid for these sizes; None for the saddlepoint."""
    if len(sizes) <= MAX_GRID_SIZES:
        return GRID_STEPS
    shares = sizes / sizes[-1]  # fourth powers of large sizes overflow
    effective = float((shares**2).sum() ** 2 / (shares**4).sum())
    return FINE_GRID_STEPS if effective < MIN_EFFECTIVE_SIZES else None


def _list_subset_sums(sizes: Floats, limit: float) -> Floats | None:
    """Return the sums of the subsets that are within the limit; None if too many."""
    if _fewest_subsets(sizes, limit) > MAX_LISTED_SUBSETS:
        return None
    sums = np.zeros(1)
    for size in sizes.tolist():
        if size > limit:
            break
        longer_sums = sums[sums <= limit - size] + size
        if len(sums) + len(longer_sums) > MAX_LISTED_SUBSETS:
            return None
        sums = np.concatenate([sums, longer_sums])
    return sums


def _fewest_subsets(sizes: Floats, limit: float) -> float:
    """Return a number of subsets that are certainly within the limit.

    If m times the j-th size is within it, so are any m of the j smallest sizes. Most
    lists that would grow too long need not be begun.
    """
    smaller = np.arange(1, len(sizes) + 1)
    members = np.floor(limit * (1 - SCORE_TOLERANCE) / sizes)
    chosen = np.minimum(members, smaller // 2)
    return float(special.binom(smaller, chosen).max(initial=1.0))


def _whole_steps(sizes: Floats, limit: float, slack: float) -> Integers | None:
    """Return sizes as whole multiples of one step.

    None if there is no such step, or the limit is too many of them.
    """
    step = float(sizes[0])
    # Euclid's algorithm, on all sizes at once.
    while limit <= MAX_CONVOLVED_STEPS * step:
        multiples = np.round(sizes / step)
        remainders = np.abs(sizes - step * multiples)
        is_remainder = remainders > slack * np.maximum(1.0, multiples)
        if not is_remainder.any():
            return multiples.astype(np.int64)
        step = float(remainders[is_remainder].min())
    return None


def _grid_chance(sizes: Floats, limit: float, grid_steps: int) -> float:
    """Return the chance of a sum of at most the limit, on a grid.

    The mass of each point is spread evenly over its step, so that of the last, which is
    at the limit, one half counts.
    """
    steps = np.round(sizes * (grid_steps / limit)).astype(np.int64)
    chances = _subset_chances(steps, grid_steps)
    smallest = math.ldexp(1.0, -len(sizes))
    return max(float(chances[:-1].sum() + chances[-1] / 2), smallest)


def _subset_chances(steps: Integers, limit: int) -> Floats:
    """Return the chances of the sums 0 … limit of a random subset of rising numbers."""
    counts = np.zeros(limit + 1)
    counts[0] = 1.0
    exponent = 0
    for start in range(0, len(steps), MAX_CONVOLVED_BATCH):
        batch = steps[start : start + MAX_CONVOLVED_BATCH]
        counts = with_subsets(counts, batch)
        # Counts grow, chances shrink: both would leave the range of floats.
        scale = math.frexp(float(counts.max()))[1]
        counts = np.ldexp(counts, -scale)
        exponent += scale - len(batch)
    return np.ldexp(counts, exponent)
