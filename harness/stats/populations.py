"""What the queries would be like if the true mean difference were another: three models of the observed differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import optimize

from harness.stats.differences import Differences, Floats


class Population(NamedTuple):
    """Differences with their chances, ascending."""

    values: Floats
    weights: Floats
    """Of the same length; they sum to 1."""

    @property
    def mean(self) -> float:
        """The true mean difference."""
        return float(self.values @ self.weights)

    @property
    def deviation(self) -> float:
        """The true standard deviation."""
        return math.sqrt(float(self.weights @ (self.values - self.mean) ** 2))


def sign_tilt(pairs: Differences, difference: float, span: float) -> Population | None:
    """Zeros and magnitudes as observed; each non-zero difference is positive with the chance that gives the mean."""
    del span  # Magnitudes that were seen are within it.
    sizes = np.abs(pairs.values)
    average = float(sizes.mean())
    if average <= pairs.slack or difference > average:
        return None
    positive = (1 + difference / average) / 2
    return _population(
        np.concatenate([sizes, -sizes]), np.concatenate([np.full(len(sizes), x) for x in (positive, 1 - positive)])
    )


def exponential_tilt(pairs: Differences, difference: float, span: float) -> Population | None:
    """Return the observed differences d, reweighted by exp(lambda d) so that their mean is the difference."""
    del span
    values = pairs.values
    top = float(values.max())
    if not values.min() < difference < top:
        return None

    def weights(steepness: float) -> Floats:
        # The exponent is at most 0: nothing overflows.
        raw: Floats = np.exp(steepness * (values - (top if steepness > 0 else values.min())) / scale)
        weighed: Floats = raw / raw.sum()
        return weighed

    scale = float(np.ptp(values))
    steepness = _root(lambda x: float(values @ weights(x)) - difference)
    return None if steepness is None else _population(values, weights(steepness))


def shift(pairs: Differences, difference: float, span: float) -> Population | None:
    """Return the observed differences, centred, moved up and clipped to the measure's range, so that the mean fits."""
    centred = pairs.values - pairs.values.mean()
    if not -span < difference < span:
        return None
    step = _root(lambda x: float(np.clip(centred + x * span, -span, span).mean()) - difference)
    if step is None:
        return None
    return _population(np.clip(centred + step * span, -span, span), np.ones(len(centred)))


MODELS: dict[str, Callable[[Differences, float, float], Population | None]] = {
    "sign tilt": sign_tilt,
    "exponential tilt": exponential_tilt,
    "shift": shift,
}
"""Model -> (observed differences, true mean difference > 0, range of the measure) -> the population, None where the
model cannot have that mean."""


def reach(pairs: Differences, model: str, span: float) -> float:
    """Return the largest mean difference that a model can have (the supremum of it)."""
    match model:
        case "sign tilt":
            return float(np.abs(pairs.values).mean())
        case "exponential tilt":
            return float(pairs.values.max())
    return span


def _population(values: Floats, weights: Floats) -> Population:
    order = np.argsort(values, kind="stable")
    return Population(values[order], weights[order] / weights.sum())


def _root(distance: Callable[[float], float]) -> float | None:
    """Return where a rising function crosses 0, searched outwards; None where it does not."""
    width = 1.0
    while width < 1e6:
        if distance(-width) <= 0 <= distance(width):
            root: float = optimize.brentq(distance, -width, width, xtol=1e-12)
            return root
        width *= 4
    return None
